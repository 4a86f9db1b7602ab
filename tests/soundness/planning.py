"""Listening to the planner: what the bridge asked, and what the answer would be with other metadata.

Asking the planner again with one type of index takes a millisecond, planning the query again takes twenty.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark import planning as engine
from skipstone.functions.identity.package_versions import gathered_evidence
from skipstone.querying import plan as planner_module
from skipstone.querying.clause import Clause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from skipstone.engines.spark.functions import FunctionIdentities
    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.indexing.relation import Relation
    from skipstone.querying.clause import Metadata
    from skipstone.stores.metadata_store import Evaluation, MetadataStore, Snapshot

# How the planner says that an index, a clause or the store raised an error: nothing is lost, but something is broken.
_RAISED = re.compile(r"\w(Error|Exception|Invalid|NotImplemented): ")
INDEX_TYPES = ("minmax", "valuelist", "bloomfilter", "hybrid", "gaplist", "prefix", "suffix")
TEXT_TYPES = ("prefix", "suffix")


@dataclass(frozen=True)
class Asked:
    """One question of the bridge: what ``plan_scan`` was called with."""

    relation: Relation
    condition: Expression | None
    store: MetadataStore
    functions: FunctionIdentities


class Capture:
    """Notes every scan that is planned inside the block, and what went wrong in planning it."""

    def __init__(self) -> None:
        self._asked: list[Asked] = []
        self.problems: list[str] = []

    def __enter__(self) -> list[Asked]:
        self._original = engine.plan_scan

        def listening(
            relation: Relation, condition: Any, store: MetadataStore, functions: Any, chosen: Any = None
        ) -> Any:
            self._asked.append(Asked(relation, condition, store, functions))
            try:
                plan = self._original(relation, condition, store, functions, chosen)
            except Exception as error:
                self.problems.append(repr(error))
                raise
            self.problems += [said for said in plan.not_used if _RAISED.search(said)]
            return plan

        engine.plan_scan = listening
        return self._asked

    def __exit__(self, *_: object) -> None:
        engine.plan_scan = self._original


class Seen:
    """A store as another would show it: other indexes in its snapshots, another way to evaluate clauses."""

    def __init__(
        self,
        store: MetadataStore,
        snapshot: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
        evaluate: Callable[[Snapshot, Clause], Evaluation] | None = None,
    ) -> None:
        self._store, self._snapshot = store, snapshot
        self.evaluate = evaluate or store.evaluate

    def latest(self, root: str) -> Snapshot | None:
        found = self._store.latest(root)
        return None if found is None else self._snapshot(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def with_only(type_name: str) -> Callable[[Snapshot], Snapshot]:
    """Show only the indexes of one type."""
    return lambda found: replace(found, indexes=tuple(r for r in found.indexes if r.type_name == type_name))


class Blurred(Clause):
    """A clause that sees other metadata than there is: what an object's fields are shown as, ``blur`` says."""

    def __init__(self, clause: Clause, blur: Callable[[str, pa.Array], pa.Array]) -> None:
        self._clause, self._blur = clause, blur

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        return self._clause.might_match(_BlurredMetadata(metadata, self._blur))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        return self._clause.requires


class _BlurredMetadata:
    def __init__(self, metadata: Metadata, blur: Callable[[str, pa.Array], pa.Array]) -> None:
        self._metadata, self._blur = metadata, blur

    def __len__(self) -> int:
        return len(self._metadata)

    def field(self, index: Index, name: str) -> pa.Array:
        return self._blur(name, self._metadata.field(index, name))

    @property
    def row_count(self) -> pa.Array:
        return self._blur("row_count", self._metadata.row_count)


def blurred(store: MetadataStore, blur: Callable[[str, pa.Array], pa.Array]) -> Seen:
    """Show a store's metadata less sharply."""
    return Seen(store, evaluate=lambda snapshot, clause: store.evaluate(snapshot, Blurred(clause, blur)))


_held: ContextVar[bool] = ContextVar("held", default=False)


@contextmanager
def one_moment() -> Iterator[None]:
    """Ask the planner again as often as one likes while no package changes: those of functions are looked up once."""
    with gathered_evidence():
        token = _held.set(True)
        try:
            yield
        finally:
            _held.reset(token)


def skipped_names(asked: Asked, store: Any) -> frozenset[str]:
    """Return the names of the objects that the planner skips."""
    with nullcontext() if _held.get() else one_moment():  # the engine has one for each planning
        plan = planner_module.plan_scan(asked.relation, asked.condition, store, asked.functions)
    return frozenset(_skipped(plan, store))


def _skipped(plan: Any, store: Any) -> Iterator[str]:
    for decision in plan.decisions:
        if decision.evaluation is not None and not decision.evaluation.kept.all():
            names = _names(decision.snapshot, store)
            for name, kept in zip(names, decision.evaluation.kept.tolist(), strict=True):
                if not kept:
                    yield name


_NAMES: dict[tuple[str, str, str], tuple[str, ...]] = {}


def _names(snapshot: Snapshot, store: Any) -> tuple[str, ...]:
    """Name a snapshot's objects.  Opening a file with the columns of a hundred indexes takes ten times as long."""
    key = (snapshot.location, snapshot.root, snapshot.id)
    if key not in _NAMES:
        _NAMES[key] = tuple(path.rpartition("/")[2] for path in store.objects(snapshot)["path"].to_pylist())
    return _NAMES[key]
