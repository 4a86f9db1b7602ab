"""Evaluating clauses by Spark: the very same clauses, run where the metadata is read, when it exceeds the driver.

Each part is read as the Parquet file it is, only the columns that the clause requires; executors, which need not have
Skipstone or a plug-in's package, send back one bit per row.  The driver checks each part's footer first, and Spark the
page checksums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.engines.spark.classic_frames import expression, map_in_arrow
from skipstone.engines.spark.client import Client
from skipstone.engines.spark.shipping import dump_for_executors, load_on_executor, ship
from skipstone.errors import MetadataStoreError
from skipstone.querying.clause import walk_clause
from skipstone.stores.evaluation import BatchMetadata, FieldSource, might_match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from skipstone.querying.clause import Clause
    from skipstone.stores.parts.part import Part

__all__ = ["SparkPartEvaluator"]

_FILE = "_skipstone_file"
_ROW = "_skipstone_row"
_ROW_COUNT = "row_count"
_ANSWER = f"{_FILE} string, start bigint, rows bigint, kept binary"


class SparkPartEvaluator:
    """Evaluates parts on a session's executors.

    Parameters
    ----------
    spark
        The session.
    """

    by_spark = True

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(
        self, parts: Sequence[Part], clause: Clause, fields: Mapping[tuple[str, str], FieldSource]
    ) -> list[npt.NDArray[np.bool_]]:
        if not parts:
            return []
        wanted = dict.fromkeys([_ROW_COUNT, *(column for source in fields.values() for column in source.columns)])
        columns = [name for name in wanted if name in parts[0].column_names()]
        answers = {part.record.file: np.ones(part.record.rows, np.bool_) for part in parts}
        seen = dict.fromkeys(answers, 0)
        for file, start, rows, kept in self._run(columns, parts, clause, fields):
            if file not in answers or start + rows > len(answers[file]):
                _refuse()
            answers[file][start : start + rows] = np.unpackbits(np.frombuffer(kept, np.uint8), count=rows)
            seen[file] += rows
        if any(seen[part.record.file] != part.record.rows for part in parts):
            _refuse()
        return [answers[part.record.file] for part in parts]

    def _run(
        self,
        columns: Sequence[str],
        parts: Sequence[Part],
        clause: Clause,
        fields: Mapping[tuple[str, str], FieldSource],
    ) -> Iterator[tuple[str, int, int, bytes]]:
        """Run the clause over parts; gives runs of rows and their bits."""
        from pyspark.errors import PySparkException

        frame = Client(self._spark).parts([part.path for part in parts])
        chosen = frame.select(
            expression(frame, "_metadata.file_name").alias(_FILE),
            expression(frame, "_metadata.row_index").alias(_ROW),
            *(frame[f"`{name}`"] for name in columns),
        )
        ship(self._spark)
        payload = dump_for_executors((clause, dict(fields)), [index for index, _ in clause.requires], _types_in(clause))

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            shipped, sources = load_on_executor(payload)
            for batch in batches:
                yield from _answers(batch, shipped, sources)

        try:
            table = map_in_arrow(chosen, run, _ANSWER).toArrow()
        except PySparkException as error:
            msg = f"Spark could not evaluate the metadata in {parts[0].path.rsplit('/', 1)[0]}: {str(error)[:500]}"
            raise MetadataStoreError(msg) from error
        yield from zip(*(table.column(n).to_pylist() for n in range(4)), strict=True)


def _types_in(clause: Clause) -> set[type]:
    """Return the classes of a clause and of those that it joins."""
    return {type(part) for part in walk_clause(clause)}


def _answers(
    batch: pa.RecordBatch, clause: Clause, fields: Mapping[tuple[str, str], FieldSource]
) -> Iterator[pa.RecordBatch]:
    """Evaluate one batch and cut it where the file changes or rows are not consecutive."""
    if not batch.num_rows:
        return
    kept = might_match(clause, BatchMetadata(batch, fields))
    files = batch.column(0).dictionary_encode()
    codes = files.indices.to_numpy(zero_copy_only=False)
    rows = batch.column(1).to_numpy(zero_copy_only=False)
    cuts = np.flatnonzero((np.diff(rows) != 1) | (np.diff(codes) != 0)) + 1
    starts = np.concatenate([[0], cuts])
    ends = np.append(cuts, len(rows))
    found: list[list[Any]] = [
        [files.dictionary[int(codes[start])].as_py() for start in starts],
        [int(rows[start]) for start in starts],
        [int(end - start) for start, end in zip(starts, ends, strict=True)],
        [np.packbits(kept[start:end]).tobytes() for start, end in zip(starts, ends, strict=True)],
    ]
    types = (pa.string(), pa.int64(), pa.int64(), pa.binary())
    columns = [pa.array(values, kind) for values, kind in zip(found, types, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, names=[_FILE, "start", "rows", "kept"])


def _refuse() -> None:
    msg = "Spark did not give one answer per row of the metadata; everything is read"
    raise MetadataStoreError(msg)
