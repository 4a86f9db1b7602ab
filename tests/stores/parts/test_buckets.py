"""Fields kept in buckets: the same answers as whole ones, from a small part of the bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import instructions
from tests.stores.keys import key_file, store_with

from skipstone import BloomFilterIndex, HybridIndex, ValueListIndex
from skipstone.errors import MetadataCorruptError
from skipstone.expressions.tree import (
    And,
    Column,
    EqualTo,
    GreaterThan,
    In,
    Like,
    Literal,
    Not,
    Or,
)
from skipstone.indexes.bloom_filter import BloomFilterClause, _might_contain, make_filter
from skipstone.indexes.value_list import ValueListClause, ValueListMatchClause
from skipstone.querying.clause import OrClause, lookups_of
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.lookup import BLOCKS, FILTER, SET, Lookup, PartFilters, turns_and_blocks
from skipstone.stores.evaluation import DriverPartEvaluator
from skipstone.stores.metadata_store import Change, ColumnRecord, IndexRecord, ReadProfile, field_column
from skipstone.stores.parquet.part_footer import parse_footer
from skipstone.stores.parquet.store import ParquetStore
from skipstone.stores.parts import buckets
from skipstone.stores.parts.buckets import Buckets, choose_buckets, filters_of, joined, set_hashes, split
from skipstone.testing import collect
from skipstone.testing.store_model import added, rows_of
from skipstone.toolkit.hashing import spark_hash

ROOT = "file:/data/cut"
COUNTS = (2, 8, 256)


@pytest.fixture
def cut_always(monkeypatch):
    monkeypatch.setattr(buckets, "SMALLEST", 0)
    monkeypatch.setattr(buckets, "_BUCKET_BYTES", 16)
    monkeypatch.setattr(buckets, "LEAST_SLICE", 1)
    monkeypatch.setattr(buckets, "MOST_GROWTH", math.inf)


VALUES = {
    pa.string(): st.text(max_size=6),
    pa.binary(): st.binary(max_size=6),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 2): st.decimals(-(10**17), 10**17, places=2),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.integers(-(1 << 50), 1 << 50),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_set_put_together_has_the_same_values_and_each_is_found_in_its_bucket(kind, data):
    lists = data.draw(st.lists(st.none() | st.lists(VALUES[kind], max_size=8), max_size=6))
    column = pa.array(lists, pa.list_(kind))
    start = data.draw(st.integers(0, len(column)))
    column = column.slice(start)
    for count in COUNTS:
        cut = Buckets(SET, count)
        pieces = split(column, cut)
        whole = joined(SET, pieces)
        assert [v if v is None else sorted(map(repr, v)) for v in whole.to_pylist()] == [
            v if v is None else sorted(map(repr, v)) for v in column.to_pylist()
        ]
        for row, values in enumerate(column.to_pylist()):
            for value in values or ():
                numbers = cut.numbers(Lookup(values=(value,)), column.type)
                assert numbers is None or value in pieces[numbers[0]][row].as_py()


def test_zeros_and_decimals_of_one_value_have_one_bucket():
    zeros = set_hashes(pa.array([0.0, -0.0, math.nan, -math.nan]))
    assert zeros[0] == zeros[1]
    assert zeros[2] == zeros[3]
    assert zeros[0] != zeros[2]
    single = set_hashes(pa.array([1.5], pa.float32()))
    assert single[0] == set_hashes(pa.array([1.5], pa.float64()))[0]
    numbers = pa.array([Decimal("-1.50"), None, Decimal("1.50")], pa.decimal128(10, 2))
    assert set_hashes(numbers)[2] == set_hashes(numbers.slice(2))[0]
    assert set_hashes(pa.array([[1]])) is None


def test_hashes_are_those_of_the_format():
    """FNV-1a's published value for "a", through SplitMix64's finaliser: another would lose rows of written metadata."""

    def mixed(n):
        n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
        n = (n ^ (n >> 27)) * 0x94D049BB133111EB % (1 << 64)
        return n ^ (n >> 31)

    assert set_hashes(pa.array(["a", ""])).tolist() == [mixed(0xAF63DC4C8601EC8C), mixed(0xCBF29CE484222325)]
    assert set_hashes(pa.array([7, -1])).tolist() == [mixed(7), mixed((1 << 64) - 1)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40) | st.integers(1, 40).map(lambda n: bytes(range(n)) * 16)))
def test_a_filter_put_together_is_the_same_and_a_slice_answers_as_the_whole(found):
    column = pa.array(found, pa.binary())
    rng = np.random.default_rng(len(found))
    for count in (2, 16):
        cut = Buckets(FILTER, count)
        pieces = split(column, cut)
        assert joined(FILTER, pieces).equals(column)
        names = cut.columns("c")
        whole, sliced = PartFilters(column), filters_of(dict(zip(names, pieces, strict=True)), "c", cut)
        assert (whole.known == sliced.known).all()
        assert (whole.sizes == sliced.sizes).all()
        rows = np.flatnonzero(whole.known & (whole.sizes > 0))
        for place in rng.integers(0, 1 << 63, 20).tolist():
            needed = cut.columns("c", cut.numbers(Lookup(places=(2 * place,)), column.type))
            some = filters_of({n: p for n, p in zip(names, pieces, strict=True) if n in needed}, "c", cut)
            expected = whole.might_be_set(2 * place, rows)
            assert (some.might_be_set(2 * place, rows) == expected).all()
            assert (sliced.might_be_set(2 * place, rows) == expected).all()


COUNTED = (0, 1, 300, 560, 900, 2_000, 4_000, 9_000, 30_000)
"""Values of a filter: from none over one without blocks to one with 256."""


@pytest.fixture(scope="module")
def blocked():
    """Return filters of many sizes, some not known, some without blocks; the hashes in each."""
    rng = np.random.default_rng(11)
    hashes = [random_hashes(rng, count) for count in COUNTED for _ in range(3)]
    made = [make_filter(pa.array(h, pa.int64()), 0.01, blocked=n % 3 > 0) for n, h in enumerate(hashes)]
    bits = pa.array([None, *(f["bits"] for f in made)], pa.binary())
    turns = pa.array([None, *(f["hashes"] for f in made)], pa.int32())
    return bits, turns, [np.zeros(0, np.int64), *hashes]


@pytest.mark.parametrize("cut", [Buckets(BLOCKS, 256, (32, 8)), Buckets(BLOCKS, 16), Buckets(FILTER, 8)], ids=str)
@pytest.mark.parametrize("start", [0, 5])
def test_filters_in_blocks_answer_from_one_slice_of_each_level(blocked, cut, start):
    bits, turns, hashes = blocked
    bits, turns, hashes = bits.slice(start), turns.slice(start), hashes[start:]
    logs = turns_and_blocks(turns.fill_null(0).to_numpy())[1]
    assert {0, 3, 8} <= set(logs.tolist())
    pieces = split(bits, cut, logs)
    assert joined(cut.kind, pieces).equals(bits)
    names = cut.columns("c")
    whole = PartFilters(bits)
    rng = np.random.default_rng(1)
    literals = [int(h[0]) for h in hashes if len(h)] + random_hashes(rng, 60).tolist()
    differ = 0
    for literal in literals:
        clause = BloomFilterClause(BloomFilterIndex("c"), (literal,))
        (lookup,) = clause.lookups.values()
        numbers = cut.numbers(lookup, bits.type)
        if cut.kind == BLOCKS:
            assert len(numbers) == len(cut.levels)
        needed = cut.columns("c", numbers)
        some = filters_of({n: p for n, p in zip(names, pieces, strict=True) if n in needed}, "c", cut)
        assert (some.known == whole.known).all()
        assert (some.sizes == whole.sizes).all()
        expected = _might_contain(whole, turns, (literal,))
        found = _might_contain(some, turns, (literal,))
        assert found.equals(expected)
        differ += expected.false_count
    assert differ > 1_000


def test_levels_are_chosen_by_what_filters_of_each_size_take():
    lengths = {8: (122_880, 100), 4: (1_232, 400), 3: (640, 800), 0: (300, 500)}
    column = pa.chunked_array([[bytes(size) for size, count in lengths.values() for _ in range(count)]])
    logs = np.repeat(list(lengths), [count for _, count in lengths.values()])
    assert choose_buckets(BLOCKS, column, logs, "by") == Buckets(BLOCKS, 256, (16, 8))
    assert choose_buckets(BLOCKS, column, logs, "by").by == "by"
    assert choose_buckets(BLOCKS, column).kind == FILTER  # as nothing says that there are blocks
    few = pa.chunked_array([[bytes(4_160)] * 70])
    assert choose_buckets(BLOCKS, few, np.full(70, 6)) == Buckets(BLOCKS, 16)  # 16 KB in each slice


def test_small_fields_stay_whole_and_large_ones_are_cut_by_what_is_in_them():
    assert choose_buckets(SET, pa.chunked_array([[["a"]]])) is None
    numbers = np.random.default_rng(1).integers(0, 1 << 40, (400, 2_000)).tolist()
    texts = pa.chunked_array([[[f"text-{n}" for n in row] for row in numbers]])
    assert choose_buckets(SET, texts) == Buckets(SET, 256)
    assert choose_buckets(SET, pa.chunked_array([[[[n] * 10] * 10 for n in range(4_000)]])) is None  # lists of lists
    long = pa.chunked_array([[bytes(4_096)] * 500])
    assert choose_buckets(FILTER, long) == Buckets(FILTER, 64)  # as many as leave a bucket of 16 KB
    short = pa.chunked_array([[bytes(24)] * 50_000])
    assert choose_buckets(FILTER, short) is None


def record_of(index, fields, index_id):
    return IndexRecord(
        id=index_id,
        name=index.name,
        type_name=index.type_name,
        options=dict(index.options()),
        columns=tuple(ColumnRecord(c, "string") for c in index.columns),
        profile=ReadProfile("parquet", {}, {}, ""),
        fields={name: str(array.type) for name, array in fields.items()},
        key=index.key,
        lookups=dict(index.metadata_type.lookups),
    )


def committed(store, indexes, objects, before=None, start=0):
    """Commit what indexes collect of objects; gives the snapshot."""
    table = added(rows_of(len(objects), start=start), [])
    records = []
    for number, index in enumerate(indexes):
        metadata = collect(index, objects, {"c": "string"})
        records.append(record_of(index, metadata.fields, f"i{number}"))
        for name, array in metadata.fields.items():
            table = table.append_column(field_column(f"i{number}", name), array)
    return store.commit(ROOT, before, Change(tuple(records), table))


C = Column("c", "string")


def text(value):
    return Literal(value, "string")


def objects_of(rng, count, values, alphabet):
    rows = [[f"v{n}" for n in rng.integers(0, alphabet, rng.integers(0, values))] + [None] for _ in range(count)]
    return [pa.record_batch({"c": pa.array(r, pa.string())}) for r in rows]


PREDICATES = [
    *(EqualTo(C, text(f"v{n}")) for n in range(0, 60, 7)),
    EqualTo(C, text("nowhere")),
    In(C, (text("v1"), text("v50"), text("w"))),
    Not(EqualTo(C, text("v1"))),
    Like(C, text("v1%"), "\\"),
    GreaterThan(C, text("v5")),
    Or((EqualTo(C, text("v3")), Like(C, text("%59"), "\\"))),
    And((EqualTo(C, text("v3")), EqualTo(C, text("v4")))),
]


@pytest.mark.parametrize("how", ["one part", "parts", "compacted", "no memory", "protected"])
def test_lookups_answer_as_whole_fields_do(cut_always, tmp_path, how):
    """Against the collected metadata itself, for values that are there and not, and for predicates that look at all."""
    (tmp_path / "meta").mkdir()
    rng = np.random.default_rng(5)
    options = {"compacted": {"max_parts": 1}, "no memory": {"cache_bytes": 0, "part_evaluator": DriverPartEvaluator()}}
    if how == "protected":
        store = store_with(f"file:{tmp_path}/meta", key_file(tmp_path / "keys", "k"))
    else:
        store = ParquetStore(location=f"file:{tmp_path}/meta", **options.get(how, {}))
    key = "k" if how == "protected" else None
    indexes = [
        ValueListIndex("c", key=key),
        BloomFilterIndex("c", fpp=0.02, key=key),
        HybridIndex("c", threshold=20, fpp=0.02, key=key),
    ]
    objects = objects_of(rng, 40, 60, 200)
    cuts = range(0, 40, 10) if how in ("parts", "compacted") else (0,)
    snapshot = None
    for start in cuts:
        end = start + 10 if len(cuts) > 1 else 40
        snapshot = committed(store, indexes, objects[start:end], snapshot, start)
    checked = skipped = 0
    for index in indexes:
        metadata = collect(index, objects, {"c": "string"})
        for predicate in PREDICATES:
            clause = generate_clause(predicate, index.filters()).clause
            if clause is None:
                continue
            expected = clause.might_match(metadata).fill_null(True).to_pylist()
            assert store.evaluate(snapshot, clause).kept.tolist() == expected, (index.name, predicate)
            checked += len(expected)
            skipped += expected.count(False)
    assert checked > 1_000
    assert skipped > 400
    part = next((tmp_path / "meta").rglob("*.part"))
    assert b"#3" in part.read_bytes() or how == "protected"


def test_whole_lists_come_back_for_what_looks_at_all_of_them(cut_always, tmp_path):
    store = ParquetStore(location=f"file:{tmp_path}")
    index = ValueListIndex("c")
    snapshot = committed(store, [index], objects_of(np.random.default_rng(1), 30, 40, 90))
    reader = store._reader(snapshot)
    record = snapshot.indexes[0]
    whole = reader.load([(record, "values")], meter=buckets_meter()).fields["i0", "values"]
    metadata = collect(index, objects_of(np.random.default_rng(1), 30, 40, 90), {"c": "string"})
    assert [sorted(v) for v in whole.to_pylist()] == [sorted(v) for v in metadata.fields["values"].to_pylist()]


def buckets_meter():
    from skipstone.stores.parts.part import Meter

    return Meter()


def random_hashes(rng, count):
    """Return what XXH64 might: all 64 bits are random."""
    return rng.integers(-(1 << 63), (1 << 63) - 1, count)


def large_fields(index, rng, there):
    """Make the fields of 600 objects as an index would: 12,000 values each, or 200 in lists; the 8th has a value."""
    filters, lists = [], []
    for n in range(600):
        hashes = random_hashes(rng, 12_000)
        hashes[0] = spark_hash(there, "string") if n == 7 else hashes[0]
        filters.append(make_filter(pa.array(hashes), 0.01))
        lists.append([*np.char.add("customer-database-", rng.integers(0, 10_000_000, 400).astype(str)).tolist()])
    lists[7].append(there)
    fields = {"null_count": pa.array([0] * 600, pa.int64())}
    if index.type_name == "hybrid":
        filters[::2] = [{"bits": None, "hashes": None}] * 300
        lists[1::2] = [None] * 300
    if index.type_name != "valuelist":
        fields["bits"] = pa.array([f["bits"] for f in filters], pa.binary())
        fields["hashes"] = pa.array([f["hashes"] for f in filters], pa.int32())
    if index.type_name != "bloomfilter":
        fields["values"] = pa.array(lists, pa.list_(pa.string()))
    return fields


def test_an_equality_reads_a_twentieth_of_filters_most_of_which_are_small(tmp_path):
    """As many values as databases in the paper's logs: in 3 % of the objects 100,000, in the others 26 to 3,000."""
    rng = np.random.default_rng(6)
    counts = np.concatenate([np.full(24, 100_000), np.exp(rng.normal(math.log(600), 0.8, 776)).astype(int) + 26])
    filters = [make_filter(pa.array(random_hashes(rng, count)), 0.01) for count in counts.tolist()]
    fields = {
        "bits": pa.array([f["bits"] for f in filters], pa.binary()),
        "hashes": pa.array([f["hashes"] for f in filters], pa.int32()),
        "null_count": pa.array([0] * 800, pa.int64()),
    }
    table = added(rows_of(800), [])
    for name, array in fields.items():
        table = table.append_column(field_column("i0", name), array)
    store = ParquetStore(location=f"file:{tmp_path}")
    index = BloomFilterIndex("c")
    stored = store.size(store.commit(ROOT, None, Change((record_of(index, fields, "i0"),), table)))["i0"]
    asking = ParquetStore(location=f"file:{tmp_path}")
    found = asking.evaluate(asking.latest(ROOT), generate_clause(EqualTo(C, text("v")), index.filters()).clause)
    assert found.kept.sum() < 25
    assert found.bytes_read <= 0.05 * stored, f"{found.bytes_read} of {stored}"


