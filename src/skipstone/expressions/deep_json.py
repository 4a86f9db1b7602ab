"""JSON of any depth: Python's own reader gives up at about five hundred nested predicates."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["loads"]

_SPACE = re.compile(r"[ \t\n\r]*")


def loads(text: str) -> Any:
    """Read JSON as ``json.loads`` does, however deeply it is nested.

    The common case costs nothing extra: only a text that is too deep for ``json.loads`` is read step by step.

    Examples
    --------
    >>> loads("[1, [2]]")
    [1, [2]]
    """
    try:
        return json.loads(text)
    except RecursionError:
        return _read_stepwise(text)


def _read_stepwise(text: str) -> Any:
    """Read with an explicit stack of the containers that are open.

    Each turn of the loop stands where an item, or the end of the innermost container, is due.
    """
    scalar = json.JSONDecoder().raw_decode
    root: list[Any] = []
    containers: list[Any] = [root]
    at = _after_space(text, 0)
    while True:
        container = containers[-1]
        if len(containers) > 1 and text[at : at + 1] == ("}" if isinstance(container, dict) else "]"):
            containers.pop()
            at += 1
        else:
            key = None
            if isinstance(container, dict):
                key, at = scalar(text, at)
                at = _after(":", text, _after_space(text, at))
            value, at = _opened(text, at) or scalar(text, at)
            if isinstance(container, dict):
                container[key] = value
            else:
                container.append(value)
            if isinstance(value, list | dict):
                containers.append(value)
                at = _after_space(text, at)
                continue
        at = _after_space(text, at)
        if len(containers) == 1:
            if at < len(text):
                raise json.JSONDecodeError("Extra data", text, at)
            return root[0]
        if text[at : at + 1] not in ("]", "}"):
            at = _after(",", text, at)


def _opened(text: str, at: int) -> tuple[Any, int] | None:
    """Return a new container where one begins."""
    match text[at : at + 1]:
        case "[":
            return [], at + 1
        case "{":
            return {}, at + 1
    return None


def _after(mark: str, text: str, at: int) -> int:
    """Step over a mark that must stand here, and the space behind it."""
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r} delimiter", text, at)
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    """Step over white space."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()
