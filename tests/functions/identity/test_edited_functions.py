"""Functions of modules that change while an application runs, or differ for driver and workers: no row is lost.

Every application is a process of its own with real workers, which keep what they imported; "the next" one is another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[3]

PROLOGUE = """
import importlib, json, os, sys, time
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
import skipstone
from skipstone import Dataset, FeatureIndex, FormattedIndex, MinMaxIndex, skipping_stats
from skipstone.errors import SkipstoneError
from skipstone.expressions.ranges import between

AGENTS = ("Firefox/curl", "curl/Wget", "Wget/Firefox", "Chrome/x")
LAKE, said = "lake", {}

def session(**settings):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.skipstone.plannerTimeoutMs", "300000")  # machines that run tests may be busy
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    spark = skipstone.configure(builder).getOrCreate()
    if not Path(LAKE).exists():
        Path(LAKE).mkdir()
        for number, agent in enumerate(AGENTS):
            rows = pa.table({"ua": [agent], "n": pa.array([10 * number], pa.int32())})
            pq.write_table(rows, f"{LAKE}/{number}.parquet")
            os.utime(f"{LAKE}/{number}.parquet", (1_700_000_000, 1_700_000_000.5))
    return spark, Dataset.for_path(spark, LAKE)

def asked(spark, predicate):
    "Run a query with and without skipping."
    df = spark.read.parquet(LAKE).where(predicate)
    with skipping_stats(spark) as stats:
        found = sorted(map(tuple, df.collect()))
    spark.conf.set("spark.skipstone.enabled", "false")
    right = sorted(map(tuple, spark.read.parquet(LAKE).where(predicate).collect()))
    spark.conf.unset("spark.skipstone.enabled")
    entry = stats[-1]
    skipped = entry.objects.total - entry.objects.kept
    # Workers of before and after an edit may answer one query differently: rows are lost by skipping only.
    lost = [row for row in right if row not in found] if skipped else []
    return {"lost": lost, "skipped": skipped, "why": " ".join(entry.not_used)}

def indexing(dataset, *indexes):
    "Make indexes; give the refusal."
    try:
        dataset.create_indexes(*indexes)
    except SkipstoneError as error:
        return str(error)
    return ""

def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    importlib.invalidate_caches()
"""

FIRST = "def f(text):\n    return text.split('/')[0]\n"
LAST = "def f(text):\n    return text.split('/')[1]  # the other one\n"


class Applications:
    """Runs applications in one folder, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, body: str, *path: str, **environment: str) -> dict:
        """Run a script; give what it said."""
        self.count += 1
        script, out, log = (self.folder / f"application-{self.count}.{kind}" for kind in ("py", "json", "log"))
        script.write_text(PROLOGUE + textwrap.dedent(body) + f"\nPath({str(out)!r}).write_text(json.dumps(said))\n")
        src = os.environ.get("SKIPSTONE_SRC", str(REPOSITORY / "src"))
        folders = [*(str(self.folder / p) for p in path), src]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment}
        with log.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
            code = subprocess.call(
                [sys.executable, str(script)], stdout=file, stderr=file, cwd=self.folder, timeout=600, env=env
            )
        assert code == 0, log.read_text()[-3000:]
        return json.loads(out.read_text())


@pytest.fixture
def applications(tmp_path):
    return Applications(tmp_path)


