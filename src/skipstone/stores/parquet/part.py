"""Reading parts: a column at a time, from the section that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.indexing.records import split_field_column
from skipstone.stores.parquet.sections import SectionFile
from skipstone.stores.parts.columns import column_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.parquet.encryption import Keys
    from skipstone.stores.parquet.filesystem import FileSystem
    from skipstone.stores.parquet.part_footer import Footer
    from skipstone.stores.parts.buckets import Buckets
    from skipstone.stores.parts.part import Meter

__all__ = ["PartFile"]


class PartFile:
    """Reads columns of one part, as the manifest describes it.

    Parameters
    ----------
    file_system, folder
        Where the part lies.
    record
        What the manifest says of it.
    cache
        Keeps footers, so that a second column costs one read.
    keys
        What decrypts, for a user who has any keys.
    """

    def __init__(
        self, file_system: FileSystem, folder: str, record: PartRecord, cache: ByteCache, *, keys: Keys | None = None
    ) -> None:
        self.record = record
        self.path = f"{folder}/{record.file}"
        self._main = SectionFile(file_system, self.path, record, record.main, record.key, keys, cache)
        self._section_of: dict[str, SectionFile] = {}
        for key, section in record.sections.items():
            file = SectionFile(file_system, self.path, record, section, key, keys, cache)
            self._section_of |= dict.fromkeys(section.columns, file)

    def footer(self, meter: Meter | None = None) -> Footer:
        """Return the checked footer of what is in no section of its own."""
        return self._main.footer(meter)

    def open_section(self, index_id: str) -> None:
        """Make sure that an index's columns can be read by this user, as far as keys go.

        Raises
        ------
        KeyUnavailableError
            When its key, or the footer key, cannot be had.
        """
        self._main.footer()
        splits = {column: split_field_column(column) for column in self._section_of}
        for section, _ in self._by_section(c for c, split in splits.items() if split and split.index_id == index_id):
            section.footer()

    def column_names(self) -> frozenset[str]:
        """Return the names of the columns that the part has."""
        return self.footer().columns.union(self._section_of)

    def arrow_bytes(self, columns: Iterable[str]) -> int:
        """Return how many bytes columns take in memory, of those the part has."""
        return sum(
            section.footer().bytes_in_memory(column) for section, names in self._by_section(columns) for column in names
        )

    def open(self, columns: Iterable[str], meter: Meter) -> None:
        """Read the footers of the sections that hold some columns."""
        for section, _ in self._by_section(columns):
            section.footer(meter)

    def buckets(self, column: str) -> Buckets | None:
        """Return how a column is cut, or that it is whole."""
        return self._section_of.get(column, self._main).footer().buckets.get(column)

    def row_group_rows(self) -> list[int]:
        """Return the number of rows of each row group."""
        metadata = self.footer().parquet
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def stored_bytes(self, columns: Sequence[str]) -> int:
        """Return how many bytes columns take in the file."""
        return sum(
            chunk.length
            for section, names in self._by_section(columns)
            for footer in (section.footer(),)
            for chunk in footer.chunks_of({stored for name in names for stored in footer.stored(name)})
        )

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, meter: Meter | None = None) -> pa.Table:
        """Read and check whole columns, or some row groups of them."""
        found = [section.read(names, groups, meter) for section, names in self._by_section(columns)]
        if len(found) == 1:
            return found[0]
        whole = {name: table.column(name) for table in found for name in table.column_names}
        return pa.table({name: whole[name] for name in columns if name in whole})

    def _by_section(self, columns: Iterable[str]) -> list[tuple[SectionFile, list[str]]]:
        """Group columns by the section that holds them; at least one group."""
        groups: dict[SectionFile, list[str]] = {}
        for column in columns:
            section = self._section_of.get(column_of(column), self._main)
            groups.setdefault(section, []).append(column)
        return list(groups.items()) or [(self._main, [])]
