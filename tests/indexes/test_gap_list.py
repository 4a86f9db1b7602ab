"""GapList held against the truth: every small object, random ones of every type, and the choice of gaps itself."""

import doctest
import itertools
import json
import math
import pickle
import random
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import instructions, peak_bytes
from tests.indexes.universes import COMPARISONS, UNIVERSES, check, describe, objects, predicates

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import And, Column, In, IsNotNull, IsNull, Like, Literal, Not, NotIn, Or, StartsWith
from skipstone.indexes import affix
from skipstone.indexes.gap_list import gaps as _gaps
from skipstone.indexes.gap_list import index as gap_list
from skipstone.indexes.gap_list.gaps import Intervals, ordered_form
from skipstone.indexes.gap_list.index import GapListIndex, GapListMetadata
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexing.objects import DataObject
from skipstone.stores.parquet.part_writer import PartWriter
from skipstone.testing import (
    InMemoryMetadata,
    assert_merges,
    assert_monotone,
    assert_represents,
    collect,
    kept_objects,
    leaf_predicates,
    physical_type,
    values_of,
)
from skipstone.toolkit import bounds as _bounds

OBJECT = DataObject("o", 1, 0)
WHOLE, TEXT = Column("c", "int"), Column("c", "string")
TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "string",
    "binary", "date", "timestamp", "timestamp_ntz", "time(6)", "interval year to month", "interval day to second",
]  # fmt: skip


def batch(values, type_="int"):
    return pa.record_batch({"c": pa.array(values, physical_type(type_))})


def stored(values, type_="int", **options):
    """Return the bounds that are stored of one object."""
    return collect(GapListIndex("c", **options), [batch(values, type_)], {"c": type_}).fields["bounds"][0].as_py()


def between(low, high, type_="int"):
    column = Column("c", type_)
    return And(
        (tree.GreaterThanOrEqual(column, Literal(low, type_)), tree.LessThanOrEqual(column, Literal(high, type_)))
    )


def known(bounds, type_, nulls=None, rows=None, **more):
    fields = {
        "bounds": pa.array(bounds, pa.list_(type_)),
        "null_count": pa.array(nulls or [0] * len(bounds), pa.int64()),
    }
    return InMemoryMetadata({**fields, **more}, pa.array(rows or [9] * len(bounds), pa.int64()))


# --- against the truth -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", UNIVERSES)
@pytest.mark.parametrize("gaps", [1, 8])
def test_every_small_object_that_is_relevant_is_kept_and_more_is_skipped_than_by_bounds(gaps, type_):
    outcome = check(GapListIndex("c", gaps=gaps), type_)
    bounds = check(MinMaxIndex("c"), type_)
    assert outcome.relevant > 0
    assert outcome.skipped >= bounds.skipped + (0 if type_ == "boolean" else bounds.skipped * 0.03)
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * 0.65


@pytest.mark.parametrize("type_", ["double", "float", "decimal(20,2)"])
def test_enough_gaps_skip_every_irrelevant_object(type_):
    outcome = check(GapListIndex("c"), type_)
    assert outcome.skipped == outcome.pairs - outcome.relevant


@pytest.mark.parametrize("type_", UNIVERSES)
def test_objects_in_parts_are_served_as_well(type_):
    index = GapListIndex("c", gaps=2)
    assert check(index, type_, rows_per_part=1) == check(index, type_)


@pytest.mark.parametrize("type_", UNIVERSES)
def test_forgetting_only_keeps(type_):
    index = GapListIndex("c", gaps=2)
    assert_monotone(index, predicates(type_), describe(index, type_))


@pytest.mark.parametrize("type_", ["double", "int", "string"])
def test_closing_gaps_only_keeps(type_):
    fine, coarse = GapListIndex("c", gaps=2), GapListIndex("c", gaps=1)
    fine_known, coarse_known = describe(fine, type_), describe(coarse, type_)
    for predicate in predicates(type_):
        more = kept_objects(fine, predicate, fine_known) & ~kept_objects(coarse, predicate, coarse_known)
        assert not more.any(), predicate


def conjunctions(type_):
    """Every pair of comparisons with literals of the universe, and some of other leaves."""
    column = Column("c", type_)
    literals = [Literal(v, type_) for v in UNIVERSES[type_][1]]
    leaves = [make(column, literal) for make in COMPARISONS for literal in literals]
    leaves += [NotIn(column, tuple(literals[:2])), In(column, tuple(literals[-2:])), IsNotNull(column), IsNull(column)]
    if type_ == "double":
        leaves += [tree.IsNaN(column), Not(tree.IsNaN(column))]
    return [And(pair) for pair in itertools.combinations(leaves, 2)]


