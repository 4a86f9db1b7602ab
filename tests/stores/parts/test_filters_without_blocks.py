"""Filters that a release wrote which knew of no blocks, cut into slices: read, added to, and compacted.

``tests/fixtures/filters_without_blocks`` was written by commit 67a55cd, whose bounds on what is cut were lowered:
a part of 15 objects, the n-th with 0, 1, 20, 300 or 560 numbers from 1000 n on, as n mod 5 says, in 16 slices.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skipstone import BloomFilterIndex
from skipstone.expressions.tree import Column, EqualTo, Literal
from skipstone.indexes.bloom_filter import BloomFilterMetadata, make_filter
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.lookup import FILTER
from skipstone.stores.metadata_store import Change, field_column
from skipstone.stores.parquet.store import ParquetStore
from skipstone.stores.parts import buckets
from skipstone.stores.parts.buckets import Buckets
from skipstone.testing.store_model import added, rows_of
from skipstone.toolkit.hashing import spark_hash

OLDER = Path(__file__).parents[2] / "fixtures" / "filters_without_blocks"
ROOT = "file:/data/filters"
COUNTS = (0, 1, 20, 300, 560) * 3
NEWER = (560, 2_000, 9_000)
INDEX = BloomFilterIndex("c")
PRESENT = [(n, 1_000 * n + k) for n, count in enumerate(COUNTS) for k in range(0, count, 37)]
ADDED = [(len(COUNTS) + n, 1_000_000 * (n + 1) + k) for n, count in enumerate(NEWER) for k in range(0, count, 171)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLDER, tmp_path / "meta"))


def kept(store: ParquetStore, value: int) -> np.ndarray:
    clause = generate_clause(EqualTo(Column("c", "bigint"), Literal(value, "bigint")), INDEX.filters()).clause
    snapshot = store.latest(ROOT)
    assert clause is not None
    assert snapshot is not None
    return store.evaluate(snapshot, clause).kept


def check(store: ParquetStore, present: list[tuple[int, int]]) -> None:
    """Every value that an object has keeps it; of the others few are kept."""
    answers = [kept(store, value) for _, value in present]
    assert all(answer[n] for (n, _), answer in zip(present, answers, strict=True))
    assert sum(answer.sum() - 1 for answer in answers) < 0.02 * sum(map(len, answers))
    assert sum(kept(store, -value).sum() for value in range(1, 300)) < 0.02 * 300 * len(answers[0])


def add(store: ParquetStore) -> None:
    """Add objects as a refresh does: with the kinds of field that this release collects."""
    rows = [[spark_hash(1_000_000 * (n + 1) + k, "bigint") for k in range(count)] for n, count in enumerate(NEWER)]
    made = [make_filter(pa.array(hashes, pa.int64()), 0.01) for hashes in rows]
    fields = {
        "bits": pa.array([f["bits"] for f in made], pa.binary()),
        "hashes": pa.array([f["hashes"] for f in made], pa.int32()),
        "null_count": pa.array([0] * len(made), pa.int64()),
    }
    table = added(rows_of(len(made), start=len(COUNTS)), [])
    for name, array in fields.items():
        table = table.append_column(field_column("i0", name), array)
    before = store.latest(ROOT)
    assert before is not None
    (record,) = before.indexes
    assert dict(record.lookups) == {"bits": FILTER}
    refreshed = replace(record, lookups=dict(BloomFilterMetadata.lookups))
    store.commit(ROOT, before, Change((refreshed,), table))


def test_they_answer_from_their_slices(folder: Path) -> None:
    store = ParquetStore(location=f"file:{folder}")
    snapshot = store.latest(ROOT)
    assert snapshot is not None
    assert store._reader(snapshot).parts[0].buckets("i0:bits") == Buckets(FILTER, 16)
    check(store, PRESENT)


@pytest.mark.parametrize("max_parts", [8, 1])
def test_they_answer_beside_filters_in_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch, max_parts: int) -> None:
    monkeypatch.setattr(buckets, "SMALLEST", 0)
    monkeypatch.setattr(buckets, "_BUCKET_BYTES", 16)
    store = ParquetStore(location=f"file:{folder}", max_parts=max_parts)
    add(store)
    asking = ParquetStore(location=f"file:{folder}")
    snapshot = asking.latest(ROOT)
    assert snapshot is not None
    assert len(asking._reader(snapshot).parts) == (1 if max_parts == 1 else 2)
    check(asking, PRESENT + ADDED)
