"""The planner: from a scan's predicate to the objects that it must read, for any engine that can list files.

Expression Tree → normalise → filters label every boolean vertex → Merge-Clause → the store evaluates the clause
over the metadata → kept objects.  Whatever cannot be used keeps its objects and leaves a sentence in ``not_used``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from skipstone import registry
from skipstone.errors import SkipstoneError
from skipstone.expressions.tree import And, Call, Column, Expression, IsNotNull, Or
from skipstone.indexing.environment import MACHINE, SESSION, TIMESTAMPS
from skipstone.indexing.profiles import (
    changing_partitions,
    column_difference,
    depends_on_zone_of_old,
    profile_difference,
    without_jvm_zone,
)
from skipstone.indexing.records import ColumnRecord
from skipstone.querying.distrust import distrusted
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.sentences import (
    LONGEST_SENTENCE,
    NO_METADATA,
    NO_PREDICATE,
    marked,
    say_once,
    shortened,
    unserved,
    unserved_sentence,
)
from skipstone.querying.timestamps import only_modern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

    from skipstone.indexing.index import Index
    from skipstone.indexing.relation import Relation
    from skipstone.querying.filter import Filter
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.plan_top import TopStanding
    from skipstone.stores.metadata_store import Evaluation, IndexRecord, MetadataStore, Snapshot

__all__ = [
    "Decision",
    "KnownFunctions",
    "Plan",
    "columns_of",
    "plan_scan",
    "serving_indexes",
]


@dataclass(frozen=True)
class Decision:
    """What one snapshot of metadata says of a scan; without an ``evaluation`` it says nothing and keeps all."""

    snapshot: Snapshot
    labelled: Labelled | None = None
    evaluation: Evaluation | None = None
    idle: frozenset[str] = frozenset()
    """Terms of the clause, as they are written, that are false of no object: they skipped nothing."""


@dataclass(frozen=True)
class Plan:
    """The planner's answer for one scan."""

    decisions: tuple[Decision, ...] = ()
    used: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    """The groups of the reading environment that the decisions rest on: where they change, the plan does not hold."""
    evidence: frozenset[str] = frozenset()
    """The files of modules that the decisions rest on, as functions in the query refer to them."""
    condition: Expression | None = None
    top: TopStanding | None = None
    """Where the objects' rows stand in the query's order, if it has one with a limit and that is known."""
    tally: tuple[npt.NDArray[np.int64] | None, ...] | None = None
    """What the objects hold, if the query counts rows or looks for extremes and that is known; see ``plan_tally``."""

    @property
    def indexed(self) -> bool:
        """Whether any metadata was found for the files of this scan."""
        return bool(self.decisions)

    @property
    def covered(self) -> tuple[str, ...]:
        """The columns that indexes of this scan's dataset are on, in lower case: no other key of a join can skip."""
        records = (record for d in self.decisions for record in d.snapshot.indexes)
        return tuple(sorted({column.name.lower() for record in records for column in record.columns}))

    @property
    def responsible(self) -> tuple[tuple[str, str, str], ...]:
        """The indexes by whose metadata objects are left out: the root of the dataset, its name there, its id."""
        found: dict[tuple[str, str, str], None] = {}
        for decision in self.decisions:
            if (
                decision.evaluation is not None
                and decision.labelled is not None
                and decision.labelled.clause is not None
            ):
                names = {index.name for index, _ in decision.labelled.clause.requires}
                records = (record for record in decision.snapshot.indexes if record.name in names)
                found |= dict.fromkeys((decision.snapshot.root, record.name, record.id) for record in records)
        return tuple(found)

    @property
    def caught(self) -> tuple[str, ...]:
        """The names of the scan's indexes that an audit caught leaving out a row."""
        records = (record for decision in self.decisions for record in decision.snapshot.indexes)
        return tuple(record.name for record in records if distrusted(record.id) is not None)

    @property
    def clause(self) -> str | None:
        """The merged clause in words, or ``None`` when nothing could be said; terms that skipped nothing are marked."""
        spelled = [
            marked(d.labelled.clause, d.idle)
            for d in self.decisions
            if d.labelled is not None and d.labelled.clause is not None and d.evaluation is not None
        ]
        return "; ".join(dict.fromkeys(spelled)) or None

    @property
    def metadata_bytes_read(self) -> int:
        """Bytes of metadata that were fetched for this plan."""
        return sum(d.evaluation.bytes_read for d in self.decisions if d.evaluation is not None)

    @property
    def refusal(self) -> str | None:
        """Why no index serves this scan of an indexed dataset; ``None`` when one does or the dataset has none."""
        if (
            not self.indexed
            or self.top is not None
            or any(d.evaluation is not None and _serves(d.labelled) for d in self.decisions)
        ):
            return None
        return "no index can serve this query: " + ("; ".join(self.not_used) or "no reason known")


