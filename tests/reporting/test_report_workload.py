"""Workload files: where a statement ends, what it is called, and what Spark makes of it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone import Dataset, SkipstoneError
from skipstone.errors import WorkloadError
from skipstone.reporting.report.workload import Statement, analysed, read_workload


def texts(workload):
    return [statement.text for statement in read_workload(workload)]


@pytest.mark.parametrize(
    ("workload", "statements"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1;", ["a = 1"]),
        ("a = 1;;\n ; b = 2;", ["a = 1", "b = 2"]),
        ("s = ';'; b = 2", ["s = ';'", "b = 2"]),
        ("s = 'it''s; so'; b", ["s = 'it''s; so'", "b"]),
        (r"s = 'it\'s; so'; b", [r"s = 'it\'s; so'", "b"]),
        (r"s = 'ends\\'; b", [r"s = 'ends\\'", "b"]),
        (r"s = r'raw\'; b", [r"s = r'raw\'", "b"]),
        (r"bar'not raw\'; b'; c", [r"bar'not raw\'; b'", "c"]),
        ('s = "x;y"; b', ['s = "x;y"', "b"]),
        ("`odd;name` = 1; `a``;b` = 2", ["`odd;name` = 1", "`a``;b` = 2"]),
        ("a = 1 -- no; end\n AND b = 2; c", ["a = 1 -- no; end\n AND b = 2", "c"]),
        ("-- it's; open\na = 1", ["-- it's; open\na = 1"]),
        ("/* a; /* nested; */ 'b; */ a = 1; b", ["/* a; /* nested; */ 'b; */ a = 1", "b"]),
        ("s = $$a;'b$$; c = $x$;$$;$x$", ["s = $$a;'b$$", "c = $x$;$$;$x$"]),
        ("\ufeffa = 1;\r\nb = 2;\r\n", ["a = 1", "b = 2"]),
        ("-- only a comment;\n/* and another; */ ; a", ["a"]),
        ("s = '\u2028;'; b", ["s = '\u2028;'", "b"]),
        ("a = -1; b = 4 - -2; c", ["a = -1", "b = 4 - -2", "c"]),
    ],
)
def test_a_statement_ends_at_a_semicolon_that_is_one(workload, statements):
    assert texts(workload) == statements


def test_a_comment_names_a_statement():
    found = read_workload("-- name: First: one \n-- kept\na = 1;\n\n--NAME:second\nSELECT 1;\n b -- name: no\n = 2")
    assert [(s.number, s.title) for s in found] == [(1, "First: one"), (2, "second"), (3, None)]
    assert found[0].text == "-- kept\na = 1"
    assert found[0].first_line == "a = 1"
    assert found[2].text == "b -- name: no\n = 2"
    (odd,) = read_workload("\r\n-- name: a\u2028'b;\r\n/* c */ n = 1")
    assert (odd.title, odd.text) == ("a\u2028'b;", "/* c */ n = 1")


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("", "no statement"),
        ("-- nothing;\n;", "no statement"),
        ("a = 1;\n\ns = 'open; b", "statement 2 of the workload: the quote ' on line 3 has no end"),
        ("a = `open", "statement 1 of the workload: the quote ` on line 1"),
        ("a;\nb /* open ; /* x */", "statement 2 of the workload: the comment /* on line 2"),
    ],
)
def test_what_has_no_end_is_said_to_have_none(workload, said):
    with pytest.raises(WorkloadError, match="workload") as caught:
        read_workload(workload)
    assert said in str(caught.value)


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workload") / "data"
    folder.mkdir()
    pq.write_table(pa.table({"n": [1, 2, 3], "s": ["a", "b", "it's; so"]}), folder / "0.parquet")
    return Dataset.for_path(spark, str(folder))


def counted(dataset, *workload):
    return [df.count() for df in analysed(dataset.dataframe, read_workload("\n;".join(workload)))]


def test_queries_and_predicates_are_analysed(dataset):
    assert counted(
        dataset,
        "n > 1",
        "SELECT * FROM dataset WHERE s = 'it\\'s; so'",
        "-- a comment\n(SELECT n FROM dataset) UNION ALL (SELECT n FROM dataset WHERE n = 1)",
        "WITH few AS (SELECT * FROM dataset WHERE n < 3) SELECT * FROM few WHERE n > 1",
        "FROM dataset SELECT * WHERE n = 2",
        "TABLE dataset",
        "(n = 1 OR n = 2) -- trailing",
    ) == [2, 1, 4, 1, 1, 3, 2]


def test_the_users_own_view_of_that_name_comes_back(spark, dataset):
    spark.catalog.dropTempView("dataset")  # whatever a command in this session has left
    assert counted(dataset, "SELECT * FROM dataset") == [3]
    assert not spark.catalog.tableExists("dataset")
    spark.range(7).createOrReplaceTempView("dataset")
    try:
        assert counted(dataset, "SELECT * FROM dataset") == [3]
        assert spark.table("dataset").count() == 7
        with pytest.raises(WorkloadError):
            counted(dataset, "SELECT nothing FROM dataset")
        assert spark.table("dataset").count() == 7
    finally:
        spark.catalog.dropTempView("dataset")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made_by_a_workload AS SELECT 1 AS x",
        "INSERT INTO dataset VALUES (1, 'x')",
        "WITH few AS (SELECT * FROM dataset) INSERT INTO dataset SELECT * FROM few",
        "FROM dataset INSERT OVERWRITE DIRECTORY '{folder}/out' USING parquet SELECT *",
        "DROP VIEW dataset",
        "SET spark.sql.shuffle.partitions=77",
        "CACHE TABLE dataset",
        "EXPLAIN SELECT 1",
        "/* SELECT */ REFRESH TABLE dataset",
    ],
)
def test_what_is_no_query_is_refused_and_not_run(spark, dataset, tmp_path, statement):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    statement = statement.format(folder=tmp_path)
    with pytest.raises(WorkloadError, match=r"statement 2 \(.*\) is not a query"):
        analysed(dataset.dataframe, [Statement(1, "n = 1"), Statement(2, statement)])
    assert not spark.catalog.tableExists("made_by_a_workload")
    assert not list(tmp_path.iterdir())
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("n >", "Syntax error"),
        ("SELECT n FROM dataset WHERE (", "Syntax error"),
        ("SELECT m\nFROM dataset", "`m`"),
        ("n + 1", "boolean"),
        ("nothing(n)", "nothing"),
        ("s = 'x' AND " * 50 + "(", "Syntax error"),
    ],
)
def test_bad_sql_is_named_by_its_number_and_first_line(dataset, statement, said):
    with pytest.raises(SkipstoneError) as caught:
        analysed(dataset.dataframe, [Statement(1, "n = 1"), Statement(2, statement)])
    message = str(caught.value)
    assert message.startswith(f"statement 2 ({statement.splitlines()[0][:80]}")
    assert said.lower() in message.lower()
    assert "\n" not in message
    assert "SQLSTATE" not in message
    assert len(message) < 700
