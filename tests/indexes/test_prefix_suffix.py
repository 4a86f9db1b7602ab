"""Prefix and Suffix held against the truth: every small object, random texts, and the pieces that are listed."""

import itertools
import json
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.indexes.universes import check, describe, predicates

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import And, Call, Column, EndsWith, EqualTo, In, IsNull, Like, Literal, Not, StartsWith
from skipstone.indexes import affix as _affix
from skipstone.indexes.affix import PrefixIndex, PrefixMetadata, SuffixIndex
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
    values_of,
)
from skipstone.toolkit.leaf import Affix, Among, Compare, Pattern, read_leaf
from skipstone.toolkit.like import parse_like

OBJECT = DataObject("o", 1, 0)
TEXT = Column("c", "string")
KINDS = [PrefixIndex, SuffixIndex]
by_kind = pytest.mark.parametrize("kind", KINDS)


def batch(values):
    return pa.record_batch({"c": pa.array(values, pa.string())})


def stored(index, values):
    (name, *_) = index.metadata_type.fields((pa.string(),))
    return collect(index, [batch(values)], {"c": "string"}).fields[name][0].as_py()


def kept(index, predicate, *rows):
    """Return of objects with these rows which are kept, after checking that none is lost."""
    made = [batch(values) for values in rows]
    assert_represents(index, [predicate], made, {"c": "string"})
    return kept_objects(index, predicate, collect(index, made, {"c": "string"})).tolist()


def starts(text):
    return StartsWith(TEXT, Literal(text, "string"))


def ends(text):
    return EndsWith(TEXT, Literal(text, "string"))


def like(pattern, escape="\\"):
    return Like(TEXT, Literal(pattern, "string"), escape)


# --- against the truth -----------------------------------------------------------------------------------------------


@by_kind
@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 1000])
def test_every_small_object_that_is_relevant_is_kept_and_skips_happen(kind, length):
    outcome = check(kind("c", length=length), "string")
    assert outcome.relevant > 0
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * {1: 0.55, 2: 0.75, 3: 0.8}.get(length, 0.85)


@by_kind
def test_pieces_longer_than_every_value_skip_all_that_is_irrelevant(kind):
    whole = check(kind("c", length=1000), "string")
    assert whole.skipped == whole.pairs - whole.relevant


@by_kind
@pytest.mark.parametrize("length", [1, 2, 64])
def test_objects_in_parts_are_served_as_well_and_forgetting_only_keeps(kind, length):
    index = kind("c", length=length)
    assert check(index, "string", rows_per_part=1) == check(index, "string")
    assert_monotone(index, predicates("string"), describe(index, "string"))


ALPHABET = ["", "a", "b", "aa", "ab", "ba", "aba", "abb", "bab", "abab", "é", "éa", "😀b"]
PIECES = ["", "a", "b", "ab", "ba", "aba", "abb", "abab", "ababa", "é", "éa", "😀", "😀b"]


@by_kind
@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_pattern_over_two_letters(kind, length):
    """All patterns of up to four of a, b, _ and %, and all affixes shorter, as long as and longer than a piece."""
    patterns = ["".join(p) for size in range(5) for p in itertools.product("ab_%", repeat=size)]
    asked = [like(pattern) for pattern in patterns]
    asked += [make(TEXT, Literal(p, "string")) for make in (StartsWith, EndsWith, tree.Contains) for p in PIECES]
    asked += [Not(p) for p in asked]
    asked += [make(TEXT, Literal(p, "string")) for p in PIECES for make in (EqualTo, tree.LessThan, tree.GreaterThan)]
    made = [batch([value]) for value in ALPHABET] + [batch(list(pair)) for pair in itertools.pairwise(ALPHABET)]
    outcome = assert_represents(kind("c", length=length), asked, made, {"c": "string"})
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * {1: 0.25, 2: 0.5, 3: 0.65}[length]


