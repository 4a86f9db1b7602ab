"""Indicators measured by Spark: equal to a computation by hand or by pandas, and a check of soundness."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import astuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from typer.testing import CliRunner

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, PrefixIndex, ValueListIndex
from skipstone.cli.main import app
from skipstone.errors import DatasetError, SoundnessError
from skipstone.reporting.indicators import Indicators
from tests.engines.spark.bridge.fake import FakePlanner, bridge_of, records_of
from tests.support import skipping_off

NAMES = ("amber", "basil", "cedar", "dill", None)


def write(folder, *objects, first=0):
    """Write objects of numbers; give the folder's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, values in enumerate(objects, first):
        pq.write_table(pa.table({"n": pa.array(values, pa.int32())}), folder / f"{number}.parquet")
    return str(folder)


@pytest.fixture(scope="module")
def by_hand(spark, tmp_path_factory):
    """Objects with the numbers 0..9, 10..19, 20..29, a gap, and 100..103; each has every letter of abcd in it."""
    folder = tmp_path_factory.mktemp("by-hand") / "data"
    folder.mkdir()
    for number, values in enumerate((range(10), range(10, 20), range(20, 30), range(100, 104))):
        table = pa.table({"n": list(values), "letter": ["abcd"[v % 4] for v in values]})
        pq.write_table(table, folder / f"{number}.parquet")
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(MinMaxIndex("n"), MinMaxIndex("letter"))
    return dataset


def test_the_definitions_by_hand(by_hand):
    df = by_hand.dataframe
    # Relevant: 8, 9, 10, 11, 12 of the first two objects; bounds tell just that.
    found = by_hand.indicators(df.where("n BETWEEN 8 AND 12"))
    assert found == Indicators(4, 2, 2, 34, 5, 20, 20)
    assert found.factors() == (5 / 34, 5 / 20, 1.0, 20 / 34)
    # No index knows remainders: all is read for two rows of two objects.
    remainder, everything = by_hand.indicators([df.where("n % 100 = 1"), df])
    assert remainder == Indicators(4, 2, 4, 34, 2, 14, 34)
    assert remainder.factors() == (2 / 34, 2 / 14, 14 / 34, 1.0)
    assert everything == Indicators(4, 4, 4, 34, 34, 34, 34)


def test_a_contradiction_selects_and_reads_nothing(by_hand):
    df = by_hand.dataframe
    assert by_hand.indicators(df.where("n < 1 AND n > 2 AND letter = 'a'").where("false")) == Indicators(
        4, 0, 0, 34, 0, 0, 0
    )


def test_without_skipping_everything_is_scanned(spark, by_hand):
    with skipping_off(spark):
        assert by_hand.indicators(by_hand.dataframe.where("n < 5")) == Indicators(4, 1, 4, 34, 5, 10, 34)


def test_a_workload_leaves_out_what_selects_nothing(by_hand):
    df = by_hand.dataframe
    found = by_hand.indicators([df.where("n < 5"), df.where("n = 50"), df.where("n = -1"), df.where("letter = 'a'")])
    assert [astuple(query)[:3] for query in found] == [(4, 1, 1), (4, 0, 0), (4, 0, 0), (4, 4, 4)]
    assert found.left_out == 2
    assert found.selectivity == pytest.approx((5 / 34 * 9 / 34) ** 0.5)
    assert found.scanning_factor == pytest.approx((10 / 34 * 1) ** 0.5)
    assert found.limit == "layout"  # nine rows with the letter would fit into one or two objects, and are in all four


def test_a_users_function_runs_only_where_the_query_runs_it(by_hand):
    def inverse(n):
        return 1 / n < 0.1  # raises for 0

    df = by_hand.dataframe
    guarded = df.where("n > 0 AND n NOT BETWEEN 20 AND 29").where(F.udf(inverse, "boolean")("n"))
    found = by_hand.indicators([guarded, df.where("n < 5")])
    assert found[0] == Indicators(4, 2, 3, 34, 13, 14, 24)
    assert found[1] == Indicators(4, 1, 1, 34, 5, 10, 10)


def test_a_condition_that_fails_on_rows_of_others_is_run_alone(by_hand):
    df = by_hand.dataframe
    fails = df.where("n >= 100 AND assert_true(n >= 100) IS NULL")
    found = by_hand.indicators([fails, df.where("n < 5")])
    assert found[0].relevant_rows == 4
    assert found[1].relevant_rows == 5