@pytest.mark.parametrize(
    "index", [ValueListIndex("c"), BloomFilterIndex("c"), HybridIndex("c")], ids=lambda index: index.type_name
)
def test_an_equality_reads_a_twentieth_of_the_metadata_at_most(tmp_path, index):
    """From a store that remembers nothing, footers and all."""
    fields = large_fields(index, np.random.default_rng(2), "v")
    table = added(rows_of(600), [])
    for name, array in fields.items():
        table = table.append_column(field_column("i0", name), array)
    store = ParquetStore(location=f"file:{tmp_path}")
    stored = store.size(store.commit(ROOT, None, Change((record_of(index, fields, "i0"),), table)))["i0"]
    asking = ParquetStore(location=f"file:{tmp_path}")
    clause = generate_clause(EqualTo(C, text("v")), index.filters()).clause
    found = asking.evaluate(asking.latest(ROOT), clause)
    assert found.kept[7]
    assert found.kept.sum() < 20
    assert found.bytes_read <= 0.05 * stored, f"{found.bytes_read} of {stored}"


def test_a_clause_that_needs_all_of_a_field_beside_one_that_looks_it_up_gets_all():
    index = ValueListIndex("c")
    for predicate, looked_up in ((PREDICATES[0], True), (PREDICATES[-2], False), (PREDICATES[-1], True)):
        clause = generate_clause(predicate, index.filters()).clause
        assert bool(lookups_of(clause)) == looked_up


