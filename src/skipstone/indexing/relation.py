"""How a scan reads its files: a relation as an engine describes it, and what of it changes the values that are read.

Metadata describes values *as they were read*.  The same CSV with another separator, null value or schema is other data,
so every index records its ``ReadProfile`` and serves only scans with the same one.  Every option counts as
value-changing unless it is known not to be; of the settings of Spark, Hadoop and the JVM the engine says which count
(``environment``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skipstone.errors import DatasetError
from skipstone.expressions.names import parse_column
from skipstone.indexing.environment import VALUES, Environment
from skipstone.indexing.profiles import BY_CATALOG, BY_PATH, BY_TABLE, PARTITION_VALUES, is_credential, without_secret
from skipstone.indexing.records import ColumnRecord, ReadProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Relation", "ancestors"]

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
_INFERRING = "inferschema"
# Formats whose columns are found by name alone, so that the rest of the schema does not matter to one column.
_BY_NAME = frozenset({"parquet", "json", "avro", "text", "delta", "iceberg"})
# Table formats: a snapshot names the objects, which are never written twice, and their columns and partition values.
_TABLES = frozenset({"delta", "iceberg"})
_BY_POSITION = {"positionalfieldmatching": "true"}  # Avro's, which then are not
# Options that name a file elsewhere, by whose contents values are made.
_OUTSIDE_FILES = frozenset({"avroschemaurl", "rowvalidationxsdpath"})


@dataclass(frozen=True)
class Relation:
    """One file scan, as the engine describes it.

    ``environments`` has the reading environment of the session that the files belong to, and that of the session which
    runs the query where it is another one; readers look at both.  ``skipstone`` holds the ``spark.skipstone.*``
    settings without that prefix.  ``schemas`` has the schemas of the files and of the partitions as Spark's JSON, where
    the engine describes all of the scan.
    """

    roots: tuple[str, ...]
    format: str
    options: Mapping[str, str] = field(repr=False)  # credentials may be among these
    environments: tuple[Environment, ...] = field(repr=False)
    case_sensitive: bool
    skipstone: Mapping[str, str] = field(repr=False)
    schema_digest: str
    has_variants: bool = False
    has_voids: bool = False
    table: str | None = None
    table_location: str | None = None
    reads_as: Mapping[str, str] = field(default_factory=dict)
    schemas: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_table(self) -> bool:
        """Whether a table format's snapshot names the objects, which are then never written twice."""
        return self.format in _TABLES

    @property
    def root(self) -> str:
        """The one folder under which the objects lie, and beside which their metadata is kept."""
        roots = (self.table_location,) if self.table_location else self.roots
        if len(roots) != 1:
            msg = (
                f"a dataset has one root folder, this DataFrame reads {len(roots)} paths; index the folder above them "
                "(queries of some of its files or folders use the same metadata)"
            )
            raise DatasetError(msg)
        return roots[0]

    @property
    def reader_settings(self) -> Mapping[str, str]:
        """The settings that change values for every index, of the session that the files belong to."""
        return self.environments[0].groups.get(VALUES, {}) if self.environments else {}

    @property
    def folded_options(self) -> Mapping[str, str]:
        """The options by their names in lower case: Spark's readers do not tell cases apart."""
        return {name.lower(): value for name, value in self.options.items()}

    def profiles(self, columns: Iterable[ColumnRecord], groups: Iterable[str]) -> tuple[ReadProfile, ...]:
        """Return what must be equal for metadata of these columns to describe what this scan reads.

        One for each session whose settings the readers look at; all must be equal.
        """
        here = self.environments or (Environment(),)
        return tuple(self._profile(environment, tuple(columns), tuple(groups)) for environment in here)

    def _profile(
        self, environment: Environment, columns: tuple[ColumnRecord, ...], groups: tuple[str, ...]
    ) -> ReadProfile:
        """Return the profile by one session's settings."""
        settings = {k: without_secret(k, v) for k, v in environment.settings(groups).items()}
        if any(column.partition for column in columns):
            settings[PARTITION_VALUES] = self._partition_values()
        return ReadProfile(
            format=self.format,
            options={
                k.lower(): without_secret(k.lower(), v)
                for k, v in self.options.items()
                if self._counts(k.lower()) and not is_credential(k)
            },
            settings=settings,
            schema="" if self._finds_by_name() else self.schema_digest,
        )

    def _partition_values(self) -> str:
        """Return where values of partition columns come from; a table format records them for each object for ever."""
        if self.is_table:
            return BY_TABLE
        return BY_PATH if self.table is None else BY_CATALOG

    def _counts(self, option: str) -> bool:
        """Whether an option may change values; in variants, what is inferred of a record is a value."""
        if option == _INFERRING and (self.has_variants or self.format == "xml"):
            return True
        return option not in _HARMLESS_OPTIONS

    def _finds_by_name(self) -> bool:
        """Whether a column is found by its name, so that the rest of the schema does not matter to it.

        A variant that JSON's reader cannot read, and anything that it reads as a void, may leave it inside of that,
        where it takes what it finds for columns.
        """
        moved = (k for k, v in self.options.items() if _BY_POSITION.get(k.lower()) == v.strip().lower())
        inside = self.format == "json" and (self.has_variants or self.has_voids)
        return self.format in _BY_NAME and not any(moved) and not inside

    def outside_file(self) -> str | None:
        """Return the option that names a file elsewhere by whose contents values are made, or ``None``."""
        return next((k for k in self.options if k.lower() in _OUTSIDE_FILES), None)

    def column(self, record: ColumnRecord) -> ColumnRecord:
        """Complete a column with what the declared schema says of its values."""
        return replace(record, reads_as=self.reads_as.get(parse_column(record.name)[0], ""))

    def candidate_roots(self) -> Iterator[str]:
        """Yield the folders that may be the root of an indexed dataset which this scan reads, nearest first."""
        seen: set[str] = set()
        starts = [*self.roots, *([self.table_location] if self.table_location else [])]
        for root in starts:
            for folder in ancestors(root):
                if folder in seen:
                    break
                seen.add(folder)
                yield folder


def ancestors(path: str) -> Iterator[str]:
    """Yield a Hadoop path and the folders above it, up to and with the root of its file system.

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
