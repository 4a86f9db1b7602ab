"""The indexes that a ``CREATE INDEX`` asks for: types by name, columns, options as text, read by the types' own fields.

The positional fields of an index type are its columns: as many columns of a statement make one index.  A type whose
one positional field is a mapping (``FeatureIndex``) takes names with a predicate each in place of columns.  All other
fields are options, of the type that the field is annotated with; what is neither text nor a number is written in JSON.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from skipstone import registry
from skipstone.errors import IndexingError, SettingError, SkipstoneError
from skipstone.expressions.names import spell_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skipstone.indexing.index import Index

__all__ = ["ANY_TYPE", "UnknownIndexTypeError", "indexes_of"]

ANY_TYPE = "skipstone"
"""In place of a type after ``USING``: each column says its own."""

_TYPE, _NAME, _PREDICATE = "type", "name", "predicate"
_FOUND_OUT = frozenset({"conditions", _TYPE})  # fields that an index fills in itself when it is made
_EVERY_COLUMN = "*"
_WORDS = {"true": True, "false": False}
_NOTHING = frozenset({"none", "null"})
_ALLOWED = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}


class UnknownIndexTypeError(SkipstoneError):
    """No index type of that name is loaded."""


@dataclass(frozen=True)
class _Column:
    """One entry of the statement's list: a column, or the name of a feature, with what is said of it."""

    parts: tuple[str, ...]
    index_type: type[Index]
    options: dict[str, str]


def indexes_of(statement: Mapping[str, Any]) -> list[Index]:
    """Make the indexes of a statement; one that is not given a name has the name that its type makes.

    Raises
    ------
    SkipstoneError
        When a type, an option or a value is not known; the message names those that are.
    """
    common = _folded(statement["options"])
    default = common.pop(_TYPE, None) or statement["using"]
    columns = [_column(entry, default) for entry in statement["columns"]]
    _refuse_unused(common, columns)
    return [_made(group, common) for group in _groups(columns)]


def _column(entry: Mapping[str, Any], default: str) -> _Column:
    """Read one entry of the list."""
    options = _folded(entry["options"])
    wanted = options.pop(_TYPE, default)
    if not wanted or wanted.lower() == ANY_TYPE:
        msg = (
            f"{spell_column(entry['parts'])} has no index type: write USING type, or OPTIONS (type = '…') behind the "
            f"column; there are {', '.join(registry.known_types())}"
        )
        raise UnknownIndexTypeError(msg)
    return _Column(tuple(entry["parts"]), _type_called(wanted), options)


def _type_called(name: str) -> type[Index]:
    """Find an index type."""
    found = registry.find_index(name) or registry.find_index(name.lower())
    if found is None:
        known = registry.known_types()
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        msg = f"there is no index type {name!r}: {hint}"
        raise UnknownIndexTypeError(msg)
    return found


def _groups(columns: Sequence[_Column]) -> Iterator[list[_Column]]:
    """Put together the neighbours that make one index."""
    waiting = list(columns)
    while waiting:
        index_type = waiting[0].index_type
        size = len(columns) if _takes_predicates(index_type) else len(_positional(index_type))
        group = [waiting.pop(0)]
        while waiting and len(group) < size and waiting[0].index_type is index_type:
            group.append(waiting.pop(0))
        yield group


def _made(group: Sequence[_Column], common: Mapping[str, str]) -> Index:
    """Make one index of its columns."""
    index_type = group[0].index_type
    given = {k: v for k, v in common.items() if k in _options(index_type)}
    own: dict[str, str] = {}
    for column in group:
        own |= {k: v for k, v in column.options.items() if k != _PREDICATE or not _takes_predicates(index_type)}
    _refuse_unknown(index_type, own)
    options = {name: _read(index_type, name, text) for name, text in (given | own).items()}
    _refuse_missing(index_type, options)
    make: Any = index_type  # its parameters are its own
    try:
        if _takes_predicates(index_type):
            return cast("Index", make({_feature(c): _predicate(c) for c in group}, **options))
        names = [_EVERY_COLUMN if c.parts == (_EVERY_COLUMN,) else spell_column(c.parts) for c in group]
        if len(names) < len(_positional(index_type)) and hasattr(index_type, "of_geometry"):
            return cast("Index", make.of_geometry(*names, **options))
        return cast("Index", make(*names, **options))
    except (TypeError, ValueError) as error:
        msg = f"a {index_type.type_name} index cannot be made of this statement: {_plain(error)}"
        raise SettingError(msg) from error


