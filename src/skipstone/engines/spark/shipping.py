"""Shipping to executors: Skipstone itself as a zip, and plug-ins by value, so that executors need not have them."""

from __future__ import annotations

import atexit
import pickle
import shutil
import sys
import tempfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone import registry
from skipstone.engines.spark.client import Client
from skipstone.errors import IndexingError
from skipstone.functions.identity.own_sources import own_digest, own_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from skipstone.indexing.index import Index

__all__ = ["dump_for_executors", "dump_on_executor", "load_on_executor", "ship", "ship_to_all"]

_EPOCH = (1980, 1, 1, 0, 0, 0)
_FOUND_EVERYWHERE = frozenset({"skipstone", "pyarrow", "numpy", "pyspark", *sys.stdlib_module_names} - {"__main__"})

_shipped: dict[str, Path] = {}
_lock = threading.Lock()


def ship(spark: SparkSession) -> None:
    """Make Skipstone importable in the Python workers of a session's jobs.

    Spark may keep the files of sessions apart (as Connect does): what the application has does not reach them then.
    """
    Client(spark).add_to_session(ship_to_all(spark.sparkContext))


def ship_to_all(context: SparkContext) -> Path:
    """Make Skipstone importable in the Python workers of an application, once; return the archive."""
    with _lock:
        archive = _shipped.get(context.applicationId)
        if archive is None:
            archive = _archive()
            before = list(sys.path)
            with ThreadPoolExecutor(1) as fresh:  # the JVM's side of this thread may be at work for a single session
                fresh.submit(context.addPyFile, str(archive)).result()
            sys.path[:] = before  # the driver has Skipstone already, and goes on using its own
            _shipped[context.applicationId] = archive
        return archive


def _archive() -> Path:
    """Zip the package's Python files; the name tells the contents."""
    folder = Path(tempfile.mkdtemp(prefix="skipstone-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / f"skipstone-{own_digest()[:12]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in own_sources().items():
            zipped.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return archive


def dump_for_executors(what: Any, indexes: Iterable[Index], others: Iterable[type] = ()) -> bytes:
    """Pickle ``what`` with the classes of plug-ins inside it, and all that they use of their own package.

    Parameters
    ----------
    what
        What executors need; ``load_on_executor`` gives it back.
    indexes
        The indexes in it.
    others
        Further classes in it that may be a plug-in's, such as those of clauses.

    Raises
    ------
    IndexingError
        When a plug-in cannot be pickled.
    """
    from pyspark import cloudpickle

    pickler: Any = cloudpickle
    names = sorted({index.name for index in indexes})
    try:
        with _by_value(_plugin_packages(indexes, others)):
            return pickler.dumps(what)
    except Exception as first:  # noqa: BLE001  (a pickler may raise anything)
        try:  # something in a package cannot travel: executors may have the package itself
            return pickler.dumps(what)
        except Exception as error:
            msg = f"{', '.join(names)} cannot be sent to Spark's workers: {type(first).__name__}: {first}"
            raise IndexingError(msg) from error


def dump_on_executor(what: Any) -> bytes:
    """Pickle what another worker will read."""
    from pyspark import cloudpickle

    pickler: Any = cloudpickle
    return bytes(pickler.dumps(what))


def load_on_executor(payload: bytes) -> Any:
    """Read what the driver pickled."""
    with _unregistered():
        return pickle.loads(payload)  # noqa: S301  (made by our own driver)


@contextmanager
def _unregistered() -> Iterator[None]:
    """Keep classes that arrive by value out of the registry: workers need none, and names may come before values."""
    kept = registry.register_index
    registry.register_index = lambda index_type: None  # noqa: ARG005
    try:
        yield
    finally:
        registry.register_index = kept


def _plugin_packages(indexes: Iterable[Index], others: Iterable[type]) -> list[ModuleType]:
    """Return the top-level packages of the index, metadata and other types that are not Skipstone's own."""
    types = [*others, *(t for index in indexes for t in (type(index), index.metadata_type))]
    classes = {c for t in types for c in t.__mro__}
    names = {c.__module__ for c in classes if c.__module__.partition(".")[0] not in _FOUND_EVERYWHERE}
    modules = (sys.modules.get(name.partition(".")[0]) or sys.modules.get(name) for name in sorted(names))
    return [m for m in dict.fromkeys(modules) if m is not None and m.__name__ != "__main__"]


@contextmanager
def _by_value(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Let the pickler put what is defined in these packages into the pickle, rather than their names."""
    from pyspark import cloudpickle

    registered: list[ModuleType] = []
    pickler: Any = cloudpickle
    with _lock:
        try:
            for module in modules:
                if module.__name__ not in pickler.list_registry_pickle_by_value():
                    pickler.register_pickle_by_value(module)
                    registered.append(module)
            yield
        finally:
            for module in registered:
                pickler.unregister_pickle_by_value(module)
