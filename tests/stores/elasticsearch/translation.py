"""What the server refutes is exactly what Arrow calls False: every built-in clause, small universes of every type."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from tests.expressions.depth import DEEPEST
from tests.indexes import universes
from tests.stores.elasticsearch.support import EACH, make, on_elasticsearch, on_opensearch, remove_indices, server

from skipstone.expressions import tree
from skipstone.expressions.tree import And, Column, Element, Literal
from skipstone.indexes import (
    BloomFilterIndex,
    FeatureIndex,
    GapListIndex,
    GeoBoxIndex,
    HybridIndex,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
)
from skipstone.indexes.feature.index import FeatureClause
from skipstone.indexes.value_list import ValueListClause
from skipstone.querying.clause import AndClause, NeverClause, OrClause
from skipstone.stores.elasticsearch import boxes as boxes_module
from skipstone.stores.elasticsearch import clauses as clauses_module
from skipstone.stores.elasticsearch import translation
from skipstone.stores.elasticsearch.plan import ByArrow, ByServer, plan_clause
from skipstone.stores.elasticsearch.queries import ALWAYS, NEVER, some
from skipstone.stores.elasticsearch.search import kept_rows
from skipstone.stores.elasticsearch.searchable import plain, searchable
from skipstone.stores.elasticsearch.translation import translates
from skipstone.stores.evaluation import DriverPartEvaluator, evaluate
from skipstone.stores.metadata_store import Change, IndexRecord, ReadProfile, field_column
from skipstone.stores.parts.part import Meter
from skipstone.testing import collect
from skipstone.testing.store_model import (
    HasValue,
    StoredRangeIndex,
    commit,
    digest,
    record,
    rows_of,
)

ROOT = "file:/data/universe"
OBJECTS = 300
BATCH = 100


@dataclass(frozen=True)
class Described:
    """An index with the metadata of the universe's objects."""

    index: object
    record: IndexRecord
    fields: dict[str, pa.Array]
    row_count: pa.Array


def _padded(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array, pa.nulls(OBJECTS - len(array), array.type)])


def describe(index, objects, types, index_id, **collecting) -> Described:
    index = replace(index, name=f"{index.name}#{index_id}")
    metadata = collect(index, objects[:OBJECTS], types, **collecting)
    fields = {name: _padded(array) for name, array in metadata.fields.items()}
    record = IndexRecord(
        id=index_id,
        name=index.name,
        type_name=index.type_name,
        options=index.options(),
        columns=(),
        profile=ReadProfile("parquet", {}, {}, ""),
        fields={name: str(array.type) for name, array in fields.items()},
    )
    return Described(index, record, fields, _padded(metadata.row_count))


def table_of(described, rows=range(OBJECTS), **identity) -> pa.Table:
    paths = [f"{ROOT}/{n}" for n in rows]
    columns = {
        "path": pa.array(paths),
        "digest": pa.array([digest(path) for path in paths], pa.binary(16)),
        "length": pa.array([1] * len(paths), pa.int64()),
        "modified": pa.array([1] * len(paths), pa.int64()),
        "etag": pa.array([""] * len(paths)),
        "row_count": described[0].row_count.take(pa.array(rows)),
        "trusted": pa.array([True] * len(paths)),
    }
    for one in described:
        for name, array in one.fields.items():
            columns[field_column(one.record.id, name)] = array.take(pa.array(rows))
    return pa.table(columns)


def clauses_of(index, predicates):
    """Label predicates by the filters of an index."""
    found = []
    for predicate in predicates:
        for one in index.filters():
            clause = one.label_node(predicate)
            if clause is not None:
                found.append(clause)
    return found


def assert_server_agrees(store, snapshot, clauses, counts: Counter) -> None:
    """Hold the server's answers against Arrow's, many clauses in one request."""
    parts = store._parts(snapshot)
    reader = store._reader(snapshot, parts)
    records = {(r.name, r.type_name): r for r in snapshot.indexes}
    directories = [part.directory() for part in parts]
    plans = [(clause, plan_clause(reader, directories, records, clause, Meter())) for clause in clauses]
    native = [(clause, plan) for clause, plan in plans if isinstance(plan, ByServer)]
    counts["arrow"] += len(plans) - len(native)
    for start in range(0, len(native), BATCH):
        batch = native[start : start + BATCH]
        queries = [plan.refutations for _, plan in batch]
        answers = kept_rows(store.client, store._indices.objects, [part.record for part in parts], queries, Meter())
        for (clause, plan), answer in zip(batch, answers, strict=True):
            exact = evaluate(reader, clause, 1 << 30, DriverPartEvaluator()).kept
            found = answer[0] if plan.rows is None else np.concatenate(answer)[plan.rows]
            assert found.tolist() == exact.tolist(), (str(clause), clause, plan.refutations)
            counts["checked"] += 1
            counts[type(clause).__name__] += int((~exact).sum())


