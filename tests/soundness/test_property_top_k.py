"""Random ``ORDER BY … LIMIT`` and ``WHERE … LIMIT`` over random types, while objects come, change and go.

The order of the answer's keys is the same with the objects that are kept as with all; where keys tie, SQL leaves open
which row it is.  Most queries are only planned; some run.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

import skipstone
from skipstone import Dataset, MinMaxIndex
from tests.soundness.sizes import TOP_QUERIES
from tests.soundness.top_k import NAMES, Query, Table, Truth, make_query
from tests.soundness.values import KINDS
from tests.support import conf

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

_OBJECTS = 24
_PREDICATES = 30
_RUN_EVERY = 15
_CONF = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}

DATASETS = {
    "numbers": ("int", "double", "float", "decimal(18,4)", "bigint"),
    "texts": ("string", "binary", "boolean", "string"),
    "times": ("date", "timestamp", "timestamp_ntz", "tinyint"),
    "partitioned": ("double", "decimal(38,10)", "string", "smallint"),
    "rest": ("interval year to month", "interval day to second", "decimal(9,2)", "float"),
}


def _names(files: list[str]) -> set[str]:
    return {file.rpartition("/")[2] for file in files}


def _changed(table: Table) -> None:
    """Rewrite some objects, take one away, and add others that no index knows."""
    names = sorted(table.objects)
    for name in table.random.sample(names, 4):
        table.write(name, 1800)
    gone = table.random.choice(names)
    table.path(gone).unlink()
    del table.objects[gone]
    for number in range(2):
        table.write(f"new-{number}{'x' * number}.parquet", 1800)


def _ask(
    spark: SparkSession, truth: Truth, query: Query, predicates: list[str], counts: Counter[str], run: bool
) -> None:
    """Hold the objects that are kept against the rows; where it runs, the answer too."""
    sql = query.sql(predicates)
    with skipstone.skipping_stats(spark) as stats:
        df = spark.sql(sql)
        kept = _names(df.inputFiles())
        expected = truth.answer(query)
        assert truth.answer(query, kept) == expected, f"{sql} keeps {sorted(kept)}"
        if run:
            found = [row["rid"] for row in df.collect()]
            among = truth.rows if query.where is None else truth.matching[query.where]
            assert len(set(found)) == len(found)
            assert set(found) <= set(among)
            assert sorted(truth.place(rid, query) for rid in found) == expected, sql
            counts["ran"] += 1
    assert not [entry.error for entry in stats if entry.error], sql
    assert not [said for entry in stats for said in entry.not_used if "Error" in said], sql
    if any(entry.skipped_by_top for entry in stats):
        counts["any rows" if not query.keys else "ordered"] += 1
        counts["with WHERE" if query.where is not None else "without WHERE"] += 1
        counts[f"form {query.form if query.keys else 'without order'}"] += 1
        for name, descending, nulls_first in query.keys[:1]:
            counts[f"by {name.split('_', 1)[1]}"] += 1
            counts["DESC" if descending else "ASC"] += 1
            counts["NULLS FIRST" if nulls_first else "NULLS LAST"] += 1
        counts["several keys"] += len(query.keys) > 1
        counts["OFFSET"] += query.offset > 0


@pytest.fixture(scope="module")
def totals():
    return Counter()


@pytest.mark.parametrize("name", DATASETS)
def test_the_first_rows_are_the_same(spark, tmp_path, name, totals, pytestconfig, soundness_report):
    counts = _campaign(spark, tmp_path / "t", name, TOP_QUERIES.of(pytestconfig))
    soundness_report.append(f"top-k, {name}: {dict(sorted(counts.items()))}")
    wanted = [
        "ordered",
        "any rows",
        "with WHERE",
        "without WHERE",
        "DESC",
        "ASC",
        "NULLS FIRST",
        "NULLS LAST",
        "OFFSET",
    ]
    wanted += ["several keys", "ran", "form 1", "form 2", "form 3", *{f"by {kind}" for kind in _kinds(name)}]
    assert not [what for what in wanted if not counts[what]], counts


def _kinds(name: str) -> list[str]:
    return [KINDS[kind].family for kind in DATASETS[name]]


def _campaign(spark: SparkSession, folder: Path, name: str, queries: int) -> Counter[str]:
    random = Random(f"top-k {name}")
    kinds = {f"c{n}_{KINDS[kind].family}": KINDS[kind] for n, kind in enumerate(DATASETS[name])}
    table = Table(folder, kinds, random, partitioned=name == "partitioned")
    for number in range(_OBJECTS):
        table.write(f"object-{number:03d}{'x' * (number % 3)}.parquet", 3600)
    counts: Counter[str] = Counter()
    with conf(spark, _CONF):
        Dataset(table.read(spark)).create_indexes(*(MinMaxIndex(column) for column in kinds))
        for changed in (False, True):
            if changed:
                _changed(table)
            predicates = [table.predicate() for _ in range(_PREDICATES)]
            truth = Truth(spark, table, predicates)
            table.read(spark).createOrReplaceTempView("top_t")
            for number in range(queries):
                query = make_query(table, len(predicates))
                _ask(spark, truth, query, predicates, counts, number % _RUN_EVERY == 0)
    return counts


def test_all_types_take_part():
    assert {kind for kinds in DATASETS.values() for kind in kinds} == set(NAMES)
