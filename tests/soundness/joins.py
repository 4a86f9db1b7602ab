"""Random joins: a fact whose files are clustered by every key, small dimensions, and queries of many kinds."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

FILES, ROWS, DIMENSIONS = 20, 9, 6

FACT = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("c", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("r", pa.float32()),
        ("b", pa.binary()),
        ("st", pa.struct([("a", pa.int32()), ("z", pa.string())])),
    ]
)

DIMENSION = """
    select cast(v as int) i, cast(v as bigint) l, concat('k', lpad(v, 4, '0')) s,
        date_add(date'2020-01-01', cast(v as int)) d,
        timestamp'2020-01-01 00:00:00' + make_interval(0, 0, 0, cast(v as int)) t, cast(v / 4 as decimal(10,2)) c,
        cast(v / 4 as decimal(12,3)) c3, if(v % 7 = 0, double('NaN'), if(v = 1, -0.0D, v * 0.5D)) x,
        cast(if(v % 7 = 0, double('NaN'), v * 0.5D) as float) r, unhex(lpad(hex(cast(v as int)), 8, '0')) b, n, m
    from values {rows} as t(v, n, m)"""

KEYS = {
    "int": ("i", "i"),
    "int=bigint": ("i", "l"),
    "bigint=int": ("l", "i"),
    "string": ("s", "s"),
    "date": ("d", "d"),
    "timestamp": ("t", "t"),
    "decimal": ("c", "c"),
    "decimal=wider": ("c", "c3"),
    "double": ("x", "x"),
    "float=double": ("r", "x"),
    "binary": ("b", "b"),
    "nested": ("st.a", "i"),
    "function": ("year(f.d)", "year({d}.d)"),
}
"""By what fact and dimension are joined: a column of each, or a text with `f.` and `{d}.`."""

SKIPPING = {
    "inner": "{both} {fact} join {dim} {d} on {eq} where {narrow}",
    "swapped": "{both} {dim} {d} join {fact} on {eq} and {narrow}",
    "null-safe": "{both} {fact} join {dim} {d} on {safe} where {narrow}",
    "several keys": "{both} {fact} join {dim} {d} on {on} and {second}",
    "semi": "{one} where {f}.{left} in (select {right} from {dim} {d} where {narrow})",
    "exists": "{one} where exists (select 1 from {dim} {d} where {eq} and {narrow})",
    "star": "{both} {fact} join {dim} {d} on {on} join {other} {e} on {third} where {narrow}",
    "snowflake": "{both} {fact} join {dim} {d} on {on} join {other} {e} on {d}.m = {e}.m and {e}.n < 2",
    "union": "{both} (select * from fact union all select * from fact where i > 20) {f} join {dim} {d} on {eq}",
    "aggregated": "select {hint} count(*) a, {d}.n b, 0 g from {fact} join {dim} {d} on {eq} group by {d}.n",
    "filtered": "{both} {fact} join {dim} {d} on {on} where {f}.id % 2 = 0 and {f}.i < 50",
    "below an outer join": "{both} {fact} left join {other} {e} on {f}.i = {e}.n join {dim} {d} on {on}",
    "compared with a value": "{one} where {f}.{left} {op} {value}",
    "between values": "{one} where {f}.{left} between (select min({right}) from {dim} {d} where {narrow}) and {value}",
    "value or range": "{one} where {f}.{left} {op} {value} or {f}.i between 3 and 5",
    "value below a join": "{both} {fact} join {dim} {d} on {on} and {f}.{left} <= {value}",
    "value below an outer join": "{both} {fact} left join {dim} {d} on {on} where {f}.{left} >= {value}",
    "self": "{self} {fact} join (select * from fact where i between 10 and 13) {e} on {f}.i = {e}.l",
}
"""Joins whose keys may leave out objects of the fact, and filters whose subqueries' values may."""

KEEPING = {
    "outer": "{both} {fact} left join {dim} {d} on {eq} and {narrow}",
    "right": "{both} {dim} {d} right join {fact} on {eq} and {narrow}",
    "full": "{both} {fact} full join {dim} {d} on {on} and {narrow}",
    "anti": "{one} where not exists (select 1 from {dim} {d} where {eq})",
    "null-aware": "{one} where {f}.i not in (select i from {dim} {d} where {narrow} and i > 0)",
    "existence": "{one} where {f}.id % 2 = 0 or exists (select 1 from {dim} {d} where {on})",
    "single": "select {f}.id a, (select max(n) from {dim} {d} where {d}.i = {f}.i) b, 0 g from {fact}",
    "shuffled": "select /*+ merge({d}) */ {f}.id a, {d}.n b, 0 g from {fact} join {dim} {d} on {on}",
    "grouped below": (
        "{both} (select i % 3 i, count(*) id from fact group by i % 3) {f} join {dim} {d} on {f}.i = {d}.m"
    ),
    "window below": (
        "{both} (select *, row_number() over (partition by id % 3 order by id) w from fact) {f} "
        "join {dim} {d} on {on} and {f}.w < 4"
    ),
    "limit below": "{both} (select * from fact order by id limit 90) {f} join {dim} {d} on {on}",
    "value of a group": "{one} where {f}.i >= (select min({d}.i) from {dim} {d} where {d}.m = {f}.id % 3)",
    "value of a sum": (
        "select a, b, g from (select {f}.i % 5 a, count(*) b, 0 g from {fact} group by {f}.i % 5) "
        "where b > (select min(n) from {dim} {d})"
    ),
    "twice": (  # what one reader of a common table joins, another reads whole
        "with {f} as (select * from fact distribute by i) {both} {f} join {dim} {d} on {on} "
        "union all select max(id) a, count(*) b, 1 g from {f}"
    ),
}
"""Joins whose keys must not."""


