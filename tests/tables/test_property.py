"""The property suite, ignorance and mutations over tables: the same generators and rules as over files.

Here the formats prune nothing themselves, so every skip is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.soundness import test_ignorance, test_mutations
from tests.soundness.bench import DDL, Bench
from tests.soundness.campaign import Campaign, Counts
from tests.soundness.datasets import TABLES, Spec
from tests.soundness.planning import INDEX_TYPES, skipped_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from tests.soundness.planning import Asked

FILE = {"delta": "_metadata.file_name", "iceberg": "element_at(split(_file, '/'), -1)"}
NUMBERS, TEXTS = ("integer", "decimal", "float"), ("string", "binary")
PAIRS, LONG_PAIRS, EXECUTED = 100, 500, 0.1

# Fixtures: what is broken here is mended as it is there.
nothing_remembered, reading_here = test_mutations.nothing_remembered, test_mutations.reading_here


class TableCampaign(Campaign):
    """A campaign on a table, whose snapshot names the files."""

    def __init__(self, spark: Any, spec: Spec, folder: Any) -> None:
        self.file = FILE[spec.format]
        super().__init__(spark, spec, folder)

    def _objects(self) -> frozenset[str]:
        return frozenset(row[0] for row in self.df.selectExpr(self.file).distinct().collect())

    def _kept(self, planned: Any, asked: Sequence[Asked]) -> frozenset[str]:
        planned.queryExecution().executedPlan()
        return self.everything - (skipped_names(asked[-1], asked[-1].store) if asked else frozenset())


class TableBench(Bench):
    """The bench's files, taken over by a table."""

    def __init__(self, spark: Any, folder: Any, format_: str) -> None:
        self.format, self.file = format_, FILE[format_]
        super().__init__(spark, folder)

    def _read(self) -> DataFrame:
        said = ", ".join(f"'{key}' = '{value}'" for key, value in TABLES[self.format].items())
        if self.format == "delta":
            self.spark.sql(f"CONVERT TO DELTA parquet.`{self.path}` NO STATISTICS")
            return self.spark.read.format("delta").load(self.path)
        name = "ice.db.bench"
        self.spark.sql(f"CREATE TABLE {name} ({DDL}) USING iceberg TBLPROPERTIES ({said})")
        self.spark.sql(f"CALL ice.system.add_files(table => 'db.bench', source_table => '`parquet`.`{self.path}`')")
        return self.spark.table(name)

    def _plan(self, query: Any) -> None:
        query.queryExecution().executedPlan()


def specs(format_: str, first: int) -> tuple[Spec, ...]:
    """Every type of column; fewer of them; another zone, and conditions as they are written."""
    return (
        Spec(first, format=format_),
        Spec(first + 1, format=format_, families=NUMBERS, threshold=2, zone="America/New_York"),
        Spec(first + 2, format=format_, families=TEXTS, gaps=1, length=1),
        Spec(first + 3, format=format_, families=("date", "moment", "float"), ansi=True, zone="Asia/Kolkata"),
    )


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("format_", "first"), [("delta", 61), ("iceberg", 71)])
def test_no_file_with_a_matching_row_is_skipped(spark, tmp_path, request, format_, first):
    total, pairs = Counts(), LONG_PAIRS if request.config.getoption("--long") else PAIRS
    for spec in specs(format_, first):
        outcome = TableCampaign(spark, spec, tmp_path / str(spec.seed)).run(pairs, EXECUTED)
        assert not outcome.failures, "".join(outcome.failures[:5]) + f"\n\n{len(outcome.failures)} failures"
        assert outcome.counts.skipped, f"nothing was skipped in {spec}: the test says nothing"
        total += outcome.counts
    print(f"{format_}: {total}")
    assert total.pairs >= 4 * pairs
    assert total.executed >= total.pairs / 20
    assert total.skipped > total.objects / 5
    for type_ in INDEX_TYPES:  # prefixes and suffixes are asked of every column, and say something of texts
        assert total.skipped_by_values[type_] > total.alone[type_] / 8, f"{type_} hardly skips: {total}"


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def bench(request, spark, tmp_path_factory):
    return TableBench(spark, tmp_path_factory.mktemp(request.param) / "data", request.param)


def test_nothing_is_wrong_with_the_rules_as_they_are(bench, tmp_path, reading_here):
    test_mutations.test_nothing_is_wrong_with_the_rules_as_they_are(bench, tmp_path, reading_here)


@pytest.mark.parametrize("blur", test_ignorance.BLURS)
def test_knowing_less_keeps_more(bench, blur):
    test_ignorance.test_knowing_less_keeps_more(bench, blur)


@pytest.mark.parametrize("name", test_mutations.AT_QUERY_TIME)
def test_broken_at_query_time(bench, monkeypatch, name):
    test_mutations.test_broken_at_query_time(bench, monkeypatch, name)


@pytest.mark.parametrize("name", test_mutations.AT_INDEX_TIME)
def test_broken_at_index_time(bench, tmp_path, monkeypatch, reading_here, name):
    test_mutations.test_broken_at_index_time(bench, tmp_path, monkeypatch, reading_here, name)
