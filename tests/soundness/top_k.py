"""Random datasets whose rows are known here, and random ``ORDER BY … LIMIT`` queries on them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.soundness.campaign import truths
from tests.soundness.values import KINDS, Kind

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession

NAMES = tuple(name for name, kind in KINDS.items() if kind.family != "clock")


@dataclass
class Table:
    """Objects by name, each a list of rows: values by column, physical."""

    folder: Path
    kinds: dict[str, Kind]
    random: Random
    partitioned: bool = False
    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _rid: int = 0

    @cached_property
    def pools(self) -> dict[str, list[Any]]:
        """The values that columns draw from, in Spark's order."""
        return {name: kind.pool(self.random, self.random.randint(8, 30)) for name, kind in self.kinds.items()}

    @property
    def ddl(self) -> str:
        """The schema."""
        part = ", part INT" if self.partitioned else ""
        return "rid BIGINT, " + ", ".join(f"{name} {kind.name}" for name, kind in self.kinds.items()) + part

    def read(self, spark: SparkSession) -> DataFrame:
        """Read it, with a listing of now."""
        return spark.read.schema(self.ddl).parquet(str(self.folder))

    def write(self, name: str, seconds: float) -> None:
        """Write an object with new rows, which looks as old as is said."""
        size = self.random.choice((0, 1, 2, 3, 8, 12))
        drawn = {column: self._drawn(column, size) for column in self.kinds}
        rows = [
            {"rid": self._rid + n, **{c: v[n] for c, v in drawn.items()}, "part": len(name) % 3} for n in range(size)
        ]
        self._rid += size
        arrays = {"rid": pa.array([r["rid"] for r in rows], pa.int64())}
        arrays |= {c: kind.array([r[c] for r in rows]) for c, kind in self.kinds.items()}
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays), path, write_statistics=self.random.random() < 0.7)
        then = time.time() - seconds
        os.utime(path, (then, then))
        self.objects[name] = rows

    def path(self, name: str) -> Path:
        """Return where an object lies."""
        return self.folder / f"part={len(name) % 3}" / name if self.partitioned else self.folder / name

    def _drawn(self, column: str, size: int) -> list[Any]:
        """Draw values of one object: from a narrow window, with or without NULL and NaN, or one value alone."""
        random, pool = self.random, self.pools[column]
        width = random.choice((1, 1, 2, 3, 5))
        start = random.randrange(max(1, len(pool) - width + 1))
        window = pool[start : start + width]
        if self.kinds[column].family == "float":
            window = window + [float("nan")] * random.choice((0, 0, 0, 1))
        nulls = random.choice((0.0, 0.0, 0.0, 0.0, 0.2, 1.0))
        return [None if random.random() < nulls else random.choice(window) for _ in range(size)]

    def predicate(self) -> str:
        """Make a predicate that whole objects may well satisfy."""
        random = self.random
        match random.randrange(8):
            case 0:
                return f"({self.predicate()}) AND ({self.predicate()})"
            case 1:
                return f"({self.predicate()}) OR ({self.predicate()})"
            case 2:
                return f"NOT ({self.predicate()})"
            case 3 if self.partitioned:
                return f"part {random.choice(('=', '<>', '>='))} {random.randrange(3)}"
        name = random.choice(list(self.kinds))
        spell = self.kinds[name].spell
        one, other = (spell(random.choice(self.pools[name])) for _ in range(2))
        return random.choice(
            (
                f"{name} {random.choice(('<', '<=', '>', '>=', '<>', '='))} {one}",
                f"{name} {random.choice(('<', '<=', '>', '>='))} {one}",
                f"{name} IS NOT NULL",
                f"{name} IS NULL",
                f"{name} NOT IN ({one}, {other})",
                f"{name} BETWEEN {one} AND {other}",
                f"coalesce({name} < {one}, true)",
            )
        )


@dataclass(frozen=True)
class Query:
    """One query, and what is needed to know its answer."""

    keys: tuple[tuple[str, bool, bool], ...]
    limit: int
    offset: int
    where: int | None
    form: int

    def sql(self, predicates: list[str]) -> str:
        """Spell it."""
        orders = ", ".join(
            f"{n} {'DESC' if d else 'ASC'} NULLS {'FIRST' if first else 'LAST'}" for n, d, first in self.keys
        )
        where = "" if self.where is None else f" WHERE {predicates[self.where]}"
        order = f" ORDER BY {orders}" if self.keys else ""
        offset = f" OFFSET {self.offset}" if self.offset else ""
        match self.form:
            case 1:
                return f"WITH c AS (SELECT * FROM top_t{where}) SELECT rid FROM c{order} LIMIT {self.limit}{offset}"
            case 2 if self.keys:
                renamed = ", ".join(f"{n} AS renamed_{n}" for n, _, _ in self.keys)
                orders = orders.replace(self.keys[0][0], f"renamed_{self.keys[0][0]}", 1)
                inner = f"SELECT *, {renamed}, rid + 1 AS more FROM top_t{where}"
                return f"SELECT rid, more FROM ({inner}) ORDER BY {orders} LIMIT {self.limit}{offset}"
            case 3 if self.keys and not self.offset:
                number = f"row_number() OVER (ORDER BY {orders}) AS number"
                return f"SELECT rid FROM (SELECT rid, {number} FROM top_t{where}) WHERE number <= {self.limit}"
        return f"SELECT rid FROM top_t{where}{order} LIMIT {self.limit}{offset}"


def make_query(table: Table, predicates: int) -> Query:
    """Make a query with few or many rows, ordered by one key or more, or by none."""
    random = table.random
    names = random.sample(list(table.kinds), random.choice((1, 1, 1, 2, 3)))
    keys = tuple((name, random.random() < 0.5, random.random() < 0.5) for name in names)
    where = random.choice((None, random.randrange(predicates)))
    if where is not None and random.random() < 0.25:
        keys = ()
    limit = random.choice((1, 1, 2, 3, 5, 10, 20, 60))
    return Query(keys, limit, random.choice((0, 0, 0, 1, 4)), where, random.randrange(5))


class Truth:
    """The answers, from the rows as they were written; only predicates are left to Spark."""

    def __init__(self, spark: SparkSession, table: Table, predicates: list[str]) -> None:
        self.rows = {row["rid"]: (name, row) for name, rows in table.objects.items() for row in rows}
        self.matching = [set(t.rows) for t in truths(spark, table.read(spark), predicates)]
        self._ranks: dict[str, dict[int, int | None]] = {}
        for name, kind in table.kinds.items():
            values = {repr(v[name]): v[name] for _, v in self.rows.values() if v[name] is not None}
            ordered = sorted({kind.order(value) for value in values.values()})
            places = {place: n for n, place in enumerate(ordered)}
            self._ranks[name] = {
                rid: None if v[name] is None else places[kind.order(v[name])] for rid, (_, v) in self.rows.items()
            }

    def place(self, rid: int, query: Query) -> tuple[tuple[int, int], ...]:
        """Return what orders a row."""
        found = []
        for name, descending, nulls_first in query.keys:
            rank = self._ranks[name][rid]
            found.append((-1 if nulls_first else 1, 0) if rank is None else (0, -rank if descending else rank))
        return tuple(found)

    def answer(self, query: Query, kept: set[str] | None = None) -> list[tuple[tuple[int, int], ...]]:
        """Return the keys of the answer, from all objects or from some."""
        among = self.rows if query.where is None else self.matching[query.where]
        places = sorted(self.place(rid, query) for rid in among if kept is None or self.rows[rid][0] in kept)
        return places[query.offset : query.offset + query.limit]
