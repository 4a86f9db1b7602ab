"""The Feature index: one bit per object and workload feature, whether any row satisfies it (paper, section VI)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import IndexingError, SettingError
from skipstone.expressions.from_spark import read_expression
from skipstone.expressions.names import parse_column
from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Call, Cast, Column, Expression, Literal, Or
from skipstone.expressions.types import has_collation
from skipstone.indexes.feature.conditions import ConditionKeys
from skipstone.indexes.formatted import depends_on_zone
from skipstone.indexing.environment import MACHINE
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.filter import Filter
from skipstone.toolkit.values import is_atomic

if TYPE_CHECKING:
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import Preparation
    from skipstone.querying.clause import Metadata

__all__ = ["FeatureClause", "FeatureFilter", "FeatureIndex", "FeatureMetadata"]

_MOST_NAMES = 8
_PADDED = re.compile(r"(?<!var)char\(")


@dataclass(frozen=True, slots=True)
class FeatureMetadata(MetadataType):
    """Of each feature whether some row satisfies it: its predicate is TRUE, not NULL."""

    found: tuple[bool, ...]

    @classmethod
    def from_aggregates(cls, row: Mapping[str, Any]) -> Self:
        """Make the state of what Spark aggregated."""
        return cls(tuple(bool(value) for value in row.values()))

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        return {f"f{place}": pa.bool_() for place in range(len(inputs))}

    def merge(self, other: Self) -> Self:
        return type(self)(tuple(one or another for one, another in zip(self.found, other.found, strict=True)))

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        return {f"f{place}": found for place, found in enumerate(self.found)}


@dataclass(frozen=True)
class FeatureIndex(Index):
    """Whether any row of an object satisfies each of some predicates that queries are known to ask for.

    Parameters
    ----------
    features
        SQL predicates over the dataset's columns, by a name for each.
    conditions
        The predicates as Spark's optimizer writes them, which is found out when the index is made.

    Examples
    --------
    >>> FeatureIndex({"errors": "level = 'ERROR'", "slow": "seconds > 10 AND NOT cached"}).name
    'feature(errors, slow)'
    """

    metadata_type = FeatureMetadata

    features: Mapping[str, str] | Iterable[tuple[str, str]]
    conditions: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        given = self.features.items() if isinstance(self.features, Mapping) else self.features
        object.__setattr__(self, "features", _checked(given))
        super().__post_init__()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The features in the order of their bits: name and predicate."""
        return self.features  # type: ignore[return-value]  # made so above

    def _default_name(self) -> str:
        more = len(self.pairs) - _MOST_NAMES
        shown = [*(name for name, _ in self.pairs[:_MOST_NAMES]), *([f"… {more} more"] if more > 0 else [])]
        return f"{self.type_name}({', '.join(shown)})"

    @property
    def columns(self) -> tuple[str, ...]:
        found = (v.name for c in self.conditions for v in _tree(c).walk() if isinstance(v, Column))
        return tuple(dict.fromkeys(found))

    def with_columns(self, columns: tuple[str, ...]) -> Self:  # noqa: ARG002  (part of the contract)
        return self  # Spark has resolved them already

    @property
    def functions(self) -> tuple[str, ...]:
        found = (v.name for c in self.conditions for v in _tree(c).walk() if isinstance(v, Call) and v.kind)
        return tuple(dict.fromkeys(found))

    @property
    def runs_sql(self) -> bool:
        return True

    def prepare(self, scan: Preparation) -> Self:
        padded = {name for name, said in scan.reads_as.items() if _PADDED.search(said)}
        conditions = []
        for name, predicate in self.pairs:
            try:
                condition = json.dumps(_without_numbers(scan.condition(predicate)), sort_keys=True)
            except IndexingError as error:
                msg = f"{self.name} cannot be built: feature {name}: {error}"
                raise IndexingError(msg) from error
            reason = _unfit(_tree(condition), padded)
            if reason is not None:
                msg = f"{self.name} cannot be built: feature {name}, {predicate!r}, {reason}"
                raise SettingError(msg)
            conditions.append(condition)
        return replace(self, conditions=tuple(conditions))

    @property
    def evaluated(self) -> tuple[str, ...]:
        return (MACHINE,)  # the settings and the zone that an expression looks at are part of its condition

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        return tuple(f"coalesce((\n{predicate}\n), false)" for _, predicate in self.pairs)

    def aggregates(self, types: tuple[str, ...]) -> Mapping[str, str]:
        return {f"f{place}": f"bool_or({found})" for place, found in enumerate(self.inputs(types))}

    def collect_metadata(self, rows: pa.RecordBatch) -> FeatureMetadata:
        return FeatureMetadata(tuple(bool(pc.any(column).as_py()) for column in rows.columns))

    def filters(self) -> tuple[Filter, ...]:
        return (FeatureFilter(self),)

    def options(self) -> Mapping[str, Any]:
        kept = {"features": [list(pair) for pair in self.pairs], "conditions": list(self.conditions)}
        return {**super().options(), **kept}


