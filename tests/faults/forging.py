"""Metadata as a forger would write it: whatever is changed, the checksums fit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.stores.parquet.part_writer import PartWriter
from skipstone.stores.parts.columns import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.faults.lake import Lake


def seal(body: bytes) -> bytes:
    """End a manifest's text, given without its last brace, with the checksum that fits it."""
    return body + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def reseal(path: Path, change: Callable[[dict[str, Any]], None] | None = None, **changes: Any) -> None:
    """Change a manifest's content, and give it a checksum that fits."""
    content = json.loads(path.read_text())
    del content["checksum"]
    content.update(changes)
    if change is not None:
        change(content)
    path.write_bytes(seal(json.dumps(content, separators=(",", ":"))[:-1].encode()))


def newest_manifest(lake: Lake) -> Path:
    """Find the manifest that readers take."""
    return max((lake.metadata / "_manifests").glob("_*.json"))


def forge_part(lake: Lake, columns: Mapping[str, Any], *, rows: int | None = None) -> None:
    """Replace the metadata by one part of the same objects, some columns with other values, every checksum fitting.

    With ``rows`` the first object is there that many times, and no other.
    """
    lake.drop()
    lake.create()
    (path,) = (lake.metadata / "_parts").iterdir()
    table = pq.read_table(pa.BufferReader(path.read_bytes()))
    for name, values in columns.items():
        field = IDENTITY.field(name)
        given = [table.column(name)[0].as_py()] * table.num_rows if values == "the first" else values
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(given, field.type))
    if rows is not None:
        table = table.take(pa.repeat(pa.scalar(0), rows))
    writer = PartWriter(path, table.schema)
    writer.write(table)
    record = writer.finish(1, path.name)
    reseal(newest_manifest(lake), parts=[asdict(record)], object_count=record.rows)
