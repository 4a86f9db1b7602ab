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

    Each turn of the loop stands where a value or the end of a container is due.
    """
    scan = json.JSONDecoder().scan_once
    space = _SPACE.match
    root: list[Any] = []
    open_containers: list[Any] = [root]
    keys: list[str] = [""]
    at = _end(space, text, 0)
    while True:
        container = open_containers[-1]
        if at < len(text) and text[at] in "]}" and len(open_containers) > 1:
            open_containers.pop()
            keys.pop()
            at += 1
        else:
            if isinstance(container, dict):
                keys[-1], at = _scalar(scan, text, at)
                at = _end(space, text, at)
                if text[at : at + 1] != ":":
                    raise json.JSONDecodeError("Expecting ':'", text, at)
                at = _end(space, text, at + 1)
            opening = text[at : at + 1]
            value: Any
            if opening in ("[", "{"):
                value, at = ([] if opening == "[" else {}), at + 1
            else:
                value, at = _scalar(scan, text, at)
            if isinstance(container, dict):
                container[keys[-1]] = value
            else:
                container.append(value)
            if isinstance(value, list | dict):
                open_containers.append(value)
                keys.append("")
                at = _end(space, text, at)
                continue
        at = _end(space, text, at)
        if len(open_containers) == 1:
            if at != len(text):
                raise json.JSONDecodeError("Extra data", text, at)
            return root[0]
        if text[at : at + 1] == ",":
            at = _end(space, text, at + 1)
        elif text[at : at + 1] not in ("]", "}"):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)


def _scalar(scan: Any, text: str, at: int) -> tuple[Any, int]:
    """Read one string, number or name."""
    try:
        value, end = scan(text, at)
    except StopIteration:
        raise json.JSONDecodeError("Expecting value", text, at) from None
    return value, end


def _end(space: Any, text: str, at: int) -> int:
    """Skip white space."""
    end: int = space(text, at).end()
    return end
