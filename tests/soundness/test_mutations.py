"""Mutation check: every rule that keeps skipping sound is broken on purpose, and a wrong skip must show.

Each row of ``AT_QUERY_TIME`` and ``AT_INDEX_TIME`` names a rule, what is replaced and by what.  If a mutation is not
caught, the bench lacks a case; if a name is gone, the mutation must follow the code.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skipstone import Dataset
from skipstone.engines.spark import collecting
from skipstone.expressions import rules, tree
from skipstone.indexes import bloom_filter, hybrid, minmax, value_list
from skipstone.indexing import collect, profiles
from skipstone.querying import clause, merge_clause
from skipstone.stores import evaluation
from skipstone.toolkit import bounds as _bounds
from skipstone.toolkit import hashing as _hashing
from skipstone.toolkit import leaf as _leaf
from skipstone.toolkit import like as _like
from skipstone.toolkit.leaf import Affix, Among, Leaf, Pattern
from skipstone.toolkit.like import Wildcard
from tests.soundness.attack import text
from tests.soundness.bench import CONF, collect_here
from tests.support import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def otherwise(bench, spark, tmp_path_factory):
    """The same files read with other types, a collation, or other options than they were indexed with."""
    csv = text(tmp_path_factory.mktemp("bench") / "csv", ".csv", "1;2,3\n", "4,5;6\n")
    with conf(spark, CONF):
        Dataset(spark.read.schema("a STRING, b STRING").csv(csv)).create_indexes(value_list.ValueListIndex("a"))
        cases = []
        for schema, predicates in {
            "i BIGINT": ["i = 5", "i IN (1, 8)"],
            "s STRING COLLATE UTF8_LCASE": ["s = 'AB'", "s = 'B'", "s < 'AB'", "s IN ('K2', 'Z')"],
        }.items():
            cases += bench.asked_otherwise(spark.read.schema(schema).parquet(bench.path), predicates)
        semicolons = spark.read.schema("a STRING, b STRING").option("sep", ";").csv(csv)
        cases += bench.asked_otherwise(semicolons, ["a = '1'", "a = '4,5'", "a <> '4'"])
    return cases


def everywhere(monkeypatch: pytest.MonkeyPatch, old: Any, new: Any) -> None:
    """Replace a function in every module that imported it by name."""
    found = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("skipstone"):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    monkeypatch.setattr(module, attribute, new)
                    found += 1
    assert found, f"{old} is nowhere: let the mutation follow the code"


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Forget what broken rules made of vertices, which live as long as the cases: the next test would see it."""
    _leaf._known.clear()
    yield
    _leaf._known.clear()


# --- the rules, broken ------------------------------------------------------------------------------------------------

Mutation = "Callable[[pytest.MonkeyPatch], None]"


def operator(table: dict[str, Any], sign: str, wrong: Any) -> Mutation:
    return lambda patch: patch.setitem(table, sign, wrong)


def function(old: Any, new: Any) -> Mutation:
    return lambda patch: everywhere(patch, old, new)


def method(owner: Any, name: str, new: Any) -> Mutation:
    return lambda patch: patch.setattr(owner, name, new)


def both(one: Mutation, other: Mutation) -> Mutation:
    def apply(patch: pytest.MonkeyPatch) -> None:
        one(patch)
        other(patch)

    return apply


def leaf_with(change: Callable[[Leaf], Leaf]) -> Mutation:
    """Change what every leaf says."""
    original = _leaf._read
    return lambda patch: patch.setattr(
        _leaf, "_read", lambda node: None if (leaf := original(node)) is None else change(leaf)
    )


def _never(metadata: Any, *_: Any, **__: Any) -> pa.BooleanArray:
    return pa.array([False] * len(metadata), pa.bool_())


def _all_equal_and_listed(lower: Any, upper: Any, values: Any) -> Any:
    options = pa.array(values, lower.type)
    return pc.and_kleene(pc.not_equal(lower, upper), pc.invert(pc.is_in(lower, value_set=options)))


_bounds_might_match = _bounds.bounds_might_match


