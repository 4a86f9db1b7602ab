"""The few file operations that a store needs, and how plain local disks do them.

``create_if_absent`` is the commit primitive: of any number of processes that create one path, exactly one wins, and
no reader sees half a file.  Each file system needs its own way; ``create(path, overwrite=false)`` is not one.

Paths are Hadoop path strings (``file:/data/a b%20c``): nothing in them is URL-encoded.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skipstone.stores.timing import timed_read

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FileEntry", "FileSystem", "LocalFileSystem", "local_file_system", "scheme_of"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FileEntry(NamedTuple):
    """One file of a folder; ``modified`` in milliseconds, ``tag`` changes whenever the file is another one."""

    name: str
    length: int
    modified: int
    tag: str = ""


class FileSystem(ABC):
    """What a store asks of a file system.  Failures are ``OSError``; a missing file is ``FileNotFoundError``."""

    gap = 0
    """Ranges of one file that are no farther apart than this are read in one request."""

    @abstractmethod
    def qualify(self, path: str) -> str:
        """Add the scheme to a path and drop trailing slashes, so that one place has one spelling."""

    @abstractmethod
    def atomic_commits(self, path: str) -> bool:
        """Whether ``create_if_absent`` has one winner among processes; if not, one writer at a time is safe."""

    @abstractmethod
    def read(self, path: str, length: int) -> bytes:
        """Read a whole file of a known length; a file of another length is an ``OSError`` or comes back shorter."""

    @abstractmethod
    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]], length: int) -> list[bytes]:
        """Read (offset, length) ranges of a file of a known length; what lies beyond its end comes back shorter."""

    @abstractmethod
    def list_folder(self, folder: str) -> list[FileEntry]:
        """List the files directly in a folder, in any order."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    @abstractmethod
    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file whole, or return ``False`` when there is one already.  See the module's text."""

    @abstractmethod
    def put(self, path: str, local_file: Path) -> None:
        """Bring a local file to a path that nobody else writes; the local file may be gone afterwards."""

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file, or a folder with all that is in it; what is not there is deleted already."""

    @abstractmethod
    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it; what is there already is fine."""


class LocalFileSystem(FileSystem):
    """Local disks, in plain Python: hard links commit, everything is synced before it counts."""

    def qualify(self, path: str) -> str:
        return f"file:{self._local(path)}"

    def atomic_commits(self, path: str) -> bool:  # noqa: ARG002  (the same everywhere)
        return True

    @timed_read
    def read(self, path: str, length: int) -> bytes:
        return self.read_ranges(path, [(0, length)], length)[0]

    @timed_read
    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]], length: int) -> list[bytes]:  # noqa: ARG002
        descriptor = _open_regular(self._local(path))
        try:
            return [_read_fully(descriptor, offset, count) for offset, count in ranges]
        finally:
            os.close(descriptor)

    @timed_read
    def list_folder(self, folder: str) -> list[FileEntry]:
        found = []
        place = self._local(folder)
        if place.is_symlink():  # whoever may write here would choose what is deleted elsewhere
            msg = "is a symbolic link; delete it"
            raise OSError(errno.ELOOP, msg, str(place))
        with os.scandir(place) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted since it was listed
                    status = entry.stat()
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    tag = f"{status.st_ino}-{status.st_mtime_ns}"
                    found.append(FileEntry(entry.name, status.st_size, status.st_mtime_ns // 1_000_000, tag))
        return found

    @timed_read
    def exists(self, path: str) -> bool:
        return self._local(path).exists()

    def create_if_absent(self, path: str, data: bytes) -> bool:
        target = self._local(path)
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            _write_synced(temporary, data)
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS or not temporary.exists():
                raise
            try:  # still one winner; a reader may see it half written, which its checksum tells
                _write_synced(target, data)
            except FileExistsError:
                return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)
        return True

    def put(self, path: str, local_file: Path) -> None:
        target = self._local(path)
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            try:
                local_file.rename(temporary)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                shutil.copyfile(local_file, temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        target = self._local(path)
        if recursive and target.is_dir() and not target.is_symlink():
            for attempt in range(3):
                try:
                    shutil.rmtree(target)
                except FileNotFoundError:  # someone else deletes or writes beside us
                    if not target.exists():
                        return
                except OSError as error:
                    if error.errno != errno.ENOTEMPTY or attempt == 2:
                        raise
                else:
                    return
        else:
            target.unlink(missing_ok=True)

    def make_folder(self, folder: str) -> None:
        self._local(folder).mkdir(parents=True, exist_ok=True)

    @staticmethod
    def _local(path: str) -> Path:
        """Turn ``file:/x``, ``file:///x`` or ``/x`` into a path of the operating system."""
        bare = path.removeprefix("file:")
        if bare.startswith("//"):
            bare = "/" + bare.lstrip("/") if bare.startswith("///") else bare[bare.find("/", 2) :]
        return Path(bare).absolute()


def scheme_of(path: str) -> str:
    """Return a path's scheme in lower case, empty when it has none."""
    found = _SCHEME.match(path)
    return found[1].lower() if found else ""


def local_file_system(path: str) -> FileSystem:
    """Return the local disk for a path of it; an engine reaches others."""
    if scheme_of(path) not in ("", "file"):
        msg = f"{path} needs a Spark session to be reached: only file: paths can do without"
        raise OSError(msg)
    return LocalFileSystem()


def _open_regular(path: Path) -> int:
    """Open a regular file for reading: a pipe would be waited for without end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not a regular file", str(path))


def _read_fully(descriptor: int, offset: int, count: int) -> bytes:
    """Read a range, or what there is of it."""
    pieces = []
    while count > 0:
        piece = os.pread(descriptor, count, offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _write_synced(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has a folder's entries; best effort, some file systems cannot."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
