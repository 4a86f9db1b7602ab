"""The walk-through and the example package: what a plug-in author reads and copies must work as it stands."""

import ast
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

import skipstone
from skipstone import Clause, Filter, Index, MetadataType, registry, toolkit
from skipstone.engines.spark.aggregates import aggregates_of
from skipstone.engines.spark.footers import footer_roles
from skipstone.expressions import tree
from skipstone.indexing.records import ColumnRecord
from skipstone.indexing.source import BoundIndex
from skipstone.querying.clause import lookups_of
from skipstone.testing import assert_sound

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "skipstone-lengths"
LENGTH = tree.Call("length", (tree.Column("text", "string"),), "int")


def walk_through():
    text = (ROOT / "docs" / "plugins.md").read_text()
    return re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture
def longest_index(monkeypatch):
    others = {name: type_ for name, type_ in registry._index_types.items() if name != "longest"}
    monkeypatch.setattr(registry, "_index_types", others)
    names = {"__name__": "walk_through"}
    exec(compile(walk_through(), "docs/plugins.md", "exec", dont_inherit=True), names)
    return names["LongestIndex"]


def test_the_walk_through_is_at_most_thirty_lines():
    source = walk_through()
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {line for node in imports for line in range(node.lineno, node.end_lineno + 1)}
    lines = [n for n, line in enumerate(source.splitlines(), 1) if line.strip() and n not in imported]
    assert len(lines) <= 30


def test_the_walk_through_loses_no_row(longest_index):
    comparisons = st.sampled_from([tree.GreaterThan, tree.LessThan, tree.EqualTo, tree.GreaterThanOrEqual])
    outcome = assert_sound(
        longest_index("text"),
        {"text": "string"},
        predicates=st.builds(lambda make, n: make(LENGTH, tree.Literal(n, "int")), comparisons, st.integers(-1, 5)),
        values={"text": st.none() | st.text(max_size=4)},
        functions={"length": lambda text: None if text is None else len(text)},
    )
    assert outcome.skipped > 100


def test_the_example_of_the_toolkit_loses_no_row(monkeypatch):
    monkeypatch.setattr(registry, "_index_types", dict(registry._index_types))
    section = (ROOT / "docs" / "plugins.md").read_text().partition("## The toolkit")[2]
    names = {"__name__": "toolkit_example"}
    exec(compile(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], "docs/plugins.md", "exec"), names)
    assert assert_sound(names["GreatestIndex"]("n"), {"n": "int"}).skipped > 0


def test_the_example_of_facts_is_taken_up_by_footers_and_aggregates(monkeypatch):
    monkeypatch.setattr(registry, "_index_types", dict(registry._index_types))
    section = (ROOT / "docs" / "plugins.md").read_text().partition("## The toolkit")[2]
    names = {"__name__": "facts_example"}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]:
        exec(compile(block, "docs/plugins.md", "exec"), names)
    index_type, greatest = names["GreatestIndex"], names["Greatest"]
    index_type.facts, greatest.from_aggregates = names["facts"], names["from_aggregates"]
    bound = BoundIndex("a", index_type("n"), (ColumnRecord("n", "int"),))
    assert footer_roles(bound) == {"upper": "max", "null_count": "nulls"}
    assert aggregates_of([bound]) == [{"upper": "max(`n`)", "null_count": "count_if(`n` IS NULL)"}]
    assert greatest.from_aggregates({"upper": 7, "null_count": 1}) == greatest(7, 1)


def test_the_example_of_lookups_loses_no_row_and_looks_up_what_it_says(monkeypatch):
    monkeypatch.setattr(registry, "_index_types", dict(registry._index_types))
    section = (ROOT / "docs" / "plugins.md").read_text().partition("## Fields of which little is looked at")[2]
    names = {"__name__": "lookup_example"}
    exec(compile(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], "docs/plugins.md", "exec"), names)
    index = names["SeenIndex"]("n")
    assert assert_sound(index, {"n": "int"}).skipped > 0
    assert lookups_of(names["SeenClause"](index, 7)) == {(index, "values"): toolkit.Lookup(values=(7,))}


TOOLKIT = re.findall(
    r"^\| `((?:toolkit|indexing|querying)/\w+)\.py` \| (.*) \|$",
    (ROOT / "docs" / "plugins.md").read_text().partition("## The toolkit")[2].partition("\n## ")[0],
    re.MULTILINE,
)
FIELDS = {"lower", "upper", "null_count", "nan_count"}
"""Stored fields, which the table names as well."""
NO_NAMES = {"None", "xxhash64", "of", "n"}
CONTRACTS = {"Index": Index, "MetadataType": MetadataType, "Clause": Clause, "Filter": Filter}