@pytest.mark.parametrize("type_", ["double", "int"])
def test_every_conjunction_of_two_is_served(type_):
    index = GapListIndex("c", gaps=2)
    found = conjunctions(type_)
    outcome = assert_represents(index, found, objects(type_), {"c": type_})
    assert outcome.relevant > 1000
    each = collect(index, objects(type_), {"c": type_})
    by_terms = sum(
        int((~(kept_objects(index, p.terms[0], each) & kept_objects(index, p.terms[1], each))).sum()) for p in found
    )
    assert outcome.skipped > by_terms * 1.02  # the conjunction refutes what none of its terms does
    assert_monotone(index, found[::17], each)


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_clauses_represent_their_predicates(type_, data):
    rows = st.lists(values_of(type_), max_size=8)
    made = [batch(found, type_) for found in data.draw(st.lists(rows, min_size=1, max_size=4))]
    leaves = st.lists(leaf_predicates("c", type_), min_size=1, max_size=3)
    asked = data.draw(st.lists(leaves.map(lambda p: And(tuple(p)) if len(p) > 1 else p[0]), min_size=1, max_size=5))
    ends = data.draw(st.lists(values_of(type_, nulls=False), max_size=4))
    index = GapListIndex("c", gaps=data.draw(st.integers(1, 3)), workload=ranges(ends) or None)
    index.check_types((type_,))
    metadata = collect(index, made, {"c": type_}, rows_per_part=data.draw(st.none() | st.integers(1, 3)))
    assert_represents(index, asked, made, {"c": type_}, metadata=metadata)
    assert_monotone(index, asked, metadata)


def ranges(ends):
    """Make ranges of whatever values, two at a time."""
    ordinary = [v for v in ends if v == v]
    return [tuple(sorted(pair)) for pair in zip(ordinary[::2], ordinary[1::2], strict=False)]


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_parts_merge_to_the_whole(type_, data):
    rows = batch(data.draw(st.lists(values_of(type_), max_size=10)), type_)
    assert_merges(GapListIndex("c", gaps=data.draw(st.integers(1, 3))), rows, {"c": type_})


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 30) | st.none(), min_size=1, max_size=15), seed=st.integers(0, 99))
def test_parts_merge_in_any_order_and_grouping(values, seed):
    index, chance = GapListIndex("c", gaps=2, workload=[(3, 5), (20, 21, 2.0)]), random.Random(seed)
    states = [index.collect_metadata(batch([value])) for value in values]
    whole = index.collect_metadata(batch(values)).finish(OBJECT)
    chance.shuffle(states)
    while len(states) > 1:
        one, other = (pickle.loads(pickle.dumps(states.pop(chance.randrange(len(states))))) for _ in range(2))
        states.append(one.merge(other))
    merged = states[0].finish(OBJECT)
    assert merged["bounds"].equals(whole["bounds"])
    assert merged["null_count"] == whole["null_count"]


