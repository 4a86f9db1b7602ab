"""Data objects: the files that are indexed and skipped, and what tells one state of a file from another."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["STATE_COLUMNS", "DataObject", "State", "describes", "recorded_states"]

STATE_COLUMNS = ("length", "modified", "etag")
"""The columns of ``MetadataStore.objects`` that a recorded ``State`` is made of."""

State: TypeAlias = tuple[int, int, str]
"""What tells one state of a file from another: its length, modification time and e-tag.

Index jobs and reports ask whether two are equal: an object that has an e-tag by now is worth collecting once more.
Queries ask whether the recorded one still ``describes`` the object.
"""


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
        return self.length, self.modified, self.etag

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
    return zip(objects.column(key).to_pylist(), states, strict=True)


def describes(recorded: State, listed: State) -> bool:
    """Whether metadata that was recorded in one state describes an object that is listed in another.

    An e-tag counts where one was recorded.  Where none was, length and time told the states apart when the metadata was
    made, and still do.

    Examples
    --------
    >>> describes((10, 1_700_000_000_000, ""), (10, 1_700_000_000_000, "a"))
    True
    >>> describes((10, 1_700_000_000_000, "a"), (10, 1_700_000_000_000, ""))
    False
    """
    return recorded[:2] == listed[:2] and recorded[2] in ("", listed[2])
