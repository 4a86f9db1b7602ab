"""What went wrong in a Spark job, said in one line.

An index that raised, a user's function that did, or an object that could not be read.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import all_said_by
from skipstone.errors import IndexingError, SkipstoneError
from skipstone.indexing.failures import FAILURE_MARK, PluginRaisedError, ReadFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["explained_failures"]

_MARKED = re.compile(re.escape(FAILURE_MARK) + r"(?P<said>.*)")
_CONDITION = re.compile(r"\[(?P<condition>[A-Z][A-Z0-9_.]+)\]\s*(?P<said>[^\n]*)")
_NOISE = re.compile(r"\s*SQLSTATE: \w+.*$")
_TRACEBACK = re.compile(r'^ *File "[^\n]*(?:\n +[^\n]*)*\n(?P<said>\S[^\n]*)', re.MULTILINE)
_COMPILED = re.compile(r"\[FAILED_EXECUTE_UDF[^\]]*\].*?failed due to: (?P<said>[^\n]*)")
_READING = ("FAILED_READ_FILE", "FILE_NOT_EXIST", "FileNotFoundException", "MALFORMED_RECORD_IN_PARSING")
_CALLED = "An error occurred while calling"  # Py4J's own line before Java's


@contextmanager
def explained_failures(functions: Sequence[str] = ()) -> Iterator[None]:
    """Turn what Spark raises into an ``IndexingError`` whose text is the cause, not a stack trace.

    Parameters
    ----------
    functions
        The users' functions that the job calls, as far as they are known.
    """
    try:
        yield
    except SkipstoneError:
        raise
    except PluginRaisedError as error:
        raise IndexingError(_plugin_message(str(error))) from error
    except Exception as error:
        text = all_said_by(error)
        if FAILURE_MARK in text:
            raise IndexingError(_plugin_message(text)) from error
        said = _raised_by_function(text)
        if said is not None:
            raise IndexingError(f"{_named(functions)} raised {said}; nothing was indexed") from error
        kind = ReadFailedError if any(sign in text for sign in _READING) else IndexingError
        msg = f"the objects could not be read, nothing was indexed: {_cause(text)}"
        raise kind(msg) from error


def _plugin_message(text: str) -> str:
    """Return what the worker said of the index that raised."""
    found = _MARKED.search(text)
    said = found["said"].strip() if found else text
    return f"{said}; nothing was indexed"


def _raised_by_function(text: str) -> str | None:
    """Return what a user's function raised, in Python or in the JVM; ``None`` when none did.

    In a traceback the exception stands after the last frame; its own text may go on for lines.
    """
    worker = text.find("Traceback (most recent call last)")
    found = list(_TRACEBACK.finditer(text, worker))[-1:] if worker >= 0 else []
    compiled = found[0] if found else _COMPILED.search(text)
    return None if compiled is None else _NOISE.sub("", compiled["said"]).strip().rstrip(".")


def _named(functions: Sequence[str]) -> str:
    """Name the function, as far as one can be told from the others."""
    names = list(dict.fromkeys(functions))
    if len(names) == 1:
        return names[0]
    return f"one of {', '.join(names)}" if names else "a function that an index asks for"


def _cause(text: str) -> str:
    """Find the most telling line: the first error condition, or else the first line."""
    found = _CONDITION.search(text)
    if found is None:
        lines = (line.removeprefix(": ") for line in text.strip().splitlines() if not line.startswith(_CALLED))
        return next(lines, "Spark gave no reason")
    return f"{_NOISE.sub('', found['said']).strip()} [{found['condition']}]"
