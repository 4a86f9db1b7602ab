"""The 22 queries of TPC-H without skipping, with skipping by filters alone, and with all that Skipstone does.

The answers of the three are compared row by row, which warms them up.  Then they take turns; all queries are timed once
before any is timed again.  A query has at most nine rounds, and no other once it had the least number of them and its
runs without skipping took half a minute: medians of three say little of a query of half a second, and one of a minute
need not be run nine times.
What was measured is kept in ``benchmarks/output``, and metadata beside the data: a run that was interrupted goes on
with the next query, if sources and machine are the same, whatever was committed meanwhile.  So queries can be measured
one by one, when the machine is quiet: ``python -m benchmarks.tpch Q6``, and last ``python -m benchmarks tpch``, which
writes down all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks import machine
from benchmarks.datasets import tpch
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.runner import LOGS, table
from benchmarks.session import enable, session
from skipstone import BloomFilterIndex, Dataset, Index, MinMaxIndex, ValueListIndex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEAN, SLOWEST = 0.8, 1.05
SHUFFLE_PARTITIONS = 8
OFF, FILTERS, ON = "off", "filters alone", "on"
WAYS = (OFF, FILTERS, ON)

INDEXES: dict[str, tuple[Index, ...]] = {
    "lineitem": (
        *map(MinMaxIndex, ("l_shipdate", "l_commitdate", "l_receiptdate", "l_orderkey", "l_partkey", "l_suppkey")),
        *map(ValueListIndex, ("l_shipmode", "l_returnflag", "l_shipinstruct")),
        BloomFilterIndex("l_orderkey"),
    ),
    "orders": (
        *map(MinMaxIndex, ("o_orderdate", "o_orderkey", "o_custkey")),
        ValueListIndex("o_orderstatus"),
        BloomFilterIndex("o_orderkey"),
    ),
}


@dataclass(frozen=True)
class Measured:
    """One query: how long it took in each way, in all its processes' time too, and what was left out.

    Other work on the machine hardly touches processor time.
    """

    seconds: dict[str, tuple[float, ...]]
    cpu: dict[str, tuple[float, ...]]
    scans: dict[str, list[dict[str, Any]]]
    rows: int

    def ratio(self, way: str, *, best: bool = False) -> float:
        """Return the time of a way over the time without skipping, by the medians or by the best of each."""
        time = min if best else statistics.median
        return time(self.seconds[way]) / time(self.seconds[OFF])

    def cpu_ratio(self, way: str) -> float:
        """Return the processor time of a way over that without skipping, by the medians."""
        return statistics.median(self.cpu[way]) / statistics.median(self.cpu[OFF])

    def share(self, way: str, what: str) -> float:
        """Return the share of ``objects`` or ``bytes`` that a way skipped, of all that the query's scans list."""
        total = sum(scan[what] for scan in self.scans[way])
        return sum(scan[f"{what}_skipped"] for scan in self.scans[way]) / total if total else 0.0

    def spent(self, way: str) -> float:
        """Return the seconds that planning, listing included, and questions of joins took in one run."""
        return sum(scan["planning"] + scan["asking"] for scan in self.scans[way])


@dataclass(frozen=True)
class Rounds:
    """How often a query is timed: so often at the least and at most, and between them until its time is up."""

    least: int = 3
    most: int = 9
    budget: float = 30.0
    """Seconds of runs without skipping."""

    def wanted(self, measured: Measured) -> bool:
        """Whether a query that was measured so often is to be timed once more."""
        done = len(measured.seconds[ON])
        return done < self.least or (done < self.most and sum(measured.seconds[OFF]) < self.budget)


def measure(*, small: bool) -> list[Row]:
    """Measure every query at scale 1, and the geometric mean of all."""
    return every_query(0.01, Rounds(2, 2), small=True) if small else every_query(1, Rounds(), small=False)