def _checked(given: Any) -> tuple[tuple[str, str], ...]:
    """Take the features apart and see that they are names and predicates."""
    try:
        pairs = tuple((name, predicate) for name, predicate in given)
    except (TypeError, ValueError):
        pairs = ()
    if not pairs:
        msg = "a FeatureIndex needs at least one feature, for example FeatureIndex({'errors': \"level = 'ERROR'\"})"
        raise SettingError(msg)
    for name, predicate in pairs:
        for what, text in (("name", name), ("predicate", predicate)):
            if not isinstance(text, str) or not text.strip():
                msg = f"the feature {name!r}: {predicate!r} has no {what}: give both as text, the predicate in SQL"
                raise SettingError(msg)
    return pairs


def _without_numbers(condition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what differs between sessions: functions' ids, which the manifest has, and variables' numbers."""
    numbers: dict[str, str] = {}

    def renumber(node: Any) -> None:
        if node.get("u"):
            node.pop("id", None)
        elif "id" in node:
            node["id"] = numbers.setdefault(node["id"], str(len(numbers)))
        for child in node.get("c", ()):
            renumber(child)

    renumber(condition)
    return condition


@lru_cache(maxsize=1024)
def _tree(condition: str) -> Expression:
    """Read a condition that ``prepare`` has kept."""
    return normalize(read_expression(json.loads(condition)))


def _unfit(condition: Expression, padded: set[str]) -> str | None:
    """Return why a predicate cannot be a feature, or ``None`` when it can."""
    if isinstance(condition, Literal):
        return "is the same for every row"
    columns = [vertex for vertex in condition.walk() if isinstance(vertex, Column)]
    if not columns:
        return "is about no column of the dataset"
    for vertex in condition.walk():
        reason = _unfit_vertex(vertex, padded)
        if reason is not None:
            return reason
    if _keys(condition) is None:
        return "has something in it that cannot be recognised in a query"
    return None


def _unfit_vertex(vertex: Expression, padded: set[str]) -> str | None:
    """Return what of a vertex means something else in another session, or cannot be told from something else."""
    types = [_type_of(vertex), *map(_type_of, vertex.children)]
    match vertex:
        case Call(deterministic=False):
            return f"calls {vertex.name}, which is not deterministic or not known before a query runs"
        case Call(name="_metadata"):
            return "is about the files rather than about a column"
        case Call() if vertex.kind and any(map(depends_on_zone, types)):
            return f"calls {vertex.name} with timestamps, which it sees in the time zone of the session"
        case Cast() if not is_atomic(tuple(types)):
            return f"casts {types[1]} to {types[0]}, which depends on the session's settings"
        case Column(name) if parse_column(name)[0] in padded:
            return f"is about {name}, a column of fixed length, which queries see padded"
    return "compares text by a collation" if any(map(has_collation, types)) else None


def _type_of(vertex: Expression) -> str:
    """Return the type of a vertex; what has none of its own is a predicate."""
    return str(getattr(vertex, "type", "boolean"))


@lru_cache(maxsize=1024)
def _terms(condition: str) -> tuple[frozenset[bytes], ...]:
    """Return a feature as an AND of terms, each the keys of its alternatives; no term at all for an unknown one."""
    return _keys(_tree(condition)) or ()


def _keys(condition: Expression) -> tuple[frozenset[bytes], ...] | None:
    """Return the keys of the alternatives of each term of a condition; ``None`` when one is not known."""
    keys = ConditionKeys()
    terms = condition.terms if isinstance(condition, And) else (condition,)
    found = [_alternatives(term, keys) for term in terms]
    return None if None in found else tuple(term for term in found if term is not None)


def _alternatives(term: Expression, keys: ConditionKeys) -> frozenset[bytes] | None:
    """Return the keys of the terms of an OR, or of the term itself."""
    found = {keys.of(alternative) for alternative in (term.terms if isinstance(term, Or) else (term,))}
    return None if None in found else frozenset(key for key in found if key is not None)


@dataclass(frozen=True, slots=True)
class FeatureClause(Clause):
    """Some row of the object satisfies the feature."""

    index: FeatureIndex
    place: int

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Return the bit; null where it is not known."""
        return metadata.field(self.index, f"f{self.place}")

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The bit."""
        return ((self.index, f"f{self.place}"),)

    def __str__(self) -> str:
        return f"{self.index.name}[{self.index.pairs[self.place][0]}]"


@dataclass(frozen=True, slots=True)
class FeatureFilter(Filter):
    """Labels the vertices that imply a feature with its ``FeatureClause``.

    A feature ``F`` is an AND of terms ``T₁ … Tₙ``, each an OR of one or more alternatives; so is a vertex ``e`` of the
    query, of terms ``S₁ … Sₘ``.  The vertex is labelled if every ``Tᵢ`` has an ``Sⱼ`` all of whose alternatives are
    alternatives of ``Tᵢ``.

    *That the clause represents e*: let a row make ``e`` TRUE.  Then it makes every ``Sⱼ`` TRUE, hence one alternative
    of each.  For every ``Tᵢ`` that alternative is one of its own, so ``Tᵢ`` is TRUE, and so is ``F``.  The bit of an
    object says whether some row makes ``F`` TRUE (NULL counts as not TRUE, as it does for a query), so the object's bit
    is set.  NULL and NaN need no case of their own: nothing is said of values, only of rows for which ``F`` is TRUE.

    *That equal keys are equal predicates*: ``ConditionKeys`` gives two alternatives one key only if they are the same
    expression of the same columns, in Spark's optimizer's own writing.  The rows for which ``F`` is TRUE were found by
    running the predicate as the user wrote it; the optimizer's writing is TRUE for the same rows.  What the expression
    alone does not show is compared otherwise or refused when the index is made:

    ======================================== ===========================================================================
    what may differ between sessions         why the key, or something else, tells
    ======================================== ===========================================================================
    a user's function of the same name       its identity is recorded; the planner does not ask on another function
    ANSI mode, TRY, legacy flags, units,     ``Call.parameters`` digests whatever makes a function of Spark's besides
    options, other settings, Spark's version its arguments, the settings that it may look at, and the version; a cast
                                             has its mode and zone, and only casts between atomic types are taken
    the session's time zone                  is in the calls and casts that depend on it; text that became a timestamp
                                             is a literal; users' functions of timestamps are refused
    the time, the user, rand(), subqueries   refused
    collations, padded columns, ``_metadata`` refused
    types, the way of reading, case          compared by the planner for every column of the index
    ======================================== ===========================================================================
    """

    index: FeatureIndex
    keys: ConditionKeys = field(default_factory=ConditionKeys, repr=False, compare=False)

    def label_node(self, node: Expression) -> tuple[FeatureClause, ...]:
        terms = node.terms if isinstance(node, And) else (node,)
        wanted = [
            (place, feature)
            for place, feature in enumerate(map(_terms, self.index.conditions))
            if feature and (len(feature) > 1) == isinstance(node, And)  # one term alone labels that term itself
        ]
        if not wanted:
            return ()
        known = [found for term in terms if (found := _alternatives(term, self.keys)) is not None]
        return tuple(
            FeatureClause(self.index, place)
            for place, feature in wanted
            if all(any(found <= term for found in known) for term in feature)
        )
