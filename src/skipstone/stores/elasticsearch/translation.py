"""Query-time translation: from a clause to the query that refutes it, for the fields that a part has searchable.

The registry is by a clause's exact class, since a subclass may mean something else.  Another package adds its own by

    @translates(MyClause)
    def my_query(clause, fields):
        slot = fields.slot(clause.index, "least")
        return None if slot is None else slot.refuted("<=", clause.value)

``None`` stands for "not to be translated here": Arrow evaluates the clause on the driver.  A translation must refute
exactly what the clause's ``might_match`` calls False.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from skipstone.stores.elasticsearch.encoding import encoded
from skipstone.stores.elasticsearch.queries import NEVER, Query, absent, every, one_of, some, within
from skipstone.toolkit.values import exact_array

if TYPE_CHECKING:
    import pyarrow as pa

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause

__all__ = ["MOST_OPTIONS", "Fields", "Slot", "known", "translate", "translates"]

MOST_OPTIONS = 64
"""An IN list that becomes a query for each of its options is left to Arrow above this many."""
_MOST_TERMS = 60_000
_OPPOSITES = {"<": "gte", "<=": "gt", ">": "lte", ">=": "lt"}


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a searchable field is in a part's documents, and the type of its values."""

    name: str
    type: pa.DataType

    def literals(self, values: Sequence[Any]) -> list[Any] | Query | None:
        """Return the forms of literals; ``NEVER`` when the type cannot hold them exactly, ``None`` when they have none.

        What a clause compares with a literal that its type cannot hold is unknown: that refutes nothing.
        """
        exact = exact_array(tuple(values), self.type)
        return NEVER if exact is None else encoded(exact)

    def refuted(self, operator: str, value: Any) -> Query | None:
        """Match where the field, a single value, does *not* stand in this order to a literal."""
        forms = self.literals((value,))
        return within(self.name, **{_OPPOSITES[operator]: forms[0]}) if isinstance(forms, list) else forms

    def equal(self, value: Any) -> Query | None:
        """Match where a value is the literal."""
        forms = self.literals((value,))
        return one_of(self.name, forms) if isinstance(forms, list) else forms

    def among(self, values: Sequence[Any]) -> Query | None:
        """Match where a value is one of the literals."""
        forms = self.literals(values) if len(values) <= _MOST_TERMS else None
        return one_of(self.name, forms) if isinstance(forms, list) else forms


class Fields(Protocol):
    """The searchable fields of one part."""

    def slot(self, index: Index, name: str) -> Slot | None:
        """Return where a field of an index is; ``None`` when it is not searchable in this part."""
        ...


Translation: TypeAlias = Callable[[Any, Fields], Query | None]
_T = TypeVar("_T", bound=Translation)

_translations: dict[type[Clause], Translation] = {}


def translates(*clause_types: type[Clause]) -> Callable[[_T], _T]:
    """Register the translation of clause types; a later registration replaces an earlier one."""

    def register(function: _T) -> _T:
        for clause_type in clause_types:
            _translations[clause_type] = function
        return function

    return register


def translate(clause: Clause, fields: Fields) -> Query | None:
    """Return the query that refutes a clause, or ``None`` when there is none."""
    function = _translations.get(type(clause))
    return None if function is None else function(clause, fields)


def known(slot: Slot) -> Query:
    """Match where a field of lists is known: an empty list leaves no other trace in a document."""
    return {"term": {"known": slot.name}}


def refuted_bounds(lower: Slot, upper: Slot, test: Any) -> Query | None:
    """Return the query that refutes ``bounds_might_match``: no value between the bounds passes the test.

    Every value ``v`` of the object has ``L ≤ v ≤ U``; a bound that is missing matches no query and refutes nothing.

    ===================== ============================================================================================
    test                  refuted when
    ===================== ============================================================================================
    ``< x``, ``<= x``     ``L ≥ x`` (``L > x``): then every ``v`` is
    ``> x``, ``>= x``     ``U ≤ x`` (``U < x``)
    ``= x``               ``L > x`` or ``U < x``
    ``<> x``              ``L = x`` and ``U = x``: there is no other value
    ``IN (x₁ < … < xₙ)``  both bounds are known and lie below ``x₁``, above ``xₙ``, or between two neighbours
    ``NOT IN (…)``        ``L = U = xᵢ`` for some ``i``
    begins with ``p``     ``U < p`` or ``L ≥ p⁺``, the least bytes above all that begin with ``p``
    does not              ``L ≥ p`` and ``U < p⁺``
    ===================== ============================================================================================
    """
    from skipstone.toolkit.bounds import successor
    from skipstone.toolkit.leaf import Affix, Among, Compare

    match test:
        case Compare("<" | "<=", value):
            return lower.refuted(test.operator, value)
        case Compare(operator, value):
            return upper.refuted(operator, value)
        case Among((value,), False):
            return some([lower.refuted("<=", value), upper.refuted(">=", value)])
        case Among((value,), True):
            return every([lower.equal(value), upper.equal(value)])
        case Among(values, negated):
            return _refuted_options(lower, upper, values, negated=negated)
        case Affix("prefix", text, negated):
            prefix = text.encode()
            beyond = successor(prefix)
            if negated:
                reaches = upper.refuted(">=", beyond) if beyond else None
                return every([lower.refuted("<", prefix), *([reaches] if beyond else [])])
            before = lower.refuted("<", beyond) if beyond else NEVER
            return some([upper.refuted(">=", prefix), before])
    return None


def _refuted_options(lower: Slot, upper: Slot, values: Sequence[Any], *, negated: bool) -> Query | None:
    """Refute that a value between the bounds is (``negated``: is not) one of several."""
    forms = lower.literals(values) if len(values) <= MOST_OPTIONS else None
    if not isinstance(forms, list):
        return forms
    low, high = lower.name, upper.name
    if negated:
        return some(every([one_of(low, [form]), one_of(high, [form])]) for form in set(forms))
    ranked = sorted(set(forms))
    between = [every([within(low, gt=one), within(high, lt=next_one)]) for one, next_one in itertools.pairwise(ranked)]
    both = [{"exists": {"field": name}} for name in (low, high)]
    outside = [within(high, lt=ranked[0]), within(low, gt=ranked[-1])] if ranked else [absent(NEVER)]
    return every([*both, some([*outside, *between])])
