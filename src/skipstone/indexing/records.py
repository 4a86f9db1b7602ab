"""What is recorded of an index's columns and of how they were read, so that a query can be held against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ColumnRecord", "ReadProfile"]


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
