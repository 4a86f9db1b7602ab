"""FeatureIndex: a bit per feature, held against the truth, and only for predicates that imply the feature."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations_with_replacement, product
from types import FunctionType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expressions.depth import DEEPEST
from tests.support import assert_same_rows, conf, write_objects

from skipstone import Dataset, FeatureIndex, skipping_stats
from skipstone.errors import IndexingError, SettingError
from skipstone.expressions import tree
from skipstone.expressions.from_spark import read_expression
from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Column, EqualTo, In, IsNotNull, IsNull, Literal, Not, Or
from skipstone.indexes.feature.conditions import ConditionKeys
from skipstone.indexes.feature.index import FeatureClause, FeatureFilter, FeatureMetadata
from skipstone.indexing.objects import DataObject
from skipstone.testing import assert_merges, assert_monotone, assert_represents, collect, evaluate, kept_objects

TYPES = {"x": "int", "y": "int"}
X, Y = (Column(name, type_) for name, type_ in TYPES.items())
OBJECT = DataObject("o", 1, 0)


def column(name):
    return {"k": "col", "n": [name], "t": "int", "p": False}


def literal(value):
    return {"k": "lit", "t": "int", "v": value if value is None else str(value)}


def both(kind, *children):
    return {"k": kind, "c": list(children)}


def equal(name, value):
    return both("eq", column(name), literal(value))


def call(name, *arguments, **more):
    head = {"k": "call", "n": name, "f": f"org.{name}", "u": "", "d": True, "t": "boolean", "p": "0a"}
    return {**head, "c": list(arguments), **more}


A, B, C, D = equal("x", 1), equal("x", 2), equal("y", 1), both("isnull", column("y"))
FEATURES = {
    "a": A,
    "not a": both("not", A),
    "a or c": both("or", A, C),
    "a and c": both("and", A, C),
    "b or d": both("or", B, D),
    "(a or b) and d": both("and", both("or", A, B), D),
    "in": both("in", column("x"), literal(1), literal(2), literal(0)),
    "a or (b and c)": both("or", A, both("and", B, C)),
}


def prepared(features):
    conditions = tuple(json.dumps(condition) for condition in features.values())
    return FeatureIndex(dict.fromkeys(features, "…"), conditions=conditions)


def index_of(features=FEATURES):
    """An index as it is once prepared; its inputs are computed by the truth."""
    index = prepared(features)
    names = [f"p{place}" for place in range(len(features))]
    trees = [read_expression(condition) for condition in features.values()]

    class Computed(type(index)):
        type_name = "computed_feature"

        def inputs(self, types):
            return tuple(names)

    computed = Computed(index.features, conditions=index.conditions)
    inputs = {
        name: lambda rows, tree=tree: pa.array([evaluate(tree, row) is True for row in rows.to_pylist()], pa.bool_())
        for name, tree in zip(names, trees, strict=True)
    }
    return computed, {"inputs": inputs}


ROWS = list(product((None, 0, 1, 2), (None, 1, 2)))
OBJECTS = [
    pa.record_batch({"x": pa.array([r[0] for r in rows], pa.int32()), "y": pa.array([r[1] for r in rows], pa.int32())})
    for size in range(3)
    for rows in combinations_with_replacement(ROWS, size)
]


def leaf(name, value):
    return EqualTo(Column(name, "int"), Literal(value, "int"))


LEAVES = [
    *(leaf(name, value) for name in TYPES for value in (0, 1, 2)),
    *(make(Column(name, "int")) for name in TYPES for make in (IsNull, IsNotNull)),
    *(In(X, tuple(Literal(v, "int") for v in values)) for values in ((0, 1, 2), (1, 2), (2, 1, 0))),
    tree.NotEqualTo(X, Literal(1, "int")),
    Not(leaf("x", 1)),
]
predicates = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.builds(
            lambda join, terms: join(tuple(terms)), st.sampled_from([And, Or]), st.lists(inner, min_size=2, max_size=3)
        )
        | inner.map(Not)
    ),
    max_leaves=6,
)


def test_every_pair_of_leaves_joined_in_every_way():
    index, inputs = index_of()
    pairs = [join(pair) for join in (And, Or) for pair in product(LEAVES, LEAVES)]
    metadata = collect(index, OBJECTS, TYPES, **inputs)
    outcome = assert_represents(index, [*LEAVES, *pairs], OBJECTS, TYPES, metadata=metadata)
    assert outcome.skipped > 3000
    assert_monotone(index, [*LEAVES, *pairs[:40]], metadata)


@settings(deadline=None, max_examples=150)
@given(predicates)
def test_any_predicate(predicate):
    assert_represents(_INDEX[0], [predicate], OBJECTS, TYPES, metadata=_METADATA)


_INDEX = index_of()
_METADATA = collect(_INDEX[0], OBJECTS, TYPES, **_INDEX[1])


SERVED = {
    "itself": (leaf("x", 1), {"a", "a or c", "a or (b and c)"}),
    "the other way round": (EqualTo(Literal(1, "int"), X), {"a", "a or c", "a or (b and c)"}),
    "both terms, in any order, among others": (
        And((leaf("y", 1), IsNotNull(X), leaf("x", 1))),
        {"a", "a and c", "a or c", "a or (b and c)"},
    ),
    "nested ANDs are one": (
        And((leaf("y", 2), And((leaf("y", 1), leaf("x", 1))))),
        {"a", "a and c", "a or c", "a or (b and c)"},
    ),
    "an OR of the same terms": (Or((leaf("y", 1), leaf("x", 1))), {"a or c"}),
    "an OR of some of the terms": (Or((leaf("x", 2), IsNull(Y))), {"b or d"}),
    "an OR of more": (Or((leaf("y", 1), leaf("x", 1), leaf("x", 0))), set()),
    "an AND of ORs": (And((IsNull(Y), Or((leaf("x", 2), leaf("x", 1))))), {"(a or b) and d", "b or d"}),
    "a list in any order": (In(X, tuple(Literal(v, "int") for v in (2, 0, 1))), {"in"}),
    "a shorter list": (In(X, tuple(Literal(v, "int") for v in (2, 0))), set()),
    "an AND inside an OR": (Or((And((leaf("y", 1), leaf("x", 2))), leaf("x", 1))), {"a or (b and c)"}),
    "a negation": (Not(leaf("x", 1)), {"not a"}),
    "another value": (leaf("x", 0), set()),
    "another column": (leaf("y", 2), set()),
    "another type": (EqualTo(Column("x", "bigint"), Literal(1, "bigint")), set()),
    "a partition column": (EqualTo(Column("x", "int", partition=True), Literal(1, "int")), set()),
}


@pytest.mark.parametrize(("predicate", "expected"), SERVED.values(), ids=SERVED)
def test_what_implies_a_feature_is_served_by_it(predicate, expected):
    index = prepared(FEATURES)
    names = list(FEATURES)
    labelling = FeatureFilter(index)
    normal = normalize(predicate)
    found = {names[clause.place] for clause in labelling.label_node(normal)}
    for term in normal.terms if isinstance(normal, And) else ():
        found |= {names[clause.place] for clause in labelling.label_node(term)}
    assert found == expected


class BackwardsFilter(FeatureFilter):
    """Wrong on purpose: a feature serves the predicates that it implies, not those that imply it."""

    def label_node(self, node):
        keys = ConditionKeys()
        terms = {keys.of(term) for term in (node.terms if isinstance(node, Or) else (node,))}
        trees = [normalize(read_expression(json.loads(c))) for c in self.index.conditions]
        return tuple(FeatureClause(self.index, place) for place, one in enumerate(trees) if keys.of(one) in terms)


def test_a_filter_that_reads_the_implication_backwards_is_caught():
    index, _ = index_of()
    broken = type("Broken", (type(index),), {"filters": lambda self: (BackwardsFilter(self),), "type_name": "broken_f"})
    wrong = broken(index.features, conditions=index.conditions)
    with pytest.raises(AssertionError, match="skips an object that has a row"):
        assert_represents(wrong, [Or((leaf("x", 1), leaf("y", 2)))], OBJECTS, TYPES, metadata=_METADATA)


def test_parts_merge_and_aggregates_give_the_same():
    index, inputs = index_of()
    for rows in OBJECTS[-40:]:
        assert_merges(index, rows, TYPES, **inputs)
    assert FeatureMetadata.from_aggregates({"f0": True, "f1": False, "f2": None}) == FeatureMetadata(
        (True, False, False)
    )
    assert FeatureMetadata((True, False)).merge(FeatureMetadata((False, False))).finish(OBJECT) == {
        "f0": True,
        "f1": False,
    }


def test_an_object_without_rows_has_no_feature():
    index, inputs = index_of()
    (empty,) = [rows for rows in OBJECTS if rows.num_rows == 0]
    assert not kept_objects(index, leaf("x", 1), collect(index, [empty], TYPES, **inputs)).any()


# --- keys ------------------------------------------------------------------------------------------------------------


def key_of(node):
    return ConditionKeys().of(normalize(read_expression(node)))


ARGUMENT = column("x")
DIFFERENT = {
    "parameters": (call("f", ARGUMENT), call("f", ARGUMENT, p="0b")),
    "class": (call("f", ARGUMENT), call("f", ARGUMENT, f="org.g")),
    "time zone": (call("f", ARGUMENT, z="UTC"), call("f", ARGUMENT, z="Asia/Tokyo")),
    "method": (call("f", ARGUMENT, m="A.f"), call("f", ARGUMENT, m="A.g")),
    "order of arguments": (call("f", ARGUMENT, column("y")), call("f", column("y"), ARGUMENT)),
    "arity": (call("f", call("g", ARGUMENT), ARGUMENT), call("f", call("g", ARGUMENT, ARGUMENT))),
    "mode of a cast": (
        both("isnull", {"k": "cast", "t": "long", "m": "ANSI", "z": None, "c": [ARGUMENT]}),
        both("isnull", {"k": "cast", "t": "long", "m": "TRY", "z": None, "c": [ARGUMENT]}),
    ),
    "sign of a zero in a function": (
        call("f", {"k": "lit", "t": "double", "v": "8000000000000000"}),
        call("f", {"k": "lit", "t": "double", "v": "0000000000000000"}),
    ),
    "escape": (
        {"k": "like", "e": "!", "c": [{**ARGUMENT, "t": "string"}, {"k": "lit", "t": "string", "v": "a!%b_"}]},
        {"k": "like", "e": "\\", "c": [{**ARGUMENT, "t": "string"}, {"k": "lit", "t": "string", "v": "a!%b_"}]},
    ),
    "name of a user's function": (call("f", ARGUMENT, u="python"), call("g", ARGUMENT, u="python")),
    "a user's function and Spark's": (call("f", ARGUMENT, u="python"), call("f", ARGUMENT)),
    "type of a user's function's result": (
        both("isnull", call("f", ARGUMENT, u="java", t="decimal(10,2)")),
        both("isnull", call("f", ARGUMENT, u="java", t="decimal(10,1)")),
    ),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_predicates_have_different_keys(one, other):
    assert key_of(one) is not None
    assert key_of(one) == key_of(json.loads(json.dumps(one)))
    assert key_of(one) != key_of(other)


UNKNOWN = {
    "parameters that are not known": call("f", ARGUMENT, p="?"),
    "no parameters": call("f", ARGUMENT, p=""),
    "not deterministic": call("f", ARGUMENT, d=False),
    "a literal without an exact form": call("f", {"k": "lit", "t": "map<int,int>", "x": True}),
    "metadata of the file": both("eq", call("_metadata", p="", t="integer"), literal(1)),
    "what is not understood": {"k": "news", "c": [ARGUMENT]},
}


@pytest.mark.parametrize("node", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_wholly_known_has_no_key(node):
    assert key_of(node) is None
    assert key_of(both("and", node, A)) is None
    assert FeatureFilter(prepared({"f": node})).label_node(normalize(read_expression(node))) == ()


def test_a_user_function_is_known_by_name_since_the_planner_knows_its_identity():
    assert key_of(call("f", ARGUMENT, u="python", id="1/100")) == key_of(call("F", ARGUMENT, u="python", id="2/100"))


def test_variables_of_lambdas_are_told_apart_by_their_places():
    def variable(number):
        return call("namedlambdavariable", f="org.NamedLambdaVariable", id=str(number), t="integer")

    def over(first, second):
        return call("exists", ARGUMENT, call("g", variable(first), variable(second)))

    assert key_of(over(7, 8)) == key_of(over(21, 20))
    assert key_of(over(7, 8)) != key_of(over(7, 7))


def test_deep_conditions_have_keys():
    deep = leaf("x", 1)
    for number in range(DEEPEST):
        deep = (And, Or)[number % 2]((deep, leaf("y", number)))
    other = ConditionKeys()
    assert other.of(deep) == ConditionKeys().of(deep)
    assert FeatureFilter(prepared({"a": A})).label_node(deep) == ()


@pytest.mark.parametrize(
    "features", [{}, [], None, 3, {"": "x = 1"}, {"a": ""}, {"a": "  "}, {"a": 3}, {1: "x = 1"}, "abc"]
)
def test_features_must_be_names_and_predicates(features):
    with pytest.raises(SettingError):
        FeatureIndex(features)


def test_names_options_columns_and_functions():
    index = prepared({"a": A, "f": both("eq", call("f", column("y"), u="python", t="integer"), literal(3))})
    assert index.name == "feature(a, f)"
    assert index.columns == ("x", "y")
    assert index.functions == ("f",)
    assert index.runs_sql
    again = FeatureIndex.from_options(index.name, json.loads(json.dumps(index.options())))
    assert again == index
    assert again.options() == json.loads(json.dumps(index.options()))
    assert hash(again) == hash(index)
    assert FeatureIndex({str(n): "x = 1" for n in range(10)}).name == "feature(0, 1, 2, 3, 4, 5, 6, 7, … 2 more)"
    assert replace(index, name="mine").name == "mine"


# --- through Spark ---------------------------------------------------------------------------------------------------

SCHEMA = "id int, s string, ua string, d date, ts timestamp, arr array<int>, st array<struct<a: int, b: int>>"


def row(n):
    moment = f"timestamp'{1970 + n}-06-01 00:00:00'"
    day = f"date'2024-01-{n + 1:02}'"
    return f"({n}, '{n}', 'agent {n % 7}/{n}', {day}, {moment}, array({n}), array(struct({n}, {n + 1})))"


# Feature, and other ways of asking for it or for more.
ASKED = {
    "ua LIKE 'agent 3%'": ["id > 1 AND ua LIKE 'agent 3%'", "startswith(ua, 'agent 3')"],
    "id IN (3, 14, 15)": ["id IN (15, 3, 14) AND s IS NOT NULL"],
    "id BETWEEN 6 AND 7": ["id <= 7 AND id >= 6 AND s > '6'"],
    "s <=> '11'": ["s = '11'"],
    "CASE WHEN id > 9 THEN s ELSE ua END = '12'": [],
    "tagged(ua) = 'agent 5'": ["id < 100 AND tagged(ua) = 'agent 5'"],
    "d = '2024-01-09'": ["d = date'2024-01-09'"],
    "CAST(s AS INT) = 13": [],
    "year(ts) = 1975": ["(year(ts) = 1975 AND id > 0) OR s = '11'"],
    "id = 1 OR s = '2'": ["s = '2' OR id = 1", "id = 1", "s = '2' AND id > 0"],
    "exists(arr, v -> v = 10)": ["exists(arr, w -> w = 10)"],
    "st[0].b = 9": [],
    "id + 1 = 5": [],
    "NOT (ua LIKE '%1%') AND id < 3": [],
}
NOT_ASKED = [
    "st[0].a = 9",
    "try_add(id, 1) = 5",
    "timestampadd(DAY, 1, ts) > timestamp'1984-01-01 00:00:00'",
    "id = 1 OR s = '3'",
    "tagged(s) = 'agent 5'",
]


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    rows = [", ".join(map(row, range(2 * n, 2 * n + 2))) for n in range(8)]
    path = write_objects(spark, tmp_path_factory.mktemp("feature") / "d", SCHEMA, rows)

    def tagged(text):
        return text.split("/")[0]

    # As in a notebook: the sources of a module, and of all that it imports, would be part of the function's identity.
    spark.udf.register("tagged", FunctionType(tagged.__code__, {"__name__": "__main__"}))
    features = {f"f{n}": predicate for n, predicate in enumerate(ASKED)}
    features["later"] = "timestampadd(HOUR, 1, ts) > timestamp'1984-01-01 00:00:00'"
    index = FeatureIndex(features, name="features")
    made = Dataset.for_path(spark, path)
    made.create_indexes(index)
    return made, index, path


def test_queries_that_ask_for_a_feature_skip(spark, dataset):
    df = spark.read.parquet(dataset[2])
    for feature, others in ASKED.items():
        for predicate in (feature, *others):
            assert assert_same_rows(spark, df.where(predicate)) >= 5, predicate
    for predicate in NOT_ASKED:
        assert assert_same_rows(spark, df.where(predicate)) == 0, predicate


@pytest.mark.parametrize(
    ("setting", "value", "lost", "kept"),
    [
        ("spark.sql.session.timeZone", "Pacific/Auckland", "year(ts) = 1975", "id + 1 = 5"),
        ("spark.sql.ansi.enabled", "false", "id + 1 = 5", "d = '2024-01-09'"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", "id + 1 = 5", "s <=> '11'"),
        ("spark.sql.shuffle.partitions", "3", "id + 1 = 6", "id + 1 = 5"),
    ],
)
def test_settings_that_may_change_a_feature_make_it_another(spark, dataset, setting, value, lost, kept):
    df = spark.read.parquet(dataset[2])
    with conf(spark, {setting: value}):
        assert assert_same_rows(spark, df.where(lost)) == 0
        assert assert_same_rows(spark, df.where(kept)) >= 5


def test_sql_in_a_manifest_is_run_again_only_when_it_is_restated(spark, dataset):
    made, index, _ = dataset
    (problem,) = made.refresh().problems
    assert "features keeps SQL" in problem
    assert made.refresh(indexes=[index]).problems == ()


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ("rand() > id", "calls rand, which is not deterministic"),
        ("id + 1", "FILTER_NOT_BOOLEAN"),
        ("nobody = 3", "UNRESOLVED_COLUMN"),
        ("id = ", "PARSE_SYNTAX_ERROR"),
        ("id) OR (id", "PARSE_SYNTAX_ERROR"),
        ("true", "the same for every row"),
        ("d = current_date()", "asks for the current time"),
        ("ts < now()", "asks for the current time"),
        ("_metadata.file_size > id", "is about the files"),
        ("ua COLLATE UTF8_LCASE = 'x'", "by a collation"),
        ("CAST(arr AS STRING) = '[1]'", "depends on the session's settings"),
        ("tagged(ts) = 'x'", "the time zone of the session"),
        ("st[0] = named_struct('a', 1, 'b', 2)", "cannot be recognised"),
    ],
)
def test_what_cannot_be_a_feature_says_why(spark, dataset, predicate, said):
    with pytest.raises((SettingError, IndexingError), match=said) as raised:
        dataset[0].create_indexes(FeatureIndex({"odd one": predicate}))
    assert "feature odd one" in str(raised.value)


def test_padded_columns_are_refused_and_both_paths_agree(spark, tmp_path):
    spark.sql(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(5), n INT) USING csv LOCATION '{tmp_path / 'p'}'")
    try:
        spark.sql("INSERT INTO padded VALUES ('ab', 'ab', 1), ('cd', 'cd', 2)")
        made = Dataset.for_table(spark, "padded")
        with pytest.raises(SettingError, match="a column of fixed length"):
            made.create_indexes(FeatureIndex({"c": "c = 'ab'"}))
        made.create_indexes(FeatureIndex({"v": "v = 'xy'", "n": "n = 2"}))  # CSV: by Spark's own aggregates
        with skipping_stats(spark) as stats:
            assert spark.table("padded").where("v = 'xy'").count() == 0
            assert spark.table("padded").where("n = 2").count() == 1
        assert [entry.objects.kept for entry in stats] == [0, 1]
    finally:
        spark.sql("DROP TABLE padded")
