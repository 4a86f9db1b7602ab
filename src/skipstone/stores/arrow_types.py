"""Arrow types from their text: a manifest spells a field's type as ``str(type)``, and this reads it back."""

from __future__ import annotations

import re

import pyarrow as pa

__all__ = ["parse_type"]

_MAX_TEXT = 10_000
_MAX_DEPTH = 20
_NESTED = {"list": pa.list_, "large_list": pa.large_list}
_SIMPLE = {
    "double": pa.float64(),
    "float": pa.float32(),
    "halffloat": pa.float16(),
    "null": pa.null(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32[day]": pa.date32(),
    "date64[ms]": pa.date64(),
    "month_day_nano_interval": pa.month_day_nano_interval(),
    **{str(kind()): kind() for kind in (pa.int8, pa.int16, pa.int32, pa.int64)},
    **{str(kind()): kind() for kind in (pa.uint8, pa.uint16, pa.uint32, pa.uint64)},
}


def parse_type(text: str) -> pa.DataType:
    """Read an Arrow type from its text.

    Raises
    ------
    ValueError
        When the text names no type that metadata can have.

    Examples
    --------
    >>> parse_type("list<item: decimal128(10, 2)>")
    ListType(list<item: decimal128(10, 2)>)
    """
    if len(text) > _MAX_TEXT:
        msg = f"{text[:40]}… is too long for a type"
        raise ValueError(msg)
    found = _parse(text.strip(), 0)
    if found is None:
        msg = f"{text[:200]!r} is not an Arrow type that metadata can have"
        raise ValueError(msg)
    return found


def _parse(text: str, depth: int) -> pa.DataType | None:
    if text in _SIMPLE:
        return _SIMPLE[text]
    if depth > _MAX_DEPTH:
        return None
    if found := re.fullmatch(r"fixed_size_binary\[(\d{1,9})\]", text):
        return pa.binary(int(found[1]))
    if found := re.fullmatch(r"decimal(128|256)\((\d{1,2}), (-?\d{1,2})\)", text):
        return (pa.decimal128 if found[1] == "128" else pa.decimal256)(int(found[2]), int(found[3]))
    if found := re.fullmatch(r"timestamp\[(s|ms|us|ns)(?:, tz=([^\]]{1,60}))?\]", text):
        return pa.timestamp(found[1], found[2])
    if found := re.fullmatch(r"(time32|time64|duration)\[(s|ms|us|ns)\]", text):
        return getattr(pa, found[1])(found[2])
    if found := re.fullmatch(r"(list|large_list|struct)<(.*)>", text, re.DOTALL):
        fields = [_field(piece, depth + 1) for piece in _split(found[2])]
        if any(field is None for field in fields):
            return None
        if found[1] == "struct":
            return pa.struct(fields)
        return _NESTED[found[1]](fields[0]) if len(fields) == 1 else None
    return None


def _field(text: str, depth: int) -> pa.Field | None:
    """Read ``name: type`` or ``name: type not null``."""
    name, _, kind = text.partition(": ")
    nullable = not kind.endswith(" not null")
    parsed = _parse(kind if nullable else kind.removesuffix(" not null"), depth)
    return None if parsed is None else pa.field(name, parsed, nullable=nullable)


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    pieces, level, start = [], 0, 0
    for place, character in enumerate(text):
        level += (character in "<([") - (character in ">)]")
        if character == "," and level == 0:
            pieces.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*pieces, last] if last else pieces
