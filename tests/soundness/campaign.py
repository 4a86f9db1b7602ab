"""One dataset's share of the property suite: plan many predicates, learn the truth in few projections, compare.

The truth of fifty predicates comes from one projection without skipping; the kept objects come from planning alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import skipstone
from skipstone import (
    BloomFilterIndex,
    Dataset,
    GapListIndex,
    HybridIndex,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
)
from tests.soundness.datasets import make_dataset
from tests.soundness.planning import TEXT_TYPES, Capture, Seen, blurred, one_moment, skipped_names, with_only
from tests.soundness.predicates import Generator, Node
from tests.support import conf, skipping_off

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.indexing.index import Index
    from tests.soundness.datasets import Made, Spec
    from tests.soundness.planning import Asked

BATCH, TOGETHER = 50, 20
SPARK_ERRORS = (PySparkException, Py4JJavaError)
# Tiny data: compiling fifty predicates takes far longer than interpreting them.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@dataclass
class Counts:
    """What a run did."""

    pairs: int = 0
    refused: int = 0
    not_comparable: int = 0
    executed: int = 0
    objects: int = 0
    skipped: int = 0
    relevant: int = 0
    alone: Counter[str] = field(default_factory=Counter)
    skipped_alone: Counter[str] = field(default_factory=Counter)
    skipped_by_values: Counter[str] = field(default_factory=Counter)

    def __iadd__(self, other: Counts) -> Self:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


@dataclass
class Outcome:
    """What a dataset's share of the run found."""

    spec: Spec
    counts: Counts
    failures: list[str]


@dataclass
class Pair:
    """A predicate that was planned: the objects kept, skipped by one type of index alone, and by its counts alone."""

    predicate: Node
    kept: frozenset[str]
    type: str
    skipped_alone: frozenset[str]
    skipped_by_counts: frozenset[str]


