"""Physical values: how Spark's values reach an index, the same as the literals of the Expression Tree.

Dates are int32 days, timestamps int64 microseconds, times int64 nanoseconds, day-time intervals int64 microseconds,
year-month intervals int32 months.  Everything else is its natural Arrow type.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["physical_array", "physical_type"]


def physical_type(type_: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which values of an Arrow type from Spark are handed to an index.

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
    """Return an array's physical values; Arrow does this without copying for everything but nested types."""
    return array if array.type == type_ else array.cast(type_)