@pytest.mark.parametrize(
    "said", [b'["set", 3]', b'["set", 0]', b'["other", 8]', b'["set", 4096]', b'["set", 2]', b"[8]", b'"set"']
)
def test_nonsense_about_buckets_is_damage(cut_always, tmp_path, monkeypatch, said):
    store = ParquetStore(location=f"file:{tmp_path}")
    snapshot = committed(store, [ValueListIndex("c")], objects_of(np.random.default_rng(1), 4, 40, 90))
    from skipstone.stores.parquet import part_writer

    real = part_writer.json.dumps

    def lying(value):
        lies = isinstance(value, dict) and any(isinstance(v, list) for v in value.values())
        return f'{{"i0:values": {said.decode()}}}' if lies else real(value)

    monkeypatch.setattr(part_writer, "json", type("Json", (), {"dumps": staticmethod(lying)}))
    objects = objects_of(np.random.default_rng(1), 4, 40, 90)
    with pytest.raises(MetadataCorruptError, match="its footer makes no sense"):
        committed(store, [ValueListIndex("c")], objects, snapshot, start=4)


@dataclass(frozen=True, slots=True)
class OrLonger(ValueListClause):
    """A plug-in's clause that looks at more than the one it is made of, and does not say so."""

    def might_match(self, metadata):
        lists = metadata.field(self.index, "values").to_pylist()
        return pa.array([None if v is None else any(len(t) > 3 for t in v) for v in lists], pa.bool_())


