"""Monotone ignorance: whatever piece of metadata becomes unknown, or wider, the kept set only grows.

Through the stack: the conditions are the real optimizer's, the metadata is what the store has, and it is blurred on its
way to the clauses.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.soundness.bench import BENCH_TYPES
from tests.soundness.planning import Seen, blurred, skipped_names, with_only

pytestmark = pytest.mark.slow


def forget(names):
    """Forget whole fields."""
    return lambda name, array: pa.nulls(len(array), array.type) if name in names else array


def forget_some(seed):
    """Forget any field of any object, half of the time."""
    random = Random(seed)

    def blur(name, array):
        hidden = pa.array([random.random() < 0.5 for _ in range(len(array))], pa.bool_())
        return pc.if_else(hidden, pa.nulls(len(array), array.type), array)

    return blur


def widen(name, array):
    """Move bounds apart: lower ones down, upper ones up."""
    type_ = array.type
    if name == "lower" and pa.types.is_binary(type_):
        return pa.array([None if v is None else v[:-1] for v in array.to_pylist()], type_)
    if name == "upper" and pa.types.is_binary(type_):
        return pa.array([None if v is None else v + b"\xff" for v in array.to_pylist()], type_)
    if name in ("lower", "upper") and (pa.types.is_floating(type_) or type_ in (pa.int32(), pa.int64())):
        step = pa.scalar(-1 if name == "lower" else 1, type_)
        return pa.array([None if v is None else _moved(v, step.as_py(), type_) for v in array.to_pylist()], type_)
    return array


def _moved(value, step, type_):
    if pa.types.is_floating(type_):
        return value + step
    bits = type_.bit_width - 1
    return max(-(1 << bits), min((1 << bits) - 1, value + step))


def more_values(name, array):
    """List values that are not there, and set bits that are not set."""
    if pa.types.is_list(array.type):
        rows = array.to_pylist()
        extra = next((v for row in rows if row for v in row), None)
        return pa.array([None if row is None or extra is None else [*row, extra] for row in rows], array.type)
    if name == "bits":
        return pa.array([None if v is None else bytes(b | 0x55 for b in v) for v in array.to_pylist()], array.type)
    return array


BLURS = {
    **{f"without {name}": forget({name}) for name in ("lower", "upper", "null_count", "nan_count", "row_count")},
    **{f"without {name}": forget({name}) for name in ("values", "bits", "hashes")},
    "without counts": forget({"null_count", "nan_count", "row_count"}),
    "without anything": lambda name, array: pa.nulls(len(array), array.type),
    **{f"without half of it, {seed}": forget_some(seed) for seed in range(3)},
    "wider bounds": widen,
    "more values": more_values,
}


@pytest.mark.parametrize("blur", BLURS)
def test_knowing_less_keeps_more(bench, blur):
    grown = 0
    for case in bench.cases:
        # Where there are lists and bounds, Bloom filters have nothing to add.
        bloom = blur in ("without bits", "without hashes", "more values")
        store = Seen(case.asked.store, with_only("bloomfilter")) if bloom else case.asked.store
        sharp = bench.sharp(case, "bloomfilter" if bloom else None)
        dim = skipped_names(case.asked, blurred(store, BLURS[blur]))
        assert dim <= sharp, f"{case.predicate}: {blur} skips {sorted(dim - sharp)} that were kept before"
        assert not dim & case.relevant, f"{case.predicate}: {blur} loses {sorted(dim & case.relevant)}"
        grown += len(sharp - dim)
    assert grown, f"{blur} made no difference: the test says nothing"


@pytest.mark.parametrize("type_", BENCH_TYPES)
def test_fewer_indexes_keep_more(bench, type_):
    for case in bench.cases:
        assert bench.sharp(case, type_) <= bench.sharp(case), case.predicate


@pytest.mark.parametrize("type_", BENCH_TYPES)
def test_without_anything_known_of_values_only_constants_skip(bench, type_):
    """With every field unknown no object may be skipped, unless the predicate is TRUE for no row at all."""
    for case in bench.cases:
        dim = Seen(blurred(case.asked.store, BLURS["without anything"]), with_only(type_))
        if skipped_names(case.asked, dim):
            assert not case.relevant, case.predicate