@pytest.mark.parametrize(("path", "said"), TOOLKIT, ids=[path for path, _ in TOOLKIT])
def test_the_toolkit_has_what_its_table_names(path, said):
    module = importlib.import_module("skipstone." + path.replace("/", "."))
    classes = [
        thing for thing in vars(module).values() if inspect.isclass(thing) and thing.__module__ == module.__name__
    ]
    named = set(re.findall(r"`(\w+)(?:\(\w*\))?`", said)) - NO_NAMES - FIELDS
    assert named
    for name in named:
        assert hasattr(toolkit, name) or any(hasattr(one, name) for one in classes), name
        assert hasattr(module, name) or any(hasattr(one, name) for one in classes), name
    for name, attribute in re.findall(r"`(\w+)\.(\w+)`", said):
        assert hasattr(CONTRACTS[name], attribute), f"{name}.{attribute}"


def test_the_table_of_the_toolkit_has_all_its_names():
    named = set(re.findall(r"`(\w+)`", " ".join(said for _, said in TOOLKIT)))
    called = set(re.findall(r"`(\w+)\(", " ".join(said for _, said in TOOLKIT)))
    assert set(toolkit.__all__) - named - called <= {"Test", "Filters"}  # types that the others are annotated with


def test_the_table_of_the_toolkit_has_all_its_modules():
    here = {f"toolkit/{path.stem}" for path in (ROOT / "src" / "skipstone" / "toolkit").glob("[a-z]*.py")}
    assert here <= {path for path, _ in TOOLKIT}


def test_built_in_types_use_the_interface_of_plug_ins_and_no_other():
    public = {*skipstone.__all__, *toolkit.__all__}
    for path in (ROOT / "src" / "skipstone" / "indexes").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and re.match(r"skipstone\.(indexing|querying|toolkit)\b", node.module):
                assert {alias.name for alias in node.names} <= public, f"{path.name}: {node.module}"


def test_a_clause_that_forgets_the_longest_is_caught(longest_index, monkeypatch):
    def first_only(index, rows):
        return index.metadata_type(len(rows.column(0)[0].as_py()) if len(rows) else 0)

    monkeypatch.setattr(longest_index, "collect_metadata", first_only)
    with pytest.raises(AssertionError, match="skips an object"):
        assert_sound(
            longest_index("text"),
            {"text": "string"},
            predicates=st.integers(-1, 5).map(lambda n: tree.GreaterThan(LENGTH, tree.Literal(n, "int"))),
            values={"text": st.text(max_size=4)},
            functions={"length": len},
        )


def test_a_base_of_several_index_types_is_no_type_itself(longest_index):
    class MeasuredIndex(Index):
        def supports(self, types):
            return types == ("string",)

    assert registry.find_index("measured") is None
    assert registry.find_index("longest") is longest_index


PROGRAM = """
import sys
from pyspark.sql import SparkSession
import skipstone
from skipstone import Dataset

spark = skipstone.configure(
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
).getOrCreate()
folder = sys.argv[1]
spark.range(0, 80, numPartitions=8).selectExpr("repeat('x', int(id)) AS text").write.parquet(folder)
dataset = Dataset.for_path(spark, folder)
from skipstone_lengths import LengthIndex
print(dataset.create_indexes(LengthIndex("text")))
query = spark.read.parquet(folder).where("length(text) > 75")
print("rows", query.count(), "kept", skipstone.last_query(spark)[-1].objects.kept)
"""
LATER = """
import sys
from pyspark.sql import SparkSession
import skipstone

spark = skipstone.configure(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")).getOrCreate()
query = spark.read.parquet(sys.argv[1]).where("length(text) BETWEEN 12 AND 15")
print("rows", query.count(), "kept", skipstone.last_query(spark)[-1].objects.kept)
assert "skipstone_lengths" in sys.modules
"""


@pytest.mark.slow
def test_the_example_package_is_found_by_its_entry_point(tmp_path):
    installed = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*install, str(installed), str(EXAMPLE)], check=True, timeout=300)
    paths = os.pathsep.join([str(installed), str(ROOT / "src")])
    folder = str(tmp_path / "texts")
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "later.py").write_text(LATER)
    for command, expected in (
        ([str(tmp_path / "program.py"), folder], "rows 4 kept 1"),
        ([str(tmp_path / "later.py"), folder], "rows 4 kept 1"),
        (["-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")], "1 passed"),
    ):
        output = tmp_path / "output.txt"  # a file: a JVM that inherits a pipe would keep the reader waiting
        with output.open("wb") as sink:
            subprocess.run(
                [sys.executable, *command], timeout=300, stdout=sink, stderr=sink, env=environment, check=False
            )
        assert expected in output.read_text()


def test_the_documented_lines_of_code_are_those_of_the_code():
    lines = runpy.run_path(str(ROOT / "scripts" / "index_lines.py"), run_name="index_lines")
    page = (ROOT / "docs" / "indexes" / "README.md").read_text(encoding="utf-8")
    assert lines["table"]() in page, "run: python scripts/index_lines.py --write"