INDEXES = (
    MinMaxIndex("c"),
    ValueListIndex("c"),
    BloomFilterIndex("c", fpp=0.001),
    HybridIndex("c", threshold=1, fpp=0.001),
    GapListIndex("c", gaps=1),
    PrefixIndex("c", length=2),
    SuffixIndex("c", length=2),
)
TYPES = ("double", "float", "int", "boolean", "decimal(20,2)", "decimal(10,2)", "string", "binary")


def _universe(type_):
    return "decimal(20,2)" if type_.startswith("decimal") else type_


def _objects(type_):
    from skipstone.testing import physical_type

    rows = universes.objects(_universe(type_))[:OBJECTS]
    return [pa.record_batch({"c": batch.column(0).cast(physical_type(type_))}) for batch in rows]


def _described():
    found = {}
    for number, (index, type_) in enumerate(product(INDEXES, TYPES)):
        if index.supports((type_,)):
            found[index, type_] = describe(index, _objects(type_), {"c": type_}, f"i{number}")
    return found


@pytest.fixture(scope="module", params=EACH)
def universe(request):
    """One snapshot with an index of every kind on a column of every type."""
    url = server(request.param)
    store = make(url)
    described = _described()
    records = tuple(one.record for one in described.values())
    snapshot = store.commit(ROOT, None, Change(records, table_of(list(described.values()))))
    yield store, snapshot, described
    remove_indices(url, store._indices.heads.removesuffix("-heads"))


def _sampled(predicates, seed, count):
    return random.Random(seed).sample(list(predicates), min(count, len(predicates)))


def _leaves(described, request):
    """A clause for every index, type and sampled predicate; all predicates with ``--long``."""
    count = 10_000 if request.config.getoption("--long") else 24
    for (_, type_), one in described.items():
        predicates = _sampled(universes.predicates(_universe(type_)), one.record.id, count)
        if type_ == "string":  # the rarer shapes
            subject = Column("c", "string")
            options = [Literal(f"x{n}", "string") for n in range(400)]
            predicates += [tree.In(subject, tuple(options)), tree.NotIn(subject, tuple(options[:30]))]
            predicates += [tree.In(subject, (Literal("a" * 40_000, "string"), Literal("b", "string")))]
        yield from clauses_of(one.index, predicates)


@pytest.mark.slow
def test_every_clause_on_every_type(universe, request):
    store, snapshot, described = universe
    counts = Counter()
    clauses = list(_leaves(described, request))
    assert_server_agrees(store, snapshot, clauses, counts)
    values = [one.index for (index, type_), one in described.items() if index.type_name == "valuelist"]
    picked = [(None,), (1, None), (1.0, float("nan")), (float("nan"),), ("a",), (b"a", b"\xff"), ()]
    assert_server_agrees(store, snapshot, [ValueListClause(i, v) for i in values for v in picked], counts)
    assert counts["checked"] > 600
    for name in ("MinMaxClause", "ValueListMatchClause", "ValueListClause", "GapListClause", "PrefixClause",
                 "SuffixClause", "CountClause", "SomeHashClause"):  # fmt: skip
        assert counts[name] > 20, (name, counts)
    assert counts["arrow"] < len(clauses) / 2


@pytest.mark.parametrize("universe", ["elasticsearch"], indirect=True)
@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (translation, "_OPPOSITES", {"<": "gt", "<=": "gt", ">": "lte", ">=": "lt"}),
        (translation, "_OPPOSITES", {"<": "gte", "<=": "gt", ">": "lt", ">=": "lt"}),
        (clauses_module, "no_ordinary", lambda fields, index, floating: NEVER),
        (clauses_module, "no_null", lambda fields, index, of_elements=False: NEVER),
        (clauses_module, "no_nan", lambda fields, index, of_elements=False: ALWAYS),
        (clauses_module, "known", lambda slot: ALWAYS),
        (clauses_module, "_text_beyond", lambda text: text + "b"),
        (boxes_module, "known", lambda slot: NEVER),
    ],
)
def test_a_wrong_translation_is_noticed(universe, monkeypatch, module, name, wrong):
    store, snapshot, described = universe
    monkeypatch.setattr(module, name, wrong)
    clauses = [
        clause
        for (index, type_), one in described.items()
        if type_ in ("double", "string") and index.type_name in ("minmax", "valuelist", "gaplist", "hybrid")
        for clause in clauses_of(one.index, _sampled(universes.predicates(type_), one.record.id, 60))
    ]
    with pytest.raises(AssertionError, match="minmax|valuelist|gaplist|hybrid"):
        assert_server_agrees(store, snapshot, clauses, Counter())


