"""What plug-ins bring: index types and metadata stores by name, implications, and inverses of functions.

Filled by subclassing ``Index``, by the ``skipstone.plugins`` entry points and by settings.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from skipstone.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skipstone.functions.inverses.inverse import Inverse
    from skipstone.indexing.index import Index
    from skipstone.querying.implication import Implication
    from skipstone.stores.metadata_store import MetadataStore

__all__ = [
    "allow_plugins",
    "find_index",
    "find_inverse",
    "find_plugins",
    "find_store",
    "implications",
    "known_stores",
    "known_types",
    "load_plugins",
    "register_implication",
    "register_index",
    "register_inverse",
    "register_store",
    "store_settings",
]

ENTRY_POINT_GROUP = "skipstone.plugins"

_index_types: dict[str, type[Index]] = {}
_implications: dict[str, Implication] = {}
_inverses: dict[str, Inverse] = {}
_stores: dict[str, type[MetadataStore]] = {}
_loaded: set[str] = set()
_allowed: set[str] | None = None
_lock = threading.Lock()


def register_index(index_type: type[Index]) -> None:
    """Make an index type known; a later definition of the same module and name (a notebook cell run again) replaces it.

    Raises
    ------
    PluginError
        When two different modules claim one type name.
    """
    name = index_type.type_name
    with _lock:
        known = _index_types.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (
            index_type.__module__,
            index_type.__qualname__,
        ):
            msg = (
                f"the index type name {name!r} of {index_type.__module__}.{index_type.__qualname__} is already taken "
                f"by {known.__module__}.{known.__qualname__}; give one of them another `type_name`"
            )
            raise PluginError(msg)
        _index_types[name] = index_type


def find_index(type_name: str) -> type[Index] | None:
    """Return the index type registered under a name, or ``None``."""
    return _index_types.get(type_name)


def register_store(name: str, store_type: type[MetadataStore]) -> None:
    """Make a metadata store known under the name that ``spark.skipstone.store`` chooses it by.

    Raises
    ------
    PluginError
        When another store has that name.
    """
    with _lock:
        known = _stores.setdefault(name, store_type)
        if (known.__module__, known.__qualname__) != (store_type.__module__, store_type.__qualname__):
            msg = f"the metadata store name {name!r} is already taken by {known.__module__}.{known.__qualname__}"
            raise PluginError(msg)
        _stores[name] = store_type


def find_store(name: str) -> type[MetadataStore] | None:
    """Return the metadata store registered under a name, or ``None``."""
    return _stores.get(name)


def known_stores() -> tuple[str, ...]:
    """Name the metadata stores that are registered."""
    return tuple(sorted(_stores))


def store_settings() -> tuple[str, ...]:
    """Name the settings that registered stores look at, or what their names begin with."""
    return tuple(name for store in _stores.values() for name in store.settings)


def register_implication(name: str, implication: Implication) -> None:
    """Make known what some predicates imply; a later one of the same name replaces it."""
    with _lock:
        _implications[name] = implication


def implications() -> tuple[Implication, ...]:
    """Return all that is known of what predicates imply."""
    return tuple(_implications.values())


def register_inverse(key: str, inverse: Inverse) -> None:
    """State where a function's argument lies when its result lies in an interval, so that ranges of columns follow.

    Parameters
    ----------
    key
        The class of the function's Catalyst expression (``com.example.GeoHash``), or for a cast
        ``cast(timestamp as date)``.  Built-in functions are not replaced; a later entry of the same key is.
    inverse
        What is stated; soundness rests on it.
    """
    with _lock:
        _inverses[key] = inverse


def find_inverse(key: str) -> Inverse | None:
    """Return what a plug-in states of a function, or ``None``."""
    return _inverses.get(key)


def known_types() -> tuple[str, ...]:
    """Name the index types that are registered."""
    return tuple(sorted(_index_types))


def allow_plugins(modules: Iterable[str]) -> None:
    """Let settings name no other modules than these from now on: sessions of this process may be anyone's."""
    global _allowed  # noqa: PLW0603
    _allowed = set(modules)


def load_plugins(modules: Iterable[str] = ()) -> None:
    """Import the installed plug-ins and the modules that the ``plugins`` setting names, each once.

    Raises
    ------
    PluginError
        When one cannot be imported, or is not allowed; the message names it.
    """
    modules = tuple(modules)
    for module in modules:
        if _allowed is not None and module not in _allowed:
            msg = (
                f"spark.skipstone.plugins of this session names {module!r}: a server's companion imports only modules "
                "that the server's own settings name"
            )
            raise PluginError(msg)
    for entry in _installed():
        _load_once(f"entry point {entry.name} = {entry.value}", entry.load)
    for module in modules:
        _load_once(f"module {module}", lambda module=module: importlib.import_module(module))


def find_plugins() -> None:
    """Find the installed plug-ins without importing any, so that no query waits for it."""
    _installed()


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Find the installed plug-ins, once: it opens a file of every installed package, and queries wait for it."""
    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def _load_once(what: str, load: object) -> None:
    """Run one import unless it has succeeded before."""
    if what in _loaded:
        return
    try:
        load()  # type: ignore[operator]
    except Exception as error:
        msg = f"the plug-in {what} could not be loaded: {type(error).__name__}: {error}"
        raise PluginError(msg) from error
    _loaded.add(what)
