"""Datasets that two JVMs read; run as a script, what a JVM with settings of its own finds in them.

``python -m tests.environment.child FOLDER OUT MASTER [NAME=VALUE …]`` asks every question with and without skipping and
writes the answers as JSON; beside them it leaves a dataset that it has indexed.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

import skipstone
from skipstone import (
    BloomFilterIndex,
    Dataset,
    FeatureIndex,
    MinMaxIndex,
    SkipstoneError,
    ValueListIndex,
    skipping_stats,
)
from tests.soundness.attack import age, parquet, text
from tests.support import conf, skipping_off

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

COMMON = {"spark.sql.session.timeZone": "UTC"}
LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
DAYS = ("2020-01-01", "2020-06-01", "2021-01-01")
OLD = tuple(dt.datetime(year, 3, 1, 12, tzinfo=dt.UTC) for year in (1850, 1750, 1500))


@dataclass(frozen=True)
class Answer:
    """What one question found: rows without and with skipping, and the number of objects skipped."""

    off: list[str]
    on: list[str]
    skipped: int


@dataclass(frozen=True)
class Question:
    """A predicate on a dataset, and the settings under which it is asked."""

    read: Callable[[SparkSession, Path], DataFrame]
    predicate: str
    conf: dict[str, str]


def _orc(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.orc(f"{folder}/orc")


def _rebased(kind: str) -> Callable[[SparkSession, Path], DataFrame]:
    # Instants before the year 1 are beyond Python.
    return lambda spark, folder: spark.read.parquet(f"{folder}/{kind}")


def _texts(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(f"{folder}/texts")


def _months(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.read.schema("d DATE").options(dateFormat="d MMM yyyy", locale="de")
    return reader.csv(f"{folder}/months")


def index_lines(spark: SparkSession, folder: Path) -> None:
    """Write and index lines, of which Hadoop's settings may cut some off."""
    text(folder, ".txt", "short\n", "a line of some length\n", "tiny\n")
    Dataset(spark.read.text(str(folder))).create_indexes(MinMaxIndex("value"), ValueListIndex("value"))


def _numbers(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(f"{folder}/numbers")


QUESTIONS = {
    **{f"orc {day}": Question(_orc, f"ts = TIMESTAMP'{day} 00:00:00'", {}) for day in DAYS},
    # What the same wall clock reads as where the JVM's zone is Los Angeles.
    "orc elsewhere": Question(_orc, "ts = TIMESTAMP'2020-01-01 08:00:00'", {}),
    "orc later": Question(_orc, "ts > TIMESTAMP'2021-01-01 00:00:00'", {}),
    **{
        f"{kind} {predicate}": Question(_rebased(kind), predicate, LEGACY)
        for kind in ("micros", "int96")
        for predicate in (
            "ts < TIMESTAMP'1850-03-01 12:00:00'",
            "ts > TIMESTAMP'1850-03-01 12:00:00'",
            "ts = TIMESTAMP'1850-03-01 11:52:58'",
            "year(ts) = 1850 AND ts <> TIMESTAMP'1850-03-01 12:00:00'",
        )
    },
    "upper": Question(_texts, "upper(s) = 'İÇİ'", {}),
    "lower": Question(_texts, "lower(s) = 'ıçı'", {}),
    # Months whose short names in German are others from another provider of locales.
    "months": Question(_months, "d = DATE'2020-01-01'", {}),
    "numbers": Question(_numbers, "n = 2", {}),
}


def make(spark: SparkSession, folder: Path) -> None:
    """Write and index the datasets, under the settings of this JVM."""
    with conf(spark, COMMON):
        for day in DAYS:
            spark.sql(f"SELECT TIMESTAMP'{day} 00:00:00' AS ts").coalesce(1).write.mode("append").orc(f"{folder}/orc")
        age(folder / "orc")
        Dataset(_orc(spark, folder)).create_indexes(MinMaxIndex("ts"), ValueListIndex("ts"), BloomFilterIndex("ts"))
        with conf(spark, LEGACY):
            for kind in ("micros", "int96"):
                moments = ({"ts": pa.array([moment], pa.timestamp("us", "UTC"))} for moment in OLD)
                parquet(folder / kind, *moments, use_deprecated_int96_timestamps=kind == "int96")
                Dataset(_rebased(kind)(spark, folder)).create_indexes(MinMaxIndex("ts"), ValueListIndex("ts"))
        parquet(folder / "texts", {"s": ["içi"]}, {"s": ["IÇI"]}, {"s": ["x"]})
        features = {"above": QUESTIONS["upper"].predicate, "below": QUESTIONS["lower"].predicate}
        Dataset(_texts(spark, folder)).create_indexes(FeatureIndex(features))
        text(folder / "months", ".csv", "1 Jan 2020\n", "1 M\u00e4rz 2020\n", "1 Mrz 2020\n")
        Dataset(_months(spark, folder)).create_indexes(MinMaxIndex("d"), ValueListIndex("d"))
        parquet(folder / "numbers", {"n": [1]}, {"n": [2]}, {"n": [3]})
        Dataset(_numbers(spark, folder)).create_indexes(MinMaxIndex("n"))


def answers(spark: SparkSession, folder: Path) -> dict[str, Answer]:
    """Ask every question with and without skipping."""
    found = {}
    for name, question in QUESTIONS.items():
        with conf(spark, {**COMMON, **INTERPRETED, **question.conf}):
            with skipping_off(spark):
                off = _shown(question.read(spark, folder).where(question.predicate))
            with skipping_stats(spark) as stats:
                on = _shown(question.read(spark, folder).where(question.predicate))
        found[name] = Answer(off, on, sum(entry.objects.skipped for entry in stats))
    return found


def _shown(df: DataFrame) -> list[str]:
    """Return the rows as texts, made by Spark: Python's own conversion asks the zone of the Python process."""
    return sorted(str(row[0]) for row in df.selectExpr(f"CAST({df.columns[0]} AS STRING)").collect())


def main(folder: str, out: str, master: str, *settings: str) -> None:
    """Ask in a session of this process."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = skipstone.configure(builder.config("spark.ui.showConsoleProgress", "false")).getOrCreate()
    with suppress(SkipstoneError):  # executors unlike the driver may be refused
        index_lines(spark, Path(out).with_suffix(".lines"))
    found = answers(spark, Path(folder))
    Path(out).write_text(json.dumps({name: asdict(answer) for name, answer in found.items()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
