"""The objects of a scan, as index jobs ask for them (``indexing.source.Source``): Spark's implementation."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skipstone.engines.spark.client import said_by
from skipstone.engines.spark.collecting import collect
from skipstone.engines.spark.columns import bind_indexes
from skipstone.engines.spark.functions import recorded_functions
from skipstone.engines.spark.preparation import ScanPreparation
from skipstone.engines.spark.progress import shown_progress
from skipstone.engines.spark.visible_metadata import refuse_metadata_among, refuse_visible_folder
from skipstone.errors import DatasetError
from skipstone.expressions.names import quote_parts
from skipstone.indexing.objects import DataObject
from skipstone.indexing.unsteady import refuse_unsteady_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from skipstone.engines.spark.client import Scan
    from skipstone.engines.spark.description import ScanDescription
    from skipstone.indexing.index import Index
    from skipstone.indexing.relation import Relation
    from skipstone.indexing.source import BoundIndex

__all__ = ["SparkSource"]

# Set for the session that an index job reads by, which is a clone of the user's and dies with the job.
READING = {
    "spark.skipstone.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Rows that were dropped while indexing would be missing from the metadata, and then from answers.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


class SparkSource:
    """A scan's objects, read with the session's settings as they are now, even if these change later.

    Parameters
    ----------
    scan
        The scan.
    """

    def __init__(self, scan: Scan) -> None:
        self.scan = scan.pinned(READING)

    @property
    def spark(self) -> SparkSession:
        """The user's session."""
        return self.scan.client.spark

    @cached_property
    def described(self) -> ScanDescription:
        """The bridge's description of the scan."""
        return self.scan.describe()

    @property
    def relation(self) -> Relation:
        """How the dataset is read."""
        return self.described.relation

    def relation_now(self) -> Relation:
        """Return how the dataset is read at this moment."""
        return self.scan.describe().relation

    @property
    def preparation(self) -> ScanPreparation:
        """What indexes may ask before they are built."""
        return ScanPreparation(self.scan)

    def refuse_visible_folder(self, folder: str | None) -> None:
        """Raise when the scan would read the files of a metadata folder."""
        refuse_visible_folder(self.scan.client, self.described, folder)

    def refuse_unsteady_rows(self) -> None:
        """Raise when what the scan's reader gives depends on more than the file: see ``unsteady``."""
        refuse_unsteady_rows(self.relation)

    def bind(self, indexes: Iterable[Index]) -> list[BoundIndex]:
        """Find the columns of indexes."""
        return bind_indexes(self.described, indexes)

    def list_objects(self, paths: Iterable[str] | None = None) -> list[DataObject]:
        """List all objects anew, or only those of some objects and folders, each once.

        A catalog may have two partitions with one folder; what the files hold is the same in both.

        Raises
        ------
        DatasetError
            When the file system refuses.
        """
        with _scratch() as file:
            try:
                self.scan.listing(paths, file)
            except Exception as error:
                msg = f"the dataset's objects cannot be listed: {said_by(error)}"
                raise DatasetError(msg) from error
            with file.open(encoding="utf-8") as lines:
                found = (DataObject(o["p"], o["l"], o["m"], o["e"]) for o in map(json.loads, lines))
                listed = list({o.path: o for o in found}.values())
        refuse_metadata_among(listed, self.relation.roots)
        return listed

    def changed(self, objects: Sequence[DataObject]) -> frozenset[str] | None:
        """Return the paths of those objects of the last listing that are not as they were; ``None``: list them anew.

        Of files on a local disk the file system is asked for length and time, as listings ask it, but no listing is
        made of the answers.  Whatever else it says of a file, that it is gone or may not be looked at, is a change.
        """
        if not all(o.path.startswith("file:") for o in objects):
            return None
        with _named([o.path for o in objects]) as file, _scratch() as out:
            try:
                told = self.scan.changed(file, out)
            except Exception as error:
                msg = f"the objects of {self.relation.root} cannot be looked at again: {said_by(error)}"
                raise DatasetError(msg) from error
            if not told:
                return None
            with out.open(encoding="utf-8") as lines:
                return frozenset(json.loads(line)["p"] for line in lines)

    def gone(self, paths: Sequence[str]) -> list[str]:
        """Return those of some paths that are in no file system any more."""
        with _named(paths) as file, _scratch() as out:
            try:
                self.scan.gone(file, out)
            except Exception as error:
                msg = f"the files of {self.relation.root} cannot be looked for: {said_by(error)}"
                raise DatasetError(msg) from error
            with out.open(encoding="utf-8") as lines:
                return [json.loads(line)["p"] for line in lines]

    def collect(self, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
        """Collect the metadata of objects of the last listing by the cheapest path that is sound."""
        return collect(self, objects, bound)

    def functions(self, bound: BoundIndex, when: Literal["collecting", "collected"]) -> dict[str, str]:
        """Return the identities of the users' functions whose results an index holds, by name."""
        index = bound.index
        computed = [e for e in index.inputs(bound.types) if e not in index.columns]
        aggregated = list((index.aggregates(bound.types) or {}).values())
        return recorded_functions(self.scan, index.name, (computed, aggregated), index.functions, when)

    def progress(self, objects: Sequence[DataObject], *, wanted: bool | None) -> AbstractContextManager[None]:
        """Show how many of these objects the running job is through with, while a block runs."""
        return shown_progress(self.spark, objects, wanted=wanted)

    def read(self, objects: Sequence[DataObject]) -> tuple[DataFrame, int]:
        """Return a DataFrame over objects of the last listing, and the length up to which one is read whole.

        The DataFrame has one more column, ``OBJECT_COLUMN``: the object's place in ``objects``.  It belongs to the
        scan's session, which is a clone of the user's, so that settings for this job touch no other query.
        """
        with _named([o.path for o in objects]) as file:
            return self.scan.read(file)

    @cached_property
    def flaw(self) -> str | None:
        """A predicate on the rows of ``read``: TRUE where what is read depends on the columns that are read with it.

        JSON and XML readers give the part of a broken record that they got hold of, which is more or less of it
        depending on whether the broken part was asked for.  XML's, and JSON's in variants, may even take another
        element for a column then, and show that a record is broken only if all columns are asked for.
        """
        column = self.scan.unreadable()
        if column is None:
            return None
        flaw = f"{quote_parts((column,))} IS NOT NULL"
        if self.relation.format == "xml" or self.described.has_variants:
            others = (c.name for c in self.described.columns if not c.partition and c.name != column)
            every = ", ".join(quote_parts((name,)) for name in others)
            flaw = f"{flaw} OR length(to_json(struct({every}))) < 0"  # never: it asks for all columns
        return flaw

    def footers(self, objects: Sequence[DataObject], columns: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
        """Yield what the Parquet footers of these objects say of some columns (see the bridge's ``Footers``)."""
        with _named([o.path for o in objects]) as file, _scratch() as out:
            self.scan.footers(file, columns, out)
            with out.open(encoding="utf-8") as lines:
                yield from map(json.loads, lines)


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a local file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="skipstone-") as folder:
        yield Path(folder) / "lines"


@contextmanager
def _named(paths: Sequence[str]) -> Iterator[Path]:
    """Write the paths of objects to a local file, a line each."""
    with _scratch() as file:
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps({'p': path})}\n" for path in paths)
        yield file
