"""Planning with metadata in Elasticsearch beside planning with metadata in Parquet files, in one run.

Ten thousand hollow files with made-up metadata (``synthetic``), in both stores.  The same queries are planned with the
one and with the other in turn; the figures are the times that the rule itself says it took, warm.  The server is
``SKIPSTONE_TEST_ELASTICSEARCH`` or else one that is started here, on this machine.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tests.servers.search_server import search_server

import skipstone
from benchmarks import data, synthetic
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.planning import _hollow_predicates
from benchmarks.session import enable, optimize, session
from skipstone.engines.spark.session_store import store_for
from skipstone.settings import own_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.reporting.stats import ScanStats
    from skipstone.stores.elasticsearch.client import Client

STORES = ("parquet", "elasticsearch")
WARMUPS = 10
MOST = 10
"""How many times the Parquet store's planning Elasticsearch may take."""


def measure(*, small: bool) -> list[Row]:
    """Measure each kind of query with both stores."""
    generated = data.many(1_000 if small else 10_000)
    with search_server("elasticsearch") as url, session(driver_memory="4g") as spark, _clean(spark, url):
        for name in STORES:
            spark.conf.set("spark.skipstone.store", name)
            synthetic._write_metadata(spark, generated)
        df = spark.read.schema(data.MANY_SCHEMA).parquet(generated.path)
        enable(spark, True)
        client = store_for(spark, own_settings(spark)).client
        numbers = iter(range(1_000_000))
        outcomes = {}
        for kind, predicate in _hollow_predicates(generated.objects).items():
            queries = (df.where(predicate.format(number)) for number in numbers)
            outcomes[kind] = _compared(spark, client, queries, repeats=5 if small else 30)
    worst = max(outcomes, key=lambda kind: outcomes[kind]["ratio"])
    conditions = f"{generated.objects:,} hollow objects, 3 MinMax columns, server on the same machine; warm"
    rows = [
        Row(
            f"planning with Elasticsearch beside Parquet, {generated.objects:,} objects (worst: {worst})",
            outcomes[worst]["ratio"],
            "times",
            MOST,
            conditions,
            details=outcomes,
        ),
        Row("… requests per query, at most", max(o["requests"] for o in outcomes.values()), "requests", 10, conditions),
    ]
    for kind, outcome in outcomes.items():
        rows.append(Row(f"… {kind}: Elasticsearch", outcome["elasticsearch_ms"], "ms", None, conditions))
        rows.append(Row(f"… {kind}: Parquet", outcome["parquet_ms"], "ms", None, conditions))
    return rows


def _compared(spark: SparkSession, client: Client, queries: Iterator[DataFrame], *, repeats: int) -> dict[str, float]:
    """Plan queries with the one store and with the other in turn."""
    told: dict[str, list[ScanStats]] = {name: [] for name in STORES}
    requests: list[int] = []

    def run(name: str) -> None:
        before = client.requests
        with skipstone.skipping_stats(spark) as stats:
            optimize(next(queries))
        told[name].append(stats[-1])
        if name == "elasticsearch":
            requests.append(client.requests - before)

    def choose(name: str) -> None:
        spark.conf.set("spark.skipstone.store", name)

    interleave({n: Subject(partial(run, n), partial(choose, n)) for n in STORES}, repeats=repeats, warmups=WARMUPS)
    seconds = {name: Sample(tuple(s.planning_seconds for s in told[name][WARMUPS:])) for name in STORES}
    kept = [told[name][-1].objects.kept for name in STORES]
    assert kept[0] == kept[1], kept
    return {
        "kept": kept[0],
        "requests": max(requests[WARMUPS:]),
        **{f"{name}_ms": 1_000 * seconds[name].median for name in STORES},
        "ratio": seconds["elasticsearch"].median / seconds["parquet"].median,
    }


@contextmanager
def _clean(spark: SparkSession, url: str) -> Iterator[None]:
    """Choose a prefix of index names, and delete what was put under it."""
    spark.conf.set("spark.skipstone.elasticsearch.url", url)
    spark.conf.set("spark.skipstone.elasticsearch.index", f"benchmark-{uuid.uuid4().hex[:8]}")
    try:
        yield
    finally:
        spark.conf.set("spark.skipstone.store", "elasticsearch")
        store = store_for(spark, own_settings(spark))
        for name in (store._indices.heads, store._indices.chunks, store._indices.objects):
            store.client.call("DELETE", name, accepts=(404,), write=True)
