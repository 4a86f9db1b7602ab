"""What an index may ask of a dataset before it is built: Spark's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.client import said_by
from skipstone.errors import IndexingError
from skipstone.expressions.types import catalog_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.engines.spark.client import Scan

__all__ = ["ScanPreparation"]


@dataclass(frozen=True)
class ScanPreparation:
    """A scan as an index sees it before it is built."""

    scan: Scan

    @property
    def reads_as(self) -> Mapping[str, str]:
        """What the declared schema says of columns besides their types, by name."""
        return self.scan.describe().relation.reads_as

    def type_of(self, expression: str) -> str:
        """Return the Spark type of a SQL expression over the dataset's columns.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the expression.
        """
        try:
            return catalog_type(self.scan.type_of(expression))
        except Exception as error:
            msg = f"the expression {expression} cannot be understood: {said_by(error)}"
            raise IndexingError(msg) from error

    def functions_in(self, expression: str) -> tuple[str, ...]:
        """Name the users' functions that a SQL expression over the dataset's columns calls.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the expression.
        """
        try:
            found = self.scan.functions_in([expression])
        except Exception as error:
            msg = f"the expression {expression} cannot be understood: {said_by(error)}"
            raise IndexingError(msg) from error
        return tuple(function["n"] for function in found)

    def condition(self, predicate: str) -> Mapping[str, Any]:
        """Return a SQL predicate over the dataset's columns as a query's condition would reach the planner.

        It is what ``expressions.from_spark.read_expression`` reads, after Spark's own optimizer has been over it.

        Raises
        ------
        IndexingError
            When Spark cannot resolve the predicate, or it is TRUE for all rows or for none.
        """
        try:
            condition = self.scan.condition(predicate)
        except Exception as error:
            msg = f"the predicate {predicate!r} cannot be understood: {said_by(error)}"
            raise IndexingError(msg) from error
        if condition is None:
            msg = f"the predicate {predicate!r} is the same for every row: nothing can be skipped by it"
            raise IndexingError(msg)
        return condition