def test_several_scans_are_summed(spark, by_hand):
    df = by_hand.dataframe
    joined = df.where("n < 5").alias("a").join(df.where("n > 25").alias("b"), F.col("a.letter") == F.col("b.letter"))
    assert by_hand.indicators(joined) == Indicators(8, 3, 3, 68, 5 + 8, 10 + 14, 10 + 14)
    df.createOrReplaceTempView("numbers")
    above = spark.sql("SELECT * FROM numbers WHERE n > (SELECT max(n) - 2 FROM numbers WHERE letter = 'd' AND n < 15)")
    # The subquery gives 9, of 3, 7 and 11; the scan around it is served by no index.
    assert by_hand.indicators(above) == Indicators(8, 2 + 3, 2 + 4, 68, 3 + 24, 20 + 24, 20 + 34)
    outside = spark.sql("SELECT * FROM numbers WHERE n < 20 AND n NOT IN (SELECT n + 1 FROM numbers WHERE n = 12)")
    assert by_hand.indicators(outside).relevant_rows == 19 + 1


def test_partitions_that_spark_prunes_count_as_not_kept(spark, tmp_path):
    folder = tmp_path / "data"
    for day in range(3):
        write(folder / f"day={day}", [day * 10, day * 10 + 1], [day * 10 + 5])
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(MinMaxIndex("n"))
    df = dataset.dataframe
    part = spark.read.parquet(str(folder / "day=1"))
    assert list(dataset.indicators([df.where("day = 1 AND n < 12"), df.where("day >= 1"), part.where("n = 15")])) == [
        Indicators(6, 1, 1, 9, 2, 2, 2),
        Indicators(6, 4, 4, 9, 6, 6, 6),
        Indicators(6, 1, 1, 9, 1, 1, 1),
    ]


def test_a_table_of_the_catalog(spark, tmp_path):
    place = tmp_path / "t"
    spark.sql(f"CREATE TABLE indicated (n INT, c CHAR(3), p INT) USING parquet PARTITIONED BY (p) LOCATION '{place}'")
    try:
        spark.sql("INSERT INTO indicated SELECT id, 'x' || id % 2, id % 2 FROM range(0, 8, 1, 1)")
        dataset = Dataset.for_table(spark, "indicated")
        dataset.create_indexes(MinMaxIndex("n"))
        table = spark.table("indicated")
        assert dataset.indicators(table.where("p = 1 AND n < 4")) == Indicators(2, 1, 1, 8, 2, 4, 4)
        assert dataset.indicators(table.where("c = 'x0'")) == Indicators(2, 1, 2, 8, 4, 4, 8)
    finally:
        spark.sql("DROP TABLE indicated")


def test_changed_and_new_objects_are_kept_and_measured_as_they_are(spark, tmp_path):
    folder = tmp_path / "data"
    write(folder, [1, 2], [11, 12], [21])
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(MinMaxIndex("n"))
    before = dataset.dataframe.where("n = 21")
    assert dataset.indicators(before) == Indicators(3, 1, 1, 5, 1, 1, 1)
    write(folder, [21, 31, 41])  # the first object is another one now
    write(folder, [51], first=3)
    now = Dataset.for_path(spark, str(folder))
    assert now.indicators(now.dataframe.where("n = 21")) == Indicators(4, 2, 3, 7, 2, 4, 5)
    with pytest.raises(DatasetError, match="has changed since the DataFrame listed it: read the dataset anew"):
        dataset.indicators(before)


def test_an_empty_dataset_and_an_empty_object(spark, tmp_path):
    dataset = Dataset.for_path(spark, write(tmp_path / "data", [1], [2], []))
    dataset.create_indexes(MinMaxIndex("n"))
    found = dataset.indicators(dataset.dataframe.where("n = 2"))
    assert (found.objects, found.relevant_objects, found.rows, found.relevant_rows) == (3, 1, 2, 1)
    (tmp_path / "none").mkdir()
    nothing = Dataset.for_path(spark, str(tmp_path / "none"), schema="n int")
    assert nothing.indicators(nothing.dataframe.where("n = 2")) == Indicators(0, 0, 0, 0, 0, 0, 0)


