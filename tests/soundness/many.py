"""A campaign of very many predicates, by the generators of the property suites: too long for any run, so it goes on.

``python -m tests.soundness.many --pairs 1000000 --minutes 60`` makes one random dataset after the other, plans
predicates on each and holds the objects that are kept against the truth; a small share runs as queries.  What was
tried is added to ``docs/soundness-campaign.json`` after each dataset, and the next start goes on with the next seed.
``--page`` writes the counts into ``docs/soundness.md``.  A failure is kept with the seed and the commit that repeat it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.session import configure
from skipstone.stores.parts import buckets
from tests.soundness.campaign import Campaign, Counts
from tests.soundness.datasets import RAW_RULES, Spec
from tests.soundness.functions import FUNCTION_TYPES
from tests.soundness.planning import INDEX_TYPES, TEXT_TYPES
from tests.soundness.test_property_functions import FunctionCampaign
from tests.soundness.test_property_times import TimesCampaign
from tests.soundness.times import ZONES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.soundness.campaign import Outcome

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "soundness-campaign.json"
BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
FIRST_SEED = 1_000
"""The seeds below are those of the suites."""
PAIRS = {"columns": 2_000, "functions": 1_500, "times": 1_000}
"""Predicates on each dataset, by what they are about."""
EXECUTED = 0.005
SESSION = 40
"""Datasets that share a session: what Spark keeps of the plans of many takes memory."""
FAMILIES = (
    "integer",
    "decimal",
    "float",
    "string",
    "binary",
    "date",
    "moment",
    "clock",
    "boolean",
    "months",
    "seconds",
)
COUNTED = ("pairs", "refused", "not_comparable", "executed", "objects", "skipped", "relevant")


def kind_of(seed: int) -> str:
    """Return what the predicates on a dataset are about: of eight datasets, five are about columns of all types."""
    return ("columns", "columns", "functions", "columns", "times", "columns", "functions", "columns")[seed % 8]


def spec_of(seed: int) -> Spec:
    """Draw what a dataset is made of."""
    random = Random(f"campaign {seed}")
    kind = kind_of(seed)
    rules: Sequence[tuple[str, ...]] = ((), (), RAW_RULES, tuple(random.sample(RAW_RULES, 3)))
    common: dict[str, Any] = {
        "ansi": random.random() < 0.25,
        "excluded_rules": random.choice(rules),
        "split": random.random() < 0.2,
        "threshold": random.choice((1, 2, 3, 4, 10_000)),
        "gaps": random.choice((1, 2, 4, 6)),
    }
    if kind != "columns":
        return Spec(seed, types=FUNCTION_TYPES if kind == "functions" else INDEX_TYPES, objects=14, **common)
    families = () if random.random() < 0.3 else tuple(random.sample(FAMILIES, random.randint(2, 4)))
    alone = [(type_,) for type_ in INDEX_TYPES if type_ not in TEXT_TYPES] + [(*TEXT_TYPES, "minmax")]
    types = INDEX_TYPES if random.random() < 0.7 else random.choice(alone)
    format_ = random.choice(("parquet",) * 7 + ("orc", "json", "csv"))
    if format_ != "parquet" and families:  # which cannot hold some of the types
        families = tuple(dict.fromkeys((*families, "integer")))
    return Spec(
        seed,
        format=format_,
        objects=random.choice((6, 10, 16)),
        zone=random.choice(("UTC", *ZONES)),
        fpp=random.choice((0.001, 0.01, 0.3)),
        length=random.choice((1, 2, 3, 5)),
        by_spark=random.random() < 0.3,
        inferred=random.random() < 0.15,
        families=families,
        types=types,
        **common,
    )


def tried(spark: SparkSession, seed: int, folder: Path) -> Outcome:
    """Try one dataset's share."""
    spec, kind = spec_of(seed), kind_of(seed)
    with pytest.MonkeyPatch.context() as patch:
        if Random(f"buckets {seed}").random() < 0.5:  # keep sets and filters in buckets, however small they are
            for name, value in (("SMALLEST", 0), ("_BUCKET_BYTES", 16), ("LEAST_SLICE", 1), ("MOST_GROWTH", 1e9)):
                patch.setattr(buckets, name, value)
        if kind == "columns":
            return Campaign(spark, spec, folder).run(PAIRS[kind], EXECUTED)
        if kind == "functions":
            return FunctionCampaign(spark, spec, folder).run(PAIRS[kind], EXECUTED)
        times = TimesCampaign(spark, folder)
        times.ask(Random(f"zone {seed}").choice(ZONES), seed, PAIRS[kind])
        return _outcome(times)