def _outside_only(metadata: Any, index: Any, test: Any) -> Any:
    """The rule that is often shipped for ``<>``: ``min > v OR max < v``."""
    if isinstance(test, Among) and test.negated and len(test.values) == 1:
        lower, upper = metadata.field(index, "lower"), metadata.field(index, "upper")
        value = pa.scalar(_bytes(test.values[0], lower.type), lower.type)
        return pc.or_kleene(pc.greater(lower, value), pc.less(upper, value))
    return _bounds_might_match(metadata, index, test)


def _bytes(value: Any, type_: pa.DataType) -> Any:
    return value.encode() if isinstance(value, str) and pa.types.is_binary(type_) else value


_to_bounds = _bounds.to_bounds


def _every_match_is_a_prefix(test: Any) -> Any:
    if isinstance(test, Affix):
        return replace(test, place="prefix")
    return _to_bounds(test)


def _no_wildcards(test: Any) -> Any:
    if isinstance(test, Pattern) and not test.negated:
        text = "".join(t if isinstance(t, str) else t.value for t in test.tokens)
        return Affix("prefix", text)
    return _to_bounds(test)


def _negated_prefix_of_any_pattern(test: Any) -> Any:
    if isinstance(test, Pattern) and test.negated and (prefix := _like.literal_prefix(test.tokens)):
        return Affix("prefix", prefix, negated=True)
    return _to_bounds(test)


def _sees_through_functions(self: Leaf, *columns: str) -> bool:
    subject = self.subject
    while not isinstance(subject, tree.Column) and subject.children:
        subject = subject.children[0]
    return isinstance(subject, tree.Column) and subject.name in columns


def _without_null_rule(metadata: Any, index: Any) -> Any:
    return pc.equal(metadata.field(index, "null_count"), 0)


_as_boundaries = value_list._some_value_passes


def _unknown_list_is_empty(lists: Any, test: Any) -> Any:
    return _as_boundaries(lists, test).fill_null(False)


_passes = value_list.passes


def _negation_ignored(values: Any, test: Any) -> Any:
    return _passes(values, replace(test, negated=False) if getattr(test, "negated", False) else test)


def _bloom_for_inequality(self: Any, node: Any) -> Any:
    if isinstance(node, tree.NotEqualTo) and isinstance(node.left, tree.Column) and node.left.name == self.index.column:
        return _bloom_label(self, tree.EqualTo(node.left, node.right))
    return _bloom_label(self, node)


_bloom_label = bloom_filter.BloomFilterFilter.label_node
_spark_hash, _hashed_bytes = _hashing.spark_hash, _hashing._bytes


def _hashed_as_long(value: Any, type_: str) -> Any:
    return _hashed_bytes(value, "bigint" if type_ == "int" else type_)


def _signed_zero(value: Any, type_: str) -> Any:
    import struct

    if type_ == "double" and not math.isnan(value) and value == 0:
        return struct.pack("<d", -0.0)
    return _hashed_bytes(value, type_)


def _nan_by_its_bits(value: Any, type_: str) -> Any:
    import struct

    if type_ == "double" and math.isnan(value):
        return struct.pack("<Q", 0xFFF8 << 48)
    return _hashed_bytes(value, type_)


def _wide_decimals_as_longs(value: Any, type_: str) -> Any:
    return _hashed_bytes(value, type_.replace("38,", "18,"))


_might_contain = bloom_filter._might_contain


def _unknown_filter_is_empty(bits: Any, hashes: Any, literals: Any) -> Any:
    return _might_contain(bits, hashes, literals).fill_null(False)


def _first_option_only(bits: Any, hashes: Any, literals: Any) -> Any:
    return _might_contain(bits, hashes, literals[:1])


_might_match = evaluation.might_match


def _unknown_skips(asked: Any, metadata: Any) -> Any:
    answer = asked.might_match(metadata)
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    return np.asarray(answer.fill_null(False)) if pa.types.is_boolean(answer.type) else np.zeros(len(metadata), bool)


_Joiner = merge_clause._Joiner


def _or_without_holes(self: Any, clauses: list[Any]) -> Any:
    return _disjunction(self, [c for c in clauses if c is not None]) if any(clauses) else None


_disjunction = _Joiner.disjunction


def _de_morgan_on_clauses(vertex: Any, clauses: Any, on_error: Any) -> Any:
    return clauses


