"""Reading one snapshot: its parts' columns, merged into one row per live object, through the driver's cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skipstone.errors import MetadataCorruptError
from skipstone.querying.lookup import SET, FiltersOfParts, PartFilters
from skipstone.stores.arrow_types import parse_type
from skipstone.stores.metadata_store import IndexRecord, field_column
from skipstone.stores.parts.buckets import filters_of, is_filter, joined
from skipstone.stores.parts.columns import IDENTITY, MAX_ROW_GROUP_ROWS, column_of, presence_column
from skipstone.stores.parts.merge import NOWHERE, Merge, PartRows, gather, merge_parts
from skipstone.stores.parts.part import Meter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.querying.lookup import Filters, Lookup
    from skipstone.stores.cache import ByteCache
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.parts.part import Part

    Lookups = Mapping[tuple[str, str], Lookup]

__all__ = ["Loaded", "SnapshotReader", "field_type"]

_STATE = ("digest", "length", "modified", "etag", "trusted", "removed")
_ROW_COUNT = "row_count"


@dataclass
class Loaded:
    """Fields by (index id, name); ``filters`` has those filters that were looked up."""

    fields: dict[tuple[str, str], pa.Array] = field(default_factory=dict)
    filters: dict[tuple[str, str], Filters] = field(default_factory=dict)


class SnapshotReader:
    """The merged view of one manifest's parts.

    Parameters
    ----------
    manifest
        What the snapshot consists of.
    parts
        Its parts, in ascending sequence.
    cache
        Keeps columns of parts (by part), merged columns and the merge itself (by the sequence of parts).
    """

    def __init__(self, manifest: Manifest, parts: Sequence[Part], cache: ByteCache) -> None:
        self.manifest = manifest
        self.parts = parts
        self._key = tuple((part.path, part.record.footer_sha256) for part in parts)
        self._cache = cache

    def __len__(self) -> int:
        return self.manifest.object_count

    @property
    def is_plain(self) -> bool:
        """Whether the rows of the only part are the objects: nothing to merge."""
        return len(self.parts) == 1 and self.parts[0].record.removed == 0

    def merge(self, meter: Meter) -> Merge:
        """Return where each live object's rows are."""
        known: Merge = self._cache.get_or_load(("merge", self._key), lambda: self._merge(meter))
        if len(known) != len(self):
            folder = self.parts[0].path.rsplit("/", 1)[0] if self.parts else ""
            msg = (
                f"the parts in {folder} hold {len(known)} objects instead of {len(self)}: "
                "drop the indexes and create them again (queries read everything until then)"
            )
            raise MetadataCorruptError(msg)
        return known

    def count_objects(self, meter: Meter) -> int:
        """Count the live objects: what a manifest must say of these parts."""
        return len(self._cache.get_or_load(("merge", self._key), lambda: self._merge(meter)))

    def _merge(self, meter: Meter) -> tuple[Merge, int]:
        merged = merge_parts([self._rows_of(part, meter) for part in self.parts])
        return merged, merged.nbytes

    def identity(self, names: Sequence[str], meter: Meter) -> pa.Table:
        """Read identity columns in row order; not cached, since a planner asks once per snapshot."""
        columns = {}
        if not self.parts:
            columns = {name: pa.array([], IDENTITY.field(name).type) for name in names}
        elif self.is_plain:
            table = self._read(self.parts[0], names, meter)
            columns = {name: _whole(table.column(name)) for name in names}
        else:
            merged = self.merge(meter)
            tables = [self._read(part, [name for name in names if name != _ROW_COUNT], meter) for part in self.parts]
            for name in names:
                if name == _ROW_COUNT:
                    columns[name] = self.row_count(meter)
                else:
                    kind = IDENTITY.field(name).type
                    columns[name] = gather(
                        merged.offsets,
                        merged.newest,
                        kind,
                        lambda n, name=name: tables[n].column(name),  # type: ignore[misc]
                    )
        return pa.table(columns)

    def row_count(self, meter: Meter) -> pa.Array:
        """Return the number of rows of each object, null where it is not known."""
        if not self.parts:
            return pa.array([], pa.int64())
        if self.is_plain:
            return self._part_columns(self.parts[0], [_ROW_COUNT], meter)[_ROW_COUNT]
        key = ("merged", self._key, _ROW_COUNT)
        known = self._cache.get(key)
        if known is None:
            merged = self.merge(meter)
            known = gather(
                merged.offsets,
                self.row_count_sources(meter),
                pa.int64(),
                lambda n: self._part_columns(self.parts[n], [_ROW_COUNT], meter)[_ROW_COUNT],
            )
            self._cache.put(key, known, known.nbytes)
        return known

    def row_count_sources(self, meter: Meter) -> npt.NDArray[np.int64]:
        """Return the global row that has each object's row count."""
        columns = [self._part_columns(part, [_ROW_COUNT], meter)[_ROW_COUNT] for part in self.parts]
        covered = {n: column.is_valid().to_numpy(zero_copy_only=False) for n, column in enumerate(columns)}
        return self.merge(meter).sources(covered, _ROW_COUNT)

    def sources(self, index_id: str, meter: Meter) -> npt.NDArray[np.int64]:
        """Return the global row that has each object's metadata of an index, or ``NOWHERE``."""
        covered = {n: self._presence(n, index_id, meter) for n in self._holders(index_id)}
        plain = all(rows is None for rows in covered.values())
        return self.merge(meter).sources(covered, None if plain else ("id", index_id))

    def coverage(self, index_id: str, meter: Meter) -> npt.NDArray[np.bool_]:
        """Return which objects an index has metadata of."""
        if not self._holders(index_id):
            return np.zeros(len(self), np.bool_)
        if self.is_plain:
            rows = self._presence(0, index_id, meter)
            return np.ones(len(self), np.bool_) if rows is None else rows.copy()
        return self.sources(index_id, meter) != NOWHERE

    def load(self, wanted: Iterable[tuple[IndexRecord, str]], meter: Meter, lookups: Lookups | None = None) -> Loaded:
        """Read fields of indexes in row order, null where nothing is known.

        Of a field that is looked up, what that needs.  All that is not in memory is read together, part by part.
        """
        loaded = Loaded()
        missing: list[tuple[IndexRecord, str]] = []
        for record, name in wanted:
            key = (record.id, name)
            known = None if self.is_plain else self._cache.get(("merged", self._key, field_column(record.id, name)))
            if known is not None:
                loaded.fields[key] = known
            elif not self._holders(record.id):
                loaded.fields[key] = pa.nulls(len(self), field_type(record, name))
            else:
                missing.append((record, name))
        needs = {(record.id, name): self._needs(record, name, lookups or {}) for record, name in missing}
        columns: dict[int, Mapping[str, pa.Array]] = {}
        for number, part in enumerate(self.parts):
            names = dict.fromkeys(n for need in needs.values() for n in need.get(number, ()))
            if names:
                columns[number] = self._part_columns(part, list(names), meter)
        for record, name in missing:
            key = (record.id, name)
            if is_filter(record.lookups.get(name)) and key in (lookups or {}):
                loaded.filters[key] = self._filters(record, name, needs[key], columns, meter)
            else:
                loaded.fields[key] = self._field(record, name, needs[key], columns, meter)
        return loaded

    def _needs(self, record: IndexRecord, name: str, lookups: Lookups) -> dict[int, tuple[str, ...]]:
        """Name the columns of each part that a field is read from."""
        column = field_column(record.id, name)
        lookup = lookups.get((record.id, name))
        found: dict[int, tuple[str, ...]] = {}
        for number in self._holders(record.id):
            cut = self.parts[number].buckets(column) if lookup is not None else None
            numbers = cut.numbers(lookup, field_type(record, name)) if cut is not None and lookup is not None else None
            found[number] = (column,) if cut is None or numbers is None else cut.columns(column, numbers)
        return found

    def _field(
        self,
        record: IndexRecord,
        name: str,
        needs: Mapping[int, tuple[str, ...]],
        columns: Mapping[int, Mapping[str, pa.Array]],
        meter: Meter,
    ) -> pa.Array:
        """Put a field together from what was read."""
        kind = field_type(record, name)
        arrays = {n: joined(SET, [columns[n][c] for c in names]) for n, names in needs.items()}
        if self.is_plain:
            return arrays[0] if arrays[0].type == kind else arrays[0].cast(kind)
        rows = self.sources(record.id, meter)
        whole = gather(self.merge(meter).offsets, rows, kind, lambda n: arrays[n])
        column = field_column(record.id, name)
        if all(names == (column,) for names in needs.values()):
            self._cache.put(("merged", self._key, column), whole, whole.nbytes)
        return whole

    def _filters(
        self,
        record: IndexRecord,
        name: str,
        needs: Mapping[int, tuple[str, ...]],
        columns: Mapping[int, Mapping[str, pa.Array]],
        meter: Meter,
    ) -> Filters:
        """Return filters of which some slices were read."""
        column = field_column(record.id, name)
        found: list[PartFilters | None] = [None] * len(self.parts)
        for number, names in needs.items():
            cut = self.parts[number].buckets(column)
            here = {n: columns[number][n] for n in names}
            found[number] = PartFilters(here[column]) if cut is None else filters_of(here, column, cut)
        if self.is_plain and found[0] is not None:
            return found[0]
        return FiltersOfParts(found, self.merge(meter).offsets, self.sources(record.id, meter))

    def open(self, wanted: Iterable[tuple[IndexRecord, str]], meter: Meter) -> None:
        """Read what tells where fields lie, so that what follows needs no more than the fields."""
        columns = [(record.id, field_column(record.id, name)) for record, name in wanted]
        for part in self.parts:
            here = [column for index_id, column in columns if index_id in part.record.indexes]
            if here:
                part.open(here, meter)

    def arrow_bytes(self, wanted: Iterable[tuple[IndexRecord, str]], lookups: Lookups | None = None) -> int:
        """Return how many bytes fields take in memory, or what is read of those that are looked up."""
        return sum(
            self.parts[number].arrow_bytes(names)
            for record, name in wanted
            for number, names in self._needs(record, name, lookups or {}).items()
        )

    def _holders(self, index_id: str) -> list[int]:
        """Number the parts that hold an index."""
        return [n for n, part in enumerate(self.parts) if index_id in part.record.indexes]

    def _presence(self, number: int, index_id: str, meter: Meter) -> npt.NDArray[np.bool_] | None:
        """Return which rows of a part an index covers; ``None`` for all."""
        column = presence_column(index_id)
        if column not in self.parts[number].column_names():
            return None
        return (
            self._part_columns(self.parts[number], [column], meter)[column]
            .to_numpy(zero_copy_only=False)
            .astype(np.bool_)
        )

    def _rows_of(self, part: Part, meter: Meter) -> PartRows:
        """Read what tells objects and their states apart; kept for small parts, which every commit merges again."""
        if part.record.rows <= MAX_ROW_GROUP_ROWS:
            columns = self._part_columns(part, _STATE, meter)
        else:
            table = self._read(part, _STATE, meter)
            columns = {name: _whole(table.column(name)) for name in _STATE}
        flat = {n: columns[n].to_numpy(zero_copy_only=False) for n in ("length", "modified", "trusted", "removed")}
        return PartRows(digest=columns["digest"], etag=columns["etag"], **flat)

    def _part_columns(self, part: Part, names: Sequence[str], meter: Meter) -> dict[str, pa.Array]:
        """Return columns of one part, those not in the cache read together."""
        keys = {name: ("column", part.path, part.record.footer_sha256, name) for name in names}
        found = {name: known for name, key in keys.items() if (known := self._cache.get(key)) is not None}
        missing = [name for name in keys if name not in found]
        if missing:
            table = self._read(part, missing, meter)
            for name in missing:
                found[name] = _whole(table.column(name))
                self._cache.put(keys[name], found[name], found[name].nbytes)
        return found

    @staticmethod
    def _read(part: Part, names: Sequence[str], meter: Meter) -> pa.Table:
        """Read columns and meter them; a column that should be there and is not is damage."""
        missing = {column_of(name) for name in names} - part.column_names()
        if missing:
            msg = f"the part {part.path} lacks the column {min(missing)!r}"
            raise MetadataCorruptError(msg)
        return part.read(names, meter=meter)


def field_type(record: IndexRecord, name: str) -> pa.DataType:
    """Return a field's Arrow type as the manifest spells it; the null type when it has no such field."""
    if name not in record.fields:
        return pa.null()
    try:
        return parse_type(record.fields[name])
    except ValueError as error:
        msg = f"the manifest gives {record.name} a field {name!r} of no known type: {error}"
        raise MetadataCorruptError(msg) from error


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Make one array of a column's chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
