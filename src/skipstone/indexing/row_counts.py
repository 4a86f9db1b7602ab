"""How many rows an object has is one number for all of its indexes: unknown where two ways of reading it disagree.

A reader's options decide what is a row: of a CSV file with comments, a header or quoted line ends, two readings count
differently.  Clauses compare what an index counts (NULLs, NaNs) with the rows of the object, so these must be the rows
of the reading by which the index was made.  Each index serves only scans that read as it was made, and where all
readings counted the same, that number is right for each of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SkipstoneError
from skipstone.indexing.objects import STATE_COLUMNS, recorded_states

if TYPE_CHECKING:
    from skipstone.stores.metadata_store import MetadataStore, Snapshot

__all__ = ["DISAGREED", "agreed", "known_counts"]

_log = logging.getLogger("skipstone")

DISAGREED = -1
"""Stored in place of a count that two readings do not agree on; null says that nobody counted."""


def agreed(store: MetadataStore, current: Snapshot | None, added: pa.Table | None) -> pa.Table | None:
    """Return what is to be committed on top of a snapshot, with `DISAGREED` where that counts other rows of an object.

    Once disagreed upon, an object's count stays so for as long as the object is the same.  Where the snapshot cannot be
    read, as it is damaged, nothing is known to agree; a refresh makes it anew, counts included.
    """
    if current is None or added is None or not added.num_rows:
        return added
    now = added.column("row_count").to_pylist()
    try:
        known = store.objects(current, ["path", *STATE_COLUMNS, "row_count"])
    except SkipstoneError as error:
        _log.warning("the rows that were counted of %s before cannot be read: %s", current.root, error)
        counts: list[int | None] = [DISAGREED] * len(now)
    else:
        counted = dict(zip(recorded_states(known), known.column("row_count").to_pylist(), strict=True))
        before = [counted.get(state) for state in recorded_states(added)]
        counts = [
            DISAGREED if one is not None and other is not None and one != other else other
            for one, other in zip(before, now, strict=True)
        ]
    if counts == now:
        return added
    place = added.schema.get_field_index("row_count")
    return added.set_column(place, "row_count", pa.array(counts, pa.int64()))


def known_counts(stored: pa.Array) -> pa.Array:
    """Return stored counts of rows as clauses see them: null where readings disagree."""
    if not pc.any(pc.less(stored, 0)).as_py():
        return stored
    return pc.if_else(pc.less(stored, 0), None, stored)