@by_kind
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_clauses_represent_their_predicates(kind, data):
    rows = st.lists(values_of("string"), max_size=6)
    made = [batch(found) for found in data.draw(st.lists(rows, min_size=1, max_size=4))]
    asked = data.draw(st.lists(leaf_predicates("c", "string"), min_size=1, max_size=6))
    index = kind("c", length=data.draw(st.sampled_from([1, 2, 3, 60])))
    metadata = collect(index, made, {"c": "string"}, rows_per_part=data.draw(st.none() | st.integers(1, 3)))
    assert_represents(index, asked, made, {"c": "string"}, metadata=metadata)
    assert_monotone(index, asked, metadata)


@by_kind
@settings(max_examples=40, deadline=None)
@given(values=st.lists(values_of("string"), max_size=8), length=st.integers(1, 4))
def test_parts_merge_to_the_whole(kind, values, length):
    assert_merges(kind("c", length=length), batch(values), {"c": "string"})


@settings(max_examples=300, deadline=None)
@given(value=values_of("string", nulls=False), predicate=leaf_predicates("c", "string"), length=st.integers(1, 4))
def test_the_piece_of_a_value_that_passes_passes_the_condition_on_pieces(value, predicate, length):
    """What the proofs say, of a single value: if it satisfies the predicate, its piece passes what is asked of it."""
    leaf = read_leaf(predicate)
    if leaf is None or len(value) < length:
        return
    for cut, piece in ((_affix.cut_prefix, value[:length]), (_affix.cut_suffix, value[-length:])):
        condition = cut(leaf.test, length)
        whole = _affix.passes(pa.array([value]), leaf.test)
        if condition is not None and whole[0].as_py():
            assert _affix.passes(pa.array([piece]), condition)[0].as_py()


# --- what is listed --------------------------------------------------------------------------------------------------


def test_pieces_are_counted_in_characters_and_short_values_are_whole():
    values = ["", "a", "ab", "abc", "abd", "xabc", "é😀e\u0301x", None]
    assert stored(PrefixIndex("c", length=2), values) == ["", "a", "ab", "xa", "é😀"]
    assert stored(SuffixIndex("c", length=2), values) == ["", "a", "ab", "bc", "bd", "\u0301x"]
    assert stored(PrefixIndex("c", length=9), ["abc", "abc"]) == ["abc"]
    assert stored(SuffixIndex("c", length=3), [None, None]) == []


@by_kind
def test_text_that_is_not_utf8_makes_the_pieces_unknown_and_nothing_else(kind):
    index = kind("c", length=2)
    bad = pa.array([b"a\xff", b"b", None], pa.binary()).view(pa.string())
    bad_state = index.collect_metadata(pa.record_batch({"c": bad}))
    good_state = index.collect_metadata(batch(["c"]))
    for state in (bad_state, bad_state.merge(good_state), pickle.loads(pickle.dumps(good_state)).merge(bad_state)):
        found = state.finish(OBJECT)
        assert found.pop("null_count") == 1
        assert list(found.values()) == [None]
    metadata = collect(index, [pa.record_batch({"c": bad})], {"c": "string"})
    for predicate in (like("a\ufffd%"), starts("q"), ends("q"), EqualTo(TEXT, Literal("q", "string"))):
        assert kept_objects(index, predicate, metadata).all()


@by_kind
def test_a_list_too_long_is_given_up(kind, monkeypatch):
    monkeypatch.setattr(_affix, "MAX_BYTES", 100)
    index = kind("c", length=9)
    few, more = (index.collect_metadata(batch([f"{n:09d}" for n in range(k, k + 5)])) for k in (0, 50))
    assert next(iter(few.finish(OBJECT).values())) is not None
    assert next(iter(few.merge(more).finish(OBJECT).values())) is None


def test_large_text_is_listed_as_small():
    state = PrefixMetadata.of(pa.array(["abc"], pa.large_string()), 0, 2)
    assert state.finish(OBJECT)["prefixes"].type == pa.string()


# --- predicates ------------------------------------------------------------------------------------------------------


