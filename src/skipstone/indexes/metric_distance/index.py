"""The MetricDist index: an origin, and the least and the greatest distance from it in each object (paper, table I)."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import Call, Column, Comparison, In, Literal
from skipstone.functions.distances.metrics import METRICS
from skipstone.functions.distances.own_metrics import find_metric
from skipstone.functions.distances.vector_metrics import one_less_cosine
from skipstone.functions.distances.vectors import read_vectors
from skipstone.indexes.metric_distance.balls import Ball, Cloud
from skipstone.indexing.environment import MACHINE
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause, disjunction
from skipstone.querying.filter import Filter
from skipstone.toolkit.values import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Expression
    from skipstone.functions.distances.metric import ComputedMetric, Metric, Tolerance
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata

    Floats = npt.NDArray[np.float64]

__all__ = ["MetricDistanceClause", "MetricDistanceFilter", "MetricDistanceIndex", "MetricDistanceMetadata"]

_MOST_KINDS = 16
_NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MOST_EXACT = 2**53 - 1  # every whole number beyond it is a double beyond it
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class MetricDistanceMetadata(MetadataType):
    """The points of some rows by their kind (vectors of one length), for an origin that is chosen at the end.

    Only points of one kind have distances, so an object of vectors of several lengths is described by the most frequent
    one; a literal of any other is not served.  ``clouds`` is ``None`` when the points are not known.
    """

    metric: ComputedMetric
    element: np.dtype[Any]
    clouds: Mapping[int, Cloud] | None
    non_finite: bool = False

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        bounds = {"lower": pa.list_(pa.float64()), "upper": pa.list_(pa.float64()), "non_finite": pa.bool_()}
        return {"origin": _origin_type(inputs[0]), **bounds}

    def merge(self, other: Self) -> Self:
        non_finite = self.non_finite or other.non_finite
        if self.clouds is None or other.clouds is None:
            return replace(self, clouds=None, non_finite=non_finite)
        clouds = dict(self.clouds)
        for kind, cloud in other.clouds.items():
            mine = clouds.get(kind)
            clouds[kind] = cloud if mine is None else mine.merge(cloud, self.metric, self.element)
        return replace(self, clouds=clouds if len(clouds) <= _MOST_KINDS else None, non_finite=non_finite)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        if self.clouds is None:
            return {"origin": None, "lower": None, "upper": None, "non_finite": self.non_finite}
        if not self.clouds:
            return {"origin": None, **_stored([Ball(None)]), "non_finite": self.non_finite}
        kind = max(self.clouds, key=lambda kind: (self.clouds[kind].count, -kind))  # type: ignore[index]
        ball = self.clouds[kind].ball(self.metric, self.element)
        origin = ball.origin if isinstance(ball.origin, str) else np.array(ball.origin).astype(self.element).tolist()
        return {"origin": origin, **_stored([ball]), "non_finite": self.non_finite}


@dataclass(frozen=True, slots=True)
class GivenOriginsMetadata(MetadataType):
    """The distances of some rows from origins that were given; ``balls`` is ``None`` when they are not known."""

    balls: tuple[Ball, ...] | None
    non_finite: bool = False

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        return MetricDistanceMetadata.fields(inputs)

    def merge(self, other: Self) -> Self:
        balls = None
        if self.balls is not None and other.balls is not None:
            balls = tuple(
                Ball(one.origin, min(one.lower, two.lower), max(one.upper, two.upper))
                for one, two in zip(self.balls, other.balls, strict=True)
            )
        return replace(self, balls=balls, non_finite=self.non_finite or other.non_finite)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        bounds = {"lower": None, "upper": None} if self.balls is None else _stored(self.balls)
        return {"origin": None, **bounds, "non_finite": self.non_finite}


def _stored(balls: Sequence[Ball]) -> dict[str, list[float]]:
    """Return the bounds as they are stored, one for each origin."""
    return {"lower": [ball.lower for ball in balls], "upper": [ball.upper for ball in balls]}


def _origin_type(type_: pa.DataType) -> pa.DataType:
    """Return the stored type of an origin: that of the column's values, with offsets of 32 bits."""
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return pa.string()
    return pa.list_(_element_type(type_))


def _element_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column's coordinates."""
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    return type_.value_type if is_list else pa.float64()