@pytest.mark.parametrize("type_", ["bigint", "double", "decimal(10,2)", "decimal(38,10)", "string"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_state_that_runs_over_stays_sound_and_bounded(type_, data):
    """With room for five gaps, batches of many values close gaps again and again."""
    values = data.draw(st.lists(values_of(type_), min_size=30, max_size=60))
    asked = data.draw(st.lists(leaf_predicates("c", type_), min_size=3, max_size=6))
    index = GapListIndex("c", gaps=1)
    rows = batch(values, type_)
    for parts in (None, 1, 13):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gap_list, "STATE_GAPS", 5)
            metadata = collect(index, [rows], {"c": type_}, rows_per_part=parts)
        assert len(metadata.fields["bounds"][0]) <= 4
        assert_represents(index, asked, [rows], {"c": type_}, metadata=metadata)


# --- which gaps ------------------------------------------------------------------------------------------------------


def test_the_widest_gaps_are_kept():
    assert stored([1, 2, 3, 10, 12, 50, 51, 100], gaps=1) == [1, 51, 100, 100]
    assert stored([1, 2, 3, 10, 12, 50, 51, 100], gaps=2) == [1, 12, 50, 51, 100, 100]
    assert stored([1, 2, 3, 10, 12, 50, 51, 100], gaps=9) == [1, 3, 10, 10, 12, 12, 50, 51, 100, 100]
    assert stored([5, 5, None]) == [5, 5]
    assert stored([None]) == []


WIDEST = {
    "bigint": ([-(2**63), -(2**63) + 5, 0, 2**63 - 1], [-(2**63), -(2**63) + 5, 0, 0, 2**63 - 1, 2**63 - 1], 2),
    "double": ([-math.inf, -1.0, 0.5, 7.0, math.nan], [-math.inf, -math.inf, -1.0, 7.0], 1),
    "float": ([0.0, 1.0, 5.0, 5.25], [0.0, 1.0, 5.0, 5.25], 1),
    "decimal(10,2)": (
        [Decimal(v) for v in ("-9.00", "-8.99", "0.00", "30.00")],
        ["-9.00", "0.00", "30.00", "30.00"],
        1,
    ),
    "decimal(38,10)": ([Decimal(10) ** 25, Decimal(-1), Decimal(0)], ["-1", "0", "1e25", "1e25"], 1),
    "string": (["x/aa", "x/ab", "x/k", "x/z", "x/za"], [b"x/aa", b"x/k", b"x/z", b"x/za"], 1),
    "binary": ([b"", b"\x01", b"\x90", b"\xff"], [b"", b"\x01", b"\x90", b"\xff"], 1),
    "date": ([19000, 19001, 19500], [19000, 19001, 19500, 19500], 1),
    "boolean": ([True, False], [False, True], 8),
}


@pytest.mark.parametrize("type_", WIDEST)
def test_width_has_a_meaning_for_every_ordered_type(type_):
    values, bounds, gaps = WIDEST[type_]
    if type_.startswith("decimal"):
        bounds = [Decimal(bound) for bound in bounds]
    assert stored(values, type_, gaps=gaps) == bounds


@settings(max_examples=200, deadline=None)
@given(
    values=st.sets(st.integers(-50, 50), min_size=2, max_size=12),
    gaps=st.integers(1, 4),
    type_=st.sampled_from(["int", "double", "decimal(10,2)", "decimal(38,10)", "timestamp"]),
)
def test_no_other_gaps_are_wider(values, gaps, type_):
    found = sorted(values)
    if type_.startswith("decimal"):
        found = [Decimal(v) for v in found]
    widths = sorted(b - a for a, b in itertools.pairwise(found))
    bounds = stored(found, type_, gaps=gaps)
    inner = sorted(b - a for a, b in zip(bounds[1::2], bounds[2::2], strict=False))
    if type_ in ("int", "timestamp"):
        widths = [w for w in widths if w > 1]
    assert inner == widths[-gaps:]


@settings(max_examples=150, deadline=None)
@given(
    values=st.sets(st.integers(0, 40), min_size=3, max_size=9),
    asked=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=12),
    gaps=st.integers(1, 3),
    parts=st.none() | st.integers(1, 4),
)
def test_no_other_gaps_serve_the_workload_better(values, asked, gaps, parts):
    """Against every choice of k gaps, with the weight of what is skipped as the clause itself answers."""
    workload = [(low, low + span, weight) for low, span, weight in asked]
    index = GapListIndex("c", gaps=gaps, workload=workload)
    metadata = collect(index, [batch(sorted(values))], {"c": "int"}, rows_per_part=parts)

    ranked = sorted(values)
    choices = [metadata.fields["bounds"][0].as_py()] + [
        [ranked[0], *itertools.chain.from_iterable(chosen), ranked[-1]]
        for size in range(gaps + 1)
        for chosen in itertools.combinations(list(itertools.pairwise(ranked)), size)
    ]
    each = known(choices, pa.int32())  # an object for every choice
    skipped = sum(weight * ~kept_objects(index, between(low, high), each) for low, high, weight in workload)
    assert skipped[0] == skipped.max()


def test_a_workload_prefers_its_gaps_to_wider_ones_and_fills_up_with_those():
    values = [0, 10, 20, 1000, 3000]
    assert stored(values, gaps=1) == [0, 1000, 3000, 3000]
    assert stored(values, gaps=1, workload=[(12, 15)]) == [0, 10, 20, 3000]
    assert stored(values, gaps=2, workload=[(12, 15)]) == [0, 10, 20, 1000, 3000, 3000]
    assert stored(values, gaps=1, workload=[(12, 15), (1, 2), (3, 4)]) == [0, 0, 10, 3000]
    assert stored(values, gaps=1, workload=[(12, 15, 2.5), (1, 2), (3, 4)]) == [0, 10, 20, 3000]
    assert stored(values, gaps=1, workload=[(5, 15), (None, 7), (2000, None)]) == [0, 1000, 3000, 3000]  # in no gap


