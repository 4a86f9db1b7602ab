"""A client of a Spark Connect server in another process; writes what it finds to a file, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skipstone
from skipstone import BloomFilterIndex, Dataset, FeatureIndex, GeoBoxIndex, MinMaxIndex, PrefixIndex, ValueListIndex
from skipstone.errors import SkipstoneError


def main(address: str, folder: str) -> dict:
    spark = skipstone.configure(SparkSession.builder.remote(address)).getOrCreate()
    data = f"{folder}/data"
    columns = ["id", "concat('n', id) AS `odd name`", "struct(id AS x) AS s", "id / 10 AS lat", "id / 20 AS lng"]
    spark.range(0, 100, 1, 4).selectExpr(*columns).write.parquet(data)
    dataset = Dataset.for_path(spark, data)
    found = {"before": dataset.is_indexed, "root": dataset.root == data, "shown": repr(dataset) != ""}
    report = dataset.create_indexes(
        MinMaxIndex("id"),
        BloomFilterIndex("`odd name`", fpp=0.001),
        ValueListIndex("s.x", name="it's mine"),
        PrefixIndex("`odd name`", length=2),
        GeoBoxIndex("lat", "lng", boxes=2),
        FeatureIndex({"small": "id < 5 AND `odd name` LIKE 'n%'"}),
    )
    found |= {"indexed": report.indexed, "indexes": report.indexes, "rows": report.rows}
    found["described"] = [row["name"] for row in dataset.describe().collect()]
    read = spark.read.parquet(data)
    with skipstone.skipping_stats(spark) as stats:
        found["answer"] = sorted(row.id for row in read.where("id BETWEEN 30 AND 40").collect())
        is_small = F.udf(lambda n: n < 5, "boolean")
        found["python"] = sorted(row.id for row in read.where(is_small("id") & (F.col("id") < 20)).collect())
    found["skipped"] = [entry.objects.skipped for entry in stats]
    found["last"] = [(entry.objects.kept, entry.files_read) for entry in skipstone.last_query(spark)]
    other = type(spark)(connection=spark.client._builder)
    found["of_another"] = [len(skipstone.last_query(other)), len(skipstone.last_query(spark))]
    found["explained"] = str(dataset.explain(read.where("id = 3 AND length(`odd name`) = 2")))
    spark.range(100, 110, 1, 1).selectExpr(*columns).write.mode("append").parquet(data)
    found["refreshed"] = dataset.refresh().indexed
    found["refreshed_folder"] = dataset.refresh([data]).indexed
    spark.sql(f"CREATE TABLE served USING parquet LOCATION '{data}'")
    found["table"] = len(Dataset.for_table(spark, "served").describe().collect())
    found["of_frame"] = Dataset(spark.table("served")).is_indexed, Dataset(spark.read.parquet(data)).is_indexed
    dataset.drop_indexes("minmax(id)", "it's mine")
    found["left"] = [row["name"] for row in dataset.describe().collect()]
    dataset.drop_indexes()
    found["after"] = dataset.is_indexed
    found |= refused(spark, dataset, read, folder)
    other.client.close()
    spark.stop()
    return found


def refused(spark, dataset, read, folder):
    found = {}
    for name, call in {
        "options": lambda: Dataset.for_path(spark, f"{folder}/data", format="csv", header=True),
        "applied": lambda: Dataset(read.where("id = 3")),
        "nowhere": lambda: Dataset.for_path(spark, f"{folder}/nowhere"),
        "column": lambda: dataset.create_indexes(MinMaxIndex("nothing")),
        "indicators": lambda: dataset.indicators(read),
        "function": lambda: skipstone.udf_filter(spark, "f", lambda x: x),
    }.items():
        try:
            call()
        except SkipstoneError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return {"refused": found}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(main(sys.argv[1], sys.argv[2])))
