"""The object table for the JVM: 40 bytes per object, little-endian, by which a listing finds metadata rows again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skipstone.indexing.objects import STATE_COLUMNS

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["PACKED_COLUMNS", "etag_hash", "packed_objects"]

PACKED_COLUMNS = ("digest", *STATE_COLUMNS)
"""The columns of ``MetadataStore.objects`` that ``packed_objects`` needs."""

_RECORD = np.dtype([("digest", "V16"), ("length", "<i8"), ("modified", "<i8"), ("etag", "<i8")])


def etag_hash(etag: str) -> int:
    """Hash an e-tag: the first eight bytes of its MD5, little-endian and signed; 0 stands for "none" only."""
    if not etag:
        return 0
    digest = hashlib.md5(etag.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little", signed=True) or 1


def packed_objects(table: pa.Table) -> bytes:
    """Pack objects: MD5 of the path (16 bytes), length, modification time, hash of the e-tag (8 bytes each)."""
    packed = np.zeros(table.num_rows, _RECORD)
    if table.num_rows:
        digest = pa.concat_arrays(table.column("digest").chunks)
        whole = np.frombuffer(digest.buffers()[1], np.dtype("V16"), len(digest), 16 * digest.offset)
        packed["digest"] = whole
        for name in ("length", "modified"):
            packed[name] = table.column(name).to_numpy()
        packed["etag"] = _etag_hashes(table.column("etag"))
    return packed.tobytes()


def _etag_hashes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Hash e-tags, each distinct one once: most file systems give none, and then there is nothing to do."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    hashes = np.array([etag_hash(text or "") for text in encoded.dictionary.to_pylist()], np.int64)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(hashes, 0)[codes]
