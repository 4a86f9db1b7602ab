"""The companion in real processes: it plans as a driver does, and whatever becomes of it, queries are answered."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from skipstone import Dataset, MinMaxIndex
from tests.engines.spark.programs import REPOSITORY, children, run_script, settings, started, until

pytestmark = pytest.mark.slow

QUERY = "SELECT id FROM parquet.`{lake}` WHERE id BETWEEN 31 AND 33"
ROWS, KEPT, OBJECTS = 3, 1, 8
READ = f"Skipstone: read {KEPT} of {OBJECTS} objects"


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Return a dataset of eight objects, with an index on their ids."""
    folder = str(tmp_path_factory.mktemp("lake") / "ids")
    spark.range(0, 80, 1, OBJECTS).selectExpr("id", "concat('n', id) AS name").write.parquet(folder)
    Dataset.for_path(spark, folder).create_indexes(MinMaxIndex("id"))
    return folder


PLUGIN = """
import time
from pathlib import Path
from skipstone import registry
from skipstone.querying.implication import Implication

class Slow(Implication):
    def implied(self, leaf):
        while Path({flag!r}).exists():
            Path({flag!r} + ".met").touch()
            time.sleep(0.01)
        return None

registry.register_implication("slow", Slow())
"""


def test_one_application(lake, tmp_path):
    """A program's whole life in one JVM: planning, death, restart, sessions, a driver that attaches, a new context."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    log = run_script(
        tmp_path,
        f"""
        query = {QUERY.format(lake=lake)!r}
        spark = session()
        default = spark._jvm.SparkSession.getDefaultSession().get()
        assert asked(spark, query)[1]["objects"] == dict(total=8, kept=1, skipped=7, unindexed=0, stale=0)
        assert kept(spark, query)[:2] == (3, 1)
        (child,) = children(jvm_pid(spark))

        # Its secret is in its environment, and nowhere else.
        variables = dict(v.split("=", 1) for v in Path(f"/proc/{{child}}/environ").read_text().split("\\0") if "=" in v)
        secret = variables["PYSPARK_GATEWAY_SECRET"]
        assert len(secret) >= 32
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert secret.encode() not in process.read_bytes()
            except OSError:
                continue
        print("SECRET", secret[::-1])

        # Ctrl-C is for queries: it is out of the terminal's group, and ignores it.
        assert os.getsid(child) == child != os.getsid(0)
        os.kill(child, signal.SIGINT)
        time.sleep(0.5)
        assert kept(spark, query)[:2] == (3, 1) and children(jvm_pid(spark)) == [child]

        # Killed: the query is answered and says why; the next child plans, also after the first one's objects are gone.
        os.kill(child, signal.SIGKILL)
        until(lambda: not attached(spark))
        rows, objects, said = kept(spark, query)
        assert (rows, objects) == (3, 8) and "was killed by signal 9" in said, said
        until(lambda: attached(spark))
        for _ in range(3):
            spark._jvm.System.gc()
            time.sleep(0.3)
            assert kept(spark, query)[:2] == (3, 1)
        assert children(jvm_pid(spark)) != [child]
        assert spark._jvm.SparkSession.getDefaultSession().get().equals(default)
        assert not spark._jsc.sc().isStopped()

        # Sessions: views of one name, one that skips nothing, one that names a module.
        one, two, three = (spark.newSession() for _ in range(3))
        one.read.parquet({lake!r}).where("id < 40").createOrReplaceTempView("v")
        two.read.parquet({lake!r}).where("id >= 40").createOrReplaceTempView("v")
        assert kept(one, "SELECT * FROM v WHERE id > 30")[:2] == (9, 1)
        assert kept(two, "SELECT * FROM v WHERE id > 30")[:2] == (40, 4)
        two.conf.set("spark.skipstone.enabled", "false")
        before = bridge(spark).lastSeq()
        assert len(two.sql(query).collect()) == 3 and bridge(spark).lastSeq() == before
        three.conf.set("spark.skipstone.plugins", "evil")
        rows, objects, said = kept(three, query)
        assert (rows, objects) == (3, 8) and "names 'evil'" in said, said
        assert not Path("imported").exists()
        assert kept(one, query)[:2] == (3, 1)

        # A driver that attaches wins.
        (child,) = children(jvm_pid(spark))
        from skipstone.engines.spark.attach import attach
        attach(spark)
        until(lambda: not alive(child))
        assert kept(spark, query)[:2] == (3, 1)
        time.sleep(2)
        assert not children(jvm_pid(spark))

        # Another application in the same JVM gets a child of its own.
        spark.stop()
        spark = session(**{{"spark.skipstone.sql.enabled": "false"}})
        assert kept(spark, query)[:2] == (3, 1)

        # Started without statements on indexes, it has none, whatever a session says.
        spark.conf.set("spark.skipstone.sql.enabled", "true")
        try:
            raise AssertionError(spark.sql("SHOW INDEXES ON parquet.`x`"))
        except AnalysisException as error:
            assert error.getCondition() == "SKIPSTONE_SQL_DISABLED", error
        (child,) = children(jvm_pid(spark))
        spark.stop()
        until(lambda: not alive(child))
        """,
        spark__skipstone__companion__path=f"{REPOSITORY / 'src'}:{tmp_path}",
    )
    secret = log.split("SECRET ")[1].split()[0][::-1]
    assert secret not in log
    assert log.count("WARN Supervisor: Skipstone's companion was killed by signal 9") == 2  # console and file
    assert READ in log


@pytest.mark.long
def test_hung_and_killed_while_it_plans(lake, tmp_path):
    """A child that hangs costs a query its patience, no more; one that dies in the middle of a plan hardly anything."""
    (tmp_path / "slowness.py").write_text(PLUGIN.format(flag=str(tmp_path / "slow")))
    run_script(
        tmp_path,
        f"""
        query, flag = {QUERY.format(lake=lake)!r} + " AND length(name) > 1", Path("slow")
        spark = session()
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "300000")
        assert kept(spark, query)[:2] == (3, 1)
        (child,) = children(jvm_pid(spark))
        os.kill(child, signal.SIGSTOP)
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "3000")
        rows, entry = asked(spark, query)
        assert len(rows) == 3 and entry["objects"]["kept"] == 8 and "no answer" in entry["error"], entry
        assert entry["planning_seconds"] >= 3, entry
        until(lambda: not alive(child))
        assert "did not answer" in kept(spark, query)[2] or attached(spark)
        until(lambda: attached(spark))
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "300000")
        assert kept(spark, query)[:2] == (3, 1)

        # In the middle of a plan: nobody waits for the rest of five minutes.
        (child,) = children(jvm_pid(spark))
        flag.touch()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(asked(spark, query)))
        asking.start()
        until(Path("slow.met").exists)
        os.kill(child, signal.SIGKILL)
        asking.join(120)
        ((rows, entry),) = answers
        assert len(rows) == 3 and entry["objects"]["kept"] == 8 and entry["error"], entry
        flag.unlink()
        until(lambda: attached(spark))
        assert kept(spark, query)[:2] == (3, 1)

        # Alive but stuck: replaced after three queries in a row.
        (child,) = children(jvm_pid(spark))
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "1000")
        flag.touch()
        for _ in range(3):
            assert kept(spark, query)[:2] == (3, 8)
        until(lambda: not alive(child))
        flag.unlink()
        until(lambda: attached(spark))
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "300000")
        assert kept(spark, query)[:2] == (3, 1)

        # A client's own impatience is not the child's fault.
        (child,) = children(jvm_pid(spark))
        spark.conf.set("spark.skipstone.plannerTimeoutMs", "1")
        for _ in range(8):
            assert kept(spark, query)[0] == 3
        time.sleep(2)
        assert children(jvm_pid(spark)) == [child]
        """,
        spark__skipstone__plugins="slowness",
        spark__skipstone__plannerTimeoutMs="1000",
        spark__skipstone__companion__path=f"{REPOSITORY / 'src'}:{tmp_path}",
    )


@pytest.mark.long
def test_given_up_when_it_ends_too_often(lake, tmp_path):
    log = run_script(
        tmp_path,
        f"""
        query = {QUERY.format(lake=lake)!r}
        spark = session()
        for n in range(6):
            until(lambda: attached(spark), 120)
            os.kill(children(jvm_pid(spark))[0], signal.SIGKILL)
            until(lambda: not attached(spark))
        time.sleep(3)
        rows, objects, said = kept(spark, query)
        assert (rows, objects) == (3, 8) and "is not started again before the application is" in said, said
        assert not children(jvm_pid(spark))
        """,
    )
    assert log.count("Nothing is skipped from now on") == 2  # console and file


@pytest.mark.long
@pytest.mark.parametrize(
    "case", ["no python", "no package", "no dependency", "another version", "a broken one", "no context"]
)
def test_what_cannot_start_is_said_once(lake, tmp_path, case):
    """Each mistake has a sentence, queries are answered, and nobody waits for what cannot come."""
    more, said = _mistake(case, tmp_path)
    more["waitMs"] = "1h"  # whoever waited would be noticed
    log = run_script(
        tmp_path,
        f"""
        query = {QUERY.format(lake=lake)!r}
        os.environ["PYTHONPATH"] = {str(REPOSITORY)!r}
        spark = session()
        spark.range(1).count()
        rows, objects, said = kept(spark, query)
        assert (rows, objects) == (3, 8) and {said!r} in said, said
        for _ in range(3):
            assert kept(spark, query)[:2] == (3, 8)
        """,
        **{f"spark__skipstone__companion__{name}": value for name, value in more.items()},
    )
    if case not in ("a broken one", "no context"):  # these may come right
        assert log.count("Nothing is skipped from now on") == 2  # console and file
        assert log.count(said) == 2


def _mistake(case: str, folder: Path) -> tuple[dict[str, str], str]:
    """Return settings of a companion that cannot start, and what is said of it."""
    match case:
        case "no python":
            return {"python": "/no/such/python"}, "Cannot run program"
        case "no package":
            return {"python": _bare_python(folder), "path": str(folder)}, "install Skipstone for that interpreter"
        case "no dependency":
            return {"python": _bare_python(folder)}, "not all that it needs: No module named 'pyarrow'"
        case "another version":
            return {"path": _another_version(folder)}, "the jar is of Skipstone 0.1.0"
        case "no context":
            return {"path": _without_context(folder)}, "nothing to connect to"
        case _:
            return {"path": _broken(folder)}, "SyntaxError"


def _bare_python(folder: Path) -> str:
    """Make an environment with nothing in it."""
    import venv

    venv.create(folder / "bare", with_pip=False)
    return str(folder / "bare" / "bin" / "python")


def _another_version(folder: Path) -> str:
    """Copy Skipstone and change a source of the bridge."""
    import shutil

    shutil.copytree(REPOSITORY / "src" / "skipstone", folder / "other" / "skipstone")
    source = folder / "other" / "skipstone" / "engines" / "spark" / "bridge" / "Json.scala"
    source.write_text(source.read_text() + "// later\n")
    init = folder / "other" / "skipstone" / "__init__.py"
    init.write_text(init.read_text().replace('__version__ = "0.1.0"', '__version__ = "0.9.9"'))
    return str(folder / "other")


def _without_context(folder: Path) -> str:
    """Let PySpark fail in the middle of making a context, which it then stops: the server's must go on."""
    (folder / "sitecustomize.py").write_text(
        "from pyspark.core.context import SparkContext\n"
        "made = SparkContext._do_init\n"
        "def fails(self, *arguments):\n"
        "    made(self, *arguments)\n"
        "    raise RuntimeError('nothing to connect to')\n"
        "SparkContext._do_init = fails\n"
    )
    return f"{folder}:{REPOSITORY / 'src'}"