def _and_stays_and(vertex: tree.Not) -> Any:
    if isinstance(vertex.child, tree.And):
        return tree.And(tuple(map(tree.Not, vertex.child.terms)))
    return _push_not(vertex)


_push_not = rules.push_not


def _columns_true_under_not(vertex: tree.Not) -> Any:
    return tree.EqualTo(vertex.child, rules.ALWAYS) if isinstance(vertex.child, tree.Column) else _push_not(vertex)


def _null_safe_without_null(vertex: tree.Not) -> Any:
    match vertex.child:
        case tree.EqualNullSafe(left, tree.Literal() as right) if right.value is not None:
            return tree.NotEqualTo(left, right)
    return _settle_under_not(vertex)


_settle_under_not = rules.settle_under_not


def _in_literals_only(vertex: tree.In) -> Any:
    literals = tuple(o for o in vertex.options if isinstance(o, tree.Literal))
    return _in_options(tree.In(vertex.value, literals)) if len(literals) < len(vertex.options) else _in_options(vertex)


_in_options = rules.in_options


def in_rules(class_: type, old: Any, new: Any) -> Mutation:
    """Replace one rule of normalisation."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        assert old in rules.RULES[class_], f"{old.__name__} is no rule of {class_.__name__} any more"
        patch.setitem(rules.RULES, class_, tuple(new if rule is old else rule for rule in rules.RULES[class_]))

    return apply


AT_QUERY_TIME: dict[str, Mutation] = {
    # bounds
    "bounds: < flipped": operator(_bounds._OPERATORS, "<", pc.greater),
    "bounds: > flipped": operator(_bounds._OPERATORS, ">", pc.less),
    "bounds: <= without equality": operator(_bounds._OPERATORS, "<=", pc.less),
    "bounds: >= without equality": operator(_bounds._OPERATORS, ">=", pc.greater),
    "bounds: <> as =": operator(_bounds._OPERATORS, "<>", pc.equal),
    "bounds: <> by min > v OR max < v": function(_bounds.bounds_might_match, _outside_only),
    "bounds: NOT IN needs both bounds outside": function(_bounds._none_but, _all_equal_and_listed),
    "bounds: IN takes the first option only": function(
        _bounds._any_between, lambda low, high, values, old=_bounds._any_between: old(low, high, values[:1])
    ),
    "bounds: a prefix's successor is itself": function(_bounds.successor, lambda prefix: prefix),
    "bounds: suffix and part as prefix": function(_bounds.to_bounds, _every_match_is_a_prefix),
    "bounds: wildcards as text": function(_bounds.to_bounds, _no_wildcards),
    "bounds: NOT LIKE of any shape as NOT startswith": function(_bounds.to_bounds, _negated_prefix_of_any_pattern),
    "MinMaxClause: counts ignored, every object has none": method(
        minmax.MinMaxClause, "ordinary_might_match", lambda self, metadata, leaf: _never(metadata)
    ),
    # counts
    "counts: NULL is never there": function(_leaf.has_null, _never),
    "counts: NULL rule turned round": function(_leaf.has_null, _without_null_rule),
    "counts: NaN is never there": function(_leaf.has_nan, _never),
    "counts: some NULL means all NULL": function(_leaf.has_value, _without_null_rule),
    "counts: some NaN means all NaN": function(
        _leaf.has_ordinary,
        lambda metadata, index, *, floating, old=_leaf.has_ordinary: pc.and_kleene(
            old(metadata, index, floating=floating),
            pc.equal(metadata.field(index, "nan_count"), 0) if floating else pa.array([True] * len(metadata)),
        ),
    ),
    "CountClause: never matches": method(_leaf.CountClause, "might_match", lambda self, metadata: _never(metadata)),
    # leaves
    "leaf: NaN forgotten": leaf_with(lambda leaf: replace(leaf, on_nan=False)),
    "leaf: NULL forgotten": leaf_with(lambda leaf: replace(leaf, on_null=False)),
    "leaf: <= NaN as <= an ordinary value": leaf_with(
        lambda leaf: replace(leaf, test=_leaf.NOTHING) if leaf.floating and leaf.test == _leaf.EVERYTHING else leaf
    ),
    "leaf: a function of the column is the column": method(_leaf.Leaf, "is_on", _sees_through_functions),
    "leaf: NOT LIKE as LIKE": leaf_with(
        lambda leaf: (
            replace(leaf, test=replace(leaf.test, negated=False)) if isinstance(leaf.test, Pattern | Affix) else leaf
        )
    ),
    "leaf: NOT IN as IN": leaf_with(
        lambda leaf: (
            replace(leaf, test=replace(leaf.test, negated=False))
            if isinstance(leaf.test, Among) and leaf.test.values
            else leaf
        )
    ),
    # value lists
    "list: < flipped": operator(value_list._OPERATORS, "<", pc.greater),
    "list: <= without equality": operator(value_list._OPERATORS, "<=", pc.less),
    "list: > flipped": operator(value_list._OPERATORS, ">", pc.less),
    "list: >= without equality": operator(value_list._OPERATORS, ">=", pc.greater),
    "list: suffix as prefix": operator(value_list._PLACES, "suffix", pc.starts_with),
    "list: part as suffix": operator(value_list._PLACES, "part", pc.ends_with),
    "list: prefix as suffix": operator(value_list._PLACES, "prefix", pc.ends_with),
    "list: negation ignored": function(value_list.passes, _negation_ignored),
    "list: unknown list is empty": function(value_list._some_value_passes, _unknown_list_is_empty),
    "ValueListMatchClause: NULLs only": method(
        value_list.ValueListMatchClause, "ordinary_might_match", lambda self, metadata, leaf: _never(metadata)
    ),
    "LIKE: % needs a character": function(
        _like.to_regex, lambda tokens, old=_like.to_regex: old(tokens).replace(".*", ".+")
    ),
    "LIKE: . stops at a line's end": function(
        _like.to_regex, lambda tokens, old=_like.to_regex: old(tokens).replace("(?s)", "")
    ),
    "LIKE: _ is a byte": function(
        _like.to_regex,
        lambda tokens, old=_like.to_regex: old(tokens).replace(".", r"\C") if Wildcard.ONE in tokens else old(tokens),
    ),
    "LIKE: escapes are text": function(
        _like.parse_like, lambda text, escape="\\", old=_like.parse_like: old(text, "\u0001")
    ),
    # Bloom filters
    "bloom: int hashed as long": function(_hashing._bytes, _hashed_as_long),
    "bloom: 0.0 hashed as -0.0": function(_hashing._bytes, _signed_zero),
    "bloom: NaN hashed by other bits": function(_hashing._bytes, _nan_by_its_bits),
    "bloom: wide decimals hashed as longs": function(_hashing._bytes, _wide_decimals_as_longs),
    "bloom: another seed": lambda patch: patch.setattr(_hashing, "_SEED", 43),
    "bloom: <> as =": method(bloom_filter.BloomFilterFilter, "label_node", _bloom_for_inequality),
    "bloom: unknown filter is empty": function(bloom_filter._might_contain, _unknown_filter_is_empty),
    "bloom: IN looks the first option up only": function(bloom_filter._might_contain, _first_option_only),
    "BloomFilterClause: never matches": method(
        bloom_filter.BloomFilterClause, "might_match", lambda self, metadata: _never(metadata)
    ),
    "hybrid: objects in the Bloom form have no list, hence no value": method(
        hybrid.HybridIndex, "filters", lambda self: (_EmptyLists(self), bloom_filter.BloomFilterFilter(self))
    ),
    # joining
    "OR as AND over metadata": method(
        clause.OrClause,
        "might_match",
        lambda self, metadata: reduce(pc.and_kleene, (term.might_match(metadata) for term in self.terms)),
    ),
    "unknown skips": function(evaluation.might_match, _unknown_skips),
    "merge: OR with a hole leaves the hole out": method(_Joiner, "disjunction", _or_without_holes),
    "merge: OR joined by AND": method(_Joiner, "disjunction", lambda self, clauses: self.conjunction(clauses)),
    "merge: a clause is its own negation": function(merge_clause._negations, _de_morgan_on_clauses),
    # normalising
    "normalise: NOT (a AND b) as NOT a AND NOT b": in_rules(tree.Not, rules.push_not, _and_stays_and),
    "normalise: NOT < as >": lambda patch: patch.setitem(rules._MIRRORED, tree.LessThan, tree.GreaterThan),
    "normalise: NOT > as <": lambda patch: patch.setitem(rules._MIRRORED, tree.GreaterThan, tree.LessThan),
    "normalise: NOT = as =": lambda patch: patch.setitem(rules._MIRRORED, tree.EqualTo, tree.EqualTo),
    "normalise: literal moved, operator kept": lambda patch: [
        patch.setitem(rules._TURNED, order, order) for order in (tree.LessThan, tree.GreaterThan)
    ],
    "normalise: NOT flag as flag": in_rules(tree.Not, rules.push_not, _columns_true_under_not),
    "normalise: NOT <=> as <>": in_rules(tree.Not, rules.settle_under_not, _null_safe_without_null),
    "normalise: IN drops what is no literal": in_rules(tree.In, rules.in_options, _in_literals_only),
}


def _no_difference(indexed: Any, here: Any) -> None:
    return None


IN_READING_OTHERWISE: dict[str, Mutation] = {
    "planner: another type is the same column": function(profiles.column_difference, _no_difference),
    "planner: read options do not matter": function(profiles.profile_difference, _no_difference),
    "planner and normalise: collations ignored": both(
        function(profiles.column_difference, _no_difference), function(rules.has_collation, lambda spark_type: False)
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class _EmptyLists(value_list.ValueListFilter):
    """A list filter that takes an absent list for an empty one."""

    def label_node(self, node):
        made = value_list.ValueListFilter.label_node(self, node)
        return None if made is None else _NullIsFalse(made)


@dataclasses.dataclass(frozen=True, slots=True)
class _NullIsFalse(clause.Clause):
    inner: clause.Clause

    def might_match(self, metadata):
        return self.inner.might_match(metadata).fill_null(False)

    @property
    def requires(self):
        return self.inner.requires


def _merge_keeping_one(self: Any, other: Any) -> Any:
    return self


def _of_without(*names: str, owner: Any, maker: str = "of") -> Mutation:
    """Collect with some counts forgotten."""
    original = getattr(owner, maker).__func__

    def forgetful(cls: Any, column: Any) -> Any:
        return replace(original(cls, column), **dict.fromkeys(names, 0))

    return lambda patch: patch.setattr(owner, maker, classmethod(forgetful))


def _signed_zeros_listed(cls: Any, values: Any) -> Any:
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    once = column.unique().drop_null()
    if pa.types.is_floating(column.type):
        once = once.filter(pc.invert(pc.is_nan(once)))
    return replace(cls.counts_of(column), values=value_list.Distinct((once,), len(once)))


_make_filter = bloom_filter.make_filter


def _one_turn_too_many(hashes: Any, fpp: float, **how: Any) -> Any:
    made = _make_filter(hashes, fpp, **how)
    one = -1 if made["hashes"] < 0 else 1
    return made if not made["hashes"] else {**made, "hashes": made["hashes"] + one}


def _half_of_the_hashes(hashes: Any, fpp: float, **how: Any) -> Any:
    return _make_filter(hashes[: (len(hashes) + 1) // 2], fpp, **how)


def _cut_list(self: Any, data_object: Any) -> Any:
    stored = dict(_finish_hybrid(self, data_object))
    listed = self.listed.values
    if stored["values"] is None and listed is not None:
        stored |= {"values": listed.array[: self.index.limit], "bits": None, "hashes": None}
    return stored


_finish_hybrid = hybrid.HybridMetadata.finish
_merge_minmax = minmax.MinMaxMetadata.merge


def _void_forgotten(self: Any, other: Any) -> Any:
    merged = _merge_minmax(self, other)
    return replace(merged, lower=self.lower, upper=self.upper) if not self.is_void else merged


def _nan_is_the_upper_bound(self: Any, data_object: Any) -> Any:
    """Right in Spark's order, but Arrow compares as IEEE does: nothing is less than NaN."""
    stored = _finish_minmax(self, data_object)
    return {**stored, "upper": math.nan} if self.nan_count else stored


