"""One notation for Spark's types, the catalog's (``int``, ``array<bigint>``), whichever of its notations comes in."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

__all__ = ["BITS", "FLOATING", "catalog_type", "has_collation", "user_defined_type"]

FLOATING = ("float", "double")
"""The types that have NaN."""
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64, "timestamp_ntz": 64}
"""The types whose values are whole numbers, with their sizes."""

_CATALOG_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "null": "void"}


@lru_cache(maxsize=4096)
def catalog_type(text: str) -> str:
    """Return the catalog's notation of a type that is written so, by its type name, or as Spark's JSON.

    What is not understood is given back as it came: it equals itself and no type that is.

    Examples
    --------
    >>> catalog_type("long"), catalog_type("decimal(10,2)")
    ('bigint', 'decimal(10,2)')
    >>> catalog_type('{"type":"array","elementType":"integer","containsNull":true}')
    'array<int>'
    """
    if not text.startswith(("{", '"')):
        return _CATALOG_NAMES.get(text, text)
    try:
        return _from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def has_collation(spark_type: str) -> bool:
    """Whether values of a type are compared other than byte by byte, in the whole or in a part."""
    return " collate " in spark_type


def user_defined_type(node: dict[str, Any]) -> str:
    """Spell a user-defined type as the bridge does: by its class, one that only Python knows also by what it stores.

    Examples
    --------
    >>> user_defined_type({"type": "udt", "class": "org.example.Point", "sqlType": "long"})
    'udt:org.example.Point'
    >>> user_defined_type({"type": "udt", "pyClass": "shapes.Point", "sqlType": "long"})
    'udt:shapes.Point bigint'
    """
    if node.get("class"):
        return f"udt:{node['class']}"
    return f"udt:{node['pyClass']} {_from_json(node['sqlType'])}"


def _from_json(node: Any) -> str:
    """Translate what ``DataType.json`` writes; raise for what has no name in the catalog's notation."""
    if isinstance(node, str):
        return _CATALOG_NAMES.get(node, node)
    match node["type"]:
        case "array":
            return f"array<{_from_json(node['elementType'])}>"
        case "map":
            return f"map<{_from_json(node['keyType'])},{_from_json(node['valueType'])}>"
        case "struct":
            return f"struct<{','.join(_field(field) for field in node['fields'])}>"
        case "udt":
            return user_defined_type(node)
    raise ValueError(node["type"])


def _field(node: dict[str, Any]) -> str:
    """Spell a struct's field; a collation stands in its metadata and would otherwise be lost."""
    if "__COLLATIONS" in (node.get("metadata") or {}):
        raise ValueError(node["name"])
    return f"{node['name']}:{_from_json(node['type'])}"
