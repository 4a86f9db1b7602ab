"""An application that makes, refreshes, describes and drops protected indexes while Spark keeps an event log.

Arguments: a folder for the data, one for the event log, the file of keys, and whether the indexes are protected.
"""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StringType

import skipstone
from skipstone import Dataset, FeatureIndex, FormattedIndex, GapListIndex, MetricDistanceIndex, MinMaxIndex
from skipstone.errors import SkipstoneError

PREDICATE, ORIGIN, OWN_ORIGIN, WORKLOAD, FUNCTION = "zqvaxonzq", "zqoriginzq", "zqownzq", 86420971357, "zqfunctionzq"
"""What stands in options, one of each kind."""


def indexes(key: str | None) -> list:
    """One index of each type whose options hold values or names of functions."""
    return [
        FeatureIndex({"f": f"upper(s) = '{PREDICATE}' OR {FUNCTION}(s) = '{PREDICATE}'"}, key=key, name="feature"),
        MetricDistanceIndex("s", metric="levenshtein", origins=[ORIGIN], key=key, name="built-in"),
        MetricDistanceIndex("s", metric="zqmetriczq", origins=[OWN_ORIGIN], key=key, name="own"),
        GapListIndex("n", workload=[(WORKLOAD, WORKLOAD + 1)], key=key, name="gaps"),
        FormattedIndex("s", extract=FUNCTION, key=key, name="formatted"),
        MinMaxIndex("n", key=key),
    ]


def main(data: str, log: str, keys: str, key: str | None) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"file:{log}")
    builder = builder.config("spark.eventLog.rolling.enabled", "false").config("spark.eventLog.compress", "false")
    # Long objects are read in parts, and merged after a shuffle.
    builder = builder.config("spark.sql.files.maxPartitionBytes", "2000").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.skipstone.kms.class", "skipstone.kms:LocalFileKeys")
    spark = skipstone.configure(builder.config("spark.skipstone.kms.file", keys)).getOrCreate()
    spark.udf.register(FUNCTION, lambda s: s.upper(), StringType())
    spark.udf.register("zqmetriczq", lambda a, b: float(abs(len(a) - len(b))), DoubleType())
    frame = spark.range(3000).selectExpr("id AS n", "concat('row', id % 7) AS s").repartition(3)
    for name in ("parquet", "csv")[: 2 if key else 1]:
        frame.write.format(name).save(f"{data}/{name}")
        reader = spark.read.format(name).schema("n bigint, s string")
        dataset = Dataset(reader.load(f"{data}/{name}"))
        print(dataset.create_indexes(*indexes(key)))
        frame.limit(9).write.mode("append").format(name).save(f"{data}/{name}")
        report = Dataset(reader.load(f"{data}/{name}")).refresh(indexes=indexes(key)[:1])
        assert report.indexed, report
        print(report)
        rows = dataset.describe().collect()
        dataset.describe().where("covered > 0").show()
        assert all(row["covered"] for row in rows), rows
        print(dataset.explain(reader.load(f"{data}/{name}").where("n = 5")))
        dataset.drop_indexes("feature")
        for refused in (
            FeatureIndex({"f": f"nowhere = '{PREDICATE}'"}, key=key, name="no column"),
            FeatureIndex({"f": f"{FUNCTION}nowhere(s) = '{PREDICATE}'"}, key=key, name="no function"),
            FeatureIndex({"f": f"s = '{PREDICATE}' AND ("}, key=key, name="no SQL"),
            MetricDistanceIndex("s", metric="zqmetriczqnowhere", origins=[OWN_ORIGIN], key=key, name="no metric"),
            FormattedIndex("s", extract=f"{FUNCTION}nowhere", key=key, name="nothing to extract"),
        ):
            try:
                dataset.create_indexes(refused)
            except (SkipstoneError, PySparkException) as error:
                print(error)
            else:
                raise AssertionError(refused)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4], sys.argv[4] or None)
