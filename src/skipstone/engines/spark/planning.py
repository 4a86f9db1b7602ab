"""The planner behind the bridge: answers the optimizer rule's questions over Py4J's callback server.

The bridge sends a scan's relation and condition, gets back a bitmap of kept metadata rows per snapshot, and matches
those rows to Spark's own listing.  Nothing here may raise into the query: the bridge turns any error into "read all,
said why", and so does this module where it can say more.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone import registry
from skipstone.engines.spark.choice import CHOICE, Choice
from skipstone.engines.spark.description import read_relation
from skipstone.engines.spark.functions import query_identities
from skipstone.engines.spark.session_store import store_for
from skipstone.engines.spark.sql import Answerer, answer
from skipstone.engines.spark.surroundings import rests_on, surroundings
from skipstone.errors import SkipstoneError
from skipstone.expressions.from_spark import read_expression
from skipstone.functions.identity.package_versions import gathered_evidence
from skipstone.indexing.relation import Relation
from skipstone.querying.distrust import distrust
from skipstone.querying.plan import Plan, plan_scan
from skipstone.querying.plan_tally import Tally, plan_tally
from skipstone.querying.plan_top import plan_top
from skipstone.querying.top_k import Top
from skipstone.settings import complain_once
from skipstone.stores.memory import InMemoryStore
from skipstone.stores.packed import PACKED_COLUMNS, packed_objects
from skipstone.stores.timing import reading_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipstone.stores.metadata_store import MetadataStore, Snapshot

__all__ = ["SparkPlanner"]

_MOST_PLANS = 256
_MOST_SNAPSHOTS = 64
_HEADER_BYTES = 4


class SparkPlanner:
    """Implements the bridge's ``Planner`` interface for one Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._parts: dict[int, list[str]] = {}
        self._plans: OrderedDict[int, Plan] = OrderedDict()
        self._snapshots: OrderedDict[str, tuple[MetadataStore, Snapshot]] = OrderedDict()

    def part(self, key: int, text: str) -> None:
        """Take a piece of a request: long strings reach Python faster in pieces."""
        with self._lock:
            self._parts.setdefault(key, []).append(text)

    def plan(self, key: int, text: str) -> bytes:
        """Answer the request that ends with ``text``."""
        with self._lock:
            pieces = self._parts.pop(key, [])
        request = json.loads("".join([*pieces, text]))
        with reading_time() as reading:
            plan = self._planned(key, request)
        return _response(key, plan, reading.seconds)

    def _planned(self, key: int, request: dict[str, Any]) -> Plan:
        """Plan one scan, and remember the plan; what Skipstone refuses on purpose is said."""
        relation = read_relation(request["relation"])
        if request.get("rehearsal"):
            return self._rehearsed(relation, request["condition"])
        complain_once(relation.skipstone, registry.store_settings())
        try:
            registry.load_plugins(_names(relation.skipstone.get("plugins", "")))
            store = store_for(self._spark, relation.skipstone)
            condition = request["condition"]
            functions = query_identities(self._spark, relation.skipstone)
            expression = None if condition is None else read_expression(condition)
            distrust(request.get("distrusted", ()))
            choice = request.get("choice", relation.skipstone.get(CHOICE))
            chosen = None if choice is None else Choice.read(choice)
            with gathered_evidence() as evidence, surroundings(self._spark, relation).hold() as looked_at:
                plan = plan_scan(relation, expression, store, functions, chosen)
                if request.get("top") is not None:
                    plan = plan_top(plan, Top.of(request["top"]), relation, store, functions, chosen)
                if request.get("tally") is not None:
                    plan = plan_tally(plan, Tally.of(request["tally"]), relation, store, functions, chosen)
            plan = replace(plan, evidence=frozenset(evidence), environment=rests_on(plan.environment, looked_at))
        except SkipstoneError as error:
            return Plan(not_used=(str(error),))
        self._remember(key, plan, store)
        return plan

    def _rehearsed(self, relation: Relation, condition: Any) -> Plan:
        """Plan a scan that nobody asked for, of no files: nothing is imported, said or remembered for it."""
        registry.find_plugins()
        functions = query_identities(self._spark, relation.skipstone)
        return plan_scan(relation, read_expression(condition), InMemoryStore(), functions)

    def objects(self, snapshot_id: str) -> str:
        """Write a snapshot's object table to a local file for the bridge, which deletes it."""
        with self._lock:
            store, snapshot = self._snapshots[snapshot_id]
        packed = packed_objects(store.objects(snapshot, PACKED_COLUMNS))
        with tempfile.NamedTemporaryFile(prefix="skipstone-", suffix=".objects", delete=False) as file:
            try:
                file.write(packed)
                file.flush()
            except OSError:  # a full disk, say: nobody else would delete it
                Path(file.name).unlink(missing_ok=True)
                raise
        return str(Path(file.name))

    def command(self, session: Any, key: int, text: str) -> bytes:
        """Carry out the statement on indexes that ends with ``text``, by a session (a Java object): the caller's."""
        from pyspark.sql import SparkSession

        with self._lock:
            pieces = self._parts.pop(key, [])
        # The store lives longer than the caller's session: it belongs to the planner's own.
        answerer = Answerer(partial(store_for, self._spark), self.explained)
        return answer(answerer, SparkSession(self._spark.sparkContext, session), "".join([*pieces, text]))

    def explained(self, key: int) -> Plan | None:
        """Return a recent plan for ``explain``: its labelled trees, without which objects were kept."""
        with self._lock:
            return self._plans.get(key)

    def _remember(self, key: int, plan: Plan, store: MetadataStore) -> None:
        """Keep a bounded number of plans and snapshots; a plan without its answer, which has a byte per object."""
        labelled = replace(
            plan, decisions=tuple(replace(d, evaluation=None) for d in plan.decisions), top=None, tally=None
        )
        with self._lock:
            self._plans[key] = labelled
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
            for decision in plan.decisions:
                self._snapshots[decision.snapshot.id] = (store, decision.snapshot)
                self._snapshots.move_to_end(decision.snapshot.id)
            while len(self._snapshots) > _MOST_SNAPSHOTS:
                self._snapshots.popitem(last=False)

    class Java:
        """Py4J: the interface that this object implements for the JVM."""

        implements = ["org.apache.spark.sql.skipstone.Planner"]  # noqa: RUF012  (Py4J reads a plain list)