def test_a_module_that_is_edited_after_workers_imported_it(applications):
    """Workers that Spark reuses still run it as it was: its results must not be stored as those of what it is now."""
    applications.write("edited.py", FIRST)
    said = applications.run(
        f"""
        import edited
        spark, dataset = session()
        spark.udf.register("f", edited.f)
        spark.read.parquet(LAKE).repartition(4).selectExpr("f(ua)").collect()
        write("edited.py", {LAST!r})
        importlib.reload(edited)
        spark.udf.register("f", edited.f)
        said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["this"] = [asked(spark, f"f(ua) = '{{name}}'") for name in ("curl", "Wget", "Firefox", "x", "Chrome")]
        skipstone.state_version(spark, "f", "2")
        said["refused with a version"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        """
    )
    next_one = applications.run(
        """
        import edited
        spark, dataset = session()
        spark.udf.register("f", edited.f)
        said["next"] = [asked(spark, f"f(ua) = '{name}'") for name in ("curl", "Wget", "Firefox", "x", "Chrome")]
        skipstone.state_version(spark, "f", "2")
        said["stated"] = [asked(spark, f"f(ua) = '{name}'") for name in ("curl", "Wget", "Firefox", "x", "Chrome")]
        """
    )
    assert [q["lost"] for q in said["this"] + next_one["next"] + next_one["stated"]] == [[]] * 15
    assert "edited.py changed after this application started" in said["refused"]
    assert "restart the application" in said["refused"]
    assert "changed after this application started" in said["refused with a version"]


@pytest.mark.long
def test_what_was_said_of_a_module_is_taken_back_when_it_is_edited(applications):
    """A function that is pickled by reference has the same bytes before and after: promises and versions see more."""
    applications.write("promised.py", "def small(n):\n    return n < 5\n")
    applications.write("stated.py", FIRST)
    said = applications.run(
        f"""
        import promised, stated
        spark, dataset = session(spark__python__worker__reuse="false")
        spark.udf.register("small", promised.small, "boolean")
        skipstone.udf_filter(spark, "small", lambda n: between(n, -1000, 4))
        spark.udf.register("f", stated.f)
        skipstone.state_version(spark, "f", "1")
        dataset.create_indexes(MinMaxIndex("n"), FormattedIndex("ua", extract="f"))
        said["before"] = [asked(spark, "small(n)"), asked(spark, "f(ua) = 'curl'")]
        write("promised.py", "def small(n):\\n    return n > 25  # large\\n")
        write("stated.py", {LAST!r})
        for module in (promised, stated):
            importlib.reload(module)
        spark.udf.register("small", promised.small, "boolean")
        spark.udf.register("f", stated.f)
        said["after"] = [asked(spark, "small(n)"), asked(spark, "f(ua) = 'curl'")]
        said["explained"] = str(dataset.explain(spark.read.parquet(LAKE).where("small(n)")))
        skipstone.udf_filter(spark, "small", lambda n: between(n, 26, 1000))
        skipstone.state_version(spark, "f", "2")
        said["again"] = [asked(spark, "small(n)"), asked(spark, "f(ua) = 'curl'")]
        """
    )
    assert [q["skipped"] for q in said["before"]] == [3, 3]
    assert [q["lost"] for q in said["before"] + said["after"] + said["again"]] == [[]] * 6
    assert [q["skipped"] for q in said["after"] + said["again"]] == [0] * 4
    assert "modules that small refers to have changed since" in said["after"][0]["why"]
    assert "modules that small refers to have changed since" in said["explained"]
    assert "f is not known to be the function whose results it holds" in said["after"][1]["why"]
    assert "promised.py changed after this application started" in said["again"][0]["why"]
    assert "stated.py changed after this application started" in said["again"][1]["why"]


@pytest.mark.long
def test_a_module_that_stays_as_it_is_serves(applications):
    """In the same application and in the next, from a job that queries start once."""
    applications.write("steady.py", FIRST)
    body = """
        import steady
        spark, dataset = session()
        spark.udf.register("f", steady.f)
        spark.udf.register("small", steady.small, "boolean")
        skipstone.udf_filter(spark, "small", lambda n: between(n, -1000, 4))
        if not dataset.is_indexed:
            said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"), MinMaxIndex("n"))
        tracker = spark.sparkContext.statusTracker()
        def jobs():
            return len(tracker.getJobIdsForGroup(None))
        said["asked"] = [asked(spark, f"f(ua) = '{name}'") for name in ("curl", "Chrome", "nobody")]
        said["asked"].append(asked(spark, "small(n)"))
        from skipstone.engines.spark import worker_packages
        questions = [q for state in worker_packages._states.values() for q in state.questions.values()]
        before = len({id(q) for q in questions})
        asked(spark, "f(ua) = 'curl' AND small(n)")
        after = {id(q) for state in worker_packages._states.values() for q in state.questions.values()}
        said["questions"] = [before, len(after)]
        df = spark.read.parquet(LAKE)
        earlier = jobs()
        said["read"] = len(df.where("f(ua) = 'curl'").inputFiles())
        said["jobs of planning again"] = jobs() - earlier
        """
    applications.write("steady.py", FIRST + "\ndef small(n):\n    return n < 5\n")
    first, second = applications.run(body), applications.run(body)
    assert first["refused"] == ""
    for said in (first, second):
        assert [q["lost"] for q in said["asked"]] == [[]] * 4
        assert [q["skipped"] for q in said["asked"]] == [3, 3, 4, 3], said["asked"]
        assert said["questions"] == [2, 2]
        assert (said["read"], said["jobs of planning again"]) == (1, 0)


