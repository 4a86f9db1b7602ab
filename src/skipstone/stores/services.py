"""What an engine's session does for a store: reach its file systems, and evaluate metadata that is too large here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skipstone.stores.evaluation import PartEvaluator
    from skipstone.stores.parquet.filesystem import FileSystem

__all__ = ["Services", "provide_services", "services_of"]


@dataclass(frozen=True)
class Services:
    """The file system of each path, and what evaluates clauses where the engine runs."""

    file_systems: Callable[[str], FileSystem]
    evaluator: PartEvaluator


_providers: list[Callable[[Any], Services]] = []


def provide_services(provider: Callable[[Any], Services]) -> None:
    """Let an engine say what its sessions do for stores."""
    _providers[:] = [provider]


def services_of(session: Any) -> Services:
    """Return what a session does for stores; raise ``SettingError`` before an engine has said that."""
    if not _providers:
        msg = "no engine has said how its sessions reach files: make the session by skipstone.configure first"
        raise SettingError(msg)
    return _providers[0](session)
