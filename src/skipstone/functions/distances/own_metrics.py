"""Metrics of the user's own: registered functions of two arguments, which only Spark can compute.

While an index is built Spark computes the distances of the rows from the given origins.  For a query the distance of
its literal from the origins is wanted as well: it is 0 when the literal is one of them; for any other the function must
have been vouched for (``skipstone.distances.vouch_for``), which also leaves here the means to compute it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.errors import SettingError
from skipstone.functions.distances.metric import Asked, Measured, Metric, Tolerance, is_number
from skipstone.functions.distances.metrics import METRICS
from skipstone.toolkit.values import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from skipstone.expressions.tree import Call, Literal

__all__ = ["OwnMetric", "Vouched", "find_metric", "sql_literal", "vouched"]

_NUMBER = r"(?:tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\))"
_SCALAR, _ARRAY = re.compile(_NUMBER), re.compile(rf"array<({_NUMBER})>")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WHOLE_LIMIT = 2.0**52
_ROUNDED = {"float": 1e-4}
_USUALLY_ROUNDED = 1e-9


@dataclass(frozen=True, slots=True)
class Vouched:
    """A function that its author says is a metric, and how to compute SQL calls of it.

    ``identity`` is that of the function's calls in a query; ``compute`` gives ``None`` when the function registered
    under the name is no longer that one.
    """

    identity: str
    compute: Callable[[Sequence[str]], Sequence[float | None] | None]


vouched: dict[str, Vouched] = {}
"""The functions that were vouched for in this process, by their name in lower case."""


@dataclass(frozen=True, slots=True)
class OwnMetric(Metric):
    """A registered function that is a metric on a column's values."""

    takes = "values like its origins"

    name: str

    @property
    def identities(self) -> tuple[str, ...]:
        """The function itself, whichever is registered when an index is made."""
        return (self.name,)

    def origin(self, given: Any) -> Any:
        """Make an origin canonical: text, a number, or a tuple of numbers."""
        if isinstance(given, str):
            return given
        if is_number(given):
            return _plain(given)
        numbers = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(numbers, list | tuple) and numbers and all(map(is_number, numbers)):
            return tuple(map(_plain, numbers))
        msg = f"the origin {given!r} is not a point: give text, a finite number, or a list of finite numbers"
        raise SettingError(msg)

    def kind(self, point: Any) -> int:
        """Return a number for the kind of a point: text, number, or tuple of a length."""
        return len(point) if isinstance(point, tuple) else -1 if isinstance(point, str) else -2

    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:
        """Whether the origins are values that a column of this type may hold."""
        match origins[0]:
            case str():
                return spark_type == "string"
            case tuple():
                numbers = [number for origin in origins for number in origin]
                return _ARRAY.fullmatch(spark_type) is not None and _fit(numbers, _element(spark_type))
        return _SCALAR.fullmatch(spark_type) is not None and _fit(origins, spark_type)

    def inputs(self, column: str, spark_type: str, origins: Sequence[Any]) -> tuple[str, ...]:
        """Ask Spark whether a row has a value, and for its distances."""
        calls = (self._call(quoted(column), sql_literal(origin, spark_type)) for origin in origins)
        return (f"{quoted(column)} IS NULL", *calls)

    def _call(self, one: str, other: str) -> str:
        """Spell a call in SQL, as a double."""
        return f"CAST({self.name}({one}, {other}) AS DOUBLE)"

    def measured(self, columns: Sequence[pa.Array], origins: Sequence[Any]) -> Measured | None:
        """Take the distances that Spark computed; one that is missing or not finite leaves them all unknown."""
        missing, *computed = columns
        present = ~missing.to_numpy(zero_copy_only=False)
        found = []
        for origin, column in zip(origins, computed, strict=True):
            known = column.is_valid().to_numpy(zero_copy_only=False)
            distances = column.drop_null().to_numpy()
            if (distances < 0).any():
                msg = f"{self.name} is not a metric: it gave the distance {distances.min()} from the origin {origin!r}"
                raise ValueError(msg)
            if not known[present].all() or not np.isfinite(distances).all():
                return None
            found.append(distances)
        return Measured(tuple(found))

    def asked(
        self, call: Call, spark_type: str, literal: Literal, origins: Sequence[Any] | None, *, mirrored: bool
    ) -> Asked | None:
        """Find the distances of the literal from the origins, as far as they are known.

        The distance of a value from an origin is what was computed, with the value first: that the function gives the
        same when it comes second (``mirrored``) is for its author to vouch.
        """
        if call.name.lower() != self.name.lower() or not call.kind or len(call.arguments) != 2:
            return None
        if _is_not_finite(literal.value) or not _is_spelled(literal.type):
            return None
        given = origins or ()
        same = [literal.type == spark_type and _same(origin, literal.value, spark_type) for origin in given]
        if any(same) and not mirrored:
            slack = _USUALLY_ROUNDED if call.type.startswith("decimal") else 0.0
            return Asked(Tolerance(slack), tuple(0.0 if here else None for here in same))
        known = vouched.get(self.name.lower())
        if known is None or known.identity != call.identity:
            return None
        other = sql_literal(literal.value, literal.type)
        found = known.compute([self._call(sql_literal(origin, spark_type), other) for origin in given])
        if found is None:
            return None
        if call.type in _WHOLE:
            return Asked(Tolerance(limit=_WHOLE_LIMIT), tuple(found))
        return Asked(Tolerance(_ROUNDED.get(call.type, _USUALLY_ROUNDED)), tuple(found))


