"""DataFrames of the classic API in a process whose own API may be Spark Connect's.

In a process that has a Connect session, ``pyspark.sql.functions`` and ``DataFrame.mapInArrow`` make Connect's columns,
whatever DataFrame these are meant for (``pyspark.sql.utils.is_remote``).  Index jobs run on the server's side, which in
such a process is a classic session beside it, so what they need is made here for certain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from skipstone.errors import UnsupportedSparkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = ["expression", "map_in_arrow"]

ArrowFunction: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
_UDF = "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
_UDF_PARAMETERS = 5
"""Name, function, type, kind, determinism; later releases have more, each with a default."""


def expression(frame: DataFrame, sql: str) -> Column:
    """Return a SQL expression as a column of a classic DataFrame."""
    from pyspark.sql.classic.column import Column

    jvm: Any = frame.sparkSession._jvm
    return Column(jvm.org.apache.spark.sql.functions.expr(sql))


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: str) -> DataFrame:
    """Map the batches of a classic DataFrame, as ``DataFrame.mapInArrow`` does.

    Parameters
    ----------
    frame
        A classic DataFrame.
    function
        Takes batches and gives batches, on the executors.
    schema
        The schema of what it gives, in DDL.

    Raises
    ------
    UnsupportedSparkError
        If Spark's own parts are not as they are known to be in 4.0 to 4.3, in a process of Spark Connect's.
    """
    from pyspark.sql.utils import is_remote

    if not is_remote():
        return frame.mapInArrow(function, schema)
    from py4j.protocol import Py4JError
    from pyspark.sql import DataFrame

    try:
        return DataFrame(frame._jdf.mapInArrow(_column(frame, function, schema), False, None), frame.sparkSession)
    except (Py4JError, ImportError, TypeError) as error:
        msg = (
            "Skipstone cannot run Python on the server's side of this Spark Connect session "
            f"({type(error).__name__}: {str(error).splitlines()[0]}): make the indexes in a classic session"
        )
        raise UnsupportedSparkError(msg) from error


def _column(frame: DataFrame, function: ArrowFunction, schema: str) -> Any:
    """Return the JVM's column that stands for a function of all columns of a DataFrame."""
    from pyspark.sql.classic.column import _to_java_column, _to_seq
    from pyspark.sql.types import StructType
    from pyspark.sql.udf import _wrap_function
    from pyspark.util import PythonEvalType

    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    java_type = jvm.org.apache.spark.sql.types.StructType.fromDDL(schema)
    returned = StructType.fromJson(json.loads(java_type.json()))
    wrapped = _wrap_function(context, function, returned)
    companion = getattr(getattr(jvm, f"{_UDF}$"), "MODULE$")
    parameters = jvm.java.lang.Class.forName(_UDF).getConstructors()[0].getParameterCount()
    more = [
        getattr(companion, f"$lessinit$greater$default${place}")()
        for place in range(_UDF_PARAMETERS + 1, parameters + 1)
    ]
    made = getattr(jvm, _UDF)("skipstone", wrapped, java_type, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, True, *more)
    inputs = [_to_java_column(frame[name]) for name in frame.columns]
    return made.apply(_to_seq(context, inputs))