def test_recorded_predicates_are_ranges():
    def bounds_of(*workload):
        return [(r.low, r.high, r.low_open, r.high_open) for r in GapListIndex("c", workload=workload).ranges or ()]

    def more(v):
        return tree.GreaterThan(WHOLE, Literal(v, "int"))

    def at_most(v):
        return tree.LessThanOrEqual(WHOLE, Literal(v, "int"))

    assert bounds_of(And((more(3), at_most(9), Like(Column("d", "string"), Literal("x%"))))) == [(3, 9, True, False)]
    assert bounds_of(And((more(3), more(5), at_most(9), tree.LessThan(WHOLE, Literal(9, "int"))))) == [
        (5, 9, True, True)
    ]
    assert bounds_of(Not(more(3))) == [(None, 3, False, False)]
    assert bounds_of(tree.EqualTo(Literal(4, "int"), WHOLE)) == [(4, 4, False, False)]
    assert bounds_of(StartsWith(TEXT, Literal("ab", "string"))) == [(b"ab", b"ac", False, True)]
    assert bounds_of(Like(TEXT, Literal("ab%c_", "string"))) == [(b"ab", b"ac", False, True)]
    assert bounds_of(And((more(3), tree.LessThan(WHOLE, Literal(2, "int"))))) == []
    shared = GapListIndex("c", workload=[(Or((at_most(1), In(WHOLE, (Literal(5), Literal(7))))), 6)]).ranges
    assert [(r.low, r.high, r.weight) for r in shared] == [(None, 1, 2.0), (5, 5, 2.0), (7, 7, 2.0)]
    between_ten_and_twenty = And((more(10), tree.LessThan(WHOLE, Literal(20, "int"))))
    assert stored([0, 10, 20, 1000, 3000], gaps=1, workload=[between_ten_and_twenty]) == [0, 10, 20, 3000]


@pytest.mark.parametrize(
    ("type_", "values", "wide", "asked", "workload"),
    [
        ("date", [0, 10, 20, 9000], [0, 20, 9000, 9000], [0, 10, 20, 9000], [(date(1970, 1, 13), date(1970, 1, 16))]),
        (
            "timestamp",
            [0, 10**6, 5 * 10**6, 10**12],
            [0, 5 * 10**6, 10**12, 10**12],
            [0, 10**6, 5 * 10**6, 10**12],
            [(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC))],
        ),
        (
            "timestamp_ntz",
            [0, 86_400_000_000, 4 * 86_400_000_000, 10**15],
            [0, 4 * 86_400_000_000, 10**15, 10**15],
            [0, 86_400_000_000, 4 * 86_400_000_000, 10**15],
            [(date(1970, 1, 3), date(1970, 1, 4))],
        ),
        ("time(6)", [0, 10**9, 5 * 10**9, 10**12], [0, 5 * 10**9, 10**12, 10**12], [0, 10**9, 5 * 10**9, 10**12],
         [(clock(0, 0, 2), clock(0, 0, 3))]),
        ("interval day to second", [0, 10**6, 5 * 10**6, 10**12], [0, 5 * 10**6, 10**12, 10**12],
         [0, 10**6, 5 * 10**6, 10**12], [(timedelta(seconds=2), timedelta(seconds=3))]),
        ("decimal(10,2)", [Decimal(v) for v in (0, 1, 2, 90)], [0, 2, 90, 90], [0, 1, 2, 90],
         [(Decimal("1.255"), Decimal("1.5"))]),
        ("double", [0.0, 1.0, 2.0, math.inf], [0.0, 2.0, math.inf, math.inf], [0.0, 1.0, 2.0, math.inf], [(1.2, 1.5)]),
        ("float", [0.0, 1.0, 2.0, 90.0], [0.0, 2.0, 90.0, 90.0], [0.0, 1.0, 2.0, 90.0], [(1.1, 1.7)]),
        ("string", ["a", "b", "c", "z"], [b"a", b"c", b"z", b"z"], [b"a", b"b", b"c", b"z"], [("bb", "bé")]),
        ("binary", [b"a", b"b", b"c", b"z"], [b"a", b"c", b"z", b"z"], [b"a", b"b", b"c", b"z"], [(b"bb", b"b\xff")]),
        ("bigint", [0, 10, 20, 9000], [0, 20, 9000, 9000], [0, 10, 20, 9000],
         [(np.int64(12), np.int64(15)), (5, 2**90)]),
    ],
)  # fmt: skip
def test_workloads_of_every_type_survive_the_manifest(type_, values, wide, asked, workload):
    assert stored(values, type_, gaps=1) == wide
    index = GapListIndex("c", gaps=1, workload=workload)
    index.check_types((type_,))
    kept = json.loads(json.dumps(dict(index.options())))
    again = GapListIndex.from_options(index.name, kept)
    assert again == index
    assert hash(again) == hash(index)
    found = collect(again, [batch(values, type_)], {"c": type_}).fields["bounds"][0].as_py()
    assert found == asked


def test_other_options_survive_the_manifest_too():
    index = GapListIndex("s.x", gaps=3, name="mine")
    assert GapListIndex.from_options("mine", json.loads(json.dumps(dict(index.options())))) == index
    assert GapListIndex("c", workload=[]) == GapListIndex("c") == GapListIndex("c", workload=iter(()))
    infinite = GapListIndex("c", workload=[(-math.inf, 1.5, 2), (True, True)])
    assert GapListIndex.from_options(infinite.name, json.loads(json.dumps(dict(infinite.options())))) == infinite


