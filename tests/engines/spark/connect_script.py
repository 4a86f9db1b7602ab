"""A program on Spark Connect whose server is in its own process; writes what it finds to a file, as JSON."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.client import DefaultChannelBuilder as ChannelBuilder

import skipstone
from skipstone import BloomFilterIndex, Dataset, FormattedIndex, MinMaxIndex, ValueListIndex
from skipstone.errors import SkipstoneError
from skipstone.expressions.ranges import between

OBJECTS = 4
ROWS = 25


def main(folder: str, way: str) -> dict:
    port = free_port()
    ChannelBuilder.default_port = staticmethod(lambda: port)  # pyspark's clients of such a server know one port only
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.connect.grpc.binding.port", str(port))
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.skipstone.cacheBytes", str(1 << 20))
    if way == "remote":
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local[2]").config("spark.api.mode", "connect")
    spark = skipstone.configure(builder).getOrCreate()
    found = {"session": type(spark).__module__, "options": sorted(set(builder._options) & {"spark.jars"})}
    found["again"] = skipstone.configure(SparkSession.builder.remote("local[2]")).getOrCreate() is spark
    found["setting"] = spark.conf.get("spark.skipstone.cacheBytes")
    found |= queries(spark, f"{folder}/data")
    found |= functions(spark, f"{folder}/data")
    found |= refusals(spark, folder)
    found |= two_clients(spark, f"{folder}/data")
    spark.stop()
    return found


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def queries(spark, data):
    df = spark.range(0, OBJECTS * ROWS, 1, OBJECTS).selectExpr("id", "concat('n', id) AS name", "int(id) AS age")
    df.write.parquet(data)
    dataset = Dataset.for_path(spark, data)
    report = dataset.create_indexes(MinMaxIndex("id"), BloomFilterIndex("name"), ValueListIndex("age"))
    found = {"indexed": report.indexed, "described": type(dataset.describe()).__module__}
    found["described_rows"] = [row["name"] for row in dataset.describe().collect()]
    found["described_shown"] = [dataset.describe()._repr_html_(), str(dataset.describe()), dataset._repr_html_()]
    read = spark.read.parquet(data)
    found["by_range"] = answer(spark, read.where("id BETWEEN 30 AND 40"))
    found["by_bloom"] = answer(spark, read.where(F.col("name") == "n77"))
    spark.conf.set("spark.skipstone.enabled", "false")
    found["switched_off"] = read.where("id = 3").count(), len(skipstone.last_query(spark)[-1:])
    spark.conf.unset("spark.skipstone.enabled")
    is_small = F.udf(lambda age: age is not None and age < 5, "boolean")
    found["with_python"] = answer(spark, read.where(is_small("age") & (F.col("id") < 20)))
    explained = dataset.explain(read.where("id = 3 AND length(name) = 2"))
    found["explained"] = str(explained)
    found["explained_deep"] = (
        dataset.explain(read.where(" OR ".join(f"id = {n}" for n in range(150)))).scans[0].objects.total
    )
    found["indicators"] = dataset.indicators(read.where("id = 3")).kept_objects
    found["refreshed"] = dataset.refresh().indexed
    found["is_indexed"] = dataset.is_indexed
    spark.sql(f"CREATE TABLE t USING parquet LOCATION '{data}'")
    found["by_table"] = answer(spark, spark.sql("SELECT * FROM t WHERE id = 99"))
    found["table_root"] = Dataset.for_table(spark, "t").root == dataset.root
    return found


def answer(spark, df):
    """Return the rows, in order of their first column, and what was skipped, told in two ways."""
    with skipstone.skipping_stats(spark) as stats:
        rows = sorted(row[0] for row in df.collect())
    (last,) = skipstone.last_query(spark)
    assert last.objects == stats[-1].objects, (last, list(stats))
    return {"rows": rows, "skipped": last.objects.skipped, "total": last.objects.total, "ran": last.files_read}


def functions(spark, data):
    spark.udf.register("is_teen", lambda age: age is not None and 13 <= age <= 19, "boolean")
    skipstone.udf_filter(spark, "is_teen", lambda age: between(age, 13, 19))
    spark.udf.register("decade", lambda age: None if age is None else age // 10, "int")
    skipstone.state_version(spark, "decade", "1")
    dataset = Dataset.for_path(spark, data)
    dataset.create_indexes(FormattedIndex("age", extract="decade"))
    read = spark.read.parquet(data)
    found = {"implied": answer(spark, read.where("is_teen(age)"))}
    found["extracted"] = answer(spark, read.where("decade(age) = 7"))
    dataset.drop_indexes("minmax(id)", "valuelist(age)")
    found["left"] = sorted(row["name"] for row in dataset.describe().collect())
    dataset.create_indexes(MinMaxIndex("id"))
    skipstone.distances.register(spark)
    found["distance"] = spark.sql("SELECT euclidean_distance(array(0D, 3D), array(4D, 0D)) AS d").first()["d"]
    return found


def refusals(spark, folder):
    found = {}
    for name, call in {
        "no_path": lambda: Dataset.for_path(spark, f"{folder}/nowhere"),
        "no_table": lambda: Dataset.for_table(spark, "nowhere"),
        "no_scan": lambda: Dataset(spark.range(3)),
        "no_function": lambda: skipstone.udf_filter(spark, "nothing", lambda x: x),
    }.items():
        try:
            call()
        except SkipstoneError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def two_clients(spark, data):
    """Each client's statistics are of its own queries."""
    other = type(spark)(connection=spark.client._builder)
    with skipstone.skipping_stats(spark) as ours, skipstone.skipping_stats(other) as theirs:
        spark.read.parquet(data).where("id = 1").count()
        other.read.parquet(data).where("id > 1000").count()
        other.read.parquet(data).where("id > 2000").count()
    counts = [len(ours), len(theirs)]
    kept = skipstone.last_query(spark)[0].objects.kept, skipstone.last_query(other)[0].objects.kept
    other.client.close()  # other.stop() would stop the server of this process, too
    return {"clients": counts, "kept": kept}


if __name__ == "__main__":
    outcome = main(sys.argv[1], sys.argv[2])
    Path(sys.argv[3]).write_text(json.dumps(outcome))
