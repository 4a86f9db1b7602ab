"""Users' functions: one that was redefined never gives wrong rows, whatever made it another; and what they imply."""

from __future__ import annotations

import importlib
import os
import pickle
import py_compile
import subprocess
import sys
import zipfile
from itertools import count
from pathlib import Path
from types import FunctionType

import pandas as pd
import pyspark
import pytest
from pyspark.sql import functions as F
from tests.support import assert_same_rows, conf, write_objects

import skipstone
from skipstone import Dataset, FormattedIndex, MinMaxIndex, last_query
from skipstone.engines.spark.failures import explained_failures
from skipstone.engines.spark.functions import FunctionIdentities
from skipstone.errors import IndexingError, PluginError
from skipstone.expressions.ranges import at_least, between
from skipstone.expressions.tree import Call, Column, EqualTo, Literal

# --- identities, without Spark ---------------------------------------------------------------------------------------

_raw = map("raw-{}".format, count())


def identity_of(function, raw=None, settings=None, name="f"):
    """Return the identity of a function that is pickled by reference."""
    command = function if isinstance(function, bytes) else pickle.dumps(function)
    return FunctionIdentities(settings or {}, lambda _: command).of(name, "python", raw or next(_raw))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write modules into a folder that Python imports from."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        importlib.invalidate_caches()
        return path

    yield write
    for name in [n for n in sys.modules if n.startswith("redefined_")]:
        del sys.modules[name]


def test_a_module_that_changes_makes_another_function(module):
    module("redefined_a", "def f(x):\n    return x\n")
    command = b"\x80\x04\x8c\x0bredefined_a\x94\x8c\x01f\x94\x93."
    assert pickle.loads(command)(3) == 3
    before = identity_of(command, raw="same")
    assert "redefined_a==" in before
    assert identity_of(command, raw="same") == before
    module("redefined_a", "def f(x):\n    return x + 1\n")
    assert identity_of(command, raw="same") != before


