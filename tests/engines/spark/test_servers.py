"""One server process for JDBC and Spark Connect, and its clients: right answers, and objects really skipped."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pyspark
import pytest
from pyhive import hive
from pyhive.exc import OperationalError

from tests.engines.spark.programs import alive, children, settings, started, until
from tests.servers.cluster import bare_python, clean_environment

pytestmark = pytest.mark.slow

THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"
GRPC = ("grpc", "grpc_status", "google", "zstandard", "typing_extensions.py")
QUERY = "SELECT id FROM ids WHERE id BETWEEN 31 AND 33"


class Server:
    """A server in another process."""

    def __init__(self, program, jdbc, connect, folder):
        self.program, self.jdbc, self.connect, self.folder = program, jdbc, connect, folder

    def cursor(self):
        return closing(Cursor(hive.connect("127.0.0.1", self.jdbc, username="tests", auth="NONE")))


class Cursor:
    """A connection over JDBC's protocol, with a session of its own."""

    def __init__(self, connection):
        self.connection, self.cursor = connection, connection.cursor()

    def sql(self, statement):
        self.cursor.execute(statement)
        return self.cursor.fetchall() if self.cursor.description else []

    def reads(self, query):
        """Return how many objects a query reads, and of how many."""
        lines = "\n".join(row[0] for row in self.sql(f"EXPLAIN SKIPPING {query}"))
        found = re.search(r"reads (\d+) of (\d+) objects", lines)
        assert found, lines
        return int(found[1]), int(found[2])

    def close(self):
        self.cursor.close()
        self.connection.close()


def free_ports():
    with socket.socket() as one, socket.socket() as other:
        for made in (one, other):
            made.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    """Start a Thrift server that serves Spark Connect, too; at its end no process of it is left."""
    folder = tmp_path_factory.mktemp("server")
    jdbc, connect = free_ports()
    # The metastore takes its time to start: long runs have it.
    catalog = "hive" if request.config.getoption("--long") else "in-memory"
    conf = settings(
        spark__plugins=CONNECT,
        spark__connect__grpc__binding__port=str(connect),
        spark__connect__grpc__binding__address="127.0.0.1",
        spark__sql__catalogImplementation=catalog,
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__driver__memory="1g",
    )
    place = {"port": str(jdbc), "bind.host": "127.0.0.1"}
    options = [part for name, value in place.items() for part in ("--hiveconf", f"hive.server2.thrift.{name}={value}")]
    with started(folder, ["spark-submit", "--class", THRIFT, "spark-internal", *options], conf) as program:
        program.until(f"Starting ThriftBinaryCLIService on port {jdbc}")
        made = Server(program, jdbc, connect, folder)
        until(lambda: _listens(jdbc))
        with made.cursor() as session:
            session.sql("CREATE TABLE ids USING parquet AS SELECT id, concat('n', id) AS name FROM range(0, 80, 1, 8)")
            session.sql("CREATE INDEX i ON ids USING minmax (id)")
        yield made
        (child,) = children(program.process.pid)
        program.process.terminate()
        program.wait()
        until(lambda: not alive(child), 5)


def _listens(port):
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", port)) == 0


