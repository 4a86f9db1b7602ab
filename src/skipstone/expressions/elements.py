"""The types inside arrays and maps, read from the catalog's notation."""

from __future__ import annotations

from typing import Final

__all__ = ["ELEMENTS", "KEYS", "VALUES", "element_type"]

ELEMENTS: Final = "elements"
KEYS: Final = "keys"
VALUES: Final = "values"


def element_type(type_: str, of: str) -> str | None:
    """Return the type of an array's elements, or of a map's keys or values; ``None`` when the type has no such part.

    Examples
    --------
    >>> element_type("array<string>", ELEMENTS), element_type("map<decimal(10,2),int>", KEYS)
    ('string', 'decimal(10,2)')
    >>> element_type("map<string,array<int>>", VALUES), element_type("string", ELEMENTS)
    ('array<int>', None)
    """
    if of == ELEMENTS:
        return _inside(type_, "array<")
    inside = _inside(type_, "map<")
    if inside is None:
        return None
    comma = _first_comma(inside)
    if comma is None:
        return None
    return inside[:comma] if of == KEYS else inside[comma + 1 :]


def _inside(type_: str, opening: str) -> str | None:
    """Return what stands between a type's brackets."""
    return type_[len(opening) : -1] if type_.startswith(opening) and type_.endswith(">") else None


def _first_comma(types: str) -> int | None:
    """Find the comma between a key's type and a value's, which is in no bracket.

    A field's name may have brackets in it; then a part is read wrongly, but never as an atomic type: a struct's field
    leaves a colon in whichever part it ends up in.
    """
    depth = 0
    for place, character in enumerate(types):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            return place
    return None
