"""Resolving the columns that indexes name against a scan's schema, as Spark would resolve them."""

from __future__ import annotations

import difflib
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import ColumnNotFoundError, IndexExistsError, IndexingError, UnsupportedTypeError
from skipstone.expressions.names import parse_column, spell_column
from skipstone.expressions.types import user_defined_type
from skipstone.indexing.records import ColumnRecord
from skipstone.indexing.source import BoundIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql.types import DataType, StructField, StructType

    from skipstone.engines.spark.description import ScanDescription
    from skipstone.indexing.index import Index

__all__ = ["ScanSchema", "bind_indexes"]

EVERY_COLUMN = "*"

# Readers that put unreadable records into a column of their own.  What it holds depends on which other columns a query
# asks for, so nothing that was seen once describes it.
_KEEPS_CORRUPT_RECORDS = frozenset({"csv", "json", "xml"})
_MOST_SUGGESTIONS = 3


@dataclass(frozen=True)
class ScanSchema:
    """The columns that a scan gives, those of the files and those of the paths."""

    fields: tuple[StructField, ...]
    partition_names: frozenset[str]
    corrupt_record: str | None
    case_sensitive: bool

    @classmethod
    def of(cls, described: ScanDescription) -> ScanSchema:
        """Read the schemas of a scan.

        A column that is in the files *and* in the paths is Spark's partition column: its values come from the path.
        """
        relation = described.relation
        case_sensitive = relation.case_sensitive
        partition = _schema(described.partition_schema).fields
        taken = {_folded(f.name, case_sensitive=case_sensitive) for f in partition}
        data = [
            f
            for f in _schema(described.data_schema).fields
            if _folded(f.name, case_sensitive=case_sensitive) not in taken
        ]
        corrupt = None
        if relation.format in _KEEPS_CORRUPT_RECORDS:
            default = relation.reader_settings.get("spark.sql.columnNameOfCorruptRecord", "_corrupt_record")
            corrupt = relation.folded_options.get("columnnameofcorruptrecord", default)
        return cls((*data, *partition), frozenset(f.name for f in partition), corrupt, case_sensitive)

    def resolve(self, spelled: str) -> ColumnRecord:
        """Find a column or a nested struct field.

        Raises
        ------
        ColumnNotFoundError
            When there is none of that name, more than one, or it lies inside an array or a map.
        """
        from pyspark.sql.types import StructType

        parts = parse_column(spelled)
        fields: Sequence[StructField] = self.fields
        path: list[str] = []
        found: DataType | None = None
        for part in parts:
            if found is not None:
                if not isinstance(found, StructType):
                    raise ColumnNotFoundError(_not_a_struct(spelled, spell_column(path), found))
                fields = found.fields
            field = self._one_of(fields, part, spelled, path)
            path.append(field.name)
            found = field.dataType
        self._refuse_corrupt_record(path)
        assert found is not None  # noqa: S101  (parse_column gives at least one part)
        return ColumnRecord(spell_column(path), _type_name(found), path[0] in self.partition_names)

    def top_level(self) -> Iterator[ColumnRecord]:
        """Yield every column that may be indexed, without looking into structs."""
        for field in self.fields:
            if field.name != self.corrupt_record:
                yield self.resolve(spell_column([field.name]))

    def _one_of(self, fields: Sequence[StructField], name: str, spelled: str, path: Sequence[str]) -> StructField:
        """Find the one field that a part of a name means."""
        wanted = _folded(name, case_sensitive=self.case_sensitive)
        matches = [f for f in fields if _folded(f.name, case_sensitive=self.case_sensitive) == wanted]
        if len(matches) == 1:
            return matches[0]
        if matches:
            candidates = ", ".join(spell_column([*path, f.name]) for f in matches)
            msg = f"{spelled!r} could be {candidates}; set spark.sql.caseSensitive=true to tell them apart"
            raise ColumnNotFoundError(msg)
        where = f"the struct {spell_column(path)}" if path else "the dataset"
        suggestions = _similar(name, spelled, path, [f.name for f in fields])
        hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else _listed(f.name for f in fields)
        msg = f"there is no column {spelled!r}: {where} has no {spell_column([name])}{hint}"
        raise ColumnNotFoundError(msg)

    def _refuse_corrupt_record(self, path: Sequence[str]) -> None:
        """Raise for the column of unreadable records."""
        if path[0] == self.corrupt_record:
            msg = (
                f"{path[0]} cannot be indexed: it holds the records that could not be parsed, and which those are "
                "depends on the columns that a query reads"
            )
            raise IndexingError(msg)


