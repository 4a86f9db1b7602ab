"""Where rows stand: what is said of every small object is true, and with a rule broken it is not."""

from __future__ import annotations

import inspect
import math
from itertools import combinations_with_replacement
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skipstone import MinMaxIndex
from skipstone.expressions.tree import And, Column, IsNotNull, IsNull
from skipstone.indexes.minmax import MinMaxMetadata
from skipstone.indexing.bounds import Bounds
from skipstone.querying import top_k
from skipstone.querying.top_k import Top

INDEX = MinMaxIndex("c")
FLOATS = [None, math.nan, -0.0, 0.0, 1.0, 2.0]
TEXTS = [None, b"", b"a", b"x" * 70, b"x" * 70 + b"y", b"\xff" * 70]
ORDERS = [(descending, nulls_first) for descending in (False, True) for nulls_first in (False, True)]


class Stored:
    """Metadata of objects, as a store would show it; ``forget`` names fields of which some are unknown."""

    def __init__(self, objects: list[tuple[Any, ...]], kind: pa.DataType, forget: tuple[str, ...] = ()) -> None:
        self.objects = objects
        made = [MinMaxMetadata.of(pa.array(o, kind)) for o in objects]
        stored = [{**m.finish(None), "row_count": m.row_count} for m in made]  # type: ignore[arg-type]
        fields = {**MinMaxMetadata.fields((kind,)), "row_count": pa.int64()}
        self._columns = {
            name: pa.array([None if name in forget and n % 2 else s.get(name) for n, s in enumerate(stored)], type_)
            for name, type_ in fields.items()
        }

    def __len__(self) -> int:
        return len(self.objects)

    def field(self, index: Any, name: str) -> pa.Array:
        return self._columns[name]

    @property
    def row_count(self) -> pa.Array:
        return self._columns["row_count"]


def _place(value: Any, top: Top) -> tuple[int, Any]:
    """Return what orders rows as Spark does, without ranks."""
    if value is None:
        return (-1, 0) if top.nulls_first else (1, 0)
    if isinstance(value, bytes):
        number = int.from_bytes(value.ljust(80, b"\0"), "big") * 128 + len(value)
    else:
        number = math.inf if math.isnan(value) else value
    return (0, -number if top.descending else number)


def false_claims(module: Any, stored: list[Stored], top: Top) -> list[str]:
    """Compare what is said of objects with their rows, across all snapshots."""
    whole = [np.array([n % 3 != 2 for n in range(len(s))]) for s in stored]
    parts = [module.Ordered(s, INDEX, Bounds(), w) for s, w in zip(stored, whole, strict=True)]
    ranks, places = module.standings(top, parts)
    said = [
        (o, w, r) for s, w, a in zip(stored, whole, ranks, strict=True) for o, w, r in zip(s.objects, w, a, strict=True)
    ]
    steps = [
        (rank, count, o)
        for o, _, r in said
        for rank, count in ((r[1], r[2]), (places["nulls"], r[3]), (places["nans"], r[4]))
    ]
    found = [f"{o} is counted, and does not match" for o, w, r in said if not w and r[2:].any()]
    found += [f"{o} is counted twice" for o, w, r in said if sum(r[2:]) > len(o)]
    # Rows that stand at a rank or before must not come after rows that an object has at best at a later rank.
    asked = [[_place(v, top) for v in o if not (top.not_null and v is None)] for o, _, _ in said]
    bests = [(r[0], min(first), o) for (o, _, r), first in zip(said, asked, strict=True) if first]
    for rank, count, counted in steps:
        if count == 0:
            continue
        last = sorted(_place(v, top) for v in counted)[count - 1]
        found += [
            f"{counted} has {count} at {rank}, {o} is best at {r}"
            for r, first, o in bests
            if r > rank and first <= last
        ]
    return found


def _stored(forget: tuple[str, ...] = ()) -> list[list[Stored]]:
    """Return every object of up to three values, in two snapshots, of numbers and of text."""
    cases = []
    for values, kind in ((FLOATS, pa.float64()), (TEXTS, pa.binary())):
        objects = [o for size in range(4) for o in combinations_with_replacement(values, size)]
        cases.append([Stored(objects[::2], kind, forget), Stored(objects[1::2], kind, forget)])
    return cases


def _tops(stored: list[Stored]) -> list[Top]:
    floating = stored[0].field(INDEX, "lower").type == pa.float64()
    column = Column("c", "double" if floating else "binary")
    wholes = (None, IsNotNull(column), And((IsNotNull(column), IsNotNull(Column("other", "int")))), IsNull(column))
    return [Top(5, whole, column, descending, nulls_first) for descending, nulls_first in ORDERS for whole in wholes]


@pytest.mark.parametrize(
    "forget", [(), ("lower",), ("upper",), ("null_count",), ("nan_count",), ("row_count",), ("lower", "nan_count")]
)
def test_what_is_said_of_every_small_object_is_true(forget):
    for stored in _stored(forget):
        for top in _tops(stored):
            assert false_claims(top_k, stored, top) == []


def test_much_is_said():
    for stored in _stored():
        for top in _tops(stored):
            parts = [top_k.Ordered(s, INDEX, Bounds(), np.ones(len(s), bool)) for s in stored]
            ranks, _ = top_k.standings(top, parts)
            for array, s in zip(ranks, stored, strict=True):
                short = [b"\xff" * 70 not in o for o in s.objects]  # the only bound that is unknown when it is cut
                assert (
                    array[short, 2:].sum(axis=1) == [len(o) for o, ok in zip(s.objects, short, strict=True) if ok]
                ).all()
                assert (array[short, 0] >= 0).all()


MUTATIONS = {
    "NULLs forgotten": ('    best[has_null] = np.minimum(best[has_null], places["nulls"])\n', "", ()),
    "NaN forgotten": ('    best[has_nan] = np.minimum(best[has_nan], places["nans"])\n', "", ()),
    "NaN counted among ordinary values": ("rows - nulls - nans, 0)", "rows - nulls, 0)", ()),
    "NaN unknown, and counted at the bound": ("if floating and top.descending:", "if floating:", ("nan_count",)),
    "objects that match in part are counted": ("counted = part.whole & sound", "counted = sound", ()),
    "bounds exchanged": ("(upper, lower) if top.descending", "(lower, upper) if top.descending", ()),
    "an unknown bound is the first": ("_ANYWHERE = -1", "_ANYWHERE = 2", ("lower",)),
    "NULLs never asked for": ("if not top.not_null else", "if False else", ()),
    "NULL before NaN": ("size + 3}", "size + 1}", ()),
    "NaN before ordinary values": ("else size + 2,", "else 1,", ()),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_shows(name):
    old, new, forget = MUTATIONS[name]
    source = inspect.getsource(top_k)
    assert source.count(old) == 1, "let the mutation follow the code"
    broken = ModuleType("broken")
    broken.__dict__["__name__"] = "skipstone.querying.top_k"
    exec(compile(source.replace(old, new), "broken", "exec"), broken.__dict__)
    assert any(false_claims(broken, stored, top) for stored in _stored(forget) for top in _tops(stored))
