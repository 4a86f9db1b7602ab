"""Attacks: where files lie, which partition they are of, and by which path a query comes to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import skipstone
from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex
from tests.soundness.attack import age, all_of, parquet, same_answers, same_rows, text
from tests.support import conf

pytestmark = pytest.mark.long

EVERY = (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex)


def index_all(df, *columns, types=EVERY):
    return Dataset(df).create_indexes(*(type_(column) for type_ in types for column in columns or ("*",)))


@pytest.fixture
def table(spark):
    """Drops the table ``attacked`` when the test is over."""
    spark.sql("DROP TABLE IF EXISTS attacked")
    yield "attacked"
    spark.sql("DROP TABLE IF EXISTS attacked")


# --- partitions whose value is not what it was, or not what the path says ---------------------------------------------


def partitioned(spark, tmp_path, *, indexed=("a", "p")):
    for p in (1, 2):
        parquet(tmp_path / "t" / f"p={p}", {"a": [p * 10, p * 10 + 1]})
    spark.sql(f"CREATE TABLE attacked (a BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    spark.sql("MSCK REPAIR TABLE attacked")
    if indexed:
        index_all(spark.table("attacked"), *indexed)


PARTITION_PREDICATES = [
    "p = 1",
    "p = 2",
    "p = 7",
    "p IS NOT NULL",
    "p > 1",
    "a = 10 AND p = 7",
    "p + 0 = 7",
    "p <> 1",
    "p IN (1, 7)",
]


def test_partition_moved_to_another_value(spark, tmp_path, table):
    partitioned(spark, tmp_path)
    spark.sql("ALTER TABLE attacked PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
    same_answers(spark, spark.table("attacked"), PARTITION_PREDICATES)
    spark.sql("ALTER TABLE attacked DROP PARTITION (p = 2)")
    spark.sql(f"ALTER TABLE attacked ADD PARTITION (p = 5) LOCATION '{tmp_path}/t/p=2'")
    same_answers(spark, spark.table("attacked"), [*PARTITION_PREDICATES, "p = 5", "p < 6"])


def test_two_partitions_of_one_folder(spark, tmp_path, table):
    partitioned(spark, tmp_path, indexed=())
    spark.sql(f"ALTER TABLE attacked ADD PARTITION (p = 7) LOCATION '{tmp_path}/t/p=1'")
    index_all(spark.table("attacked"), "a", "p")
    same_answers(spark, spark.table("attacked"), [*PARTITION_PREDICATES, "a = 10", "a = 10 OR p = 7"])


def test_folder_whose_name_is_not_its_partition_in_the_catalog(spark, tmp_path, table):
    for p in (1, 2):
        parquet(tmp_path / "t" / f"p={p}", {"a": [p]})
    spark.sql(f"CREATE TABLE attacked (a BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    spark.sql(f"ALTER TABLE attacked ADD PARTITION (p = 2) LOCATION '{tmp_path}/t/p=1'")
    spark.sql(f"ALTER TABLE attacked ADD PARTITION (p = 1) LOCATION '{tmp_path}/t/p=2'")
    index_all(spark.table("attacked"), "a", "p")
    for df in (spark.table("attacked"), spark.read.parquet(f"{tmp_path}/t")):
        same_answers(spark, df, ["p = 1", "p = 2", "a = 1 AND p = 1", "a = 1 AND p = 2", "p < 2"])
    Dataset(spark.table("attacked")).drop_indexes()
    index_all(spark.read.parquet(f"{tmp_path}/t"), "a", "p")
    for df in (spark.table("attacked"), spark.read.parquet(f"{tmp_path}/t")):
        same_answers(spark, df, ["p = 1", "p = 2", "a = 1 AND p = 1", "a = 1 AND p = 2", "p < 2"])


def test_partition_outside_of_the_table(spark, tmp_path, table):
    partitioned(spark, tmp_path, indexed=())
    parquet(tmp_path / "elsewhere", {"a": [70, 71]})
    spark.sql(f"ALTER TABLE attacked ADD PARTITION (p = 7) LOCATION '{tmp_path}/elsewhere'")
    index_all(spark.table("attacked"), "a", "p")
    assert same_answers(spark, spark.table("attacked"), [*PARTITION_PREDICATES, "a = 70", "a < 20", "a > 100"])
    same_answers(spark, spark.read.parquet(f"{tmp_path}/elsewhere"), ["a = 70", "a = 10"])
    parquet(tmp_path / "elsewhere", {"a": [80, 81]})
    spark.sql("REFRESH TABLE attacked")
    same_answers(spark, spark.table("attacked"), ["a = 70", "a = 80", "p = 7"])


@pytest.mark.parametrize("base", [None, "t", "t/p=1"], ids=["the folder", "base path", "inside"])
def test_file_column_of_a_partitions_name(spark, tmp_path, base):
    for p in (1, 2):
        parquet(tmp_path / "t" / f"p={p}", {"a": [p], "p": [p + 100]}, {"a": [p + 10], "p": [p + 200]})
    options = {} if base is None else {"basePath": f"{tmp_path}/{base}"}
    where = f"{tmp_path}/t" if base != "t/p=1" else f"{tmp_path}/t/p=1"
    predicates = ["p = 1", "p = 101", "p > 50", "p = 201", "a = 11 AND p = 1", "a = 11 AND p = 201"]
    index_all(spark.read.parquet(f"{tmp_path}/t"), "a", "p")
    same_answers(spark, spark.read.options(**options).parquet(where), predicates)
    same_answers(spark, spark.read.parquet(f"{tmp_path}/t/p=1"), predicates)
    same_answers(spark, spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/t"), predicates)
    Dataset(spark.read.parquet(f"{tmp_path}/t")).drop_indexes()
    index_all(spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/t"), "a", "p")
    same_answers(spark, spark.read.parquet(f"{tmp_path}/t"), predicates)


@pytest.mark.parametrize(
    "value",
    [
        "a b",
        "a=b",
        "a%20b",
        "a%b",
        "ü",
        "a#b",
        "a+b",
        "a/b",
        "a:b",
        "",
        "1",
        "null",
        "'q'",
    ],
)
def test_partition_values_that_paths_must_escape(spark, tmp_path, value):
    rows = list(enumerate((value, "other", None)))
    spark.createDataFrame(rows, "n INT, v STRING").coalesce(1).write.partitionBy("v").parquet(f"{tmp_path}/t")
    age(tmp_path / "t")
    with conf(spark, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}):
        df = spark.read.parquet(f"{tmp_path}/t")
        index_all(df, "n", "v")
        quoted = value.replace("'", "\\'")
        predicates = [
            f"v = '{quoted}'",
            "v IS NULL",
            "v = 'other'",
            "n = 0",
            "n = 2",
            f"v <> '{quoted}'",
            f"n = 0 AND v <=> '{quoted}'",
        ]
        assert same_answers(spark, df, predicates)


def test_partition_types_that_depend_on_settings(spark, tmp_path):
    for value in ("2020-01-01 00%3A00%3A00", "2020-01-01 12%3A00%3A00"):
        parquet(tmp_path / "t" / f"ts={value}", {"a": [1]})
    predicates = [
        f"ts {op} TIMESTAMP'2020-01-01 {hour}:00:00{zone}'"
        for op in ("=", ">")
        for hour in ("00", "12")
        for zone in ("", "Z")
    ]
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        index_all(spark.read.parquet(f"{tmp_path}/t"), "a", "ts")
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        with conf(spark, {"spark.sql.session.timeZone": zone}):
            same_answers(spark, spark.read.parquet(f"{tmp_path}/t"), predicates)
            same_answers(spark, spark.read.option("timeZone", "Asia/Kolkata").parquet(f"{tmp_path}/t"), predicates)


def test_dynamic_pruning_buckets_and_statistics(spark, tmp_path, table):
    spark.sql(
        "CREATE TABLE attacked (a INT, b INT, p INT) USING parquet PARTITIONED BY (p) CLUSTERED BY (a) SORTED BY (a) "
        f"INTO 4 BUCKETS LOCATION '{tmp_path}/t'"
    )
    spark.sql("INSERT INTO attacked SELECT id, id DIV 10, id % 3 FROM range(100)")
    spark.sql("ANALYZE TABLE attacked COMPUTE STATISTICS FOR ALL COLUMNS")
    age(tmp_path / "t")
    spark.sql("REFRESH TABLE attacked")
    index_all(spark.table("attacked"), "a", "b")
    spark.range(3).selectExpr("CAST(id AS INT) AS k", "CASE WHEN id = 1 THEN 'x' END AS w").createOrReplaceTempView(
        "small"
    )
    queries = [
        "SELECT * FROM attacked WHERE a = 17",
        "SELECT * FROM attacked WHERE a IN (17, 18) AND b = 1 AND p = 2",
        "SELECT * FROM attacked t JOIN small s ON t.p = s.k WHERE s.w = 'x' AND t.b = 3",
        "SELECT x.a, y.b FROM attacked x JOIN attacked y ON x.a = y.a WHERE x.b = 2 AND y.p = 1",
        "SELECT x.a, y.b FROM attacked x LEFT JOIN attacked y ON x.a = y.a AND y.b = 4 WHERE x.p = 0",
        "SELECT p, count(*) FROM attacked WHERE b = 5 GROUP BY p",
        "SELECT a, count(*) FROM attacked WHERE b > 8 GROUP BY a",
        "SELECT * FROM attacked WHERE a = -1",
        "SELECT max(p) FROM attacked WHERE b = 77",
        "SELECT DISTINCT p FROM attacked WHERE a < 2",
    ]
    for settings in (
        {},
        {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"},
        {"spark.sql.optimizer.metadataOnly": "true"},
        {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false"},
        {"spark.sql.bucketing.coalesceBucketsInJoin.enabled": "true", "spark.sql.adaptive.enabled": "false"},
        {
            "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
        },
    ):
        with conf(spark, settings):
            assert sum(same_rows(spark, query) for query in queries)


# --- by which path ----------------------------------------------------------------------------------------------------


def test_globs_do_not_read_the_metadata_as_data(spark, tmp_path):
    for year in (2020, 2021):
        text(tmp_path / "logs" / str(year), ".json", f'{{"a": {year}}}\n')
    expected = [spark.read.schema("a INT").json(f"{tmp_path}/logs/{glob}").count() for glob in ("*", "*/*", "*/*.json")]
    df = spark.read.option("recursiveFileLookup", "true").schema("a INT").json(f"{tmp_path}/logs")
    index_all(df, "a")
    assert same_rows(spark, lambda: df.where("a = 2020"))
    for glob, count in zip(("*", "*/*", "*/*.json"), expected, strict=True):
        read = spark.read.schema("a INT").json(f"{tmp_path}/logs/{glob}")
        assert read.count() == count, f"{glob} reads {read.inputFiles()}"
        same_answers(spark, read, ["a = 2020", "a IS NULL", "a <> 2020"])
        inferred = spark.read.json(f"{tmp_path}/logs/{glob}")
        assert inferred.columns == ["a"], f"{glob} reads {inferred.inputFiles()}"


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "*/*",
        "{p=1,p=2}",
        "p=*",
        "p=1/*",
        "?=[12]",
        "*/*.parquet",
    ],
)
def test_globs_of_a_partitioned_dataset(spark, tmp_path, glob):
    for p in (1, 2):
        parquet(tmp_path / "t" / f"p={p}", {"a": [p]}, {"a": [p + 10]})
    before = spark.read.option("basePath", f"{tmp_path}/t").parquet(f"{tmp_path}/t/{glob}").count()
    index_all(spark.read.parquet(f"{tmp_path}/t"), "a", "p")
    df = spark.read.option("basePath", f"{tmp_path}/t").parquet(f"{tmp_path}/t/{glob}")
    assert df.count() == before
    assert same_answers(spark, df, ["a = 1", "p = 1", "a = 12 AND p = 2", "p = 2", "a > 5"])
    without = spark.read.parquet(f"{tmp_path}/t/{glob}")
    same_answers(spark, without, ["a = 1", "a = 12", "a > 5"])


def test_copied_moved_and_linked_datasets(spark, tmp_path):
    parquet(tmp_path / "one", {"a": [1]}, {"a": [2]})
    parquet(tmp_path / "two", {"a": [3]}, {"a": [4]})
    index_all(spark.read.parquet(f"{tmp_path}/one"), "a")
    shutil.copytree(tmp_path / "one", tmp_path / "copy", copy_function=shutil.copy2)
    same_answers(spark, spark.read.parquet(f"{tmp_path}/copy"), ["a = 1", "a = 2"])
    # The copy's metadata names the original's objects; other data under the copy's names must be read.
    for number in (0, 1):
        shutil.copy2(
            tmp_path / "two" / f"object-{number:03d}.parquet", tmp_path / "copy" / f"object-{number:03d}.parquet"
        )
    same_answers(spark, spark.read.parquet(f"{tmp_path}/copy"), ["a = 1", "a = 3", "a = 4"])
    (tmp_path / "link").symlink_to(tmp_path / "one", target_is_directory=True)
    same_answers(spark, spark.read.parquet(f"{tmp_path}/link"), ["a = 1", "a = 2"])
    (tmp_path / "one").rename(tmp_path / "gone")
    (tmp_path / "two").rename(tmp_path / "one")
    age(tmp_path / "one", 1800)
    same_answers(spark, spark.read.parquet(f"{tmp_path}/one"), ["a = 3", "a = 4", "a = 1"])


def test_one_dataset_inside_another_and_several_roots(spark, tmp_path):
    parquet(tmp_path / "outer", {"a": [1], "b": ["x"]}, {"a": [2], "b": ["y"]})
    parquet(tmp_path / "outer" / "inner", {"a": [3], "b": ["x"]}, {"a": [4], "b": ["z"]})
    recursive = spark.read.option("recursiveFileLookup", "true")
    index_all(recursive.parquet(f"{tmp_path}/outer"), "a")
    index_all(spark.read.parquet(f"{tmp_path}/outer/inner"), "b")
    predicates = [
        "a = 3",
        "b = 'x'",
        "a = 3 AND b = 'x'",
        "a = 3 OR b = 'x'",
        "NOT (a = 3 OR b = 'x')",
        "a = 4 AND b = 'x'",
    ]
    for df in (
        recursive.parquet(f"{tmp_path}/outer"),
        spark.read.parquet(f"{tmp_path}/outer"),
        spark.read.parquet(f"{tmp_path}/outer/inner"),
        spark.read.parquet(f"{tmp_path}/outer", f"{tmp_path}/outer/inner"),
        spark.read.parquet(f"{tmp_path}/outer/object-000.parquet", f"{tmp_path}/outer/inner/object-001.parquet"),
    ):
        assert same_answers(spark, df, predicates)
    # The same file twice in one read is read twice.
    twice = spark.read.parquet(f"{tmp_path}/outer/object-000.parquet", f"{tmp_path}/outer/object-000.parquet")
    same_answers(spark, twice, predicates)


def test_paths_with_every_awkward_character(spark, tmp_path):
    folder = tmp_path / "a b%20c#d+e=f&g ü 😀 {x}"
    parquet(folder, {"a": [1]}, {"a": [2]})
    for number, name in enumerate(
        ("with space.parquet", "per%20cent.parquet", "ha#sh.parquet", "plus+.parquet", "ü😀.parquet", "semi;.parquet")
    ):
        shutil.copy(folder / "object-000.parquet", folder / name)
        parquet(tmp_path / "x", {"a": [10 + number]})
        shutil.copy(tmp_path / "x" / "object-000.parquet", folder / name)
    age(folder)
    df = spark.read.parquet(str(folder).replace("{", "\\{").replace("}", "\\}"))
    index_all(df, "a")
    predicates = [f"a = {n}" for n in (1, 2, *range(10, 16))]
    assert same_rows(spark, lambda: all_of(df, predicates)) == len(predicates) * 7
    with skipstone.skipping_stats(spark) as stats:
        df.where("a = 13").count()
    assert stats[-1].objects.kept == 1


def test_location_elsewhere_and_two_locations(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [1]}, {"a": [2]})
    df = spark.read.parquet(f"{tmp_path}/d")
    for location, column in ((f"{tmp_path}/m1", MinMaxIndex("a")), (f"{tmp_path}/m2", ValueListIndex("a"))):
        Path(location).mkdir()
        with conf(spark, {"spark.skipstone.location": location}):
            Dataset(df).create_indexes(column)
            assert same_answers(spark, df, ["a = 1", "a <> 1"])
    parquet(tmp_path / "d", {"a": [7]}, {"a": [2]})
    age(tmp_path / "d", 1000)
    for location in (f"{tmp_path}/m1", f"{tmp_path}/m2", f"{tmp_path}/none"):
        with conf(spark, {"spark.skipstone.location": location}):
            same_answers(spark, spark.read.parquet(f"{tmp_path}/d"), ["a = 7", "a = 1", "a = 2"])


def test_metadata_folder_is_invisible_to_other_readers(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [1]}, {"a": [2]})
    before = spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/d").inputFiles()
    index_all(spark.read.parquet(f"{tmp_path}/d"), "a")
    assert spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/d").inputFiles() == before
    stream = (
        spark.readStream.schema("a BIGINT")
        .option("recursiveFileLookup", "true")
        .parquet(f"{tmp_path}/d")
        .where("a = 2")
    )
    query = stream.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [row.a for row in spark.table("seen").collect()] == [2]
    # Arrow's own discovery, like other engines', leaves out what begins with an underscore.
    assert sorted(pq.read_table(tmp_path / "d")["a"].to_pylist()) == [1, 2]