def _trees(described, chance, count):
    leaves = {key: clauses_of(one.index, universes.predicates(_universe(key[1]))) for key, one in described.items()}
    keys = list(leaves)

    def tree_of(depth):
        if depth == 0 or chance.random() < 0.2:
            return chance.choice(leaves[chance.choice(keys)])
        terms = tuple(tree_of(depth - 1) for _ in range(chance.randint(2, 4)))
        return chance.choice((AndClause, OrClause))(terms)

    return [tree_of(chance.randint(1, 4)) for _ in range(count)]


@pytest.mark.slow
def test_joins_of_what_the_server_knows_and_what_it_does_not(universe, request):
    store, snapshot, described = universe
    reader = store._reader(snapshot, store._parts(snapshot))
    skipped = requests = 0
    clauses = _trees(described, random.Random(7), 400 if request.config.getoption("--long") else 60)
    for clause in [*clauses, NeverClause(), AndClause((clauses[0], NeverClause()))]:
        exact = evaluate(reader, clause, 1 << 30, DriverPartEvaluator()).kept  # also brings Arrow's columns to memory
        before = store.client.requests
        found = store.evaluate(snapshot, clause).kept
        requests = max(requests, store.client.requests - before)
        assert found.tolist() == exact.tolist(), str(clause)
        skipped += int((~exact).sum())
    assert skipped > 2_000
    assert requests == 1


def test_a_deep_and_a_wide_clause(universe):
    store, snapshot, described = universe
    one = described[MinMaxIndex("c"), "int"]
    low, high = clauses_of(
        one.index, [tree.GreaterThan(Column("c", "int"), Literal(4, "int")), tree.IsNull(Column("c", "int"))]
    )
    deep = low
    for n in range(DEEPEST):
        deep = (AndClause if n % 2 else OrClause)((deep, high if n % 3 else low))
    many = [tree.EqualTo(Column("c", "int"), Literal(n + 3, "int")) for n in range(1500)]
    wide = OrClause(tuple(clauses_of(one.index, many)))
    reader = store._reader(snapshot, store._parts(snapshot))
    for clause in (deep, wide):
        exact = evaluate(reader, clause, 1 << 30, DriverPartEvaluator()).kept
        assert store.evaluate(snapshot, clause).kept.tolist() == exact.tolist()
    assert not exact.all()


def test_elements_boxes_and_features(url, prefix):
    chance = random.Random(3)
    words = [None, "a", "b", "cd"]
    lists = [[chance.choices(words, k=chance.randint(0, 3)) for _ in range(k)] for k in (0, 1, 1, 2, 2, 3) * 20]
    arrays = [pa.record_batch({"t": pa.array(rows, pa.list_(pa.string()))}) for rows in lists]
    points = [
        pa.record_batch(
            {
                "lat": pa.array(
                    [chance.choice([None, float("nan"), 1.0, -5.5, 1e308, float("inf")]) for _ in range(2)]
                ),
                "lng": pa.array([chance.uniform(-9, 9) for _ in range(2)]),
            }
        )
        for _ in range(120)
    ]
    listed = describe(ValueListIndex("t"), arrays, {"t": "array<string>"}, "t")
    places = describe(GeoBoxIndex("lat", "lng", boxes=2), points, {"lat": "double", "lng": "double"}, "g")
    bits = FeatureIndex({"one": "a > 1", "two": "b > 1"})
    features = Described(
        bits,
        replace(listed.record, id="f", name=bits.name, type_name=bits.type_name, options={}, fields={"f0": "bool"}),
        {"f0": _padded(pa.array([True, False, None] * 40))},
        listed.row_count,
    )
    store = make(url, prefix)
    described = [places, listed, features]
    change = Change(tuple(one.record for one in described), table_of(described))
    snapshot = store.commit(ROOT, None, change)
    element = Element(Column("t", "array<string>"), "elements")
    text = [Literal(v, "string") for v in ("a", "b", "cd", "x")]
    on_elements = [make_(element, v) for make_ in universes.COMPARISONS for v in text]
    on_elements += [tree.IsNull(element), tree.IsNotNull(element), tree.Like(element, Literal("c%", "string"))]
    sides = [
        make_(Column(name, "double"), Literal(v, "double"))
        for make_ in (tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan, tree.GreaterThanOrEqual, tree.EqualTo)
        for name in ("lat", "lng")
        for v in (0.0, 1.0, -5.5, 8.0, float("inf"), float("nan"))
    ]
    regions = [And(tuple(chance.sample(sides, 3))) for _ in range(150)]
    clauses = [*clauses_of(listed.index, on_elements), *clauses_of(places.index, regions), FeatureClause(bits, 0)]
    counts = Counter()
    assert_server_agrees(store, snapshot, clauses, counts)
    assert counts["checked"] > 100
    assert min(counts[name] for name in ("ValueListMatchClause", "GeoBoxClause", "FeatureClause")) > 20