class KnownFunctions(Protocol):
    """Knows users' functions again, as ``functions.identity.identities.FunctionIdentities`` does."""

    def difference(self, recorded: Mapping[str, str], condition: Expression) -> str | None:
        """Return which function of a condition is not the recorded one of its name, or ``None`` when all are."""
        ...


@dataclass
class _Notes:
    """Sentences on what was used and what was not, each once, in order."""

    used: dict[str, None] = field(default_factory=dict)
    not_used: dict[str, None] = field(default_factory=dict)
    environment: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Query:
    """What a plan is made for: how the files are read, by which predicate, with which of the users' functions."""

    relation: Relation
    condition: Expression
    functions: KnownFunctions
    here: Mapping[str, ColumnRecord]
    assumed: Expression | None = None
    """What holds of every row, as it was indexed, of an object of which anything is said."""


def plan_scan(
    relation: Relation,
    condition: Expression | None,
    store: MetadataStore,
    functions: KnownFunctions,
    chosen: Callable[[str, str], bool] | None = None,
    assumed: Expression | None = None,
) -> Plan:
    """Decide what a scan must read.

    Parameters
    ----------
    relation
        How the scan reads its files.
    condition
        The predicate that every row of the result satisfies; ``None`` when there is none.
    store
        Where the metadata is.
    functions
        Whether a function in the predicate is the one whose results an index holds.
    chosen
        Whether to look at an index, given the root of its dataset and its name; by default all are looked at.
    assumed
        What holds of every row, as it was indexed, of the objects that the caller will say anything of.
    """
    notes = _Notes()
    snapshots = list(_snapshots(relation, store, notes))
    if chosen is not None:
        snapshots = [_with_chosen(snapshot, chosen) for snapshot in snapshots]
    if condition is None:
        notes.not_used[NO_PREDICATE] = None
        return Plan(tuple(Decision(s) for s in snapshots), (), tuple(notes.not_used))
    vertices = [*condition.walk()]
    here = {c.name: relation.column(c) for c in _columns_among(vertices)}
    query = _Query(relation, condition, functions, here, assumed)
    if any(isinstance(vertex, Call) and vertex.kind for vertex in vertices):
        # Whatever is known of a user's function, also what it implies, was known under these settings.
        notes.environment |= dict.fromkeys((SESSION, MACHINE))
    decisions = tuple(_decide(snapshot, query, store, notes) for snapshot in snapshots)
    if not snapshots and not notes.not_used:
        notes.not_used[NO_METADATA] = None
    return Plan(decisions, tuple(notes.used), tuple(notes.not_used), tuple(notes.environment), condition=condition)