def _response(key: int, plan: Plan, read_seconds: float) -> bytes:
    """Pack the answer: a JSON header with its length before it, then a bitmap per snapshot that was evaluated."""
    snapshots: list[dict[str, Any]] = []
    bitmaps: list[bytes] = []
    top = plan.top
    for number, decision in enumerate(plan.decisions):
        evaluation = decision.evaluation
        everything = evaluation is None or bool(evaluation.kept.all())
        rows = decision.snapshot.object_count
        ranks = None if top is None else top.ranks[number]
        facts = None if plan.tally is None else plan.tally[number]
        said = {"all": everything, "ranked": ranks is not None, "tallied": 0 if facts is None else facts.shape[1]}
        snapshots.append({"id": decision.snapshot.id, "rows": rows, **said})
        if evaluation is not None and not everything:
            bitmaps.append(np.packbits(evaluation.kept, bitorder="little").tobytes())
        if ranks is not None:
            bitmaps.append(ranks.astype("<i4").tobytes())
        if facts is not None:
            bitmaps.append(facts.astype("<i8").tobytes())
    header = json.dumps(
        {
            "snapshots": snapshots,
            "clause": plan.clause,
            "used": plan.used,
            "not_used": plan.not_used,
            "metadata_bytes_read": plan.metadata_bytes_read,
            "metadata_read_seconds": read_seconds,
            "refuse": plan.refusal,
            "indexed": plan.indexed,
            "columns": plan.covered,
            "environment": plan.environment,
            "evidence": sorted(plan.evidence),
            "responsible": [{"root": root, "name": name, "id": own} for root, name, own in plan.responsible],
            "caught": plan.caught,
            "plan": key,
            "top": None if top is None else {**top.places, "question": str(top.question)},
        }
    ).encode()
    return b"".join([len(header).to_bytes(_HEADER_BYTES, "big"), header, *bitmaps])


def _names(setting: str) -> list[str]:
    """Split a comma-separated setting."""
    return [name.strip() for name in setting.split(",") if name.strip()]
