"""Indexes on elements of arrays and on keys and values of maps, held against the truth."""

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.indexes import element_trees
from tests.indexes.element_trees import (
    CATALYST,
    UNIVERSES,
    array_contains,
    array_predicates,
    arrays,
    arrays_overlap,
    call,
    check,
    computed,
    constant_array,
    describe,
    exists,
    item,
    kept,
    leaves,
    map_part,
    map_predicates,
    map_value,
    maps,
    objects_of,
    truth,
)

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import normalize as normalizing
from skipstone.expressions import tree
from skipstone.expressions.elements import element_type
from skipstone.expressions.normalize import NEVER, normalize
from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Element,
    EqualTo,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
)
from skipstone.indexes import bloom_filter, hybrid, value_list
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex, ValueListMetadata
from skipstone.querying import elements
from skipstone.querying.elements import ElementImplication
from skipstone.testing import InMemoryMetadata, assert_merges, leaf_predicates, physical_type, values_of
from skipstone.toolkit import elements as _elements
from skipstone.toolkit import leaf as _leaf

MAKERS = {
    "valuelist": ValueListIndex,
    "bloomfilter": lambda column, **of: BloomFilterIndex(column, fpp=0.001, **of),
    "hybrid": lambda column, **of: HybridIndex(column, threshold=1, fpp=0.001, **of),
}
TAGS = Column("tags", "array<string>")
NUMS = Column("nums", "array<int>")
ATTRS = Column("attrs", "map<string,int>")
THREE = Literal(3, "int")

by_index = pytest.mark.parametrize("name", MAKERS)
by_type = pytest.mark.parametrize("type_", UNIVERSES)


def a(text):
    return Literal(text, "string")


def check_arrays(index, type_, **collecting):
    metadata = describe(index, arrays(type_), type_, spark_type=f"array<{type_}>", **collecting)
    return check(index, array_predicates(type_), arrays(type_), metadata)


def check_maps(index, type_, **collecting):
    metadata = describe(index, maps(type_), type_, spark_type=f"map<string,{type_}>", **collecting)
    return check(index, map_predicates(type_), maps(type_), metadata)


# --- small universes, exhausted --------------------------------------------------------------------------------------


@by_index
@by_type
def test_objects_with_a_matching_array_are_kept_and_others_skipped(name, type_):
    outcome = check_arrays(MAKERS[name]("c"), type_)
    assert outcome.relevant > 0
    share = {"valuelist": 0.5, "bloomfilter": 0.15, "hybrid": 0.4}[name]  # the rest: negations, and conjunctions
    assert outcome.skipped > share * (outcome.pairs - outcome.relevant)
    assert check_arrays(MAKERS[name]("c"), type_, rows_per_part=1) == outcome


@by_index
@by_type
@pytest.mark.parametrize("of", ["keys", "values"])
def test_objects_with_a_matching_map_are_kept_and_others_skipped(name, type_, of):
    outcome = check_maps(MAKERS[name]("c", of=of), type_)
    assert outcome.relevant > 0
    assert outcome.skipped > 0.15 * (outcome.pairs - outcome.relevant)
    assert check_maps(MAKERS[name]("c", of=of), type_, rows_per_part=1) == outcome


@by_type
def test_a_value_list_skips_every_object_without_a_matching_element(type_):
    column = Column("c", f"array<{type_}>")
    values = UNIVERSES[type_][1]
    predicates = [array_contains(column, Literal(v, type_)) for v in values]
    predicates += [arrays_overlap(column, constant_array(type_, v, values[0])) for v in values]
    inside = range(len(leaves(Literal(None), type_)))
    predicates += [exists(column, lambda x, n=n: leaves(x, type_)[n], type_) for n in inside]
    index = ValueListIndex("c")
    metadata = describe(index, arrays(type_), type_, spark_type=f"array<{type_}>")
    outcome = check(index, predicates, arrays(type_), metadata)
    assert 0 < outcome.skipped == outcome.pairs - outcome.relevant


