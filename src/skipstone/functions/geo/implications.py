"""What functions on geometries imply of the columns that they are given, for the set registered here and for Sedona's.

Both come down to one thing.  If a predicate such as ``ST_Contains(G, p)`` is TRUE then ``p`` and ``G`` have a point in
common, if ``ST_Distance(G, p) <= r`` then they have points within ``r`` of one another.  Hence, for a constant ``G``
that is not empty:

* the coordinates of ``p`` lie within the bounds of ``G``, ``r`` and a margin for rounding added on each side (or one of
  them is NaN, infinite or very large: nothing is relied on of what a library makes of that, see ``shapes.TRUSTED``),
  which every index on the columns serves; and
* ``meets(p, G, r)``, which only a GeoBox index serves, since it holds for a box around ``p``, too.

Where ``p`` is NULL, so is the predicate, and no row of it is kept.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skipstone.expressions.ranges import between
from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    EqualTo,
    Expression,
    GreaterThan,
    LessThan,
    LessThanOrEqual,
    Literal,
    Not,
    Or,
)
from skipstone.expressions.types import FLOATING
from skipstone.functions.geo.envelopes import GeometryError
from skipstone.functions.geo.shapes import MEETS, TRUSTED, Shape
from skipstone.querying.implication import Implication, NotTheSameFunctionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GeoFunction", "RegisteredFunctions", "SedonaFunctions"]

SEDONA_CLASSES = "org.apache.spark.sql.sedona_sql.expressions."
SEDONA_TYPE = "udt:org.apache.spark.sql.sedona_sql.UDT.GeometryUDT"

_COMMON_POINT = frozenset(
    ("contains", "within", "covers", "coveredby", "intersects", "touches", "overlaps", "crosses", "equals")
)
_POINTS = frozenset(("point", "makepoint", "pointz", "pointm", "pointzm"))
_FROM_TEXT = frozenset(("geomfromwkt", "geomfromtext", "geometryfromtext", "wkttosql", "geomfromewkt"))
_FROM_BYTES = frozenset(("geomfromwkb", "geomfromewkb"))
_SAME_PLACE = frozenset(("setsrid",))
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\s?-?\d+\)")


@dataclass(frozen=True, slots=True)
class GeoFunction:
    """What a call is known to do.

    ``operation`` is its usual name in lower case, without ``ST_``; ``lat_first`` says what a pair of numbers means;
    ``name`` is the name under which a set of functions has it.
    """

    operation: str
    lat_first: bool = False
    name: str = ""


class _GeoFunctions(Implication):
    """What is common to sets of functions: how they are known, and how their constants are, differs."""

    @abstractmethod
    def function(self, call: Call) -> GeoFunction | None:
        """Return what a call does, or ``None`` when it is none of the set's."""

    @abstractmethod
    def constant(self, expression: Expression) -> str | bytes | None:
        """Return a geometry that is the same for all rows, as text or bytes."""

    def implied(self, leaf: Expression) -> Expression | None:
        """Return the bounds of the coordinates, and that the place meets the geometry; the module's text says why.

        ``NOT ST_Disjoint(a, b)`` is TRUE only if ``a`` and ``b`` have a point in common: that is its definition.
        """
        match leaf:
            case Call(arguments=arguments):
                function = self.function(leaf)
                if function is None:
                    return None
                if function.operation in _COMMON_POINT:
                    return self._near(function, arguments, 0.0)
                if function.operation == "dwithin":
                    return self._within_distance(function, arguments)
            case Not(Call(arguments=arguments) as call):
                function = self.function(call)
                if function is not None and function.operation == "disjoint":
                    return self._near(function, arguments, 0.0)
            case LessThan(call, Literal(far)) | LessThanOrEqual(call, Literal(far)) | EqualTo(call, Literal(far)):
                function = self.function(call) if isinstance(call, Call) else None
                if function is not None and function.operation == "distance":
                    return self._near(function, call.children, far)
        return None

    def _within_distance(self, function: GeoFunction, arguments: tuple[Expression, ...]) -> Expression | None:
        """Return what it implies that a test of distances is TRUE; one on the sphere is not for us."""
        match arguments:
            case (one, other, Literal(far)) | (one, other, Literal(far), Literal(False)):
                return self._near(function, (one, other), far)
        return None

    def _near(self, function: GeoFunction, arguments: tuple[Expression, ...], distance: Any) -> Expression | None:
        """Return what it implies that two geometries come within a distance, if one of them is constant.

        The other may be given by two numbers.
        """
        if isinstance(distance, bool | str | bytes) or distance is None or not 0 <= float(distance) < math.inf:
            return None
        match arguments:
            case (one, first, second):
                return self._implied_of(self.constant(one), _pair(function, first, second), float(distance))
            case (one, other):
                for constant, subject in ((one, other), (other, one)):
                    geometry = self.constant(constant)
                    if geometry is not None:
                        return self._implied_of(geometry, self._place(subject), float(distance))
        return None

    def _place(self, subject: Expression) -> tuple[Expression, ...]:
        """Return the x and y of a point, or a column of geometries; nothing when it is neither."""
        match subject:
            case Column(type=type_):
                return (subject,) if self.is_geometry(type_) else ()
            case Call(arguments=(first, *rest)):
                function = self.function(subject)
                if function is None:
                    return ()
                if function.operation in _POINTS and rest:
                    return _pair(function, first, rest[0])
                if function.operation in _SAME_PLACE:
                    return self._place(first)
                wanted = "string" * (function.operation in _FROM_TEXT) + "binary" * (function.operation in _FROM_BYTES)
                return (first,) if isinstance(first, Column) and first.type == wanted else ()
        return ()

    @abstractmethod
    def is_geometry(self, type_: str) -> bool:
        """Whether a column of a type holds geometries."""

    def _implied_of(
        self, geometry: str | bytes | None, place: tuple[Expression, ...], distance: float
    ) -> Expression | None:
        """Return what it implies that a place comes within a distance of a geometry."""
        try:
            shape = None if geometry is None else Shape.of(geometry)
        except GeometryError:
            return None
        if shape is None or not place:
            return None
        margin = shape.margin(distance)
        terms: list[Expression] = []
        if len(place) > 1:
            for subject, low, high in zip(place, shape.bounds[:2], shape.bounds[2:], strict=True):
                terms += _within(subject, low - margin, high + margin)
        columns = tuple(column for subject in place if (column := _exact_column(subject)) is not None)
        if len(columns) == len(place) and len(set(columns)) == len(columns):
            literals = (
                Literal(geometry, "string" if isinstance(geometry, str) else "binary"),
                Literal(distance, "double"),
            )
            terms.append(Call(MEETS, (*columns, *literals), "boolean"))
        return And(tuple(terms)) if len(terms) > 1 else (terms[0] if terms else None)