@dataclass(frozen=True, slots=True)
class Renamed(ValueListClause):
    """One that changes nothing."""


def test_a_subclass_that_looks_at_more_does_not_inherit_what_is_looked_up(cut_always, tmp_path):
    index = ValueListIndex("c")
    assert lookups_of(Renamed(index, ("v1",)))
    assert not lookups_of(OrLonger(index, ("v1",)))
    objects = objects_of(np.random.default_rng(1), 30, 40, 200)
    store = ParquetStore(location=f"file:{tmp_path}")
    snapshot = committed(store, [index], objects)
    expected = [any(v is not None and len(v) > 3 for v in o.column("c").to_pylist()) for o in objects]
    assert store.evaluate(snapshot, OrLonger(index, ("v1",))).kept.tolist() == expected
    assert True in expected


def test_a_part_of_whole_fields_has_no_word_of_buckets(tmp_path):
    store = ParquetStore(location=f"file:{tmp_path}")
    snapshot = committed(store, [ValueListIndex("c")], objects_of(np.random.default_rng(1), 4, 40, 90))
    reader = store._reader(snapshot)
    assert reader.parts[0].buckets("i0:values") is None
    data = next(tmp_path.rglob("*.part")).read_bytes()
    record = reader.parts[0].record
    assert parse_footer(data[-record.footer_length :]).buckets == {}