def value(v: int | None, name: str, random: Random) -> Any:
    """Return what a number is in a column of the fact; now and then NULL."""
    if v is None or random.random() < 0.05:
        return None
    match name:
        case "i" | "l":
            return v
        case "s":
            return f"k{v:04}"
        case "d":
            return date(2020, 1, 1) + timedelta(days=v)
        case "t":
            return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=v)
        case "c":
            return Decimal(v) / 4
        case "x" | "r":
            return float("nan") if v % 7 == 0 else random.choice((0.0, -0.0)) if v == 1 else v * 0.5
        case "b":
            return struct.pack(">i", v)
    return {"a": v, "z": "z"}


def write_file(path: Path, number: int, random: Random) -> None:
    """Write a file of the fact, whose keys are around its number; one is empty, one has NULLs alone."""
    first = number * 3
    rows = [None if number == 4 else random.randrange(first, first + 4) for _ in range(0 if number == 5 else ROWS)]
    columns = {name: [value(v, name, random) for v in rows] for name in FACT.names if name != "id"}
    table = pa.table({"id": [number * 1000 + n for n in range(len(rows))], **columns}, FACT)
    pq.write_table(table, path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def write_fact(folder: Path, random: Random, *, partitioned: bool) -> None:
    """Write all files of the fact."""
    for number in range(FILES):
        target = folder / f"p={number // 2}" if partitioned else folder
        target.mkdir(parents=True, exist_ok=True)
        write_file(target / f"file-{number:02}.parquet", number, random)


def make_dimensions(spark: SparkSession, random: Random) -> None:
    """Make views dim0, dim1, …: few keys each, of one or two places, some NULL, some twice; the last is empty."""
    for number in range(DIMENSIONS):
        near = [random.randrange(FILES) * 3 for _ in range(random.choice((1, 1, 2)))]
        rows = []
        for n in range(random.randrange(2, 9)):
            v = None if random.random() < 0.2 else random.choice(near) + random.randrange(4)
            rows.append(f"({'null' if v is None else v}, {n}, {random.randrange(3)})")
        view = spark.sql(DIMENSION.format(rows=", ".join(rows)))
        (view.where("n < 0") if number == DIMENSIONS - 1 else view).createOrReplaceTempView(f"dim{number}")


@dataclass(frozen=True)
class Query:
    """One query of a batch: its number is in the names of its tables, by which its scans are known."""

    number: int
    kind: str
    key: str
    sql: str

    def is_in(self, key: str) -> bool:
        """Whether the text of a join's key is of this query; what Spark takes out of structs has no table's name."""
        return re.search(rf"\b[fd]{self.number}\.", key) is not None


class Joins:
    """Draws queries."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def query(self, number: int, kind: str) -> Query:
        """Draw a query of a kind."""
        random = self._random
        key = list(KEYS)[number % len(KEYS)]  # there are 32 kinds: each meets every key
        if (kind == "semi" or "{value}" in (SKIPPING | KEEPING)[kind]) and key == "function":
            key = "int"
        f, d, e = f"f{number}", f"d{number}", f"e{number}"

        def on(dimension: str = d, key: str = key, op: str = "=") -> str:
            left, right = KEYS[key]
            left = left.replace("f.", f"{f}.") if "f." in left else f"{f}.{left}"
            right = right.format(d=dimension) if "{d}" in right else f"{dimension}.{right}"
            return f"{left} {op} {right}" if random.random() < 0.5 else f"{right} {op} {left}"

        fact = random.choice((f"fact {f}", f"fact {f}", f"(select * from fact where i < 40 or s > 'k0030') {f}"))
        hint = f"/*+ broadcast({d}, {e}) */" if "{e}" in (SKIPPING | KEEPING)[kind] else f"/*+ broadcast({d}) */"
        sql = (SKIPPING | KEEPING)[kind].format(
            f=f,
            d=d,
            e=e,
            fact=fact,
            dim=f"dim{random.randrange(DIMENSIONS)}",
            other=f"dim{random.randrange(DIMENSIONS)}",
            hint=hint,
            both=f"select {hint} {f}.id a, {d}.n b, 0 g from",
            one=f"select {f}.id a, 0 b, 0 g from {fact}",
            self=f"select /*+ broadcast({e}) */ {f}.id a, {e}.id b, 0 g from",
            on=on(),
            eq=on(op=random.choice(("=", "=", "=", "<=>"))),
            safe=on(op="<=>"),
            second=on(key=random.choice(list(KEYS))),
            third=on(e, random.choice(list(KEYS))),
            left=KEYS[key][0],
            right=KEYS[key][1],
            op=random.choice(("=", "<=>", "<", "<=", ">", ">=")),
            value=f"(select {random.choice(('min', 'max'))}({KEYS[key][1]}) from dim{random.randrange(DIMENSIONS)})",
            narrow=random.choice((f"{d}.n < 6", f"{d}.m <> 1", "true")),
        )
        return Query(number, kind, key, sql)
