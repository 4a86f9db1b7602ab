"""What went wrong in a Spark job, said in one line: an index that raised, or an object that could not be read."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skipstone.errors import IndexingError, SkipstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PluginRaisedError", "ReadFailedError", "explained_failures", "raised"]

FAILURE_MARK = "skipstone:failed:"

_MARKED = re.compile(re.escape(FAILURE_MARK) + r"(?P<said>.*)")
_CONDITION = re.compile(r"\[(?P<condition>[A-Z][A-Z0-9_.]+)\]\s*(?P<said>[^\n]*)")
_NOISE = re.compile(r"\s*SQLSTATE: \w+.*$")
_READING = ("FAILED_READ_FILE", "FILE_NOT_EXIST", "FileNotFoundException", "MALFORMED_RECORD_IN_PARSING")


class PluginRaisedError(Exception):
    """An index raised, in a worker or on the driver; what follows the mark is what the user is told."""

    def __init__(self, name: str, what: str, error: BaseException) -> None:
        super().__init__(f"{FAILURE_MARK}{raised(name, what, error)}")


def raised(name: str, what: str, error: BaseException) -> str:
    """Say in one line what an index raised."""
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    return f"{name} raised {said} while indexing {what}"


class ReadFailedError(IndexingError):
    """An object could not be read: damaged, or changed or gone since it was listed."""


@contextmanager
def explained_failures() -> Iterator[None]:
    """Turn what Spark raises into an ``IndexingError`` whose text is the cause, not a stack trace."""
    try:
        yield
    except SkipstoneError:
        raise
    except PluginRaisedError as error:
        raise IndexingError(_plugin_message(str(error))) from error
    except Exception as error:
        text = _full_text(error)
        if FAILURE_MARK in text:
            raise IndexingError(_plugin_message(text)) from error
        kind = ReadFailedError if any(sign in text for sign in _READING) else IndexingError
        msg = f"the objects could not be read, nothing was indexed: {_cause(text)}"
        raise kind(msg) from error


def _plugin_message(text: str) -> str:
    """Give what the worker said of the index that raised."""
    found = _MARKED.search(text)
    said = found["said"].strip() if found else text
    return f"{said}; nothing was indexed"


def _full_text(error: BaseException) -> str:
    """Give all that an error says; Py4J keeps the Java side's text apart."""
    java = getattr(error, "java_exception", None)
    return f"{error}\n{java}" if java is not None else str(error)


def _cause(text: str) -> str:
    """Find the most telling line: the first error condition, or else the first line."""
    found = _CONDITION.search(text)
    if found is None:
        return (text.strip().splitlines() or ["Spark gave no reason"])[0]
    return f"{_NOISE.sub('', found['said']).strip()} [{found['condition']}]"