def test_indexes_of_one_name_that_are_not_equal_share_what_is_read(cut_always, tmp_path):
    """The store knows an index by its name: what one clause looks up must not be all that another gets to see."""
    store = ParquetStore(location=f"file:{tmp_path}")
    index, namesake = ValueListIndex("c"), ValueListIndex("c", key="k")
    objects = objects_of(np.random.default_rng(5), 20, 40, 100)
    snapshot = committed(store, [index], objects)
    metadata = collect(index, objects, {"c": "string"})
    for other in (Like(C, text("%9"), "\\"), EqualTo(C, text("v9"))):
        clause = OrClause(
            (ValueListMatchClause(index, EqualTo(C, text("v3"))), ValueListMatchClause(namesake, other)),
        )
        expected = clause.might_match(metadata).fill_null(True).to_pylist()
        assert store.evaluate(snapshot, clause).kept.tolist() == expected


def test_a_long_text_is_hashed_like_short_ones_and_soon():
    long = ["a" * 300_000, "a" * 300_000 + "b", "é" * 1_000, ""]
    alone = [set_hashes(pa.array([one]))[0] for one in long]
    beside = set_hashes(pa.array([*long, *(f"v{n}" * 20 for n in range(100))]))
    assert beside[:4].tolist() == alone
    text = pa.array(["x" * 10_000])  # 78 a byte when a byte of all texts, of which there is one, goes at a time
    assert instructions(lambda: set_hashes(text)) < 20 * 10_000


