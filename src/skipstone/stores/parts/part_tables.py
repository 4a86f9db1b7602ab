"""From a change to the rows of a part: checked, in the order of the format, and with nothing known of the untrusted."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import MetadataStoreError
from skipstone.indexing.records import field_column, split_field_column
from skipstone.stores.names import is_plain_name
from skipstone.stores.parts.columns import IDENTITY, presence_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from skipstone.stores.metadata_store import Change, IndexRecord

__all__ = ["check_indexes", "part_table"]


def check_indexes(indexes: Sequence[IndexRecord]) -> None:
    """Refuse index records that the format cannot keep.

    Raises
    ------
    MetadataStoreError
        When an id or field name is not plain, or an id or name is there twice.
    """
    odd = [name for record in indexes for name in (record.id, *record.fields) if not is_plain_name(name)]
    if odd:
        msg = f"index ids and field names are letters, digits, '_' and '-' (at most 120): {odd[0]!r} is not"
        raise MetadataStoreError(msg)
    for what in ("id", "name"):
        seen = [getattr(record, what) for record in indexes]
        if len(set(seen)) != len(seen):
            msg = f"two indexes of one dataset have the same {what}: {max(seen, key=seen.count)!r}"
            raise MetadataStoreError(msg)


def part_table(change: Change, *, keep_removed: bool) -> pa.Table | None:
    """Make the rows of a new part, or ``None`` when the change has none.

    Parameters
    ----------
    change
        What is committed.
    keep_removed
        Whether removals are worth writing: not when there is nothing before them.

    Raises
    ------
    MetadataStoreError
        When the added rows are not as ``Change`` describes them.
    """
    check_indexes(change.indexes)
    added = _added(change)
    paths = set() if added is None else set(added.column("path").to_pylist())
    gone = [path for path in dict.fromkeys(change.removed) if path not in paths] if keep_removed else []
    if added is None:
        return _removed(gone) if gone else None
    if not gone:
        return added
    table = pa.concat_tables([added, _removed(gone)], promote_options="default")
    for place, name in enumerate(table.column_names):
        split = split_field_column(name)
        if split is not None and not split.name:  # a presence column
            table = table.set_column(place, name, table.column(name).fill_null(False))
    return table.cast(added.schema)


def _added(change: Change) -> pa.Table | None:
    """Check and complete the added rows."""
    if change.added is None or change.added.num_rows == 0:
        return None
    table = change.added
    records = {record.id: record for record in change.indexes}
    columns: dict[str, pa.ChunkedArray] = {}
    for field in IDENTITY:
        if field.name == "removed":
            columns[field.name] = pa.chunked_array([pa.repeat(pa.scalar(False), table.num_rows)])
        elif field.name not in table.column_names:
            _refuse(f"has no column {field.name!r}")
        else:
            columns[field.name] = table.column(field.name).cast(field.type)
    columns["etag"] = columns["etag"].fill_null("")
    if any(columns[field.name].null_count for field in IDENTITY if not field.nullable):
        _refuse("has nulls where an object's path, digest, length, time or trust belongs")
    if pc.count_distinct(columns["digest"]).as_py() != table.num_rows:
        _refuse("has an object twice")
    trusted = columns["trusted"].combine_chunks().to_numpy(zero_copy_only=False).astype(np.bool_)
    if not trusted.all():
        columns["row_count"] = columns["row_count"].take(_rows(trusted))
    ids = dict.fromkeys(split.index_id for split in map(split_field_column, table.column_names) if split is not None)
    for index_id in ids:
        if index_id not in records:
            _refuse(f"has metadata of an index {index_id!r} that is not among the dataset's")
        covered = trusted
        if presence_column(index_id) in table.column_names:
            given = table.column(presence_column(index_id)).to_numpy(zero_copy_only=False)
            covered = trusted & given.astype(np.bool_)
        known = None if covered.all() else _rows(covered)
        if known is not None:
            columns[presence_column(index_id)] = pa.chunked_array([pa.array(covered)])
        for name, kind in records[index_id].fields.items():
            column = field_column(index_id, name)
            if column not in table.column_names:
                _refuse(f"has no column {column!r}")
            if str(table.schema.field(column).type) != kind:
                _refuse(f"has {column!r} as {table.schema.field(column).type} where the index says {kind}")
            columns[column] = table.column(column) if known is None else table.column(column).take(known)
    extra = set(table.column_names) - set(columns) - {presence_column(index_id) for index_id in ids}
    if extra:
        _refuse(f"has a column {min(extra)!r} that no index names")
    fields = [IDENTITY.field(name) if name in IDENTITY.names else pa.field(name, c.type) for name, c in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def _rows(known: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the places of all rows, null for those that are not known."""
    return pa.array(np.arange(len(known)), mask=~known)


def _removed(paths: Sequence[str]) -> pa.Table:
    """Make the rows that say that objects are gone."""
    count = len(paths)
    digests = [hashlib.md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest() for path in paths]
    columns = {
        "path": pa.array(paths, pa.string()),
        "digest": pa.array(digests, pa.binary(16)),
        "length": pa.array(np.zeros(count, np.int64)),
        "modified": pa.array(np.zeros(count, np.int64)),
        "etag": pa.array([""] * count, pa.string()),
        "row_count": pa.nulls(count, pa.int64()),
        "trusted": pa.array(np.zeros(count, np.bool_)),
        "removed": pa.array(np.ones(count, np.bool_)),
    }
    return pa.table(list(columns.values()), schema=IDENTITY)


def _refuse(what: str) -> None:
    msg = f"the change that should be committed {what}"
    raise MetadataStoreError(msg)
