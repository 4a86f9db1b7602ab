"""Whether Python would run a module's source, or byte code that was compiled of another state of it.

Byte code is taken for the source's when the source's size and its time, in whole seconds, are those that it was
compiled at: an edit within a second that keeps the size, or that sets the time back, goes unseen.
"""

from __future__ import annotations

import marshal
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

__all__ = ["hides_source", "state_of"]

_HEADER = 16
_HASHED, _CHECKED = 1, 2


def hides_source(path: str, source: bytes) -> bool:
    """Whether byte code of something else would be run in the place of a source."""
    try:
        compiled = Path(cache_from_source(path))
        content = compiled.read_bytes()
        found = Path(path).stat()
        written = compiled.stat().st_mtime_ns
    except (OSError, NotImplementedError):
        return False  # there is none
    if len(content) <= _HEADER or content[:4] != MAGIC_NUMBER:
        return False
    flags, time, size = (int.from_bytes(content[at : at + 4], "little") for at in (4, 8, 12))
    if flags & _HASHED:
        if flags & _CHECKED:
            return False
    elif time != int(found.st_mtime) & 0xFFFFFFFF or size != found.st_size & 0xFFFFFFFF:
        return False
    elif written > max(found.st_mtime_ns, found.st_ctime_ns):
        return False  # compiled after the last edit
    try:
        return bool(marshal.loads(content[_HEADER:]) != compile(source, path, "exec", dont_inherit=True))  # noqa: S302
    except (ValueError, SyntaxError, EOFError, TypeError, RecursionError):
        return True


def state_of(path: Path) -> tuple[int, ...]:
    """Return what changes with a source or with its byte code: times and sizes."""
    found: list[int] = []
    for file in (path, Path(cache_from_source(path))):
        try:
            one = file.stat()
        except OSError:
            continue
        found += (one.st_mtime_ns, one.st_ctime_ns, one.st_size)
    return tuple(found)