def serving_indexes(
    snapshot: Snapshot,
    relation: Relation,
    column: Column,
    store: MetadataStore,
    functions: KnownFunctions,
    assumed: Expression | None = None,
) -> tuple[Column, tuple[Index, ...], tuple[str, ...], tuple[str, ...]]:
    """Find the indexes of a snapshot that may speak of a column's values as this scan reads them.

    ``assumed`` is as in ``plan_scan``.

    Returns
    -------
    tuple
        The column as the indexes spell it, the indexes, why others cannot be used, and the groups of the environment
        that this rests on.
    """
    notes = _Notes()
    here = {column.name: relation.column(ColumnRecord(column.name, column.type, column.partition))}
    query = _respelled(snapshot, _Query(relation, IsNotNull(column), functions, here, assumed))
    refusals = ((record, partial(store.refusal, snapshot, record)) for record in snapshot.indexes)
    found = tuple(
        index for record, refusal in refusals if (index := _usable(record, query, refusal, notes)) is not None
    )
    (respelled,) = (vertex for vertex in query.condition.walk() if isinstance(vertex, Column))
    return respelled, found, tuple(notes.not_used), tuple(notes.environment)


def columns_of(condition: Expression) -> list[ColumnRecord]:
    """Collect the columns that a condition mentions."""
    return _columns_among(condition.walk())


def _columns_among(vertices: Iterable[Expression]) -> list[ColumnRecord]:
    """Collect columns, each once."""
    columns = (vertex for vertex in vertices if isinstance(vertex, Column))
    return list({c.name: ColumnRecord(c.name, c.type, c.partition) for c in columns}.values())


def _snapshots(relation: Relation, store: MetadataStore, notes: _Notes) -> Iterator[Snapshot]:
    """Find the metadata of every indexed dataset that the scan's folders lie in."""
    for root in relation.candidate_roots():
        try:
            snapshot = store.latest(root)
        except SkipstoneError as error:
            notes.not_used[f"metadata of {root}: {error}"] = None
            continue
        if snapshot is not None:
            yield snapshot


def _with_chosen(snapshot: Snapshot, chosen: Callable[[str, str], bool]) -> Snapshot:
    """Return a snapshot as if it had the chosen indexes alone."""
    return replace(snapshot, indexes=tuple(index for index in snapshot.indexes if chosen(snapshot.root, index.name)))


def _decide(snapshot: Snapshot, query: _Query, store: MetadataStore, notes: _Notes) -> Decision:
    """Label, merge and evaluate for one snapshot."""
    query = _respelled(snapshot, query)
    filters: list[Filter] = []
    for record in snapshot.indexes:
        usable = _usable(record, query, partial(store.refusal, snapshot, record), notes)
        if usable is not None:
            filters.extend(_filters_of(usable, notes))
    implications = registry.implications()
    labelled = generate_clause(query.condition, filters, implications)
    for problem in labelled.problems:
        say_once(problem)
        notes.not_used[problem] = None
    for leaf in unserved(labelled):
        notes.not_used[unserved_sentence(leaf, implications)] = None
    if labelled.clause is None:
        return Decision(snapshot, labelled)
    try:
        evaluation = store.evaluate(snapshot, labelled.clause)
    except Exception as error:  # noqa: BLE001  a clause may be a plug-in's: whatever it raises, the objects are read
        problem = f"{labelled.clause}: {type(error).__name__}: {error}"
        say_once(problem)
        notes.not_used[problem] = None
        return Decision(snapshot, labelled)
    for index, _ in labelled.clause.requires:
        notes.used[index.name] = None
    return Decision(snapshot, labelled, evaluation, evaluation.idle)


def _usable(record: IndexRecord, query: _Query, refusal: Callable[[], str | None], notes: _Notes) -> Index | None:
    """Make a recorded index again if it may be used and describes what this scan reads; otherwise say why not."""
    if not any(column.name in query.here for column in record.columns):
        return None
    reason = distrusted(record.id) or refusal() or column_difference(record.columns, query.here)
    if reason is None:
        made = _made(record)
        reason = made if isinstance(made, str) else _difference(record, made, query, notes)
        if reason is None and not isinstance(made, str):
            return made
    notes.not_used[shortened(f"{shortened(record.name)}: {reason}", LONGEST_SENTENCE)] = None
    return None


