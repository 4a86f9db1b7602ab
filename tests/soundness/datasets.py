"""Random datasets: a few small objects whose values cluster, so that skips happen, with everything awkward among them.

A ``Spec`` is made from one number and says all that a failure needs to be repeated.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.soundness.planning import INDEX_TYPES
from tests.soundness.values import KINDS, Kind, to_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_ODD_NAMES = ("odd name", "dot.ted", "Upper", "naïve", "tick`ed", "select")
# Types that a text format or ORC cannot hold or give back.
_NOT_IN = {
    "parquet": (),
    "orc": ("months", "seconds", "clock"),
    "json": ("clock", "months", "seconds"),
    "csv": ("binary", "clock", "months", "seconds"),
    "delta": ("clock", "months", "seconds"),
    "iceberg": ("clock", "months", "seconds"),
}
TABLES = {
    "delta": {"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "0"},
    "iceberg": {"write.metadata.metrics.default": "none", "write.distribution-mode": "none"},
}
"""Formats whose own snapshot names the files: properties by which they hold odd names, and prune nothing themselves."""
# Without these rules conditions reach the planner in forms that it rarely sees: casts not unwrapped, LIKE as written,
# IN with NULLs, constants not folded, NOT not pushed down.
RAW_RULES = (
    *("UnwrapCastInBinaryComparison", "LikeSimplification", "OptimizeIn", "BooleanSimplification", "ConstantFolding"),
    *(
        "NullPropagation",
        "SimplifyCasts",
        "SimplifyBinaryComparison",
        "ReplaceNullWithFalseInPredicate",
        "NullDownPropagation",
    ),
)


@dataclass(frozen=True)
class Column:
    """A column or a nested field: its path in the schema, its spelling in SQL, its type."""

    path: tuple[str, ...]
    kind: Kind

    @property
    def sql(self) -> str:
        """The spelling in SQL."""
        return ".".join(_ticked(part) for part in self.path)


@dataclass(frozen=True)
class Spec:
    """What a dataset is made of."""

    seed: int
    format: str = "parquet"
    objects: int = 10
    ansi: bool = False
    zone: str = "UTC"
    threshold: int = 4
    fpp: float = 0.01
    gaps: int = 2
    length: int = 2
    excluded_rules: tuple[str, ...] = ()
    by_spark: bool = False
    split: bool = False
    inferred: bool = False
    families: tuple[str, ...] = ()
    types: tuple[str, ...] = INDEX_TYPES

    @property
    def conf(self) -> dict[str, str]:
        """The settings under which the dataset is indexed and queried."""
        prefix = "org.apache.spark.sql.catalyst.optimizer."
        return {
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.timeType.enabled": "true",
            "spark.sql.optimizer.excludedRules": ",".join(prefix + rule for rule in self.excluded_rules),
        }


@dataclass
class Made:
    """A dataset that was written: how to read it, and the values that its columns draw from."""

    spec: Spec
    path: str
    ddl: str | None
    columns: list[Column]
    pools: dict[tuple[str, ...], list[Any]]
    options: dict[str, str] = field(default_factory=dict)

    def read(self, spark: SparkSession) -> DataFrame:
        """Read the dataset as it is indexed and queried."""
        reader = spark.read.format(self.spec.format).options(**self.options)
        return (reader.schema(self.ddl) if self.ddl else reader).load(self.path)


def make_dataset(spark: SparkSession, spec: Spec, folder: Path) -> Made:
    """Write a dataset."""
    random = Random(f"dataset {spec.seed}")
    has_time = "time" in _version_types(spark)
    columns = _columns(spec, random, has_time=has_time)
    pools = {c.path: c.kind.pool(random, random.randint(8, 22)) for c in columns}
    tables = []
    rid = 0
    for number in range(spec.objects):
        rows = 0 if number == 0 and spec.objects > 3 else random.choice((1, 2, random.randint(3, 30)))
        tables.append(_table(columns, pools, random, rows, rid))
        rid += rows
    folder.mkdir(parents=True)
    ddl = _ddl(columns)
    source = folder / "written-by-arrow" if spec.by_spark or spec.format != "parquet" else folder / "data"
    source.mkdir()
    for number, table in enumerate(tables):
        _write(table, source / f"object-{number:03d}.parquet", random)
    if source.name != "data":
        _rewrite(spark, spec, ddl, str(source), str(folder / "data"))
    if spec.format not in TABLES:  # whose log knows when a file was written
        _age(folder / "data")
    inferred = (
        spec.inferred and spec.format == "parquet" and not any(c.kind.family in ("months", "seconds") for c in columns)
    )
    options = {"header": "true"} if spec.format == "csv" else {}
    path = _table_name(spec) if spec.format == "iceberg" else str(folder / "data")
    return Made(spec, path, None if inferred or spec.format in TABLES else ddl, columns, pools, options)


def _table_name(spec: Spec) -> str:
    """Name a table of the catalog that sessions with Iceberg have."""
    return f"ice.db.dataset_{spec.seed}"


def _version_types(spark: SparkSession) -> tuple[str, ...]:
    """Name the types that only some releases have."""
    return ("time",) if tuple(map(int, spark.version.split(".")[:2])) >= (4, 1) else ()


def _columns(spec: Spec, random: Random, *, has_time: bool) -> list[Column]:
    """Choose a schema: every type once or more, some nested, some with odd names."""
    kinds = [k for k in KINDS.values() if k.family not in _NOT_IN[spec.format] and (has_time or k.family != "clock")]
    if spec.families:
        kinds = [k for k in kinds if k.family in spec.families]
    chosen = kinds + random.choices(kinds, k=4)
    random.shuffle(chosen)
    odd = iter(random.sample(_ODD_NAMES, 3) if spec.format != "csv" else ())
    columns = []
    for number, kind in enumerate(chosen):
        if number % 5 == 4 and spec.format != "csv":
            path: tuple[str, ...] = ("s", "deep", f"f{number}") if number % 2 else ("s", f"f{number}")
        else:
            path = (next(odd, f"c{number}") if number % 6 == 1 else f"c{number}",)
        columns.append(Column(path, kind))
    return columns


def _table(
    columns: list[Column], pools: dict[tuple[str, ...], list[Any]], random: Random, rows: int, rid: int
) -> pa.Table:
    """Make one object: each column draws from a narrow window of its pool, with NULLs or nothing but NULLs."""
    drawn: dict[tuple[str, ...], list[Any]] = {}
    for column in columns:
        pool = pools[column.path]
        width = random.choice((1, 1, 2, 3, 5, len(pool)))
        start = random.randrange(max(1, len(pool) - width + 1))
        window = pool[start : start + width]
        if column.kind.family == "float" and random.random() < 0.3:
            window = [*window, float("nan")]
        nulls = 1.0 if random.random() < 0.03 else random.choice((0.0, 0.0, 0.0, 0.1, 0.4))
        drawn[column.path] = [None if random.random() < nulls else random.choice(window) for _ in range(rows)]
    missing = {p: [random.random() < 0.1 for _ in range(rows)] for p in (("s",), ("s", "deep"))}
    arrays: dict[str, pa.Array] = {"rid": pa.array(range(rid, rid + rows), pa.int64())}
    for name in dict.fromkeys(c.path[0] for c in columns):
        arrays[name] = _array([c for c in columns if c.path[0] == name], drawn, missing, (name,), rows)
    return pa.table(arrays)


def _array(
    columns: list[Column],
    drawn: dict[tuple[str, ...], list[Any]],
    missing: dict[Any, list[bool]],
    at: tuple[str, ...],
    rows: int,
) -> pa.Array:
    """Make a column's array, or a struct's from those of its fields."""
    if columns[0].path == at:
        kind = columns[0].kind
        return kind.array([to_arrow(kind, v) for v in drawn[at]])
    names = list(dict.fromkeys(c.path[len(at)] for c in columns))
    fields = [_array([c for c in columns if c.path[len(at)] == n], drawn, missing, (*at, n), rows) for n in names]
    return pa.StructArray.from_arrays(fields, names, mask=pa.array(missing[at], pa.bool_()))


def _write(table: pa.Table, path: Path, random: Random) -> None:
    """Write one Parquet file, each in some other way."""
    pq.write_table(
        table,
        path,
        row_group_size=random.choice((None, 1, 3, 10)),
        write_statistics=random.random() < 0.8,
        use_dictionary=random.random() < 0.5,
        store_decimal_as_integer=random.random() < 0.5,
        compression=random.choice(("snappy", "none")),
    )


def _rewrite(spark: SparkSession, spec: Spec, ddl: str, source: str, target: str) -> None:
    """Let Spark write the same rows, about an object per object, in its own way or another format."""
    df = spark.read.schema(ddl).parquet(source)
    options = {"header": "true"} if spec.format == "csv" else {}
    clustered = df.repartitionByRange(spec.objects, "_metadata.file_path").sortWithinPartitions("rid")
    if spec.format == "iceberg":
        writer = clustered.writeTo(_table_name(spec)).using("iceberg")
        for name, value in TABLES["iceberg"].items():
            writer = writer.tableProperty(name, value)
        writer.create()
        return
    clustered.write.format(spec.format).options(**options, **TABLES.get(spec.format, {})).save(target)


def _age(folder: Path) -> None:
    """Make the files look an hour old: one modified just now is not trusted yet."""
    then = time.time() - 3600
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def _ddl(columns: list[Column]) -> str:
    """Spell the schema."""
    names = dict.fromkeys(c.path[0] for c in columns)
    typed = (f"{_ticked(name)} {_type([c for c in columns if c.path[0] == name], 1)}" for name in names)
    return ", ".join(("rid BIGINT", *typed))


def _type(columns: list[Column], depth: int) -> str:
    if len(columns[0].path) == depth:
        return columns[0].kind.name
    names = dict.fromkeys(c.path[depth] for c in columns)
    inner = (f"{_ticked(n)}: {_type([c for c in columns if c.path[depth] == n], depth + 1)}" for n in names)
    return f"struct<{', '.join(inner)}>"


def _ticked(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and name != "select" else "`" + name.replace("`", "``") + "`"
