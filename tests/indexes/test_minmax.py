import numpy as np
import pyarrow as pa
import pytest
from tests.effort import instructions, peak_bytes

from skipstone.expressions import tree
from skipstone.expressions.tree import Column, In, Like, Literal, Not, NotIn, StartsWith
from skipstone.indexes.minmax import MinMaxIndex, MinMaxMetadata
from skipstone.indexing.objects import DataObject
from skipstone.testing import InMemoryMetadata, kept_objects

OBJECT = DataObject("o", 1, 0)
TEXT = Column("c", "string")


def metadata(lower, upper, nulls, rows, type_, **more):
    fields = {
        "lower": pa.array(lower, type_),
        "upper": pa.array(upper, type_),
        "null_count": pa.array(nulls, pa.int64()),
    }
    return InMemoryMetadata({**fields, **more}, pa.array(rows, pa.int64()))


def invalid_text(*values):
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        (b"a" * 64, b"a" * 64, b"a" * 64),
        (b"a" * 65, b"a" * 64, b"a" * 63 + b"b"),
        (b"a" * 62 + b"\xff" * 9, b"a" * 62 + b"\xff\xff", b"a" * 61 + b"b"),
        (b"\xff" * 65, b"\xff" * 64, None),
    ],
    ids=["whole", "cut", "cut before 0xff", "nothing left"],
)
def test_long_bounds_are_cut_and_stay_bounds(value, lower, upper):
    stored = MinMaxMetadata.of(pa.array([value])).finish(OBJECT)
    assert (stored["lower"], stored["upper"]) == (lower, upper)


def test_text_need_not_be_utf8():
    stored = MinMaxMetadata.of(invalid_text(b"a\xff", b"ab", None)).finish(OBJECT)
    assert stored == {"lower": b"ab", "upper": b"a\xff", "null_count": 1}


def test_a_replacement_character_in_like_matches_bytes_that_are_not_utf8():
    """Java reads b'a\xff' as 'a\ufffd' before it matches: LIKE 'a\ufffd_%' is true of b'a\xffb'."""
    known = metadata([b"a\xffb"], [b"a\xffb"], [0], [1], pa.binary())
    assert kept_objects(MinMaxIndex("c"), Like(TEXT, Literal("a\ufffd_%", "string")), known).all()
    assert not kept_objects(MinMaxIndex("c"), Like(TEXT, Literal("b\ufffd_%", "string")), known).any()
    exact = metadata(["a\ufffd".encode()], ["a\ufffd".encode()], [0], [1], pa.binary())
    assert kept_objects(MinMaxIndex("c"), Not(Like(TEXT, Literal("a\ufffd", "string"))), exact).all()


def test_large_text_is_stored_as_small_bytes():
    assert MinMaxMetadata.fields((pa.large_string(),))["lower"] == pa.binary()
    assert MinMaxMetadata.of(pa.array(["b", "a"], pa.large_string())).finish(OBJECT)["lower"] == b"a"


def test_null_bounds_are_unknown_unless_the_counts_leave_no_value():
    known = metadata([None, None, None, None], [None] * 4, [2, 1, None, 2], [2, 2, 2, None], pa.int32())
    for predicate in (tree.EqualTo, tree.NotEqualTo, tree.LessThan, tree.GreaterThanOrEqual):
        kept = kept_objects(MinMaxIndex("c"), predicate(Column("c", "int"), Literal(1, "int")), known)
        assert kept.tolist() == [False, True, True, True]


def test_a_footer_without_nan_count_proves_nothing_upward():
    known = metadata([1.0], [2.0], [0], [2], pa.float64(), nan_count=pa.array([None], pa.int64()))
    column, five = Column("c", "double"), Literal(5.0, "double")
    for predicate in (tree.GreaterThan, tree.GreaterThanOrEqual, tree.NotEqualTo):
        assert kept_objects(MinMaxIndex("c"), predicate(column, five), known).all()
    assert not kept_objects(MinMaxIndex("c"), tree.LessThan(column, Literal(0.0, "double")), known).any()
    assert not kept_objects(MinMaxIndex("c"), tree.EqualTo(column, five), known).any()


