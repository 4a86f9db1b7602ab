"""Random environments: what may change between the making of a handle, indexing, reading, planning and running.

An environment names a value for every dimension, so that going into it leaves nothing of the one before.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.environment.steps import LINE_LENGTH, ZONE, hadoop, jvm_locale, jvm_zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from pyspark.sql import SparkSession

STAGES = ("handle", "index", "read", "plan", "run")
_TEXTS = ("csv", "json", "xml")
_LINES = ("csv", "json", "text")


@dataclass(frozen=True)
class Dimension:
    """Something that may change: where it is set, its values, the usual one first, and formats that it matters to."""

    where: str
    name: str
    values: tuple[str | None, ...]
    formats: tuple[str, ...]


DIMENSIONS = (
    Dimension("conf", ZONE, ("UTC", "America/Los_Angeles", "Asia/Kolkata"), _TEXTS),
    Dimension("conf", "spark.sql.legacy.timeParserPolicy", ("CORRECTED", "LEGACY"), _TEXTS),
    Dimension("conf", "spark.sql.ansi.enabled", ("true", "false"), ()),
    Dimension("conf", "spark.sql.caseSensitive", ("false", "true"), ("parquet", "orc")),
    Dimension("conf", "spark.sql.parquet.datetimeRebaseModeInRead", ("CORRECTED", "LEGACY"), ("parquet",)),
    Dimension("conf", "spark.sql.parquet.int96RebaseModeInRead", ("CORRECTED", "LEGACY"), ("parquet",)),
    Dimension("conf", "spark.sql.parquet.int96TimestampConversion", ("false", "true"), ("parquet",)),
    Dimension("conf", "spark.sql.avro.datetimeRebaseModeInRead", ("CORRECTED", "LEGACY"), ()),
    Dimension("conf", "spark.sql.json.enablePartialResults", ("true", "false"), ()),
    Dimension("conf", "spark.sql.legacy.json.enableDateTimeParsingFallback", (None, "false", "true"), ("json",)),
    Dimension("conf", "spark.sql.legacy.csv.enableDateTimeParsingFallback", (None, "false", "true"), ("csv",)),
    Dimension("conf", "spark.sql.csv.parser.columnPruning.enabled", ("true", "false"), ()),
    Dimension("conf", LINE_LENGTH, (None, "60"), _LINES),
    Dimension("conf", "orc.force.positional.evolution", (None, "true"), ("orc",)),
    Dimension("hadoop", LINE_LENGTH, (None, "60"), _LINES),
    Dimension("hadoop", "orc.force.positional.evolution", (None, "true"), ("orc",)),
    Dimension("jvm", "zone", (None, "America/Los_Angeles", "Asia/Kolkata"), ("orc", "parquet")),
    Dimension("jvm", "locale", (None, "tr", "de"), ("parquet", "avro", "xml")),
    Dimension("option", "timeZone", (None, "Asia/Tokyo"), _TEXTS),
    Dimension("option", "nullValue", (None, "içi"), ("csv", "xml")),
    Dimension("option", "sep", (None, ";"), ("csv",)),
    Dimension("option", "dateFormat", (None, "yyyy-MM-dd", "dd/MM/yyyy"), _TEXTS),
    Dimension("option", "timestampFormat", (None, "yyyy-MM-dd HH:mm:ss"), _TEXTS),
    Dimension("option", "mode", (None, "DROPMALFORMED"), ()),
    Dimension("option", "ignoreLeadingWhiteSpace", (None, "true"), ()),
    Dimension("option", "lineSep", (None, "ç"), ("text",)),
    Dimension("option", "datetimeRebaseMode", (None, "LEGACY"), ("parquet",)),
    Dimension("option", "positionalFieldMatching", (None, "true"), ("avro",)),
)

Environment = dict[Dimension, str | None]


def usual(random: Random, format_: str) -> Environment:
    """Return an environment in which most is as usual; what only one point in time can change is set now and then."""
    environment = {dimension: dimension.values[0] for dimension in DIMENSIONS}
    if format_ == "parquet" and random.random() < 0.5:  # else the JVM's zone changes nothing
        for dimension in DIMENSIONS:
            if "ebaseModeInRead" in dimension.name:
                environment[dimension] = "LEGACY"
    for dimension in DIMENSIONS:
        if dimension.name == LINE_LENGTH and random.random() < 0.5:  # rows appear where lines are no longer cut
            environment[dimension] = dimension.values[1]
        if (
            dimension.where == "option"
            and dimension.name.endswith("Format")
            and random.random() < (0.3 if format_ == "csv" else 0.1)
        ):
            environment[dimension] = random.choice(dimension.values)
        if dimension.name == "positionalFieldMatching" and random.random() < 0.5:
            environment[dimension] = "true"
    return environment


def journey(random: Random, format_: str, changes: int) -> dict[str, Environment]:
    """Return an environment for each stage: so many dimensions change before some stage, and perhaps back later."""
    steps = [usual(random, format_)] * len(STAGES)
    relevant = [d for d in DIMENSIONS if format_ in d.formats for _ in range(1 if d.where == "option" else 3)]
    for _ in range(changes):
        dimension = random.choice(relevant if random.random() < 0.9 else DIMENSIONS)
        if random.random() < 0.3:  # so that some things are unusual first and usual later
            first = random.choice(dimension.values)
            steps = [{**step, dimension: first} for step in steps]
        value = random.choice([v for v in dimension.values if v != steps[0][dimension]])
        start, end = _when(random, dimension)
        steps = [{**step, dimension: value} if start <= n < end else step for n, step in enumerate(steps)]
    return dict(zip(STAGES, steps, strict=True))


def _when(random: Random, dimension: Dimension) -> tuple[int, int]:
    """Choose the first stage that a change holds for and the first that it does not hold for any more.

    Rather while indexing alone, after the handle was made, or after planning: then no decision sees both values.
    """
    if dimension.where == "option":
        return random.choice((1, 2)), len(STAGES)
    indexing, after_planning = (1, 2), (STAGES.index("run"), len(STAGES))
    anywhere = (random.randint(1, 4), len(STAGES))
    return random.choice((indexing, after_planning, after_planning, anywhere))


def options(environment: Environment) -> dict[str, str]:
    """Return the options of a reader."""
    return {d.name: value for d, value in environment.items() if d.where == "option" and value is not None}


@contextmanager
def within(spark: SparkSession, environment: Environment) -> Iterator[None]:
    """Set all that an environment names, but for the options of readers, for a block."""

    def of(where: str) -> dict[str, str | None]:
        return {d.name: value for d, value in environment.items() if d.where == where}

    with ExitStack() as stack:
        stack.enter_context(_settings(spark, of("conf")))
        stack.enter_context(hadoop(spark, of("hadoop")))
        stack.enter_context(jvm_zone(spark, of("jvm")["zone"] or "UTC"))
        stack.enter_context(jvm_locale(spark, of("jvm")["locale"] or "en"))
        yield


@contextmanager
def _settings(spark: SparkSession, values: dict[str, str | None]) -> Iterator[None]:
    """Set or unset settings of a session for a block."""

    def put(name: str, value: str | None) -> None:
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)

    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        put(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            put(name, value)


def differences(stages: dict[str, Environment]) -> str:
    """Return what changes between the stages."""
    lines = []
    for dimension in DIMENSIONS:
        values = [stage[dimension] for stage in stages.values()]
        if len(set(values)) > 1 or values[0] != dimension.values[0]:
            lines.append(f"{dimension.where} {dimension.name}: {dict(zip(STAGES, values, strict=True))}")
    return "\n    ".join(lines)
