"""How a dataset was read when it was indexed, so that nobody has to say it twice: format, reader's options, schema."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skipstone.indexing.profiles import is_hidden, is_secret
from skipstone.indexing.records import ReaderRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.relation import Relation

__all__ = ["HowRead", "how_read", "newest_reader", "reader_of", "with_reader"]

# Formats whose files have their schema: what they hold tomorrow may be more than what they held when indexed.
_WITH_SCHEMA = frozenset({"parquet", "orc", "avro", "text", "binaryfile", "delta", "iceberg"})
_OF_THE_PATH = frozenset({"path", "paths"})
_OF_THE_CLIENT = "fs."


@dataclass(frozen=True)
class HowRead:
    """How to read a dataset as when it was indexed; ``hidden`` names options whose values are secrets, and not kept."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return what people call it.

        Examples
        --------
        >>> str(HowRead("csv", {"header": "true", "sep": ";"}))
        'csv, header=true, sep=;'
        """
        return ", ".join([self.format, *(f"{name}={value}" for name, value in sorted(self.options.items()))])


def reader_of(relation: Relation) -> ReaderRecord | None:
    """Return how to read a dataset again as this relation does; ``None`` for a table, which the catalog describes."""
    if relation.table is not None:
        return None
    options = {
        name.lower(): value
        for name, value in relation.options.items()
        if name.lower() not in _OF_THE_PATH and not name.lower().startswith(_OF_THE_CLIENT) and not is_secret(name)
    }
    return ReaderRecord(relation.format, options, "" if relation.format in _WITH_SCHEMA else _schema(relation.schemas))


def _schema(schemas: Sequence[str]) -> str:
    """Return one schema of the files' and the partitions' own; a name that both have is taken from the files'."""
    fields: dict[str, object] = {}
    for schema in schemas:
        for one in json.loads(schema)["fields"]:
            fields.setdefault(one["name"].lower(), one)
    return json.dumps({"type": "struct", "fields": list(fields.values())}) if fields else ""


def newest_reader(records: Sequence[IndexRecord]) -> ReaderRecord | None:
    """Return the reader that was recorded last."""
    recorded = [record for record in records if record.reader is not None]
    return max(recorded, key=lambda record: record.created).reader if recorded else None


def with_reader(records: tuple[IndexRecord, ...], reader: ReaderRecord | None) -> tuple[IndexRecord, ...]:
    """Return records of which the last keeps a reader, unless the newest is this one already.

    One with a key of its own keeps none: who may not know its options should not learn a schema from it.
    """
    if reader is None or newest_reader(records) == reader:
        return records
    last = max((n for n, record in enumerate(records) if record.key is None), default=None)
    return tuple(replace(r, reader=reader) if n == last else r for n, r in enumerate(records))


def how_read(records: Sequence[IndexRecord]) -> HowRead | None:
    """Return how a dataset was read when its newest index was made, or ``None`` when it has none.

    Metadata of a release that recorded no reader has the options that change values, and no schema.
    """
    if not records:
        return None
    profile = max(records, key=lambda record: record.created).profile
    hidden = tuple(sorted(name for name, value in profile.options.items() if is_hidden(value)))
    reader = newest_reader(records)
    if reader is None:
        told = {name: value for name, value in profile.options.items() if not is_hidden(value)}
        return HowRead(profile.format, told, "", hidden)
    return HowRead(reader.format, dict(reader.options), reader.schema, hidden)
