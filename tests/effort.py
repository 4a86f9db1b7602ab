"""What work costs, in measures that are the same on every machine and under every load: no test measures seconds."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["instructions", "peak_bytes"]


def instructions(work: Callable[[], object]) -> int:
    """Count the instructions of Python's own that a call executes, those of all functions that it calls included.

    A loop over objects or terms shows, whatever its body; what a call does in C counts as one.  Garbage waits:
    what finalises the objects of other tests would count, too.
    """
    executed = 0

    def traced(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal executed
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed += event == "opcode"
        return traced

    before, collected = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
        if collected:
            gc.enable()
    return executed


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the most memory of Python's and NumPy's that a call has at once; a table of all pairs shows."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
