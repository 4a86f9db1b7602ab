"""The ``spark.skipstone.*`` settings: their defaults, and what they may be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skipstone.errors import SettingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "cache_folder", "get_setting", "own_settings"]


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _positive(text: str) -> int:
    if (number := int(text)) <= 0:
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


SETTINGS: Final[dict[str, tuple[str, Callable[[str], Any], str]]] = {
    "enabled": ("true", _flag, "true or false"),
    "location": ("", str.strip, "a folder, or nothing for beside the data"),
    "store": ("parquet", str.strip, "the name of a metadata store"),
    "plugins": ("", _names, "module names, separated by commas"),
    "cacheBytes": (str(1 << 30), _positive, "a whole number of bytes above 0"),
    "force": ("false", _flag, "true or false"),
    "sql.enabled": ("true", _flag, "true or false"),
    "verifyListing": ("false", _flag, "true or false"),
    "companion.enabled": ("false", _flag, "true or false"),
    "companion.python": ("", str.strip, "an interpreter, or nothing for the one that PySpark would take"),
    "companion.path": ("", str.strip, "folders, separated as in PYTHONPATH"),
    "companion.waitMs": ("10000", _whole, "a whole number of milliseconds"),
    "plannerTimeoutMs": ("30000", _positive, "a whole number of milliseconds above 0"),
}
"""Name after ``spark.skipstone.``: the default, what reads its text, and what is allowed, for people."""


_PREFIX: Final = "spark.skipstone."


def own_settings(spark: SparkSession) -> dict[str, str]:
    """Return all of a session's ``spark.skipstone.*`` settings by their names without the prefix."""
    return {k.removeprefix(_PREFIX): v for k, v in spark.conf.getAll.items() if k.startswith(_PREFIX)}


def get_setting(spark: SparkSession, name: str) -> Any:
    """Read one of the ``spark.skipstone.*`` settings.

    Parameters
    ----------
    spark : SparkSession
        The session whose setting it is.
    name : str
        The name without ``spark.skipstone.``: one of `SETTINGS`.

    Returns
    -------
    Any
        ``bool`` for ``enabled``, ``force``, ``sql.enabled`` and ``verifyListing``, ``str`` for ``location`` and
        ``store``, a tuple of names for ``plugins``, ``int`` for what ends in ``Ms``.

    Raises
    ------
    SettingError
        If the value makes no sense.
    """
    default, read, allowed = SETTINGS[name]
    text = spark.conf.get(f"spark.skipstone.{name}", default) or ""
    try:
        return read(text)
    except (KeyError, ValueError):
        raise SettingError(f"spark.skipstone.{name} is {text!r}, allowed is {allowed}.") from None


def cache_folder() -> Path:
    """Return the folder for what is made once on a machine, ``SKIPSTONE_CACHE`` or one of the user's."""
    chosen = os.environ.get("SKIPSTONE_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "skipstone"