def _positional(index_type: type[Index]) -> list[dataclasses.Field[Any]]:
    """Return the fields that are given by their place: the columns."""
    return [f for f in dataclasses.fields(index_type) if f.init and not f.kw_only]


def _options(index_type: type[Index]) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields that a statement may give by name."""
    columns = {f.name for f in _positional(index_type)} | (
        {"geometry"} if hasattr(index_type, "of_geometry") else set()
    )
    every = (f for f in dataclasses.fields(index_type) if f.init and f.name not in columns | _FOUND_OUT)
    return {f.name.lower(): f for f in every}


def _takes_predicates(index_type: type[Index]) -> bool:
    """Whether a type takes named predicates in place of columns."""
    fields = _positional(index_type)
    return len(fields) == 1 and _annotation(fields[0]).startswith(("Mapping[", "dict["))


def _feature(column: _Column) -> str:
    """Return the name of a feature."""
    return ".".join(column.parts)


def _predicate(column: _Column) -> str:
    """Return the predicate of a feature."""
    if _PREDICATE not in column.options:
        msg = (
            f"{_feature(column)} is the name of a feature and has no predicate: write "
            f"{spell_column(column.parts)} OPTIONS (predicate = \"level = 'ERROR'\")"
        )
        raise SettingError(msg)
    return column.options[_PREDICATE]


def _refuse_unused(common: Mapping[str, str], columns: Sequence[_Column]) -> None:
    """Raise when an option of the whole statement is one that none of its index types has."""
    if _NAME in common:
        msg = "the name of the indexes stands after CREATE INDEX; OPTIONS (name = '…') is for single columns"
        raise SettingError(msg)
    known = {name for column in columns for name in _options(column.index_type)} - {_NAME}
    for name in common:
        if name not in known:
            types = ", ".join(sorted({c.index_type.type_name for c in columns}))
            msg = f"no index of this statement ({types}) has an option {name!r}; there are {_listed(known | {_TYPE})}"
            raise SettingError(msg)


def _refuse_unknown(index_type: type[Index], given: Mapping[str, str]) -> None:
    """Raise when an option of a column is not one of its index type's."""
    known = set(_options(index_type))
    for name in given:
        if name not in known:
            extra = {_TYPE, *({_PREDICATE} if _takes_predicates(index_type) else ())}
            msg = f"a {index_type.type_name} index has no option {name!r}, it has {_listed(known | extra)}"
            raise SettingError(msg)


def _refuse_missing(index_type: type[Index], given: Mapping[str, Any]) -> None:
    """Raise when an option that has no default is not given."""
    for name, field in _options(index_type).items():
        if name not in given and field.default is field.default_factory is dataclasses.MISSING:
            msg = f"a {index_type.type_name} index needs the option {name}: OPTIONS ({name} = …)"
            raise SettingError(msg)


def _read(index_type: type[Index], name: str, text: str) -> Any:
    """Read the value of an option as its field is annotated."""
    annotated = [kind.strip() for kind in _split(_annotation(_options(index_type)[name]))]
    if "None" in annotated and text.strip().lower() in _NOTHING:
        return None
    for kind in sorted(annotated, key=lambda kind: kind == "str"):  # text last: everything is text
        try:
            match kind:
                case "None":
                    continue
                case "bool":
                    return _WORDS[text.strip().lower()]
                case "int":
                    return int(text)
                case "float":
                    return float(text)
                case "str":
                    return text
                case _:
                    return _tuples(json.loads(text))
        except (KeyError, ValueError):
            continue
    allowed = " or ".join(_ALLOWED.get(kind, "a list in JSON") for kind in annotated if kind != "None")
    msg = f"the option {name} of a {index_type.type_name} index is {text!r}, allowed is {allowed}"
    raise SettingError(msg)


def _annotation(field: dataclasses.Field[Any]) -> str:
    """Return a field's annotation as text, whether or not the module defers annotations."""
    kind: Any = field.type
    return kind if isinstance(kind, str) else kind.__name__ if type(kind) is type else str(kind)


def _split(annotation: str) -> list[str]:
    """Split a union at its bars, those in brackets left alone."""
    parts, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _tuples(value: Any) -> Any:
    """Turn JSON's lists into tuples, as index options have them."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _folded(options: Mapping[str, str]) -> dict[str, str]:
    """Fold the names of options, which SQL does not tell apart by case."""
    found: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() in found:
            msg = f"the option {name.lower()!r} is given twice"
            raise IndexingError(msg)
        found[name.lower()] = value
    return found


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _plain(error: Exception) -> str:
    """Return what a constructor says, without the name of the method."""
    return str(error).replace(".__init__()", "")
