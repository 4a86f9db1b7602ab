"""What was found by looking for rows to lose through Spark: each of these trusted a function that was another one."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest
from tests.support import assert_same_rows, write_objects

import skipstone
from skipstone import BloomFilterIndex, Dataset, FormattedIndex, MinMaxIndex
from skipstone.engines.spark.functions import raw_identity
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
