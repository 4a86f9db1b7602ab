"""FormattedIndex: the results of a user's function held against the truth, and only of that function."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from types import FunctionType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import assert_same_rows, write_objects

from skipstone import Dataset, FormattedIndex, skipping_stats
from skipstone.errors import IndexingError, SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import Call, Cast, Column, EqualTo, IsNaN, Like, Literal, Not
from skipstone.indexes.formatted import FormattedFilter
from skipstone.indexes.value_list import ValueListMatchClause
from skipstone.testing import assert_merges, assert_monotone, assert_represents, collect, kept_objects, values_of

COLUMN = Column("ua", "string")
AGENTS = (None, "", "Firefox/1", "Firefox/2", "curl/7", "cürl/7", "ROBOT/x")
COMPARISONS = (
    tree.EqualTo, tree.NotEqualTo, tree.EqualNullSafe, tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan,
    tree.GreaterThanOrEqual,
)  # fmt: skip


def agent_name(agent):
    """NULL for NULL, and for one text that is not NULL."""
    return None if agent in (None, "ROBOT/x") else agent.split("/")[0]


def called(name="agentName", arguments=(COLUMN,), type_="string", kind="python"):
    return Call(name, tuple(arguments), type_, kind, identity="f/100")


def index_of(function, type_, spark_type="string"):
    """The index as it is once prepared, and how to compute its input."""
    index = FormattedIndex("ua", extract="agentName", type=type_)

    def compute(rows):
        return pa.array([function(value) for value in rows.column("ua").to_pylist()], arrow_type(type_))

    return index, {"inputs": {index.inputs(())[0]: compute}}


def arrow_type(type_):
    return {"string": pa.string(), "double": pa.float64(), "int": pa.int32()}[type_]


def objects_of(values):
    small = [rows for size in range(3) for rows in combinations_with_replacement(values, size)]
    return [pa.record_batch({"ua": pa.array(rows, pa.string())}) for rows in small]


def predicates_on(subject, literals):
    found = [make(subject, literal) for make in COMPARISONS for literal in literals]
    found += [Not(tree.EqualNullSafe(subject, literal)) for literal in literals]
    found += [make(subject, tuple(literals[:2])) for make in (tree.In, tree.NotIn)]
    found += [tree.IsNull(subject), tree.IsNotNull(subject)]
    return found


def test_every_predicate_on_text_over_every_small_object():
    index, inputs = index_of(agent_name, "string")
    literals = [Literal(text, "string") for text in ("", "Firefox", "curl", "cürl", "D", "z")]
    predicates = predicates_on(called(), literals)
    for place in (tree.StartsWith, tree.EndsWith, tree.Contains, Like):
        for text in ("", "F", "rl", "%r%", "c_rl", "Fire%", "\\%"):
            predicates += [place(called(), Literal(text, "string")), Not(place(called(), Literal(text, "string")))]
    objects = objects_of(AGENTS)
    outcome = assert_represents(
        index, predicates, objects, {"ua": "string"}, functions={"agentName": agent_name}, **inputs
    )
    assert outcome.skipped == outcome.pairs - outcome.relevant  # what a list says is exact
    assert outcome.skipped > 1000


def test_every_predicate_on_doubles_with_nan_and_both_zeros():
    numbers = {"n": None, "q": math.nan, "0": 0.0, "-": -0.0, "1": 1.0}
    index, inputs = index_of(numbers.get, "double")
    subject = called(type_="double")
    literals = [Literal(value, "double") for value in (math.nan, -0.0, 0.0, 1.0, 0.5, math.inf)]
    predicates = [*predicates_on(subject, literals), IsNaN(subject), Not(IsNaN(subject))]
    outcome = assert_represents(
        index, predicates, objects_of(tuple(numbers)), {"ua": "string"}, functions={"agentName": numbers.get}, **inputs
    )
    assert outcome.skipped == outcome.pairs - outcome.relevant > 100


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(values_of("string"), max_size=4), min_size=1, max_size=4), values_of("string", nulls=False))
def test_any_text(objects, text):
    index, inputs = index_of(agent_name, "string")
    batches = [pa.record_batch({"ua": pa.array(rows, pa.string())}) for rows in objects]
    names = [agent_name(row) for rows in objects for row in rows if agent_name(row) is not None]
    literals = [Literal(name, "string") for name in (*names[:3], text)]
    for parts in (None, 1):
        assert_represents(
            index,
            predicates_on(called(), literals),
            batches,
            {"ua": "string"},
            functions={"agentName": agent_name},
            rows_per_part=parts,
            **inputs,
        )


def test_parts_merge_and_ignorance_keeps():
    index, inputs = index_of(agent_name, "string")
    rows = pa.record_batch({"ua": pa.array(AGENTS, pa.string())})
    assert_merges(index, rows, {"ua": "string"}, **inputs)
    metadata = collect(index, objects_of(AGENTS), {"ua": "string"}, **inputs)
    assert_monotone(index, predicates_on(called(), [Literal("curl", "string"), Literal("x", "string")]), metadata)


NOT_IT = {
    "another function": called("agentNames"),
    "Spark's own function of that name": called(kind=""),
    "another column": called(arguments=(Column("other", "string"),)),
    "a function of the column": called(arguments=(Call("lower", (COLUMN,), "string"),)),
    "a cast of the column": called(arguments=(Cast(COLUMN, "binary"),)),
    "one more argument": called(arguments=(COLUMN, Literal(1, "int"))),
    "no argument": called(arguments=()),
    "another type of result": called(type_="string collate UTF8_LCASE"),
    "the column itself": COLUMN,
}


@pytest.mark.parametrize("subject", NOT_IT.values(), ids=NOT_IT)
def test_what_is_not_the_call_gets_no_clause(subject):
    (labelling,) = FormattedIndex("ua", extract="agentName", type="string").filters()
    assert labelling.label_node(EqualTo(called(), Literal("a", "string"))) is not None
    assert labelling.label_node(EqualTo(called("AGENTNAME"), Literal("a", "string"))) is not None
    for predicate in (EqualTo(subject, Literal("a", "string")), tree.IsNull(subject), Like(subject, Literal("a%b"))):
        assert labelling.label_node(predicate) is None


class AnyArgumentFilter(FormattedFilter):
    """Wrong on purpose: takes any call of the function for the call on the column."""

    def label_node(self, node):
        subject = node.children[0]
        return ValueListMatchClause(self.index, node) if isinstance(subject, Call) else None


class WrongIndex(FormattedIndex):
    type_name = "wrong_formatted"

    def filters(self):
        return (AnyArgumentFilter(self),)


def test_a_filter_that_looks_at_the_name_alone_is_caught():
    index, inputs = index_of(agent_name, "string")
    wrong = WrongIndex("ua", extract="agentName", type="string")
    lowered = called(arguments=(Call("lower", (COLUMN,), "string"),))
    predicate = EqualTo(lowered, Literal("firefox", "string"))
    checking = {
        "types": {"ua": "string"},
        "functions": {"agentName": agent_name, "lower": lambda text: text and text.lower()},
        **inputs,
    }
    assert assert_represents(index, [predicate], objects_of(AGENTS), **checking).skipped == 0
    with pytest.raises(AssertionError, match="skips an object that has a row"):
        assert_represents(wrong, [predicate], objects_of(AGENTS), **checking)


@pytest.mark.parametrize("name", ["", "a b", "f(x)", "f`", "a..b", ".f", "f) OR (1", "f--", "é", 3, None])
def test_only_a_name_can_be_a_function(name):
    with pytest.raises(SettingError, match="is not the name of a function"):
        FormattedIndex("ua", extract=name)


def test_it_is_of_one_column():
    with pytest.raises(SettingError, match="name the one that queries call it on"):
        FormattedIndex("*", extract="f")


def test_names_are_quoted_and_options_survive_the_manifest():
    index = FormattedIndex("s.`odd.name`", extract="db.agentName", type="string")
    assert index.inputs(()) == ("`db`.`agentName`(`s`.`odd.name`)",)
    made = FormattedIndex.from_options(index.name, index.options())
    assert made == index
    assert made.functions == ("db.agentName",)
    assert index.name == "formatted(s.`odd.name`, extract='db.agentName')"


def test_what_a_manifest_has_in_place_of_a_name_never_becomes_sql():
    options = FormattedIndex("ua", extract="f").options()
    with pytest.raises(SettingError):
        FormattedIndex.from_options("n", {**options, "extract": "f(ua), (SELECT 1)"})
    (call,) = FormattedIndex.from_options("n", {**options, "column": "`ua`) OR (1"}).inputs(())
    assert call == "`f`(`ua`.`) OR (1`)"


def test_instants_are_not_taken():
    """A function sees them as wall-clock times of some zone."""
    index = FormattedIndex("ts", extract="f")
    for type_ in ("timestamp", "array<timestamp>", "struct<a:int,t:timestamp>"):
        assert not index.supports((type_,))
    for type_ in ("timestamp_ntz", "string", "array<int>", "date"):
        assert index.supports((type_,))


def test_kept_objects_without_metadata():
    index, inputs = index_of(agent_name, "string")
    metadata = collect(index, objects_of(AGENTS), {"ua": "string"}, **inputs).without("values")
    assert kept_objects(index, EqualTo(called(), Literal("nobody", "string")), metadata).all()


# --- through Spark ---------------------------------------------------------------------------------------------------


def as_in_a_notebook(function):
    """Return a function of no module: the sources of one, and of all that it imports, are part of an identity."""
    cell = {"__name__": "__main__"}
    return FunctionType(function.__code__, cell, function.__name__, function.__defaults__, function.__closure__)


@as_in_a_notebook
def rather_short(agent):
    return None if agent is None else agent.split("/")[0]


@as_in_a_notebook
def picky(agent):
    if agent == "curl/11":
        msg = "no such agent:\ncurl/11"
        raise ValueError(msg)
    return agent


@pytest.fixture(scope="module")
def requests(spark, tmp_path_factory):
    names = ("Firefox", "curl", "Wget", "Chrome")
    rows = [", ".join(f"('{names[n % 4]}/{10 * n + i}', {n})" for i in range(3)) + f", (NULL, {n})" for n in range(6)]
    return write_objects(spark, tmp_path_factory.mktemp("formatted") / "d", "ua string, n int", rows)


def test_queries_on_a_function_skip(spark, requests):
    spark.udf.register("rather_short", rather_short)
    dataset = Dataset.for_path(spark, requests)
    dataset.create_indexes(FormattedIndex("ua", extract="rather_short"))
    df = spark.read.parquet(requests)
    served = {
        "rather_short(ua) = 'curl'": 4,
        "RATHER_SHORT(UA) LIKE '%et'": 5,
        "rather_short(ua) LIKE 'F%'": 4,
        "rather_short(ua) IN ('Wget', 'Chrome', 'x')": 4,
        "rather_short(ua) <> 'curl'": 2,
        "rather_short(ua) <=> 'Wget' AND n >= 0": 5,
        "rather_short(ua) NOT IN ('Firefox', 'Chrome', 'curl')": 5,
        "rather_short(ua) = 'nobody'": 6,
        "rather_short(ua) IS NULL": 0,
    }
    for predicate, skipped in served.items():
        assert assert_same_rows(spark, df.where(predicate)) == skipped, predicate
    assert assert_same_rows(spark, df.where("rather_short(lower(ua)) = 'curl'")) == 0
    (row,) = dataset.describe().where("type = 'formatted'").collect()
    assert row["name"] == "formatted(ua, extract='rather_short')"
    dataset.drop_indexes()


def test_what_cannot_be_built_says_why(spark, requests):
    dataset = Dataset.for_path(spark, requests)
    spark.udf.register("picky", picky)
    spark.udf.register("listing", lambda agent: [agent], "array<string>")
    spark.udf.register("instant", lambda agent: None, "timestamp")
    with pytest.raises(IndexingError, match=r"^picky raised ValueError: no such agent:; nothing was indexed$"):
        dataset.create_indexes(FormattedIndex("ua", extract="picky"))
    with pytest.raises(SettingError, match=r"lower is a function of Spark's own"):
        dataset.create_indexes(FormattedIndex("ua", extract="lower"))
    with pytest.raises(IndexingError, match="nobodys_function"):
        dataset.create_indexes(FormattedIndex("ua", extract="nobodys_function"))
    for name, type_ in (("listing", "array<string>"), ("instant", "timestamp")):
        with pytest.raises(UnsupportedTypeError, match=f"{name} gives {type_}, which cannot be listed"):
            dataset.create_indexes(FormattedIndex("ua", extract=name))
    assert not dataset.is_indexed


def test_a_function_that_raises_on_refresh_leaves_the_metadata_as_it_was(spark, tmp_path):
    @as_in_a_notebook
    def parsed(agent):
        return str(int(agent))

    path = write_objects(spark, tmp_path / "d", "ua string", ["('1'), ('2')", "('3')"])
    spark.udf.register("parsed", parsed)
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(FormattedIndex("ua", extract="parsed"))
    write_objects(spark, tmp_path / "d", "ua string", ["('x')"], first=2)
    with pytest.raises(IndexingError, match=r"^parsed raised ValueError: invalid literal for int"):
        Dataset.for_path(spark, path).refresh()
    for file in (tmp_path / "d").glob("object-0002*"):
        file.unlink()
    spark.catalog.refreshByPath(path)
    with skipping_stats(spark) as stats:
        assert spark.read.parquet(path).where("parsed(ua) = '3'").count() == 1
    assert stats[-1].objects.skipped == 1