@by_index
@by_type
def test_forgetting_only_keeps(name, type_):
    for index, objects, predicates, spark_type in (
        (MAKERS[name]("c"), arrays(type_), array_predicates(type_), f"array<{type_}>"),
        (MAKERS[name]("c", of="values"), maps(type_), map_predicates(type_), f"map<string,{type_}>"),
    ):
        metadata = describe(index, objects, type_, spark_type=spark_type)
        for predicate in predicates:
            read = kept(index, predicate, metadata)
            for field in (*metadata.fields, "row_count"):
                assert not (read & ~kept(index, predicate, metadata.without(field))).any(), (predicate, field)


@by_index
def test_the_number_of_rows_has_no_part_in_it(name):
    index = MAKERS[name]("c")
    metadata = describe(index, arrays("double"), "double", spark_type="array<double>")
    for rows in (0, 1, 1000):
        other = InMemoryMetadata(metadata.fields, pa.array([rows] * len(metadata), pa.int64()))
        for predicate in array_predicates("double"):
            assert (kept(index, predicate, metadata) == kept(index, predicate, other)).all(), predicate


# --- random values of every type -------------------------------------------------------------------------------------

TYPES = [
    "tinyint", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "time(6)", "interval day to second",
]  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_arrays(type_, data):
    rows = data.draw(st.lists(st.none() | st.lists(values_of(type_), max_size=3), min_size=1, max_size=5))
    objects = [pa.record_batch({"c": pa.array([row], pa.list_(physical_type(type_)))}) for row in rows]
    objects.append(pa.record_batch({"c": pa.array(rows, pa.list_(physical_type(type_)))}))
    column = Column("c", f"array<{type_}>")
    value = data.draw(
        values_of(type_, nulls=False) | st.sampled_from([v for r in rows for v in r or () if v is not None] or [None])
    )
    predicates = [] if value is None else [array_contains(column, Literal(value, type_))]
    options = data.draw(st.lists(values_of(type_), max_size=3))
    predicates += [arrays_overlap(column, constant_array(type_, *options, value))]
    for leaf in data.draw(st.lists(leaf_predicates("x", type_), min_size=1, max_size=4)):
        predicates.append(
            exists(column, lambda x, leaf=leaf: element_trees._rebuilt(leaf, lambda old: _for(x, old)), type_)
        )
        predicates.append(element_trees._rebuilt(leaf, lambda old: _for(item(column, 1, type_), old)))
    for name, make in MAKERS.items():
        index = make("c")
        metadata = describe(index, objects, type_, spark_type=f"array<{type_}>")
        check(index, predicates, objects, metadata)
        if name != "bloomfilter":  # whose bits are one number
            plain = [row and [_one_zero(v) for v in row] for row in rows]
            whole = pa.record_batch({"c": pa.array(plain, pa.list_(physical_type(type_)))})
            assert_merges(index, whole, {"c": f"array<{type_}>"}, inputs=computed("c", None, type_))


def _for(subject, node):
    if isinstance(node, Column):
        return subject
    return element_trees._rebuilt(node, lambda old: _for(subject, old))


def _one_zero(value):
    return value + 0.0 if isinstance(value, float) else value


# --- broken on purpose -----------------------------------------------------------------------------------------------


def by_rows(metadata, index, *_):
    """Whether there is an element that is not NULL, answered as for rows."""
    return pc.less(metadata.field(index, "null_elements"), metadata.row_count)


def everything_by_rows(original):
    def broken(self, metadata, leaf):
        return by_rows(metadata, self.index) if leaf.test == _leaf.EVERYTHING else original(self, metadata, leaf)

    return broken


def nan_by_rows(metadata, index):
    return pc.and_kleene(pc.greater(metadata.field(index, "nan_elements"), 0), by_rows(metadata, index))


def first_elements(column):
    return pc.list_element(column.filter(pc.greater(pc.list_value_length(column), 0)), 0)


def values_of_all_lists(column):
    return column.values[: len(column)]