BOXES = """
from pyspark.sql.types import StringType, UserDefinedType

class Box:
    def __init__(self, text):
        self.text = text

class BoxType(UserDefinedType):
    @classmethod
    def sqlType(cls):
        return StringType()

    @classmethod
    def module(cls):
        return "boxes"

    def serialize(self, box):
        return box.text

    def deserialize(self, text):
        return Box(text.split("/")[{place}])

Box.__UDT__ = BoxType()
"""


@pytest.mark.long
def test_modules_that_are_edited_between_two_applications(applications):
    """Whatever they are called and wherever they lie: an index of before does not serve the function of after."""
    files = {"ümod": "ümod.py", "my-mod": "my-mod.py", "sched": "sched.py", "acme.local": "acme/local.py"}
    files |= {"eggy": "eggy/__init__.py", "calling": "helper.py"}
    metadata = "Metadata-Version: 2.1\nName: {}\nVersion: 1.0\n"
    applications.write("texts.py", "def text_in(box):\n    return box.text\n")
    applications.write("calling.py", "def f(text):\n    return __import__('helper').f(text)\n")
    applications.write("eggy.egg-info/PKG-INFO", metadata.format("eggy"))
    applications.write("eggy.egg-info/top_level.txt", "eggy\n")
    applications.write("site/acme/core.py", "")
    applications.write("site/acme_core-1.0.dist-info/METADATA", metadata.format("acme-core"))
    applications.write("site/acme_core-1.0.dist-info/RECORD", "acme/core.py,,\n")
    body = f"""
        spark, dataset = session()
        names = {{name: f"f{{number}}" for number, name in enumerate({list(files)!r})}}
        for name, function in names.items():
            spark.udf.register(function, importlib.import_module(name).f)
        import boxes, texts
        spark.udf.register("boxed", F.udf(boxes.Box, boxes.BoxType(), useArrow=False))
        skipstone.state_version(spark, "boxed", "1")
        spark.udf.register("text_in", F.udf(texts.text_in, useArrow=False))  # does not name the class
        if not dataset.is_indexed:
            indexes = [FormattedIndex("ua", extract=function) for function in names.values()]
            indexes.append(FeatureIndex({{"curl": "text_in(if(n >= 0, boxed(ua), NULL)) = 'curl'"}}))
            said["refused"] = indexing(dataset, *indexes)
        said["typed"] = [asked(spark, "text_in(if(n >= 0, boxed(ua), NULL)) = 'curl'")] * 2
        for name, function in names.items():
            said[name] = [asked(spark, f"{{function}}(ua) = '{{agent}}'") for agent in ("curl", "Wget")]
        """
    for text, skipped in ((FIRST, 3), (LAST, 0), (FIRST, 3)):
        applications.write("boxes.py", BOXES.format(place=int(text == LAST)))
        for file in files.values():
            applications.write(file, text)
        time.sleep(2)  # what changed shortly before an application started is taken for edited
        said = applications.run(body, "", "site")
        assert said.get("refused", "") == ""
        for name in (*files, "typed"):
            assert [q["lost"] for q in said[name]] == [[], []], name
            assert [q["skipped"] for q in said[name]] == [skipped] * 2, (name, said[name])