def test_a_client_of_the_thrift_server(server):
    with server.cursor() as one, server.cursor() as two:
        assert sorted(one.sql(QUERY)) == [(31,), (32,), (33,)]
        assert one.reads(QUERY) == (1, 8)
        ((name, kind, *_, covered, stale, missing, _, _, _, _, _),) = one.sql("SHOW INDEXES ON ids")
        assert (name, kind, covered, stale, missing) == ("i", "minmax", 8, 0, 0)

        # Sessions do not see each other's views and settings.
        one.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM ids WHERE id < 40")
        two.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM ids WHERE id >= 40")
        assert one.sql("SELECT count(*) FROM v WHERE id > 30") == [(9,)]
        assert two.sql("SELECT count(*) FROM v WHERE id > 30") == [(40,)]
        assert (one.reads("SELECT * FROM v WHERE id > 30"), two.reads("SELECT * FROM v WHERE id > 30")) == (
            (1, 8),
            (4, 8),
        )
        two.sql("SET spark.skipstone.enabled = false")
        assert sorted(two.sql(QUERY)) == [(31,), (32,), (33,)]
        assert "spark.skipstone.enabled" in two.sql(f"EXPLAIN SKIPPING {QUERY}")[0][0]
        assert one.reads(QUERY) == (1, 8)

        # What was wrong comes with its condition, and the session goes on.
        with pytest.raises(OperationalError, match="SKIPSTONE_UNKNOWN_INDEX_TYPE.*did you mean minmax"):
            one.sql("CREATE INDEX j ON ids USING minmaxx (id)")
        one.sql("CREATE TABLE more USING parquet AS SELECT id, concat('n', id) AS name FROM range(0, 40, 1, 4)")
        ((_, names, objects, indexed, *_),) = one.sql("CREATE INDEX b ON more USING bloomfilter (name)")
        assert ("b" in names, objects, indexed) == (True, 4, 4)
        one.sql("CREATE INDEX footers ON more USING minmax (id)")
        assert one.reads("SELECT * FROM more WHERE name = 'n7'") == (1, 4)
        assert one.reads("SELECT * FROM more WHERE id = 7") == (1, 4)
        one.sql("DROP INDEX `*` ON more")
        assert one.sql("SHOW INDEXES ON more") == []
    assert "Skipstone: read 1 of 8 objects" in server.program.text()


def connected(server, folder, *arguments):
    """Start a client of Spark Connect in an environment that has no Skipstone."""
    python = bare_python(folder / "python", *GRPC)
    script = Path(__file__).with_name("client_script.py")
    with (folder / "client.txt").open("w") as file:
        return subprocess.Popen(
            [python, str(script), f"sc://127.0.0.1:{server.connect}", *arguments],
            cwd=folder,
            stdout=file,
            stderr=file,
            env={k: v for k, v in clean_environment().items() if not k.startswith("SPARK_")},
        )


def said(client, folder, timeout=300):
    """Wait for the end of a client, which is to be a good one; give what it said."""
    try:
        code = client.wait(timeout)
    finally:
        client.kill()
    out = (folder / "client.txt").read_text()
    assert (code, "ALL WELL" in out) == (0, True), out[-4000:]
    return out


def test_a_connect_client_without_skipstone(server, tmp_path):
    said(connected(server, tmp_path, "once", "ids", str(tmp_path / "made")), tmp_path)


