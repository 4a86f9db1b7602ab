"""Facts that an index declares: the aggregates that compute them, and when a footer stands for them."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from skipstone import Index, MetadataType, MinMaxIndex, registry
from skipstone.engines.spark.aggregates import aggregates_of
from skipstone.engines.spark.footers import footer_roles
from skipstone.indexing.records import ColumnRecord
from skipstone.indexing.source import BoundIndex
from skipstone.toolkit import Fact


@dataclass(frozen=True)
class Greatest(MetadataType):
    value: int

    @classmethod
    def from_aggregates(cls, row):
        return cls(row["value"])

    @classmethod
    def fields(cls, inputs):
        return {"value": pa.int64()}

    def merge(self, other):
        return Greatest(max(self.value, other.value))


class FromRows(Greatest):
    from_aggregates = MetadataType.from_aggregates


@pytest.fixture
def greatest_index(monkeypatch):
    """An index as a plug-in would have it, registered for one test."""
    monkeypatch.setattr(registry, "_index_types", dict(registry._index_types))

    @dataclass(frozen=True)
    class GreatestIndex(Index):
        metadata_type = Greatest
        column: str

        def facts(self, types):
            return {"value": Fact("max", self.column)} if types == ("int",) else None

        def collect_metadata(self, rows):
            raise NotImplementedError

        def filters(self):
            return ()

    return GreatestIndex


def bound(index, type_, *, partition=False):
    return BoundIndex("0", index, (ColumnRecord(index.column, type_, partition),))


def test_aggregates_and_footers_follow_from_the_same_facts(greatest_index):
    made = bound(greatest_index("s.`odd.name`"), "int")
    assert aggregates_of([made]) == [{"value": "max(`s`.`odd.name`)"}]
    assert footer_roles(made) == {"value": "max"}


def test_without_facts_there_is_neither(greatest_index):
    made = bound(greatest_index("n"), "bigint")
    assert aggregates_of([made]) is None
    assert footer_roles(made) is None


def test_a_type_that_makes_nothing_of_facts_is_collected_from_rows(greatest_index, monkeypatch):
    for metadata_type in (FromRows, object):
        monkeypatch.setattr(greatest_index, "metadata_type", metadata_type)
        made = bound(greatest_index("n"), "int")
        assert aggregates_of([made]) is None
        assert footer_roles(made) is None


def test_aggregates_of_ones_own_are_computed_and_no_footer_stands_for_them(greatest_index, monkeypatch):
    monkeypatch.setattr(greatest_index, "aggregates", lambda self, types: {"value": "max(abs(n))"})
    made = bound(greatest_index("n"), "int")
    assert aggregates_of([made]) == [{"value": "max(abs(n))"}]
    assert footer_roles(made) is None


def test_a_fact_of_another_column_is_in_no_footer_of_this_one(greatest_index, monkeypatch):
    monkeypatch.setattr(greatest_index, "facts", lambda self, types: {"value": Fact("max", "m")})
    assert footer_roles(bound(greatest_index("n"), "int")) is None


def test_footers_have_bounds_and_counts_and_what_is_read_beside_them_nan():
    roles = {"lower": "min", "upper": "max", "null_count": "nulls", "row_count": "rows"}
    assert footer_roles(bound(MinMaxIndex("n"), "string")) == roles
    assert footer_roles(bound(MinMaxIndex("n"), "double")) == {**roles, "nan_count": "nans"}
    assert footer_roles(bound(MinMaxIndex("n"), "int", partition=True)) is None


def test_what_spark_cannot_give_exactly_has_no_aggregates():
    assert MinMaxIndex("t").aggregates(("time(6)",)) is None
    assert MinMaxIndex("x").aggregates(("float",))["lower"] == "min(CASE WHEN NOT isnan(`x`) THEN `x` END)"
