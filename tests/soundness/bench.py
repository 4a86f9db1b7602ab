"""A fixed dataset and fixed predicates, planned once by Spark, on which a broken rule shows within a second.

The conditions come from the real optimizer; what is done with them is done again in this process for every mutation,
and so is collecting metadata, which otherwise happens in Spark's workers where no test can reach.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex
from skipstone.engines.spark import arrow_job
from skipstone.indexing import collect
from tests.soundness.attack import age
from tests.soundness.campaign import SPARK_ERRORS, Campaign, truths
from tests.soundness.datasets import RAW_RULES, Column, Made, Spec
from tests.soundness.planning import Asked, Capture, Seen, skipped_names, with_only
from tests.soundness.predicates import Generator
from tests.soundness.values import KINDS
from tests.support import conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.engines.spark.source import SparkSource
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import BoundIndex
    from skipstone.stores.metadata_store import MetadataStore

NAN, INF = float("nan"), float("inf")
_LONG = "x" * 70

# The values of each object, a list a column; shorter lists are repeated.
OBJECTS: tuple[dict[str, list[Any]], ...] = (
    {"i": [1], "d": [1.0], "s": ["a"], "b": [b"a"], "flag": [True], "day": [0], "m": ["1.0000"], "w": ["1"]},
    {"i": [1, 1], "d": [NAN], "s": ["b"], "b": [b"b"], "flag": [False], "day": [1], "m": ["2.5000"], "w": ["-2"]},
    {"i": [2, 3], "d": [NAN, 1.0], "s": ["ab", "ac"], "b": [b"ab"], "flag": [None], "day": [2, 3], "m": ["-1.0000"]},
    {"i": [None], "d": [-0.0], "s": ["a%b"], "b": [b"\xff" * 70], "flag": [True, False], "w": ["12345678901234567890"]},
    {"i": [None, 5], "d": [0.0], "s": ["a_b", "axb"], "b": [None], "flag": [None, True], "day": [None], "m": [None]},
    {"i": [5, 6, 7], "d": [None], "s": [None], "b": [b"", b"\xff"], "flag": [None, False], "day": [-1, 10]},
    {"i": [10, 20], "d": [None, NAN], "s": ["😀x", "a😀"], "b": [b"\x00"], "day": [5, None], "m": ["3.0000", "4.0000"]},
    {"i": [-1], "d": [INF], "s": [_LONG + "y"], "b": [b"a" * 64 + b"\xff"], "day": [18262], "w": ["-0.0000000001"]},
    {"i": [0], "d": [2.0, 3.0], "s": ["x" * 64], "b": [b"a" * 63 + b"\xff\xff"], "m": ["0.0001"], "w": [None, "5"]},
    {
        "i": [100, None],
        "d": [-INF, None],
        "s": ["\U0010ffff" * 20],
        "day": [100],
        "m": [None, "9.0000"],
        "flag": [False],
    },
    {"i": list(range(30, 42)), "d": [4.0, 5.0, 6.0, 7.0, None], "s": ["p", "q", "r", "t", "line\nbreak"], "day": [7]},
    {"i": [-5, -4, -3, -2], "d": [-2.0, -1.0, -0.5], "s": ["", " "], "m": ["-9.0000", "-8.0000"], "w": ["-7", "-6"]},
    {"i": [2147483647], "d": [5e-324], "s": ["é", "e\u0301"], "b": [b"\xc3"], "day": [2932896], "flag": [True, None]},
    {"i": [8], "d": [NAN, None], "s": ["aa", None], "u": [b"\xff\xfe"], "day": [8], "flag": [True], "w": ["8"]},
    {"i": [50, 60], "d": [NAN, 40.0, 50.0], "s": ["k1", "k2", "k3"], "day": [50], "m": ["50.0000"], "w": ["50"]},
    {"i": [9], "d": [0.1], "s": ["a\\b"], "u": [b"caf\xe9", b"zz"], "day": [9], "flag": [True], "m": ["0.1000"]},
)
_KINDS = {
    "i": "int",
    "d": "double",
    "s": "string",
    "b": "binary",
    "flag": "boolean",
    "day": "date",
    "m": "decimal(18,4)",
    "w": "decimal(38,10)",
    "u": "string",
    "f": "float",
    "l": "bigint",
    "ts": "timestamp",
}
CRAFTED = """
i = 1|i <> 1|i < 1|i <= 1|i > 7|i >= 7|i <= -5|i >= 2147483647|i < -4|i > 41|i IN (3, 6)|i NOT IN (1, 5)
i IN (20, 8, 100)|i NOT IN (1, 2)|i BETWEEN 4 AND 5|i NOT BETWEEN 1 AND 41|i IS NULL|i IS NOT NULL|i <=> 5
NOT i <=> 5|NOT i <=> 1|i <=> NULL|i = 5 OR i + 0 = 100|i IN (8, l)|i IN (i, 7)
i = 5 OR s LIKE '%z%' OR abs(i) = 4|NOT (i = 1 AND s = 'a')|NOT (i < 5)|NOT (i <= 5 AND d > 1)
NOT (i > 5 OR s = 'a')|5 > i|7 <= i|100 = i|i = 33|i = 36|i IN (31, 33, 35)|i = -3|NOT (i >= 0)
CAST(i AS STRING) < '2'|CAST(i AS STRING) > '5'|abs(i) = 5|-i = 5|i % 7 = 1|CAST(i AS TINYINT) = -1|i = l|i < l
d = 1|d <> 1|d > 3|d >= 3|d < 0|d <= 0|d = 0|d = -0.0D|d <> 0|d IN (0, 9)|d IN (-0.0D, 7)|d NOT IN (1, 2)
d NOT IN (2, 3)|d = double('NaN')|d <> double('NaN')|d < double('NaN')|d <= double('NaN')|d >= double('NaN')
d IN (double('NaN'), 3)|d NOT IN (double('NaN'), 1)|isnan(d)|NOT isnan(d)|d IS NULL|d IS NOT NULL
d > double('Infinity')|d < -1e300D|NOT d <=> 1|d >= double('Infinity')|d <= double('-Infinity')|NOT (d < 3)
NOT (d <= 3)|d BETWEEN 2 AND double('NaN')|d = 0.1|d = 5e-324D|f = 0.0D|f = float('0.1')|f <> 1|f > 2|isnan(f)
f IS NOT NULL|l = 5|l > 6|l IN (7, 30)|l <> 1|l < 0|NOT l <=> 9|s = 'a'|s <> 'a'|s < 'ab'|s > 'b'|s >= 'x'
s <= 'a'|s LIKE 'a%'|s LIKE '%b'|s LIKE '%x%'|s LIKE 'a_b'|s LIKE 'a\\\\_b'|s LIKE 'a\\\\%b'|s LIKE '_'
s LIKE '__'|s LIKE '_x'|s LIKE 'a%b'|s LIKE 'line%break'|s LIKE '%'|s LIKE ''|s LIKE ' '|s NOT LIKE 'a%'
s NOT LIKE 'x%'|s NOT LIKE '%b'|s NOT LIKE 'a'|s NOT LIKE '_'|startswith(s, 'xxxx')|startswith(s, '😀')
s LIKE 'a!%b' ESCAPE '!'|s LIKE 'a\\\\\\\\b'|endswith(s, 'y')|endswith(s, 'break')|contains(s, '😀')
NOT startswith(s, 'x')|NOT contains(s, 'a')|s IN ('q', 'zz')|s IN ('aa', 'ac')|s NOT IN ('a', 'b')|s IS NULL
NOT s <=> 'a'|s = 'é'|s = 'e\u0301'|startswith(s, '\U0010ffff')|s > '\U0010ffff'
s >= 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy'
s LIKE 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%'|lower(s) = 'a'|upper(s) = 'A'
s = u|substr(s, 1, 1) = 'a'|length(s) > 60|s < u|u = CAST(X'fffe' AS STRING)|u LIKE 'caf%'|u LIKE 'caf_'
u <> 'caf'|u > 'zz'|u = 'zz'|u IS NOT NULL|b = X'61'|b > X'ff'|b >= X'ffffff'|b < X'00'|b <> X'61'
b IN (X'', X'c3')|b IS NULL|b = X'ff'|flag|NOT flag|flag IS NULL|flag = true|flag <> true|flag IS NOT TRUE
flag IS NOT FALSE|flag <=> false|flag IN (true)|flag = false OR i = 100|NOT (flag AND i = 8)|(i = 1) = flag
(i > 5) <=> NULL|(d > 3) IS NULL|(i = 5) IS NOT NULL|day = DATE'1970-01-02'|day < DATE'1970-01-01'
day > DATE'2020-01-01'|day >= DATE'9999-12-31'|day IS NULL|NOT day <=> DATE'1970-01-03'
day IN (DATE'1970-01-06', DATE'1970-01-11')|day NOT IN (DATE'1970-01-08')|day <> DATE'2020-01-01'
year(day) = 2020|m = 1|m > 8|m < -8|m <> 9|m IN (2.5, 3)|m IS NULL|m = 0.1|m >= 9|m <= -9|NOT m <=> 9
m BETWEEN 0 AND 0.0001|m = 1.0|w = 12345678901234567890|w < 0|w = 5|w <> 8|w IN (-2, 1)|w IS NULL|w > 1000
w = -0.0000000001|w <= -7|NOT w <=> 5|w = 1|d = 50
d BETWEEN 45 AND 55|s NOT LIKE 'a_b'|s NOT LIKE 'k_%2'|s LIKE 'k%'|s LIKE 'a%b%'|s LIKE '_%b'
i IS NULL AND d IS NOT NULL|i = 5 AND d IS NULL
(i = 1 OR i = 8) AND (s = 'b' OR s = 'aa')|i = 1 AND s = 'b' OR i = 8 AND d IS NULL|coalesce(i, 7) = 7
if(i IS NULL, d = 0, i = 9)|CASE WHEN i = 1 THEN s = 'b' ELSE i = 7 END|nullif(i, 5) IS NULL|NOT (NOT (i = 6))
NOT (i IN (1, 2) OR s LIKE 'a%')|NOT (i IS NULL OR d = 1)|i = 5 AND s <> 'a'|i > 5 AND i < 7
ts = TIMESTAMP'1970-01-01 00:00:07Z'|ts < TIMESTAMP'1970-01-01 00:00:00Z'|ts > TIMESTAMP'1970-01-01 00:00:30Z'
ts IS NULL|s COLLATE UTF8_LCASE = 'A'|s = 'B' COLLATE UTF8_LCASE|s COLLATE UTF8_LCASE IN ('AA', 'Z')
startswith(s COLLATE UTF8_LCASE, 'A')
"""


@dataclass(frozen=True, eq=False)
class Case:
    """A predicate as the bridge asked it, and the objects that hold a matching row."""

    predicate: str
    asked: Asked
    relevant: frozenset[str]


class Bench:
    """The dataset, indexed for real, and the cases on it."""

    file = Campaign.file

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder)
        self._sharp: dict[tuple[Case, str | None], frozenset[str]] = {}
        _write(folder)
        self.df = self._read()
        with conf(spark, CONF):
            Dataset(self.df).create_indexes(*indexes())
            self.cases = list(self._cases())

    def _read(self) -> DataFrame:
        """Read the dataset as it is indexed and queried."""
        return self.spark.read.schema(DDL).parquet(self.path)

    def _plan(self, query: Any) -> None:
        """Let Spark plan a query of the JVM, as far as the planner is asked."""
        query.inputFiles()

    def _cases(self) -> Iterator[Case]:
        """Plan the crafted predicates and some random ones, and learn the truth of them."""
        crafted = [p for line in CRAFTED.strip().splitlines() for p in line.split("|")]
        pools = {(name,): KINDS[kind].pool(Random(name), 12) for name, kind in _KINDS.items()}
        made = Made(Spec(0), self.path, DDL, [Column((n,), KINDS[k]) for n, k in _KINDS.items()], pools)
        generator = Generator(made, Random("bench"))
        predicates = [*crafted, *(str(generator.predicate()) for _ in range(100))]
        with conf(self.spark, RAW):
            raw = {p: self._planned(p) for p in crafted}
        assert sum(asked is not None for asked in raw.values()) > 0.95 * len(crafted), (
            "crafted predicates do not analyse"
        )
        planned = [(p, asked) for p in predicates for asked in (self._planned(p), raw.get(p)) if asked is not None]
        for n in range(0, len(planned), 60):
            yield from self._learned(planned[n : n + 60])

    def _learned(self, planned: Sequence[tuple[str, Asked]]) -> Iterator[Case]:
        try:
            known = truths(self.spark, self.df, [p for p, _ in planned], row="i", file=self.file)
        except SPARK_ERRORS:
            if len(planned) == 1:
                return
            half = len(planned) // 2
            yield from self._learned(planned[:half])
            yield from self._learned(planned[half:])
            return
        for (predicate, asked), truth in zip(planned, known, strict=True):
            yield Case(predicate, asked, truth.relevant)

    def _planned(self, predicate: str) -> Asked | None:
        with Capture() as asked:
            try:
                self._plan(self.df._jdf.filter(predicate))
            except SPARK_ERRORS:
                return None
        return asked[-1] if asked else None

    def asked_otherwise(self, df: DataFrame, predicates: Sequence[str]) -> list[Case]:
        """Return cases of the same or other files, read in another way than they were indexed."""
        planned = []
        for predicate in predicates:
            with Capture() as asked:
                df._jdf.filter(predicate).inputFiles()
            planned.append((predicate, asked[-1]))
        known = truths(self.spark, df, predicates, row="1")
        return [Case(p, asked, truth.relevant) for (p, asked), truth in zip(planned, known, strict=True)]

    def wrong_skip(self, store: MetadataStore | None = None, cases: Sequence[Case] = ()) -> str | None:
        """Plan every case again; give the first that loses an object, or ``None``."""
        for case in cases or self.cases:
            lost = case.relevant & skipped_names(case.asked, store or case.asked.store)
            if lost:
                return f"{case.predicate} loses {sorted(lost)}"
        return None

    def sharp(self, case: Case, type_: str | None = None) -> frozenset[str]:
        """Name what is skipped by all that is known, or by all that one type of index knows; found out once."""
        if (case, type_) not in self._sharp:
            store = case.asked.store if type_ is None else Seen(case.asked.store, with_only(type_))
            self._sharp[case, type_] = skipped_names(case.asked, store)
        return self._sharp[case, type_]

    def skipped(self) -> int:
        """Count what is skipped over all cases."""
        return sum(len(skipped_names(case.asked, case.asked.store)) for case in self.cases)

    def indexed_here(self, location: str, *types: str) -> MetadataStore:
        """Collect metadata of some types again, here and in small parts, into another place; give that store."""
        with conf(self.spark, {**CONF, "spark.skipstone.location": location}):
            dataset = Dataset(self.df)
            dataset.create_indexes(*(index for index in indexes() if index.type_name in (types or BENCH_TYPES)))
            return dataset._store()


CONF = {"spark.sql.ansi.enabled": "false"}
# Conditions as they are written: most of what the optimizer does before us, we must do right as well.
RAW = Spec(0, excluded_rules=RAW_RULES).conf


BENCH_TYPES = ("minmax", "valuelist", "bloomfilter", "hybrid")


def indexes() -> list[Any]:
    """Those types of index on every column, hybrids in both forms."""
    makers = (MinMaxIndex, ValueListIndex, BloomFilterIndex, lambda c: HybridIndex(c, threshold=2))
    return [make(name) for make in makers for name in _KINDS]


def collect_here(source: SparkSource, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
    """Do what ``collect_with_arrow`` does without Spark's workers: three rows at a time, all objects in parts."""
    frame, _ = source.read(objects)
    selected, plan = arrow_job.plan_inputs(frame, bound, -1)
    known = arrow_job.object_table(objects)
    batches = selected.toArrow().to_batches(max_chunksize=3)
    parts = pa.Table.from_batches(list(collect.collect_parts(plan, known, batches, pickle.dumps))).sort_by("object")
    merged = collect.merge_parts(plan, known, parts.to_batches(), pickle.loads)
    blocks = [data.as_py() for batch in merged for data in batch.column("data")]
    return arrow_job.with_rowless(arrow_job.read_blocks(blocks, [p.fields for p in plan.indexes]), plan, objects)