def test_prefixes_shorter_and_longer_than_a_piece():
    index = PrefixIndex("c", length=3)
    rows = (["abcd"], ["ab"], ["abd"], ["zzz"], [None], [])
    assert kept(index, starts("a"), *rows) == [True, True, True, False, False, False]
    assert kept(index, starts("abc"), *rows) == [True, False, False, False, False, False]
    assert kept(index, starts("abcxyz"), *rows) == [True, False, False, False, False, False]
    assert kept(index, like("ab%d"), *rows) == [True, False, True, False, False, False]
    assert kept(index, like("ab_d%"), *rows) == [True, False, True, False, False, False]
    assert kept(index, like("a_d"), *rows) == [False, False, True, False, False, False]
    assert kept(index, EqualTo(TEXT, Literal("abcq", "string")), *rows) == [True] + [False] * 5
    assert (
        kept(index, In(TEXT, (Literal("ab", "string"), Literal("zz", "string"))), *rows) == [False, True] + [False] * 4
    )
    assert kept(index, Not(starts("ab")), *rows) == [False, False, False, True, False, False]
    assert kept(index, Not(starts("abcd")), *rows) == [True, True, True, True, False, False]
    assert kept(index, Not(like("ab%")), *rows) == [False, False, False, True, False, False]
    assert kept(index, tree.GreaterThan(TEXT, Literal("abcq", "string")), *rows) == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
    assert kept(index, tree.LessThan(TEXT, Literal("abc", "string")), *rows) == [False, True] + [False] * 4


def test_suffixes_shorter_and_longer_than_a_piece():
    index = SuffixIndex("c", length=3)
    rows = (["dcba"], ["ba"], ["dba"], ["zzz"], [None], [])
    assert kept(index, ends("a"), *rows) == [True, True, True, False, False, False]
    assert kept(index, ends("cba"), *rows) == [True, False, False, False, False, False]
    assert kept(index, ends("xyzcba"), *rows) == [True, False, False, False, False, False]
    assert kept(index, like("%d_ba"), *rows) == [True, False, True, False, False, False]
    assert kept(index, like("d_a"), *rows) == [False, False, True, False, False, False]
    assert kept(index, EqualTo(TEXT, Literal("qcba", "string")), *rows) == [True] + [False] * 5
    assert kept(index, Not(ends("ba")), *rows) == [False, False, False, True, False, False]
    assert kept(index, Not(ends("dcba")), *rows) == [True, True, True, True, False, False]
    assert kept(index, Not(like("%ba")), *rows) == [False, False, False, True, False, False]


def test_both_ends_of_a_pattern_are_used_as_spark_writes_them():
    """LIKE 'p%s' arrives as length(c) >= n AND startswith AND endswith."""
    long_enough = tree.GreaterThanOrEqual(Call("length", (TEXT,), "int"), Literal(4, "int"))
    split = And((long_enough, starts("ab"), ends("yz")))
    rows = [batch([text]) for text in ("ab-yz", "ab-", "-yz", "q")]
    for index, expected in ((PrefixIndex("c", length=2), [1, 1, 0, 0]), (SuffixIndex("c", length=2), [1, 0, 1, 0])):
        for predicate in (split, like("ab%yz")):
            metadata = collect(index, rows, {"c": "string"})
            assert kept_objects(index, predicate, metadata).tolist() == [bool(e) for e in expected]


@by_kind
def test_nulls_are_counted(kind):
    index = kind("c", length=2)
    assert kept(index, IsNull(TEXT), ["a"], ["a", None], [None], []) == [False, True, True, False]
    assert kept(index, tree.IsNotNull(TEXT), ["a"], ["a", None], [None], []) == [True, True, False, False]
    either = Not(tree.EqualNullSafe(TEXT, Literal("a", "string")))
    assert kept(index, either, ["a"], ["a", None], [None], ["abc"], []) == [False, True, True, True, False]


@by_kind
def test_only_what_is_needed_is_read(kind):
    (labelling,) = kind("c", length=2).filters()
    pieces = f"{kind.type_name}es"
    assert [name for _, name in labelling.label_node(starts("a")).requires] == [pieces]
    assert [name for _, name in labelling.label_node(IsNull(TEXT)).requires] == ["null_count"]
    assert str(labelling.label_node(starts("a"))) == f"{kind.type_name}(c, length=2)[startswith(c, 'a')]"


