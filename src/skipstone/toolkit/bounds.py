"""Lower and upper bounds held against the test of a predicate, for all objects at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.toolkit.leaf import Affix, Among, Compare, Pattern
from skipstone.toolkit.like import REPLACEMENT, Wildcard, literal_prefix
from skipstone.toolkit.values import exact_array, exact_scalar, unknown

if TYPE_CHECKING:
    import numpy.typing as npt

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Metadata
    from skipstone.toolkit.leaf import Test

__all__ = ["bounds_might_match", "successor", "to_bounds"]


def successor(prefix: bytes) -> bytes | None:
    """Return the least bytes greater than everything that begins with ``prefix``, or ``None`` when there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def to_bounds(test: Test) -> Among | Compare | Affix | None:
    """Return the test that bounds can answer and that every value passing ``test`` passes, or ``None``."""
    match test:
        case Affix("suffix" | "part"):
            return None
        case Pattern(tokens, False):
            return Affix("prefix", literal_prefix(tokens)) if literal_prefix(tokens) else None
        case Pattern((str(text),), True) if REPLACEMENT not in text:
            return Among((text,), negated=True)
        case Pattern((str(text), Wildcard.ANY), True) if REPLACEMENT not in text:
            return Affix("prefix", text, negated=True)
        case Pattern():
            return None
        case _:
            return test


def bounds_might_match(metadata: Metadata, index: Index, test: Among | Compare | Affix) -> pa.BooleanArray:
    """Return for each object whether a value between its bounds might pass the test; null where a bound is unknown."""
    match test:
        case Compare(("<" | "<=") as operator, value):
            lower = metadata.field(index, "lower")
            return _compare(lower, operator, value)
        case Compare(operator, value):
            upper = metadata.field(index, "upper")
            return _compare(upper, operator, value)
    lower, upper = metadata.field(index, "lower"), metadata.field(index, "upper")
    match test:
        case Among((value,), False):
            return pc.and_kleene(_compare(lower, "<=", value), _compare(upper, ">=", value))
        case Among((value,), True):
            return pc.or_kleene(_compare(lower, "<>", value), _compare(upper, "<>", value))
        case Among(values, negated):
            return _none_but(lower, upper, values) if negated else _any_between(lower, upper, values)
        case Affix(_, text, negated):
            prefix = text.encode()
            beyond = successor(prefix)
            if negated:
                before = _compare(lower, "<", prefix)
                return pc.or_kleene(before, _compare(upper, ">=", beyond)) if beyond else before
            not_before = _compare(upper, ">=", prefix)
            return pc.and_kleene(not_before, _compare(lower, "<", beyond)) if beyond else not_before


_OPERATORS = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<>": pc.not_equal,
}


def _compare(bounds: pa.Array, operator: str, value: Any) -> pa.BooleanArray:
    """Compare bounds with a literal; unknown throughout when the bounds' type cannot hold it exactly."""
    scalar = exact_scalar(value, bounds.type)
    return unknown(len(bounds)) if scalar is None else _OPERATORS[operator](bounds, scalar)


def _none_but(lower: pa.Array, upper: pa.Array, values: tuple[Any, ...]) -> pa.BooleanArray:
    """Whether a value outside ``values`` is possible: unless both bounds are one and the same of them."""
    options = exact_array(values, lower.type)
    if options is None:
        return unknown(len(lower))
    if pa.types.is_floating(lower.type):  # -0.0 and 0.0 are equal, but not to is_in
        lower, upper = pc.add(lower, pa.scalar(0.0, lower.type)), pc.add(upper, pa.scalar(0.0, upper.type))
    listed = pc.if_else(lower.is_valid(), pc.is_in(lower, value_set=options), None)
    return pc.or_kleene(pc.not_equal(lower, upper), pc.invert(listed))


def _any_between(lower: pa.Array, upper: pa.Array, values: tuple[Any, ...]) -> pa.BooleanArray:
    """Whether some value lies between the bounds: the least not below ``lower`` must not be above ``upper``."""
    options = exact_array(values, lower.type)
    if options is None:
        return unknown(len(lower))
    known = pc.and_(lower.is_valid(), upper.is_valid())
    ranked, low, high = _as_numbers(options, lower, upper)
    ranked = np.sort(ranked)
    place = np.searchsorted(ranked, low, side="left")
    found = (place < len(ranked)) & (ranked[np.minimum(place, len(ranked) - 1)] <= high)
    return pc.if_else(known, pa.array(found), None)


def _as_numbers(*arrays: pa.Array) -> tuple[npt.NDArray[Any], ...]:
    """Return arrays as numbers in the same order: as they are, or else by rank among all; nulls become any number."""
    type_ = arrays[0].type
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return tuple(array.fill_null(0).to_numpy(zero_copy_only=False) for array in arrays)
    ranks = pc.rank(pa.concat_arrays(arrays), sort_keys="ascending", tiebreaker="dense").to_numpy()
    return tuple(np.split(ranks, np.cumsum([len(array) for array in arrays])[:-1]))
