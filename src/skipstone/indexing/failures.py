"""What goes wrong while objects are indexed: an index raises, or an object cannot be read."""

from __future__ import annotations

from skipstone.errors import IndexingError

__all__ = ["FAILURE_MARK", "PluginRaisedError", "ReadFailedError", "raised"]

FAILURE_MARK = "skipstone:failed:"
"""What the user is told stands behind it, in whatever text an engine makes of a worker's exception."""


class PluginRaisedError(Exception):
    """An index raised, in a worker or on the driver; what follows the mark is what the user is told."""

    def __init__(self, name: str, what: str, error: BaseException) -> None:
        super().__init__(f"{FAILURE_MARK}{raised(name, what, error)}")


def raised(name: str, what: str, error: BaseException) -> str:
    """Return in one line what an index raised."""
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    return f"{name} raised {said} while indexing {what}"


class ReadFailedError(IndexingError):
    """An object could not be read: damaged, or changed or gone since it was listed."""