def whole_arrays(index, subject):
    return subject == Column(*index.columns, getattr(subject, "type", "")) or ORIGINAL_DESCRIBES(index, subject)


def implied_of_not(original):
    def broken(self, leaf):
        return original(self, leaf.child if isinstance(leaf, Not) and isinstance(leaf.child, Call) else leaf)

    return broken


def any_variable(node, variable, element):
    if isinstance(node, Call) and node.name == "namedlambdavariable":
        return element
    return ORIGINAL_SUBSTITUTED(node, variable, element)


def elements_alike(original):
    def broken(vertex, below):
        return (Element, below) if isinstance(vertex, Element) else original(vertex, below)

    return staticmethod(broken)


def and_for_or(original):
    def broken(expression):
        made = original(expression)
        return And(made.terms) if isinstance(made, Or) else made

    return broken


ORIGINAL_SUBSTITUTED = elements._substituted
ORIGINAL_ELEMENT = elements._element
ORIGINAL_DESCRIBES = value_list.describes

# What is broken, where, by what, and which check must notice.
MUTATIONS = {
    "rows: some element answered by rows": (
        value_list.ValueListMatchClause, "ordinary_might_match",
        everything_by_rows(value_list.ValueListMatchClause.ordinary_might_match), "valuelist", None, "double",
    ),
    "rows: some hash answered by rows": (
        bloom_filter.SomeHashClause, "ordinary_might_match", lambda self, metadata, _: by_rows(metadata, self.index),
        "bloomfilter", None, "int",
    ),
    "rows: NaN answered by rows": (_leaf, "has_nan_element", nan_by_rows, "valuelist", None, "double"),
    "NaN elements forgotten": (
        _leaf, "has_nan_element", lambda m, _: pa.repeat(pa.scalar(False), len(m)), "valuelist", None, "double",
    ),
    "NULL elements forgotten": (
        _leaf, "has_null_element", lambda m, _: pa.repeat(pa.scalar(False), len(m)), "bloomfilter", None, "int",
    ),
    "collecting first elements only": (value_list, "elements_of", first_elements, "valuelist", None, "int"),
    "collecting by the wrong offsets": (value_list, "elements_of", values_of_all_lists, "valuelist", None, "int"),
    "hashing first elements only": (bloom_filter, "elements_of", first_elements, "bloomfilter", None, "int"),
    "hybrid: hashing first elements only": (hybrid, "elements_of", first_elements, "hybrid", None, "int"),
    "NOT of a function read as the function": (
        ElementImplication, "implied", implied_of_not(ElementImplication.implied), "valuelist", None, "int",
    ),
    "OR inside a lambda read as AND": (elements, "normalize", and_for_or(normalize), "valuelist", None, "int"),
    "IS NULL of an item read as of an element": (
        elements, "_STRICT", (*elements._STRICT, IsNull), "valuelist", None, "int",
    ),
    "IS NULL of a map's value needs its key": (
        elements, "_STRICT", (*elements._STRICT, IsNull), "valuelist", "keys", "int",
    ),
    "keys taken for values": (
        elements, "_element", lambda column, of: ORIGINAL_ELEMENT(column, "values"), "valuelist", "values", "string",
    ),
    "arrays described by their elements' counts": (
        value_list, "describes", whole_arrays, "valuelist", None, "int",
    ),
    "overlap with the first option only": (
        elements, "_literals", lambda array: tuple(Literal(v, "int") for v in array.value[:1] if v is not None),
        "valuelist", None, "int",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_what_is_broken_is_noticed(mutation, monkeypatch):
    where, name, broken, index, of, type_ = MUTATIONS[mutation]
    monkeypatch.setattr(where, name, broken)
    check_column = check_arrays if of is None else check_maps
    with pytest.raises((AssertionError, KeyError)):
        check_column(MAKERS[index]("c", of=of), type_)


def test_values_taken_for_keys_are_noticed(monkeypatch):
    monkeypatch.setattr(normalizing._Numbers, "_key", elements_alike(normalizing._Numbers._key))
    with pytest.raises(AssertionError, match="skips an object"):
        test_keys_and_values_are_two_things()


def test_another_lambdas_variable_taken_for_ones_own_is_noticed(monkeypatch):
    monkeypatch.setattr(elements, "_substituted", any_variable)
    with pytest.raises(AssertionError, match="some element of"):
        test_lambdas_inside_lambdas()


# --- what functions imply --------------------------------------------------------------------------------------------


def implied(leaf):
    said = ElementImplication().implied(leaf)
    return None if said is None else str(normalize(said))


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (array_contains(TAGS, a("x")), "some element of tags = 'x'"),
        (array_contains(TAGS, Column("w", "string")), "some element of tags IS NOT NULL"),
        (array_contains(constant_array("string", "x", None, "y"), Column("w", "string")), "w IN ('x', 'y')"),
        (array_contains(map_part(ATTRS, "keys", "string"), a("k")), "some key of attrs = 'k'"),
        (arrays_overlap(constant_array("string", "x", None), TAGS), "some element of tags = 'x'"),
        (arrays_overlap(TAGS, constant_array("string", None)), "False"),
        (
            arrays_overlap(TAGS, Column("other", "array<string>")),
            "(some element of tags IS NOT NULL) AND (some element of other IS NOT NULL)",
        ),
        (
            exists(NUMS, lambda x: And((tree.GreaterThan(x, THREE), tree.LessThan(Literal(5, "int"), x))), "int"),
            "(some element of nums > 3) AND (some element of nums > 5)",
        ),
        (
            exists(NUMS, lambda x: And((EqualTo(x, Column("n", "int")), EqualTo(Column("n", "int"), THREE))), "int"),
            "(some element of nums = n) AND (n = 3)",
        ),
        (EqualTo(item(TAGS, 0, "string"), a("x")), "some element of tags = 'x'"),
        (Not(tree.StartsWith(item(TAGS, 0, "string"), a("x"))), "NOT (startswith(some element of tags, 'x'))"),
        (
            EqualTo(map_value(ATTRS, a("k"), "int"), THREE),
            "(some value of attrs = 3) AND (some key of attrs = 'k')",
        ),
        (IsNotNull(map_value(ATTRS, a("k"), "int")), "(some value of attrs IS NOT NULL) AND (some key of attrs = 'k')"),
        (
            EqualTo(map_value(ATTRS, Column("w", "string"), "int"), Literal(1, "int")),
            "(some value of attrs = 1) AND (some key of attrs IS NOT NULL)",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_implied(leaf, said):
    assert implied(leaf) == said


def test_lambdas_inside_lambdas():
    nested = exists(TAGS, lambda x: exists(NUMS, lambda y: And((EqualTo(x, a("t")), IsNull(y))), "int"), "string")
    said = ElementImplication().implied(nested)
    terms = said.terms[1:] if isinstance(said, And) else (said,)  # the first is the call itself
    assert {str(term) for term in terms} == {"some element of tags = 't'", "some element of nums IS NULL"}


def test_a_lambda_that_takes_the_variable_for_its_own_is_not_read():
    inner = exists(NUMS, lambda x: EqualTo(x, Literal(1, "int")), "int")
    variable = inner.arguments[1].arguments[1]
    function = call("LambdaFunction", "lambdafunction", inner, variable)
    assert implied(call("ArrayExists", "exists", NUMS, function)) is None


@pytest.mark.parametrize(
    "leaf",
    [
        Not(array_contains(TAGS, a("x"))),
        Not(exists(TAGS, lambda x: EqualTo(x, a("x")), "string")),
        IsNull(array_contains(TAGS, a("x"))),
        IsNull(item(TAGS, 0, "string")),
        Not(tree.IsNaN(item(Column("d", "array<double>"), 0, "double"))),
        tree.EqualNullSafe(item(TAGS, 0, "string"), Column("w", "string")),
        Call("array_contains", (TAGS, a("x")), "boolean", kind="python", class_name=CATALYST + "ArrayContains"),
        Call("array_contains", (TAGS, a("x")), "boolean", class_name="org.example.ArrayContains"),
        Call("array_contains", (TAGS, a("x")), "boolean"),
        array_contains(call("ArrayDistinct", "array_distinct", TAGS, type_="array<string>"), a("x")),
        exists(Column("st", "array<struct<f:int>>"), lambda x: EqualTo(x, a("x")), "string"),
        exists(call("NamedLambdaVariable", "namedlambdavariable", type_="array<int>", identity="9"), IsNull, "int"),
        EqualTo(call("Lower", "lower", item(TAGS, 0, "string"), type_="string"), a("x")),
    ],
    ids=str,
)  # fmt: skip
def test_what_implies_nothing(leaf):
    assert implied(leaf) is None


@pytest.mark.parametrize(
    ("inner", "outer", "value", "expected"),
    [
        ("int", "bigint", 3, Literal(3, "int")),
        ("int", "bigint", 1 << 31, NEVER),
        ("tinyint", "int", -128, Literal(-128, "tinyint")),
        ("tinyint", "int", -129, NEVER),
        ("float", "double", 0.5, Literal(0.5, "float")),
        ("float", "double", 0.1, NEVER),
        ("float", "double", 1e300, NEVER),
        ("decimal(10,2)", "decimal(12,2)", Decimal("1.00"), Literal(Decimal("1.00"), "decimal(10,2)")),
        ("decimal(3,2)", "decimal(12,4)", Decimal("9.9900"), Literal(Decimal("9.9900"), "decimal(3,2)")),
        ("decimal(3,2)", "decimal(12,4)", Decimal("10.0000"), NEVER),
        ("decimal(3,2)", "decimal(12,4)", Decimal("0.0010"), NEVER),
        ("decimal(3,2)", "decimal(12,4)", Decimal("0.0000"), Literal(Decimal("0.0000"), "decimal(3,2)")),
        ("double", "float", 0.5, None),
        ("bigint", "int", 3, None),
        ("int", "double", 3.0, None),
        ("decimal(12,4)", "decimal(3,2)", Decimal("1.00"), None),
    ],
)
def test_literals_pass_through_casts_of_arrays_without_loss(inner, outer, value, expected):
    array = Cast(Column("c", f"array<{inner}>"), f"array<{outer}>", "ANSI")
    said = ElementImplication().implied(array_contains(array, Literal(value, outer)))
    if expected is None:
        assert said is None
    else:
        element = Element(Column("c", f"array<{inner}>"), "elements", inner)
        assert normalize(said) == (expected if expected is NEVER else EqualTo(element, expected))


def test_casts_of_maps_cast_their_keys():
    wider = Cast(Column("m", "map<int,string>"), "map<bigint,string>")
    assert implied(array_contains(map_part(wider, "keys", "bigint"), Literal(3, "bigint"))) == "some key of m = 3"
    assert implied(array_contains(map_part(wider, "values", "string"), a("x"))) == "some value of m = 'x'"


def test_nan_passes_through_a_cast():
    array = Cast(Column("c", "array<float>"), "array<double>")
    match ElementImplication().implied(array_contains(array, Literal(math.nan, "double"))):
        case In(Element(), (Literal(value, "float"),)):
            assert math.isnan(value)


def test_keys_and_values_are_two_things():
    column = Column("c", "map<string,string>")
    keys, values = (map_part(column, of, "string") for of in ("keys", "values"))
    either = Or((array_contains(keys, a("x")), array_contains(values, a("x"))))
    inside = exists(
        keys,
        lambda k: exists(values, lambda v: Or((EqualTo(k, a("x")), EqualTo(v, a("x")))), "string"),
        "string",
    )
    objects = objects_of([[("x", "y")], [("y", "x")], [("y", "y")]], pa.map_(pa.string(), pa.string()))
    for of in ("keys", "values"):
        index = ValueListIndex("c", of=of)
        metadata = describe(index, objects, "string", spark_type="map<string,string>")
        check(index, [either, inside], objects, metadata)


def test_a_column_without_its_type_is_not_answered_by_counts_of_elements():
    index = ValueListIndex("c")
    metadata = describe(index, arrays("int"), "int", spark_type="array<int>")
    assert metadata.fields.keys() == {"values", "null_elements"}
    with pytest.raises(KeyError):  # which a store answers by "not known"
        index.filters()[0].label_node(IsNotNull(Column("c"))).might_match(metadata)


# --- the constructors ------------------------------------------------------------------------------------------------


@by_index
def test_types_and_options(name):
    make = MAKERS[name]
    assert make("c").supports(("array<string>",))
    assert make("c").supports(("array<decimal(10,2)>",))
    assert make("c", of="keys").supports(("map<string,array<int>>",))
    assert make("c", of="values").supports(("map<struct<a:int>,date>",))
    for type_ in ("map<string,int>", "array<array<int>>", "array<struct<a:int>>", "array<string collate UNICODE>",
                  "array<interval year to month>", "array<udt:org.example.Point>", "struct<a:int>"):  # fmt: skip
        assert not make("c").supports((type_,)), type_
    assert not make("c", of="keys").supports(("array<int>",))
    assert not make("c", of="values").supports(("map<string,array<int>>",))
    assert make("c", of="keys").name.endswith("of='keys')")
    restored = type(make("c"))
    index = make("c", of="values")
    assert restored.from_options(index.name, index.options()) == index
    with pytest.raises(SettingError, match='of="keys" or of="values"'):
        make("c", of="elements")
    with pytest.raises(UnsupportedTypeError, match='say which part of it: of="keys" or of="values"'):
        make("c").check_types(("map<string,int>",))
    with pytest.raises(UnsupportedTypeError, match="is for maps"):
        make("c", of="keys").check_types(("array<int>",))
    with pytest.raises(UnsupportedTypeError, match="array<array<int>>"):
        make("c").check_types(("array<array<int>>",))


def test_minmax_does_not_take_arrays():
    assert not MinMaxIndex("c").supports(("array<int>",))


@pytest.mark.parametrize(
    ("type_", "of", "expected"),
    [
        ("array<int>", "elements", "int"),
        ("array<array<int>>", "elements", "array<int>"),
        ("map<string,int>", "elements", None),
        ("map<decimal(10,2),struct<a:int,b:int>>", "keys", "decimal(10,2)"),
        ("map<struct<a:int,b:map<int,int>>,string>", "values", "string"),
        ("map<string>", "keys", None),
        ("int", "keys", None),
        ("", "elements", None),
    ],
)
def test_types_inside(type_, of, expected):
    assert element_type(type_, of) == expected


def test_lists_are_collected_by_their_elements():
    column = pa.chunked_array([pa.array([["a", None], None, []], pa.large_list(pa.large_string())), [["b", "a"]]])
    found = ValueListMetadata.of(column)
    assert sorted(found.values.array.to_pylist()) == ["a", "b"]
    assert (found.null_count, found.elements) == (1, True)
    sliced = ValueListMetadata.of(pa.array([["a"], ["b"], None, ["c", "b"]])[1:3])
    assert sliced.values.array.to_pylist() == ["b"]
    assert _elements.elements_of(pa.array([1, 2])).to_pylist() == [1, 2]


def test_the_truth_is_sparks():
    """What Spark says of the awkward cases, as the oracle has it (Spark itself is asked in the other file)."""
    rows = {"c": [None, 1]}
    column = Column("c", "array<int>")
    assert truth(array_contains(column, Literal(1, "int")), rows) is True
    assert truth(array_contains(column, Literal(2, "int")), rows) is None
    assert truth(arrays_overlap(column, constant_array("int")), rows) is False
    assert truth(arrays_overlap(column, constant_array("int", 2)), rows) is None
    assert truth(exists(column, lambda x: EqualTo(x, Literal(2, "int")), "int"), rows) is None
    assert truth(exists(column, IsNull, "int"), {"c": []}) is False
    assert truth(exists(column, IsNull, "int"), {"c": None}) is None
