"""A campaign of very many predicates, by the generators of the property suites: too long for any run, so it goes on.

``python -m tests.soundness.many --pairs 1000000 --minutes 60`` makes one random dataset after the other, plans
predicates on each and holds the objects that are kept against the truth; a small share runs as queries.  What was
tried is added to ``docs/soundness-campaign.json`` after each dataset, with its seconds, and the next start goes on with
the next seed.  Several processes may run at a time (``many_record``).  ``--page`` writes the counts into
``docs/soundness.md``.  A failure is kept with the seed and the commit that repeat it.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.session import configure
from skipstone.stores.parts import buckets
from tests.soundness.campaign import Campaign
from tests.soundness.datasets import RAW_RULES, Spec
from tests.soundness.functions import FUNCTION_TYPES
from tests.soundness.many_record import Record, pairs, write_page
from tests.soundness.planning import INDEX_TYPES, TEXT_TYPES
from tests.soundness.test_property_functions import FunctionCampaign
from tests.soundness.test_property_times import TimesCampaign
from tests.soundness.times import ZONES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.soundness.campaign import Outcome

DOCS = Path(__file__).parents[2] / "docs"
RECORD = Record(DOCS / "soundness-campaign.json")
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


def _commit() -> str:
    """Return what is tried: the commit, with a + when the library differs from it, and Spark."""
    head = _git("rev-parse", "--short", "HEAD")
    return f"{head}{'+' if _git('status', '--porcelain', '--', ':/src') else ''}, Spark {pyspark.__version__}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=DOCS, capture_output=True, text=True, check=False)
    return done.stdout.strip()


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
    parser.add_argument(
        "--pairs", type=int, default=1_000_000, help="in all, earlier runs and other processes included"
    )
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no dataset after so long")
    parser.add_argument("--seed", type=int, help="try one dataset again, and record nothing")
    parser.add_argument("--page", action="store_true", help="write the counts into docs/soundness.md, and try nothing")
    arguments = parser.parse_args()
    if arguments.page:
        write_page(RECORD.read(), DOCS / "soundness.md")
        return 0
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    until = time.monotonic() + 60 * arguments.minutes
    if arguments.seed is not None:
        return 1 if _try(Sessions(), arguments.seed).failures else 0
    sessions, commit, failed = Sessions(), _commit(), 0
    while pairs(RECORD.read()) < arguments.pairs and time.monotonic() < until:
        with RECORD.claim() as seed:
            started = time.monotonic()
            outcome = _try(sessions, seed)
            seconds = time.monotonic() - started
            RECORD.add(seed, kind_of(seed), outcome.counts, outcome.failures, seconds=seconds, commit=commit)
        failed += len(outcome.failures)
    return 1 if failed else 0


class Sessions:
    """A session for each so many datasets, the last of which ends with the process."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None
        self._used = 0

    def next(self) -> SparkSession:
        """Return a session for a dataset."""
        if self._spark is None or self._used == SESSION:
            if self._spark is not None:
                self._spark.stop()
            self._spark, self._used = _session(), 0
        self._used += 1
        return self._spark


def _try(sessions: Sessions, seed: int) -> Outcome:
    """Try one dataset and tell what it gave."""
    with tempfile.TemporaryDirectory(prefix="skipstone-campaign-") as folder:
        outcome = tried(sessions.next(), seed, Path(folder) / "data")
    print(f"{outcome.spec}: {outcome.counts}", *outcome.failures[:3], sep="\n", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