def _pair(function: GeoFunction, first: Expression, second: Expression) -> tuple[Expression, Expression]:
    """Return x and y, the longitude and the latitude, of two arguments."""
    return (second, first) if function.lat_first else (first, second)


def _within(subject: Expression, low: float, high: float) -> list[Expression]:
    """Return predicates: a coordinate, as a double, lies in bounds or is not reliable; NaN is the greatest number.

    Each coordinate is bounded for itself: where one is finite and out of bounds, the envelopes do not meet, no ray from
    the point crosses an edge, and no distance is small, whatever the other is.
    """
    if not isinstance(subject, Column | Cast) or not _NUMBER.fullmatch(subject.type):
        return []
    bounded = between(subject if subject.type in FLOATING else Cast(subject, "double"), low, high)
    if bounded is None:
        return []
    column: Expression = subject
    while isinstance(column, Cast):
        column = column.child
    if isinstance(column, Column) and column.type in FLOATING:
        large, small = Literal(TRUSTED, column.type), Literal(-TRUSTED, column.type)
        return [Or((bounded, GreaterThan(column, large), LessThan(column, small)))]
    return [bounded]


def _exact_column(subject: Expression) -> Column | None:
    """Return the column whose values, as the nearest doubles, a function is given; a geometry column as it is."""
    while isinstance(subject, Cast) and subject.type == "double":
        subject = subject.child
    return subject if isinstance(subject, Column) else None


@dataclass(frozen=True)
class RegisteredFunctions(_GeoFunctions):
    """The functions that ``skipstone.geo.register`` registered, by what tells them from others of their names.

    A function of one of these names that is not one of these is not known: it may do anything.
    """

    known: Mapping[str, GeoFunction]
    names: frozenset[str]
    evaluate: Any = field(repr=False)

    def function(self, call: Call) -> GeoFunction | None:
        """Know a function by its identity."""
        if call.kind not in ("python", "java", "scala") or call.name.lower() not in self.names:
            return None
        found = self.known.get(call.identity)
        if found is None:
            msg = f"{call.name} is not the function that skipstone.geo.register made; call that again to have it back"
            raise NotTheSameFunctionError(msg)
        return found

    def constant(self, expression: Expression) -> str | bytes | None:
        """Evaluate literals and calls on them: Spark does not evaluate Python functions of constants beforehand."""
        found = self._value(expression)
        return found if isinstance(found, str | bytes) else None

    def _value(self, expression: Expression) -> Any:
        """Evaluate literals and calls on them; ``None`` for what is not constant."""
        match expression:
            case Literal(value, type_) if _NUMBER.fullmatch(type_) or type_ in ("string", "binary"):
                return value
            case Cast(Literal() as child, "double") if _NUMBER.fullmatch(child.type):
                return None if child.value is None else float(child.value)
            case Call(arguments=arguments) if arguments and (function := self.function(expression)) is not None:
                values = [self._value(argument) for argument in arguments]
                return None if None in values else self.evaluate(function, values)
        return None

    def is_geometry(self, type_: str) -> bool:
        """Whether it is text or bytes."""
        return type_ in ("string", "binary")

    def __str__(self) -> str:
        return "skipstone.geo"


@dataclass(frozen=True)
class SedonaFunctions(_GeoFunctions):
    """Apache Sedona's functions, known by the classes of their expressions; x, the longitude, comes first."""

    def function(self, call: Call) -> GeoFunction | None:
        """Know a function by its class."""
        if call.kind or not call.class_name.startswith(f"{SEDONA_CLASSES}ST_"):
            return None
        return GeoFunction(call.class_name.removeprefix(f"{SEDONA_CLASSES}ST_").lower())

    def constant(self, expression: Expression) -> str | bytes | None:
        """Take a literal: Spark has evaluated functions of constants."""
        match expression:
            case Literal(str(text), type_) if self.is_geometry(type_):
                return text
            case Call(arguments=(Literal(str(text), "string"), *_)):
                function = self.function(expression)
                return text if function is not None and function.operation in _FROM_TEXT else None
        return None

    def is_geometry(self, type_: str) -> bool:
        """Whether it is Sedona's own type."""
        return type_.startswith(SEDONA_TYPE)

    def __str__(self) -> str:
        return "Apache Sedona"
