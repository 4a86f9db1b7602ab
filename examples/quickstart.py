"""Index a small dataset and see what a query skips: python examples/quickstart.py"""

import tempfile

from pyspark.sql import SparkSession

import skipstone
from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex

spark = skipstone.configure(SparkSession.builder).getOrCreate()

folder = f"{tempfile.mkdtemp()}/logs"
events = spark.range(64_000).selectExpr(
    "timestamp_seconds(1767225600 + id * 60) AS ts",
    "concat('db_', id div 4000) AS db_name",
    "md5(string(id)) AS account",
)
events.repartitionByRange(64, "ts").write.parquet(folder)

logs = Dataset.for_path(spark, folder)
print(logs.create_indexes(MinMaxIndex("ts"), ValueListIndex("db_name"), BloomFilterIndex("account")))

query = spark.read.parquet(folder).where("db_name LIKE '%_7' AND ts >= '2026-01-21'")
print(query.count(), "rows;", skipstone.last_query(spark)[-1].objects)
print(logs.explain(query))