@pytest.mark.parametrize("gaps", [0, -1, 1.5, "8", True, None])
def test_a_number_of_gaps_is_a_positive_whole_number(gaps):
    with pytest.raises(SettingError, match="positive whole number"):
        GapListIndex("c", gaps=gaps)


@pytest.mark.parametrize(
    "workload",
    [
        7, "ab", b"ab", between(1, 2), [3], [(1,)], [(1, 2, 3, 4)], [(2, 1)], [(None, None)], [("a", 1)], [(1, 2, 0)],
        [(1, 2, -1)], [(1, 2, math.nan)], [(1, 2, "x")], [(1, 2, True)], [(math.nan, 1.0)], [(Decimal("NaN"), None)],
        [([1], [2])], [tree.EqualTo(Column("d", "int"), Literal(1, "int"))], [IsNotNull(WHOLE)],
        [Or((tree.EqualTo(WHOLE, Literal(1, "int")), IsNull(Column("d"))))], [(between(1, 2), 0)],
    ],
)  # fmt: skip
def test_a_workload_that_makes_no_sense_is_refused(workload):
    with pytest.raises(SettingError, match="workload"):
        GapListIndex("c", workload=workload)


@pytest.mark.parametrize(
    ("type_", "workload"),
    [
        ("int", [("a", "b")]), ("int", [(1.5, 2.5)]), ("string", [(1, 2)]), ("date", [(datetime(2024, 1, 1), None)]),  # noqa: DTZ001
        ("boolean", [(0, 1)]), ("decimal(10,2)", [(0.5, 1.5)]), ("interval year to month", [(timedelta(1), None)]),
    ],
)  # fmt: skip
def test_a_workload_of_another_type_is_refused_when_the_column_is_known(type_, workload):
    with pytest.raises(SettingError, match="give values of the column's type"):
        GapListIndex("c", workload=workload).check_types((type_,))


@pytest.mark.parametrize("type_", ["string collate UTF8_LCASE", "interval", "array<int>", "variant", "struct<a:int>"])
def test_types_without_a_known_order_are_refused(type_):
    with pytest.raises(UnsupportedTypeError):
        GapListIndex("c").check_types((type_,))


def test_a_workload_is_not_part_of_the_name():
    assert GapListIndex("c", workload=[(1, 2)]).name == "gaplist(c)"
    assert GapListIndex("c", gaps=2, workload=[(1, 2)]).with_columns(("C",)).name == "gaplist(C, gaps=2)"


# --- what is kept of long objects ------------------------------------------------------------------------------------


def test_gaps_that_hold_ranges_survive_however_many_others_there_are(monkeypatch):
    monkeypatch.setattr(gap_list, "STATE_GAPS", 16)
    values = np.arange(0, 30_000, 3)
    values = values[(values < 600) | (values > 612)]
    rows = batch(np.random.default_rng(1).permutation(values).tolist())
    index = GapListIndex("c", gaps=2, workload=[(604, 608), (901, 902)])
    for parts in (None, 500):
        metadata = collect(index, [rows], {"c": "int"}, rows_per_part=parts)
        assert metadata.fields["bounds"][0].as_py() == [0, 597, 615, 900, 903, 29_997]


@pytest.mark.parametrize("type_", ["string", "bigint"])
def test_a_state_stays_small(type_):
    rng = np.random.default_rng(3)
    index = GapListIndex("c")
    states = []
    for _ in range(6):
        numbers = rng.integers(0, 1 << 60, 20_000)
        values = [f"{v:020d}" for v in numbers] if type_ == "string" else numbers
        states.append(index.collect_metadata(batch(values, type_)))
    merged = reduce(GapListMetadata.merge, states)
    assert sum(map(len, merged.parts)) <= 4 * gap_list.STATE_GAPS + 6
    assert len(merged.finish(OBJECT)["bounds"]) == 18


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.binary(max_size=4) | st.binary(min_size=1, max_size=70), min_size=12, max_size=60, unique=True),
    most=st.integers(1, 5),
)
def test_many_bytes_are_sorted_only_beside_the_widest_gaps(values, most):
    """The short cut holds all values, and its gaps are gaps, no narrower than those of the long way."""
    ordered = pc.binary_slice(pa.array(values + values[::2], pa.binary()), 0, 65)
    quick = Intervals._of_many_bytes(ordered, most)
    heads = sorted({v[:65] for v in values})
    spans = list(zip(quick.starts.to_pylist(), quick.ends.to_pylist(), strict=True))
    assert all(any(low <= head <= high for low, high in spans) for head in heads)
    assert all(low in heads and high in heads for low, high in spans)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))
    exact = Intervals(pa.array(heads, pa.binary()), pa.array(heads, pa.binary()))
    widths = np.sort(exact._widths())[-most:]
    assert np.sort(quick._widths()).tolist() == widths[widths > 0].tolist() if len(quick) > 1 else not widths.any()


