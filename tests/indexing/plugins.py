"""Index types as an author outside Skipstone would write them; Spark's workers do not have this module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.toolkit import quoted


@dataclass(frozen=True, slots=True)
class Lengths(MetadataType):
    longest: int
    rows: int

    @classmethod
    def fields(cls, inputs):
        return {"longest": pa.int32(), "rows": pa.int64(), "path": pa.string()}

    def merge(self, other):
        return Lengths(max(self.longest, other.longest), self.rows + other.rows)

    def finish(self, data_object):
        return {"longest": self.longest, "rows": self.rows, "path": data_object.path}


@dataclass(frozen=True)
class LongestIndex(Index):
    """The longest text of each object."""

    metadata_type = Lengths
    column: str

    def inputs(self, types):
        return (f"length({quoted(self.column)})",)

    def collect_metadata(self, rows):
        return Lengths(_longest(rows.column(0)), rows.num_rows)

    def filters(self):
        return ()


def _longest(lengths):
    return pc.max(lengths).as_py() or 0


@dataclass(frozen=True)
class RaisingIndex(LongestIndex):
    """Raises at the step that it is told."""

    step: str = "collect"

    def collect_metadata(self, rows):
        if self.step == "collect":
            msg = "line one\nthe last line"
            raise ValueError(msg)
        return Lengths("x" if self.step == "finish" else 0, 0)


@dataclass(frozen=True)
class TouchingIndex(LongestIndex):
    """Writes to a file of the dataset while that is being indexed."""

    file: str = ""

    def collect_metadata(self, rows):
        with Path(self.file).open("a") as file:
            file.write("one more row\n")
        return super().collect_metadata(rows)
