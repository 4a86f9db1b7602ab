"""Physical values: how Spark's values reach an index, the same as the literals of the Expression Tree.

Dates are int32 days, timestamps int64 microseconds, times int64 nanoseconds, day-time intervals int64 microseconds,
year-month intervals int32 months.  Everything else is its natural Arrow type.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["physical_array", "physical_expression", "physical_type"]


def physical_type(type_: pa.DataType) -> pa.DataType:
    """Give the Arrow type in which values of an Arrow type from Spark are handed to an index.

    Examples
    --------
    >>> physical_type(pa.timestamp("us", tz="UTC"))
    DataType(int64)
    >>> physical_type(pa.list_(pa.date32()))
    ListType(list<element: int32>)
    """
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_) or pa.types.is_time64(type_) or pa.types.is_duration(type_):
        return pa.int64()
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, physical_type(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(physical_type(type_.key_type), physical_type(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(pa.field("element", physical_type(type_.value_type)))
    return type_


def physical_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Give an array's physical values; Arrow does this without copying for everything but nested types."""
    return array if array.type == type_ else array.cast(type_)


def physical_expression(expression: str, data_type: DataType) -> str:
    """Give the Spark SQL expression whose values Arrow can carry, for one of a given type.

    Raises
    ------
    UnsupportedTypeError
        When PySpark has no Arrow form of the type.
    """
    from pyspark.sql.types import YearMonthIntervalType

    if isinstance(data_type, YearMonthIntervalType):  # Arrow's month interval cannot be read by pyarrow
        return f"cast(cast(({expression}) as interval month) as int)"
    _arrow_type(expression, data_type)
    return expression


def arrived_type(expression: str, data_type: DataType) -> pa.DataType:
    """Give the physical Arrow type of an expression that ``physical_expression`` gave, from its Spark type."""
    return physical_type(_arrow_type(expression, data_type))


def _arrow_type(expression: str, data_type: DataType) -> pa.DataType:
    """Translate a Spark type."""
    from pyspark.sql.pandas.types import to_arrow_type

    translate: Any = to_arrow_type
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(translate).parameters else {}  # since Spark 4.3
    if _holds_year_month_interval(data_type):
        msg = f"{expression} cannot be indexed: Arrow cannot carry {data_type.simpleString()} to Python"
        raise UnsupportedTypeError(msg)
    try:
        return translate(data_type, **zone)
    except Exception as error:
        msg = f"{expression} cannot be indexed: Arrow has no form of {data_type.simpleString()} ({error})"
        raise UnsupportedTypeError(msg) from error


def _holds_year_month_interval(data_type: DataType) -> bool:
    """Say whether a type is, or contains, a year-month interval."""
    from pyspark.sql.types import ArrayType, MapType, StructType, YearMonthIntervalType

    match data_type:
        case YearMonthIntervalType():
            return True
        case ArrayType():
            return _holds_year_month_interval(data_type.elementType)
        case MapType():
            return _holds_year_month_interval(data_type.keyType) or _holds_year_month_interval(data_type.valueType)
        case StructType():
            return any(_holds_year_month_interval(f.dataType) for f in data_type.fields)
    return False
