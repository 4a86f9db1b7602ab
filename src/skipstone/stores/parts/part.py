"""What reading a snapshot asks of a part, wherever the part is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.parts.buckets import Buckets

__all__ = ["Meter", "Part"]


@dataclass
class Meter:
    """Adds up the bytes that one call reads."""

    bytes: int = 0


class Part(Protocol):
    """Some rows of metadata, immutable: identity columns first, then the fields of indexes, a column each."""

    @property
    def record(self) -> PartRecord:
        """What the manifest says of the part."""
        ...

    @property
    def path(self) -> str:
        """Where the part is, as messages and caches name it."""
        ...

    def column_names(self) -> frozenset[str]:
        """Return the names of the columns that the part has."""
        ...

    def arrow_bytes(self, columns: Iterable[str]) -> int:
        """Return how many bytes columns take in memory, of those the part has."""
        ...

    def open(self, columns: Iterable[str], meter: Meter) -> None:
        """Read what tells where some columns lie; the meter learns what had to be fetched."""
        ...

    def buckets(self, column: str) -> Buckets | None:
        """Return how a column is cut into buckets, which ``read`` takes too, or that it is whole."""
        ...

    def row_group_rows(self) -> list[int]:
        """Return the number of rows of each row group: what can be read at once in little memory."""
        ...

    def stored_bytes(self, columns: Sequence[str]) -> int:
        """Return how many bytes columns take where they are stored."""
        ...

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, meter: Meter | None = None) -> pa.Table:
        """Read and check whole columns, or some row groups of them; the meter learns what had to be fetched."""
        ...
