"""What is recorded of an index, of its columns and of how they were read, so that a query can be held against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

__all__ = [
    "Change",
    "ColumnRecord",
    "FieldColumn",
    "IndexRecord",
    "ReadProfile",
    "ReaderRecord",
    "field_column",
    "shown",
    "split_field_column",
]

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ColumnRecord:
    """A column as it was when it was indexed: canonical name, Spark type, and whether it comes from the path.

    ``reads_as`` is what else of the declared schema decides the values: the default that a table declares for files
    without the column, or the field id by which Parquet's reader finds it.
    """

    name: str
    type: str
    partition: bool = False
    reads_as: str = ""


@dataclass(frozen=True, slots=True)
class ReadProfile:
    """How the files were read when they were indexed: everything that changes the values a reader sees.

    ``schema`` is the digest of the whole schema for formats whose columns go by position, else empty.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""


@dataclass(frozen=True, slots=True)
class ReaderRecord:
    """How to read the dataset again as an index job read it: format, options, and schema as Spark's JSON.

    Unlike a ``ReadProfile`` it decides nothing: it spares people to say twice what they said when they made an index.
    Secrets are not among the options; there is no schema for formats whose files have one.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """What the manifest keeps of one index.

    ``id`` is unique among all indexes that the dataset ever had: it names the index's columns in the parts, so that an
    index dropped and made again never meets its old metadata.  ``fields`` maps a stored field to its Arrow type,
    spelled as ``str(type)``.  ``functions`` maps the names of the users' functions whose results the index holds to
    what tells them from others of that name (see ``functions.identity``).  ``sealed`` is what a store that encrypts
    keeps of an index with a ``key`` in place of its options and functions; where it could not be opened, those are
    empty, and ``MetadataStore.refusal`` says why.  ``lookups`` is that of the index's ``MetadataType``.
    ``reader`` is kept by one of the indexes that were read alike: a schema of thousands of columns is written once.
    """

    id: str
    name: str
    type_name: str
    options: Mapping[str, Any]
    columns: tuple[ColumnRecord, ...]
    profile: ReadProfile
    fields: Mapping[str, str]
    key: str | None = None
    created: str = ""
    refreshed: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    sealed: str = ""
    lookups: Mapping[str, str] = field(default_factory=dict)
    reader: ReaderRecord | None = None


@dataclass(frozen=True)
class Change:
    """What one commit does.

    Parameters
    ----------
    indexes
        The dataset's indexes after the commit.
    added
        Objects newly collected, or ``None``: columns ``path`` (string), ``digest`` (16 bytes), ``length``, ``modified``
        (int64), ``etag`` (string), ``row_count`` (int64), ``trusted`` (bool), and ``field_column(id, field)`` for the
        fields of those indexes that were collected.  A column ``field_column(id, "")`` (bool) says which rows an index
        covers, all when there is none; where it is false the index's fields are null.  A row replaces what is known of
        the same object in another state
        (other length, time or e-tag); in the same state it adds to it.
    removed
        Paths of objects that are gone.
    """

    indexes: tuple[IndexRecord, ...]
    added: pa.Table | None = None
    removed: tuple[str, ...] = ()


class FieldColumn(NamedTuple):
    """What a column of metadata holds: a field of an index or, without a field's name, which rows the index covers."""

    index_id: str
    name: str


def field_column(index_id: str, name: str) -> str:
    """Name the column of metadata that holds one field of one index."""
    return f"{index_id}:{name}"


def split_field_column(column: str) -> FieldColumn | None:
    """Return the index and the field whose values a column of metadata holds; ``None`` for the objects' own columns.

    Examples
    --------
    >>> split_field_column(field_column("3f2a", "max")), split_field_column("path")
    (FieldColumn(index_id='3f2a', name='max'), None)
    """
    index_id, colon, name = column.partition(":")
    return FieldColumn(index_id, name) if colon else None


def shown(identity: str) -> str:
    """Return the recorded identity of a function, cut for a sentence."""
    return identity if len(identity) <= _MOST_SHOWN else f"{identity[:_MOST_SHOWN]}…"
