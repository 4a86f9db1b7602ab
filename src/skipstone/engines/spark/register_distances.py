"""Distances as functions of a query, registered by one call; the index of metric distances knows them by name."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.engines.spark.connect import classic_session
from skipstone.engines.spark.functions import promise_of, raw_identity, state_version, why_unidentified
from skipstone.engines.spark.shipping import ship
from skipstone.errors import IndexingError, SettingError
from skipstone.functions.distances.metric import FUNCTIONS_VERSION
from skipstone.functions.distances.own_metrics import Vouched, sql_literal, vouched
from skipstone.functions.distances.vectorised import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

__all__ = ["register", "vouch_for"]

_MOST_SAMPLED = 8
_SLACK = 1e-9


def register(spark: SparkSession) -> None:
    """Register the distance functions in a session, and state their version, by which indexes know them again.

    Examples
    --------
    >>> skipstone.distances.register(spark)  # doctest: +SKIP
    >>> images.where("euclidean_distance(embedding, array(0.1, 0.7, 0.2)) < 0.5")  # doctest: +SKIP
    """
    from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

    ship(classic_session(spark))
    make: Any = getattr(F, "arrow_udf", None)  # since Spark 4.1
    for function in FUNCTIONS:
        registered = F.udf(_by_rows(function), "double") if make is None else make(function, "double")
        spark.udf.register(function.__name__, registered)
        state_version(spark, function.__name__, FUNCTIONS_VERSION)


def _by_rows(function: Callable[[pa.Array, pa.Array], pa.Array]) -> Callable[[Any, Any], float | None]:
    """Call a function for one row at a time: Spark 4.0 hands arrays over as pandas, which takes NULL for NaN."""

    def distance(one: Any, other: Any) -> float | None:
        if one is None or other is None:
            return None
        found: float | None = function(_column(one), _column(other))[0].as_py()
        return found

    return distance


def _column(value: Any) -> pa.Array:
    """Return one value as a column; a struct comes as a row with names."""
    if hasattr(value, "asDict"):
        return pa.array([value.asDict()])
    return pa.array([list(value)], pa.list_(pa.float64()) if not value else None)


def vouch_for(spark: SparkSession, name: str, sample: Sequence[Any] = ()) -> None:
    """State that the function registered under a name now is a metric: indexes of its distances then serve any literal.

    A metric gives NULL for NULL, 0 for equals, the same in either order, and never more than the way round by a third
    value (up to a relative error of 1e-9, or 1e-4 where it returns floats).  That cannot be proved here, and a function
    that is none loses rows; it is checked for the values of a sample.

    Parameters
    ----------
    spark
        The session; it computes the distance of a query's literal from an index's origins while the query is planned.
    name
        The registered name.
    sample
        A few values of the column (text, numbers or lists of numbers) on which to check that it is a metric.

    Raises
    ------
    IndexingError
        When no function is registered under that name.
    SettingError
        When it is not a metric on the sample.

    Examples
    --------
    >>> skipstone.distances.vouch_for(spark, "jaro_metric", ["skip", "stone", "skipstone"])  # doctest: +SKIP
    """
    promise = promise_of(spark, name)
    if promise is None:
        msg = f"{why_unidentified(spark, name)}, then vouch for it"
        raise IndexingError(msg)
    spark = classic_session(spark)
    _check_metric(spark, name, list(sample)[:_MOST_SAMPLED])
    computed = lru_cache(maxsize=256)(lambda calls: _computed(spark, calls))

    def compute(calls: Sequence[str]) -> Sequence[float | None] | None:
        """Compute, unless another function has the name by now; ask before and after."""
        if promise.difference(raw_identity(spark, name) or "") is not None:
            return None
        found = computed(tuple(calls))
        return found if promise.difference(raw_identity(spark, name) or "") is None else None

    vouched[name.lower()] = Vouched(promise.raw, compute)


def _computed(spark: SparkSession, calls: Sequence[str]) -> tuple[float | None, ...]:
    """Let Spark compute SQL expressions."""
    row = spark.sql(f"SELECT {', '.join(f'{call} AS c{place}' for place, call in enumerate(calls))}").first()
    return tuple(row or ())


def _check_metric(spark: SparkSession, name: str, sample: Sequence[Any]) -> None:
    """Hold a function against the axioms of a metric, for every pair and triple of a sample."""
    if not sample:
        return
    spelled = [sql_literal(tuple(v) if isinstance(v, list) else v, _type_of(v)) for v in sample]
    found = _computed(spark, [f"CAST({name}({one}, {other}) AS DOUBLE)" for one in spelled for other in spelled])
    size = len(sample)
    for i in range(size):
        for j in range(size):
            here, back = found[i * size + j], found[j * size + i]
            if here is None or back is None or not here >= 0 or not math.isfinite(here):
                _refuse(name, f"the distance of {sample[i]!r} and {sample[j]!r} is {here}")
            elif here > back + _SLACK * here:
                _refuse(name, f"the distance of {sample[i]!r} and {sample[j]!r} is {here}, but {back} the other way")
            elif (here > 0) is (sample[i] == sample[j]):
                _refuse(name, f"the distance of {sample[i]!r} and {sample[j]!r} is {here}")
    for i in range(size):
        for j in range(size):
            for k in range(size):
                direct, first, second = (found[a * size + b] or 0.0 for a, b in ((i, j), (i, k), (k, j)))
                if direct > (first + second) * (1 + _SLACK):
                    _refuse(name, f"from {sample[i]!r} to {sample[j]!r} it is {direct}, but less by {sample[k]!r}")


def _refuse(name: str, why: str) -> None:
    """Raise, and say why a function is not a metric."""
    msg = f"{name} is not a metric: {why}"
    raise SettingError(msg)


def _type_of(value: Any) -> str:
    """Return the Spark type of a value of a sample."""
    match value:
        case str():
            return "string"
        case int():
            return "int"
        case list() | tuple():
            return "array<double>"
    return "double"