@on_opensearch
def test_boxes_that_no_document_has(url, prefix):
    """Objects without an ordinary value have no interval: known to be none, and no field in the mapping."""
    empty = describe(GapListIndex("c"), [pa.record_batch({"c": pa.array([None], pa.int32())})] * 5, {"c": "int"}, "g")
    store = make(url, prefix)
    snapshot = store.commit(ROOT, None, Change((empty.record,), table_of([empty], range(6))))
    (clause,) = clauses_of(empty.index, [tree.GreaterThan(Column("c", "int"), Literal(4, "int"))])
    assert store.evaluate(snapshot, clause).kept.tolist() == [False] * 5 + [True]


def test_indexes_added_one_by_one_and_objects_that_change(url, prefix):
    """Metadata spread over parts: each index is asked for in the rows that describe the objects now."""
    objects = _objects("int")[:60]
    first, second = (
        describe(MinMaxIndex("c"), objects, {"c": "int"}, "m"),
        describe(ValueListIndex("c"), objects, {"c": "int"}, "v"),
    )
    store = make(url, prefix)
    records = (first.record, second.record)
    base = store.commit(ROOT, None, Change((first.record,), table_of([first], range(50))))
    base = store.commit(ROOT, base, Change(records, table_of([second], range(25))))
    base = store.commit(ROOT, base, Change(records, table_of([first, second], range(40, 60)), (f"{ROOT}/3",)))
    assert len(store._manifest(base).parts) == 3
    clauses = [c for one in (first, second) for c in clauses_of(one.index, universes.predicates("int"))]
    chance = random.Random(5)
    joins = [chance.choice((AndClause, OrClause))(tuple(chance.sample(clauses, 3))) for _ in range(60)]
    reader = store._reader(base, store._parts(base))
    counts = Counter()
    for clause in joins:
        exact = evaluate(reader, clause, 1 << 30, DriverPartEvaluator()).kept
        assert store.evaluate(base, clause).kept.tolist() == exact.tolist(), str(clause)
        counts["skipped"] += int((~exact).sum())
    assert counts["skipped"] > 300
    few = universes.predicates("int")[:2]
    both = AndClause((*clauses_of(first.index, few), *clauses_of(second.index, few)))
    by_name = {(r.name, r.type_name): r for r in records}
    plans = plan_clause(reader, [part.directory() for part in reader.parts], by_name, both, Meter())
    assert len(plans.terms) == 2  # the one index and the other: their rows differ
    assert not any(isinstance(term, ByArrow) for term in plans.terms)


