"""How long a plan waited for its metadata: the time inside calls that fetch bytes from a file system or server."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ReadingTime", "reading_time", "timed_read"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass
class ReadingTime:
    """Adds up the time that reads took in a block."""

    seconds: float = 0.0
    inside: bool = False


_current: ContextVar[ReadingTime | None] = ContextVar("skipstone_reading_time", default=None)


@contextmanager
def reading_time() -> Iterator[ReadingTime]:
    """Measure the reads that the calling thread makes in a block.

    Examples
    --------
    >>> with reading_time() as spent:
    ...     pass
    >>> spent.seconds
    0.0
    """
    spent = ReadingTime()
    token = _current.set(spent)
    try:
        yield spent
    finally:
        _current.reset(token)


def timed_read(read: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Make a function's time count as reading; of reads that call others, only the outermost counts."""

    @wraps(read)
    def timed(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        spent = _current.get()
        if spent is None or spent.inside:
            return read(*args, **kwargs)
        spent.inside = True
        started = time.perf_counter()
        try:
            return read(*args, **kwargs)
        finally:
            spent.seconds += time.perf_counter() - started
            spent.inside = False

    return timed
