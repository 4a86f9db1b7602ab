"""How a scan reads its files: the bridge's description of a relation, and what of it changes the values that are read.

Metadata describes values *as they were read*.  The same CSV with another separator, null value or schema is other data,
so every index records its ``ReadProfile`` and serves only scans with the same one.  Everything counts as value-changing
unless it is known not to be.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skipstone.expressions.names import parse_column
from skipstone.indexing.records import ColumnRecord, ReadProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Relation", "ancestors", "changing_partitions", "column_difference", "profile_difference"]

# Options that choose files or only guide schema inference, whose outcome (the column's type) is compared by itself.
_HARMLESS_OPTIONS = frozenset(
    {
        "path",
        "paths",
        "basepath",
        "inferschema",
        "mergeschema",
        "pathglobfilter",
        "recursivefilelookup",
        "modifiedbefore",
        "modifiedafter",
        "ignorecorruptfiles",
        "ignoremissingfiles",
        "samplingratio",
        "compression",
        "serialization.format",
    }
)
# Formats whose columns are found by name alone, so that the rest of the schema does not matter to one column.
_BY_NAME = frozenset({"parquet", "json", "avro", "text"})
# Formats that store typed values: no setting of Spark's but their own changes them.  The others parse text.
_TYPED = frozenset({"parquet", "orc", "avro"})
# ORC converts instants with a time zone, the other typed formats store them as such.
_ZONE_FREE = frozenset({"parquet", "avro"})
# With it Spark reads the INT96 timestamps of other writers as wall-clock times of the session's zone.
_INT96_CONVERSION = "spark.sql.parquet.int96TimestampConversion"
# Settings that choose files or decide schemas, or that concern only the values in partitions' names.
_HARMLESS_SETTINGS = frozenset(
    {
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.files.ignoredPathSegmentRegex",
        "spark.sql.parquet.mergeSchema",
        "spark.sql.orc.mergeSchema",
        "spark.sql.timestampType",
    }
)
_PARTITION_SETTINGS = frozenset(
    {
        "sessionTimeZone",
        "spark.sql.sources.partitionColumnTypeInference.enabled",
        "spark.sql.sources.validatePartitionColumns",
    }
)
# Where the values of partition columns come from.  A path gives an object the same values for ever; a catalog may give
# the same unchanged object other values tomorrow, so metadata of those is recorded as such and never used.
PARTITION_VALUES = "partition values"
BY_PATH = "from the path"
BY_CATALOG = "from the catalog"
# Options whose values must not be readable in metadata or messages, by what Spark redacts and some more.
_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|(access|api|account)[._]?key|private|key[._]?(list|file)|\bsas\b",
    re.IGNORECASE,
)
_HIDDEN = "hidden:"
_FORMATS = ("parquet", "orc", "json", "csv", "avro", "xml", "text")


@dataclass(frozen=True)
class Relation:
    """One file scan, as the bridge describes it.

    ``settings`` holds Spark's own settings that change values for some format, by name; ``skipstone`` the
    ``spark.skipstone.*`` ones without that prefix.
    """

    roots: tuple[str, ...]
    format: str
    options: Mapping[str, str] = field(repr=False)  # credentials may be among these
    settings: Mapping[str, str]
    skipstone: Mapping[str, str] = field(repr=False)
    schema_digest: str
    table: str | None = None
    table_location: str | None = None
    reads_as: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Relation:
        """Read the bridge's JSON."""
        return cls(
            roots=tuple(described["roots"]),
            format=described["format"],
            options=described["options"],
            settings={k: v for k, v in described["conf"].items() if not k.startswith("spark.skipstone.")},
            skipstone={
                k.removeprefix("spark.skipstone."): v
                for k, v in described["conf"].items()
                if k.startswith("spark.skipstone.")
            },
            schema_digest=described["schema_digest"],
            table=described.get("table"),
            table_location=described.get("table_location"),
            reads_as={c["n"]: c["d"] for c in described.get("columns", ()) if c.get("d")},
        )

    def profile(self, columns: Iterable[ColumnRecord]) -> ReadProfile:
        """Give what must be equal for metadata of these columns to describe what this scan reads."""
        partitioned = any(column.partition for column in columns)
        settings = {k: v for k, v in self.settings.items() if self._changes_values(k, partitioned=partitioned)}
        if partitioned:
            settings[PARTITION_VALUES] = BY_PATH if self.table is None else BY_CATALOG
        return ReadProfile(
            format=self.format,
            options={
                k.lower(): _hidden(k.lower(), v) if _SECRET.search(k) else v
                for k, v in self.options.items()
                if k.lower() not in _HARMLESS_OPTIONS and not _is_credential(k)
            },
            settings=settings,
            schema="" if self.format in _BY_NAME else self.schema_digest,
        )

    def column(self, record: ColumnRecord) -> ColumnRecord:
        """Complete a column with what the declared schema says of its values."""
        return replace(record, reads_as=self.reads_as.get(parse_column(record.name)[0], ""))

    def _changes_values(self, setting: str, *, partitioned: bool) -> bool:
        """Say whether a setting of Spark's can change what this format's reader gives."""
        if setting in _HARMLESS_SETTINGS:
            return False
        if partitioned and setting in _PARTITION_SETTINGS:
            return True
        named = [part for part in setting.split(".") if part in _FORMATS]
        if named:
            return self.format in named
        if setting == "caseSensitive":
            return True
        if setting == "sessionTimeZone":
            return self.format not in _ZONE_FREE or self.settings.get(_INT96_CONVERSION) == "true"
        return self.format not in _TYPED and setting not in _PARTITION_SETTINGS

    def candidate_roots(self) -> Iterator[str]:
        """Give the folders that may be the root of an indexed dataset which this scan reads, nearest first."""
        seen: set[str] = set()
        starts = [*self.roots, *([self.table_location] if self.table_location else [])]
        for root in starts:
            for folder in ancestors(root):
                if folder in seen:
                    break
                seen.add(folder)
                yield folder