@by_kind
def test_what_is_not_the_column_or_not_understood_gets_no_clause(kind):
    (labelling,) = kind("c", length=2).filters()
    other = Column("d", "string")
    assert labelling.label_node(StartsWith(other, Literal("a", "string"))) is None
    assert labelling.label_node(StartsWith(Call("lower", (TEXT,), "string"), Literal("a", "string"))) is None
    assert labelling.label_node(StartsWith(TEXT, other)) is None
    for pattern, escape in (("a\\", "\\"), ("a\\b", "\\"), ("a", ""), ("a", "ab")):
        assert labelling.label_node(like(pattern, escape)) is None
    assert labelling.label_node(starts("a\ud800")) is None


@by_kind
def test_escapes_and_operators_of_regular_expressions_are_literal(kind):
    index = kind("c", length=3)
    texts = ["50%", "50x", "a.b", "axb", "(a", "a_b", "\\x\\", "\n\n\n\n"]
    asked = [like("50\\%"), like("50/%", "/"), like("a.b"), like("(a"), like("a\\_b"), like("\\\\x\\\\"), like("____")]
    outcome = assert_represents(index, asked, [batch([t]) for t in texts], {"c": "string"})
    assert outcome.relevant == 7
    assert outcome.skipped == outcome.pairs - outcome.relevant - 6  # "____" is for four, of which any three may be part


@by_kind
def test_lists_may_be_a_slice_and_null_lists_may_hide_values(kind):
    offsets, mask = pa.array([0, 1, 2, 2, 3], pa.int32()), pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(offsets, pa.array(["aa", "bb", "cc"]), mask=mask)
    index = kind("c", length=2)
    clause = index.filters()[0].label_node(In(TEXT, (Literal("aa", "string"), Literal("bb", "string"))))
    pieces = f"{kind.type_name}es"
    assert clause.might_match(InMemoryMetadata({pieces: lists}, pa.array([1] * 4))).to_pylist() == [
        True,
        None,
        False,
        False,
    ]
    sliced = InMemoryMetadata({pieces: lists.slice(1)}, pa.array([1] * 3))
    assert clause.might_match(sliced).to_pylist() == [None, False, False]
    absent = InMemoryMetadata({pieces: pa.nulls(2)}, pa.array([1, 1]))
    assert clause.might_match(absent).to_pylist() == [None, None]


@by_kind
def test_a_literal_that_is_no_text_or_a_pattern_too_long_keeps_everything(kind):
    metadata = collect(kind("c", length=2), [batch(["ab", "b"])], {"c": "string"})
    assert kept_objects(kind("c", length=2), EqualTo(TEXT, Literal(5, "string")), metadata).all()
    assert kept_objects(kind("c", length=2), tree.GreaterThan(TEXT, Literal(5, "string")), metadata).all()
    huge = like("%" + "%".join("q" * 3000 for _ in range(3000)) + "%")
    assert kept_objects(kind("c", length=2), huge, metadata).all()


# --- options ---------------------------------------------------------------------------------------------------------


@by_kind
@pytest.mark.parametrize("length", [0, -1, 1.5, "3", True, None])
def test_a_length_is_a_positive_whole_number(kind, length):
    with pytest.raises(SettingError, match="positive whole number"):
        kind("c", length=length)


@by_kind
def test_a_length_must_be_given_and_survives_the_manifest(kind):
    with pytest.raises(TypeError, match="length"):
        kind("c")
    index = kind("c", length=7)
    assert index.name == f"{kind.type_name}(c, length=7)"
    assert kind.from_options(index.name, json.loads(json.dumps(dict(index.options())))) == index
    assert index.with_columns(("C",)) == replace(index, column="C", name="")


@by_kind
@pytest.mark.parametrize("type_", ["int", "binary", "string collate UTF8_LCASE", "array<string>", "varchar(3)"])
def test_only_plain_text_is_taken(kind, type_):
    kind("c", length=2).check_types(("string",))
    with pytest.raises(UnsupportedTypeError):
        kind("c", length=2).check_types((type_,))


# --- bytes and time --------------------------------------------------------------------------------------------------