@dataclass(frozen=True)
class MetricDistanceIndex(Index):
    """The least and the greatest distance of a column's values from an origin, in each object.

    Parameters
    ----------
    column
        The column: an array of numbers, a string, a point.
    metric
        ``euclidean``, ``manhattan``, ``haversine``, ``angular``, ``levenshtein``, or the name of a registered function
        of two arguments that is a metric (then give ``origins``).
    origins
        Points from which distances are kept in every object; when not given, each object has one origin of its own,
        in the middle of its values.

    Examples
    --------
    >>> MetricDistanceIndex("embedding").name
    'metricdistance(embedding)'
    >>> MetricDistanceIndex("word", metric="levenshtein", origins=["skip", "stone"]).name
    "metricdistance(word, metric='levenshtein', origins=('skip', 'stone'))"
    """

    metadata_type = MetricDistanceMetadata

    column: str
    metric: str = field(default="euclidean", kw_only=True)
    origins: Sequence[Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if _NAMED.fullmatch(str(self.metric)) is None:
            msg = f"metric={self.metric!r} is no metric: give {_known()}, or the name of a registered function"
            raise SettingError(msg)
        if self.origins is None and self.metric not in METRICS:
            msg = (
                f"metric={self.metric!r} is none of {_known()}; if it is a registered function, give origins=, the "
                "points from which to keep distances"
            )
            raise SettingError(msg)
        if self.origins is not None:
            object.__setattr__(self, "origins", self._checked(self.origins))
        super().__post_init__()

    def _checked(self, given: Any) -> tuple[Any, ...]:
        """Make the origins canonical: at least one, all of one kind, each once."""
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            msg = f"origins={given!r} is not a list of points: give a list, also for a single one"
            raise SettingError(msg)
        metric = self.measure
        origins = tuple(dict.fromkeys(metric.origin(point) for point in given))
        if not origins:
            msg = "origins=[] has no point: give at least one, or leave it out to have one chosen for each object"
            raise SettingError(msg)
        if len({metric.kind(origin) for origin in origins}) > 1:
            msg = f"origins={list(given)!r} are of several kinds: give points that have distances from one another"
            raise SettingError(msg)
        return origins

    def _default_name(self) -> str:
        """Name long origins by their number and a digest."""
        name, spelled = super()._default_name(), f"origins={self.origins!r}"
        if self.origins is None or len(name) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(spelled.encode()).hexdigest()[:8]
        return name.replace(spelled, f"{len(self.origins)} origins {digest}")

    @property
    def measure(self) -> Metric:
        """The metric itself."""
        return find_metric(self.metric)

    @property
    def functions(self) -> tuple[str, ...] | Mapping[str, str]:
        """The functions in a query that give this metric's distances; Spark's own are not among them."""
        return self.measure.identities

    def supports(self, types: tuple[str, ...]) -> bool:
        return self.measure.supports(types[0], self.origins or ())

    def check_types(self, types: tuple[str, ...]) -> None:
        if not self.supports(types):
            wanted = self.measure.takes
            msg = (
                f"{self.name} cannot be built: {self.column} is {types[0]}, but the metric {self.metric} takes {wanted}"
            )
            raise UnsupportedTypeError(msg)

    @property
    def evaluated(self) -> tuple[str, ...]:
        return (MACHINE,)  # settings that reach the function are part of its identity

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:
        return self.measure.inputs(self.column, types[0], self.origins or ())

    def collect_metadata(self, rows: pa.RecordBatch) -> MetadataType:
        if self.origins is None:
            return self._collect_points(METRICS[self.metric], rows.column(0))
        measured = self.measure.measured(rows.columns, self.origins)
        if measured is None:
            return GivenOriginsMetadata(None)
        found = zip(self.origins, measured.distances, strict=True)
        return GivenOriginsMetadata(
            tuple(Ball(origin).holding(distances) for origin, distances in found), measured.non_finite
        )

    @staticmethod
    def _collect_points(metric: ComputedMetric, column: pa.Array) -> MetricDistanceMetadata:
        """Keep the points, of which an origin is chosen at the end."""
        found = metric.find(column)
        element = np.dtype(_element_type(column.type).to_pandas_dtype())
        if found is None or len(found.points) > _MOST_KINDS:
            return MetricDistanceMetadata(metric, element, None)
        clouds = {kind: Cloud(len(points), (points,)) for kind, points in found.points.items()}
        return MetricDistanceMetadata(metric, element, clouds, found.non_finite)

    def filters(self) -> tuple[Filter, ...]:
        return (MetricDistanceFilter(self),)


def _known() -> str:
    """Name the metrics that come with Skipstone."""
    return ", ".join(METRICS)


@dataclass(frozen=True, slots=True)
class MetricDistanceClause(Clause):
    """Some value might lie at such a distance from a point.

    ``between`` has the point's distances from the given origins, ``None`` where it is not known; it is ``None`` itself
    when every object has an origin of its own.
    """

    index: MetricDistanceIndex
    operator: str
    radius: float
    point: Any
    between: tuple[float | None, ...] | None
    tolerance: Tolerance
    cosine: bool = False
    predicate: str = ""

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Hold the radius against what the triangle inequality leaves possible; then add what is not finite."""
        lower, upper = (metadata.field(self.index, name) for name in ("lower", "upper"))
        if not len(metadata) or pa.types.is_null(lower.type) or pa.types.is_null(upper.type):
            return unknown(len(metadata))
        ordinary = self._ordinary_might_match(metadata, lower, upper)
        if not self._counts_non_finite:
            return ordinary
        non_finite = metadata.field(self.index, "non_finite")
        return pc.or_kleene(ordinary, non_finite) if pa.types.is_boolean(non_finite.type) else unknown(len(metadata))

    def _ordinary_might_match(self, metadata: Metadata, lower: pa.Array, upper: pa.Array) -> pa.BooleanArray:
        """Answer for the values that have a finite distance from the origin."""
        count = 1 if self.between is None else len(self.between)
        bounds = [read_vectors(array) for array in (lower, upper)]
        rows = np.flatnonzero((bounds[0].lengths == count) & (bounds[1].lengths == count))
        lowers, uppers = (array.matrix(rows, count) for array in bounds)
        between = self._own_origins(metadata)[rows, np.newaxis] if self.between is None else _floats(self.between)
        empty = (lowers > uppers).any(axis=1)
        usable = (between >= 0) & (between < self.tolerance.limit)  # NaN where not known
        with np.errstate(all="ignore"):
            least, greatest = self.tolerance.reach(lowers, uppers, between)
        least, greatest = np.where(usable, least, 0.0).max(axis=1), np.where(usable, greatest, np.inf).min(axis=1)
        possible = self._holds(least, greatest) & ~empty
        known = empty | np.broadcast_to(usable, lowers.shape).any(axis=1)
        answer, certain = np.ones(len(metadata), np.bool_), np.zeros(len(metadata), np.bool_)
        answer[rows], certain[rows] = possible, known
        return pa.array(answer, mask=~certain)

    def _own_origins(self, metadata: Metadata) -> Floats:
        """Compute the point's distances from the objects' origins; NaN where there is none of its kind."""
        origins = metadata.field(self.index, "origin")
        if pa.types.is_null(origins.type):
            return np.full(len(metadata), np.nan)
        return METRICS[self.index.metric].from_origins(origins, self.point)

    def _holds(self, least: Floats, greatest: Floats) -> npt.NDArray[np.bool_]:
        """Compare the possible results of the function in the query with the radius."""
        if self.cosine:
            slack = 2 * self.tolerance.absolute
            nearest, farthest = np.clip(least, 0.0, math.pi), np.clip(greatest, 0.0, math.pi)
            least, greatest = one_less_cosine(nearest) - slack, one_less_cosine(farthest) + slack
        match self.operator:
            case "<":
                return least < self.radius
            case "<=":
                return least <= self.radius
            case ">":
                return greatest > self.radius
            case ">=":
                return greatest >= self.radius
        return (least <= self.radius) & (greatest >= self.radius)

    @property
    def _counts_non_finite(self) -> bool:
        """Whether a distance that is NaN or infinite may satisfy the predicate."""
        return self.operator in (">", ">=") or self.radius == math.inf

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The bounds; the origin if it is the object's own, and whether there is what is not finite if that matters."""
        names = ["lower", "upper"]
        if self.between is None:
            names.append("origin")
        if self._counts_non_finite:
            names.append("non_finite")
        return tuple((self.index, name) for name in names)

    def __str__(self) -> str:
        return f"{self.index.name}[{self.predicate}]"


def _floats(numbers: Sequence[float | None]) -> Floats:
    """Return numbers as an array, NaN for ``None``."""
    return np.array([math.nan if number is None else number for number in numbers], np.float64)


@dataclass(frozen=True, slots=True)
class MetricDistanceFilter(Filter):
    """Labels comparisons of a distance with ``MetricDistanceClause``.

    ``D(x, q)`` is what the function computes for a value ``x`` of the column and the literal ``q``, in either order.
    An object's values are of four sorts:

    * those whose distance from ``q`` is NULL: NULL itself, arrays with a NULL in them, without a direction or off the
      globe, and vectors of another length than ``q``.  They satisfy no comparison, so nothing is kept of them.  Bounds
      are of the vectors that are as long as the origin; for a literal of another length the object is unknown;
    * those with a NaN or infinite coordinate.  ``q`` is finite, so ``D`` is NaN or ∞, which in Spark is greater than
      every number.  ``non_finite`` says whether the object has any;
    * those of which nothing could be computed (text that is not UTF-8): then the bounds are unknown;
    * all others: ``L ≤ D(x, o) ≤ U`` for each origin ``o``.  The triangle inequality bounds ``D(x, q)`` from below by
      ``l = max(0, L - D(o,q), D(o,q) - U)`` and from above by ``u = U + D(o,q)``, each moved outwards by the rounding
      errors (``Tolerance.reach`` has the proof), each the tightest of all origins.  ``L > U`` says that there are none.

    ===================== ==============================================================================================
    predicate             kept when (unknown bounds, or ``D(o,q)`` not finite: unknown, kept)
    ===================== ==============================================================================================
    ``D(c, q) < r``       ``l < r``; NaN and ∞ are not below ``r``
    ``D(c, q) <= r``      ``l ≤ r``; or ``non_finite`` if ``r = ∞``
    ``D(c, q) = r``       ``l ≤ r ≤ u``; or ``non_finite`` if ``r = ∞``.  IN is the OR of its equalities
    ``D(c, q) > r``       ``u > r``, where an ``u`` that may overflow is ∞; or ``non_finite``
    ``D(c, q) >= r``      ``u ≥ r``, likewise; or ``non_finite``
    ===================== ==============================================================================================

    ``r = NaN`` is not served: every number is below it.

    Which functions give ``D``: those of ``skipstone.distances`` by their names (that they are these is for the planner
    to check); Spark's ``levenshtein`` of two arguments, known by its class (with a third, a threshold, it gives -1 for
    what is farther); Spark's ``vector_l2_distance``, whose tolerance is that of numbers of 24 bits.
    ``cosine_distance`` is ``1 - cos`` of the angle, which obeys no triangle inequality itself but grows with the angle,
    so the angle's bounds are turned into bounds of it.

    A function of the user's own is taken to be a metric up to a relative error of 1e-9 (1e-4 for floats) and NULL for
    NULL, for which its author vouches; if ``q`` is an origin and comes second, ``[L, U]`` are the bounds themselves and
    nothing is assumed.  A value without a finite distance from some origin leaves the object unknown.
    """

    index: MetricDistanceIndex

    def label_node(self, node: Expression) -> Clause | None:
        match node:
            case In(Call() as call, options):
                terms = [self._clause("=", call, option, node) for option in options]
                return disjunction([term for term in terms if term is not None]) if None not in terms else None
            case Comparison(Call() as call, radius) if type(node) in _OPERATORS:
                return self._clause(_OPERATORS[type(node)], call, radius, node)
        return None

    def _clause(self, operator: str, call: Call, radius: Expression, node: Expression) -> Clause | None:
        """Make the clause of one comparison, if the call is a distance of the column from a literal."""
        if not isinstance(radius, Literal) or not _is_radius(radius.value):
            return None
        match call.arguments:
            case (Column(self.index.column, type_), Literal() as literal, *_):
                mirrored = False
            case (Literal() as literal, Column(self.index.column, type_), *_):
                mirrored = True
            case _:
                return None
        asked = self.index.measure.asked(call, type_, literal, self.index.origins, mirrored=mirrored)
        if asked is None:
            return None
        distance = (asked.point, asked.between, asked.tolerance, asked.cosine)
        return MetricDistanceClause(self.index, operator, float(radius.value), *distance, predicate=str(node))


_OPERATORS: Mapping[type[Expression], str] = {
    tree.EqualTo: "=",
    tree.LessThan: "<",
    tree.LessThanOrEqual: "<=",
    tree.GreaterThan: ">",
    tree.GreaterThanOrEqual: ">=",
}


def _is_radius(value: Any) -> bool:
    """Whether a literal is a number that a double holds; NaN is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= _MOST_EXACT
    return isinstance(value, float | Decimal) and not math.isnan(value)