def _broken(folder: Path) -> str:
    (folder / "broken" / "skipstone").mkdir(parents=True)
    (folder / "broken" / "skipstone" / "__init__.py").write_text("def\n")
    return str(folder / "broken")


@pytest.mark.long
def test_functions_of_sessions(tmp_path):
    """A session's function is the one whose results the index holds, or the index is not used in that session."""
    (tmp_path / "families.py").write_text("def family(name):\n    return name[:2]\n")
    create = """
        import sys
        sys.path.insert(0, ".")
        import families, skipstone
        from skipstone import Dataset, FormattedIndex
        spark = skipstone.configure(SparkSession.builder.master("local[2]")).getOrCreate()
        spark.range(0, 80, 1, 8).selectExpr("id", "concat('n', id) AS name").write.parquet("functions")
        spark.udf.register("family", families.family)
        Dataset.for_path(spark, "functions").create_indexes(FormattedIndex("name", extract="family"))
        """
    paths = f"{REPOSITORY / 'src'}:{tmp_path}"
    run_script(tmp_path, create)
    run_script(
        tmp_path,
        """
        import sys
        sys.path.insert(0, ".")
        import families
        spark = session()
        query = "SELECT * FROM parquet.`functions` WHERE family(name) = 'n7'"
        same, other = spark.newSession(), spark.newSession()
        same.udf.register("family", families.family)
        other.udf.register("family", lambda name: "n7")
        rows, objects, said = kept(same, query)
        assert (rows, objects) == (11, 2), (rows, objects, said)
        rows, objects, said = kept(other, query)
        assert (rows, objects) == (80, 8) and "family is not known" in said, (rows, objects, said)
        assert kept(same, query)[:2] == (11, 2)
        """,
        spark__skipstone__companion__path=paths,
        spark__skipstone__plannerTimeoutMs="300000",
    )


