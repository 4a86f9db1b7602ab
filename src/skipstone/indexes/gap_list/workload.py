"""The ranges that queries ask for: given as pairs or as predicates, kept in a manifest, held against a column's type.

They only say which gaps are worth keeping, so that a bound may be rounded to what the type holds: whatever is kept,
the gaps are true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.errors import SettingError
from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Expression, Or
from skipstone.indexes.minmax import BOUND_BYTES
from skipstone.toolkit.bounds import successor, to_bounds
from skipstone.toolkit.leaf import Affix, Among, Compare, read_leaf
from skipstone.toolkit.values import FLOATING

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Range", "Ranges", "TypedRanges", "read_workload"]

_MOST_RANGES = 4096
_EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class Range:
    """Values from ``low`` to ``high``, with an importance; ``None`` leaves an end open, text is its bytes."""

    low: Any
    high: Any
    weight: float = 1.0
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no value can lie in it."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def meet(self, other: Range) -> Range:
        """Return the values that lie in both, with this one's weight."""
        met = self
        if other.low is not None and (met.low is None or other.low >= met.low):
            met = replace(met, low=other.low, low_open=other.low_open or (other.low == met.low and met.low_open))
        if other.high is not None and (met.high is None or other.high <= met.high):
            met = replace(met, high=other.high, high_open=other.high_open or (other.high == met.high and met.high_open))
        return met

    def to_json(self) -> list[Any]:
        """Return what a manifest keeps."""
        return [_to_json(self.low), _to_json(self.high), self.weight, self.low_open, self.high_open]

    @classmethod
    def from_json(cls, kept: Sequence[Any]) -> Range:
        """Read what ``to_json`` gave."""
        low, high, *rest = kept
        return cls(_from_json(low), _from_json(high), *rest)


@dataclass(frozen=True, slots=True)
class TypedRanges:
    """Ranges as arrays of a column's ordered form; those with an open end are left out, as no gap holds them."""

    lows: pa.Array
    highs: pa.Array
    weights: npt.NDArray[np.float64]
    low_open: npt.NDArray[np.bool_]
    high_open: npt.NDArray[np.bool_]


class Ranges(tuple[Range, ...]):  # noqa: SLOT001  (it remembers)
    """A workload; it remembers its form for a type, of which a column has one."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Ranges, (tuple(self),))

    def of_type(self, type_: pa.DataType) -> TypedRanges:
        """Return the ranges that have both ends, in a column's ordered form."""
        known = self.__dict__.get("_typed")
        if known is None or known[0] != type_:
            known = self.__dict__["_typed"] = (type_, self._of_type(type_))
        return known[1]

    def _of_type(self, type_: pa.DataType) -> TypedRanges:
        whole = [r for r in self if r.low is not None and r.high is not None]
        return TypedRanges(
            pa.array([_ordered(r.low, type_) for r in whole], type_),
            pa.array([_ordered(r.high, type_) for r in whole], type_),
            np.array([r.weight for r in whole], np.float64),
            np.array([r.low_open for r in whole], np.bool_),
            np.array([r.high_open for r in whole], np.bool_),
        )

    def misfit(self, spark_type: str) -> Range | None:
        """Return a range whose ends are no values of a Spark type, if there is one."""
        kinds = _kinds(spark_type)
        return next((r for r in self if not all(v is None or type(v) in kinds for v in (r.low, r.high))), None)


def read_workload(given: Any, column: str) -> Ranges:
    """Read ranges ``(low, high)``, ``(low, high, weight)``, predicates, or predicates with weights.

    Raises
    ------
    SettingError
        When an entry is none of these, or says nothing of the column.
    """
    if isinstance(given, str | bytes | Expression) or not isinstance(given, Iterable):
        msg = f"workload={given!r} is not a list: give ranges such as [(10, 20), (30, None, 2.5)], or predicates"
        raise SettingError(msg)
    return Ranges(found for entry in given for found in _read_entry(entry, column))


def _read_entry(entry: Any, column: str) -> Sequence[Range]:
    """Read one entry; a predicate that is several ranges shares its weight among them."""
    match entry:
        case Range():
            return (entry,)
        case Expression():
            return _read_predicate(entry, 1.0, column)
        case (Expression() as predicate, weight):
            return _read_predicate(predicate, _weight(weight, entry), column)
        case (low, high):
            return (_range(low, high, 1.0, entry),)
        case (low, high, weight):
            return (_range(low, high, _weight(weight, entry), entry),)
    msg = f"workload entry {entry!r} is neither (low, high), (low, high, weight) nor a predicate"
    raise SettingError(msg)