def test_byte_code_of_another_state_leaves_a_module_unknown(module):
    """Python takes byte code for a source's whose size and second are the same; then the source says nothing."""
    path = module("redefined_d", "def f(x):\n    return x + 1\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    command = b"\x80\x04\x8c\x0bredefined_d\x94\x8c\x01f\x94\x93."
    compiled = Path(py_compile.compile(str(path), doraise=True))
    assert "redefined_d==" in identity_of(command)
    path.write_text("def f(x):\n    return x + 2\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert pickle.loads(command)(1) == 2  # Python itself is taken in
    assert identity_of(command) is None
    compiled.unlink()
    assert "redefined_d==" in identity_of(command)


def test_so_does_a_module_that_it_imports(module):
    module("redefined_b", "def g(x):\n    return x\n")
    module("redefined_c", "from redefined_b import g\n\ndef f(x):\n    return g(x)\n")
    command = b"\x80\x04\x8c\x0bredefined_c\x94\x8c\x01f\x94\x93."
    before = identity_of(command, raw="imports")
    module("redefined_b", "def g(x):\n    return x + 1\n")
    assert identity_of(command, raw="imports") != before


def test_installed_packages_count_with_what_they_require():
    import ua_parser

    identity = identity_of(ua_parser.parse_user_agent)
    for name in ("ua-parser==", "ua-parser-builtins==", "ua-parser-rs=="):
        assert name in identity
    assert "pytest" not in identity


def test_modules_without_sources_cannot_be_known_again(module, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("redefined_z.py", "def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path / "z.zip")
    assert identity_of(b"\x80\x04\x8c\x0bredefined_z\x94\x8c\x01f\x94\x93.") is None
    assert identity_of(b"no pickle") is None


def test_a_stated_version_is_of_one_function():
    command = pickle.dumps(len)
    settings = {"function.f": "raw-of-f 7"}
    assert identity_of(command, "raw-of-f", settings, "F") == "version 7"
    assert identity_of(command, "raw-of-another", settings, "F").startswith("python raw-of-another")
    assert identity_of(command, "~raw") is None
    assert identity_of(command, "~raw", {"function.f": "~raw 7"}) == "version 7"
    assert FunctionIdentities({}, lambda _: command).of("f", "python", "") is None


def test_only_functions_of_users_are_compared():
    identities = FunctionIdentities({}, lambda _: pickle.dumps(len))
    then = {"F": identities.of("f", "python", "r1")}

    def asked(kind, raw):
        return EqualTo(Call("f", (Column("x"),), "string", kind, identity=raw), Literal("a", "string"))

    assert identities.difference(then, asked("python", "r1")) is None
    assert "f is not known to be the function" in identities.difference(then, asked("python", "r2"))
    assert "f is not known to be the function" in identities.difference(then, asked("java", "r1"))
    assert identities.difference(then, asked("", "r2")) is None  # Spark's own: no filter takes it for the user's
    assert identities.difference({"g": "x"}, asked("python", "r2")) is None


PYTHON_SAYS = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/tmp/a.py", line 19, in inner
    raise KeyError("inner")
KeyError: 'inner'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/tmp/a.py", line 21, in f
    raise ValueError("no such agent:" + text)
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: no such agent: x
and one more line
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner"""
JAVA_SAYS = (
    "[FAILED_EXECUTE_UDF] User defined function (`f (Lambda$1)`: (string) => string) failed due to: "
    "java.lang.IllegalStateException: no such agent. SQLSTATE: 39000\n\tat x"
)


@pytest.mark.parametrize(
    ("text", "functions", "said"),
    [
        (PYTHON_SAYS, ["f"], "f raised ValueError: no such agent: x; nothing was indexed"),
        (PYTHON_SAYS, ["f", "g", "f"], "one of f, g raised ValueError: no such agent: x; nothing was indexed"),
        (PYTHON_SAYS, [], "a function that an index asks for raised ValueError: no such agent: x; nothing was indexed"),
        (JAVA_SAYS, ["f"], "f raised java.lang.IllegalStateException: no such agent; nothing was indexed"),
        ("[OTHER] what. SQLSTATE: 1", ["f"], "the objects could not be read, nothing was indexed: what. [OTHER]"),
    ],
)
def test_what_a_function_raised_is_one_line(text, functions, said):
    with pytest.raises(IndexingError) as raised, explained_failures(functions):
        raise RuntimeError(text)
    assert str(raised.value) == said


# --- through Spark ---------------------------------------------------------------------------------------------------

AGENTS = ("Firefox/curl", "curl/Wget", "Wget/Firefox", "Chrome/x")
NOT_THE_SAME = "is not known to be the function whose results it holds"

SOURCE = """
package redefined

import org.apache.spark.sql.api.java.UDF1

class First extends UDF1[String, String] { def call(s: String): String = s.split("/")(0) }
class Last extends UDF1[String, String] { def call(s: String): String = s.split("/")(1) }
class Half extends UDF1[Integer, java.math.BigDecimal] {
  def call(n: Integer): java.math.BigDecimal = new java.math.BigDecimal(n).divide(new java.math.BigDecimal(4))
}
class Small extends UDF1[Integer, java.lang.Boolean] { def call(n: Integer): java.lang.Boolean = n < 3 }
class Shown extends UDF1[Object, String] { def call(o: Object): String = o.toString }
"""


def as_in_a_notebook(function):
    """Return a function of no module: the sources of one, and of all that it imports, are part of an identity."""
    cell = {"__name__": "__main__"}
    return FunctionType(function.__code__, cell, function.__name__, function.__defaults__, function.__closure__)


@as_in_a_notebook
def first(text):
    return text.split("/")[0]


@as_in_a_notebook
def last(text):
    return text.split("/")[1]


def in_pandas(compute, type_):
    """Make a pandas function of something that takes a series."""
    made = as_in_a_notebook(compute)
    made.__annotations__ = dict.fromkeys((compute.__code__.co_varnames[0], "return"), pd.Series)
    return F.pandas_udf(made, type_)


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    rows = [", ".join(f"('{agent}', {10 * n + i})" for i in range(2)) for n, agent in enumerate(AGENTS)]
    path = write_objects(spark, tmp_path_factory.mktemp("functions") / "d", "ua string, n int", rows)
    return Dataset.for_path(spark, path)


@pytest.fixture
def indexed(spark, dataset):
    """Index what a function gives, and drop it afterwards."""

    def index(name, column="ua"):
        dataset.create_indexes(FormattedIndex(column, extract=name))
        return dataset.dataframe

    yield index
    dataset.drop_indexes()


def assert_not_used(spark, dataset, query, said=NOT_THE_SAME):
    """The answer is right, nothing is skipped, and the statistics and the explanation say why."""
    assert assert_same_rows(spark, query) == 0
    assert any(said in reason for entry in skipstone.last_query(spark) for reason in entry.not_used)
    assert said in str(dataset.explain(query))


@pytest.fixture(scope="module")
def java_classes(spark, tmp_path_factory):
    """Compile functions in Scala and let the session find them."""
    folder = tmp_path_factory.mktemp("classes")
    (folder / "Redefined.scala").write_text(SOURCE)
    (folder / "out").mkdir()
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    command = ["java", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", str(folder / "out")]
    with (folder / "log").open("w") as log:
        subprocess.run([*command, str(folder / "Redefined.scala")], stdout=log, stderr=log, check=True)
    jar = folder / "redefined.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted((folder / "out").rglob("*.class")):
            archive.write(file, file.relative_to(folder / "out"))
    spark._jsc.addJar(str(jar))
    location = spark._jvm.java.io.File(str(jar)).toURI().toURL()
    spark._jvm.Thread.currentThread().getContextClassLoader().addURL(location)


def test_a_python_function_that_is_registered_anew(spark, dataset, indexed, monkeypatch):
    spark.udf.register("named", first)
    df = indexed("named")
    query = "named(ua) = 'curl'"
    assert assert_same_rows(spark, df.where(query)) == 3

    spark.udf.register("named", last)
    assert_not_used(spark, dataset, df.where(query))
    with monkeypatch.context() as careless:
        careless.setattr(FunctionIdentities, "difference", lambda *_: None)
        with pytest.raises(AssertionError):  # rows are lost where nobody looks at identities
            assert_same_rows(spark, df.where(query))
    spark.udf.register("named", first)
    with conf(spark, {"spark.sql.execution.pyspark.binaryAsBytes": "false"}):
        assert_not_used(spark, dataset, df.where(query))
    spark.udf.register("named", first, "binary")
    assert_not_used(spark, dataset, df.where("named(ua) = CAST('curl' AS BINARY)"))
    spark.udf.register("named", F.udf(first).asNondeterministic())
    assert_not_used(spark, dataset, df.where(query), "no index serves")
    spark.udf.register("named", in_pandas(lambda texts: texts.str.split("/").str[1], "string"))
    assert_not_used(spark, dataset, df.where(query))

    @as_in_a_notebook
    def named(text):
        return text.split("/")[1]

    in_python = F.udf(named)
    assert_not_used(spark, dataset, df.where(in_python("ua") == "curl"))
    spark.udf.register("named", first)
    assert_not_used(spark, dataset, df.where((F.expr(query)) | (in_python("ua") == "x")))
    assert assert_same_rows(spark, df.where(query)) == 3  # the function that was indexed


def test_a_query_by_results_of_a_function_reads_no_other_object(spark, dataset, indexed):
    spark.udf.register("read_once", first)
    df = indexed("read_once").where("read_once(ua) = 'curl'")
    rows = len(df.collect())
    (scan,) = last_query(spark)
    assert (scan.objects.skipped, scan.rows_read) == (3, rows)


def test_a_python_function_of_a_module_that_changes(spark, dataset, indexed, module):
    module("redefined_spark", "def f(text):\n    return text.split('/')[0]\n")
    spark.udf.register("of_module", importlib.import_module("redefined_spark").f)
    with pytest.raises(IndexingError, match="of_module raised ModuleNotFoundError"):
        indexed("of_module")
    spark.sparkContext.addPyFile(str(Path(sys.modules["redefined_spark"].__file__)))
    df = indexed("of_module")
    assert assert_same_rows(spark, df.where("of_module(ua) = 'curl'")) == 3
    path = Path(sys.modules["redefined_spark"].__file__)
    path.write_text("def f(text):\n    return text.split('/')[1]\n")
    assert_not_used(spark, dataset, df.where("of_module(ua) = 'curl'"))


def test_a_java_function_under_the_name_and_another_after_it(spark, dataset, indexed, java_classes):
    spark.udf.register("named", first)
    df = indexed("named")
    spark.udf.registerJavaFunction("named", "redefined.Last", "string")
    assert_not_used(spark, dataset, df.where("named(ua) = 'curl'"))
    dataset.drop_indexes()

    spark.udf.registerJavaFunction("named", "redefined.First", "string")
    indexed("named")
    assert assert_same_rows(spark, df.where("named(ua) = 'curl'")) == 3
    spark.udf.registerJavaFunction("named", "redefined.Last", "string")
    assert_not_used(spark, dataset, df.where("named(ua) = 'curl'"))
    spark.udf.register("named", last)
    assert_not_used(spark, dataset, df.where("named(ua) = 'curl'"))


def test_a_java_function_that_gives_another_type(spark, dataset, indexed, java_classes):
    spark.udf.registerJavaFunction("half", "redefined.Half", "decimal(10,2)")
    df = indexed("half", "n")
    assert assert_same_rows(spark, df.where("half(n) = 2.75BD")) == 3
    spark.udf.registerJavaFunction("half", "redefined.Half", "decimal(10,1)")
    assert_not_used(spark, dataset, df.where("half(n) = 2.8BD"))


def test_a_java_function_gets_values_of_other_classes(spark, tmp_path, java_classes):
    """Days are one class's or another's by a setting, and look otherwise in far years."""
    rows = [f"(DATE'{day}')" for day in ("2020-01-05", "+12345-01-01", "2023-01-01")]
    dataset = Dataset.for_path(spark, write_objects(spark, tmp_path / "d", "d date", rows))
    spark.udf.registerJavaFunction("shown", "redefined.Shown", "string")
    dataset.create_indexes(FormattedIndex("d", extract="shown"))
    query = dataset.dataframe.where("shown(d) = '+12345-01-01'").selectExpr("shown(d) AS day")
    assert assert_same_rows(spark, query) == 3
    with conf(spark, {"spark.sql.datetime.java8API.enabled": "true"}):
        assert query.select("*").count() == 1
        assert_not_used(spark, dataset, query)


def test_what_cannot_be_known_again_needs_a_version(spark, dataset, indexed):
    def looked_up(names):
        known = spark.sparkContext.broadcast(names)
        return as_in_a_notebook(lambda text: known.value[text.split("/")[0]])

    spark.udf.register("looked_up", looked_up({"Firefox": "a", "curl": "b", "Wget": "c", "Chrome": "d"}))
    with pytest.raises(IndexingError, match=r"state its version with skipstone.state_version"):
        indexed("looked_up")
    skipstone.state_version(spark, "looked_up", "1")
    df = indexed("looked_up")
    assert assert_same_rows(spark, df.where("looked_up(ua) = 'b'")) == 3
    spark.udf.register("looked_up", looked_up({"Firefox": "b", "curl": "a", "Wget": "c", "Chrome": "d"}))
    assert_not_used(spark, dataset, df.where("looked_up(ua) = 'b'"))

    spark.udf.register("drawn", F.udf(first).asNondeterministic())
    with pytest.raises(IndexingError, match="drawn is not deterministic"):
        dataset.create_indexes(FormattedIndex("ua", extract="drawn"))
    with pytest.raises(IndexingError, match="no function is registered as 'nobodys'"):
        skipstone.state_version(spark, "nobodys", "1")


def test_a_version_is_known_in_another_session(spark, dataset, indexed):
    spark.udf.register("versioned", first)
    skipstone.state_version(spark, "versioned", "2026-01")
    indexed("versioned")
    other = spark.newSession()
    other.udf.register("versioned", lambda text: text.partition("/")[0])
    df = other.read.parquet(dataset.root)
    query = df.where("versioned(ua) = 'curl'")
    assert assert_same_rows(other, query) == 0  # another pickle, and nothing stated
    skipstone.state_version(other, "versioned", "2026-01")
    assert assert_same_rows(other, query.select("*")) == 3
    skipstone.state_version(other, "versioned", "2026-02")
    assert assert_same_rows(other, query.select("n")) == 0
    other.udf.register("versioned", last)  # takes the statement back
    assert_not_used(other, Dataset(df), df.where("versioned(ua) = 'curl'"))


def small(n):
    return n < 3


KINDS = {
    "python": lambda spark: spark.udf.register("small", small, "boolean"),
    "arrow-optimised": lambda spark: spark.udf.register("small", F.udf(small, "boolean", useArrow=True)),
    "pandas": lambda spark: spark.udf.register("small", in_pandas(lambda numbers: numbers < 3, "boolean")),
    "java": lambda spark: spark.udf.registerJavaFunction("small", "redefined.Small", "boolean"),
}


@pytest.fixture
def bounded(spark, dataset):
    dataset.create_indexes(MinMaxIndex("n"))
    yield dataset.dataframe
    dataset.drop_indexes()


def test_a_function_of_any_kind_may_be_said_to_imply_something(spark, dataset, bounded, java_classes):
    for kind, register in KINDS.items():
        register(spark)
        skipstone.udf_filter(spark, "small", lambda n: between(n, -1000, 2), when_false=lambda n: at_least(n, 3))
        assert assert_same_rows(spark, bounded.where("small(n)")) == 3, kind
        assert assert_same_rows(spark, bounded.where("NOT SMALL(n)")) == 1, kind
        assert assert_same_rows(spark, bounded.where("small(n) OR n = 30")) == 2, kind
    spark.udf.register("small", lambda n: n > 25, "boolean")
    assert_not_used(spark, dataset, bounded.where("small(n)"), "small was registered anew since")


def test_what_nothing_identifies_is_neither_said_to_imply_anything_nor_vouched_for(spark, dataset):
    skipstone.distances.register(spark)
    with pytest.raises(PluginError, match="no function is registered as 'nobodys': register it first, then say"):
        skipstone.udf_filter(spark, "nobodys", lambda n: None)
    with pytest.raises(IndexingError, match="no function is registered as 'nobodys': register it first, then vouch"):
        skipstone.distances.vouch_for(spark, "nobodys")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION in_sql(n INT) RETURNS BOOLEAN RETURN n < 3")
    for name in ("in_sql", "length"):
        with pytest.raises(PluginError, match=f"'{name}' is not a Python, Java or Scala function of this session"):
            skipstone.udf_filter(spark, name, lambda n: None)
        with pytest.raises(IndexingError, match="nothing would tell when another takes its name"):
            skipstone.distances.vouch_for(spark, name)
