"""Data objects: the files that are indexed and skipped, and what tells one state of a file from another."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["STATE_COLUMNS", "DataObject", "State", "recorded_states"]

STATE_COLUMNS = ("length", "modified", "etag")
"""The columns of ``MetadataStore.objects`` that a recorded ``State`` is made of."""


class State(NamedTuple):
    """What tells one state of a file from another.

    Two states are the same if all three are equal.  Index jobs and reports ask for that: an object that has an e-tag by
    now is worth collecting once more.  Queries ask whether what was recorded still ``describes`` the object.
    """

    length: int
    modified: int
    etag: str = ""

    def describes(self, listed: State) -> bool:
        """Whether metadata that was recorded in this state describes an object as it is listed.

        An e-tag counts where one was recorded.  Where none was, length and time told the states apart when the metadata
        was made, and still do.

        Examples
        --------
        >>> State(10, 1_700_000_000_000).describes(State(10, 1_700_000_000_000, "a"))
        True
        >>> State(10, 1_700_000_000_000, "a").describes(State(10, 1_700_000_000_000))
        False
        """
        return self[:2] == listed[:2] and self.etag in ("", listed.etag)


@dataclass(frozen=True, slots=True)
class DataObject:
    """One file as the file system listed it.

    ``path`` is the text of Hadoop's ``FileStatus.getPath`` (not URL-encoded), ``modified`` milliseconds since 1970,
    ``etag`` empty where the file system gives none.
    """

    path: str
    length: int
    modified: int
    etag: str = ""

    @property
    def state(self) -> State:
        """The state in which it was listed."""
        return State(self.length, self.modified, self.etag)

    @property
    def digest(self) -> bytes:
        """The 16 bytes by which a listing finds the object again."""
        return hashlib.md5(self.path.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()


def recorded_states(objects: pa.Table, key: str = "path") -> Iterator[tuple[Any, State]]:
    """Return the key and the recorded state of each object in a table of ``MetadataStore.objects``, in row order.

    Parameters
    ----------
    objects
        Has the columns ``STATE_COLUMNS``, and that of the key.
    key
        ``path`` or ``digest``.
    """
    states = zip(*(objects.column(name).to_pylist() for name in STATE_COLUMNS), strict=True)
    return zip(objects.column(key).to_pylist(), map(State._make, states), strict=True)
