"""Any Hadoop file system, through the session's JVM (docs/storage.md).

Bytes never travel from the JVM to Python through Py4J (8 KB or more stall for 44 ms): the JVM writes them to a local
file and Python reads that.  The other way is fast.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from skipstone.engines.spark.client import Client, java_causes
from skipstone.stores.parquet.filesystem import FileEntry, FileSystem, LocalFileSystem, scheme_of
from skipstone.stores.timing import timed_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["HadoopFileSystem", "file_system_for"]

_CONDITIONAL_CREATE = "fs.option.create.conditional.overwrite"
_MISSING = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
_THERE = ("FileAlreadyExistsException", "RemoteFileChangedException")
_DENIED = ("AccessControlException", "AccessDeniedException")


class HadoopFileSystem(FileSystem):
    """Reads and writes through the JVM's ``org.apache.hadoop.fs``.

    Commits are atomic where the file system offers something that is: a rename without overwrite on HDFS, a
    conditional create on S3 (Hadoop 3.4.2 and later).  Elsewhere ``atomic_commits`` says no.

    Parameters
    ----------
    spark
        The session whose Hadoop settings (and credentials) apply.
    """

    gap = 1 << 20
    renaming = ("hdfs", "viewfs", "file")
    """Schemes on which a rename without overwrite has one winner (``file`` has not, but goes another way)."""

    def __init__(self, spark: SparkSession) -> None:
        self._client = Client(spark)
        self._jvm = self._client.jvm
        self._gateway: Any = spark.sparkContext._gateway

    def qualify(self, path: str) -> str:
        with _translated(path):
            found = self._path(path)
            return str(self._system(found).makeQualified(found).toString()).rstrip("/")

    def atomic_commits(self, path: str) -> bool:
        return scheme_of(path) in self.renaming or self._has_conditional_create(path)

    @timed_read
    def read(self, path: str, length: int) -> bytes:
        return self.read_ranges(path, [(0, length)], length)[0]

    @timed_read
    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]], length: int) -> list[bytes]:
        if not ranges:
            return []
        spelled = ",".join(f"{offset}:{max(0, min(count, length - offset))}" for offset, count in ranges)
        with _translated(path), _scratch_file() as local:
            counts = self._client.read_ranges(path, length, spelled, local)
            with local.open("rb") as file:
                return [file.read(count) for count in counts]

    @timed_read
    def list_folder(self, folder: str) -> list[FileEntry]:
        with _translated(folder), _scratch_file() as local:
            self._client.list_folder(folder, local)
            with local.open(encoding="utf-8") as lines:
                return [FileEntry(f["n"], f["l"], f["m"], f["e"]) for f in map(json.loads, lines)]

    @timed_read
    def exists(self, path: str) -> bool:
        with _translated(path):
            place = self._path(path)
            return bool(self._system(place).exists(place))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        try:
            with _translated(path):
                place = self._path(path)
                system = self._system(place)
                if scheme_of(path) in self.renaming:
                    self._create_by_rename(system, place, data)
                elif self._has_conditional_create(path):
                    builder = system.createFile(place).recursive()
                    builder.must(_CONDITIONAL_CREATE, True)
                    _write(builder.build(), data)
                else:
                    _write(system.create(place, False), data)
        except FileExistsError:
            # A request whose answer was lost is sent again by the file system's client, and then meets its own work.
            return self.read(path, len(data)) == data
        return True

    def put(self, path: str, local_file: Path) -> None:
        with _translated(path):
            place = self._path(path)
            self._system(place).copyFromLocalFile(False, True, self._path(f"file:{local_file}"), place)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        with suppress(FileNotFoundError), _translated(path):
            place = self._path(path)
            self._system(place).delete(place, recursive)

    def make_folder(self, folder: str) -> None:
        if self._has_conditional_create(folder):
            return  # an object store: folders are but names, and marking them takes requests and leaves objects
        with _translated(folder):
            place = self._path(folder)
            self._system(place).mkdirs(place)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self._settings())

    def _settings(self) -> Any:
        return self._client.hadoop_settings()

    def _has_conditional_create(self, path: str) -> bool:
        with _translated(path):
            place = self._path(path)
            return bool(self._system(place).hasPathCapability(place, _CONDITIONAL_CREATE))

    def _create_by_rename(self, system: Any, place: Any, data: bytes) -> None:
        """Write a temporary file, then rename it: without overwrite, only one of several renames succeeds."""
        temporary = self._jvm.org.apache.hadoop.fs.Path(place.getParent(), f".{uuid.uuid4().hex}.tmp")
        try:
            _write(system.create(temporary, False), data, durable=True)
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(place.toUri(), self._settings())
            no_options = self._gateway.new_array(getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename"), 0)
            context.rename(temporary, place, no_options)
        except BaseException:
            with suppress(Py4JError):
                system.delete(temporary, False)
            raise


def file_system_for(path: str, spark: SparkSession) -> FileSystem:
    """Choose by scheme: ``file:`` goes straight to the disk, everything else through Spark's Hadoop file systems.

    A path without a scheme belongs to the session's default file system.
    """
    scheme = scheme_of(path)
    if scheme == "file":
        return LocalFileSystem()
    remote = HadoopFileSystem(spark)
    return LocalFileSystem() if not scheme and scheme_of(remote.qualify(path)) == "file" else remote


@contextmanager
def _scratch_file() -> Iterator[Path]:
    """Yield a local file for the JVM to write; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="skipstone-") as folder:
        yield Path(folder) / "bytes"


def _write(stream: Any, data: bytes, *, durable: bool = False) -> None:
    """Write and close; a failure in between must not complete the file where closing does that."""
    try:
        stream.write(bytearray(data))
        if durable:
            stream.hsync()
    except Py4JError:
        with suppress(Py4JError):
            stream.abort()
        raise
    stream.close()


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn the JVM's exceptions into Python's."""
    try:
        yield
    except Py4JJavaError as error:
        causes = java_causes(error)
        names = [cause.kind for cause in causes]
        text = next((cause.said for cause in causes if cause.said), "")
        what = f"{names[0].rsplit('.', 1)[-1]}: {text[:300]}"
        if any(name in _MISSING for name in names):
            raise FileNotFoundError(f"{path}: {what}") from error
        if any(name.endswith(_THERE) for name in names):
            raise FileExistsError(f"{path}: {what}") from error
        if any(name.endswith(_DENIED) for name in names):
            raise PermissionError(f"{path}: {what}") from error
        raise OSError(f"{path}: {what}") from error
    except Py4JError as error:
        msg = f"{path}: the session's JVM did not answer ({type(error).__name__})"
        raise OSError(msg) from error
