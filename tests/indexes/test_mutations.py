"""Each clause broken on purpose: the exhaustive universes must notice, or they guard nothing."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.indexes.universes import INDEXES, check

from skipstone.indexes import bloom_filter, hybrid, minmax, value_list
from skipstone.toolkit import bounds as _bounds
from skipstone.toolkit import leaf as _leaf
from skipstone.toolkit.hashing import spark_hash
from skipstone.toolkit.leaf import Among, Leaf
from skipstone.toolkit.like import to_regex


def never(metadata, *_, **__):
    return pa.array([False] * len(metadata), pa.bool_())


def without_nan(make):
    def broken(*arguments, **options):
        leaf = make(*arguments, **options)
        return Leaf(leaf.subject, leaf.test, leaf.on_null, False, leaf.floating)

    return broken


def without_null(make):
    def broken(*arguments, **options):
        leaf = make(*arguments, **options)
        return leaf and Leaf(leaf.subject, leaf.test, False, leaf.on_nan, leaf.floating)

    return broken


def unnegated(passes):
    def broken(values, test):
        return passes(values, Among(test.values) if isinstance(test, Among) else test)

    return broken


def scala_kin(lower, operator, value):
    """The rule for ``<>`` that the Scala kin ships: min > v or max < v."""
    return ORIGINAL_COMPARE(lower, {"<>": ">"}.get(operator, operator), value)


def is_in(bounds, values):
    return pc.is_in(bounds, value_set=pa.array(values, bounds.type))


ORIGINAL_COMPARE = _bounds._compare
ORIGINAL_PROBE = bloom_filter._probe

# What is broken, where, by what, and for which index and universe it must be noticed.
MUTATIONS = {
    "minmax: <= loses equality": (_bounds._OPERATORS, "<=", pc.less, "minmax", "int"),
    "minmax: >= loses equality": (_bounds._OPERATORS, ">=", pc.greater, "minmax", "int"),
    "minmax: < flipped": (_bounds._OPERATORS, "<", pc.greater, "minmax", "int"),
    "minmax: > flipped": (_bounds._OPERATORS, ">", pc.less, "minmax", "double"),
    "minmax: <> flipped": (_bounds._OPERATORS, "<>", pc.equal, "minmax", "int"),
    "minmax: <> as min > v or max < v": (_bounds, "_compare", scala_kin, "minmax", "int"),
    "minmax: NOT IN without both bounds": (
        _bounds, "_none_but", lambda low, _, v: pc.invert(is_in(low, v)), "minmax", "int",
    ),
    "minmax: IN by the ends only": (
        _bounds, "_any_between", lambda low, _, v: is_in(low, v), "minmax", "int",
    ),
    "minmax: prefix without successor": (_bounds, "successor", lambda prefix: prefix, "minmax", "string"),
    "minmax: upper bound cut like the lower": (minmax, "_cut_upper", minmax._cut_lower, "minmax", "string"),
    "minmax: bytes of 0xff wrap": (minmax, "successor", lambda p: p[:-1] + b"\x00", "minmax", "binary"),
    "minmax: lower bound from the first part": (minmax.MinMaxMetadata, "merge", lambda self, _: self, "minmax", "int"),
    "minmax: an empty part makes no difference": (minmax.MinMaxMetadata, "is_void", True, "minmax", "int"),
    "counts: an object without NULL has no value": (
        _leaf, "has_value", lambda m, i: pc.equal(m.field(i, "null_count"), m.row_count), "minmax", "int",
    ),
    "counts: NaN is ordinary's twin": (
        _leaf, "has_ordinary", lambda m, i, **_: pc.equal(m.field(i, "nan_count"), 0), "minmax", "double",
    ),
    "counts: no NaN": (_leaf, "has_nan", never, "minmax", "double"),
    "counts: no NULL": (_leaf, "has_null", never, "valuelist", "int"),
    "leaf: NaN forgotten in equality": (_leaf, "_among", without_nan(_leaf._among), "valuelist", "double"),
    "leaf: NaN forgotten in order": (_leaf, "_compare", without_nan(_leaf._compare), "minmax", "double"),
    "leaf: NULL forgotten": (_leaf, "_read", without_null(_leaf._read), "bloomfilter", "int"),
    "leaf: NULL forgotten in NOT <=>": (_leaf, "_read", without_null(_leaf._read), "minmax", "int"),
    "value list: negation forgotten": (value_list, "passes", unnegated(value_list.passes), "valuelist", "int"),
    "value list: sign of zero": (pc, "add", lambda a, _: a, "valuelist", "double"),
    "value list: < loses its direction": (value_list._OPERATORS, "<", pc.greater, "valuelist", "string"),
    "value list: _ stops at four bytes": (
        value_list, "to_regex", lambda t: to_regex(t).replace(".", r"[\x{0}-\x{ffff}]"), "valuelist", "string",
    ),
    "value list: startswith is endswith": (value_list._PLACES, "prefix", pc.ends_with, "valuelist", "string"),
    "value list: first part only": (value_list.ValueListMetadata, "merge", lambda self, _: self, "valuelist", "int"),
    "bloom: hashed otherwise": (bloom_filter, "spark_hash", lambda v, t: ~spark_hash(v, t), "bloomfilter", "int"),
    "bloom: zero is nothing": (
        bloom_filter, "spark_hash", lambda v, t: spark_hash(v or 7.0, t), "bloomfilter", "double",
    ),
    "bloom: NaN is nothing": (
        bloom_filter, "spark_hash", lambda v, t: spark_hash(v if v == v else 7.0, t), "hybrid", "double",
    ),
    "bloom: one more turn when probing": (
        bloom_filter, "_probe", lambda *a: ORIGINAL_PROBE(*a[:3], a[3] + 1, *a[4:]), "bloomfilter", "int",
    ),
    "bloom: first part only": (bloom_filter.BloomFilterMetadata, "merge", lambda self, _: self, "bloomfilter", "int"),
    "hybrid: first part only": (hybrid.HybridMetadata, "merge", lambda self, _: self, "hybrid", "int"),
    "hybrid: list beside the filter's hashes": (
        hybrid, "make_filter", lambda h, fpp, **how: bloom_filter.make_filter(h[:1], fpp, **how), "hybrid", "int",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_clause_is_noticed(mutation, monkeypatch):
    where, name, broken, index, type_ = MUTATIONS[mutation]
    if isinstance(where, dict):
        monkeypatch.setitem(where, name, broken)
    else:
        monkeypatch.setattr(where, name, broken)
    for module in (minmax, value_list):  # which have it from _leaf by name
        if where is _leaf and hasattr(module, name):
            monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError, match="skips an object"):
        check_whole_and_in_parts(INDEXES[index], type_)


def check_whole_and_in_parts(index, type_):
    check(index, type_)
    check(index, type_, rows_per_part=1)
