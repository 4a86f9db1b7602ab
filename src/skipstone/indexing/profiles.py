"""Profiles of reading held against each other: whether metadata that was read in one way describes another read.

The values of secrets are in no profile: a hash stands for each, which tells two of them apart and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from skipstone.indexing.environment import JVM_ZONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skipstone.indexing.records import ColumnRecord, ReadProfile

__all__ = [
    "BY_CATALOG",
    "BY_PATH",
    "BY_TABLE",
    "PARTITION_VALUES",
    "changing_partitions",
    "column_difference",
    "depends_on_zone_of_old",
    "is_credential",
    "is_hidden",
    "is_secret",
    "profile_difference",
    "without_jvm_zone",
    "without_secret",
]

# Where the values of partition columns come from.  A path gives an object the same values for ever; a catalog may give
# the same unchanged object other values tomorrow, so metadata of those is recorded as such and never used.
PARTITION_VALUES = "partition values"
BY_PATH = "from the path"
BY_CATALOG = "from the catalog"
BY_TABLE = "from the table"
# Options whose values must not be readable in metadata or messages, by what Spark redacts and some more.
_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|(access|api|account)[._]?key|private|key[._]?(list|file)|\bsas\b",
    re.IGNORECASE,
)
_HIDDEN = "hidden:"
# Formats whose readers look at the JVM's zone only for timestamps before 1900 in files of old writers.
_ZONE_OF_OLD = frozenset({"parquet", "avro", "delta"})


def profile_difference(indexed: ReadProfile, here: ReadProfile) -> str | None:
    """Return in words why metadata read in one way does not serve another, or ``None`` when it does."""
    if indexed == here:
        return None
    if indexed.format != here.format:
        return f"read as {here.format} here, as {indexed.format} when indexed"
    for what, then, now in (("option", indexed.options, here.options), ("setting", indexed.settings, here.settings)):
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                return f"{what} {name} is {_said(now.get(name))} here, was {_said(then.get(name))} when indexed"
    if indexed.schema != here.schema:
        return f"read with another schema than when indexed, and columns are found by position in {here.format}"
    return None


def depends_on_zone_of_old(file_format: str) -> bool:
    """Whether a format's readers look at the JVM's zone only for timestamps before 1900."""
    return file_format in _ZONE_OF_OLD


def without_jvm_zone(profile: ReadProfile) -> ReadProfile:
    """Return a profile without the JVM's zone."""
    return replace(profile, settings={name: value for name, value in profile.settings.items() if name != JVM_ZONE})


def changing_partitions(indexed: ReadProfile, columns: Iterable[ColumnRecord]) -> str | None:
    """Return why metadata of a partition column is not used when nothing says which value an object has in a query."""
    if any(column.partition and "timestamp" in column.type.lower() for column in columns):
        return (
            "timestamps in the names of partitions are read by the zone of the moment when the DataFrame was made, "
            "which is not known later; Spark prunes by them itself"
        )
    if indexed.settings.get(PARTITION_VALUES) == BY_CATALOG:
        return "its partition values come from the catalog, which may change them; Spark prunes by them itself"
    return None


def column_difference(indexed: Sequence[ColumnRecord], here: Mapping[str, ColumnRecord]) -> str | None:
    """Return which indexed column is another one in this scan, or ``None`` when all are the same."""
    for column in indexed:
        now = here.get(column.name)
        if now is not None and now != column:
            if now.partition != column.partition:
                kinds = {True: "a partition column", False: "a column of the files"}
                return f"{column.name} is {kinds[now.partition]} here, was {kinds[column.partition]} when indexed"
            if now.type != column.type:
                return f"{column.name} is {now.type} here, was {column.type} when indexed"
            return f"{column.name} is declared with another default or field id than when indexed"
    return None


def is_hidden(value: str) -> bool:
    """Whether a profile keeps the hash of a secret in place of this value."""
    return value.startswith(_HIDDEN)


def is_credential(option: str) -> bool:
    """Whether an option only lets a file system's client in: that changes no value, and each user has another."""
    return option.lower().startswith("fs.") and is_secret(option)


def without_secret(name: str, value: str) -> str:
    """Return an option's or setting's value; for a secret, only a hash that differs between secrets."""
    return _hidden(name, value) if is_secret(name) else value


@lru_cache(maxsize=10_000)
def is_secret(name: str) -> bool:
    """Whether the name of an option or setting says that its value is a secret."""
    return _SECRET.search(name) is not None


def _said(value: str | None) -> str:
    """Spell an option's value; for a secret, only whether it is the same."""
    if value is not None and is_hidden(value):
        return "another secret"
    return "not set" if value is None else repr(value)


@lru_cache(maxsize=1_000)
def _hidden(name: str, value: str) -> str:
    """Return a hash that differs between two secrets and is slow to guess them by."""
    made = hashlib.scrypt(
        value.encode("utf-8", "surrogatepass"), salt=f"skipstone {name}".encode(), n=1 << 14, r=8, p=1, dklen=16
    )
    return f"{_HIDDEN}{made.hex()}"
