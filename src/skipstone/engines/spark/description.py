"""What the bridge says of a scan, typed: the one place that knows the names in its JSON (``RelationJson.scala``)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skipstone.indexing.environment import Environment
from skipstone.indexing.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DescribedColumn", "ScanDescription", "read_relation"]

_SKIPSTONE = "spark.skipstone."
_VARIANT = "variant"


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column that a scan gives: its type as text, and whether its values come from the path."""

    name: str
    type: str
    partition: bool


@dataclass(frozen=True, slots=True)
class ScanDescription:
    """What is read and how.

    ``settings`` are those of the session that scans look at besides the reading environment; ``data_schema`` and
    ``partition_schema`` are Spark's JSON.
    """

    relation: Relation
    columns: tuple[DescribedColumn, ...]
    settings: Mapping[str, str] = field(repr=False)  # credentials may be among these
    data_schema: str = field(repr=False)
    partition_schema: str = field(repr=False)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> ScanDescription:
        """Read the bridge's JSON."""
        columns = tuple(DescribedColumn(c["n"], c["t"], c["p"]) for c in said["columns"])
        return cls(read_relation(said), columns, said["conf"], said["data_schema"], said["partition_schema"])

    @property
    def has_variants(self) -> bool:
        """Whether the type of a column, those of the paths included, has a variant in it."""
        return any(_VARIANT in column.type for column in self.columns)

    @property
    def is_partitioned(self) -> bool:
        """Whether there are columns whose values come from the path."""
        return bool(json.loads(self.partition_schema)["fields"])


def read_relation(said: Mapping[str, Any]) -> Relation:
    """Read how a scan reads its files; the bridge says that much of a query's scans, too."""
    settings = said["conf"]
    return Relation(
        roots=tuple(said["roots"]),
        format=said["format"],
        options=said["options"],
        environments=tuple(Environment(said[name]) for name in ("environment", "running") if name in said),
        case_sensitive=settings.get("caseSensitive") == "true",
        skipstone={k.removeprefix(_SKIPSTONE): v for k, v in settings.items() if k.startswith(_SKIPSTONE)},
        schema_digest=said["schema_digest"],
        has_variants=said.get("variants", False),
        has_voids=said.get("voids", False),
        table=said.get("table"),
        table_location=said.get("table_location"),
        reads_as={c["n"]: c["d"] for c in said.get("columns", ()) if c.get("d")},
        schemas=(said["data_schema"], said["partition_schema"]) if "data_schema" in said else (),
    )
