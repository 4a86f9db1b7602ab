"""The ``spark.skipstone.*`` settings: their defaults, and what they may be."""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skipstone.errors import SettingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SETTINGS",
    "Complaint",
    "cache_folder",
    "complain_once",
    "complaints",
    "get_setting",
    "own_settings",
    "read_bytes",
    "read_milliseconds",
]

_LOG = logging.getLogger("skipstone")
_AMOUNT = re.compile(r"(\d+)\s*([a-z]*)")
_BYTES = {unit + b: 1024**power for power, unit in enumerate("kmgtp", 1) for b in ("", "b")} | {"": 1, "b": 1}
_MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _amount(text: str, units: Mapping[str, int]) -> int:
    match = _AMOUNT.fullmatch(text.strip().lower())
    if match is None or match[2] not in units:
        raise ValueError(text)
    return int(match[1]) * units[match[2]]


def read_bytes(text: str) -> int:
    """Read a number of bytes above 0 as Spark writes it: ``1g`` is ``1073741824``.

    Raises
    ------
    ValueError
        If it is none.
    """
    if (number := _amount(text, _BYTES)) <= 0:
        raise ValueError(text)
    return number


def read_milliseconds(text: str) -> int:
    """Read a time in milliseconds as Spark writes it: ``30s`` is ``30000``.

    Raises
    ------
    ValueError
        If it is none.
    """
    return _amount(text, _MILLISECONDS)


def _milliseconds_above_zero(text: str) -> int:
    if (number := read_milliseconds(text)) <= 0:
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    if not 0 <= (number := float(text)) <= 1:
        raise ValueError(text)
    return number


def _count(text: str) -> int:
    if not 0 < (number := int(text)) < 2**31:
        raise ValueError(text)
    return number


def _action(text: str) -> str:
    return {name: name for name in ("log", "disable", "raise")}[text.strip().lower()]


SETTINGS: Final[dict[str, tuple[str, Callable[[str], Any], str]]] = {
    "enabled": ("true", _flag, "true or false"),
    "location": ("", str.strip, "a folder, or nothing for beside the data"),
    "store": ("parquet", str.strip, "the name of a metadata store"),
    "plugins": ("", _names, "module names, separated by commas"),
    "cacheBytes": ("1g", read_bytes, "a number of bytes above 0, such as 512m or 1g"),
    "force": ("false", _flag, "true or false"),
    "aggregates": ("true", _flag, "true or false"),
    "joins": ("true", _flag, "true or false"),
    "topk": ("true", _flag, "true or false"),
    "audit": ("0", _share, "a share of the scans, from 0 to 1, such as 0.01"),
    "audit.action": ("disable", _action, "log, disable or raise"),
    "audit.objects": ("4", _count, "a number of objects above 0"),
    "audit.bytes": ("64m", read_bytes, "a number of bytes above 0, such as 64m"),
    "audit.timeMs": (
        "30s",
        _milliseconds_above_zero,
        "a time above 0, such as 10s; a number alone is milliseconds",
    ),
    "sql.enabled": ("true", _flag, "true or false"),
    "verifyListing": ("false", _flag, "true or false"),
    "companion.enabled": ("false", _flag, "true or false"),
    "companion.python": ("", str.strip, "an interpreter, or nothing for the one that PySpark would take"),
    "companion.path": ("", str.strip, "folders, separated as in PYTHONPATH"),
    "companion.waitMs": ("10s", read_milliseconds, "a time, such as 500ms or 10s; a number alone is milliseconds"),
    "plannerTimeoutMs": (
        "30s",
        _milliseconds_above_zero,
        "a time above 0, such as 500ms or 30s; a number alone is milliseconds",
    ),
}
"""Name after ``spark.skipstone.``: the default, what reads its text, and what is allowed, for people."""


_PREFIX: Final = "spark.skipstone."
_OF_OTHERS: Final = ("kms.", "elasticsearch.", "function.", "choice", "companion.delayMs")
"""Begin the names of settings that are not in the table: of stores, of keys, of functions, and for own use."""

Complaint = tuple[str, str]
"""What is wrong with a setting, and what to do."""


def complaints(settings: Mapping[str, str], others: Iterable[str] = ()) -> Iterator[Complaint]:
    """Look for settings that are not there, and for values that make no sense.

    Parameters
    ----------
    settings
        By their names without ``spark.skipstone.``
    others
        What else names of settings may begin with: those of a plug-in's store.
    """
    for name, value in sorted(settings.items()):
        if name in SETTINGS:
            _, read, allowed = SETTINGS[name]
            try:
                read(value)
            except (KeyError, ValueError):
                yield f"{_PREFIX}{name} is {value!r}", f"allowed is {allowed}"
        elif not name.startswith((*_OF_OTHERS, *others)):
            close = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = f"did you mean {_PREFIX}{close[0]}?" if close else "take it out; README.md has the list of settings"
            yield f"there is no setting {_PREFIX}{name}", hint


_complained: set[object] = set()


def complain_once(settings: Mapping[str, str], others: Iterable[str] = ()) -> None:
    """Write to the log what is wrong with settings, each complaint once in a process."""
    state = frozenset(settings.items())
    if state in _complained:
        return
    _complained.add(state)
    for complaint in complaints(settings, others):
        if complaint not in _complained:
            _complained.add(complaint)
            _LOG.warning("%s: %s", *complaint)


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
        ``bool`` for what is on or off (``enabled``, ``joins``, …), ``str`` for ``location`` and ``store``, a tuple of
        names for ``plugins``, ``int`` for what ends in ``Ms``.

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