def test_items_of_every_type_that_a_field_may_have_can_be_written(cut_always, tmp_path):
    """Of indexes of others: numbers that no signed 64 bits hold, and lists of nothing."""
    kinds = {"unsigned": (pa.uint64(), [2**63 + 5, 7]), "nothing": (pa.null(), [None])}
    assert set_hashes(pa.array([2**64 - 1], pa.uint64())) == set_hashes(pa.array([-1]))
    fields = {name: pa.array([values] * 40, pa.list_(kind)) for name, (kind, values) in kinds.items()}
    table = added(rows_of(40), [])
    for name, array in fields.items():
        table = table.append_column(field_column("i0", name), array)
    store = ParquetStore(location=f"file:{tmp_path}")
    record = replace(record_of(ValueListIndex("c"), fields, "i0"), lookups=dict.fromkeys(fields, SET))
    snapshot = store.commit(ROOT, None, Change((record,), table))
    reader = store._reader(snapshot)
    assert reader.parts[0].buckets("i0:unsigned") is not None
    loaded = reader.load([(record, name) for name in fields], meter=buckets_meter()).fields
    assert [sorted(v) for v in loaded["i0", "unsigned"].to_pylist()] == [[7, 2**63 + 5]] * 40
    assert loaded["i0", "nothing"].to_pylist() == [[None]] * 40