def test_what_the_server_cannot_hold_is_arrows(url, prefix):
    """Texts beyond the server's longest term: the field is not searchable in that part."""
    values = ["x" * 32_767, "ok", None]
    texts = [pa.record_batch({"c": pa.array([v], pa.string())}) for v in values]
    listed = describe(ValueListIndex("c"), texts, {"c": "string"}, "v")
    fits = describe(ValueListIndex("c"), [pa.record_batch({"c": pa.array(["y" * 32_766])})], {"c": "string"}, "w")
    store = make(url, prefix)
    snapshot = store.commit(ROOT, None, Change((listed.record, fits.record), table_of([listed, fits])))
    (part,) = store._parts(snapshot)
    slots = part.directory().search
    assert ("v", "values") not in slots
    assert ("w", "values") in slots
    subject = Column("c", "string")
    literals = [Literal(text, "string") for text in ("x" * 32_767, "ok", "y" * 32_766, "y" * 32_765)]
    skipped = 0
    for one in (listed, fits):
        for clause in clauses_of(one.index, [tree.EqualTo(subject, v) for v in literals]):
            exact = evaluate(store._reader(snapshot, [part]), clause, 1 << 30, DriverPartEvaluator()).kept
            assert store.evaluate(snapshot, clause).kept.tolist() == exact.tolist()
            skipped += int((~exact).sum())
    assert skipped == (2 + 2 + 3 + 3) + (1 + 1 + 0 + 1)


class SpanMetadata(StoredRangeIndex.metadata_type):
    """The least and the most, of another package."""


@dataclass(frozen=True)
class SpanIndex(StoredRangeIndex):
    metadata_type = SpanMetadata


@dataclass(frozen=True)
class SpanHolds(HasValue):
    """The span holds a value."""


class OddSpanHolds(SpanHolds):
    """Says something else than its base class."""

    def might_match(self, metadata):
        return pa.repeat(pa.scalar(True), len(metadata))


@searchable(SpanMetadata)
def span_fields(record, stored, row_count):
    return {"least": plain(stored["low"]), "most": plain(stored["high"])}


@translates(SpanHolds)
def span_query(clause, fields):
    least, most = (fields.slot(clause.index, name) for name in ("least", "most"))
    if least is None or most is None:
        return None
    return some([least.refuted("<=", clause.value), most.refuted(">=", clause.value)])


@on_elasticsearch
def test_translations_of_another_package(url, prefix):
    store = make(url, prefix)
    index = SpanIndex("s")
    snapshot = commit(store, None, None, [record(index, "a")], rows_of(30), root=ROOT)
    parts = store._parts(snapshot)
    reader, directories = store._reader(snapshot, parts), [part.directory() for part in parts]
    records = {(r.name, r.type_name): r for r in snapshot.indexes}
    assert isinstance(plan_clause(reader, directories, records, SpanHolds(index, 25), Meter()), ByServer)
    assert isinstance(plan_clause(reader, directories, records, OddSpanHolds(index, 25), Meter()), ByArrow)
    counts = Counter()
    assert_server_agrees(store, snapshot, [SpanHolds(index, n) for n in (-1, 0, 25, 299, 300)], counts)
    assert counts["SpanHolds"] == 30 + 29 + 29 + 29 + 30
    assert store.evaluate(snapshot, OddSpanHolds(index, 25)).kept.all()


@on_opensearch
def test_more_objects_than_a_page(url, prefix):
    """Beyond ten thousand hits: as many requests as expected, and the shorter side where that is the refuted one."""
    count = 25_000
    index = replace(MinMaxIndex("c"), name="m")
    record = IndexRecord("m", "m", "minmax", index.options(), (), ReadProfile("parquet", {}, {}, ""),
                         {"lower": "int32", "upper": "int32", "null_count": "int64"})  # fmt: skip
    paths = [f"{ROOT}/{n}" for n in range(count)]
    numbers = pa.array(np.arange(count), pa.int32())
    table = pa.table(
        {
            "path": pa.array(paths),
            "digest": pa.array([digest(path) for path in paths], pa.binary(16)),
            **{name: pa.array(np.ones(count, np.int64)) for name in ("length", "modified", "row_count")},
            "etag": pa.array([""] * count),
            "trusted": pa.array(np.ones(count, np.bool_)),
            "m:lower": numbers,
            "m:upper": numbers,
            "m:null_count": pa.array(np.zeros(count, np.int64)),
        }
    )
    store = make(url, prefix)
    snapshot = store.commit(ROOT, None, Change((record,), table))
    store.coverage(snapshot, record)
    expected = {7: 1, 1_000: 1, 1_001: 2, 11_000: 2, 11_001: 3, 13_500: 3, 24_000: 2, 25_000: 2}
    for kept, most in expected.items():
        (clause,) = clauses_of(index, [tree.LessThan(Column("c", "int"), Literal(kept, "int"))])
        before = store.client.requests
        found = store.evaluate(snapshot, clause).kept
        assert found.tolist() == [n < kept for n in range(count)]
        assert store.client.requests - before == most, kept
