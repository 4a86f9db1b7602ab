"""A choice among the indexes of a dataset, carried to the planner by a setting of the session that plans.

A report plans a query again without some of its indexes.  Between the thread that asks for a plan and the one that
makes it lies the JVM, so the choice travels with the rest of the session's settings.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from skipstone.errors import SettingError

__all__ = ["CHOICE", "Choice"]

CHOICE = "choice"
"""The setting's name after ``spark.skipstone.``; it is for reports, and can only make a query skip less."""


@dataclass(frozen=True)
class Choice:
    """Some indexes of a dataset ``alone``, or all but those; the indexes of other datasets are left in sight."""

    root: str
    indexes: tuple[str, ...]
    alone: bool

    def __call__(self, root: str, index: str) -> bool:
        """Whether a plan may use an index."""
        return root != self.root or (index in self.indexes) == self.alone

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Choice:
        """Read the setting's text.

        Raises
        ------
        SettingError
            When it is not one that a report has written.

        Examples
        --------
        >>> choice = Choice("file:/d", ("minmax(a)",), alone=True)
        >>> Choice.read(str(choice)) == choice
        True
        """
        try:
            read = cls(**json.loads(text))
            return replace(read, indexes=tuple(read.indexes))
        except (TypeError, ValueError):
            msg = f"spark.skipstone.{CHOICE} is {text!r}, but it is for reports alone: unset it"
            raise SettingError(msg) from None