@pytest.mark.long
def test_beeline(server, tmp_path):
    script, out = tmp_path / "bee.sql", tmp_path / "bee.txt"
    script.write_text(f"{QUERY} ORDER BY id;\nEXPLAIN SKIPPING {QUERY};\nSHOW INDEXES ON ids;\n")
    home = Path(pyspark.__file__).parent
    address = f"jdbc:hive2://127.0.0.1:{server.jdbc}"
    with out.open("w") as file:
        code = subprocess.call(
            [home / "bin" / "beeline", "--silent=true", "--outputformat=tsv2", "-u", address, "-f", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=tmp_path,
            timeout=300,
            env={**os.environ, "SPARK_HOME": str(home)},
        )
    lines = out.read_text().splitlines()
    assert code == 0, lines[-40:]
    assert [line for line in lines if line in ("31", "32", "33")] == ["31", "32", "33"], lines
    assert any("reads 1 of 8 objects; skips 7" in line for line in lines), lines
    assert any(line.startswith("i\tminmax\t") for line in lines), lines


@pytest.mark.long
def test_a_companion_that_is_killed_when_jdbc_sessions_have_ended(server):
    """Hive closes the loader of the application's jars with each of them: the next companion starts all the same."""
    with server.cursor() as session:
        session.sql("SELECT 1")
    (child,) = children(server.program.process.pid)
    ready = "companion plans from now on"
    before = server.program.text().count(ready)
    os.kill(child, signal.SIGKILL)
    with server.cursor() as session:
        assert sorted(session.sql(QUERY)) == [(31,), (32,), (33,)]
        until(lambda: server.program.text().count(ready) == before + 1)
        assert session.reads(QUERY) == (1, 8)


SECONDS = 120
CLIENTS = 4


def resident(pid):
    """Return the memory and the threads that a process has."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])


@pytest.mark.long
def test_eight_clients_at_once_with_refreshes_beside(server, tmp_path):
    """Four over JDBC and four over Connect for two minutes: right answers, objects skipped, and no growth."""
    stop, wrong, counts = time.monotonic() + SECONDS, [], Counter()
    with server.cursor() as session:
        session.sql("CREATE TABLE busy USING parquet AS SELECT id, concat('n', id) AS name FROM range(0, 80, 1, 8)")
        session.sql("CREATE INDEX i ON busy USING minmax (id)")

    def ask(number):
        """Ask in session after session, as tools do that connect for each report."""
        turn = 0
        while time.monotonic() < stop or counts["jdbc"] <= 100:
            with server.cursor() as session:
                for _ in range(10):
                    low = (7 * turn + number) % 77
                    query = f"SELECT id FROM busy WHERE id BETWEEN {low} AND {low + 2}"
                    found = sorted(row[0] for row in session.sql(query))
                    assert found == list(range(low, low + 3)), (low, found)
                    turn += 1
                kept, total = session.reads("SELECT * FROM busy WHERE id BETWEEN 31 AND 33")
                assert kept <= total - 7, (kept, total)  # one of the first eight, and those not refreshed yet
            counts["jdbc"] += 10

    def refresh():
        with server.cursor() as session:
            while time.monotonic() < stop or counts["refreshed"] < 5:
                first = 1000 + counts["refreshed"]
                session.sql(f"INSERT INTO busy SELECT id, concat('n', id) FROM range({first}, {first + 1}, 1, 1)")
                ((_, _, _, indexed, *_),) = session.sql("REFRESH INDEXES ON busy")
                assert indexed == 1
                counts["refreshed"] += 1
                time.sleep(2)

    def kept_going(work, *arguments):
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001  the test's own thread tells it
            wrong.append(error)

    jvm = server.program.process.pid
    (child,) = children(jvm)
    client = connected(server, tmp_path, "for", str(SECONDS), str(CLIENTS))
    threads = [threading.Thread(target=kept_going, args=(ask, n)) for n in range(CLIENTS)]
    threads.append(threading.Thread(target=kept_going, args=(refresh,)))
    for thread in threads:
        thread.start()
    seen = []
    while any(thread.is_alive() for thread in threads):
        seen.append((*resident(jvm), *resident(child)))
        time.sleep(1)
    out = said(client, tmp_path)
    assert not wrong, wrong
    assert counts["jdbc"] > 100
    assert counts["refreshed"] >= 5
    assert int(out.split("ASKED ")[1].split()[0]) > 50
    assert children(jvm) == [child]
    with server.cursor() as session:
        objects = 8 + counts["refreshed"]
        assert session.reads("SELECT * FROM busy WHERE id BETWEEN 31 AND 33") == (1, objects)
        assert session.sql("SELECT count(*) FROM busy") == [(80 + counts["refreshed"],)]
    # What grows, grows in the first half: caches fill, code is compiled, pools get their threads.
    middle = len(seen) // 2
    for place, (what, more) in enumerate([("JVM", 300), ("threads", 30), ("companion", 20), ("its threads", 10)]):
        early, late = (max(row[place] for row in part) for part in (seen[:middle], seen[middle:]))
        assert late <= early + more, (what, early, late)
    print(f"{counts}, {out.strip()}; memory and threads: {seen[0]} ... {seen[middle]} ... {seen[-1]}")
