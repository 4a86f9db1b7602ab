import math
from dataclasses import dataclass

import pyarrow as pa
import pytest

from skipstone.expressions import tree
from skipstone.expressions.tree import Call, Column, EqualTo, Like, Literal, Not
from skipstone.indexes.value_list import (
    ValueListClause,
    ValueListIndex,
    ValueListMatchClause,
    ValueListMetadata,
)
from skipstone.indexing.index import Index
from skipstone.indexing.objects import DataObject
from skipstone.querying.filter import Filter
from skipstone.testing import InMemoryMetadata, assert_represents, collect, kept_objects

OBJECT = DataObject("o", 1, 0)
TEXT = Column("c", "string")


def agent_name(agent):
    return None if agent is None else agent.split("/")[0]


@dataclass(frozen=True)
class AgentIndex(Index):
    """The paper's appendix: the distinct agent names of each object."""

    column: str
    metadata_type = ValueListMetadata

    def collect_metadata(self, rows):
        return ValueListMetadata.of([agent_name(agent) for agent in rows.column(0).to_pylist()])

    def filters(self):
        return (AgentFilter(self),)


@dataclass(frozen=True)
class AgentFilter(Filter):
    index: AgentIndex

    def label_node(self, node):
        match node:
            case EqualTo(Call("getAgentName", (Column(self.index.column),)), Literal(name)):
                return ValueListClause(self.index, (name,))
            case Like(Call("getAgentName", (Column(self.index.column),))):
                return ValueListMatchClause(self.index, node)


def test_a_custom_index_of_a_function_reuses_the_list_and_its_clauses():
    agents = [["Firefox/1", "Firefox/2", None], ["curl/7"], [None, None], []]
    objects = [pa.record_batch({"ua": pa.array(rows, pa.string())}) for rows in agents]
    name = Call("getAgentName", (Column("ua", "string"),), "string", "python")
    predicates = [EqualTo(name, Literal("Firefox", "string")), Like(name, Literal("c%l", "string"))]
    functions = {"getAgentName": agent_name}
    for parts in (None, 1):
        outcome = assert_represents(
            AgentIndex("ua"), predicates, objects, {"ua": "string"}, functions=functions, rows_per_part=parts
        )
        assert (outcome.relevant, outcome.skipped) == (2, 6)


def test_text_that_is_not_utf8_makes_the_list_unknown_and_nothing_else():
    bad = pa.array([b"a\xff", b"b", None], pa.binary()).view(pa.string())
    good = ValueListMetadata.of(["c"])
    for state in (
        ValueListMetadata.of(bad),
        ValueListMetadata.of(bad).merge(good),
        good.merge(ValueListMetadata.of(bad)),
    ):
        assert state.finish(OBJECT) == {"values": None, "null_count": 1}


def test_a_list_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr("skipstone.indexes.value_list.MAX_BYTES", 100)
    few = ValueListMetadata.of(pa.array(range(10)))
    assert few.finish(OBJECT)["values"] is not None
    assert few.merge(ValueListMetadata.of(pa.array(range(10, 20)))).finish(OBJECT)["values"] is None
    assert ValueListMetadata.of(pa.array(range(20))).finish(OBJECT)["values"] is None


def test_many_parts_stay_distinct():
    state = ValueListMetadata.of(pa.array([0]))
    for number in range(500):
        state = state.merge(ValueListMetadata.of(pa.array(range(number % 50 * 20, number % 50 * 20 + 40))))
    assert len(state.values.parts) < 500
    assert sorted(state.finish(OBJECT)["values"].to_pylist()) == list(range(1020))


def test_dictionaries_large_text_and_nulls_only_are_taken():
    assert ValueListMetadata.of(pa.array(["a", "a", None]).dictionary_encode()).finish(OBJECT)[
        "values"
    ].to_pylist() == ["a"]
    assert ValueListMetadata.of(pa.array(["a"], pa.large_string())).finish(OBJECT)["values"].type == pa.string()
    assert ValueListMetadata.of([None]).merge(ValueListMetadata.of(["a"])).finish(OBJECT)["values"].to_pylist() == ["a"]


def test_clause_knows_null_nan_and_both_zeros():
    lists = pa.array([[1.0], [], [0.0], None], pa.list_(pa.float64()))
    counts = {"null_count": pa.array([0, 1, 0, 0]), "nan_count": pa.array([0, 0, 1, 0])}
    known = InMemoryMetadata({"values": lists, **counts}, pa.array([1, 1, 2, 1]))
    index = ValueListIndex("c")
    assert ValueListClause(index, (-0.0,)).might_match(known).to_pylist() == [False, False, True, None]
    assert ValueListClause(index, (math.nan,)).might_match(known).to_pylist() == [False, False, True, None]
    assert ValueListClause(index, (None, 1.0)).might_match(known).to_pylist() == [True, True, False, None]
    assert [name for _, name in ValueListClause(index, (1.0,)).requires] == ["values"]


def test_lists_may_be_a_slice_and_null_lists_may_hide_values():
    offsets, mask = pa.array([0, 1, 2, 2, 3], pa.int32()), pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(offsets, pa.array([7, 8, 9]), mask=mask)
    known = InMemoryMetadata({"values": lists.slice(1)}, pa.array([1, 1, 1]))
    clause = ValueListClause(ValueListIndex("c"), (7, 8, 9))
    assert clause.might_match(known).to_pylist() == [None, False, True]


@pytest.mark.parametrize(
    ("pattern", "escape", "matching"),
    [
        ("a_b", "\\", ["a😀b", "a\nb", "a.b"]),
        ("a.b", "\\", ["a.b"]),
        ("%(", "\\", ["x("]),
        ("\\%%", "\\", ["%x"]),
        ("%%x", "%", ["%x"]),
        ("\0%", "\\", ["\0a"]),
        ("[a-z]", "\\", ["[a-z]"]),
        ("\\\\E%", "\\", ["\\E"]),
    ],
)
def test_like_is_literal_but_for_its_wildcards(pattern, escape, matching):
    texts = ["a😀b", "a\nb", "a.b", "x(", "%x", "\0a", "[a-z]", "\\E", "ab", ""]
    objects = [pa.record_batch({"c": [text]}) for text in texts]
    predicate = Like(TEXT, Literal(pattern, "string"), escape)
    index = ValueListIndex("c")
    outcome = assert_represents(index, [predicate, Not(predicate)], objects, {"c": "string"})
    assert outcome.relevant == len(texts) == outcome.skipped
    kept = kept_objects(index, predicate, collect(index, objects, {"c": "string"}))
    assert [text for text, keep in zip(texts, kept, strict=True) if keep] == matching


def test_a_pattern_that_spark_refuses_gets_no_clause():
    (labelling,) = ValueListIndex("c").filters()
    for pattern, escape in (("a\\", "\\"), ("a\\b", "\\"), ("a", ""), ("a", "ab"), ("a", "😀")):
        assert labelling.label_node(Like(TEXT, Literal(pattern, "string"), escape)) is None


def test_a_literal_that_is_not_unicode_gets_no_clause():
    (labelling,) = ValueListIndex("c").filters()
    for make in (tree.EqualTo, tree.NotEqualTo, tree.LessThan, tree.StartsWith, tree.Like):
        assert labelling.label_node(make(TEXT, Literal("a\ud800", "string"))) is None
