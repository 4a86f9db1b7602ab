"""A program on Spark Connect whose server is in its own process, on a cluster whose executors have no Skipstone.

``python connect_application.py MASTER FOLDER PORT``
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.client import DefaultChannelBuilder as ChannelBuilder

import skipstone
from skipstone import BloomFilterIndex, Dataset, FormattedIndex


def main(master, folder, port):
    ChannelBuilder.default_port = staticmethod(lambda: int(port))
    builder = SparkSession.builder.master(master).config("spark.api.mode", "connect")
    for name, value in {
        "spark.connect.grpc.binding.port": port,
        "spark.executor.memory": "512m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = skipstone.configure(builder).getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")

    @F.udf("boolean")
    def is_there(_):
        import importlib.util

        return importlib.util.find_spec("skipstone") is not None

    assert not spark.range(4).where(is_there("id")).count(), "the executors were to have no Skipstone"

    columns = ["id", "concat('n', id) AS name", "array(double(id), 0D) AS vec"]
    spark.range(0, 80, 1, 8).selectExpr(*columns).write.parquet(folder)
    spark.udf.register("beginning", lambda text: text[:2], "string")
    dataset = Dataset.for_path(spark, folder)
    report = dataset.create_indexes(BloomFilterIndex("name"), FormattedIndex("name", extract="beginning"))
    assert (report.indexed, report.rows) == (8, 80), report
    read = spark.read.parquet(folder)
    # The function is still known again: what Skipstone brought to the job's session is nothing that the user brought.
    for query, rows, kept in (("name = 'n42'", 1, 1), ("beginning(name) = 'n7'", 11, 2)):
        assert read.where(query).count() == rows, query
        (entry,) = skipstone.last_query(spark)
        assert entry.objects.kept == kept, (query, entry)

    # Functions that are Skipstone's own run on executors, too.
    skipstone.distances.register(spark)
    assert read.where("euclidean_distance(vec, array(7D, 0D)) < 1.5").count() == 3
    assert Dataset.for_path(spark, folder).refresh().indexed == 0
    spark.stop()
    print("ALL WELL")


if __name__ == "__main__":
    main(*sys.argv[1:])
