"""What an index may ask of a dataset before it is built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import IndexingError
from skipstone.expressions.types import catalog_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["Preparation"]


@dataclass(frozen=True)
class Preparation:
    """A dataset as an index sees it before it is built."""

    spark: SparkSession
    scan: Any

    def type_of(self, expression: str) -> str:
        """Give the Spark type of a SQL expression over the dataset's columns.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the expression.
        """
        jvm: Any = self.spark._jvm
        try:
            return catalog_type(jvm.org.apache.spark.sql.skipstone.Bridge.typeOf(self.scan, expression))
        except Exception as error:
            msg = f"the expression {expression} cannot be understood: {_said(error)}"
            raise IndexingError(msg) from error

    def functions_in(self, expression: str) -> tuple[str, ...]:
        """Name the users' functions that a SQL expression over the dataset's columns calls.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the expression.
        """
        jvm: Any = self.spark._jvm
        try:
            text = jvm.org.apache.spark.sql.skipstone.Bridge.functionsIn(self.scan, [expression])
        except Exception as error:
            msg = f"the expression {expression} cannot be understood: {_said(error)}"
            raise IndexingError(msg) from error
        return tuple(function["n"] for function in json.loads(text))

    def condition(self, predicate: str) -> Mapping[str, Any]:
        """Give a SQL predicate over the dataset's columns as a query's condition would reach the planner.

        It is what ``expressions.from_spark.read_expression`` reads, after Spark's own optimizer has been over it.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the predicate, or it is TRUE for all rows or for none.
        """
        jvm: Any = self.spark._jvm
        try:
            text = jvm.org.apache.spark.sql.skipstone.Bridge.condition(self.scan, predicate)
        except Exception as error:
            msg = f"the predicate {predicate!r} cannot be understood: {_said(error)}"
            raise IndexingError(msg) from error
        if text is None:
            msg = f"the predicate {predicate!r} is the same for every row: nothing can be skipped by it"
            raise IndexingError(msg)
        condition: Mapping[str, Any] = json.loads(text)
        return condition


def _said(error: BaseException) -> str:
    """Give the first line of what an error says, Java's own where it is one of Java's."""
    java: Any = getattr(error, "java_exception", None)
    said = str(error) if java is None else str(java.getMessage())
    return (said.strip().splitlines() or [type(error).__name__])[0]