@by_kind
@pytest.mark.parametrize("length", [4, 8, 16])
@pytest.mark.parametrize("distinct", [10, 200])
def test_bytes_per_object_are_those_of_the_formula(kind, length, distinct, tmp_path):
    """v·b bytes, a fifth and sixteen more, as the store writes them, for texts that do not compress."""
    rng = np.random.default_rng(9)
    letters = np.array(list("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"))
    rows = [batch(["".join(rng.choice(letters, length + 5)) for _ in range(distinct)]) for _ in range(200)]
    metadata = collect(kind("c", length=length), rows, {"c": "string"})
    (pieces, _) = metadata.fields
    listed = pc.sum(pc.list_value_length(metadata.fields[pieces])).as_py() / len(rows)
    columns = {"removed": pa.array([False] * len(rows)), **{f"i:{n}": v for n, v in metadata.fields.items()}}
    table = pa.table(columns)
    writer = PartWriter(tmp_path / "part", table.schema)
    writer.write(table)
    size = writer.finish(1, "part").indexes["i"][0] / len(rows)
    assert size <= 1.2 * listed * length + 16


# --- broken on purpose -----------------------------------------------------------------------------------------------


def longer_not(test, length):
    return test if isinstance(test, Affix) and test.negated else _CUT(test, length)


def among_not(test, length):
    return test if isinstance(test, Among) and test.negated else _CUT(test, length)


def whole_options(test, length):
    return test if isinstance(test, Among | Affix | Compare) else _CUT(test, length)


def whole_pattern(test, length):
    return test if isinstance(test, Pattern) else _CUT(test, length)


def strict(test, length):
    return Compare(">", test.value[:length]) if isinstance(test, Compare) else _CUT(test, length)


def affirmed(values, test):
    return _PASSES(values, replace(test, negated=False) if hasattr(test, "negated") else test)


_CUT = _affix.cut_prefix
_PASSES = _affix.passes
MUTATIONS = {
    "prefix: NOT startswith beyond the piece": (_affix, "cut_prefix", longer_not, PrefixIndex),
    "prefix: <> by the piece": (_affix, "cut_prefix", among_not, PrefixIndex),
    "prefix: the literal is not cut": (_affix, "cut_prefix", whole_options, PrefixIndex),
    "prefix: the pattern is not cut": (_affix, "cut_prefix", whole_pattern, PrefixIndex),
    "prefix: order becomes strict": (_affix, "cut_prefix", strict, PrefixIndex),
    "prefix: pieces are bytes of the end": (_affix, "cut_prefix", _affix.cut_suffix, PrefixIndex),
    "suffix: pieces of the beginning": (_affix, "cut_suffix", _affix.cut_prefix, SuffixIndex),
    "suffix: patterns are not turned round": (_affix, "_reversed", lambda tokens: tokens, SuffixIndex),
    "patterns stop at the first wildcard": (_affix, "_head", lambda tokens, _: tokens[:1], PrefixIndex),
    "negation forgotten": (
        _affix, "passes", affirmed, PrefixIndex,
    ),
    "parts: merge forgets": (_affix.AffixMetadata, "merge", lambda self, _: self, PrefixIndex),
    "what is unknown is empty": (
        _affix.AffixMetadata, "finish", lambda s, _: {s.field_name: [], "null_count": s.null_count}, SuffixIndex,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_clause_is_noticed(mutation, monkeypatch):
    where, name, broken, kind = MUTATIONS[mutation]
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(AssertionError, match="skips an object"):
        check_whole_and_in_parts(kind)


def check_whole_and_in_parts(kind):
    for length in (1, 2, 64):
        check(kind("c", length=length), "string")
        check(kind("c", length=length), "string", rows_per_part=1)


def test_the_pattern_of_a_piece():
    def head(pattern, length):
        return _affix._head(parse_like(pattern), length)

    assert head("abc%d", 2) == ("ab",)
    assert head("a_c%d", 5) == (*parse_like("a_c"), *parse_like("%"))
    assert head("a_cd", 3) == parse_like("a_c")
    assert head("%a", 3) == parse_like("%")
    assert head("", 3) == ()
