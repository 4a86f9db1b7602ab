"""What was found by looking for rows to lose: each of these trusted a function that was another one."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest
from tests.support import assert_same_rows, write_objects

import skipstone
from skipstone import BloomFilterIndex, Dataset, FormattedIndex, MinMaxIndex
from skipstone.engines.spark.functions import FunctionIdentities, raw_identity
from skipstone.errors import IndexingError, SkipstoneError
from skipstone.expressions.ranges import at_least

SOURCE = """
package attacked

import org.apache.spark.sql.SparkSession

object Maker {
  def above(spark: SparkSession, name: String, least: Int): Unit = spark.udf.register(name, (n: Integer) => n > least)
}
"""


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    rows = [", ".join(f"('{word}', {10 * n + i})" for i in range(3)) for n, word in enumerate(("a", "b", "C"))]
    path = write_objects(spark, tmp_path_factory.mktemp("attacked") / "d", "word string, n int", rows)
    return Dataset.for_path(spark, path)


@pytest.fixture(scope="module")
def maker(spark, tmp_path_factory):
    """Compile a maker of Scala functions, which capture a number, and let the session find it."""
    folder = tmp_path_factory.mktemp("classes")
    (folder / "Maker.scala").write_text(SOURCE)
    (folder / "out").mkdir()
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    command = ["java", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", str(folder / "out")]
    with (folder / "log").open("w") as log:
        subprocess.run([*command, str(folder / "Maker.scala")], stdout=log, stderr=log, check=True)
    jar = folder / "attacked.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted((folder / "out").rglob("*.class")):
            archive.write(file, file.relative_to(folder / "out"))
    spark._jsc.addJar(str(jar))
    spark._jvm.Thread.currentThread().getContextClassLoader().addURL(spark._jvm.java.io.File(str(jar)).toURI().toURL())
    return spark._jvm.attacked.Maker


def test_functions_that_captured_different_values_are_different_functions(spark, dataset, maker):
    """All of one lambda's functions are of one class, which has no byte code to read."""
    dataset.create_indexes(MinMaxIndex("n"))
    try:
        maker.above(spark._jsparkSession, "above", 15)
        of_the_first = raw_identity(spark, "above")
        skipstone.udf_filter(spark, "above", lambda n: at_least(n, 16))
        assert raw_identity(spark, "above") == of_the_first
        assert assert_same_rows(spark, dataset.dataframe.where("above(n)")) == 2
        maker.above(spark._jsparkSession, "above", 5)
        assert raw_identity(spark, "above") != of_the_first
        assert assert_same_rows(spark, dataset.dataframe.where("above(n)")) == 0
    finally:
        dataset.drop_indexes()


@pytest.mark.skipif(int(pyspark.__version__.split(".")[0]) < 4, reason="functions written in SQL came with Spark 4")
def test_a_function_written_in_sql_is_not_the_one_that_it_calls(spark, dataset):
    spark.udf.register("inner_word", lambda word: word)
    spark.sql("CREATE TEMPORARY FUNCTION outer_word(w STRING) RETURNS STRING RETURN upper(inner_word(w))")
    try:
        assert raw_identity(spark, "inner_word") is not None
        assert raw_identity(spark, "outer_word") is None
        with pytest.raises(SkipstoneError, match="outer_word"):
            dataset.create_indexes(FormattedIndex("word", extract="outer_word"))
    finally:
        spark.sql("DROP TEMPORARY FUNCTION outer_word")


def test_a_function_that_hides_one_of_sparks_own_is_not_computed_with(spark, tmp_path, monkeypatch):
    """A registered ``xxhash64`` hides Spark's in some releases: a Bloom filter of its results would lose rows."""
    folder = str(tmp_path / "d")
    spark.range(4).write.parquet(folder)
    dataset = Dataset.for_path(spark, folder)
    spark.udf.register("own_hash", lambda n: 0, "bigint")
    monkeypatch.setattr(BloomFilterIndex, "inputs", lambda self, types: ("own_hash(id)",))
    with pytest.raises(IndexingError, match="own_hash is a registered function here"):
        dataset.create_indexes(BloomFilterIndex("id"))
    assert not dataset.is_indexed


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write modules into a folder that Python imports from."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in [n for n in sys.modules if n.startswith("attacked_")]:
        del sys.modules[name]


def identity(module_name, raw):
    """Return the identity of a function ``f`` of a module, which is pickled by the module's name."""
    size = bytes([len(module_name)])
    command = b"\x80\x04\x8c" + size + module_name.encode() + b"\x94\x8c\x01f\x94\x93."
    return FunctionIdentities({}, lambda _: command).of("f", "python", raw)


@pytest.mark.parametrize(
    "spelled",
    [
        "import os, attacked_b",
        "import os; import attacked_b",
        "if True: import attacked_b",
        "from attacked_b import (\n    g,\n)",
        "import os, \\\n    attacked_b",
        "import attacked_b.c as d",
    ],
)
def test_a_module_is_found_however_it_is_imported(module, spelled):
    module("attacked_a", f"{spelled}\ndef f(x):\n    return x\n")
    module("attacked_b", "def g(x):\n    return x\n")
    before = identity("attacked_a", spelled)
    module("attacked_b", "def g(x):\n    return -x\n")
    assert "attacked_b==" in before
    assert identity("attacked_a", spelled) != before


def test_a_module_that_hides_an_installed_one_is_told_by_its_own_text(module):
    """``numpy`` stands for any package whose name a user's module takes, such as ``utils`` or ``tests``."""
    installed = identity("numpy", "hidden")
    assert any(word.startswith("numpy==") for word in installed.split())
    module("numpy", "def f(x):\n    return x\n")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "numpy"}
    try:
        one = identity("numpy", "hidden")
        module("numpy", "def f(x):\n    return -x * 2\n")
        two = identity("numpy", "hidden")
    finally:
        sys.modules.update(kept)
    assert len({installed, one, two}) == 3