def _write(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, columns in enumerate(OBJECTS):
        rows = max(map(len, columns.values()))
        values = {name: _repeated(columns.get(name, [None]), rows) for name in _KINDS}
        values["l"] = values["i"]
        values["f"] = [None if v is None else v if abs(v) > 1e-30 or v == 0 else 0.0 for v in values["d"]]
        values["ts"] = [None if v is None else v * 1_000_000 for v in values["i"]]
        values["m"], values["w"] = (_decimals(values[name]) for name in ("m", "w"))
        arrays = {name: _array(name, values[name]) for name in _KINDS}
        pq.write_table(pa.table(arrays), folder / f"object-{number:03d}.parquet")
    pq.write_table(pa.table({name: _array(name, []) for name in _KINDS}), folder / "empty.parquet")
    age(folder)


def _array(name: str, values: list[Any]) -> pa.Array:
    if name == "u":
        return pa.array(values, pa.binary()).view(pa.string())
    return KINDS[_KINDS[name]].array(values)


def _decimals(values: list[Any]) -> list[Any]:
    from decimal import Decimal

    return [None if v is None else Decimal(v) for v in values]


def _repeated(values: list[Any], rows: int) -> list[Any]:
    return [values[n % len(values)] for n in range(rows)]


DDL = ", ".join(f"{name} {kind}" for name, kind in _KINDS.items())
