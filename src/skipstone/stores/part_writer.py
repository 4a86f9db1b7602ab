"""Writing a part: row groups of bounded size, then the checksums between them and the footer."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.stores.manifest import PartRecord
from skipstone.stores.part_footer import CRC, MAX_ROW_GROUP_ROWS, SIZES, TRAILER, chunks_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PartWriter", "rows_per_group"]

_ROW_GROUP_BYTES = 64 << 20


def rows_per_group(rows: int, size: int) -> int:
    """Choose the rows of a row group: bounded in objects and, by the average object, in bytes."""
    return max(1, min(MAX_ROW_GROUP_ROWS, _ROW_GROUP_BYTES * rows // max(size, 1) if rows else MAX_ROW_GROUP_ROWS))


class PartWriter:
    """Writes one part to a local file, in as many steps as there are row groups.

    Parameters
    ----------
    path
        The local file to make.
    schema
        The columns: ``IDENTITY`` first, then those of the indexes.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._sizes = dict.fromkeys(schema.names, 0)
        self._rows = 0
        self._removed = 0
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in ("path", "digest", "length", "modified")],
            write_statistics=False,
            write_page_checksum=True,
            use_compliant_nested_type=False,  # the item's name is part of the type's text
        )

    def write(self, table: pa.Table) -> None:
        """Add rows; ends a row group at the latest when they are written."""
        if not table.num_rows:
            return
        for name in table.column_names:
            self._sizes[name] += table.column(name).nbytes
        self._rows += table.num_rows
        self._removed += table.column("removed").combine_chunks().true_count
        self._writer.write_table(table, row_group_size=rows_per_group(table.num_rows, table.nbytes))

    def close(self) -> None:
        """Give up: the file is incomplete."""
        self._writer.close()

    def finish(self, sequence: int, file: str) -> PartRecord:
        """Complete the file and give its record."""
        self._writer.add_key_value_metadata({SIZES.decode(): json.dumps(self._sizes)})
        self._writer.close()
        with self._path.open("rb+") as handle:
            footer_start = handle.seek(-TRAILER, io.SEEK_END)
            footer_start -= int.from_bytes(handle.read(4), "little")
            handle.seek(footer_start)
            footer = handle.read()
            metadata = pq.read_metadata(io.BytesIO(footer))
            crcs = []
            stored: dict[str, int] = {}
            for name, offset, count in chunks_of(metadata):
                handle.seek(offset)
                crcs.append(zlib.crc32(handle.read(count)))
                stored[name] = stored.get(name, 0) + count
            footer = np.array(crcs, CRC).tobytes() + footer
            handle.seek(footer_start)
            handle.write(footer)
        indexes: dict[str, tuple[int, int]] = {}
        for name, size in self._sizes.items():
            index_id, colon, _ = name.partition(":")
            if colon:
                known = indexes.get(index_id, (0, 0))
                indexes[index_id] = (known[0] + stored.get(name, 0), known[1] + size)
        return PartRecord(
            file=file,
            length=footer_start + len(footer),
            footer_length=len(footer),
            footer_sha256=hashlib.sha256(footer).hexdigest(),
            rows=self._rows,
            removed=self._removed,
            sequence=sequence,
            indexes=indexes,
        )
