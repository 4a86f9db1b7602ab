"""What objects hold: what is said of every small object is true, and with a rule broken it is not."""

from __future__ import annotations

import inspect
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations_with_replacement
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.querying.test_top_k import Stored

from skipstone import MinMaxIndex
from skipstone.indexing.bounds import Bounds
from skipstone.querying import plan_tally

INDEX = MinMaxIndex("c")
KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "int": ([None, -3, 0, 7], pa.int32()),
    "bigint": ([None, -(2**63), 0, 2**63 - 1], pa.int64()),
    "boolean": ([None, False, True], pa.bool_()),
    "date": ([None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)], pa.date32()),
    "timestamp": ([None, datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "decimal": ([None, Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01")], pa.decimal128(18, 2)),
}
OTHERS: dict[str, tuple[list[Any], pa.DataType]] = {
    "double": ([None, float("nan"), -0.0, 0.0, 1.0], pa.float64()),
    "text": ([None, b"", b"a", b"x" * 70], pa.binary()),
    "wide decimal": ([None, Decimal(1), Decimal(10) ** 20], pa.decimal128(38, 2)),
}


def _number(value: Any, kind: pa.DataType) -> int:
    """Return the number that stands for a value, the slow way."""
    if pa.types.is_decimal(kind):
        return int(value.scaleb(2))
    if isinstance(value, datetime):
        return round((value - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else int(value)


def false_claims(module: Any, stored: Stored, kind: pa.DataType) -> list[str]:
    """Compare what is said of objects with their rows."""
    counted = stored.row_count.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.where([n % 3 != 2 for n in range(len(stored))], counted, module.UNKNOWN)
    found = []
    for values, known, said in zip(stored.objects, rows, module.held_by(stored, INDEX, Bounds(), rows), strict=True):
        nulls, valued, lower, upper = said
        others = [v for v in values if v is not None]
        if nulls != module.UNKNOWN and (known == module.UNKNOWN or nulls != values.count(None)):
            found.append(f"{values} has {nulls} NULLs")
        if valued == 1 and (not others or (lower, upper) != tuple(_number(f(others), kind) for f in (min, max))):
            found.append(f"{values} is from {lower} to {upper}")
        if (valued == 0 and others) or (valued >= 0 and known == module.UNKNOWN):
            found.append(f"{values}: {valued}")
    return found


def _stored(name: str, forget: tuple[str, ...] = ()) -> Stored:
    values, kind = {**KINDS, **OTHERS}[name]
    return Stored([o for size in range(4) for o in combinations_with_replacement(values, size)], kind, forget)


FORGOTTEN = [(), ("lower",), ("upper",), ("null_count",), ("row_count",), ("lower", "upper"), ("lower", "null_count")]


@pytest.mark.parametrize("forget", FORGOTTEN)
@pytest.mark.parametrize("name", KINDS)
def test_what_is_said_of_every_small_object_is_true(name, forget):
    assert false_claims(plan_tally, _stored(name, forget), KINDS[name][1]) == []


@pytest.mark.parametrize("name", KINDS)
def test_all_that_is_known_is_said(name):
    stored = _stored(name)
    held = plan_tally.held_by(stored, INDEX, Bounds(), stored.row_count.to_numpy())
    assert (held[:, 0] >= 0).all()
    assert (held[:, 1] >= 0).all()


@pytest.mark.parametrize("name", OTHERS)
def test_bounds_that_need_not_be_values_are_not_said(name):
    stored = _stored(name)
    held = plan_tally.held_by(stored, INDEX, Bounds(), stored.row_count.to_numpy())
    assert (held[:, 0] >= 0).all()
    assert set(held[:, 1]) == {0, plan_tally.UNKNOWN}


MUTATIONS = {
    "NULLs forgotten": ("valued[(nulls >= 0) & (nulls == rows)] = 0", "valued[nulls >= 0] = 0", ()),
    "an unknown bound is 0": ("& has_least & has_most &", "&", ("upper",)),
    "rows unknown, and counted": ("np.where((rows >= 0) & (nulls <= rows), nulls, UNKNOWN)", "nulls", ()),
    "NULLs unknown, and none": ("fill_null(UNKNOWN)", "fill_null(0)", ("null_count",)),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_shows(name):
    old, new, forget = MUTATIONS[name]
    source = inspect.getsource(plan_tally)
    assert source.count(old) == 1, "let the mutation follow the code"
    broken = ModuleType("broken")
    broken.__dict__["__name__"] = "skipstone.querying.plan_tally"
    exec(compile(source.replace(old, new), "broken", "exec"), broken.__dict__)
    assert any(false_claims(broken, _stored(kind, forget), KINDS[kind][1]) for kind in KINDS)
