"""A planner whose answers the tests choose, and helpers around the bridge."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Record = tuple[str, int, int, str]  # path, length, modified, e-tag


class FakePlanner:
    """Implements the bridge's interface; ``answer`` maps a request to response bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[dict[str, Any]] = []
        self.pieces: dict[int, list[str]] = {}
        self.longest = 0
        self.tables: dict[str, list[Record]] = {}
        self.asked: list[str] = []
        self.lock = threading.Lock()
        self.answer: Callable[[dict[str, Any]], bytes] = lambda _request: reply()

    def part(self, key: int, text: str) -> None:
        self.longest = max(self.longest, len(text))
        self.pieces.setdefault(key, []).append(text)

    def plan(self, key: int, text: str) -> bytes:
        self.longest = max(self.longest, len(text))
        request = json.loads("".join([*self.pieces.pop(key, []), text]))
        with self.lock:
            self.requests.append(request)
        return self.answer(request)

    def objects(self, snapshot: str) -> str:
        self.asked.append(snapshot)
        file = self.folder / f"{uuid.uuid4()}.objects"
        file.write_bytes(b"".join(map(pack, self.tables[snapshot])))
        return str(file)

    def snapshot(self, records: Sequence[Record]) -> str:
        """Know these objects under a new snapshot id."""
        name = str(uuid.uuid4())
        self.tables[name] = list(records)
        return name

    def keeping(self, records: Sequence[Record], keep: Callable[[str], bool], **header: Any) -> None:
        """From now on answer every request by keeping the records whose path ``keep`` accepts."""
        name = self.snapshot(records)
        self.answer = lambda _request: reply((name, [keep(r[0]) for r in records]), **header)

    class Java:
        implements = ["org.apache.spark.sql.skipstone.Planner"]  # noqa: RUF012  (Py4J reads a plain list)


def pack(record: Record) -> bytes:
    path, length, modified, etag = record
    tag = struct.unpack("<q", hashlib.md5(etag.encode()).digest()[:8])[0] if etag else 0
    return hashlib.md5(path.encode()).digest() + struct.pack("<qqq", length, modified, tag)


def reply(*snapshots: tuple[str, Sequence[bool] | int], **header: Any) -> bytes:
    """Pack a response: (id, kept rows) or (id, number of rows, all of them kept)."""
    described, bitmaps = [], []
    for name, kept in snapshots:
        if isinstance(kept, int):
            described.append({"id": name, "rows": kept, "all": True})
            continue
        described.append({"id": name, "rows": len(kept), "all": False})
        bits = bytearray((len(kept) + 7) // 8)
        for row, keep in enumerate(kept):
            bits[row >> 3] |= keep << (row & 7)
        bitmaps.append(bytes(bits))
    fields = {"snapshots": described, "clause": "a clause", "not_used": [], "used": [], "metadata_bytes_read": 7}
    text = json.dumps({**fields, "refuse": None, "indexed": bool(snapshots), **header}).encode()
    return struct.pack(">i", len(text)) + text + b"".join(bitmaps)


def bridge_of(spark: Any) -> Any:
    return spark._jvm.org.apache.spark.sql.skipstone.Bridge


def records_of(spark: Any, df: Any, file: Path) -> list[Record]:
    """List the objects of a DataFrame as the indexing side does."""
    bridge = bridge_of(spark)
    bridge.listing(bridge.scan(df._jdf), str(file))
    return read_records(file)


def read_records(file: Path) -> list[Record]:
    lines = map(json.loads, file.read_text().splitlines())
    return [(line["p"], line["l"], line["m"], line["e"]) for line in lines]


def entries_since(spark: Any, sequence: int) -> list[dict[str, Any]]:
    return json.loads(bridge_of(spark).entriesSince(sequence))
