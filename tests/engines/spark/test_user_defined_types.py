"""Columns of user-defined types: known by their class, refused by indexes that cannot serve them, open to one's own."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql.types import DoubleType, StructField, StructType, UserDefinedType

import skipstone
from skipstone import BloomFilterIndex, Dataset, Filter, HybridIndex, Index, MinMaxIndex, ValueListIndex
from skipstone.engines.spark.columns import ScanSchema
from skipstone.engines.spark.description import ScanDescription
from skipstone.engines.spark.functions import state_version
from skipstone.errors import ColumnNotFoundError, UnsupportedTypeError
from skipstone.expressions.tree import Call, Column, EqualTo, Literal
from skipstone.expressions.types import catalog_type
from skipstone.indexes.value_list import ValueListClause, ValueListMetadata
from skipstone.toolkit import quoted


class Metres:
    """A length."""

    __UDT__ = None

    def __init__(self, value):
        self.value = value


class MetresUDT(UserDefinedType):
    """A type that only Python knows."""

    @classmethod
    def sqlType(cls):
        return DoubleType()

    @classmethod
    def module(cls):
        return __name__

    def serialize(self, obj):
        return obj.value

    def deserialize(self, datum):
        return Metres(datum)


Metres.__UDT__ = MetresUDT()


def whole_part(column):
    """The UDF, of a vector or a length."""
    return None if column is None else int(column.value if isinstance(column, Metres) else column[0])


@dataclass(frozen=True)
class WholePartIndex(Index):
    """The whole parts of each object's values, as Spark's function gives them."""

    column: str
    metadata_type = ValueListMetadata

    @property
    def functions(self):
        return ("whole_part",)

    def inputs(self, types):
        return (f"whole_part({quoted(self.column)})",)

    def collect_metadata(self, rows):
        return ValueListMetadata.of(rows.column(0))

    def filters(self):
        return (WholePartFilter(self),)


class WholeParts(ValueListMetadata):
    """Whole numbers, whatever they were made of."""

    @classmethod
    def fields(cls, inputs):
        return super().fields((pa.int64(),))


@dataclass(frozen=True)
class StoredIndex(WholePartIndex):
    """The same, made of the values as they are stored."""

    metadata_type = WholeParts

    def inputs(self, types):
        return (self.column,)

    def collect_metadata(self, rows):
        stored = rows.column(0).to_pylist()
        whole = [None if v is None else int(v["values"][0] if isinstance(v, dict) else v) for v in stored]
        return WholeParts.of(pa.array(whole, pa.int64()))


@dataclass(frozen=True)
class WholePartFilter(Filter):
    """A row with ``whole_part(c) = v`` puts ``v`` into its object's list."""

    index: Index

    def label_node(self, node):
        match node:
            case EqualTo(Call("whole_part", (Column(self.index.column),)), Literal(value)):
                return ValueListClause(self.index, (value,))


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    place = str(tmp_path_factory.mktemp("udts") / "data")
    schema = StructType(
        [
            StructField("id", DoubleType()),
            StructField("vector", VectorUDT()),
            StructField("length", MetresUDT()),
            StructField("s", StructType([StructField("vector", VectorUDT())])),
        ]
    )
    rows = [(float(n), Vectors.dense([n / 10, 1.0]), Metres(n / 10), (Vectors.dense([1.0]),)) for n in range(80)]
    spark.createDataFrame(rows, schema).repartitionByRange(8, "id").write.parquet(place)
    spark.udf.register("whole_part", whole_part, "int")
    state_version(spark, "whole_part", "1")
    return place


@pytest.mark.parametrize("make", [WholePartIndex, StoredIndex])
@pytest.mark.parametrize("column", ["vector", "length"])
def test_ones_own_index_on_a_user_defined_type_serves_its_function(spark, folder, column, make):
    dataset = Dataset.for_path(spark, folder)
    dataset.create_indexes(make(column))
    try:
        with skipstone.skipping_stats(spark) as stats:
            found = spark.read.parquet(folder).where(f"whole_part({column}) = 3").select("id").collect()
        assert sorted(row.id for row in found) == [float(n) for n in range(30, 40)]
        assert stats[-1].objects.skipped == 7, stats[-1].not_used
    finally:
        dataset.drop_indexes()


@pytest.mark.parametrize("make", [MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex])
def test_indexes_of_values_refuse_it(spark, folder, make):
    dataset = Dataset.for_path(spark, folder)
    with pytest.raises(UnsupportedTypeError, match="vector is udt:org.apache.spark.ml.linalg.VectorUDT"):
        dataset.create_indexes(make("vector"))
    with pytest.raises(UnsupportedTypeError, match="MetresUDT double"):
        dataset.create_indexes(make("length"))
    with pytest.raises(UnsupportedTypeError, match="VectorUDT"):
        dataset.create_indexes(make("s.vector"))
    with pytest.raises(ColumnNotFoundError, match="has no fields"):
        dataset.create_indexes(make("vector.values"))


def test_star_leaves_it_out(spark, folder):
    dataset = Dataset.for_path(spark, folder)
    dataset.create_indexes(ValueListIndex("*"))
    try:
        assert [row["name"] for row in dataset.describe().collect()] == ["valuelist(id)"]
    finally:
        dataset.drop_indexes()


POINT = {"type": "udt", "class": "org.example.Point", "pyClass": None, "sqlType": "long"}
METRES = {"type": "udt", "pyClass": "shapes.Metres", "serializedClass": "x", "sqlType": "double"}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (POINT, "udt:org.example.Point"),
        (METRES, "udt:shapes.Metres double"),
        ({"type": "array", "elementType": POINT, "containsNull": True}, "array<udt:org.example.Point>"),
        (
            {"type": "map", "keyType": "string", "valueType": METRES, "valueContainsNull": True},
            "map<string,udt:shapes.Metres double>",
        ),
        (
            {"type": "struct", "fields": [{"name": "p", "type": POINT, "nullable": True, "metadata": {}}]},
            "struct<p:udt:org.example.Point>",
        ),
    ],
)
def test_one_spelling_in_schemas_and_in_plans(node, expected):
    schema = {"type": "struct", "fields": [{"name": "c", "type": node, "nullable": True, "metadata": {}}]}
    none = {"type": "struct", "fields": []}
    schemas = {"data_schema": json.dumps(schema), "partition_schema": json.dumps(none), "schema_digest": ""}
    said = {**schemas, "roots": [], "columns": [], "conf": {}, "format": "parquet", "options": {}}
    assert ScanSchema.of(ScanDescription.of(said)).resolve("c").type == expected
    assert catalog_type(json.dumps(node)) == expected


def test_two_types_of_python_are_two_types():
    other = {**METRES, "sqlType": {"type": "array", "elementType": "double", "containsNull": False}}
    assert catalog_type(json.dumps(METRES)) != catalog_type(json.dumps(other))
