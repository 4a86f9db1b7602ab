"""What the rule asks for keys of a join, without running one.

A question takes the way of a real join from the broadcast on: the relation that Spark hashes its rows into, the keys
that are read from it, the condition that is made of them, its JSON, and the planner.  What only a join that runs has is
left out: where keys may be asked for at all, the walk to the scan, the listing, and objects that changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from skipstone.expressions.from_spark import read_expression
from tests.soundness.joins import DIMENSION, KEYS, value
from tests.soundness.planning import Capture, skipped_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["Fact", "JoinQuestion", "make_numbered"]


class _Plain:
    """In place of random numbers: no NULL but those that are asked for, and the first of each choice."""

    def random(self) -> float:
        return 1.0

    def choice(self, choices: tuple[Any, ...]) -> Any:
        return choices[0]


def comparable(found: Any, key: str) -> Any:
    """Return what is equal for values that a join by this key holds for equal; ``None`` for NULL."""
    if key == "nested" and isinstance(found, dict):
        found = found["a"]
    if isinstance(found, float):
        return "NaN" if found != found else found + 0.0
    return found.year if key == "function" and found is not None else found


@dataclass
class Fact:
    """A fact's files, and what each holds of each key."""

    folder: Path

    def __post_init__(self) -> None:
        self._held: dict[str, dict[str, set[Any]]] = {}

    def held(self, key: str) -> dict[str, set[Any]]:
        if key not in self._held:
            column = {"nested": "st", "function": "d"}.get(key, KEYS[key][0])
            self._held[key] = {
                file.name: {comparable(v, key) for v in pq.ParquetFile(file).read([column])[column].to_pylist()}
                for file in self.folder.rglob("*.parquet")
                if "_skipstone" not in file.parts
            }
        return self._held[key]


def make_numbered(spark: SparkSession, numbers: list[int | None]) -> None:
    """Make a view of a row for each number."""
    rows = ", ".join(f"({'null' if v is None else v}, 0, 0)" for v in numbers)
    spark.sql(DIMENSION.format(rows=rows)).createOrReplaceTempView("numbered")


class JoinQuestion:
    """A join of a fact with the numbered rows, by one key: planned once, asked about many sets of them."""

    def __init__(self, spark: SparkSession, fact: Fact, numbers: list[int | None], key: str, op: str) -> None:
        self._fact, self._key, self._null_safe = fact, key, op == "<=>"
        column = {"nested": "st", "function": "d"}.get(key, KEYS[key][0])
        self._values = [comparable(value(v, column, _Plain()), key) for v in numbers]  # type: ignore[arg-type]
        left, right = (side.format(d="d") for side in KEYS[key])
        left, right = (side if "." in side else f"{name}.{side}" for side, name in ((left, "f"), (right, "d")))
        left = left.replace("st.a", "f.st.a")
        joined = f"fact f join numbered d on {left} {op} {right} where f.id >= 0"
        query = f"select /*+ broadcast(d) */ f.* from {joined}"
        with Capture() as asked:
            plan = spark.sql(query)._jdf.queryExecution().executedPlan()
        self._asked = asked[0]
        nodes = {node.getClass().getSimpleName(): node for node in _nodes(plan)}
        join, scan, exchange = (
            nodes[n] for n in ("BroadcastHashJoinExec", "FileSourceScanExec", "BroadcastExchangeExec")
        )
        # Looked up once: each name in the JVM costs a call.
        rule, ours = spark._jvm.org.apache.spark.sql.skipstone, spark._jvm.org.apache.spark.sql.execution.skipstone
        self._to_seq, self._condition_of = spark._jvm.PythonUtils.toSeq, rule.JoinRule.conditionOf
        self._request_of, self._key_condition, self._join_keys = (
            rule.SkipstoneRule.requestOf,
            ours.KeyCondition,
            ours.JoinKeys,
        )
        self._none = getattr(getattr(spark._jvm, "scala.None$"), "MODULE$")
        described = rule.RelationJson(scan.relation(), scan.output(), self._none, spark._jsparkSession)
        self._join, self._mode, self._rows = join, exchange.mode(), exchange.child().executeCollect()
        assert len(self._rows) == len(numbers)
        self._described, self._environments = described, described.environments()
        keys = self._join_keys.streamed(join)._2()
        self._keys = [keys.apply(i) for i in range(keys.size())]

    def ask(self, first: int, last: int) -> tuple[frozenset[str], frozenset[str]]:
        """Return the objects that are left out for the keys of some rows, and those that hold one of the keys."""
        keys = set(self._values[first:last])
        if not self._null_safe:
            keys.discard(None)
        holding = frozenset(name for name, held in self._fact.held(self._key).items() if held & keys)
        condition = self._condition(first, last)
        if condition is None:
            return frozenset(), holding
        asked = replace(self._asked, condition=read_expression(condition))
        return skipped_names(asked, asked.store), holding

    def _condition(self, first: int, last: int) -> dict[str, Any] | None:
        relation = self._mode.transform(self._rows[first:last])
        try:
            keys = (
                self._key_condition(k, self._join_keys(self._join, i, relation), "") for i, k in enumerate(self._keys)
            )
            known = [key for key in keys if key.predicate().isDefined()]
            condition = self._condition_of(self._to_seq(known)) if known else self._none
            if condition.isEmpty():
                return None
            request = self._request_of(self._described, self._environments, condition, self._none)
        finally:
            relation.close()
        return json.loads(request)["condition"]


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))