_finish_minmax = minmax.MinMaxMetadata.finish


AT_INDEX_TIME: dict[str, Mutation] = {
    "minmax: upper bound cut without increment": function(
        minmax._cut_upper, lambda bound: bound[: minmax.BOUND_BYTES] if isinstance(bound, bytes) else bound
    ),
    "minmax: lower bound rounded up": function(minmax._cut_lower, minmax._cut_upper),
    "minmax: NULLs not counted": _of_without("null_count", owner=minmax.MinMaxMetadata),
    "minmax: NaN not counted": _of_without("nan_count", owner=minmax.MinMaxMetadata),
    "minmax: NaN is the upper bound": method(minmax.MinMaxMetadata, "finish", _nan_is_the_upper_bound),
    "minmax: a part lost in merging": method(minmax.MinMaxMetadata, "merge", _merge_keeping_one),
    "minmax: bounds of the first part only": method(minmax.MinMaxMetadata, "merge", _void_forgotten),
    "list: NULLs not counted": _of_without("null_count", owner=value_list.ValueListMetadata, maker="counts_of"),
    "list: NaN not counted": _of_without("nan_count", owner=value_list.ValueListMetadata, maker="counts_of"),
    "list: a part lost in merging": method(value_list.ValueListMetadata, "merge", _merge_keeping_one),
    "list: -0.0 beside 0.0": lambda patch: patch.setattr(
        value_list.ValueListMetadata, "of", classmethod(_signed_zeros_listed)
    ),
    "bloom: a part lost in merging": method(bloom_filter.BloomFilterMetadata, "merge", _merge_keeping_one),
    "bloom: fewer bits set than looked up": function(bloom_filter.make_filter, _one_turn_too_many),
    "bloom: half of the values": function(bloom_filter.make_filter, _half_of_the_hashes),
    "hybrid: list cut at the threshold": method(hybrid.HybridMetadata, "finish", _cut_list),
    "hybrid: a part lost in merging": method(hybrid.HybridMetadata, "merge", _merge_keeping_one),
    "job: rows of later parts not counted": method(
        collect.ObjectStates,
        "merge",
        lambda self, states, rows, old=collect.ObjectStates.merge: old(self, states, 0 if self.states else rows),
    ),
}


