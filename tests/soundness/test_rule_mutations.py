"""Mutation check of the rules in the bridge that leave out objects where filters do not reach: each broken rule shows.

Each row of ``MUTATIONS`` names a rule, the file that has it, what is replaced and by what, and the check that then has
other rows.  A mutated file is compiled against the bridge as it is, and the checks run in a process of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

import skipstone
from skipstone.engines.spark.bridge.build import bridge_jar, find_java

pytestmark = [pytest.mark.slow, pytest.mark.long]

BRIDGE = Path(skipstone.__file__).parent / "engines" / "spark" / "bridge"

CHECKS = """
import math, os, shutil, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from pyspark.sql import SparkSession
import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark import session as sessions

sessions.bridge_jar = lambda: Path(sys.argv[1])
wanted = sys.argv[2]  # one check; none: all of them
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = skipstone.configure(builder.config("spark.sql.shuffle.partitions", "1")).getOrCreate()

def write(number, rows=10, folder="fact"):
    keys = list(range(10 * number, 10 * number + rows))
    columns = {
        "k": pa.array(keys, pa.int32()),
        "m": pa.array([None if number == 6 else k for k in keys], pa.int32()),
        "x": pa.array([math.nan if number == 7 else float(k) for k in keys]),
        "t": pa.array([number // 2] * rows, pa.int32()),
    }
    Path(folder).mkdir(exist_ok=True)
    path = f"{folder}/object-{number}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1_700_000_000 + rows, 1_700_000_000 + rows))

def facts(folder="fact"):
    for number in range(8):
        write(number, folder=folder)
    Dataset.for_path(spark, folder).create_indexes(*map(MinMaxIndex, ("k", "m", "x", "t")))
    df = spark.read.parquet(folder)
    df.createOrReplaceTempView("f")
    return df

def plain(make):
    spark.conf.set("spark.skipstone.enabled", "false")
    try:
        return sorted(map(str, make().collect()))
    finally:
        spark.conf.set("spark.skipstone.enabled", "true")

def is_wanted(name):
    return wanted in ("", name)

def same(name, make, left_out):
    if not is_wanted(name):
        return
    expected = plain(make)
    found = sorted(map(str, make().collect()))
    assert found == expected, f"OTHER ROWS: {name}"
    scans = [s for s in skipstone.last_query(spark) if "fact" in s.roots[0]]
    assert any(s.objects.skipped for s in scans) is left_out, f"{name} skips otherwise than it should"

def join(name, dimension, query, left_out=True):
    spark.sql(dimension).createOrReplaceTempView("d")
    same(name, lambda: spark.sql(f"select /*+ broadcast(d) */ {query}"), left_out)

facts()
join("inner", "values (3), (79) as d(k)", "f.k from f join d on f.k = d.k")
join("outer", "values (3), (79) as d(k)", "f.k, d.k from f left join d on f.k = d.k", left_out=False)
join("anti", "values (3), (79) as d(k)", "f.k from f left anti join d on f.k = d.k", left_out=False)
join("nulls", "values (3), (null) as d(m)", "f.k, f.m from f join d on f.m <=> d.m")
join("nan", "values (3D), (double('NaN')) as d(x)", "f.k, f.x from f join d on f.x = d.x")
join("ends of ranges", "select id k from range(-5000, -3000) union all select 70L", "f.k from f join d on f.k = d.k")
same("value of a subquery", lambda: spark.sql("select k from f where k >= (select max(k) from d)"), True)
same("ties", lambda: spark.sql("select t from f order by t limit 15"), True)
same("count of values", lambda: spark.sql("select count(m), count(*) from f"), True)
same("what is left to read", lambda: spark.sql("select count(*), max(k) from f where k < 35"), True)
same("groups", lambda: spark.sql("select t, count(m) from f group by t"), True)
write(3, 14)  # more rows than were indexed
spark.read.parquet("fact").createOrReplaceTempView("f")
join("stale", "values (3), (41) as d(k)", "f.k from f join d on f.k = d.k")
same("stale, counted", lambda: spark.sql("select count(*), max(k) from f"), True)
same("stale, first rows", lambda: spark.sql("select t from f where t >= 1 order by t limit 15"), True)

if is_wanted("changed after it was listed"):
    old = facts("fact-old")
    write(4, 3, "fact-old")
    for by in ((), ("t",)):
        count = lambda: old.groupBy(*by).count()
        expected = plain(count)
        assert sorted(map(str, count().collect())) == expected, "OTHER ROWS: changed after it was listed"

if is_wanted("written after it was planned"):
    spark.range(0, 80, 1, 8).write.saveAsTable("fact_table")
    Dataset.for_table(spark, "fact_table").create_indexes(MinMaxIndex("id"))
    late = spark.table("fact_table").groupBy().count()
    late._jdf.queryExecution().executedPlan()
    spark.sql("insert into fact_table select id from range(80, 85)")
    assert late.collect()[0][0] == 85, "OTHER ROWS: written after it was planned"
print("ALL WELL")
"""

_HERE = "    case _ => {}\n  }}\n\n  /** Casts are taken"
_VALUE = "values.find(_._1 eq s.plan).flatMap(_._2).map(_.get(0, s.dataType)).orNull"
_NOT_NULL = "if (arguments(i) < 0) rows else rows - facts(arguments(i)).nulls"

MUTATIONS = {
    "prune the preserved side": ("JoinRule", _HERE.format("false"), _HERE.format("true"), "outer"),
    "NULLs of <=> forgotten": ("JoinKeys", "if (values.contains(default)) Or(p, IsNull(value)) else p", "p", "nulls"),
    "NaN forgotten": ("JoinKeys", "if (!values.hasNaN) None else", "if (values.values.nonEmpty) None else", "nan"),
    "< for ≤ at a range's end": ("JoinKeys", "LessThanOrEqual(other, high)", "LessThan(other, high)", "ends of ranges"),
    "a key is lost": ("KeyValues", "Arrays.copyOf(numbers, distinct)", "Arrays.copyOf(numbers, distinct - 1)", "inner"),
    "a subquery's value is lost": ("SubqueryValues", _VALUE, "null", "value of a subquery"),
    "≥ for > in the order": ("TopK", "ranked.best(i) > threshold", "ranked.best(i) >= threshold", "ties"),
    "leave out stale objects": ("Snapshot", "if (fresh) row else Snapshot.Stale", "row", "stale"),
    "count stale objects": ("Snapshot", "if (fresh) row else Snapshot.Stale", "row", "stale, counted"),
    "NULLs counted": ("Tally", _NOT_NULL, "rows", "count of values"),
    "answer whatever has changed": ("AnsweredAggregate", "isHeld() && (", "(", "changed after it was listed"),
    "answer whatever is on the disk": (
        "Counted",
        "now.size == status.getLen && now.lastModifiedTime.toMillis == status.getModificationTime",
        "now.size >= 0",
        "changed after it was listed",
    ),
    "read nothing beside the answer": (
        "AnsweredAggregate",
        "outcome.objects == asked.kept.cardinality",
        "outcome.objects <= asked.kept.cardinality",
        "what is left to read",
    ),
    "answer whatever is listed": ("AnsweredAggregate", "isCurrent()))(e", "true))(e", "written after it was planned"),
}


def _run(jar: Path, folder: Path, check: str = "") -> str:
    """Run the checks, or one of them, with a bridge; give what they printed."""
    (folder / "checks.py").write_text(CHECKS)
    environment = {**os.environ, "PYTHONPATH": str(Path(skipstone.__file__).parents[1])}
    command = [sys.executable, "checks.py", str(jar), check]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1200
    )
    return done.stdout + done.stderr


def _mutant(name: str, folder: Path) -> Path:
    """Compile one mutated file against the bridge, and put it in a copy of it."""
    file, old, new, _ = MUTATIONS[name]
    source = (BRIDGE / f"{file}.scala").read_text(encoding="utf-8")
    assert source.count(old) == 1, "let the mutation follow the code"
    mutated, classes = folder / f"{file}.scala", folder / "classes"
    mutated.write_text(source.replace(old, new), encoding="utf-8")
    classes.mkdir()
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [find_java(), "-Xss8m", "-cp", f"{jars}:{bridge_jar()}", "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    subprocess.run([*command, "-d", str(classes), str(mutated)], check=True)
    whole = folder / "mutant.jar"
    with zipfile.ZipFile(bridge_jar()) as before, zipfile.ZipFile(whole, "w") as after:
        made = {str(path.relative_to(classes)): path for path in classes.rglob("*.class")}
        assert made
        for item in before.infolist():
            if item.filename not in made:
                after.writestr(item, before.read(item))
        for entry, path in made.items():
            after.write(path, entry)
    return whole


def test_the_rules_as_they_are_pass(tmp_path):
    shutil.copy(bridge_jar(), tmp_path / "bridge.jar")
    assert "ALL WELL" in (said := _run(tmp_path / "bridge.jar", tmp_path)), said[-3000:]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_rule_shows(tmp_path, name):
    check = MUTATIONS[name][3]
    said = _run(_mutant(name, tmp_path), tmp_path, check)
    assert f"OTHER ROWS: {check}" in said, said[-3000:]
