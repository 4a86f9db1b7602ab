import json
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import instructions
from tests.expressions.depth import DEEPEST

from skipstone.expressions.from_spark import read_expression
from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Call, Cast, Column, EqualTo, In, Like, Literal, Or

X = {"k": "col", "n": ["x"], "t": "integer", "p": False}
S = {"k": "col", "n": ["s"], "t": "string", "p": False}
ONE = {"k": "lit", "t": "integer", "v": "1"}
A = {"k": "lit", "t": "string", "v": "a"}


def node(kind, *children, **fields):
    return {"k": kind, **fields, "c": list(children)}


def lit(spark_type, value):
    return {"k": "lit", "t": spark_type, "v": value}


PREDICATES = [
    (node("eq", X, ONE), "x = 1"),
    (node("nseq", X, ONE), "x <=> 1"),
    (node("lt", X, ONE), "x < 1"),
    (node("le", X, ONE), "x <= 1"),
    (node("gt", X, ONE), "x > 1"),
    (node("ge", X, ONE), "x >= 1"),
    (node("in", X, ONE, lit("integer", None)), "x IN (1, NULL)"),
    (node("in", X, t="integer", v=[1, None, 3]), "x IN (1, NULL, 3)"),
    (node("in", X, t="integer", v=[1, 2]), "x IN (1, 2)"),
    (node("in", S, t="string", v=["a", "b"]), "s IN ('a', 'b')"),
    (node("not", node("isnull", X)), "NOT (x IS NULL)"),
    (node("isnotnull", X), "x IS NOT NULL"),
    (node("isnan", X), "isnan(x)"),
    (node("startswith", S, A), "startswith(s, 'a')"),
    (node("endswith", S, A), "endswith(s, 'a')"),
    (node("contains", S, A), "contains(s, 'a')"),
    (node("like", S, A, e="!"), "s LIKE 'a'"),
    (
        node("and", node("isnull", X), node("or", node("isnull", S), S, X)),
        "(x IS NULL) AND ((s IS NULL) OR (s) OR (x))",
    ),
    ({"k": "col", "n": ["s", "odd.name"], "t": "string", "p": True}, "s.`odd.name`"),
    (node("cast", X, t="long", m="ANSI", z=None), "cast(x as bigint)"),
    (node("call", X, ONE, n="pmod", f="o.a.s.Pmod", u="", d=True, t="integer"), "pmod(x, 1)"),
]


@pytest.mark.parametrize(("given_", "expected"), PREDICATES, ids=[text for _, text in PREDICATES])
def test_predicates(given_, expected):
    assert str(read_expression(given_)) == expected
    assert str(read_expression(json.loads(json.dumps(given_)))) == expected


LITERALS = [
    ("void", None, None),
    ("string", None, None),
    ("boolean", True, True),
    ("byte", "-128", -128),
    ("long", "9223372036854775807", 2**63 - 1),
    ("date", -719162, -719162),
    ("timestamp", "-62135596800000000", -62135596800000000),
    ("timestamp_ntz", "1", 1),
    ("time(6)", "86399999999000", 86399999999000),
    ("interval year to month", -14, -14),
    ("interval day to second", "-1", -1),
    ("interval month", 3, 3),
    ("decimal(38,0)", ["99999999999999999999999999999999999999", 0], Decimal("9" * 38)),
    (
        "decimal(38,37)",
        ["-12345678901234567890123456789012345678", 37],
        Decimal("-1." + "2345678901234567890123456789012345678"),
    ),
    ("string", "\U0001f600\x00'", "\U0001f600\x00'"),
    ("string collate UTF8_LCASE", "a", "a"),
    ("binary", "AP8=", b"\x00\xff"),
    ("float", "3dcccccd", struct.unpack(">f", bytes.fromhex("3dcccccd"))[0]),
    ("double", "3fb999999999999a", 0.1),
    ("double", "8000000000000000", -0.0),
    ("double", "fff0000000000000", -math.inf),
    ("array<int>", ["1", None], (1, None)),
    ("udt:org.example.GeometryUDT", {"wkt": "POINT (1 2)"}, "POINT (1 2)"),
    ('{"type":"array","elementType":"double","containsNull":true}', ["3fb999999999999a"], (0.1,)),
]


@pytest.mark.parametrize(("spark_type", "value", "expected"), LITERALS)
def test_literals_are_exact(spark_type, value, expected):
    found = read_expression(lit(spark_type, value))
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(expected)


def test_every_nan_is_one_nan():
    for spark_type, bits in (("float", "7fc00001"), ("double", "fff8000000000001")):
        assert id(read_expression(lit(spark_type, bits)).value) == id(math.nan)


@given(st.floats(allow_nan=False))
def test_doubles_come_back_bit_by_bit(value):
    found = read_expression(lit("double", struct.pack(">d", value).hex())).value
    assert struct.pack(">d", found) == struct.pack(">d", value)