@pytest.mark.timeout(120)  # half a second; four minutes when each term copied those before it
def test_many_terms_are_collected_in_linear_time():
    index = BloomFilterIndex("c", fpp=1e-9)
    clause = OrClause(tuple(BloomFilterClause(index, (n,)) for n in range(24_000)))
    (lookup,) = lookups_of(clause).values()
    assert len(lookup.places) == 24_000 * 31


def test_what_parts_are_too_small_for_is_cut_when_they_become_one(tmp_path):
    store = ParquetStore(location=f"file:{tmp_path}", max_parts=3)
    index = BloomFilterIndex("c")
    rng = np.random.default_rng(3)
    snapshot = None
    for start in range(0, 160, 40):
        filters = [make_filter(pa.array(random_hashes(rng, 3_400)), 0.01) for _ in range(40)]
        fields = {"bits": pa.array([f["bits"] for f in filters], pa.binary())}
        fields["hashes"] = pa.array([f["hashes"] for f in filters], pa.int32())
        table = added(rows_of(40, start=start), [])
        for name, array in fields.items():
            table = table.append_column(field_column("i0", name), array)
        cuts = [] if snapshot is None else [part.buckets("i0:bits") for part in store._reader(snapshot).parts]
        assert cuts == [None] * (start // 40)
        snapshot = store.commit(ROOT, snapshot, Change((record_of(index, fields, "i0"),), table))
    (part,) = store._reader(snapshot).parts
    assert part.buckets("i0:bits") == Buckets(BLOCKS, 32)


@pytest.mark.parametrize("cut", [True, False])
def test_lists_that_compress_in_their_order_alone_stay_whole(cut):
    rng = np.random.default_rng(4)
    numbers = rng.permutation(300_000) if cut else np.arange(300_000)
    lists = pa.array([[f"customer-{n:09d}" for n in numbers[i : i + 1_000]] for i in range(0, 300_000, 1_000)])
    assert (choose_buckets(SET, pa.chunked_array([lists])) is not None) == cut


def test_filters_left_whole_count_with_the_bytes_that_they_take(cut_always, tmp_path):
    """Not with the mean of all buckets: they may be most of the metadata, and exceed the driver's memory."""
    store = ParquetStore(location=f"file:{tmp_path}")
    index = BloomFilterIndex("c")
    fields = {
        "bits": pa.array([bytes(1_024)] * 60 + [bytes(1_023)] * 30, pa.binary()),
        "hashes": pa.array([7] * 90, pa.int32()),
        "null_count": pa.array([0] * 90, pa.int64()),
    }
    table = added(rows_of(90), [])
    for name, array in fields.items():
        table = table.append_column(field_column("i0", name), array)
    snapshot = store.commit(ROOT, None, Change((record_of(index, fields, "i0"),), table))
    part = store._reader(snapshot).parts[0]
    cut = part.buckets("i0:bits")
    assert cut.count > 30
    assert part.arrow_bytes(["i0:bits#whole"]) > 30 * 1_023
    assert part.arrow_bytes(["i0:bits#1"]) < 10_000
    assert part.arrow_bytes(["i0:bits"]) < 100 * 1_100
    assert part.record.indexes["i0"][1] < 100 * 1_100
