"""The objects of a scan through the bridge: list them, read some of them, look at their footers.

Lists travel in local files: a long string from the JVM to Python is slow, and a list of a million objects is long.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.visible_metadata import refuse_metadata_among
from skipstone.errors import DatasetError
from skipstone.indexing.objects import DataObject
from skipstone.indexing.unsteady import refuse_unsteady_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["OBJECT_COLUMN", "ObjectSource", "pinned"]

OBJECT_COLUMN = "__skipstone_object"

# Set for the session that an index job reads by, which is a clone of the user's and dies with the job.
READING = {
    "spark.skipstone.enabled": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Rows that were dropped while indexing would be missing from the metadata, and then from answers.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def pinned(spark: SparkSession, scan: Any) -> Any:
    """Return the scan that a job reads by: with the session's settings as they are now, whatever becomes of them."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.skipstone.Bridge.pinned(scan, READING)


class ObjectSource:
    """A scan's objects: what the job reads from."""

    def __init__(self, spark: SparkSession, scan: Any) -> None:
        self.spark = spark
        self._scan = scan if scan.isPinned() else pinned(spark, scan)
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._bridge: Any = jvm.org.apache.spark.sql.skipstone.Bridge

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The bridge's description of the scan."""
        return json.loads(self._scan.describe())

    def refuse_unsteady_rows(self) -> None:
        """Raise when what the scan's reader gives depends on more than the file: see ``unsteady``."""
        refuse_unsteady_rows(self.described)

    def list_objects(self, paths: Iterable[str] | None = None) -> list[DataObject]:
        """List all objects anew, or only those of some objects and folders, each once.

        A catalog may have two partitions with one folder; what the files hold is the same in both.

        Raises
        ------
        DatasetError
            When the file system refuses.
        """
        from py4j.protocol import Py4JJavaError

        with _scratch() as file:
            try:
                if paths is None:
                    self._bridge.listing(self._scan, str(file))
                else:
                    self._bridge.listing(self._scan, self._java_list(paths), str(file))
            except Py4JJavaError as error:
                msg = f"the dataset's objects cannot be listed: {error.java_exception.getMessage()}"
                raise DatasetError(msg) from error
            except Exception as error:
                msg = f"the dataset's objects cannot be listed: {error}"
                raise DatasetError(msg) from error
            with file.open(encoding="utf-8") as lines:
                found = (DataObject(o["p"], o["l"], o["m"], o["e"]) for o in map(json.loads, lines))
                listed = list({o.path: o for o in found}.values())
        refuse_metadata_among(listed, self.described["roots"])
        return listed

    def read(self, objects: Sequence[DataObject]) -> tuple[DataFrame, int]:
        """Give a DataFrame over these objects of the last listing, and the length up to which one is read whole.

        The DataFrame has one more column, ``OBJECT_COLUMN``: the object's place in ``objects``.  It belongs to the
        scan's session, which is a clone of the user's, so that settings for this job touch no other query.
        """
        from pyspark.sql import DataFrame, SparkSession

        with _named(objects) as file:
            made = self._bridge.scanObjects(self._scan, str(file))
            whole_up_to = int(self._bridge.maxSplitBytes(self._scan, str(file)))
        return DataFrame(made, SparkSession(self.spark.sparkContext, made.sparkSession())), whole_up_to

    @cached_property
    def flaw(self) -> str | None:
        """A predicate on the rows of ``read``: TRUE where what is read depends on the columns that are read with it.

        JSON and XML readers give the part of a broken record that they got hold of, which is more or less of it
        depending on whether the broken part was asked for.  XML's, and JSON's in variants, may even take another
        element for a column then, and show that a record is broken only if all columns are asked for.
        """
        column = self._bridge.unreadable(self._scan)
        if column is None:
            return None
        flaw = f"{_quoted(column)} IS NOT NULL"
        if self.described["format"] == "xml" or any("variant" in c["t"] for c in self.described["columns"]):
            every = ", ".join(_quoted(c["n"]) for c in self.described["columns"] if not c["p"] and c["n"] != column)
            flaw = f"{flaw} OR length(to_json(struct({every}))) < 0"  # never: it asks for all columns
        return flaw

    def footers(self, objects: Sequence[DataObject], columns: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
        """Give what the Parquet footers of these objects say of some columns (see the bridge's ``Footers``)."""
        with _named(objects) as file, _scratch() as out:
            self._bridge.footers(self._scan, str(file), json.dumps(columns), str(out))
            with out.open(encoding="utf-8") as lines:
                yield from map(json.loads, lines)

    def _java_list(self, items: Iterable[str]) -> Any:
        """Make a Java list."""
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made


def _quoted(name: str) -> str:
    """Return a column's name as SQL has it."""
    return f"`{name.replace('`', '``')}`"


@contextmanager
def _scratch() -> Iterator[Path]:
    """Give a local file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="skipstone-") as folder:
        yield Path(folder) / "lines"


@contextmanager
def _named(objects: Sequence[DataObject]) -> Iterator[Path]:
    """Write the names of objects to a local file, a line each."""
    with _scratch() as file:
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{json.dumps({'p': o.path})}\n" for o in objects)
        yield file