def test_a_lost_row_is_a_loud_error(spark, by_hand, tmp_path):
    df = by_hand.dataframe
    liar = FakePlanner(tmp_path)
    liar.keeping(records_of(spark, df, tmp_path / "listed"), lambda path: "2.parquet" not in path)
    bridge = bridge_of(spark)
    former = bridge.registered()
    bridge.register(liar)
    try:
        with pytest.raises(SoundnessError, match=r"ROWS ARE LOST: 1 of .*n = 25.*/2\.parquet"):
            by_hand.indicators(df.where("n = 25"))
        with pytest.raises(SoundnessError, match="ROWS ARE LOST"):
            by_hand.indicators([df.where("n = 5"), df.where("n = 25 OR letter = 'a'")])
        assert by_hand.indicators(df.where("n = 5")) == Indicators(4, 1, 3, 34, 1, 10, 24)
    finally:
        bridge.register(former)


def test_a_query_of_something_else_has_no_indicators(spark, by_hand, tmp_path):
    other = spark.read.parquet(write(tmp_path / "other", [1]))
    with pytest.raises(DatasetError, match="query 2 has no file scan of"):
        by_hand.indicators([by_hand.dataframe, other])
    with_other = by_hand.dataframe.where("n < 5").join(other, "n")
    assert by_hand.indicators(with_other).objects == 4
    cached = by_hand.dataframe.where("n < 20").cache()
    try:
        cached.count()
        with pytest.raises(DatasetError, match="its result is cached"):
            by_hand.indicators(cached.where("n = 1"))
    finally:
        cached.unpersist()


def test_measuring_switches_skipping_off_for_nobody_else(spark, by_hand):
    by_hand.indicators(by_hand.dataframe.where("n = 1"))
    assert spark.conf.get("spark.skipstone.enabled", "true") == "true"
    assert len(by_hand.dataframe.where("n = 1").inputFiles()) == 1


def test_explain_tells_the_indicators_when_asked(by_hand):
    query = by_hand.dataframe.where("n % 100 = 1")
    assert by_hand.explain(query).indicators is None
    explanation = by_hand.explain(query, indicators=True)
    assert explanation.indicators == by_hand.indicators(query)
    assert "metadata factor μ 0.412" in str(explanation)
    assert "The metadata is the limit: 2 of the 4 objects" in str(explanation)
    assert "The layout, not the metadata, is the limit" in str(
        by_hand.explain(by_hand.dataframe.where("n % 10 = 5"), indicators=True)
    )


def random_rows(seeded, low):
    """Make the rows of one object: numbers around a place of its own, names that may be null."""
    count = seeded.randrange(0, 12)
    return pd.DataFrame(
        {
            "n": pd.array([seeded.choice([None, low + seeded.randrange(8)]) for _ in range(count)], dtype="Int64"),
            "name": pd.Series([seeded.choice(NAMES) for _ in range(count)], dtype=object),
        }
    )


def random_term(seeded):
    """Draw a comparison, in SQL and in pandas."""
    number, name = seeded.randrange(40), seeded.choice(NAMES[:4])
    return seeded.choice(
        [
            (f"n = {number}", lambda rows: rows["n"].eq(number).fillna(value=False)),
            (f"n < {number}", lambda rows: rows["n"].lt(number).fillna(value=False)),
            (f"n >= {number}", lambda rows: rows["n"].ge(number).fillna(value=False)),
            ("n IS NULL", lambda rows: rows["n"].isna()),
            (f"name = '{name}'", lambda rows: rows["name"].eq(name)),
            (f"name LIKE '{name[:2]}%'", lambda rows: rows["name"].str.startswith(name[:2]).eq(other=True)),
            (f"n % 7 = {number % 7}", lambda rows: (rows["n"] % 7).eq(number % 7).fillna(value=False)),
        ]
    )


def random_predicate(seeded):
    """Draw one or two comparisons."""
    (sql, truth), (other, second) = random_term(seeded), random_term(seeded)
    return seeded.choice(
        [
            (sql, truth),
            (f"({sql}) AND ({other})", lambda rows: truth(rows) & second(rows)),
            (f"({sql}) OR ({other})", lambda rows: truth(rows) | second(rows)),
        ]
    )