@pytest.mark.long
def test_workers_that_find_another_module_than_the_driver(applications):
    applications.write("mine/copied.py", FIRST)
    applications.write("theirs/copied.py", LAST)
    body = """
        sys.path.insert(0, "mine")
        import copied
        spark, dataset = session()
        spark.udf.register("f", copied.f)
        if not dataset.is_indexed:
            said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["asked"] = asked(spark, "f(ua) = 'curl'")
        """
    mixed = applications.run(body, "theirs")
    said = mixed["refused"]
    same = applications.run(body, "mine")
    assert (same["asked"]["lost"], same["asked"]["skipped"]) == ([], 3)
    assert same["refused"] == ""
    assert "copied is " in said
    assert "for the driver and" in said
    mixed = applications.run(body, "theirs")
    assert (mixed["asked"]["lost"], mixed["asked"]["skipped"]) == ([], 0)
    assert "copied is " in mixed["asked"]["why"]


DISTRIBUTION = {
    "METADATA": "Metadata-Version: 2.1\nName: fake-agents\nVersion: {version}\n",
    "RECORD": "fake_agents/__init__.py,,\nfake_agents-{version}.dist-info/METADATA,,\n",
    "INSTALLER": "tests\n",
}


@pytest.mark.long
def test_an_installed_package_that_is_upgraded_while_an_application_runs(applications):
    def installed(version, source):
        files = {
            f"site/fake_agents-{version}.dist-info/{n}": t.format(version=version) for n, t in DISTRIBUTION.items()
        }
        return files | {"site/fake_agents/__init__.py": source}

    for name, text in installed("1.0", FIRST).items():
        applications.write(name, text)
    said = applications.run(
        f"""
        import fake_agents
        spark, dataset = session()
        spark.udf.register("f", fake_agents.f)
        said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["before"] = asked(spark, "f(ua) = 'curl'")
        import shutil
        shutil.rmtree("site/fake_agents-1.0.dist-info")
        for name, text in {installed("2.0", LAST)!r}.items():
            write(name, text)
        said["after"] = asked(spark, "f(ua) = 'curl'")
        importlib.reload(fake_agents)
        spark.udf.register("f", fake_agents.f)
        said["registered"] = asked(spark, "f(ua) = 'curl'")
        dataset.drop_indexes()
        said["refused later"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        """,
        "site",
    )
    next_one = applications.run(
        """
        import fake_agents
        spark, dataset = session()
        spark.udf.register("f", fake_agents.f)
        said["asked"] = [asked(spark, f"f(ua) = '{name}'") for name in ("curl", "Wget", "Firefox", "x")]
        """,
        "site",
    )
    assert [q["lost"] for q in next_one["asked"]] == [[]] * 4
    assert said["refused"] == ""
    assert (said["before"]["lost"], said["before"]["skipped"]) == ([], 3)
    for when in ("after", "registered"):
        assert (said[when]["lost"], said[when]["skipped"]) == ([], 0), when
        assert "fake_agents" in said[when]["why"]
    assert "changed after this application started" in said["refused later"]


@pytest.mark.long
def test_workers_in_another_zone(applications):
    """What a function gets of the local time is its worker's: an index made in one zone does not serve another."""
    applications.write("hours.py", "import time\n\ndef f(n):\n    return time.localtime(n * 3600).tm_hour\n")
    body = """
        import hours
        spark, dataset = session(spark__driver__extraJavaOptions="-Duser.timezone=UTC")
        spark.udf.register("hour_of", hours.f, "int")
        if not dataset.is_indexed:
            said["refused"] = indexing(dataset, FormattedIndex("n", extract="hour_of"))
        said["asked"] = [asked(spark, f"hour_of(n) = {hour}") for hour in (0, 6, 10, 20, 2, 12, 16, 22)]
        """
    first = applications.run(body, TZ="UTC")
    assert first["refused"] == ""
    second = applications.run(body, TZ="America/Los_Angeles")
    third = applications.run(body, TZ="UTC")
    for said, serves in ((first, True), (second, False), (third, True)):
        assert [q["lost"] for q in said["asked"]] == [[]] * 8
        assert (sum(q["skipped"] for q in said["asked"]) > 0) is serves


