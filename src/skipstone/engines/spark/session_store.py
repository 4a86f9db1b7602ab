"""The metadata store that a session's settings choose, one for each application."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from skipstone import registry
from skipstone.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["application_of", "store_for"]

_stores: dict[tuple[str, str, tuple[tuple[str, str], ...]], MetadataStore] = {}
_stores_lock = threading.Lock()


def store_for(spark: SparkSession, settings: Mapping[str, str]) -> MetadataStore:
    """Return the metadata store that the settings (without their prefix) choose; one per application and settings.

    Raises
    ------
    SettingError
        When there is no store of that name, or its settings make no sense.
    """
    name = settings.get("store") or "parquet"
    store_type = registry.find_store(name)
    if store_type is None:
        known = ", ".join(map(repr, registry.known_stores()))
        msg = (
            f"spark.skipstone.store is {name!r}: there is no such metadata store; use one of {known}, or name the "
            "module that brings it in spark.skipstone.plugins"
        )
        raise SettingError(msg)
    own = {
        k: v
        for k, v in settings.items()
        if any(k == s or (s[-1] == "." and k.startswith(s)) for s in store_type.settings)
    }
    key = (application_of(spark), name, tuple(sorted(own.items())))
    with _stores_lock:
        if key not in _stores:
            _stores[key] = store_type.for_session(spark, own)
        return _stores[key]


_applications: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()


def application_of(spark: SparkSession) -> str:
    """Return the id of a session's application, asked of the JVM once: every query wants it."""
    context = spark.sparkContext
    known = _applications.get(context)
    if known is None:
        known = _applications[context] = str(context.applicationId)
    return known