def compare_with_pandas(spark, folder, seed):
    """Measure sixteen random queries of a random dataset, compare with pandas, and count what they showed."""
    tally = Counter()
    seeded = random.Random(seed)
    folder.mkdir()
    objects = {f"{number}.parquet": random_rows(seeded, number * 7) for number in range(6)}
    schema = pa.schema({"n": pa.int64(), "name": pa.string()})
    for name, rows in objects.items():
        pq.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False), folder / name)
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(
        MinMaxIndex("n"), BloomFilterIndex("n"), ValueListIndex("name"), PrefixIndex("name", length=2)
    )
    predicates = [random_predicate(seeded) for _ in range(16)]
    queries = [dataset.dataframe.where(sql) for sql, _ in predicates]
    measured = dataset.indicators(queries)
    for query, (sql, truth), found in zip(queries, predicates, measured, strict=True):
        hits = {name: int(truth(rows).sum()) for name, rows in objects.items()}
        kept = {path.rsplit("/", 1)[1] for path in query.inputFiles()}
        relevant = {name for name, count in hits.items() if count}
        assert found == Indicators(
            objects=6,
            relevant_objects=len(relevant),
            kept_objects=len(kept),
            rows=sum(map(len, objects.values())),
            relevant_rows=sum(hits.values()),
            rows_in_relevant_objects=sum(len(objects[name]) for name in relevant),
            rows_in_kept_objects=sum(len(objects[name]) for name in kept),
        ), sql
        tally["queries"] += 1
        tally["undefined"] += found.selectivity is None
        tally["skipping"] += len(kept) < 6
        tally["in vain"] += len(kept) > len(relevant)
    assert measured.left_out == tally["undefined"]
    # One by one they are measured in another way.
    assert dataset.indicators(queries[0]) == measured[0]
    return tally


def test_random_datasets_agree_with_pandas(spark, tmp_path):
    tally = sum((compare_with_pandas(spark, tmp_path / str(seed), seed) for seed in range(2)), Counter())
    assert tally["queries"] == 32
    assert min(tally["undefined"], tally["skipping"], tally["in vain"]) >= 2, tally


@pytest.mark.long
def test_many_random_datasets_agree_with_pandas(spark, tmp_path):
    tally = sum((compare_with_pandas(spark, tmp_path / str(seed), seed) for seed in range(2, 22)), Counter())
    assert tally["queries"] == 320
    assert min(tally["undefined"], tally["skipping"], tally["in vain"]) >= 40, tally


@pytest.fixture
def workload(tmp_path):
    file = tmp_path / "queries.sql"
    file.write_text("-- name: few\nn BETWEEN 8 AND 12;\nSELECT count(*) FROM dataset WHERE n = 50; -- none\n")
    return file


def run(*arguments, code=0):
    wide = {"COLUMNS": "160"}  # whatever the terminal of this run is
    result = CliRunner().invoke(app, [str(a) for a in arguments], env=wide, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command_line(by_hand, workload):
    root = by_hand.root
    document = json.loads(run("indicators", root, "n % 100 = 1", "--workload", workload, "--output", "json"))
    assert [query["query"].split()[0] for query in document["queries"]] == ["n", "n", "SELECT"]
    assert [query["title"] for query in document["queries"]] == [None, "few", None]
    assert document["queries"][1]["kept_objects"] == 2
    assert document["left_out"] == 1
    assert document["geometric_means"]["scanning_factor"] == pytest.approx((1 * 20 / 34) ** 0.5)
    text = run("indicators", root, "n % 100 = 1", "--workload", workload)
    for piece in ("n % 100 = 1", "few", "geometric mean", "0.412", "metadata", "1 query has no relevant row"):
        assert piece in text, piece


def test_the_command_line_explains_with_indicators(by_hand):
    document = json.loads(run("explain", by_hand.root, "n = 3", "--indicators", "--output", "json"))
    assert document["indicators"]["relevant_rows"] == 1
    assert "indicators" not in json.loads(run("explain", by_hand.root, "n = 3", "--output", "json"))


def test_the_command_line_wants_a_query(by_hand, tmp_path):
    for arguments, said in (((), "at least one QUERY"), (("--workload", tmp_path / "none.sql"), "cannot be read")):
        document = json.loads(run("indicators", by_hand.root, *arguments, "--output", "json", code=2))
        assert document["type"] == "WorkloadError"
        assert said in document["error"]