def test_a_module_that_is_edited_between_planning_and_running(applications):
    """The plan rests on the module of before, and workers that start later run that of after."""
    applications.write("late.py", FIRST)
    body = f"""
        import late
        spark, dataset = session()
        spark.conf.set("spark.skipstone.enabled", ENABLED)
        spark.udf.register("f", late.f)
        if not dataset.is_indexed:
            said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
            spark.stop()
        else:
            df = spark.read.parquet(LAKE).where("f(ua) = 'curl'")
            df._jdf.queryExecution().executedPlan()
            write("late.py", {LAST!r})
            said["rows"] = sorted(map(tuple, df.collect()))
        """
    found = []
    for enabled in ("true", "false", "true"):  # the first makes the index
        applications.write("late.py", FIRST)
        time.sleep(2)  # what changed shortly before an application started is taken for edited
        found.append(applications.run(f'\n        ENABLED = "{enabled}"' + body))
    assert found[0]["refused"] == ""
    assert found[1]["rows"] == found[2]["rows"] == [["Firefox/curl", 0]]


@pytest.mark.long
def test_a_module_that_appears_between_planning_and_running(applications):
    """Nothing that was there is edited: another module is found first, or a package gets a module that it looks for."""
    applications.write("there/hidden.py", FIRST)
    either = "try:\n    from whole import fast as way\nexcept ImportError:\n    from whole import slow as way\n"
    applications.write("there/whole/__init__.py", f"{either}\n\ndef f(text):\n    return way.f(text)\n")
    applications.write("there/whole/slow.py", FIRST)
    body = f"""
        import hidden, whole
        spark, dataset = session()
        for name, function in (("f", hidden.f), ("g", whole.f)):
            spark.udf.register(name, function)
        if not dataset.is_indexed:
            said["refused"] = [indexing(dataset, FormattedIndex("ua", extract=one)) for one in "fg"]
            spark.stop()
        else:
            spark.conf.set("spark.skipstone.enabled", ENABLED)
            frames = [spark.read.parquet(LAKE).where(f"{{one}}(ua) = 'curl'") for one in "fg"]
            for df in frames:
                df._jdf.queryExecution().executedPlan()
            write("first/hidden.py", {LAST!r})
            write("there/whole/fast.py", {LAST!r})
            said["rows"] = [sorted(map(tuple, df.collect())) for df in frames]
        """
    found = []
    for enabled in ("true", "false", "true"):  # the first makes the indexes
        for later in ("first/hidden.py", "there/whole/fast.py"):
            (applications.folder / later).unlink(missing_ok=True)
        (applications.folder / "first").mkdir(exist_ok=True)
        time.sleep(2)  # what changed shortly before an application started is taken for edited
        found.append(applications.run(f'\n        ENABLED = "{enabled}"' + body, "first", "there"))
    assert found[0]["refused"] == ["", ""]
    assert found[1]["rows"] == found[2]["rows"] == [[["Firefox/curl", 0]]] * 2


