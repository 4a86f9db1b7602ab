"""An application on a cluster whose executors have no Skipstone; run as a script, so that its classes are __main__'s.

``python application.py MASTER PYTHON FOLDER``: prints what it checked as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skipstone
from skipstone import (
    BloomFilterIndex,
    Clause,
    Dataset,
    Filter,
    GapListIndex,
    HybridIndex,
    Index,
    MetadataType,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
    skipping_stats,
)
from skipstone.engines.spark import collecting
from skipstone.engines.spark.evaluation import SparkPartEvaluator
from skipstone.expressions.tree import Call, Column, EqualTo, Literal

OBJECTS, ROWS = 8, 500


@dataclass(frozen=True)
class FirstLetters(MetadataType):
    letters: frozenset[str]

    @classmethod
    def fields(cls, inputs):
        return {"letters": pa.list_(pa.string())}

    def merge(self, other):
        return FirstLetters(self.letters | other.letters)

    def finish(self, data_object):
        return {"letters": sorted(self.letters)}


@dataclass(frozen=True)
class FirstLetterIndex(Index):
    """The first letters of a text column in each object."""

    column: str
    metadata_type = FirstLetters
    functions = ()

    def collect_metadata(self, rows):
        return FirstLetters(frozenset(pc.utf8_slice_codeunits(rows.column(0).drop_null(), 0, 1).to_pylist()))

    def filters(self):
        return (FirstLetterFilter(self),)


@dataclass(frozen=True)
class FirstLetterClause(Clause):
    index: FirstLetterIndex
    letter: str
    reads = ("letters",)

    def might_match(self, metadata):
        lists = metadata.field(self.index, "letters").to_pylist()
        return pa.array([None if letters is None else self.letter in letters for letters in lists], pa.bool_())


@dataclass(frozen=True)
class FirstLetterFilter(Filter):
    index: FirstLetterIndex

    def label_node(self, node):
        match node:
            case EqualTo(Call("left" | "substring", (Column(self.index.column), *cut)), Literal(str() as letter)):
                if all(isinstance(n, Literal) and n.value == 1 for n in cut):
                    return FirstLetterClause(self.index, letter)
        return None


def main(master: str, python: str, folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "skipstone-lengths" / "src"))
    usual = {
        "spark.executor.memory": "512m",
        # As tests/shared_classes.py says of drivers; this script finds no other module of the tests.
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.skipstone.plugins": "skipstone_lengths",
        # So that there are several objects to a task, and both executors get some.
        "spark.sql.files.maxPartitionBytes": "60000",
        "spark.sql.files.openCostInBytes": "1",
    }
    builder = SparkSession.builder.master(master).appName("skipstone-cluster-tests")
    for name, value in usual.items():
        builder = builder.config(name, value)
    spark = skipstone.configure(builder).getOrCreate()
    try:
        print(json.dumps({"bare": bare(spark, python), **checked(spark, folder)}))
    finally:
        spark.stop()


def bare(spark: SparkSession, python: str) -> int:
    """Count the executors that serve, none of which can import Skipstone."""

    def look(_):
        import importlib.util
        import time

        time.sleep(1)  # so that no executor gets all the tasks
        yield (
            os.environ.get("SPARK_EXECUTOR_DIRS") or os.getcwd(),
            sys.executable,
            importlib.util.find_spec("skipstone"),
        )

    found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(look).collect()
    assert all(spec is None for _, _, spec in found), found
    assert {Path(used).parent for _, used, _ in found} == {Path(python).parent}, found
    return len({where for where, _, _ in found})


def checked(spark: SparkSession, folder: Path) -> dict[str, object]:
    from skipstone_lengths import LengthIndex

    paths, evaluated = Counter(), Counter()
    for name in ("collect_with_arrow", "collect_with_aggregates", "collect_from_footers"):
        _count(collecting, name, paths)
    _count(SparkPartEvaluator, "__call__", evaluated)
    every = [BloomFilterIndex("id"), ValueListIndex("name"), HybridIndex("id"), GapListIndex("price")]
    every += [
        PrefixIndex("name", length=3),
        SuffixIndex("name", length=3),
        FirstLetterIndex("name"),
        LengthIndex("name"),
    ]
    write(folder)
    schema = "id bigint, price double, name string"
    by_arrow, by_footers = (spark.read.parquet(str(folder / name)) for name in ("arrow", "footers"))
    by_aggregates = spark.read.schema(schema).csv(str(folder / "csv"))
    Dataset(by_arrow).create_indexes(*every)
    Dataset(by_footers).create_indexes(MinMaxIndex("id"))
    Dataset(by_aggregates).create_indexes(MinMaxIndex("id"), MinMaxIndex("price"))
    queries = [
        (by_footers, "id = 1234", 7),
        (by_aggregates, "price > 3400 AND id < 3499", 7),
        (by_arrow, "id = 1234", 7),
        (by_arrow, "price > 3400 AND price < 3499", 7),
        (by_arrow, "name = 'c-00000001007'", 7),
        (by_arrow, "name LIKE 'd-0%'", 7),
        (by_arrow, "left(name, 1) = 'e'", 7),
        (by_arrow, "left(name, 1) = 'a' OR length(name) = 15", 6),
    ]
    skipped: Counter[str] = Counter()
    for df, query, expected in queries:
        chosen = df.where(query)
        spark.conf.set("spark.skipstone.enabled", "false")
        rows = Counter(map(repr, chosen.select("*").collect()))
        assert rows, query
        spark.conf.set("spark.skipstone.enabled", "true")
        for where, bound in (("driver", "1000000000"), ("executors", "1")):
            spark.conf.set("spark.skipstone.cacheBytes", bound)
            with skipping_stats(spark) as stats:
                assert Counter(map(repr, chosen.select("*").collect())) == rows, query
            found = stats[-1].objects.skipped
            assert found == expected, (query, where, found, stats[-1].not_used, stats[-1].clause)
            skipped[where] += found
    return {"paths": paths, "evaluated": evaluated["__call__"], "skipped": skipped, "queries": 2 * len(queries)}


def write(folder: Path) -> None:
    """Object n holds 500 ids from 500 n, prices like them, and names with a letter and a length of its own."""
    for name in ("arrow", "footers", "csv"):
        (folder / name).mkdir(parents=True)
    for number in range(OBJECTS):
        ids = range(ROWS * number, ROWS * number + ROWS)
        names = [f"{'abcdefgh'[number]}-{i:0{9 + number}d}" for i in ids]
        table = pa.table({"id": pa.array(ids, pa.int64()), "price": pa.array([float(i) for i in ids]), "name": names})
        for name in ("arrow", "footers"):
            pq.write_table(table, folder / name / f"{number}.parquet")
        headless = pa.csv.WriteOptions(include_header=False, quoting_style="none")
        pa.csv.write_csv(table, folder / "csv" / f"{number}.csv", headless)


def _count(owner: object, name: str, counter: Counter) -> None:
    """Count the calls of a function that gave something."""
    original = getattr(owner, name)

    def counted(*arguments):
        answer = original(*arguments)
        counter[name] += answer is not None
        return answer

    setattr(owner, name, counted)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
