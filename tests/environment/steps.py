"""What these tests share: the same steps without and with skipping, and settings of the JVM for a block."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import skipstone
from tests.support import skipping_off

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
LINE_LENGTH = "mapreduce.input.linerecordreader.line.maxlength"


def same_steps(spark: SparkSession, steps: Callable[[], Iterable[Any]], *others: SparkSession) -> int:
    """Take the same steps without and with skipping, hold their rows together, give the number of objects skipped.

    Every step is taken anew each time: DataFrames, caches and settings of the first round are not those of the second.
    """
    with ExitStack() as off:
        for session in (spark, *others):
            off.enter_context(skipping_off(session))
        expected = Counter(map(repr, steps()))
    with ExitStack() as on:
        stats = [on.enter_context(skipstone.skipping_stats(session)) for session in (spark, *others)]
        found = Counter(map(repr, steps()))
    entries = [entry for one in stats for entry in one]
    assert found == expected, f"lost {expected - found}, made up {found - expected}; {[e.clause for e in entries]}"
    assert not [entry.error for entry in entries if entry.error]
    return sum(entry.objects.skipped for entry in entries)


@contextmanager
def jvm_zone(spark: SparkSession, zone: str | None) -> Iterator[None]:
    """Make a zone the JVM's default for a block; nothing changes for ``None``."""
    zones: Any = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    if zone is not None:
        zones.setDefault(zones.getTimeZone(zone))
    try:
        yield
    finally:
        zones.setDefault(before)


@contextmanager
def jvm_locale(spark: SparkSession, language: str | None) -> Iterator[None]:
    """Make a language's locale the JVM's default for a block; nothing changes for ``None``."""
    locales: Any = spark._jvm.java.util.Locale
    before = locales.getDefault()
    if language is not None:
        locales.setDefault(locales.forLanguageTag(language))
    try:
        yield
    finally:
        locales.setDefault(before)


@contextmanager
def hadoop(spark: SparkSession, values: dict[str, str | None]) -> Iterator[None]:
    """Set or unset some of the context's Hadoop settings for a block."""
    configuration: Any = spark._jsc.hadoopConfiguration()

    def put(name: str, value: str | None) -> None:
        if value is None:
            configuration.unset(name)
        else:
            configuration.set(name, value)

    before = {name: configuration.get(name) for name in values}
    for name, value in values.items():
        put(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            put(name, value)