OPAQUE = [
    {"k": "lit", "t": "interval", "x": True},
    {"k": "lit", "t": "integer"},
    lit("string", {"b64": "/w=="}),
    lit("string", "\ud800"),
    lit("string", 3),
    lit("integer", True),
    lit("integer", "x"),
    lit("boolean", "true"),
    lit("double", "3fb9"),
    lit("double", 0.1),
    lit("decimal(10,2)", "1.5"),
    lit("binary", "not base64"),
    lit("array<int>", ["1", "x"]),
    lit("struct<a:int>", ["1"]),
    lit("variant", "1"),
    lit("udt:org.example.GeometryUDT", {"wkt": 3}),
    lit("udt:org.example.GeometryUDT", {"b64": "AA=="}),
    lit("udt:org.example.GeometryUDT", "POINT (1 2)"),
    lit("string", {"wkt": "POINT (1 2)"}),
    lit(None, None),
    lit(["integer"], None),
    {"k": "col", "n": [], "t": "integer"},
    {"k": "col", "n": ["x"]},
    {"k": "col", "n": "x", "t": None},
    {"k": "unheard of", "n": "x", "t": "boolean"},
    {"k": "call"},
    {"k": ["list"]},
    {},
    node("eq", X),
    node("and", X),
    node("not", X, X),
    node("like", S, A, e=None),
    node("in"),
    node("in", X, v=[1, 2]),
    node("in", X, t="integer", v=1),
    node("in", X, t=["integer"], v=[1, 2]),
    node("cast", X),
    "text",
    None,
    17,
]


@pytest.mark.parametrize("given_", OPAQUE, ids=ascii)
def test_what_is_not_understood_is_an_opaque_call(given_):
    found = read_expression(given_)
    assert isinstance(found, Call)
    assert found.name.startswith("<")
    normalize(found)


def test_opaque_values_that_differ_stay_apart():
    one, other = (read_expression(lit("string", {"b64": text})) for text in ("/w==", "/g=="))
    assert one != other
    assert normalize(Or((EqualTo(Column("s"), one), EqualTo(Column("s"), other)))).terms


def test_functions_carry_what_tells_them_apart():
    found = read_expression(
        node("call", X, n="f", f="org.PythonUDF", u="python", d=True, t="boolean", id="ab12", ev=100)
    )
    assert found == Call("f", (Column("x", "int"),), "boolean", "python", "org.PythonUDF", "ab12", True)
    invoked = [read_expression(node("call", X, n="invoke", d=True, t="boolean", m=m)) for m in ("a", "b")]
    assert invoked[0] != invoked[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"n": "rand", "d": False},
        {"n": "scalarsubquery", "d": True, "f": "org.apache.spark.sql.catalyst.expressions.ScalarSubquery"},
        {"n": "exists", "d": True, "f": "org.apache.spark.sql.catalyst.expressions.Exists"},
    ],
)
def test_what_is_only_known_when_the_query_runs_is_not_deterministic(fields):
    assert not read_expression(node("call", t="boolean", **fields)).deterministic


def test_fields_are_kept():
    assert read_expression(node("like", S, A, e="!")) == Like(Column("s", "string"), Literal("a", "string"), "!")
    assert read_expression(node("cast", X, t="long", m="TRY", z="UTC")) == Cast(
        Column("x", "int"), "bigint", "TRY", "UTC"
    )
    assert read_expression({"k": "col", "n": ["p"], "t": "date", "p": True}) == Column("p", "date", True)


def test_depth_and_width():
    e = node("isnull", X)
    for _ in range(DEEPEST // 2):
        e = node("not", node("and", e, node("or", X, ONE)))
    assert str(normalize(read_expression(e)))
    text = '{"k":"not","c":[' * DEEPEST + json.dumps(node("isnull", X)) + "]}" * DEEPEST
    assert str(normalize(read_expression(json.loads(text)))) == "x IS NULL"
    steps = []
    for size in (500, 2_000):
        terms = node("or", *(node("eq", X, lit("integer", str(n))) for n in range(size)))
        options = node("in", X, *(lit("integer", str(n)) for n in range(2 * size)))
        assert len(read_expression(terms).terms) == size
        assert len(read_expression(options).options) == 2 * size
        steps.append(instructions(lambda t=terms, o=options: (read_expression(t), read_expression(o))))
    assert steps[1] < 4.5 * steps[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "c", "n", "t", "v", "x", "d", "p", "e"]), inner, max_size=5)
    ),
    max_leaves=10,
)


@given(JSON)
def test_nothing_makes_it_raise(value):
    normalize(read_expression(value))


def test_shapes_of_and_and_in():
    assert isinstance(read_expression(node("and", X, X, X)), And)
    assert read_expression(node("in", X)) == In(Column("x", "int"), ())


VALUES = [
    ("integer", [1, "2", None, True, "x", 1.5]),
    ("long", [2**63 - 1, -(2**63)]),
    ("short", ["1", "-1"]),
    ("date", [0, 18262]),
    ("boolean", [True, False, 1]),
    ("double", ["3ff0000000000000", "8000000000000000", "7ff8000000000000", "3f"]),
    ("decimal(10,2)", [["15", 1], None, "1.5"]),
    ("string", ["a", {"b64": "/w=="}, "\ud800"]),
    ("binary", ["YQ==", "?"]),
    ("array<int>", [["1", None], ["x"]]),
    ("variant", [1]),
]


@pytest.mark.parametrize(("spark_type", "values"), VALUES, ids=[name for name, _ in VALUES])
def test_a_list_of_one_type_is_what_its_options_are_by_themselves(spark_type, values):
    apart = read_expression(node("in", X, *(lit(spark_type, value) for value in values)))
    together = read_expression(node("in", X, t=spark_type, v=values))
    assert repr(together) == repr(apart)


def test_geometries_of_one_text_are_told_apart_by_their_stored_form():
    one, other = (read_expression(lit("udt:G", {"wkt": "POINT (1 2)", "md5": digest})) for digest in ("aa", "bb"))
    assert one.value == other.value == "POINT (1 2)"
    assert one != other
