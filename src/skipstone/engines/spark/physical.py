"""Which expressions Spark computes so that Arrow carries their values to Python, and what arrives there."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.errors import UnsupportedTypeError
from skipstone.indexing.physical import physical_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["arrived_type", "physical_expression"]


def physical_expression(expression: str, data_type: DataType) -> str:
    """Return the Spark SQL expression whose values Arrow can carry, for one of a given type.

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
    """Return the physical Arrow type of an expression that ``physical_expression`` gave, from its Spark type."""
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
    """Whether a type is, or contains, a year-month interval."""
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