def _weight(weight: Any, entry: Any) -> float:
    """Check a weight."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        msg = f"workload entry {entry!r} has the weight {weight!r}: give a positive number"
        raise SettingError(msg)
    return float(weight)


def _range(low: Any, high: Any, weight: float, entry: Any) -> Range:
    """Make a range of two ends as a user gave them."""
    low, high = (_end(v.item() if isinstance(v, np.generic) else v) for v in (low, high))
    if not all(v is None or _is_end(v) for v in (low, high)):
        msg = f"workload entry {entry!r}: an end is None, a number, text, bytes, a date, a time or an interval"
        raise SettingError(msg)
    found = Range(low, high, weight)
    try:
        backwards = found.is_empty
    except TypeError:
        backwards = True
    if backwards or low is high is None:
        msg = f"workload entry {entry!r} is no range: give low <= high of one kind, None for one open end"
        raise SettingError(msg)
    return found


def _read_predicate(predicate: Expression, weight: float, column: str) -> Sequence[Range]:
    """Read a recorded predicate."""
    try:
        found = _ranges_of(normalize(predicate), column)
    except TypeError:  # ends of several kinds, which do not compare
        found = None
    if found is None:
        msg = f"workload predicate {predicate} does not bound {column}: give comparisons of that column with constants"
        raise SettingError(msg)
    return [replace(one, weight=weight / len(found)) for one in found]


def _ranges_of(node: Expression, column: str) -> list[Range] | None:
    """Return ranges with all values for which a normalised predicate may be TRUE; ``None`` if it sets no bounds."""
    match node:
        case And(terms):
            known = [found for term in terms if (found := _ranges_of(term, column)) is not None]
            return reduce(_met, known) if known else None
        case Or(terms):
            each = [_ranges_of(term, column) for term in terms]
            return None if None in each else [one for found in each for one in found or ()]
    leaf = read_leaf(node)
    if leaf is None or not leaf.is_on(column):
        return None
    match to_bounds(leaf.test):
        case Among(values, False):
            return [Range(end, end) for v in values for end in [_end(v)]]
        case Compare(("<" | "<=") as operator, value):
            return [Range(None, _end(value), high_open=operator == "<")]
        case Compare(operator, value):
            return [Range(_end(value), None, low_open=operator == ">")]
        case Affix(_, text, False):
            return [Range(text.encode(), successor(text.encode()), high_open=True)]
    return None


def _met(ones: list[Range], others: list[Range]) -> list[Range]:
    """Intersect two unions of ranges; too many pairs, and the first stands for both."""
    if len(ones) * len(others) > _MOST_RANGES:
        return ones
    return [met for one in ones for other in others if not (met := one.meet(other)).is_empty]


def _end(value: Any) -> Any:
    """Return a value as an end of a range: text is its bytes."""
    return value.encode() if isinstance(value, str) else value


# --- kinds of ends: in Python, in a manifest, in a column ------------------------------------------------------------

_ENDS = (bool, int, float, Decimal, bytes, date, datetime, time, timedelta)


def _is_end(value: Any) -> bool:
    """Whether a range can end with a value: one of a kind that has an order, and not NaN."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return type(value) in _ENDS and not (isinstance(value, float) and math.isnan(value))


def _kinds(spark_type: str) -> tuple[type, ...]:
    """Return the Python types of ends that fit a Spark type; ``int`` is also the physical form of times."""
    if spark_type in ("string", "binary"):
        return (bytes,)
    if spark_type in FLOATING:
        return (float, int)
    if spark_type == "boolean":
        return (bool,)
    if spark_type == "date":
        return (int, date)
    if spark_type in ("timestamp", "timestamp_ntz"):
        return (int, datetime, date)
    if spark_type.startswith("decimal"):
        return (Decimal, int)
    if spark_type.startswith("time("):
        return (int, time)
    if spark_type.startswith("interval") and not spark_type.startswith(("interval year", "interval month")):
        return (int, timedelta)
    return (int,)


def _to_json(end: Any) -> Any:
    """Return an end as a JSON value; what JSON has no form of is an object that names its kind."""
    match end:
        case bytes():
            return {"bytes": end.hex()}
        case Decimal():
            return {"decimal": str(end)}
        case datetime() | date() | time():
            return {type(end).__name__: end.isoformat()}
        case timedelta():
            return {"timedelta": end // timedelta(microseconds=1)}
        case float() if math.isinf(end):
            return {"float": str(end)}
    return end


_FROM_JSON: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda micros: timedelta(microseconds=micros),
    "float": float,
}


def _from_json(kept: Any) -> Any:
    """Read what ``_to_json`` gave."""
    if not isinstance(kept, dict):
        return kept
    ((kind, text),) = kept.items()
    return _FROM_JSON[kind](text)


def _ordered(end: Any, type_: pa.DataType) -> Any:
    """Return an end in the ordered form of a column's type, rounded or cut to what that holds."""
    if pa.types.is_binary(type_):
        return end[: BOUND_BYTES + 1]
    if pa.types.is_floating(type_):
        return _float(end, np.finfo(np.float32 if pa.types.is_float32(type_) else np.float64))
    if pa.types.is_decimal(type_):
        most = 10**type_.precision - 1
        unscaled = int(_EXACT.scaleb(Decimal(end), type_.scale).to_integral_value(context=_EXACT))
        return _EXACT.scaleb(Decimal(max(-most, min(most, unscaled))), -type_.scale)
    top = 1 << (type_.bit_width - 1)
    return max(-top, min(top - 1, _physical(end, days=pa.types.is_int32(type_))))


def _float(end: Any, holds: np.finfo[Any]) -> float:
    """Return a number as the nearest finite one that a type holds; infinities stay."""
    if isinstance(end, float) and math.isinf(end):
        return end
    return float(holds.dtype.type(max(float(holds.min), min(float(holds.max), end))))


def _physical(end: Any, *, days: bool) -> int:
    """Return a whole number, a truth value, or a calendar value as Spark stores it: in days or in microseconds."""
    match end:
        case datetime():
            since = end.replace(tzinfo=end.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return since.days if days else since // timedelta(microseconds=1)
        case date():
            since_epoch = end.toordinal() - date(1970, 1, 1).toordinal()
            return since_epoch if days else since_epoch * 86_400_000_000
        case time():
            return ((end.hour * 60 + end.minute) * 60 + end.second) * 1_000_000_000 + end.microsecond * 1000
        case timedelta():
            return end // timedelta(microseconds=1)
    return int(end)
