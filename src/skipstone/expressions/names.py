"""The one spelling of a column path: parts joined by dots, a part in back-ticks unless it is a plain identifier."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skipstone.errors import ColumnNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parse_column", "quote_parts", "spell_column"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`|(?P<bare>[^`.]+)")


def spell_column(parts: Iterable[str]) -> str:
    """Return the canonical spelling of a column path.

    Examples
    --------
    >>> spell_column(("s", "x"))
    's.x'
    >>> spell_column(("odd.name", "tick`"))
    '`odd.name`.`tick```'
    """
    return ".".join(part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in parts)


def quote_parts(parts: Iterable[str]) -> str:
    """Return a column path with every part in back-ticks, so that SQL takes none of them for anything else.

    Examples
    --------
    >>> quote_parts(("s", "null"))
    '`s`.`null`'
    """
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def parse_column(name: str) -> tuple[str, ...]:
    """Split a column, written as in Spark SQL, into the parts of its path.

    Raises
    ------
    ColumnNotFoundError
        When the back-ticks do not pair up or a part is empty: no column is spelled so.

    Examples
    --------
    >>> parse_column("s.x")
    ('s', 'x')
    >>> parse_column("`odd.name`.x")
    ('odd.name', 'x')
    """
    parts: list[str] = []
    at = 0
    while True:
        found = _PART.match(name, at)
        if found is None or (found.end() < len(name) and name[found.end()] != "."):
            reason = (
                "a part is empty" if found is None and name[at : at + 1] != "`" else "its back-ticks do not pair up"
            )
            msg = (
                f"{name!r} does not name a column: {reason}. "
                "Write nested fields as s.x and odd names in back-ticks, as in `odd.name`.x"
            )
            raise ColumnNotFoundError(msg)
        quoted = found["quoted"]
        parts.append(found["bare"] if quoted is None else quoted.replace("``", "`"))
        if found.end() == len(name):
            return tuple(parts)
        at = found.end() + 1
