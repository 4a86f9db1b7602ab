"""A client of a Spark Connect server in an environment without Skipstone.

``python client_script.py ADDRESS once TABLE FOLDER`` checks answers, and by the server's own words that it skipped.
``python client_script.py ADDRESS for SECONDS CLIENTS`` has several clients ask all the time.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def told(session, query):
    """Return how many objects the server would read."""
    lines = [row.plan for row in session.sql(f"EXPLAIN SKIPPING {query}").collect()]
    return next(line.split(";")[0].strip() for line in lines if " objects" in line)


def ask_once(address, table, folder):
    one, two = (SparkSession.builder.remote(address).create() for _ in range(2))
    try:
        query = f"SELECT id FROM {table} WHERE id BETWEEN 31 AND 33"
        assert sorted(row.id for row in one.sql(query).collect()) == [31, 32, 33]
        assert told(one, query) == "reads 1 of 8 objects"
        assert len(one.table(table).where("id BETWEEN 31 AND 33").inputFiles()) == 1

        # Python functions in predicates, of one name in two sessions.
        one.udf.register("late", lambda n: n > 70, "boolean")
        two.udf.register("late", lambda n: n < 45, "boolean")
        for session, expected in ((one, list(range(71, 80))), (two, list(range(41, 45)))):
            late = f"SELECT id FROM {table} WHERE late(id) AND id > 40"
            assert sorted(row.id for row in session.sql(late).collect()) == expected
            assert told(session, late) == "reads 4 of 8 objects"
        small = F.udf(lambda n: n < 5, "boolean")
        assert one.table(table).where(small("id") & (F.col("id") < 20)).count() == 5

        # Views of one name, and a session that skips nothing.
        one.table(table).where("id < 40").createOrReplaceTempView("v")
        two.table(table).where("id >= 40").createOrReplaceTempView("v")
        for session, expected, reads in ((one, 9, 1), (two, 40, 4)):
            assert session.sql("SELECT * FROM v WHERE id > 30").count() == expected
            assert told(session, "SELECT * FROM v WHERE id > 30") == f"reads {reads} of 8 objects"
        two.conf.set("spark.skipstone.enabled", "false")
        assert sorted(row.id for row in two.sql(query).collect()) == [31, 32, 33]
        assert len(two.table(table).where("id = 31").inputFiles()) == 8
        assert len(one.table(table).where("id = 31").inputFiles()) == 1

        # Indexes of its own, by SQL: one that reads rows in Python.
        one.range(0, 40, 1, 4).selectExpr("id", "concat('n', id) AS name").write.parquet(folder)
        (report,) = one.sql(f"CREATE INDEX names ON parquet.`{folder}` USING bloomfilter (name)").collect()
        assert (report.indexed, report.rows) == (4, 40)
        by_name = f"SELECT id FROM parquet.`{folder}` WHERE name = 'n17'"
        assert [row.id for row in one.sql(by_name).collect()] == [17]
        assert told(one, by_name) == "reads 1 of 4 objects"
    finally:
        one.stop()
        two.stop()


def ask_for(address, seconds, clients):
    """Ask for a table that is refreshed meanwhile, in session after session."""
    stop, asked = time.monotonic() + float(seconds), []

    def ask(number):
        turn = 0
        while time.monotonic() < stop or sum(asked) <= 50:
            session = SparkSession.builder.remote(address).create()
            for _ in range(10):
                low = (11 * turn + number) % 77
                found = sorted(
                    row.id for row in session.table("busy").where(f"id BETWEEN {low} AND {low + 2}").collect()
                )
                if found != list(range(low, low + 3)):
                    raise AssertionError((low, found))
                turn += 1
            session.stop()
            asked.append(10)
        asked.append(0)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked.count(0) == len(threads), "a client gave up"
    print("ASKED", sum(asked))


def main(address, how, *more):
    assert importlib.util.find_spec("skipstone") is None
    {"once": ask_once, "for": ask_for}[how](address, *more)
    print("ALL WELL")


if __name__ == "__main__":
    main(*sys.argv[1:])
