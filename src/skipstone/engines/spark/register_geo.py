"""Registers the functions on geometries with a Spark session, and what they imply with Skipstone."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from skipstone import registry
from skipstone.engines.spark.connect import classic_session
from skipstone.engines.spark.functions import raw_identity
from skipstone.errors import PluginError, SettingError
from skipstone.functions.geo.implications import GeoFunction, RegisteredFunctions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

__all__ = ["register"]

_ORDERS = ("lat_lng", "lng_lat")
_known: dict[str, GeoFunction] = {}


def register(spark: SparkSession, *, order: Literal["lat_lng", "lng_lat"] = "lat_lng") -> None:
    """Register ``ST_Contains``, ``ST_Point``, ``ST_GeomFromWKT`` and others, so that indexes serve them.

    Parameters
    ----------
    spark
        The session.
    order
        What two numbers that stand for a point mean, in ``ST_Point(a, b)`` and in ``ST_Contains(geometry, a, b)``: the
        latitude first, as in the paper, or the longitude first, as in Apache Sedona.  In well-known text the longitude
        comes first in any case.

    Raises
    ------
    PluginError
        When shapely, on which the functions run, is not installed.  Executors need it, too.
    SettingError
        When ``order`` is neither of the two.
    SessionNotConfiguredError
        When the session runs without Skipstone's extension.

    Examples
    --------
    >>> skipstone.geo.register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT max(temp) FROM weather WHERE ST_Contains('POLYGON (…)', lat, lng)")  # doctest: +SKIP
    """
    if order not in _ORDERS:
        msg = f"order={order!r} is not an order of coordinates: give 'lat_lng' or 'lng_lat'"
        raise SettingError(msg)
    if find_spec("shapely") is None:
        msg = "functions on geometries need shapely: pip install 'skipstone[geo]', on the executors as well"
        raise PluginError(msg)
    from pyspark.sql import functions as spark_functions

    from skipstone.engines.spark.bridge.presence import require_bridge
    from skipstone.engines.spark.shipping import ship
    from skipstone.functions.geo import functions

    require_bridge(spark)
    ship(classic_session(spark))
    made: Any = spark_functions  # its stubs leave pandas_udf out
    lat_first = order == "lat_lng"
    for name, (operation, returned, _) in functions.FUNCTIONS.items():
        spark.udf.register(name, made.pandas_udf(functions.vectorised(name, lat_first=lat_first), returned))
        identity = raw_identity(spark, name)
        if identity is not None:
            _known[identity] = GeoFunction(operation, lat_first, name)
    names = frozenset(name.lower() for name in functions.FUNCTIONS)
    registry.register_implication("skipstone.geo", RegisteredFunctions(dict(_known), names, _evaluated))


def _evaluated(function: GeoFunction, values: Sequence[Any]) -> Any:
    """Evaluate a registered function on constants, as a query would."""
    from skipstone.functions.geo.functions import evaluate

    return evaluate(function.name, values, lat_first=function.lat_first)