@pytest.mark.long
def test_functions_that_another_python_runs(applications):
    applications.write("drv/other.py", FIRST)
    applications.write("elsewhere/other.py", LAST)
    python = applications.folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={applications.folder}/elsewhere:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    time.sleep(2)
    said = applications.run(
        f"""
        import other
        spark, dataset = session()
        context = spark.sparkContext
        spark.udf.register("f", other.f)
        said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["before"] = asked(spark, "f(ua) = 'curl'")
        setting = "spark.sql.execution.pyspark.python"

        def later(enabled):
            spark.conf.set("spark.skipstone.enabled", enabled)
            df = spark.read.parquet(LAKE).where("f(ua) = 'curl'")
            df._jdf.queryExecution().executedPlan()
            spark.conf.set(setting, {str(python)!r})
            try:
                return sorted(map(tuple, df.collect()))
            finally:
                spark.conf.unset(setting)
                spark.conf.unset("spark.skipstone.enabled")

        said["later"] = [later("false"), later("true")]
        spark.conf.set(setting, {str(python)!r})
        said["all the time"] = asked(spark, "f(ua) = 'curl'")
        spark.conf.unset(setting)
        before, context.pythonExec = context.pythonExec, {str(python)!r}
        spark.udf.register("f", other.f)
        context.pythonExec = before
        said["registered for another"] = asked(spark, "f(ua) = 'curl'")
        """,
        "drv",
    )
    assert said["refused"] == ""
    assert (said["before"]["lost"], said["before"]["skipped"]) == ([], 3)
    assert said["later"][0] == said["later"][1]
    assert len(said["later"][0]) == 1
    for when in ("all the time", "registered for another"):
        assert (said[when]["lost"], said[when]["skipped"]) == ([], 0), when


@pytest.mark.long
def test_workers_that_are_given_other_variables(applications):
    """A function keeps the environment that it was made with, and workers of that environment are others."""
    applications.write("varied.py", "import os\n\ndef f(text):\n    return text.split('/')[int(os.environ['PLACE'])]\n")
    said = applications.run(
        """
        import varied
        spark, dataset = session(spark__executorEnv__PLACE="0")
        spark.udf.register("f", varied.f)
        said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["before"] = asked(spark, "f(ua) = 'curl'")
        spark.sparkContext.environment["PLACE"] = "1"
        said["old function"] = asked(spark, "f(ua) = 'curl'")
        spark.udf.register("f", F.udf(varied.f))
        said["new function"] = asked(spark, "f(ua) = 'curl'")
        """
    )
    assert said["refused"] == ""
    assert (said["before"]["lost"], said["before"]["skipped"]) == ([], 3)
    for when in ("new function", "old function"):
        assert (said[when]["lost"], said[when]["skipped"]) == ([], 0), when
    assert "other environment variables" in said["old function"]["why"]


@pytest.mark.long
def test_a_jar_that_is_replaced_while_an_application_runs(applications):
    """Loaded classes are those of the jar that was opened; what lies under its path now is another."""
    source = (
        "package edited\n"
        "class F extends org.apache.spark.sql.api.java.UDF1[String, String] {{\n"
        "  def call(s: String): String = Helper.of(s)\n"
        "}}\n"
        'object Helper {{ def of(s: String): String = s.split("/")({place}) }}\n'
    )
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    for place in (0, 1):
        folder = applications.folder / f"compiled-{place}"
        folder.mkdir()
        (folder / "F.scala").write_text(source.format(place=place))
        command = ["java", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", str(folder)]
        with (folder / "log").open("w") as log:
            subprocess.run([*command, str(folder / "F.scala")], stdout=log, stderr=log, check=True)
        with zipfile.ZipFile(applications.folder / f"jar-{place}", "w") as archive:
            for file in sorted((folder / "edited").iterdir()):
                archive.write(file, f"edited/{file.name}")
    os.replace(applications.folder / "jar-0", applications.folder / "edited.jar")
    prologue = """
        spark, dataset = session(spark__jars=str(Path("edited.jar").resolve()))
        spark.udf.registerJavaFunction("f", "edited.F", "string")
        """
    said = applications.run(
        f"""{prologue}
        said["refused"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        said["before"] = asked(spark, "f(ua) = 'curl'")
        dataset.drop_indexes()
        os.replace("jar-1", "edited.jar")
        said["refused later"] = indexing(dataset, FormattedIndex("ua", extract="f"))
        """
    )
    next_one = applications.run(f"""{prologue}
        said["asked"] = [asked(spark, f"f(ua) = '{{name}}'") for name in ("curl", "Wget", "Firefox", "x")]
        """)
    assert [q["lost"] for q in next_one["asked"]] == [[]] * 4
    assert said["refused"] == ""
    assert (said["before"]["lost"], said["before"]["skipped"]) == ([], 3)
    assert "a jar changed after it was brought to this application" in said["refused later"]