def _outcome(campaign: Campaign) -> Outcome:
    from tests.soundness.campaign import Outcome

    return Outcome(campaign.spec, campaign.counts, campaign.failures)


def _added(record: dict[str, Any], kind: str, counts: Counts, failures: Sequence[str]) -> None:
    """Add a dataset's counts to the record."""
    of_kind = record["kinds"].setdefault(kind, dict.fromkeys(("datasets", *COUNTED), 0))
    of_kind["datasets"] += 1
    for name in COUNTED:
        of_kind[name] += getattr(counts, name)
    for name in ("alone", "skipped_by_values"):
        record[name] = dict(Counter(record.setdefault(name, {})) + getattr(counts, name))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=False
    ).stdout.strip()
    by_commit = record["commits"].setdefault(f"{commit}, Spark {pyspark.__version__}", 0)
    record["commits"][f"{commit}, Spark {pyspark.__version__}"] = by_commit + counts.pairs
    record["failures"] += [f"seed {record['next']}, commit {commit}: {failure}" for failure in failures[:3]]


def _read() -> dict[str, Any]:
    if RECORD.exists():
        return dict(json.loads(RECORD.read_text(encoding="utf-8")))
    return {"next": FIRST_SEED, "kinds": {}, "commits": {}, "failures": []}


def _write(record: dict[str, Any]) -> None:
    """Replace the record as a whole: a run may be broken off at any time."""
    fresh = RECORD.with_suffix(".new")
    fresh.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(RECORD)


def pairs(record: dict[str, Any]) -> int:
    """Count the predicates that were compared."""
    return sum(int(kind["pairs"]) for kind in record["kinds"].values())


def table(record: dict[str, Any]) -> str:
    """Lay the counts out for the page."""
    titles = ("predicates on", "datasets", "compared", "run as queries", "objects asked about", "with a matching row")
    lines = [f"| {' | '.join((*titles, 'skipped'))} |", "|---|" + "---:|" * 6]
    names = ("datasets", "pairs", "executed", "objects", "relevant", "skipped")
    rows = [(kind, [counts[name] for name in names]) for kind, counts in sorted(record["kinds"].items())]
    rows.append(("**all**", [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    lines += [f"| {kind} | {' | '.join(f'{value:,}' for value in row)} |" for kind, row in rows]
    refused, unlike = (sum(kind[name] for kind in record["kinds"].values()) for name in ("refused", "not_comparable"))
    return "\n".join(
        (
            *lines,
            "",
            f"**{len(record['failures'])} failures.** Besides, {refused:,} predicates did not analyse and "
            f"{unlike:,} raise an error in Spark itself. Skipped by one type of index alone, beyond what its counts of "
            "NULLs skip: "
            + ", ".join(f"{type_} {count:,}" for type_, count in sorted(record["skipped_by_values"].items()))
            + ".",
        )
    )


def write_page(record: dict[str, Any]) -> None:
    """Put the table into the page."""
    page = DOCS / "soundness.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(record)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def _session() -> SparkSession:
    from tests.conftest import PATIENCE
    from tests.shared_classes import OPTIONS, archive_options

    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{OPTIONS} {PATIENCE} {archive_options()}")
    builder = configure(SparkSession.builder).master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> int:
    """Go on with the campaign."""
    parser = argparse.ArgumentParser(description="Plan very many random predicates and look for lost objects.")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="in all, earlier runs included")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no dataset after so long")
    parser.add_argument("--seed", type=int, help="try one dataset again, and record nothing")
    parser.add_argument("--page", action="store_true", help="write the counts into docs/soundness.md, and try nothing")
    arguments = parser.parse_args()
    record = _read()
    if arguments.page:
        write_page(record)
        return 0
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    until = time.monotonic() + 60 * arguments.minutes
    spark, failed = _session(), 0
    for number, seed in enumerate([arguments.seed] if arguments.seed is not None else iter(lambda: record["next"], -1)):
        if arguments.seed is None and (pairs(record) >= arguments.pairs or time.monotonic() > until):
            break
        if number and number % SESSION == 0:
            spark.stop()
            spark = _session()
        with tempfile.TemporaryDirectory(prefix="skipstone-campaign-") as folder:
            outcome = tried(spark, seed, Path(folder) / "data")
        print(f"{outcome.spec}: {outcome.counts}", *outcome.failures[:3], sep="\n", flush=True)
        failed += len(outcome.failures)
        if arguments.seed is None:
            _added(record, kind_of(seed), outcome.counts, outcome.failures)
            record["next"] = seed + 1
            _write(record)
    spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
