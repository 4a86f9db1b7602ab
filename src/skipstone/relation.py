"""How a scan reads its files: the bridge's description of a relation, and what of it changes the values that are read.

Metadata describes values *as they were read*.  The same CSV with another separator, null value or schema is other data,
so every index records its ``ReadProfile`` and serves only scans with the same one.  Everything counts as value-changing
unless it is known not to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.stores.metadata_store import ColumnRecord, ReadProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Relation", "ancestors", "profile_difference"]

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
# Formats that store instants as such; the others parse or convert them with the session's time zone.
_ZONE_FREE = frozenset({"parquet", "avro"})


@dataclass(frozen=True)
class Relation:
    """One file scan, as the bridge describes it.

    ``settings`` holds Spark's own settings that change values for some format, by name; ``skipstone`` the
    ``spark.skipstone.*`` ones without that prefix.
    """

    roots: tuple[str, ...]
    format: str
    options: Mapping[str, str]
    settings: Mapping[str, str]
    skipstone: Mapping[str, str]
    schema_digest: str
    table: str | None = None
    table_location: str | None = None
    schema: Mapping[str, Any] | None = None
    partition_schema: Mapping[str, Any] | None = None

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
            schema=described.get("dataSchema"),
            partition_schema=described.get("partitionSchema"),
        )

    def profile(self, columns: Iterable[ColumnRecord]) -> ReadProfile:
        """Give what must be equal for metadata of these columns to describe what this scan reads."""
        zoned = self.format not in _ZONE_FREE or any(c.partition for c in columns)
        settings = {
            name: value
            for name, value in self.settings.items()
            if (zoned or name != "sessionTimeZone") and self._concerns_format(name)
        }
        return ReadProfile(
            format=self.format,
            options={k.lower(): v for k, v in self.options.items() if k.lower() not in _HARMLESS_OPTIONS},
            settings=settings,
            schema="" if self.format in _BY_NAME else self.schema_digest,
        )

    def _concerns_format(self, setting: str) -> bool:
        """Say whether a setting can change what this format's reader gives; one that names another format cannot."""
        named = [f for f in ("parquet", "orc", "json", "csv", "avro", "xml", "text") if f".{f}." in setting]
        return not named or self.format in named

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
    """Say in words what differs between two ways of reading, or ``None`` when nothing does."""
    if indexed.format != here.format:
        return f"read as {here.format} here, as {indexed.format} when indexed"
    for what, then, now in (("option", indexed.options, here.options), ("setting", indexed.settings, here.settings)):
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                return f"{what} {name} is {_said(now.get(name))} here, was {_said(then.get(name))} when indexed"
    if indexed.schema != here.schema:
        return f"read with another schema than when indexed, and {here.format} finds columns by position"
    return None


def _said(value: str | None) -> str:
    """Spell an option's value."""
    return "not set" if value is None else repr(value)


def column_difference(indexed: Sequence[ColumnRecord], here: Mapping[str, ColumnRecord]) -> str | None:
    """Say which indexed column is another one in this scan, or ``None`` when all are the same."""
    for column in indexed:
        now = here.get(column.name)
        if now is not None and now != column:
            if now.partition != column.partition:
                kinds = {True: "a partition column", False: "a column of the files"}
                return f"{column.name} is {kinds[now.partition]} here, was {kinds[column.partition]} when indexed"
            return f"{column.name} is {now.type} here, was {column.type} when indexed"
    return None
