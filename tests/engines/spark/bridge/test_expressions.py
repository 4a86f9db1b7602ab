"""The serialiser: exact literals, names of functions, and trees of any size."""

from __future__ import annotations

import base64
import struct
from functools import reduce

import pytest
from pyspark.sql import functions as F
from tests.engines.spark.bridge.fake import bridge_of, entries_since
from tests.expressions.depth import DEEPEST

SCHEMA = """
  b boolean, i8 tinyint, i int, l long, f float, d double, dec decimal(20,4), s string, bin binary, dt date,
  ts timestamp, ntz timestamp_ntz, ym interval year to month, dts interval day to second, arr array<int>,
  st struct<x: int, y: struct<z: string>>, `odd.name` int, m map<string, int>, lc string collate UTF8_LCASE
"""


@pytest.fixture(scope="session")
def typed(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("typed") / "t")
    spark.createDataFrame([], SCHEMA).coalesce(1).write.json(folder)
    return spark.read.schema(SCHEMA).json(folder)


def nodes(tree):
    """Every node of a tree, without recursion."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.get("c", ()))


def condition(planner, df, predicate):
    query = df.where(predicate)
    query._jdf.queryExecution().optimizedPlan()
    return planner.requests[-1]["condition"]


def literals(tree):
    return [n for n in nodes(tree) if n["k"] == "lit"]


@pytest.mark.parametrize(
    ("predicate", "type_", "value"),
    [
        ("i8 = 3Y", "byte", "3"),
        ("i = -7", "integer", "-7"),
        ("l = 9223372036854775807", "long", "9223372036854775807"),
        ("f = float('NaN')", "float", "7fc00000"),
        ("f = float(0.1)", "float", struct.pack(">f", 0.1).hex()),
        ("d = double('NaN')", "double", "7ff8000000000000"),
        ("d = 0.1D", "double", struct.pack(">d", 0.1).hex()),
        ("d = double('-Infinity')", "double", "fff0000000000000"),
        ("dec = 1234567890123456.7891BD", "decimal(20,4)", ["12345678901234567891", 4]),
        ("s = 'aé😀\\'\\\\'", "string", "aé😀'\\"),
        ("bin = X'00ff10'", "binary", base64.b64encode(b"\x00\xff\x10").decode()),
        ("dt = date'1500-01-01'", "date", -171664),
        ("ts = timestamp'2024-02-29 12:00:00.123456 UTC'", "timestamp", "1709208000123456"),
        ("ntz = timestamp_ntz'2024-02-29 12:00:00.123456'", "timestamp_ntz", "1709208000123456"),
        ("ym = interval '2-3' year to month", "interval year to month", 27),
        ("dts = interval '1 00:00:00.000001' day to second", "interval day to second", "86400000001"),
        ("lc = 'A' collate UTF8_LCASE", "string collate UTF8_LCASE", "A"),
    ],
)
def test_literals_are_exact(planner, typed, predicate, type_, value):
    (literal,) = literals(condition(planner, typed, predicate))
    assert (literal["t"], literal["v"]) == (type_, value)


def test_invalid_text_nulls_and_arrays(planner, typed):
    (literal,) = literals(condition(planner, typed, "s = cast(X'ff61' as string)"))
    assert literal["v"] == {"b64": base64.b64encode(b"\xffa").decode()}
    (literal,) = literals(condition(planner, typed, "arr = array(1, null, 3)"))
    assert literal["v"] == ["1", None, "3"]
    (listed,) = [n for n in nodes(condition(planner, typed, "i in (1, 2, null)")) if n["k"] == "in"]
    assert (listed["t"], sorted(map(str, listed["v"]))) == ("integer", ["1", "2", "None"])
    (listed,) = [n for n in nodes(condition(planner, typed, "i in (1, i + 1)")) if n["k"] == "in"]
    assert "v" not in listed
    assert [n["k"] for n in listed["c"]] == ["col", "lit", "call"]


def test_long_in_lists_become_sets_with_typed_values(planner, typed):
    tree = condition(
        planner, typed, f"dt in ({', '.join(f'date_add(date{chr(39)}2020-01-01{chr(39)}, {i})' for i in range(40))})"
    )
    (node,) = [n for n in nodes(tree) if n["k"] == "in"]
    assert sorted(node["v"]) == list(range(18262, 18302))
    assert (node["t"], [n["k"] for n in node["c"]]) == ("date", ["col"])


def test_columns(planner, typed):
    tree = condition(planner, typed, "st.y.z = 'a' and st.x > 1 and `odd.name` = 3 and m['k'] = 4 and arr[0] = 5")
    columns = {tuple(n["n"]): n["t"] for n in nodes(tree) if n["k"] == "col"}
    assert columns[("st", "y", "z")] == "string"
    assert columns[("st", "x")] == "integer"
    assert columns[("odd.name",)] == "integer"
    assert columns[("m",)].startswith("{")
    assert ("m", "k") not in columns
    assert {c["n"] for c in planner.requests[-1]["relation"]["columns"]} == {"st", "odd.name", "m", "arr"}


def test_predicates(planner, typed):
    tree = condition(planner, typed, "s like 'a!_%b_' escape '!' and not (i <=> 3) and isnan(d) and startswith(s, 'a')")
    kinds = {n["k"]: n for n in nodes(tree)}
    assert {"like", "not", "nseq", "isnan", "startswith"} <= kinds.keys()
    assert kinds["like"]["e"] == "!"
    (cast,) = [n for n in nodes(condition(planner, typed, "cast(s as int) = 3")) if n["k"] == "cast"]
    assert (cast["t"], cast["m"], bool(cast["z"])) == ("integer", "ANSI", True)
    (call,) = [n for n in nodes(condition(planner, typed, "year(ts) = 2024")) if n["k"] == "call"]
    assert (call["n"], call["u"], call["d"], call["t"]) == ("year", "", True, "integer")


def test_what_must_not_be_trusted_says_so(planner, typed):
    tree = condition(planner, typed, "i > rand() * 3 and l > (select max(id) from range(3))")
    calls = {n["n"]: n for n in nodes(tree) if n["k"] == "call"}
    assert calls["rand"]["d"] is False
    subquery = next(n for n in calls.values() if "Subquery" in n["f"])
    assert (subquery["d"], subquery["c"]) == (False, [])


def test_functions_of_users(spark, planner, typed):
    spark.udf.register("py_plus", lambda x: x + 1, "int")
    pandas = F.pandas_udf(lambda x: x + 1, "int")
    spark.udf.register("pd_plus", pandas)
    tree = condition(planner, typed, "py_plus(i) = 3 and pd_plus(i) = 4")
    calls = {n["n"]: n for n in nodes(tree) if n["k"] == "call" and n["u"]}
    assert {name: c["u"] for name, c in calls.items()} == {"py_plus": "python", "pd_plus": "python"}
    (digest, kind), (_, other) = (calls[name]["id"].split("/")[:2] for name in ("py_plus", "pd_plus"))
    assert kind != other
    assert len(digest) == 32
    first = calls["py_plus"]["id"]
    spark.udf.register("py_plus", lambda x: x + 2, "int")
    tree = condition(planner, typed, "py_plus(i) = 3")
    assert next(n["id"] for n in nodes(tree) if n.get("n") == "py_plus") != first
    nondeterministic = F.udf(lambda x: x, "int").asNondeterministic()
    tree = condition(planner, typed, nondeterministic("i") == 1)
    assert next(n["d"] for n in nodes(tree) if n.get("u") == "python") is False


def test_five_thousand_ors(planner, typed):
    text = " or ".join(f"(i = {k} and s = 'value {k}')" for k in range(5000))
    tree = condition(planner, typed, text)
    assert tree["k"] == "or"
    assert len(tree["c"]) == 5000
    assert planner.longest <= 6000


def test_left_deep_ors(planner, typed):
    # Spark's own translation of a Column recurses: a few hundred levels overflow its stack before a plan exists.
    tree = condition(planner, typed, reduce(lambda a, b: a | b, [F.col("i") * 2 == k for k in range(100)]))
    assert len(tree["c"]) == 100


def deepest(tree):
    """The length of the longest way down, and the node at its end."""
    below = [deepest(child) for child in tree.get("c", ())]
    return max(((depth + 1, node) for depth, node in below), key=lambda found: found[0], default=(0, tree))


@pytest.mark.parametrize("levels", [100, DEEPEST - 2, DEEPEST + 50])
def test_a_deep_tree_is_written_as_far_as_the_bound(spark, planner, typed, levels):
    # A level at a time, which the optimizer makes one expression of: Spark's parser recurses, and overflows sooner.
    before = bridge_of(spark).lastSeq()
    deep = reduce(lambda df, _: df.select("i", F.reverse("s").alias("s")), range(levels), typed.select("i", "s"))
    deep.where("i = 3 AND s = 'x'").collect()
    (entry,) = entries_since(spark, before)
    assert entry["error"] is None
    tree = planner.requests[-1]["condition"]
    assert any(n["k"] == "lit" and n["v"] == "3" for n in nodes(tree))
    depth, last = deepest(tree)
    if levels < DEEPEST:
        assert (depth, last["k"]) == (levels + 2, "col")
    else:
        assert (depth, last["n"], last["d"]) == (DEEPEST + 1, f"<nested deeper than {DEEPEST} levels>", False)


def test_text_has_one_type_however_it_is_spelled(spark):
    """Types that come from a Connect client name the collation; Spark takes both for the same."""
    types, text = spark._jvm.org.apache.spark.sql.types, spark._jvm.org.apache.spark.sql.skipstone.Json.typeText
    plain = getattr(types, "StringType$")
    assert text(getattr(plain, "MODULE$")) == "string"
    assert text(getattr(plain, "MODULE$").apply("UTF8_BINARY")) == "string"
    assert text(getattr(plain, "MODULE$").apply("UTF8_LCASE")) == "string collate UTF8_LCASE"
    fixed, bounded = types.StructType.fromDDL("c char(5), v varchar(5)").fields()
    assert (text(fixed.dataType()), text(bounded.dataType())) == ("char(5)", "varchar(5)")