def find_metric(name: str) -> Metric:
    """Return the metric of a name: one that comes with Skipstone, or else the registered function of that name."""
    return METRICS.get(name) or OwnMetric(name)


def _plain(number: Any) -> int | float:
    """Return a number as the manifest can keep it."""
    return int(number) if isinstance(number, int | np.integer) else float(number)


def _fit(numbers: Sequence[Any], spark_type: str) -> bool:
    """Whether a type of whole numbers, if it is one, can hold such numbers."""
    return spark_type not in _WHOLE or all(isinstance(number, int) for number in numbers)


def _is_spelled(spark_type: str) -> bool:
    """Whether literals of a type can be written in SQL here."""
    return spark_type == "string" or any(shape.fullmatch(spark_type) for shape in (_SCALAR, _ARRAY))


def sql_literal(value: Any, spark_type: str) -> str:
    """Write a value in SQL, exactly, whatever the session's settings are.

    Examples
    --------
    >>> sql_literal("it's", "string"), sql_literal((1.5, 2), "array<float>")
    ("CAST(X'69742773' AS STRING)", "array(CAST('1.5' AS float), CAST('2' AS float))")
    """
    if isinstance(value, str):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if isinstance(value, tuple):
        return f"array({', '.join(sql_literal(number, _element(spark_type)) for number in value)})"
    return f"CAST('{value}' AS {spark_type})"


def _same(origin: Any, value: Any, spark_type: str) -> bool:
    """Whether a literal of the column's type is what an origin is when written in that type."""
    match origin, value:
        case str(), str():
            return origin == value
        case tuple(), tuple():
            element = _element(spark_type)
            return len(origin) == len(value) and all(_same(o, v, element) for o, v in zip(origin, value, strict=True))
        case (str() | tuple(), _) | (_, str() | tuple()):
            return False
    rounded = _single(origin) if spark_type == "float" else origin
    return rounded is not None and bool(rounded == value) and math.copysign(1, rounded) == math.copysign(1, value)


def _single(number: float) -> float | None:
    """Return the single-precision number that Spark reads where a number is written; ``None`` next to a tie.

    What is written is not quite the number but nearer to it than to its neighbours; where all of these are rounded to
    the same, so is what is written.
    """
    near = [np.float32(math.nextafter(number, away)) for away in (-math.inf, math.inf)]
    return float(near[0]) if near[0] == near[1] else None


def _element(spark_type: str) -> str:
    """Return the type of an array's elements."""
    return spark_type.removeprefix("array<").removesuffix(">")


def _is_not_finite(value: Any) -> bool:
    """Whether a literal is NULL, NaN or infinite, in the whole or in a part."""
    if isinstance(value, tuple):
        return any(map(_is_not_finite, value))
    return value is None or (isinstance(value, float) and not math.isfinite(value))