def _made(record: IndexRecord) -> Index | str:
    """Make a recorded index again, or say why that cannot be done."""
    index_type = registry.find_index(record.type_name)
    if index_type is None:
        named = shortened(record.type_name)
        return f"its type {named!r} is not loaded; name its module in spark.skipstone.plugins"
    try:
        return index_type.from_options(record.name, record.options)
    except Exception as error:  # noqa: BLE001  a plug-in's own constructor: not used, said, the query goes on
        return f"it cannot be made from its options: {type(error).__name__}: {error}"


def _difference(record: IndexRecord, index: Index, query: _Query, notes: _Notes) -> str | None:
    """Return what differs from when the index was made, or ``None``; note what of the environment was compared."""
    try:
        groups = index.environment_groups(record.columns)
    except Exception as error:  # noqa: BLE001  a plug-in's own code: not used, said, the query goes on
        return f"its inputs raised {type(error).__name__}: {error}"
    profiles = query.relation.profiles(record.columns, groups)
    then = record.profile
    for_reading = TIMESTAMPS in groups and MACHINE not in groups and depends_on_zone_of_old(then.format)
    if for_reading and _only_modern(query, record):
        then, profiles = without_jvm_zone(then), tuple(map(without_jvm_zone, profiles))
        groups = tuple(group for group in groups if group != TIMESTAMPS)
    reason = (
        next(filter(None, (profile_difference(then, here) for here in profiles)), None)
        or changing_partitions(then, record.columns)
        or query.functions.difference(record.functions, query.condition)
    )
    if reason is None:
        # A task may look up when it runs what was looked up, and compared by the function's or condition's identity,
        # when the query was planned.
        notes.environment |= dict.fromkeys((*groups, SESSION) if MACHINE in groups else groups)
    return reason


def _only_modern(query: _Query, record: IndexRecord) -> bool:
    """Whether nothing is said of rows whose timestamps a zone moves.

    By ``only_modern``, of a row that satisfies the condition as it is read here.  So it is of a row of which something
    is assumed as it was indexed: then it was modern when it was read, hence not moved, hence it is read so here.
    """
    return only_modern(query.condition, record.columns) or (
        query.assumed is not None and only_modern(query.assumed, record.columns)
    )


def _filters_of(index: Index, notes: _Notes) -> tuple[Filter, ...]:
    """Ask an index for its filters; one that raises is not used, which is said."""
    try:
        return tuple(index.filters())
    except Exception as error:  # noqa: BLE001  a plug-in's own code: not used, said, the query goes on
        problem = f"{index.name}: {type(error).__name__}: {error}"
        say_once(problem)
        notes.not_used[problem] = None
        return ()


def _respelled(snapshot: Snapshot, query: _Query) -> _Query:
    """Spell the condition's columns as the indexes do, where Spark finds them whatever their case.

    Only Parquet and ORC readers match field names without regard to case, and only when the session does; a JSON field
    of another case is another field.
    """
    relation = query.relation
    if relation.format not in ("parquet", "orc") or relation.case_sensitive:
        return query
    spellings = {c.name.lower(): c.name for record in snapshot.indexes for c in record.columns}
    changes = {n: spellings[n.lower()] for n in query.here if n.lower() in spellings and spellings[n.lower()] != n}
    if not changes:
        return query
    here = {changes.get(n, n): replace(c, name=changes.get(n, n)) for n, c in query.here.items()}

    def respelled(vertex: Expression) -> Expression:
        return replace(vertex, name=changes.get(vertex.name, vertex.name)) if isinstance(vertex, Column) else vertex

    return replace(query, condition=query.condition.rebuilt(respelled), here=here)


def _serves(labelled: Labelled | None) -> bool:
    """Whether an index serves more than the ``IS NOT NULL`` that Spark puts before a predicate on a column."""
    if labelled is None:
        return False
    guarded: set[str] = set()
    mentioned: set[str] = set()
    for node in labelled.tree.walk(lambda vertex: isinstance(vertex, And | Or)):
        labels = labelled.labels.get(node)
        if labels and not isinstance(node, IsNotNull):
            return True
        if not isinstance(node, And | Or):
            (guarded if labels else mentioned).update(column.name for column in columns_of(node))
    return bool(guarded - mentioned)
