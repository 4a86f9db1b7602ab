"""Attaching: the planner of an application is made, and what Skipstone has of its own becomes known to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone import indexes, registry
from skipstone.engines.spark.bridge.presence import require_bridge
from skipstone.engines.spark.client import Client
from skipstone.engines.spark.connect import classic_session
from skipstone.engines.spark.evaluation import SparkPartEvaluator
from skipstone.engines.spark.hadoop import file_system_for
from skipstone.engines.spark.planning import SparkPlanner
from skipstone.engines.spark.session_store import application_of
from skipstone.functions.geo.implications import SedonaFunctions
from skipstone.functions.inverses.implication import InverseImplication
from skipstone.querying.elements import ElementImplication
from skipstone.stores.elasticsearch.store import ElasticsearchStore
from skipstone.stores.memory import InMemoryStore
from skipstone.stores.parquet.store import ParquetStore
from skipstone.stores.services import Services, provide_services

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["attach", "attach_companion", "fill_registry", "planner_of"]

_BUILT_IN_STORES: dict[str, type[MetadataStore]] = {
    "parquet": ParquetStore,
    "memory": InMemoryStore,
    "elasticsearch": ElasticsearchStore,
}

_planners: dict[str, SparkPlanner] = {}


def attach(spark: SparkSession) -> SparkSession:
    """Register the planner with the bridge of a session's application, once; gives the session that the JVM knows.

    Raises
    ------
    SessionNotConfiguredError
        When the session runs without Skipstone's extension.
    """
    require_bridge(spark)
    spark = classic_session(spark)
    fill_registry()
    application = application_of(spark)
    if application not in _planners:
        planner = _planners.setdefault(application, SparkPlanner(spark))
        client = Client(spark)
        client.register(planner)
        client.warm_up()
    return spark


def attach_companion(spark: SparkSession, number: int) -> bool:
    """Register the planner of a companion process; return whether the bridge still wants it."""
    fill_registry()
    planner = _planners.setdefault(application_of(spark), SparkPlanner(spark))
    return Client(spark).register_companion(number, planner)


def fill_registry() -> None:
    """Make known what Skipstone has of its own."""
    for index_type in indexes.BUILT_IN:
        registry.register_index(index_type)
    provide_services(_services)
    for name, store_type in _BUILT_IN_STORES.items():
        registry.register_store(name, store_type)
    registry.register_implication("elements", ElementImplication())
    registry.register_implication("inverses", InverseImplication())
    registry.register_implication("sedona", SedonaFunctions())


def planner_of(spark: SparkSession) -> SparkPlanner:
    """Return the planner that serves a session."""
    return _planners[application_of(attach(spark))]


def _services(spark: SparkSession) -> Services:
    """Return what a session does for stores."""
    return Services(lambda path: file_system_for(path, spark), SparkPartEvaluator(spark))
