"""The reading environment: what may change the values that a reader makes of the same bytes, schema and options apart.

The engine describes it, from the session and the JVM that read at the moment they read (``Environment.scala`` of
Spark's bridge).  It comes in groups, since not every index depends on all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skipstone.indexing.records import ColumnRecord

__all__ = ["EVALUATED", "JVM_ZONE", "MACHINE", "SESSION", "TIMESTAMPS", "VALUES", "ZONES", "Environment", "groups_of"]

VALUES = "values"
TIMESTAMPS = "timestamps"
PARTITIONS = "partitions"
SESSION = "session"
"""The group of the session's settings and its zone."""
MACHINE = "machine"
"""The group of the JVM and the releases that run."""
ZONES = "zones"
EVALUATED = (SESSION, MACHINE)
"""What Spark's evaluation of an expression may depend on: the session's settings; the JVM and the releases that run."""

JVM_ZONE = "JVM zone"

_NOT_KNOWN = ("not known yet", "not one: ")
_DEFAULT = "EXISTS_DEFAULT"  # a table's default for files without the column: an expression, which is evaluated


@dataclass(frozen=True)
class Environment:
    """What a reader may look at, by group and name."""

    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def known(self) -> dict[str, dict[str, str]]:
        """Return all that is known and the same in the JVMs that read; the rest equals nothing."""
        return {
            group: {n: v for n, v in entries.items() if not v.startswith(_NOT_KNOWN)}
            for group, entries in self.groups.items()
        }

    def settings(self, wanted: Iterable[str]) -> dict[str, str]:
        """Return what is in some groups."""
        return {name: value for group in wanted for name, value in self.groups.get(group, {}).items()}


def groups_of(columns: Iterable[ColumnRecord], evaluated: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the groups that metadata of some columns depends on.

    Parameters
    ----------
    columns
        The columns that an index describes.
    evaluated
        What the evaluation of its inputs depends on besides, where they are more than columns: see
        ``Index.evaluated``.
    """
    columns = tuple(columns)
    conditional = {
        TIMESTAMPS: any("timestamp" in column.type.lower() for column in columns),
        PARTITIONS: any(column.partition for column in columns),
        SESSION: any(_DEFAULT in column.reads_as for column in columns),
    }
    return tuple(dict.fromkeys((VALUES, *(group for group, wanted in conditional.items() if wanted), *evaluated)))
