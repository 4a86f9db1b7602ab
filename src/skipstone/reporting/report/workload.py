"""The workload of a report: a file of SQL statements, each a whole SELECT over the dataset or only a predicate."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import SPARK_ERRORS, Client
from skipstone.errors import WorkloadError
from skipstone.showing.format import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["VIEW", "Statement", "analysed", "read_workload", "spark_says"]

VIEW = "dataset"
"""What statements call the dataset, as in ``skipstone explain``."""

_viewing = threading.Lock()
"""Threads that make reports in one session share its views."""

_MOST_SHOWN, _MOST_SAID = 80, 500
_PIECE = re.compile(
    r"""
    (?P<comment>--(?:\\\r?\n|[^\r\n])*)
    |(?P<bracket>/\*)
    |(?<!\w)[rR](?:'[^']*'|"[^"]*")
    |'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:[^`]|``)*`
    |(?P<tag>\$[A-Za-z]*\$).*?(?P=tag)
    |(?P<open>['"`])
    |(?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKET = re.compile(r"/\*|\*/")
_NAME = re.compile(
    r"^[ \t]*--[ \t]*name[ \t]*:[ \t]*([^\r\n]*[^\s])[ \t]*(?:\r?\n|\r|\Z)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a workload; ``title`` is what a comment ``-- name: …`` before it says."""

    number: int
    text: str
    title: str | None = None

    @property
    def first_line(self) -> str:
        """Its first line of SQL, cut when it is long."""
        rest = self.text[_code_start(self.text) :].strip()
        line = (rest.splitlines() or [""])[0].strip()
        return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"

    @property
    def named(self) -> str:
        """What an error calls it: its number and its first line."""
        return f"statement {self.number} ({visible(self.first_line)})"


def read_workload(text: str) -> list[Statement]:
    r"""Split a workload into its statements, at semicolons outside of quotes and comments.

    Raises
    ------
    WorkloadError
        When there is no statement, or a quote or comment has no end.

    Examples
    --------
    >>> [(s.title, s.text) for s in read_workload("-- name: one\nn > 1;\ns = ';' -- a comment; with one\n")]
    [('one', 'n > 1'), (None, "s = ';' -- a comment; with one")]
    """
    found: list[Statement] = []
    text = text.removeprefix("\ufeff")
    start = position = 0
    while piece := _PIECE.search(text, position):
        position = piece.end()
        if piece["bracket"]:
            position = _bracket_end(text, piece.start(), len(found) + 1)
        elif piece["open"]:
            raise _unclosed(text, piece.start(), f"quote {piece['open']}", len(found) + 1)
        elif piece["end"]:
            _add(found, text[start : piece.start()])
            start = position
    _add(found, text[start:])
    if not found:
        msg = "the workload has no statement: write queries of the view dataset, or predicates, each ended by ;"
        raise WorkloadError(msg)
    return found


def _add(found: list[Statement], text: str) -> None:
    """Take one statement, unless it is nothing but comments."""
    code = _code_start(text)
    if not text[code:].strip():
        return
    names = _NAME.findall(text[:code])
    kept = _NAME.sub("", text[:code]) + text[code:]
    found.append(Statement(len(found) + 1, kept.strip(), names[-1] if names else None))


def _code_start(text: str) -> int:
    """Return where the comments and blanks that a statement begins with end."""
    position = 0
    while True:
        position += len(text[position:]) - len(text[position:].lstrip())
        piece = _PIECE.match(text, position)
        if piece is None or not (piece["comment"] or piece["bracket"]):
            return position
        position = _bracket_end(text, position, 0) if piece["bracket"] else piece.end()


def _bracket_end(text: str, start: int, number: int) -> int:
    """Return where a comment in brackets ends; such comments nest."""
    depth = 0
    for mark in _BRACKET.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unclosed(text, start, "comment /*", number)


def _unclosed(text: str, position: int, what: str, number: int) -> WorkloadError:
    """Return where something begins that does not end."""
    line = text.count("\n", 0, position) + 1
    return WorkloadError(f"statement {number} of the workload: the {what} on line {line} has no end")


def analysed(df: DataFrame, statements: Iterable[Statement]) -> list[DataFrame]:
    """Have Spark analyse statements over a dataset; nothing is run.

    Raises
    ------
    WorkloadError
        When a statement is not SQL, does not fit the dataset, or is anything but a query; the message names it.
    """
    found: list[DataFrame] = []
    with _viewed(df):
        for statement in statements:
            try:
                found.append(_analysed(df, statement))
            except SPARK_ERRORS as error:
                msg = f"{statement.named}: {spark_says(error)}"
                raise WorkloadError(msg) from error
    return found


def _analysed(df: DataFrame, statement: Statement) -> DataFrame:
    """Analyse one statement; commands are refused before Spark can run them."""
    spark = df.sparkSession
    client = Client(spark)
    if client.is_query(statement.text):
        return spark.sql(statement.text)
    if client.is_statement(statement.text):
        msg = (
            f"{statement.named} is not a query: a workload holds SELECTs and predicates, nothing that changes anything"
        )
        raise WorkloadError(msg)
    if statement.text[_code_start(statement.text) :][:6].upper() in ("SELECT", "WITH"):
        return spark.sql(statement.text)  # raises what is wrong with it
    return df.where(statement.text)


@contextmanager
def _viewed(df: DataFrame) -> Iterator[None]:
    """Let SQL call the dataset by its name for a block; a view of the user's that has that name comes back."""
    spark = df.sparkSession
    with _viewing:
        before = spark.table(VIEW) if _is_temporary(spark, VIEW) else None
        df.createOrReplaceTempView(VIEW)
        try:
            yield
        finally:
            if before is None:
                spark.catalog.dropTempView(VIEW)
            else:
                before.createOrReplaceTempView(VIEW)


def _is_temporary(spark: SparkSession, name: str) -> bool:
    """Whether the session has a temporary view of a name."""
    return spark.catalog.tableExists(name) and spark.catalog.getTable(name).isTemporary


def spark_says(error: Exception) -> str:
    """Return what a Spark error says in one line, without the plan or query that follows."""
    text = re.split(r"\s*SQLSTATE: \w{5}|\n\n", str(error).strip())[0]
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SAID else f"{line[:_MOST_SAID]}…"