# --- text ------------------------------------------------------------------------------------------------------------


def test_long_bounds_are_cut_outward_and_touching_intervals_become_one():
    long = b"p" * 64
    assert stored([long + b"a", b"q"], "binary") == [long, b"p" * 63 + b"q", b"q", b"q"]
    assert stored([long + b"a", long + b"z", long], "binary") == [long, b"p" * 63 + b"q"]
    assert stored([long + b"a", b"p" * 63 + b"q", b"z"], "binary") == [long, b"p" * 63 + b"q", b"z", b"z"]
    assert stored([b"a", b"\xff" * 65], "binary") == [b"a", b"a", b"\xff" * 64, None]
    assert stored([b"\xff" * 64, b"\xff" * 65], "binary") == [b"\xff" * 64, None]
    assert stored([b"\xff" * 64 + b"\x00", b"\xff" * 64 + b"\x01" * 9, b"a"], "binary") == [
        b"a",
        b"a",
        b"\xff" * 64,
        None,
    ]


def test_text_need_not_be_utf8_and_may_be_large():
    text = pa.array([b"a\xff", b"ab", None], pa.binary()).view(pa.string())
    found = GapListMetadata.of(text, GapListIndex("c")).finish(OBJECT)
    assert (found["bounds"].to_pylist(), found["null_count"]) == ([b"ab", b"ab", b"a\xff", b"a\xff"], 1)
    assert GapListMetadata.fields((pa.large_string(),))["bounds"] == pa.list_(pa.binary())
    large = GapListMetadata.of(pa.array(["b", "a"], pa.large_string()), GapListIndex("c")).finish(OBJECT)["bounds"]
    assert large.type == pa.binary()


def test_a_replacement_character_in_like_matches_bytes_that_are_not_utf8():
    """Java reads b'a\xff' as 'a\ufffd' before it matches: LIKE 'a\ufffd_%' is true of b'a\xffb'."""
    bounds = known([[b"a", b"a", b"a\xffb", b"a\xffb"]], pa.binary())
    assert kept_objects(GapListIndex("c"), Like(TEXT, Literal("a\ufffd_%", "string")), bounds).all()
    assert not kept_objects(GapListIndex("c"), Like(TEXT, Literal("b\ufffd_%", "string")), bounds).any()


# --- the clause ------------------------------------------------------------------------------------------------------


def test_a_range_that_falls_into_a_gap_is_refuted_though_no_end_of_it_is():
    index, bounds = GapListIndex("c"), known([[0, 9, 30, 40], [0, 40], None, []], pa.int32())
    more, less = tree.GreaterThan(WHOLE, Literal(9, "int")), tree.LessThan(WHOLE, Literal(30, "int"))
    assert kept_objects(index, more, bounds).tolist() == [True, True, True, False]
    assert kept_objects(index, less, bounds).tolist() == [True, True, True, False]
    assert kept_objects(index, And((more, less)), bounds).tolist() == [False, True, True, False]
    deep = And(
        (tree.EqualTo(Column("d"), Literal(1)), Or((And((less, more)), tree.EqualTo(WHOLE, Literal(99, "int")))))
    )
    assert kept_objects(index, deep, bounds).tolist() == [False, True, True, False]
    beside = Or((And((less, more)), tree.EqualTo(Column("d"), Literal(1))))
    assert kept_objects(index, beside, bounds).all()


def test_nan_and_null_satisfy_a_conjunction_only_if_each_term():
    column, nan = Column("c", "double"), Literal(math.nan, "double")
    counts = {"nan_count": pa.array([1, 0, 1], pa.int64())}
    bounds = known([[1.0, 1.0], [1.0, 1.0], []], pa.float64(), [0, 1, 1], [2, 2, 2], **counts)
    index = GapListIndex("c")
    five, six = (tree.GreaterThan(column, Literal(v, "double")) for v in (5.0, 6.0))
    assert kept_objects(index, And((five, six)), bounds).tolist() == [True, False, True]
    assert (
        kept_objects(index, And((five, tree.LessThan(column, Literal(9.0, "double")))), bounds).tolist() == [False] * 3
    )
    assert kept_objects(index, And((five, tree.LessThanOrEqual(column, nan))), bounds).tolist() == [True, False, True]
    null = And((IsNull(column), Not(tree.IsNaN(column))))
    assert kept_objects(index, null, bounds).tolist() == [False, True, True]


