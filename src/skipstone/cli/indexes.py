"""How the command line spells indexes: ``account:fpp=0.001`` for a type's own option, or any index by its name."""

from __future__ import annotations

import dataclasses
import difflib
import re
from typing import TYPE_CHECKING, Any

from skipstone.errors import IndexingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.indexing.index import Index

__all__ = ["is_known", "make_index", "parse_index", "shorthand"]

# A name in back-ticks may hold anything, a doubled back-tick stands for one; outside of them the separator ends it.
_QUOTED = r"`(?:[^`]|``)*`"
_SHORTHAND = re.compile(rf"(?P<column>(?:{_QUOTED}|[^`:])+)(?::(?P<options>.*))?", re.DOTALL)
_CONSTRUCTOR = re.compile(r"\s*(?P<type>\w+)\s*\((?P<arguments>.*)\)\s*", re.DOTALL)
_ARGUMENT = re.compile(rf"(?:{_QUOTED}|'[^']*'|\"[^\"]*\"|[^,`'\"])+")


def shorthand(type_name: str, text: str) -> Index:
    """Read ``column`` or ``column:option=value,option=value`` for an index of a given type.

    Examples
    --------
    >>> shorthand("bloomfilter", "account:fpp=0.001").name  # doctest: +SKIP
    'bloomfilter(account, fpp=0.001)'
    """
    match = _SHORTHAND.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is not a column, or column:option=value; put back-ticks around a name with odd characters"
        raise IndexingError(msg)
    return _made(type_name, [match["column"].strip(), *_split(match["options"] or "")], text)


def parse_index(text: str) -> Index:
    """Read an index as ``describe`` names it, of any type that is loaded: ``bloomfilter(account, fpp=0.001)``."""
    match = _CONSTRUCTOR.fullmatch(text)
    if match is None:
        msg = f"{text!r} is not an index: write type(column, option=value), for example minmax(ts)"
        raise IndexingError(msg)
    return _made(match["type"].lower(), _split(match["arguments"]), text)


def is_known(text: str) -> bool:
    """Whether what is written is no index at all, or one of a type that is loaded: both can be judged at once."""
    from skipstone import indexes as _built_in  # noqa: F401  (defining the built-in types registers them)
    from skipstone import registry

    match = _CONSTRUCTOR.fullmatch(text)
    return match is None or registry.find_index(match["type"].lower()) is not None


def _split(arguments: str) -> list[str]:
    """Split at the commas outside of quotes and back-ticks."""
    return [piece.strip() for piece in _ARGUMENT.findall(arguments) if piece.strip()]


def _made(type_name: str, arguments: list[str], text: str) -> Index:
    """Make an index from its columns and options as they are written."""
    columns = [a for a in arguments if not re.match(r"\w+\s*=", a)]
    options = {k.strip(): _value(v.strip()) for k, _, v in (a.partition("=") for a in arguments if a not in columns)}
    return make_index(type_name, columns, options, text)


def make_index(type_name: str, columns: Sequence[str], options: Mapping[str, Any], text: str) -> Index:
    """Make an index of a type that is loaded.

    Parameters
    ----------
    type_name
        The type, as ``describe`` names it.
    columns, options
        What its constructor takes.
    text
        What was written, for messages.

    Raises
    ------
    IndexingError
        When there is no such type, or it does not take these columns and options.
    """
    from skipstone import indexes as _built_in  # noqa: F401  (defining the built-in types registers them)
    from skipstone import registry

    index_type = registry.find_index(type_name)
    if index_type is None:
        known = list(registry.known_types())
        close = difflib.get_close_matches(type_name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}; plug-ins are loaded by "
        hint += "" if close else "--conf spark.skipstone.plugins=module"
        msg = f"there is no index type {type_name!r}: {hint}"
        raise IndexingError(msg)
    allowed = [f.name for f in dataclasses.fields(index_type) if f.init and f.name != "column"]
    for name in options:
        if name not in allowed:
            msg = f"{text!r}: a {type_name} index has no option {name!r}, it has {', '.join(sorted(allowed))}"
            raise IndexingError(msg)
    required = [
        f.name
        for f in dataclasses.fields(index_type)
        if f.init and f.kw_only and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing := [name for name in required if name not in options]:
        column = columns[0] if columns else "column"
        asked = f"{type_name}({column}, {', '.join(f'{name}=…' for name in missing)})"
        msg = f"{text!r}: a {type_name} index needs {' and '.join(missing)}: {asked}, or {column}:{missing[0]}=…"
        raise IndexingError(msg)
    try:
        return index_type(*columns, **options)
    except (TypeError, ValueError) as error:
        msg = f"{text!r}: {error}"
        raise IndexingError(msg) from error


def _value(text: str) -> Any:
    """Read an option's value: a number, true, false or none, or else a string, in quotes or not."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text.replace("_", ""))
        except ValueError:
            continue
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