def every_query(scale: float, rounds: Rounds, *, small: bool) -> list[Row]:
    """Measure all queries; what an earlier process measured of them counts."""
    kept = _file(scale)
    measured = run(scale, tuple(tpch.queries(scale)), rounds)
    kept.unlink(missing_ok=True)
    return _rows(measured, scale, small=small)


def run(scale: float, names: Sequence[str], rounds: Rounds) -> dict[str, Measured]:
    """Measure some queries, each as often as its time allows; return what is known of all by now."""
    paths = tpch.tables(scale)
    kept = _file(scale)
    measured = _kept(kept)
    metadata = paths["lineitem"].parent.with_name(f"{paths['lineitem'].parent.name}-metadata")
    metadata.mkdir(exist_ok=True)
    settings = {"spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS)}
    with session(metadata=str(metadata), settings=settings) as spark:
        for name, path in paths.items():
            if name in INDEXES:
                Dataset.for_path(spark, str(path)).ensure_indexes(*INDEXES[name])
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
        queries = {name: query for name, query in tpch.queries(scale).items() if name in names}
        warm: dict[str, Measured] = {}
        for name, query in queries.items():
            if name not in measured:
                measured[name] = warm[name] = _compared(spark, name, query)
                _keep(measured, kept)
        for repeat in range(rounds.most):
            for name, query in queries.items():
                if len(measured[name].seconds[ON]) <= repeat and rounds.wanted(measured[name]):
                    if name not in warm:  # an earlier process compared it
                        warm[name] = _compared(spark, name, query)
                    measured[name] = _timed(spark, query, measured[name], backwards=repeat % 2 == 1)
                    _keep(measured, kept)
    return measured


def main() -> None:
    """Measure the queries that the command line names, and print all that is known of the scale by now."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="query", help="Q1 to Q22, by default all")
    parser.add_argument("--scale", type=float, default=1, help="of the data: 1 is about a gigabyte of text")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is timed in each way, at most")
    arguments = parser.parse_args()
    names = tuple(arguments.names) or tuple(tpch.queries(arguments.scale))
    measured = run(arguments.scale, names, Rounds(min(3, arguments.rounds), arguments.rounds))
    timed = {name: query for name, query in measured.items() if query.seconds[ON]}
    some = len(timed) < len(tpch.queries(arguments.scale))  # then nothing is judged
    rows = [row.described() for row in _rows(timed, arguments.scale, small=some)] if timed else []
    print(table({"scale": "full", "runs": {"tpch": {"rows": rows}}}))


def _file(scale: float) -> Path:
    """Return the file of what was measured by the sources as they are now, on this machine."""
    here = Path(__file__).parent
    package = Path(skipstone.__file__).parent
    timing = [Path(__file__), here / "measures.py", here / "session.py", *(here / "datasets").glob("tpch.*")]
    library = machine.digest((*package.rglob("*.py"), *package.rglob("*.scala")), package)
    named = (library, machine.digest(timing), {**machine.describe_machine(), "commit": ""})
    return LOGS / f"tpch-{scale:g}-{hashlib.sha256(repr(named).encode()).hexdigest()[:12]}.json"


def _kept(file: Path) -> dict[str, Measured]:
    """Return what an interrupted run measured."""
    return {n: Measured(**m) for n, m in json.loads(file.read_text()).items()} if file.exists() else {}


def _keep(measured: dict[str, Measured], file: Path) -> None:
    """Keep what was measured so far."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: vars(query) for name, query in measured.items()}))


def _use(spark: SparkSession, way: str) -> None:
    """Set a session to one of the ways."""
    enable(spark, way != OFF)
    for setting in ("joins", "topk", "aggregates"):
        spark.conf.set(f"spark.skipstone.{setting}", str(way == ON).lower())


def _compared(spark: SparkSession, name: str, query: str) -> Measured:
    """Compare the answers of all ways, and see what each skips; nothing is timed yet."""
    answers, scans = {}, {}
    for way in WAYS:
        _use(spark, way)
        with skipstone.skipping_stats(spark) as stats:
            answers[way] = spark.sql(query).collect()
        scans[way] = [_described(scan) for scan in stats]
    if answers[FILTERS] != answers[OFF] or answers[ON] != answers[OFF]:
        msg = f"{name} has other answers with skipping: {answers}"
        raise AssertionError(msg)
    return Measured(dict.fromkeys(WAYS, ()), dict.fromkeys(WAYS, ()), scans, len(answers[OFF]))


def _timed(spark: SparkSession, query: str, before: Measured, *, backwards: bool) -> Measured:
    """Time a query once in each way, and add that to what was taken before."""
    order = WAYS[::-1] if backwards else WAYS
    subjects = {way: Subject(lambda: spark.sql(query).collect(), lambda way=way: _use(spark, way)) for way in order}
    taken = interleave(subjects, repeats=1, warmups=0)
    return replace(
        before,
        seconds={way: (*before.seconds[way], *taken[way].seconds) for way in WAYS},
        cpu={way: (*before.cpu[way], *taken[way].cpu) for way in WAYS},
    )


def _described(scan: Any) -> dict[str, Any]:
    """Return what the table says of a scan, and what tells why a query is slow."""
    return {
        "clause": scan.clause,
        "objects": scan.objects.total,
        "objects_skipped": scan.objects.skipped,
        "bytes": scan.bytes_total,
        "bytes_skipped": scan.bytes_skipped,
        "planning": scan.planning_seconds,
        "asking": 0.0 if scan.joins is None else scan.joins.seconds,
        "joins": None if scan.joins is None else {"keys": scan.joins.keys, "skipped": scan.joins.skipped},
    }


def _rounds(measured: dict[str, Measured]) -> str:
    """Say how often queries were timed."""
    counts = {len(query.seconds[ON]) for query in measured.values()}
    return f"{min(counts)} to {max(counts)} rounds" if len(counts) > 1 else f"{min(counts)} rounds"


def _rows(measured: dict[str, Measured], scale: float, *, small: bool) -> list[Row]:
    """Make a row of each mean, then one of each query."""
    span = "a day" if tpch.days(scale) == 1 else f"{tpch.days(scale)} days"
    conditions = (
        f"TPC-H at scale {scale:g}, lineitem by ship date and orders by order date, {span} an object, "
        f"other tables as generated; MinMax on dates and keys, value lists, Bloom filters on order keys; "
        f"{SHUFFLE_PARTITIONS} shuffle partitions; listed once, warm; same answers in all ways; "
        f"{_rounds(measured)} of each query"
    )
    target = None if small else MEAN
    rows = [
        Row(
            f"TPC-H, {len(measured)} queries, geometric mean of time with skipping {way} / off",
            statistics.geometric_mean(m.ratio(way) for m in measured.values()),
            "x",
            target if way == ON else None,
            conditions,
            details={
                "of_best": statistics.geometric_mean(m.ratio(way, best=True) for m in measured.values()),
                "cpu_ratio": statistics.geometric_mean(m.cpu_ratio(way) for m in measured.values()),
            },
        )
        for way in (ON, FILTERS)
    ]
    for name, query in measured.items():
        rounds = [on / off for on, off in zip(query.seconds[ON], query.seconds[OFF], strict=True)]
        details = {
            "of_best": query.ratio(ON, best=True),
            "cpu_ratio": query.cpu_ratio(ON),
            "filters_alone": query.ratio(FILTERS),
            **{way: Sample(tuple(query.seconds[way]), tuple(query.cpu[way])).described() for way in WAYS},
            **{f"{what}_skipped": {w: query.share(w, what) for w in (FILTERS, ON)} for what in ("objects", "bytes")},
            "planning_and_asking": query.spent(ON),
            "rows": query.rows,
            "scans": query.scans,
        }
        judged = None if small else SLOWEST
        rows.append(
            Row(f"{name}: on / off", query.ratio(ON), "x", judged, conditions, False, min(rounds), max(rounds), details)
        )
    return rows


if __name__ == "__main__":
    main()