def test_lists_may_be_a_slice_null_lists_may_hide_values_and_odd_ones_say_nothing():
    offsets, mask = pa.array([0, 2, 4, 4, 8], pa.int32()), pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(offsets, pa.array([7, 7, 8, 8, 1, 2, 9, 9]), mask=mask)
    index, nine = GapListIndex("c"), tree.EqualTo(Column("c", "bigint"), Literal(9, "bigint"))
    clause = index.filters()[0].label_node(nine)
    fields = {"bounds": lists.slice(1), "null_count": pa.array([0] * 3)}
    assert clause.might_match(InMemoryMetadata(fields, pa.array([1] * 3))).to_pylist() == [None, False, True]
    odd = InMemoryMetadata({"bounds": pa.array([[1, 2, 3], [1, 2]])}, pa.array([1, 1]))
    assert clause.might_match(odd).to_pylist() == [None, None]
    absent = InMemoryMetadata({"bounds": pa.nulls(2)}, pa.array([1, 1]))
    assert clause.might_match(absent).to_pylist() == [None, None]


def test_a_literal_that_the_type_cannot_hold_keeps_everything():
    bounds = known([[1, 1, 5, 5]], pa.int32())
    for value in (1.5, 2**40, "x"):
        assert kept_objects(GapListIndex("c"), tree.EqualTo(WHOLE, Literal(value, "int")), bounds).all()


def test_only_what_is_needed_is_read():
    (labelling,) = GapListIndex("c").filters()

    def needed(predicate):
        return [name for _, name in labelling.label_node(predicate).requires]

    floating = Column("c", "double")
    assert needed(tree.GreaterThan(WHOLE, Literal(1, "int"))) == ["bounds"]
    assert needed(tree.LessThan(floating, Literal(1.0, "double"))) == ["bounds"]
    assert needed(tree.GreaterThan(floating, Literal(1.0, "double"))) == ["bounds", "null_count", "nan_count"]
    assert needed(IsNull(WHOLE)) == ["null_count"]
    assert needed(IsNotNull(floating)) == ["null_count", "nan_count"]
    assert needed(between(1, 2)) == ["bounds"]


def test_what_is_not_the_column_gets_no_clause():
    (labelling,) = GapListIndex("c").filters()
    one = Literal(1, "int")
    assert labelling.label_node(tree.EqualTo(Column("d", "int"), one)) is None
    assert labelling.label_node(tree.EqualTo(tree.Cast(WHOLE, "bigint"), one)) is None
    assert labelling.label_node(tree.EqualTo(WHOLE, Column("d", "int"))) is None
    assert labelling.label_node(And((tree.EqualTo(WHOLE, one), tree.EqualTo(Column("d", "int"), one)))) is None
    assert labelling.label_node(Or((tree.EqualTo(WHOLE, one), tree.EqualTo(WHOLE, Literal(2, "int"))))) is None
    assert labelling.label_node(Like(TEXT, Literal("%a", "string"))) is None
    both = And((tree.LessThan(WHOLE, one), tree.GreaterThan(Column("d", "int"), one), tree.GreaterThan(WHOLE, one)))
    assert str(labelling.label_node(both)) == "gaplist(c)[c < 1 AND c > 1]"


@pytest.mark.parametrize("type_", ["bigint", "string"])
def test_ten_thousand_options_are_not_compared_with_each_of_8192_objects(type_):
    rng = np.random.default_rng(1)
    options = rng.integers(0, 1 << 40, 10_000).tolist()
    options = [f"{v:015d}" for v in options] if type_ == "string" else options
    column = Column("c", type_)
    (labelling,) = GapListIndex("c").filters()

    def asking(clause, objects):
        bounds = np.sort(rng.integers(0, 1 << 40, (objects, 18)), axis=1).ravel()
        flat = pa.array([b"%015d" % v for v in bounds] if type_ == "string" else bounds)
        lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 18 * (objects + 1), 18), pa.int32()), flat)
        metadata = InMemoryMetadata({"bounds": lists}, pa.array([99] * objects))
        return lambda: clause.might_match(metadata)

    for clause, each in (
        (labelling.label_node(In(column, tuple(Literal(v, type_) for v in options))), 20 * (type_ == "string")),
        (labelling.label_node(between(options[0], options[0], type_)), 0),
    ):
        few, many = instructions(asking(clause, 512)), instructions(asking(clause, 8192))
        assert many <= few <= 5_000 + each * len(options)
        assert peak_bytes(asking(clause, 8192)) < 8192 * len(options) / 10


# --- bytes -----------------------------------------------------------------------------------------------------------


def bytes_per_object(metadata, path):
    """Let the Parquet store write metadata, and give what it says that an object's takes."""
    columns = {"removed": pa.array([False] * len(metadata)), **{f"i:{name}": v for name, v in metadata.fields.items()}}
    table = pa.table(columns)
    writer = PartWriter(path, table.schema)
    writer.write(table)
    return writer.finish(1, "part").indexes["i"][0] / len(metadata)