def bind_indexes(described: ScanDescription, indexes: Iterable[Index]) -> list[BoundIndex]:
    """Resolve the columns of indexes against a scan, ``*`` expanded, each with an id of its own.

    ``*`` stands for every top-level column, partition columns included, whose type the index takes.

    Raises
    ------
    ColumnNotFoundError, UnsupportedTypeError
        When a column is not there, or of a type that its index does not take.
    IndexExistsError
        When two of the indexes have one name.
    """
    schema = ScanSchema.of(described)
    bound = [made for index in indexes for made in _bind(schema, index)]
    names = [b.index.name for b in bound]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"{', '.join(twice)} would be made twice by this call; leave one out, or give it another name="
        raise IndexExistsError(msg)
    return bound


def _bind(schema: ScanSchema, index: Index) -> Iterator[BoundIndex]:
    """Resolve one index, or one for each fitting column when it says ``*``."""
    if EVERY_COLUMN not in index.columns:
        records = tuple(schema.resolve(column) for column in index.columns)
        yield _checked(index, records)
        return
    if len(index.columns) > 1:
        msg = f"{index.name} cannot be built: '*' stands for one column at a time; name the columns of this index"
        raise IndexingError(msg)
    fitting = [c for c in schema.top_level() if index.supports((c.type,))]
    if not fitting:
        msg = f"{index.name} cannot be built: no column has a type that a {index.type_name} index takes"
        raise UnsupportedTypeError(msg)
    for column in fitting:
        yield _checked(index, (column,))


def _checked(index: Index, records: tuple[ColumnRecord, ...]) -> BoundIndex:
    """Respell an index's columns and check their types."""
    resolved = index.with_columns(tuple(r.name for r in records)) if index.columns else index
    resolved.check_types(tuple(r.type for r in records))
    return BoundIndex(uuid.uuid4().hex[:12], resolved, records)


def _schema(text: str) -> StructType:
    """Read a schema's JSON.  A user-defined type is known by its name alone, since its class may not be here."""
    from pyspark.sql.types import StructType

    node = json.loads(text)
    schema = _with_names(StructType.fromJson(_without_classes(node)), node)
    assert isinstance(schema, StructType)  # noqa: S101  (as it was)
    return schema


def _without_classes(node: Any) -> Any:
    """Replace user-defined types in a schema's JSON by their storage types."""
    if isinstance(node, list):
        return [_without_classes(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "udt":
        return _without_classes(node["sqlType"])
    return {k: v if k == "metadata" else _without_classes(v) for k, v in node.items()}


def _with_names(stored: DataType, node: Any) -> DataType:
    """Put the names of user-defined types back where a type was read from JSON without them."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(node, dict) and node.get("type") == "udt":
        return _user_defined(user_defined_type(node))
    match stored:
        case ArrayType():
            return ArrayType(_with_names(stored.elementType, node["elementType"]), stored.containsNull)
        case MapType():
            key, value = _with_names(stored.keyType, node["keyType"]), _with_names(stored.valueType, node["valueType"])
            return MapType(key, value, stored.valueContainsNull)
        case StructType():
            fields = zip(stored.fields, node["fields"], strict=True)
            return StructType(
                [StructField(f.name, _with_names(f.dataType, n["type"]), f.nullable, f.metadata) for f, n in fields]
            )
    return stored


def _user_defined(name: str) -> DataType:
    """Make a type that has a name and nothing else: no fields, no elements, no order."""
    from pyspark.sql.types import DataType

    class UserDefined(DataType):
        def simpleString(self) -> str:  # noqa: N802  (PySpark's name)
            return name

    return UserDefined()


def _type_name(data_type: DataType) -> str:
    """Spell a type as the catalog does; PySpark's simple string is that, collations included."""
    return data_type.simpleString()


def _folded(name: str, *, case_sensitive: bool) -> str:
    """Return the form in which two names are compared."""
    return name if case_sensitive else name.lower()


def _not_a_struct(spelled: str, parent: str, found: DataType) -> str:
    """Return why a field cannot be looked up."""
    kind = found.typeName()
    reason = (
        f"{parent} is {_article(kind)}, and a field inside {_article(kind)} is not a column"
        if kind in {"array", "map"}
        else f"{parent} is of type {_type_name(found)} and has no fields"
    )
    return f"there is no column {spelled!r}: {reason}"


def _article(kind: str) -> str:
    """Return a type's name with its article."""
    return f"an {kind}" if kind == "array" else f"a {kind}"


def _similar(name: str, spelled: str, path: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that a wrong name may have meant."""
    if not path and spelled in names:
        return [spell_column([spelled])]  # a column with a dot in its name, written without back-ticks
    by_folded = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), list(by_folded), n=_MOST_SUGGESTIONS)
    return [spell_column([*path, by_folded[c]]) for c in close]


def _listed(names: Iterable[str]) -> str:
    """Name the columns that there are."""
    known = list(names)
    shown = ", ".join(spell_column([n]) for n in known[:20])
    return f"; it has {shown}{', …' if len(known) > 20 else ''}" if known else "; it has no columns"
