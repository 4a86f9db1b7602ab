"""Queries that run with skipping and without, and what was told of what was left out while they ran."""

from __future__ import annotations

from contextlib import contextmanager

from skipstone import last_query

__all__ = ["asked", "having", "jobs_of", "ran"]


@contextmanager
def having(spark, **settings):
    """Set settings of a session for a while; ``_`` in a name stands for a dot."""
    names = {f"spark.{name.replace('_', '.')}": str(chosen).lower() for name, chosen in settings.items()}
    for name, chosen in names.items():
        spark.conf.set(name, chosen)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def asked(spark):
    """Return what keys and values did to the scans of the latest query."""
    return [scan.joins for scan in last_query(spark) if scan.joins is not None]


def ran(spark, query, *, skipped):
    """Run a query with skipping and without: the same rows, and so many objects left out while it ran."""
    found = sorted(map(str, spark.sql(query).collect()))
    left_out = sum(joins.skipped for joins in asked(spark))
    with having(spark, skipstone_enabled=False):
        assert found == sorted(map(str, spark.sql(query).collect()))
    assert left_out == skipped
    return found


def jobs_of(spark, run, group):
    """Return how many jobs something ran."""
    context = spark.sparkContext
    context.setJobGroup(group, group)
    try:
        run()
    finally:
        context._jsc.clearJobGroup()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return len(context.statusTracker().getJobIdsForGroup(group))
