import math
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from tests.effort import instructions

from skipstone.errors import SettingError
from skipstone.expressions import tree
from skipstone.expressions.tree import Column, EqualTo, In, Literal
from skipstone.indexes import bloom_filter
from skipstone.indexes.bloom_filter import BloomFilterClause, BloomFilterIndex, make_filter
from skipstone.indexes.hybrid import HybridIndex
from skipstone.querying.lookup import turns_and_blocks
from skipstone.testing import InMemoryMetadata, collect, kept_objects
from skipstone.toolkit.hashing import spark_hash

INDEX = BloomFilterIndex("c")


def hashes(start, count):
    return pa.array([spark_hash(v, "bigint") for v in range(start, start + count)], pa.int64())


def stored(*filters):
    fields = {
        "bits": pa.array([f["bits"] for f in filters], pa.binary()),
        "hashes": pa.array([f["hashes"] for f in filters], pa.int32()),
    }
    return InMemoryMetadata(fields, pa.array([1] * len(filters)))


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("count", [1, 2, 5, 10, 100, 1000])
def test_the_false_positive_rate_is_what_was_asked_for(fpp, count):
    """At least 20,000 lookups of absent values; every present value is found."""
    filters = [make_filter(hashes(1_000_000 * n, count), fpp) for n in range(max(20, min(400, 4000 // count)))]
    known = stored(*filters)
    absent = [spark_hash(-v, "bigint") for v in range(1, max(50, 20_000 // len(filters)) + 1)]
    found = [BloomFilterClause(INDEX, (h,)).might_match(known).true_count for h in absent]
    rate = sum(found) / (len(absent) * len(filters))
    assert rate < fpp * 1.25 + 3 * math.sqrt(fpp / (len(absent) * len(filters)))
    present = hashes(0, min(count, 100)).to_pylist()
    assert all(BloomFilterClause(INDEX, (h,)).might_match(known)[0].as_py() for h in present)


def test_the_size_is_the_papers():
    """And a sixteenth more at most: so many bytes that they can be cut into equal slices, or blocks."""
    made = make_filter(hashes(0, 1000), 0.01, blocked=False)
    paper = math.ceil(1000 * -math.log(0.01) / math.log(2) ** 2 / 8)
    assert paper == 1199
    assert len(made["bits"]) == 1216 == 19 * 64
    assert made["hashes"] == 7
    made = make_filter(hashes(0, 1000), 0.01)
    assert len(made["bits"]) == 1248 == 78 * 16  # 16 blocks, each of 64 bytes at least
    assert made["hashes"] == -(4 << 16 | 7)
    for fpp in (0.5, 0.01, 1e-4, 1e-9):
        for count in (1, 2, 10, 100, 333, 5_000, 40_000):
            paper = math.ceil(count * -math.log(fpp) / math.log(2) ** 2 / 8)
            assert paper <= len(make_filter(hashes(0, count), fpp)["bits"]) <= paper * 17 / 16


@pytest.mark.parametrize("fpp", [0.2, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("count", [560, 1_100, 4_300, 30_000])
def test_blocks_do_not_cost_what_was_asked_for(fpp, count):
    """Of the filters as they are: the mean, over the blocks, of the chance that all positions of a value are taken."""
    rng = np.random.default_rng(count)
    rates = []
    for _ in range(max(4, 60_000 // count)):
        made = make_filter(pa.array(rng.integers(-(1 << 63), (1 << 63) - 1, count)), fpp)
        turns, blocks = turns_and_blocks(np.array([made["hashes"]]))
        taken = np.unpackbits(np.frombuffer(made["bits"], np.uint8)).reshape(1 << int(blocks[0]), -1).mean(axis=1)
        rates.append((taken ** int(turns[0])).mean())
        assert blocks[0] >= 1
    assert np.mean(rates) < 1.02 * fpp


def test_a_value_is_looked_up_in_one_block_and_found_there():
    rng = np.random.default_rng(2)
    for count in (560, 2_000, 30_000):
        known = pa.array(rng.integers(-(1 << 63), (1 << 63) - 1, count))
        made = make_filter(known, 0.01)
        log = int(turns_and_blocks(np.array([made["hashes"]]))[1][0])
        for literal in known.to_pylist()[:50]:
            places = list(islice(bloom_filter._places(literal, log), 9))
            assert len({place >> (64 - log) for place in places}) == 1
        clauses = [BloomFilterClause(INDEX, (h,)) for h in known.to_pylist()[:300]]
        assert all(clause.might_match(stored(made))[0].as_py() for clause in clauses)


def test_blocks_that_make_no_sense_are_not_used():
    made = make_filter(hashes(0, 1000), 0.01)
    odd = [-1, -(9 << 16 | 7), -(8 << 16 | 7), -(1 << 31), -(4 << 16)]  # 1248 bytes are not 256 blocks
    known = stored(*({**made, "hashes": number} for number in odd))
    answers = BloomFilterClause(INDEX, (hashes(0, 1)[0].as_py(),)).might_match(known).to_pylist()
    assert answers[1:] == [None] * 4


def test_filters_of_elements_have_no_blocks():
    """``IS NOT NULL`` of an element asks whether the number of positions is above zero, in older releases too."""
    lists = pa.array([[*range(2_000)]], pa.list_(pa.int64()))
    for index in (BloomFilterIndex("c"), HybridIndex("c", threshold=10)):
        hashing = index.inputs(("array<bigint>",))[-1]
        rows = {"c": lists, "hashes": pa.ListArray.from_arrays([0, 2_000], hashes(0, 2_000))}
        inputs = {hashing: lambda batch: batch.column(1)}
        known = collect(index, [pa.record_batch(rows)], {"c": "array<bigint>"}, inputs=inputs)
        assert known.fields["hashes"].to_pylist() == [7]


def test_an_object_of_nulls_has_no_value_and_costs_no_bits():
    known = collect(INDEX, [pa.record_batch({"c": pa.array([None, None], pa.int32())})], {"c": "int"})
    assert known.fields["bits"].to_pylist() == [b""]
    assert not kept_objects(INDEX, EqualTo(Column("c", "int"), Literal(1, "int")), known).any()
    assert not kept_objects(INDEX, tree.IsNotNull(Column("c", "int")), known).any()


def test_an_unknown_or_senseless_filter_keeps():
    fine = make_filter(hashes(0, 3), 0.01)
    known = stored(fine, {"bits": None, "hashes": 7}, {"bits": b"\0", "hashes": None}, {"bits": b"\0", "hashes": 0})
    answer = BloomFilterClause(INDEX, (spark_hash(77, "bigint"),)).might_match(known)
    assert answer.to_pylist() == [False, None, None, None]


def test_lookups_work_on_a_slice():
    known = stored(*(make_filter(hashes(n * 10, 10), 1e-6) for n in range(4)))
    part = InMemoryMetadata({k: v.slice(2) for k, v in known.fields.items()}, known.row_count.slice(2))
    clause = BloomFilterClause(INDEX, (spark_hash(35, "bigint"),))
    assert clause.might_match(part).to_pylist() == [False, True]


def test_too_many_lookups_keep_what_was_not_looked_up(monkeypatch):
    known = stored(*(make_filter(hashes(n * 10, 10), 1e-6) for n in range(4)))
    absent = tuple(spark_hash(v, "bigint") for v in range(100, 110))
    clause = BloomFilterClause(INDEX, (spark_hash(5, "bigint"), *absent))
    assert clause.might_match(known).to_pylist() == [True, False, False, False]
    monkeypatch.setattr(bloom_filter, "MAX_PROBES", 12)
    assert clause.might_match(known).to_pylist() == [True, None, None, None]


def test_long_lists_stay_bounded(monkeypatch):
    one = make_filter(hashes(0, 500), 1e-9)  # no literal is found by chance, and all are looked up everywhere
    known = stored(*([one] * 8192))
    column = Column("c", "bigint")
    clause = INDEX.filters()[0].label_node(In(column, tuple(Literal(-v, "bigint") for v in range(1, 10_001))))
    probed, probe = [], bloom_filter._probe
    monkeypatch.setattr(bloom_filter, "_probe", lambda *asked: probed.append(len(asked[1])) or probe(*asked))
    clause.might_match(known)
    assert bloom_filter.MAX_PROBES / 2 < sum(probed) <= bloom_filter.MAX_PROBES


def test_one_lookup_takes_as_many_steps_over_8192_objects_as_over_512():
    one, clause = make_filter(hashes(0, 500), 0.01), BloomFilterClause(INDEX, (spark_hash(1, "bigint"),))
    few, many = (stored(*([one] * objects)) for objects in (512, 8192))
    assert instructions(lambda: clause.might_match(many)) <= instructions(lambda: clause.might_match(few)) < 5_000


def test_other_predicates_get_no_clause():
    (labelling,) = INDEX.filters()
    column, one = Column("c", "int"), Literal(1, "int")
    for node in (tree.NotEqualTo(column, one), tree.LessThan(column, one), tree.NotIn(column, (one,))):
        assert labelling.label_node(node) is None
    assert labelling.label_node(EqualTo(Column("c"), one)) is None  # of no known type: cannot be hashed
    assert labelling.label_node(EqualTo(column, Literal(2**40, "bigint"))) is None


@pytest.mark.parametrize("fpp", [0, 1, -0.5, 2, "0.01", True, math.nan])
def test_a_probability_that_is_none_is_refused(fpp):
    with pytest.raises(SettingError, match="not a probability"):
        BloomFilterIndex("c", fpp=fpp)


def test_merging_many_parts_keeps_every_value():
    values = np.arange(30_000)
    known = collect(INDEX, [pa.record_batch({"c": values})], {"c": "bigint"}, rows_per_part=100)
    whole = collect(INDEX, [pa.record_batch({"c": values})], {"c": "bigint"})
    assert known.fields == whole.fields
