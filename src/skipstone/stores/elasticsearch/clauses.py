"""The translations of the built-in clauses on values: counts, bounds, lists of values, pieces of text, features.

Every one refutes exactly what the clause's ``might_match`` calls False; the tables say why that is a proof.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from skipstone.indexes.affix import AffixClause, PrefixClause, SuffixClause
from skipstone.indexes.bloom_filter import SomeHashClause
from skipstone.indexes.feature.index import FeatureClause
from skipstone.indexes.minmax import MinMaxClause
from skipstone.indexes.value_list import ValueListClause, ValueListMatchClause
from skipstone.stores.elasticsearch.queries import (
    ALWAYS,
    NEVER,
    Query,
    absent,
    every,
    exists,
    one_of,
    some,
    within,
)
from skipstone.stores.elasticsearch.translation import (
    MOST_OPTIONS,
    Fields,
    Slot,
    known,
    refuted_bounds,
    translates,
)
from skipstone.toolkit.bounds import to_bounds
from skipstone.toolkit.elements import NAN_ELEMENTS, NULL_ELEMENTS
from skipstone.toolkit.leaf import EVERYTHING, NOTHING, Affix, Among, Compare, CountClause, Leaf, Pattern, read_leaf
from skipstone.toolkit.like import Wildcard

if TYPE_CHECKING:
    from collections.abc import Callable

    from skipstone.indexing.index import Index
    from skipstone.toolkit.leaf import Test

__all__ = ["no_nan", "no_null", "no_ordinary", "no_rows", "passing"]

_LAST = chr(0x10FFFF)
_MOST_PATTERN = 200
_MOST_WILDCARDS = 4


def no_rows(fields: Fields, index: Index, count: str) -> Query | None:
    """Refute that a count is above 0."""
    slot = fields.slot(index, count)
    return None if slot is None else slot.refuted(">", 0)


def no_null(fields: Fields, index: Index, *, of_elements: bool = False) -> Query | None:
    """Refute that there is a NULL: ``null_count ≤ 0``."""
    return no_rows(fields, index, NULL_ELEMENTS if of_elements else "null_count")


def no_nan(fields: Fields, index: Index, *, of_elements: bool = False) -> Query | None:
    """Refute that there is a NaN: none was counted, or no row has anything but NULL."""
    if of_elements:
        return no_rows(fields, index, NAN_ELEMENTS)
    return some([no_rows(fields, index, "nan_count"), no_rows(fields, index, "present")])


def no_ordinary(fields: Fields, index: Index, *, floating: bool) -> Query | None:
    """Refute that there is a value that is neither NULL nor (``floating``) NaN: no rows are left without these."""
    counts = ("present", "ordinary") if floating else ("present",)
    return some(no_rows(fields, index, count) for count in counts)


def _counted(clause: CountClause, fields: Fields, ordinary: Callable[[Leaf], Query | None]) -> Query | None:
    """Refute a leaf predicate: each of the ways in which ``CountClause`` lets an object match must be refuted."""
    leaf = read_leaf(clause.predicate)
    if leaf is None:
        return NEVER
    ways: list[Query | None] = []
    if leaf.test == EVERYTHING and not leaf.of_elements:
        ways.append(no_ordinary(fields, clause.index, floating=leaf.floating))
    elif leaf.test != NOTHING:
        ways.append(ordinary(leaf))
    if leaf.on_null:
        ways.append(no_null(fields, clause.index, of_elements=leaf.of_elements))
    if leaf.on_nan:
        ways.append(no_nan(fields, clause.index, of_elements=leaf.of_elements))
    return every(ways)


@translates(CountClause)
def _count(clause: CountClause, fields: Fields) -> Query | None:
    return _counted(clause, fields, lambda _: NEVER)


@translates(SomeHashClause)
def _some_hash(clause: SomeHashClause, fields: Fields) -> Query | None:
    return _counted(clause, fields, lambda _: no_rows(fields, clause.index, "hashes"))


@translates(MinMaxClause)
def _minmax(clause: MinMaxClause, fields: Fields) -> Query | None:
    """Refute that a value passes: none between the bounds does (``refuted_bounds``), or there is no value at all."""
    lower, upper = (fields.slot(clause.index, name) for name in ("lower", "upper"))
    if lower is None or upper is None:
        return None

    def ordinary(leaf: Leaf) -> Query | None:
        test = to_bounds(leaf.test)
        if test is None:
            return NEVER
        return some([refuted_bounds(lower, upper, test), no_ordinary(fields, clause.index, floating=leaf.floating)])

    return _counted(clause, fields, ordinary)


@translates(ValueListMatchClause)
def _list_match(clause: ValueListMatchClause, fields: Fields) -> Query | None:
    """Refute that a listed value passes the test: the list is known, and the query finds none that does."""
    slot = fields.slot(clause.index, "values")
    return None if slot is None else _counted(clause, fields, lambda leaf: _no_value(slot, leaf.test))


@translates(ValueListClause)
def _list(clause: ValueListClause, fields: Fields) -> Query | None:
    slot = fields.slot(clause.index, "values")
    if slot is None:
        return None
    plain = [value for value in clause.values if value is not None and value == value]  # noqa: PLR0124  (NaN)
    ways = [_no_value(slot, Among(tuple(v + 0.0 if isinstance(v, float) else v for v in plain)))]
    if any(value is None for value in clause.values):
        ways.append(no_null(fields, clause.index))
    if any(value is not None and value != value for value in clause.values):  # noqa: PLR0124
        ways.append(no_nan(fields, clause.index))
    return every(ways)


@translates(PrefixClause, SuffixClause)
def _affix(clause: AffixClause, fields: Fields) -> Query | None:
    """Refute that a piece passes: no whole value passes the test, no cut one passes what the clause makes of it."""
    whole, cut = (fields.slot(clause.index, name) for name in ("whole", "cut"))
    if whole is None or cut is None:
        return None

    def ordinary(leaf: Leaf) -> Query | None:
        found = some([_piece_passes(whole, leaf.test), _piece_passes(cut, clause.cut(leaf.test))])
        return None if found is None else every([known(whole), absent(found)])

    return _counted(clause, fields, ordinary)


@translates(FeatureClause)
def _feature(clause: FeatureClause, fields: Fields) -> Query | None:
    slot = fields.slot(clause.index, f"f{clause.place}")
    return None if slot is None else slot.equal(False)


def _no_value(slot: Slot, test: Test) -> Query | None:
    """Refute that a listed value passes a test."""
    found = passing(slot, test)
    if found is None:
        return None
    return NEVER if found == ALWAYS else every([known(slot), absent(found)])


def _piece_passes(slot: Slot, test: Test | None) -> Query | None:
    """Match where a piece might pass a test; each might if there is no test or it cannot be applied."""
    found = ALWAYS if test is None else passing(slot, test)
    return exists(slot.name) if found == ALWAYS else found


def passing(slot: Slot, test: Test) -> Query | None:
    """Match where one of a field's values passes a test; ``ALWAYS`` where that is unknown for all.

    ================== ===============================================================================================
    test               a value passes exactly if
    ================== ===============================================================================================
    one of             it is one of the terms
    none of            it lies below the least, above the greatest or between two neighbours of the terms
    order              it lies in the range
    begins with ``p``  ``p ≤ v < p⁺``, where ``p⁺`` is the least text above all that begin with ``p``
    ends with, has,    it matches the pattern: ``?`` is a code point as ``_`` is, ``*`` any number of them
    LIKE
    ================== ===============================================================================================

    That *some* value fails to match a pattern has no query, and is left to Arrow.
    """
    match test:
        case Among((), negated):
            return exists(slot.name) if negated else NEVER
        case Among(values, False):
            return _or_unknown(slot.among(values))
        case Among(values, True):
            return _none_of(slot, values)
        case Compare(operator, value):
            forms = slot.literals((value,))
            bound = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[operator]
            return within(slot.name, **{bound: forms[0]}) if isinstance(forms, list) else _or_unknown(forms)
        case Affix("prefix", text, negated):
            return _prefixed(slot, text, negated=negated) if _is_text(slot) else None
        case Affix("suffix", text, False):
            return _matching(slot, (Wildcard.ANY, text))
        case Affix("part", text, False):
            return _matching(slot, (Wildcard.ANY, text, Wildcard.ANY))
        case Pattern(tokens, False):
            return _matching(slot, tokens)
    return None


def _or_unknown(query: Query | None) -> Query | None:
    """Turn "refutes nothing" round: where a comparison is unknown, every value might pass."""
    return ALWAYS if query == NEVER else query


def _none_of(slot: Slot, values: tuple[Any, ...]) -> Query | None:
    forms = slot.literals(values) if len(values) <= MOST_OPTIONS else None
    if not isinstance(forms, list):
        return _or_unknown(forms)
    ranked = sorted(set(forms))
    between = [within(slot.name, gt=low, lt=high) for low, high in itertools.pairwise(ranked)]
    return some([within(slot.name, lt=ranked[0]), within(slot.name, gt=ranked[-1]), *between])


def _prefixed(slot: Slot, text: str, *, negated: bool) -> Query | None:
    beyond = _text_beyond(text)
    if slot.literals((text, beyond or "")) is None:
        return None
    if negated:
        return some([within(slot.name, lt=text), *([within(slot.name, gte=beyond)] if beyond else [])])
    return within(slot.name, gte=text, **({"lt": beyond} if beyond else {}))


def _text_beyond(text: str) -> str | None:
    """Return the least text above all that begin with ``text``, by code points: UTF-8's bytes have the same order."""
    kept = text.rstrip(_LAST)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no characters


def _matching(slot: Slot, tokens: tuple[str | Wildcard, ...]) -> Query | None:
    """Match a LIKE pattern, if it is short enough for the server to make an automaton of it."""
    if not _is_text(slot) or sum(map(_width, tokens)) > _MOST_PATTERN:
        return None
    if tokens.count(Wildcard.ANY) > _MOST_WILDCARDS:
        return None
    if not any(isinstance(token, Wildcard) for token in tokens):
        return one_of(slot.name, ["".join(map(str, tokens))])
    spelled = {Wildcard.ONE: "?", Wildcard.ANY: "*"}
    pattern = "".join(spelled[token] if isinstance(token, Wildcard) else _escaped(token) for token in tokens)
    return {"wildcard": {slot.name: {"value": pattern}}}


def _width(token: str | Wildcard) -> int:
    return 1 if isinstance(token, Wildcard) else len(token)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "*?\\" else c for c in text)


def _is_text(slot: Slot) -> bool:
    """Whether a field holds texts as they are."""
    import pyarrow as pa

    return pa.types.is_string(slot.type) or pa.types.is_large_string(slot.type)