_OF_TYPE = {"minmax": "minmax", "list": "valuelist", "bloom": "bloomfilter", "hybrid": "hybrid", "job": "minmax"}


# --- and caught -------------------------------------------------------------------------------------------------------


@pytest.fixture
def reading_here(monkeypatch):
    """Collect in this process, by what index types do with rows; footers would answer for MinMax alone."""
    monkeypatch.setattr(collecting, "collect_from_footers", lambda *_: None)
    monkeypatch.setattr(collecting, "collect_with_arrow", collect_here)


def test_nothing_is_wrong_with_the_rules_as_they_are(bench, tmp_path, reading_here):
    assert len(bench.cases) > 250
    assert bench.wrong_skip() is None
    assert bench.skipped() > 5 * len(bench.cases)
    assert bench.wrong_skip(bench.indexed_here(str(tmp_path))) is None


@pytest.mark.parametrize("name", AT_QUERY_TIME)
def test_broken_at_query_time(bench, monkeypatch, name):
    AT_QUERY_TIME[name](monkeypatch)
    assert bench.wrong_skip() is not None, f"{name}: nobody noticed"


@pytest.mark.parametrize("name", AT_INDEX_TIME)
def test_broken_at_index_time(bench, tmp_path, monkeypatch, reading_here, name):
    AT_INDEX_TIME[name](monkeypatch)
    # The other types would skip no less for it.
    type_ = _OF_TYPE[name.partition(":")[0]]
    assert bench.wrong_skip(bench.indexed_here(str(tmp_path), type_)) is not None, f"{name}: nobody noticed"


def test_reading_otherwise_skips_nothing_wrongly(bench, otherwise):
    assert bench.wrong_skip(cases=otherwise) is None


@pytest.mark.parametrize("name", IN_READING_OTHERWISE)
def test_broken_in_reading_otherwise(bench, otherwise, monkeypatch, name):
    IN_READING_OTHERWISE[name](monkeypatch)
    assert bench.wrong_skip(cases=otherwise) is not None, f"{name}: nobody noticed"
