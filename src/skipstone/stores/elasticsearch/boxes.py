"""The translations of GapList and GeoBox: nested documents, one for each interval or box.

An object is refuted if its boxes are known and none of them *passes*; a box passes unless it is refuted itself, by
values that are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.indexes.gap_list.index import GapListClause
from skipstone.indexes.geo_box.index import GeoBoxClause
from skipstone.indexes.geo_box.regions import Joined, Side, read_region, rounded_down, rounded_up
from skipstone.stores.elasticsearch.clauses import no_nan, no_null, no_ordinary, no_rows
from skipstone.stores.elasticsearch.encoding import kind_of
from skipstone.stores.elasticsearch.queries import NEVER, Query, absent, every, some
from skipstone.stores.elasticsearch.translation import (
    MOST_OPTIONS,
    Fields,
    Slot,
    known,
    refuted_bounds,
    translates,
)
from skipstone.toolkit.bounds import to_bounds
from skipstone.toolkit.leaf import EVERYTHING, NOTHING, Among, Compare, read_leaf

if TYPE_CHECKING:
    from skipstone.indexes.geo_box.regions import Region

__all__: list[str] = []


def _side(slot: Slot, end: str) -> Slot:
    """Return one end of the boxes in a field."""
    return Slot(f"{slot.name}.{kind_of(slot.type)}_{end}", slot.type)


def _no_box(slot: Slot, refuted: Query | None) -> Query | None:
    """Refute that some box passes."""
    if refuted is None:
        return None
    boxes = {"path": slot.name, "query": absent(refuted), "score_mode": "none"}
    passing = {"nested": {**boxes, "ignore_unmapped": True}}  # no document at all has a box in this slot yet
    return every([known(slot), absent(passing)])


@translates(GapListClause)
def _gap_list(clause: GapListClause, fields: Fields) -> Query | None:
    """Refute that an interval holds a value that passes every test, and that NULL or NaN satisfies all predicates.

    An interval ``[L, U]`` is refuted by each test that ``refuted_bounds`` refutes: the value that a matching row has in
    it would have to pass them all.
    """
    slot = fields.slot(clause.index, "intervals")
    if slot is None:
        return None
    leaves = [leaf for predicate in clause.predicates if (leaf := read_leaf(predicate)) is not None]
    tests = [leaf.test for leaf in leaves if leaf.test != EVERYTHING]
    ways: list[Query | None] = []
    if NOTHING not in tests:
        if tests:
            bounded = [bounds for test in tests if (bounds := to_bounds(test)) is not None]
            low, high = _side(slot, "low0"), _side(slot, "high0")
            ways.append(_no_box(slot, some(refuted_bounds(low, high, test) for test in bounded)))
        else:
            ways.append(no_ordinary(fields, clause.index, floating=any(leaf.floating for leaf in leaves)))
    if all(leaf.on_null for leaf in leaves):
        ways.append(no_null(fields, clause.index))
    if all(leaf.on_nan for leaf in leaves):
        ways.append(no_nan(fields, clause.index))
    return every(ways)


@translates(GeoBoxClause)
def _geo_box(clause: GeoBoxClause, fields: Fields) -> Query | None:
    """Refute that a box meets the region, and that rows outside of all boxes (NaN, empty geometries) may match.

    A box is refuted by one axis: ``c < x`` by a low end not below ``x``, ``c > x`` by a high end not above it,
    ``c = x`` and ``IN`` if no ``x`` lies between the ends.  Of regions that must all be met one refuted is enough, of
    others all must be.  Literals are rounded outwards, as the clause does.  What is within a distance of a geometry
    has no query.
    """
    region = read_region(clause.predicate, clause.index.columns)
    slot = fields.slot(clause.index, "boxes")
    refuted = None if region is None or slot is None else _refuted_region(slot, region)
    if slot is None or refuted is None:
        return None
    counts = [no_rows(fields, clause.index, name) for _, name in clause.requires[1:]]
    return every([_no_box(slot, refuted), *counts])


def _refuted_region(slot: Slot, region: Region) -> Query | None:
    match region:
        case Joined(terms, is_all):
            return (some if is_all else every)(_refuted_region(slot, term) for term in terms)
        case Side(axis, leaf):
            return _refuted_side(_side(slot, f"low{axis}"), _side(slot, f"high{axis}"), leaf.test)
    return None


def _refuted_side(low: Slot, high: Slot, test: object) -> Query | None:
    match test:
        case Compare(("<" | "<=") as operator, value):
            return low.refuted(operator, rounded_up(value))
        case Compare(operator, value):
            return high.refuted(operator, rounded_down(value))
        case Among(values) if len(values) <= MOST_OPTIONS:
            return every(some([low.refuted("<=", rounded_up(v)), high.refuted(">=", rounded_down(v))]) for v in values)
        case Among():
            return None
    return NEVER