@pytest.mark.parametrize(
    ("type_", "width"), [("int", 4), ("bigint", 8), ("double", 8), ("decimal(38,10)", 16), ("string", 20), ("date", 4)]
)
@pytest.mark.parametrize("gaps", [1, 4, 8, 32])
def test_bytes_per_object_are_those_of_the_formula(tmp_path, type_, width, gaps):
    """2kb bytes, a fifth and sixteen more: k gaps of two ends of b bytes, as a store compresses them."""
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(400):
        values = rng.integers(-(1 << 30), 1 << 30, 200)
        if type_ == "string":
            values = [rng.bytes(15).hex()[:20] for _ in range(200)]
        elif type_.startswith("decimal"):
            values = [Decimal(int(v)).scaleb(-10) for v in values]
        elif type_ == "bigint":
            values = rng.integers(-(1 << 62), 1 << 62, 200)
        elif type_ == "double":
            values = rng.standard_normal(200)
        rows.append(batch(values, type_))
    metadata = collect(GapListIndex("c", gaps=gaps), rows, {"c": type_})
    assert bytes_per_object(metadata, tmp_path / "part") <= 1.2 * 2 * gaps * width + 16
    lengths = pc.list_value_length(metadata.fields["bounds"])
    assert pc.all(pc.equal(lengths, 2 * (gaps + 1))).as_py()


# --- broken on purpose -----------------------------------------------------------------------------------------------


ORIGINAL_WITH_GAPS = Intervals.with_gaps
ORIGINAL_PASSES = gap_list._some_interval_passes


def first_interval_only(lists, tests, index):
    return ORIGINAL_PASSES(
        pa.array([None if v is None else v[:2] for v in lists.to_pylist()], lists.type), tests, index
    )


def narrower(self, most, workload):
    found = ORIGINAL_WITH_GAPS(self, most, workload)
    return Intervals(found.starts, found.starts)


def swapped(self, _, name):
    return self.upper if name == "lower" else self.lower


def traceless(values):
    return pc.binary_slice(ordered_form(values), 0, 64)


def never(metadata, *_, **__):
    return pa.array([False] * len(metadata), pa.bool_())


MUTATIONS = {
    "only the first interval is looked at": (gap_list, "_some_interval_passes", first_interval_only, "int"),
    "a closed gap leaves the end of its first interval": (Intervals, "with_gaps", narrower, "int"),
    "parts: the first only": (Intervals, "union", classmethod(lambda cls, parts: parts[0]), "int"),
    "parts: merge forgets": (GapListMetadata, "merge", lambda self, _: self, "int"),
    "lower and upper swapped": (gap_list._EachInterval, "field", swapped, "int"),
    "text: an end is cut like a start": (_gaps, "successor", lambda prefix: prefix, "string"),
    "text: bytes of 0xff wrap": (_gaps, "successor", lambda p: p[:-1] + b"\x00", "binary"),
    "text: cut without a trace": (gap_list, "ordered_form", traceless, "string"),
    "no NaN": (gap_list, "has_nan", never, "double"),
    "no NULL": (gap_list, "has_null", never, "int"),
    "no ordinary value": (gap_list, "has_ordinary", never, "int"),
    "<= loses equality": (_bounds._OPERATORS, "<=", pc.less, "int"),
    ">= loses equality": (_bounds._OPERATORS, ">=", pc.greater, "int"),
    "<> flipped": (_bounds._OPERATORS, "<>", pc.equal, "int"),
    "a gap where values are": (Intervals, "of", classmethod(lambda cls, v, *_: cls(v[:1], v[:1])), "int"),
}  # fmt: skip


def check_whole_and_in_parts(index, type_):
    check(index, type_)
    check(index, type_, rows_per_part=1)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_clause_is_noticed(mutation, monkeypatch):
    where, name, broken, type_ = MUTATIONS[mutation]
    if isinstance(where, dict):
        monkeypatch.setitem(where, name, broken)
    else:
        monkeypatch.setattr(where, name, broken)
    with pytest.raises(AssertionError, match="skips an object"):
        check_whole_and_in_parts(GapListIndex("c", gaps=1), type_)


def test_a_conjunction_that_lets_null_or_nan_of_one_term_decide_is_noticed(monkeypatch):
    column = Column("c", "double")
    asked = [
        And((tree.GreaterThan(column, Literal(1.0, "double")), tree.GreaterThanOrEqual(column, Literal(0.5, "double"))))
    ]
    assert assert_represents(GapListIndex("c"), asked, objects("double"), {"c": "double"}).skipped > 0
    monkeypatch.setattr(gap_list, "has_nan", never)
    with pytest.raises(AssertionError, match="skips an object"):
        assert_represents(GapListIndex("c"), asked, objects("double"), {"c": "double"})


@pytest.mark.parametrize("module", [gap_list, affix])
def test_examples_in_docstrings_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