class Campaign:
    """A dataset, indexed, with what is needed to plan on it and to know the truth."""

    file = "_metadata.file_name"
    """How SQL tells the object of a row."""

    def __init__(self, spark: SparkSession, spec: Spec, folder: Path) -> None:
        self.spark = spark
        self.spec = spec
        self.counts = Counts()
        self._types = cycle(spec.types)
        self.failures: list[str] = []
        with conf(spark, spec.conf):
            with skipping_off(spark):
                self.made: Made = make_dataset(spark, spec, folder)
            self.df = self.made.read(spark)
            self._create_indexes()
        self.everything = self._objects()

    def _objects(self) -> frozenset[str]:
        """Name the dataset's objects, those without rows too."""
        return frozenset(_names(self.df._jdf.inputFiles()))

    def _create_indexes(self) -> None:
        nested = [c.sql for c in self.made.columns if len(c.path) > 1]
        makers: dict[str, Callable[[str], Index]] = {
            "minmax": MinMaxIndex,
            "valuelist": ValueListIndex,
            "bloomfilter": lambda c: BloomFilterIndex(c, fpp=self.spec.fpp),
            "hybrid": lambda c: HybridIndex(c, threshold=self.spec.threshold),
            "gaplist": lambda c: GapListIndex(c, gaps=self.spec.gaps),
            "prefix": lambda c: PrefixIndex(c, length=self.spec.length),
            "suffix": lambda c: SuffixIndex(c, length=self.spec.length),
        }
        wanted = [
            makers[type_](column)
            for type_ in self.spec.types
            if type_ not in TEXT_TYPES or "string" in {c.kind.family for c in self.made.columns if len(c.path) == 1}
            for column in ("*", *(nested if type_ not in TEXT_TYPES else ()))
        ]
        splits = {"spark.sql.files.maxPartitionBytes": "1024", "spark.sql.files.openCostInBytes": "0"}
        with conf(self.spark, splits if self.spec.split else {}):
            report = Dataset(self.df).create_indexes(*wanted)
        assert report.indexed >= 1, f"{self.spec}: nothing was indexed: {report}"
        assert not report.untrusted, f"{self.spec}: objects an hour old are not trusted: {report}"

    def _generator(self, random: Random) -> Any:
        """Return what makes predicates."""
        return Generator(self.made, random)

    def run(self, pairs: int, executed: float) -> Outcome:
        """Try predicates until so many were compared."""
        generator = self._generator(Random(f"predicates {self.spec.seed}"))
        chooser = Random(f"execution {self.spec.seed}")
        waiting: list[tuple[Pair, Truth]] = []
        with conf(self.spark, self.spec.conf):
            while self.counts.pairs < pairs and self.counts.refused < 20 * pairs:
                with one_moment():
                    planned = list(self._planned(generator, min(BATCH, pairs - self.counts.pairs)))
                for compared, truth in self._truths(planned):
                    self._compare(compared, truth)
                    chosen = [pair for pair in zip(compared, truth, strict=True) if chooser.random() < executed]
                    waiting += chosen
                    while len(waiting) >= TOGETHER:
                        self._execute(waiting[:TOGETHER])
                        del waiting[:TOGETHER]
            self._execute(waiting)
        return Outcome(self.spec, self.counts, self.failures)

    def _planned(self, generator: Any, count: int) -> Iterator[Pair]:
        """Plan random predicates; those that do not analyse are not counted."""
        while count:
            pair = self.plan(generator.predicate())
            if pair is None:
                self.counts.refused += 1
            else:
                count -= 1
                yield pair

    def plan(self, predicate: Node, type_: str | None = None) -> Pair | None:
        """Let Spark plan a query, and ask the planner again with only one type of index, each in turn."""
        capture = Capture()
        with capture as asked:
            try:
                kept = self._kept(self.df._jdf.filter(str(predicate)), asked)
            except SPARK_ERRORS:
                return None
        if capture.problems:
            self.failures.append(f"\nERROR IN PLANNING {predicate} in {self.spec}: {capture.problems}")
        type_ = type_ or next(self._types)
        if not asked:  # Spark found that no row can match, and planned no scan
            return Pair(predicate, kept, type_, frozenset(), frozenset())
        only = Seen(asked[-1].store, with_only(type_))
        skipped = skipped_names(asked[-1], only)
        if not skipped:  # then counts skip nothing either
            return Pair(predicate, kept, type_, skipped, skipped)
        counts = blurred(
            only, lambda name, array: array if name.endswith("_count") else pa.nulls(len(array), array.type)
        )
        return Pair(predicate, kept, type_, skipped, skipped_names(asked[-1], counts))

    def _kept(self, planned: Any, asked: Sequence[Asked]) -> frozenset[str]:
        """Let Spark plan a query of the JVM; name the objects that it would read."""
        return frozenset(_names(planned.inputFiles()))

    def _truths(self, pairs: Sequence[Pair]) -> Iterator[tuple[Sequence[Pair], list[Truth]]]:
        """Learn the truth of all predicates at once; if one of them raises an error, halve until it is alone."""
        if not pairs:
            return
        try:
            yield pairs, truths(self.spark, self.df, [p.predicate for p in pairs], file=self.file)
        except SPARK_ERRORS:
            if len(pairs) == 1:
                self.counts.not_comparable += 1
                return
            half = len(pairs) // 2
            yield from self._truths(pairs[:half])
            yield from self._truths(pairs[half:])

    def _compare(self, pairs: Sequence[Pair], truth: list[Truth]) -> None:
        for pair, known in zip(pairs, truth, strict=True):
            self.counts.pairs += 1
            self.counts.objects += len(self.everything)
            self.counts.skipped += len(self.everything - pair.kept)
            self.counts.relevant += len(known.relevant)
            self.counts.alone[pair.type] += 1
            self.counts.skipped_alone[pair.type] += len(pair.skipped_alone)
            self.counts.skipped_by_values[pair.type] += len(pair.skipped_alone - pair.skipped_by_counts)
            if wrong := self._confirmed(pair.predicate, wrong_skips(pair, known)):
                self._report(pair, wrong)

    def _confirmed(self, predicate: Node, wrong: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """Leave out what Spark itself does not return either: it folds some predicates other than it evaluates."""
        if not wrong:
            return {}
        with skipping_off(self.spark):
            rows = self.df.where(str(predicate)).selectExpr(self.file).distinct().collect()
        returned = {row[0] for row in rows}
        return {way: names & returned for way, names in wrong.items() if names & returned}

    def _report(self, pair: Pair, wrong: dict[str, frozenset[str]]) -> None:
        """Shrink a wrong skip and say how to repeat it."""
        smallest, wrong = self._shrunk(pair, wrong)
        name = min(min(lost) for lost in wrong.values())
        with skipping_off(self.spark):
            row = self.df.where(str(smallest)).where(f"{self.file} = '{name}'").first()
        with skipstone.skipping_stats(self.spark) as stats:
            self.df._jdf.filter(str(smallest)).inputFiles()
        self.failures.append(
            f"\nWRONG SKIP in {self.spec}\n"
            f"  columns: {self.made.ddl or self.df.schema.simpleString()}\n"
            f"  predicate: {smallest}\n  found as:  {pair.predicate}\n"
            f"  lost: { ({k: sorted(v) for k, v in wrong.items()}) }\n"
            f"  a row of {name} for which it is TRUE: {row}\n"
            f"  condition: {stats[-1].condition if len(stats) else None}\n"
            f"  clause: {stats[-1].clause if len(stats) else None}"
        )

    def _shrunk(self, pair: Pair, wrong: dict[str, frozenset[str]]) -> tuple[Node, dict[str, frozenset[str]]]:
        predicate = pair.predicate
        for _ in range(60):
            for smaller in predicate.smaller():
                still = self.check(smaller, pair.type)
                if still:
                    predicate, wrong = smaller, still
                    break
            else:
                break
        return predicate, wrong

    def check(self, predicate: Node, type_: str) -> dict[str, frozenset[str]]:
        """Return what one predicate wrongly skips."""
        pair = self.plan(predicate, type_)
        if pair is None:
            return {}
        try:
            (known,) = truths(self.spark, self.df, [predicate], file=self.file)
            return self._confirmed(predicate, wrong_skips(pair, known))
        except SPARK_ERRORS:
            return {}

    def _execute(self, chosen: Sequence[tuple[Pair, Truth]]) -> None:
        """Run queries with skipping, all in one job; those whose rows are not the truth, without skipping as well."""
        if not chosen:
            return
        pairs = [pair for pair, _ in chosen]
        try:
            found = self._rows(pairs)
        except SPARK_ERRORS:
            with skipping_off(self.spark):
                self._rejected(pairs)
            return
        self.counts.executed += len(pairs)
        other = [n for n, (_, known) in enumerate(chosen) if found[n] != known.rows]
        if not other:
            return
        with skipping_off(self.spark):  # Spark folds some predicates other than it evaluates
            expected = dict(zip(other, self._rows([pairs[n] for n in other]), strict=True))
        for n in other:
            if found[n] != expected[n]:
                self.failures.append(
                    f"\nOTHER ROWS in {self.spec}\n  predicate: {pairs[n].predicate}\n  columns: {self.made.ddl}\n"
                    f"  without skipping {expected[n]}\n  with {found[n]}\n  as a projection {chosen[n][1].rows}"
                )

    def _rejected(self, pairs: Sequence[Pair]) -> None:
        """Whether queries that raise an error with skipping do so without: only then there is nothing to compare."""
        try:
            self._rows(pairs)
        except SPARK_ERRORS:
            self.counts.not_comparable += len(pairs)
        else:
            self.failures.append(f"\nRAISED WITH SKIPPING ONLY in {self.spec}\n  {[str(p.predicate) for p in pairs]}")

    def _rows(self, pairs: Sequence[Pair]) -> list[Counter[int]]:
        with conf(self.spark, INTERPRETED):
            queries = [
                self.df.where(str(pair.predicate)).selectExpr(f"{n} AS query", "rid") for n, pair in enumerate(pairs)
            ]
            joined = queries[0]
            for query in queries[1:]:
                joined = joined.unionAll(query)
            rows = joined.toArrow()
        found: list[Counter[int]] = [Counter() for _ in pairs]
        for number, rid in zip(rows["query"].to_pylist(), rows["rid"].to_pylist(), strict=True):
            found[number][rid] += 1
        return found


@dataclass(frozen=True)
class Truth:
    """For which objects, and for which rows, a predicate is TRUE; and how many rows it is FALSE and NULL for."""

    relevant: frozenset[str]
    rows: Counter[int]
    false: int
    null: int


def truths(
    spark: SparkSession, df: DataFrame, predicates: Sequence[Any], row: str = "rid", file: str = Campaign.file
) -> list[Truth]:
    """Evaluate predicates as columns of one projection, without skipping."""
    with conf(spark, {**INTERPRETED, "spark.skipstone.enabled": "false"}):
        marks = [f"({p}) AS p{n}" for n, p in enumerate(predicates)]
        table = df.selectExpr(f"{file} AS file", f"{row} AS rid", *marks).toArrow()
    files, rids = table["file"].to_pylist(), table["rid"].to_pylist()
    found = []
    for n in range(len(predicates)):
        marks_of = table[f"p{n}"].to_pylist()
        true = [i for i, mark in enumerate(marks_of) if mark]
        found.append(
            Truth(
                frozenset(files[i] for i in true),
                Counter(rids[i] for i in true),
                sum(mark is False for mark in marks_of),
                sum(mark is None for mark in marks_of),
            )
        )
    return found


def wrong_skips(pair: Pair, known: Truth) -> dict[str, frozenset[str]]:
    """Return the objects that hold matching rows and were skipped, by which indexes were used."""
    lost = {"all indexes": known.relevant - pair.kept, f"{pair.type} alone": known.relevant & pair.skipped_alone}
    return {way: names for way, names in lost.items() if names}


def _names(files: Any) -> list[str]:
    """Return the names of files."""
    return [path.rpartition("/")[2] for path in files]
