"""What an index may ask of a dataset before it is built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import IndexingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["Preparation"]


@dataclass(frozen=True)
class Preparation:
    """A dataset as an index sees it before it is built."""

    spark: SparkSession
    scan: Any

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
            java: Any = getattr(error, "java_exception", None)
            said = str(error) if java is None else str(java.getMessage())
            msg = f"the predicate {predicate!r} cannot be understood: {said.splitlines()[0]}"
            raise IndexingError(msg) from error
        if text is None:
            msg = f"the predicate {predicate!r} is the same for every row: nothing can be skipped by it"
            raise IndexingError(msg)
        condition: Mapping[str, Any] = json.loads(text)
        return condition