@pytest.mark.long
def test_sessions_come_and_go(lake, tmp_path):
    run_script(
        tmp_path,
        f"""
        query = {QUERY.format(lake=lake)!r}
        spark = session()

        jvm = spark._jvm
        sessions = []
        for _ in range(100):
            one = spark.newSession()
            sessions.append(jvm.java.lang.ref.WeakReference(one._jsparkSession))
            assert kept(one, query)[:2] == (3, 1)
        del one

        def living():
            gc.collect()
            jvm.System.gc()
            return sum(not session.refersTo(None) for session in sessions)

        # The last ones may still be held by threads that Spark keeps for a while.
        until(lambda: living() <= 5)
        """,
    )


@pytest.mark.long
def test_spark_sql(lake, tmp_path):
    query = QUERY.format(lake=lake)
    conf = settings()
    statements = f"{query}; SET spark.skipstone.enabled=false; {query}"
    with started(tmp_path, ["spark-sql", "-e", statements], conf) as program:
        log = program.wait()
    assert program.process.returncode == 0, log[-3000:]
    assert log.count(READ) == 1, log[-3000:]
    assert [line for line in log.splitlines() if line in ("31", "32", "33")] == ["31", "32", "33"] * 2
    until(lambda: not children(program.process.pid), 5)


@pytest.mark.long
def test_spark_shell(lake, tmp_path):
    """A Scala program, ended by kill -9: its child goes with it."""
    script = tmp_path / "program.scala"
    script.write_text(
        f"""
        val df = spark.read.parquet("{lake}").where("id BETWEEN 31 AND 33")
        println("FOUND " + df.count() + " in " + df.inputFiles.length)
        println("READY " + ProcessHandle.current.pid)
        Thread.sleep(600000)
        """
    )
    conf = settings()
    with started(tmp_path, ["spark-shell"], conf, stdin=script) as program:
        program.until("READY ")
        log = program.text()
        assert f"FOUND {ROWS} in {KEPT}" in log
        assert READ in log
        jvm = int(log.split("READY ")[-1].split()[0])
        (child,) = children(jvm)
        os.kill(jvm, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{child}").exists())