def ancestors(path: str) -> Iterator[str]:
    """Give a Hadoop path and the folders above it, up to and with the root of its file system.

    Examples
    --------
    >>> list(ancestors("s3a://lake/logs/day=1"))
    ['s3a://lake/logs/day=1', 's3a://lake/logs', 's3a://lake/']
    >>> list(ancestors("file:/data/x"))
    ['file:/data/x', 'file:/data', 'file:/']
    """
    scheme, separator, rest = path.partition(":")
    if not separator or "/" in scheme:
        scheme, rest = "", path
    prefix = f"{scheme}:" if scheme else ""
    if rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
        prefix, rest = f"{prefix}//{authority}", f"/{rest}"
    rest = rest.rstrip("/")
    while rest:
        yield prefix + rest
        rest = rest.rpartition("/")[0]
    yield f"{prefix}/"


def profile_difference(indexed: ReadProfile, here: ReadProfile) -> str | None:
    """Say in words why metadata read in one way does not serve another, or ``None`` when it does."""
    if indexed.format != here.format:
        return f"read as {here.format} here, as {indexed.format} when indexed"
    for what, then, now in (("option", indexed.options, here.options), ("setting", indexed.settings, here.settings)):
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                return f"{what} {name} is {_said(now.get(name))} here, was {_said(then.get(name))} when indexed"
    if indexed.schema != here.schema:
        return f"read with another schema than when indexed, and {here.format} finds columns by position"
    return None


def changing_partitions(indexed: ReadProfile) -> str | None:
    """Say why metadata of a partition column is not used when an object's value is the catalog's to change."""
    if indexed.settings.get(PARTITION_VALUES) == BY_CATALOG:
        return "its partition values come from the catalog, which may change them; Spark prunes by them itself"
    return None


def _is_credential(option: str) -> bool:
    """Say whether an option only lets a file system's client in: that changes no value, and each user has another."""
    return option.lower().startswith("fs.") and _SECRET.search(option) is not None


def _said(value: str | None) -> str:
    """Spell an option's value; of a secret one only whether it is the same."""
    if value is not None and value.startswith(_HIDDEN):
        return "another secret"
    return "not set" if value is None else repr(value)


@lru_cache(maxsize=1_000)
def _hidden(name: str, value: str) -> str:
    """Give what tells two secrets apart and neither of them: a hash that is slow to guess by."""
    made = hashlib.scrypt(
        value.encode("utf-8", "surrogatepass"), salt=f"skipstone {name}".encode(), n=1 << 14, r=8, p=1, dklen=16
    )
    return f"{_HIDDEN}{made.hex()}"


def column_difference(indexed: Sequence[ColumnRecord], here: Mapping[str, ColumnRecord]) -> str | None:
    """Say which indexed column is another one in this scan, or ``None`` when all are the same."""
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
