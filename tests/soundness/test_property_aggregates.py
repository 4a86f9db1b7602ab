"""Random counts and extremes over random types, while objects come, change and go.

Two questions. What the planner says of every object, asked of many conditions without running anything, is held against
the object's rows as they were written. And random aggregations run with and without skipping, several in one query.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark.attach import planner_of
from skipstone.engines.spark.planning import SparkPlanner
from skipstone.querying.plan_tally import FIELDS, UNKNOWN
from tests.soundness.sizes import AGGREGATIONS, TALLIES
from tests.soundness.test_property_top_k import DATASETS, _changed
from tests.soundness.top_k import Table, Truth
from tests.soundness.values import KINDS
from tests.support import conf

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

_OBJECTS = 24
_TOGETHER = 6
_CONF = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
_NEVER = ("double", "float", "string", "binary", "decimal(38,10)")
"""Bounds of these need not be values, or are no numbers of 64 bits."""
_EXACT = ("int", "bigint", "tinyint", "smallint", "boolean", "date", "timestamp", "timestamp_ntz")


def _is_exact(kind: str) -> bool:
    """Whether ``min`` and ``max`` of a type may be answered from metadata; what is known of intervals is not used."""
    return kind in _EXACT or kind in ("decimal(18,4)", "decimal(9,2)")


class Asked:
    """Asks the planner what objects hold, as the bridge does; conditions come from Spark's own optimizer."""

    def __init__(self, spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
        self._df = table.read(spark)
        self._spark = spark
        self._requests: list[dict[str, Any]] = []
        plan = SparkPlanner.plan

        def seen(planner: SparkPlanner, key: int, text: str) -> bytes:
            pieces = planner._parts.get(key, [])
            self._requests.append(json.loads("".join([*pieces, text])))
            return plan(planner, key, text)

        monkeypatch.setattr(SparkPlanner, "plan", seen)
        everything = self.request(" AND ".join(f"{name} IS NOT NULL" for name in table.kinds))
        self._relation = everything["relation"]
        self._columns = [c for c in everything["relation"]["columns"] if c["n"] in table.kinds]

    def request(self, predicate: str) -> dict[str, Any]:
        """Plan a scan, and return what the bridge asked for."""
        self._requests.clear()
        self._df.where(predicate)._jdf.queryExecution().optimizedPlan()
        return self._requests[-1] if self._requests else {"condition": None}

    def held(self, predicate: str | None) -> dict[str, list[int]] | None:
        """Return what is said of the objects that match wholly, by name."""
        condition = None if predicate is None else self.request(predicate)["condition"]
        if predicate is not None and condition is None:
            return None  # always true, or never: nothing is asked
        columns = [{"k": "col", "n": [c["n"]], "t": c["t"], "p": c["p"]} for c in self._columns]
        tally = {"whole": condition, "columns": columns, "vouchers": []}
        planner = planner_of(self._spark)
        plan = planner._planned(-1, {"relation": self._relation, "condition": None, "tally": tally})
        assert not [said for said in plan.not_used if "Error" in said], plan.not_used
        if plan.tally is None:
            return {}
        (decision,), (facts,) = plan.decisions, plan.tally
        store, snapshot = planner._snapshots[decision.snapshot.id]
        paths = store.objects(snapshot, ["path"]).column("path").to_pylist()
        return {path.rpartition("/")[2]: list(row) for path, row in zip(paths, facts, strict=True) if row[0] != UNKNOWN}


def _false(table: Table, name: str, said: list[int], matching: set[int] | None) -> list[str]:
    """Hold what is said of an object against its rows."""
    rows = table.objects[name]
    found = [] if said[0] == len(rows) else [f"{name} has {len(rows)} rows, not {said[0]}"]
    if matching is not None and not {row["rid"] for row in rows} <= matching:
        found.append(f"{name} does not match wholly")
    for number, (column, kind) in enumerate(table.kinds.items()):
        nulls, valued, lower, upper = said[1 + len(FIELDS) * number :][: len(FIELDS)]
        values = [row[column] for row in rows if row[column] is not None]
        if nulls not in (UNKNOWN, len(rows) - len(values)):
            found.append(f"{name}: {nulls} NULLs in {column}")
        if valued == 0 and values:
            found.append(f"{name}: no values in {column}")
        if valued == 1:
            scale = 10 ** int(kind.name.rpartition(",")[2].rstrip(")")) if kind.name.startswith("decimal") else 1
            if kind.name in _NEVER or (lower, upper) != (int(min(values) * scale), int(max(values) * scale)):
                found.append(f"{name}: {column} from {lower} to {upper}, not {min(values)} to {max(values)}")
    return found


def _aggregation(table: Table, predicates: list[str], number: int) -> str:
    """Make an aggregation; all have one shape of result, of text."""
    random = table.random
    exact = [name for name, kind in table.kinds.items() if _is_exact(kind.name)]
    functions = ["count(*)", *(f"count({name})" for name in table.kinds)]
    functions += [f"{f}({name})" for name in exact for f in ("min", "max")] * 2
    functions += ["min(part)", "count(part)"] if table.partitioned else []
    chosen = random.sample(functions, min(len(functions), random.choice((1, 1, 2, 3))))
    text = ", ".join(f"coalesce(CAST({f} AS STRING), 'NULL')" for f in chosen)
    where = f" WHERE {random.choice(predicates)}" if random.random() < 0.7 else ""
    keys = [*exact, *(["part"] if table.partitioned else [])]
    if keys and random.random() < 0.5:
        key = random.choice(keys)
        said = f"coalesce(CAST({key} AS STRING), 'NULL')"
        return f"SELECT {number} AS q, {said} AS k, concat_ws('|', {text}) AS a FROM tally_t{where} GROUP BY {key}"
    return f"SELECT {number} AS q, '' AS k, concat_ws('|', {text}) AS a FROM tally_t{where}"


def _run(spark: SparkSession, table: Table, predicates: list[str], counts: Counter[str]) -> None:
    """Run some aggregations at once, with and without skipping."""
    sql = " UNION ALL ".join(_aggregation(table, predicates, n) for n in range(_TOGETHER))
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        expected = sorted(map(tuple, spark.sql(sql).collect()))
    with skipstone.skipping_stats(spark) as stats:
        assert sorted(map(tuple, spark.sql(sql).collect())) == expected, sql
    assert not [entry.error for entry in stats if entry.error], sql
    counts["ran"] += _TOGETHER
    for entry in stats:
        if entry.aggregates is not None:
            assert not [said for said in entry.aggregates.not_used if "Error" in said], sql
            counts["answered in a run"] += entry.aggregates.answered > 0
            counts["answered and read in a run"] += entry.aggregates.answered > 0 and entry.objects.kept > 0


@pytest.mark.parametrize("name", DATASETS)
def test_counts_and_extremes_are_the_same(spark, tmp_path, name, pytestconfig, soundness_report, monkeypatch):
    counts = _campaign(spark, tmp_path / "t", name, monkeypatch, pytestconfig)
    soundness_report.append(f"counts and extremes, {name}: {dict(sorted(counts.items()))}")
    wanted = ["conditions", "matched wholly", "with WHERE", "ran", "answered in a run", "answered and read in a run"]
    wanted += [f"extremes of {kind}" for kind in DATASETS[name] if _is_exact(kind)]
    assert not [what for what in wanted if not counts[what]], counts


def _campaign(
    spark: SparkSession, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, config: pytest.Config
) -> Counter[str]:
    random = Random(f"counts and extremes {name}")
    kinds = {f"c{n}_{KINDS[kind].family}": KINDS[kind] for n, kind in enumerate(DATASETS[name])}
    table = Table(folder, kinds, random, partitioned=name == "partitioned")
    for number in range(_OBJECTS):
        table.write(f"object-{number:03d}{'x' * (number % 3)}.parquet", 3600)
    counts: Counter[str] = Counter()
    with conf(spark, _CONF):
        Dataset(table.read(spark)).create_indexes(*(MinMaxIndex(column) for column in kinds))
        predicates = [table.predicate() for _ in range(TALLIES.of(config))]
        truth = Truth(spark, table, predicates)
        asked = Asked(spark, table, monkeypatch)
        for number, predicate in enumerate([*predicates, None]):
            held = asked.held(predicate)
            if held is None:
                continue
            counts["conditions"] += 1
            counts["matched wholly"] += len(held)
            counts["with WHERE"] += len(held) if predicate is not None else 0
            matching = None if predicate is None else truth.matching[number]
            false = [line for one, said in held.items() for line in _false(table, one, said, matching)]
            assert not false, (predicate, false)
            for said in held.values():
                for place, kind in enumerate(kinds.values()):
                    counts[f"extremes of {kind.name}"] += int(said[2 + len(FIELDS) * place] == 1)
        monkeypatch.undo()
        for changed in (False, True):
            if changed:
                _changed(table)
            table.read(spark).createOrReplaceTempView("tally_t")
            for _ in range(AGGREGATIONS.of(config)):
                _run(spark, table, predicates, counts)
    return counts
