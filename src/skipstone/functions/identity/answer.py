"""What the workers of an engine answer when they are asked what they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["Answer", "Workers"]


@dataclass(frozen=True)
class Answer:
    """What workers run: their Python and zone, or the problem why that cannot be relied on.

    ``missing`` says that workers lack a package: the function cannot run there, as the job that calls it will say.
    """

    python: str = ""
    zone: str = ""
    problem: str = ""
    missing: bool = False


class Workers(Protocol):
    """Asks the workers of an engine what they run of some packages."""

    @property
    def interpreter(self) -> str:
        """What distinguishes the interpreter that functions are made for from others."""

    @property
    def environment(self) -> str:
        """What distinguishes the environment variables that functions are made for from others."""

    def prepare(self, sets: Iterable[frozenset[str]]) -> None:
        """Ask for several sets of packages at once."""

    def of(self, names: frozenset[str]) -> Answer:
        """Return what workers run of a set of packages."""

    def changed_here(self, evidence: Collection[str]) -> bool:
        """Whether one of some files changed since the application started."""