def test_merging_an_unknown_part_leaves_the_bounds_unknown():
    known, void = MinMaxMetadata(1, 2, 5, 0), MinMaxMetadata(None, None, 5, 5)
    assert known.merge(void) == MinMaxMetadata(1, 2, 10, 5) == void.merge(known)
    unknown = MinMaxMetadata(None, 3, 5, 0)
    assert known.merge(unknown) == MinMaxMetadata(None, 3, 10, 0) == unknown.merge(known)
    assert known.merge(MinMaxMetadata(0, 1, 5, None)).null_count is None


def test_a_literal_that_the_type_cannot_hold_keeps_everything():
    known = metadata([1], [1], [0], [1], pa.int32())
    for value in (1.5, 2**40, "x"):
        assert kept_objects(MinMaxIndex("c"), tree.EqualTo(Column("c", "int"), Literal(value, "int")), known).all()


@pytest.mark.parametrize(
    "predicate", [Like(TEXT, Literal(p, "string")) for p in ("%a", "_a", "a\\", "a\\b", "\ufffd%")]
)
def test_patterns_without_a_prefix_or_with_an_error_get_no_clause(predicate):
    (labelling,) = MinMaxIndex("c").filters()
    assert labelling.label_node(predicate) is None
    assert labelling.label_node(Not(predicate)) is None


def test_only_what_is_needed_is_read():
    def needed(predicate):
        return {name for _, name in MinMaxIndex("c").filters()[0].label_node(predicate).requires}

    whole, floating = Column("c", "int"), Column("c", "double")
    assert needed(tree.LessThan(whole, Literal(1, "int"))) == {"lower", "null_count"}
    assert needed(tree.GreaterThan(whole, Literal(1, "int"))) == {"upper", "null_count"}
    assert needed(tree.GreaterThan(floating, Literal(1.0, "double"))) == {"upper", "null_count", "nan_count"}
    assert needed(tree.IsNull(whole)) == {"null_count"}
    assert needed(StartsWith(TEXT, Literal("a", "string"))) == {"lower", "upper", "null_count"}


def test_functions_of_the_column_and_other_columns_are_not_the_column():
    (labelling,) = MinMaxIndex("c").filters()
    one = Literal(1, "int")
    assert labelling.label_node(tree.EqualTo(Column("d", "int"), one)) is None
    assert labelling.label_node(tree.EqualTo(tree.Cast(Column("c", "int"), "bigint"), one)) is None
    assert labelling.label_node(tree.EqualTo(Column("c", "int"), Column("d", "int"))) is None


@pytest.mark.parametrize("type_", ["bigint", "string"])
@pytest.mark.parametrize("make", [In, NotIn])
def test_ten_thousand_options_are_not_compared_with_each_of_8192_objects(make, type_):
    rng = np.random.default_rng(1)
    options = rng.integers(0, 1 << 40, 10_000).tolist()
    options = [f"{v:015d}" for v in options] if type_ == "string" else options
    (labelling,) = MinMaxIndex("c").filters()
    clause = labelling.label_node(make(Column("c", type_), tuple(Literal(v, type_) for v in options)))

    def asking(objects):
        lower = np.sort(rng.integers(0, 1 << 40, objects))
        bounds, kind = (lower, lower + 9), pa.int64()
        if type_ == "string":
            bounds, kind = ([b"%015d" % v for v in bound] for bound in bounds), pa.binary()
        known = metadata(*bounds, [0] * objects, [9] * objects, kind)
        return lambda: clause.might_match(known)

    few, many = instructions(asking(512)), instructions(asking(8192))
    assert many <= few <= 5_000 + (20 * len(options) if type_ == "string" else 0)
    assert peak_bytes(asking(8192)) < 8192 * len(options) / 10


@pytest.mark.parametrize(
    ("type_", "fits"),
    [
        ("int", True), ("string", True), ("decimal(38,18)", True), ("timestamp_ntz", True), ("time(6)", True),
        ("interval year to month", True), ("interval day to second", True), ("interval second", True),
        ("string collate UTF8_LCASE", False), ("interval", False), ("array<int>", False), ("variant", False),
        ("struct<a:int>", False), ("map<int,int>", False),
    ],
)  # fmt: skip
def test_types(type_, fits):
    assert MinMaxIndex("c").supports((type_,)) is fits


def test_aggregates_quote_the_column():
    """A column called null must not be read as NULL."""
    assert MinMaxIndex("s.null").aggregates(("int",))["lower"] == "min(`s`.`null`)"
