"""Columns are found as Spark would find them, and errors say what was meant."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import StructType

from skipstone.engines.spark.columns import bind_indexes
from skipstone.engines.spark.description import ScanDescription
from skipstone.errors import ColumnNotFoundError, IndexExistsError, IndexingError, UnsupportedTypeError
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex

pytestmark = pytest.mark.usefixtures("spark")  # the JVM parses the schemas


class Described:
    """A scan that only describes itself."""

    def __init__(self, data, partition="", *, fmt="parquet", case_sensitive=False, **options):
        said = {
            "roots": ["file:/data"],
            "schema_digest": "",
            "columns": [],
            "data_schema": StructType.fromDDL(data).json() if isinstance(data, str) else json.dumps(data),
            "partition_schema": StructType.fromDDL(partition).json(),
            "conf": {"caseSensitive": str(case_sensitive).lower()},
            "format": fmt,
            "options": options,
        }
        self.described = ScanDescription.of(said)


def resolved(scan, *indexes):
    return [
        (b.index.name, *((c.name, c.type, c.partition) for c in b.columns))
        for b in bind_indexes(scan.described, indexes)
    ]


@pytest.mark.parametrize(
    ("spelled", "name", "type_"),
    [
        ("a", "A", "int"),
        ("`a`", "A", "int"),
        ("s.X", "s.x", "decimal(10,2)"),
        ("`s`.`x`", "s.x", "decimal(10,2)"),
        ("`odd.name`", "`odd.name`", "timestamp_ntz"),
        ("s.`in ner`.y", "s.`in ner`.y", "date"),
        ("`tick```", "`tick```", "string"),
        ("ym", "ym", "interval year to month"),
        ("p", "p", "int"),
    ],
)
def test_resolves_to_the_schemas_spelling(spelled, name, type_):
    schema = (
        "A INT, s STRUCT<x: DECIMAL(10,2), `in ner`: STRUCT<y: DATE>>, `odd.name` TIMESTAMP_NTZ, `tick``` STRING, "
        "ym INTERVAL YEAR TO MONTH"
    )
    assert resolved(Described(schema, "p INT"), MinMaxIndex(spelled)) == [
        (f"minmax({name})", (name, type_, name == "p"))
    ]


def test_a_collation_is_part_of_the_type():
    with pytest.raises(UnsupportedTypeError, match="string collate UTF8_LCASE"):
        resolved(Described("c STRING COLLATE UTF8_LCASE"), MinMaxIndex("c"))
    with pytest.raises(UnsupportedTypeError, match="string collate UTF8_LCASE"):
        resolved(Described("s STRUCT<c: STRING COLLATE UTF8_LCASE>"), MinMaxIndex("s.c"))


def test_a_partition_column_wins_over_a_column_of_the_files():
    assert resolved(Described("a INT, p STRING", "P INT"), MinMaxIndex("p")) == [("minmax(P)", ("P", "int", True))]


def test_case_sensitivity_follows_the_setting():
    scan = Described("a INT, A STRING", case_sensitive=True)
    assert resolved(scan, MinMaxIndex("A")) == [("minmax(A)", ("A", "string", False))]
    with pytest.raises(ColumnNotFoundError, match="could be a, A"):
        resolved(Described("a INT, A STRING"), MinMaxIndex("A"))
    with pytest.raises(ColumnNotFoundError):
        resolved(Described("a INT", case_sensitive=True), MinMaxIndex("A"))


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        ("timestmp", "did you mean timestamp"),
        ("s.ecks", "the struct s has no ecks"),
        ("odd.name", "did you mean `odd.name`"),
        ("l.x", "inside an array is not a column"),
        ("l.element.x", "inside an array is not a column"),
        ("m.key", "inside a map is not a column"),
        ("timestamp.x", "of type timestamp and has no fields"),
        ("`s", "back-ticks"),
    ],
)
def test_unknown_columns_say_what_was_meant(spelled, said):
    schema = (
        "timestamp TIMESTAMP, s STRUCT<x: INT>, `odd.name` INT, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>"
    )
    with pytest.raises(ColumnNotFoundError) as caught:
        resolved(Described(schema), MinMaxIndex(spelled))
    assert said in str(caught.value)


def test_star_is_every_top_level_column_of_a_fitting_type():
    scan = Described("a INT, s STRUCT<x: INT>, l ARRAY<INT>, c STRING COLLATE UNICODE, b STRING", "p DATE")
    assert [name for name, *_ in resolved(scan, MinMaxIndex("*"))] == ["minmax(a)", "minmax(b)", "minmax(p)"]
    with pytest.raises(UnsupportedTypeError, match="no column has a type"):
        resolved(Described("l ARRAY<INT>"), MinMaxIndex("*"))


def test_one_name_twice_is_refused():
    with pytest.raises(IndexExistsError, match=r"minmax\(a\)"):
        resolved(Described("a INT"), MinMaxIndex("a"), MinMaxIndex("A"))
    assert len(resolved(Described("a INT"), MinMaxIndex("a"), MinMaxIndex("a", name="other"), ValueListIndex("a"))) == 3


def test_the_column_of_unreadable_records_cannot_be_indexed():
    scan = Described("a INT, _corrupt_record STRING", fmt="json")
    with pytest.raises(IndexingError, match="could not be parsed"):
        resolved(scan, MinMaxIndex("_corrupt_record"))
    assert [name for name, *_ in resolved(scan, MinMaxIndex("*"))] == ["minmax(a)"]
    named = Described("a INT, bad STRING", fmt="csv", columnNameOfCorruptRecord="bad")
    with pytest.raises(IndexingError, match="could not be parsed"):
        resolved(named, MinMaxIndex("bad"))
    assert resolved(Described("_corrupt_record STRING"), MinMaxIndex("_corrupt_record"))


def test_a_user_defined_type_counts_as_what_it_is_stored_as():
    schema = {
        "type": "struct",
        "fields": [
            {
                "name": "u",
                "type": {"type": "udt", "class": "org.example.Point", "sqlType": "long"},
                "nullable": True,
                "metadata": {},
            },
            {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
        ],
    }
    assert resolved(Described(schema), MinMaxIndex("a")) == [("minmax(a)", ("a", "int", False))]
