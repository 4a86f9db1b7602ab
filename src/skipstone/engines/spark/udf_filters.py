"""Skipping through a user's own boolean function, by saying what it implies of the columns it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone import registry
from skipstone.engines.spark.functions import Promise, promise_of, why_unidentified
from skipstone.errors import PluginError
from skipstone.expressions.tree import Call, Expression, Not
from skipstone.querying.implication import Implication, NotTheSameFunctionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["udf_filter"]


def udf_filter(
    spark: SparkSession,
    name: str,
    implies: Callable[..., Expression | None] | None = None,
    *,
    when_false: Callable[..., Expression | None] | None = None,
) -> None:
    """State what a registered boolean function implies, so that indexes on its arguments serve it.

    Wherever the function is TRUE, the predicate that ``implies`` gives must be TRUE: that is the caller's promise, and
    all that soundness rests on.  The promise is for the function that is registered under the name *now*, with the
    modules that it refers to as they are now; one that is registered later under the same name, or whose modules have
    changed, is not served, which ``explain`` says.

    Parameters
    ----------
    spark
        The session in which the function is registered, in whatever language it is written.
    name
        Its registered name.
    implies
        Takes the arguments of a call, as ``skipstone.expressions`` trees, and gives a predicate on them, or ``None``
        when nothing is implied; ``skipstone.expressions.ranges`` has what it usually needs.
    when_false
        The same for rows for which the function is FALSE (``NOT f(x)``).

    Raises
    ------
    PluginError
        When no function of the user's is registered under that name.

    Examples
    --------
    >>> from skipstone.expressions.ranges import between
    >>> spark.udf.register("is_teen", lambda age: 13 <= age <= 19, "boolean")  # doctest: +SKIP
    >>> skipstone.udf_filter(spark, "is_teen", lambda age: between(age, 13, 19))  # doctest: +SKIP
    """
    promise = promise_of(spark, name)
    if promise is None:
        msg = f"{why_unidentified(spark, name)}, then say what it implies"
        raise PluginError(msg)
    registry.register_implication(f"udf {name.lower()}", _UdfImplication(name, promise, implies, when_false))


@dataclass(frozen=True)
class _UdfImplication(Implication):
    """What a user says of one function; for a call that is NULL nothing need hold, since no row of it is kept."""

    name: str
    promise: Promise
    when_true: Callable[..., Any] | None
    when_false: Callable[..., Any] | None

    def implied(self, leaf: Expression) -> Expression | None:
        match leaf:
            case Call(name, arguments, kind=kind) as call if kind and name.lower() == self.name.lower():
                said = self.when_true
            case Not(Call(name, arguments, kind=kind) as call) if kind and name.lower() == self.name.lower():
                said = self.when_false
            case _:
                return None
        difference = self.promise.difference(call.identity)
        if difference is not None:
            msg = f"{difference}; call udf_filter again for the function as it is now"
            raise NotTheSameFunctionError(msg)
        return None if said is None else said(*arguments)

    def __str__(self) -> str:
        return f"udf_filter({self.name})"
