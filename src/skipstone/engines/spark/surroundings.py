"""What functions of times look at in Spark: the JVM's rules of time zones, and how dates are written."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import Client
from skipstone.functions.inverses.zones import Surroundings, ZoneRules, read_rules
from skipstone.indexing.environment import SESSION, ZONES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipstone.indexing.relation import Relation

__all__ = ["rests_on", "surroundings"]

_POLICY = "spark.sql.legacy.timeParserPolicy"
_VERSION = "time zone rules"


def surroundings(spark: SparkSession, relation: Relation) -> Surroundings:
    """Return what functions look at in a query; nothing is asked of the JVM before a function asks.

    Zones have rules only where all JVMs that may evaluate the query have the same release of them.
    """
    # A thread may have settings of its own, which tasks see: those are named by more than the setting.
    told = [item for e in relation.environments for item in e.groups.get(SESSION, {}).items()]
    old = any(name.endswith(_POLICY) and value.upper() == "LEGACY" for name, value in told)
    return Surroundings(lambda zone: _rules(spark, zone, _version(relation)), old_formatter=old)


def _version(relation: Relation) -> str | None:
    """Return the release of the rules that all JVMs have, or ``None``."""
    versions = {environment.known().get(ZONES, {}).get(_VERSION) for environment in relation.environments}
    return next(iter(versions)) if len(versions) == 1 else None


def rests_on(environment: tuple[str, ...], looked_at: Surroundings) -> tuple[str, ...]:
    """Add the groups of the environment that functions have looked at."""
    more = ((ZONES,) if looked_at.asked_rules else ()) + ((SESSION,) if looked_at.asked_formatter else ())
    return tuple(dict.fromkeys((*environment, *more)))


@lru_cache(maxsize=256)
def _rules(spark: SparkSession, zone: str, version: str | None) -> ZoneRules | None:
    """Ask the JVM for the rules of a zone, once for each release of the rules."""
    if version is None:
        return None
    said = json.loads(Client(spark).zone_rules(zone))
    return read_rules([(second, offset) for second, offset in said["transitions"]], said["first"], said["until"])
