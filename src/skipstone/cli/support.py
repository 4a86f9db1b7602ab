"""What the commands share: the options of a dataset, and one way to fail."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from skipstone.cli.output import Output, print_json
from skipstone.cli.session import pairs, quiet_session, spark_log, stage
from skipstone.errors import DatasetError, SkipstoneError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skipstone.dataset import Dataset
    from skipstone.reporting.report.workload import Statement

__all__ = [
    "ConfOption",
    "LocationOption",
    "OutputOption",
    "PathArgument",
    "Reading",
    "dataset_command",
    "failing_politely",
    "workload_statements",
]


@contextmanager
def failing_politely(output: Output) -> Iterator[None]:
    """Turn Skipstone's and Spark's own errors into one line on stderr, or a JSON document, and exit code 1 or 2.

    It is 2, as for options that do not exist, while nothing was done yet but to look at what was typed.
    """
    from pyspark.errors import PySparkException, PySparkRuntimeError

    stage.usage = True
    try:
        yield
    except (SkipstoneError, PySparkException) as error:
        message = str(error).strip() if isinstance(error, SkipstoneError) else _sentence(str(error))
        if isinstance(error, PySparkRuntimeError) and (log := spark_log.keep()):
            message += f" (Spark's log: {log})"
        if output is Output.JSON:
            print_json({"error": message, "type": type(error).__name__})
        else:
            typer.echo(f"skipstone: {message}", err=True)
        raise typer.Exit(2 if stage.usage else 1) from error


def _sentence(text: str) -> str:
    r"""Return what a Spark error says and where, without its SQL state and the plan or query that follows.

    Examples
    --------
    >>> _sentence("[X] No column `a`. SQLSTATE: 42703; line 1 pos 7;\n'Filter ('a > 3)\n+- Relation")
    '[X] No column `a`. (line 1 pos 7)'
    """
    state = re.search(r"\s*SQLSTATE: \w{5}(?:;?\s*\(?(line \d+,? pos \d+))?", text)
    said = text[: state.start()] if state else text.strip().partition("\n\n")[0]
    return " ".join(said.split()) + (f" ({state[1]})" if state and state[1] else "")


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="For people or for programs.")]
_PageOption = Annotated[
    str, typer.Option("--output", "-o", metavar="[text|json|PAGE]", help="Also a page to write, such as report.html.")
]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", metavar="K=V", help="Spark setting; may be repeated.")]
LocationOption = Annotated[
    str | None, typer.Option("--location", metavar="FOLDER", help="Where metadata is kept; else beside the data.")
]


@dataclass(frozen=True)
class Reading:
    """The options that every command on a dataset has: which one, how to read it, how to answer."""

    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="A table of the catalog in place of PATH.")
    ] = None
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="File format; else as it was indexed, or parquet.")
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="DDL", help="Schema, such as 'ts timestamp, db_name string'; else as indexed."
        ),
    ] = None
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="K=V", help="Reader option; else as indexed; repeatable.")
    ] = None
    location: LocationOption = None
    conf: ConfOption = None
    spark_log: Annotated[
        Path | None, typer.Option("--spark-log", metavar="FILE", help="Keep Spark's own log in this file.")
    ] = None
    output: OutputOption = Output.TEXT
    page: Path | None = None

    def dataset(self, path: str | None) -> Dataset:
        """Start Spark, load the plug-ins that the indexes may need, and return the dataset.

        What is not said of how to read it is as it was when the dataset was indexed.

        Raises
        ------
        DatasetError
            When neither a path nor a table is given, or both are.
        """
        if (path is None) == (self.table is None):
            msg = "name the dataset by its PATH or by --table NAME, one of the two"
            raise DatasetError(msg)
        options = pairs(self.option or (), "--option")
        from skipstone import registry
        from skipstone.cli.as_indexed import dataset_as_indexed
        from skipstone.dataset import Dataset
        from skipstone.settings import get_setting

        hive = self.table is not None
        spark = quiet_session(self.conf or (), location=self.location, hive=hive, log=self.spark_log)
        registry.load_plugins(get_setting(spark, "plugins"))
        if self.table is not None:
            return Dataset.for_table(spark, self.table)
        return dataset_as_indexed(spark, str(path), self.format, self.schema, options)

    def load_plugins(self) -> None:
        """Load the plug-ins that ``--conf`` names, before Spark starts: their types of indexes are spelled here."""
        from skipstone import registry

        named = pairs(self.conf or (), "--conf").get("spark.skipstone.plugins", "")
        registry.load_plugins(module.strip() for module in named.split(",") if module.strip())


PathArgument = Annotated[str | None, typer.Argument(metavar="PATH", help="Folder of the dataset; none with --table.")]


def workload_statements(file: Path | None) -> list[Statement]:
    """Read the statements of a workload's file; none without one.

    Raises
    ------
    WorkloadError
        When it cannot be read, or is not a list of statements.
    """
    from skipstone.reporting.report.workload import read_workload

    if file is None:
        return []
    try:
        return read_workload(file.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"the workload {file} cannot be read: {error.strerror or error}"
        raise WorkloadError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"the workload {file} is not UTF-8 text: {error.reason} at byte {error.start}"
        raise WorkloadError(msg) from error


def dataset_command(app: typer.Typer, *, pages: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first parameter is a ``Reading``: its fields become options of the command.

    With ``pages``, ``--output`` also takes the name of a page to write, which is the reading's ``page`` then.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(**arguments: Any) -> None:
            reading = _reading({f.name: arguments.pop(f.name) for f in fields})
            with failing_politely(reading.output):
                function(reading, **arguments)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        hints = get_type_hints(Reading, include_extras=True)
        if pages:
            hints["output"] = _PageOption
        shared = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
            for f in fields
        ]
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + shared
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        command.__doc__ = function.__doc__
        app.command(function.__name__)(command)
        return function

    fields = [f for f in dataclasses.fields(Reading) if f.name != "page"]
    return decorate


def _reading(options: dict[str, Any]) -> Reading:
    """Return the reading that options say; an output that is neither text nor JSON is a page."""
    output = options.pop("output")
    if output in set(Output):
        return Reading(**options, output=Output(output))
    return Reading(**options, page=Path(output))
