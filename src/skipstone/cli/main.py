"""The command line: ``skipstone index | refresh | describe | explain | report | server-conf | doctor`` and others.

A thin layer: every command makes a quiet Spark session, calls what a program would call, and prints the outcome as
text or as one JSON document.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import skipstone
from skipstone.cli.apply import add_apply
from skipstone.cli.audit import add_audit
from skipstone.cli.doctor import add_doctor
from skipstone.cli.indexes import is_known, parse_index, shorthand
from skipstone.cli.indicators import add_indicators
from skipstone.cli.output import Output, console, print_json, telling
from skipstone.cli.report import add_report
from skipstone.cli.server_conf import add_server_conf
from skipstone.cli.session import quiet_session, usage_is_checked
from skipstone.cli.support import OutputOption, PathArgument, Reading, dataset_command, failing_politely
from skipstone.errors import DatasetError, IndexingError

if TYPE_CHECKING:
    from skipstone.indexing.estimate import Estimate
    from skipstone.indexing.report import IndexingReport

__all__ = ["app", "main"]

app = typer.Typer(
    help="Data skipping for Spark SQL: index a dataset once, and every query opens only the files it may need.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VIEW = "dataset"
_SELECT = re.compile(r"\s*\(*\s*(SELECT|WITH|FROM)\b", re.IGNORECASE)


def main() -> None:
    """Run the command line."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skipstone {skipstone.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder to make and keep the data in.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary folder.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each query, of which the median is shown.")] = 3,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make two small datasets, index them, and run queries with skipping off and on, side by side."""
    from skipstone.demo.run import print_demo, run_demo, write_data

    started = time.monotonic()
    place = folder or Path(tempfile.mkdtemp(prefix="skipstone-demo-"))
    with failing_politely(output):
        try:
            say = telling()
            say("writing two small datasets …")
            usage_is_checked()
            write_data(place)
            spark = quiet_session()
            result = run_demo(spark, place, runs=runs, say=say)
            kept = str(place) if folder is not None or keep else None
            seconds = time.monotonic() - started
            if output is Output.JSON:
                about = {"skipstone": skipstone.__version__, "spark": spark.version, "folder": kept, "seconds": seconds}
                print_json(about | dataclasses.asdict(result))
            else:
                print_demo(console(), result)
                where = f"; the data is in {kept}" if kept else ""
                typer.echo(f"\nAll answers agree. {seconds:.0f} s in all, Spark's start included{where}.")
        finally:
            if folder is None and not keep:
                shutil.rmtree(place, ignore_errors=True)


@dataset_command(app)
def index(  # noqa: PLR0913, PLR0917  (an option for each type of index)
    reading: Reading,
    path: PathArgument = None,
    minmax: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="MinMax index.")] = None,
    valuelist: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="ValueList index.")] = None,
    bloom: Annotated[list[str] | None, typer.Option(metavar="COLUMN[:fpp=P]", help="BloomFilter index.")] = None,
    hybrid: Annotated[list[str] | None, typer.Option(metavar="COLUMN[:threshold=N]", help="Hybrid index.")] = None,
    gaplist: Annotated[list[str] | None, typer.Option(metavar="COLUMN[:gaps=K]", help="GapList index.")] = None,
    prefix: Annotated[list[str] | None, typer.Option(metavar="COLUMN:length=B", help="Prefix index.")] = None,
    suffix: Annotated[list[str] | None, typer.Option(metavar="COLUMN:length=B", help="Suffix index.")] = None,
    named: Annotated[
        list[str] | None,
        typer.Option("--index", metavar="INDEX", help="Any type, plug-ins too: 'geobox(lat, lng, boxes=8)'."),
    ] = None,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Refresh indexes that are there already, and create the others.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Build nothing: say what the indexes would take, from a sample.")
    ] = False,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Objects of that sample.")] = 32,
) -> None:
    """Build indexes on every object of a dataset, in one Spark job.

    The index options may be repeated. '*' is every column of a fitting type. An index's own options follow its column:
    --bloom account:fpp=0.001,name=accounts
    """
    types = {
        "minmax": minmax,
        "valuelist": valuelist,
        "bloomfilter": bloom,
        "hybrid": hybrid,
        "gaplist": gaplist,
        "prefix": prefix,
        "suffix": suffix,
    }
    indexes = [shorthand(type_name, text) for type_name, texts in types.items() for text in texts or ()]
    if not indexes and not named:
        msg = "name at least one index, for example --minmax ts"
        raise IndexingError(msg)
    reading.load_plugins()
    later = [text for text in named or () if not is_known(text)]  # perhaps a plug-in of spark-defaults.conf
    indexes += [parse_index(text) for text in named or () if text not in later]
    dataset = reading.dataset(path)
    if estimate:
        _print_report(dataset.estimate(*indexes, *map(parse_index, later), objects=sample), reading.output)
        return
    make = dataset.ensure_indexes if if_missing else dataset.create_indexes
    _print_report(make(*indexes, *map(parse_index, later)), reading.output)


@dataset_command(app)
def refresh(
    reading: Reading,
    path: PathArgument = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--path", metavar="SUB", help="Only this object or folder, without listing the rest; repeatable."),
    ] = None,
) -> None:
    """Index new and changed objects and forget vanished ones; read the dataset as when it was indexed."""
    dataset = reading.dataset(path)
    _print_report(dataset.refresh(only or None), reading.output)


def _print_report(report: IndexingReport | Estimate, output: Output) -> None:
    """Print what a call that builds or refreshes indexes did, or would."""
    if output is Output.JSON:
        print_json(report)
    else:
        typer.echo(str(report))


@dataset_command(app)
def describe(reading: Reading, path: PathArgument = None) -> None:
    """Show a dataset's indexes: what each covers, its size and age."""
    dataset = reading.dataset(path)
    rows = [row.asDict() | {"options": json.loads(row.options)} for row in dataset.describe().collect()]
    if reading.output is Output.JSON:
        print_json({"root": dataset.root, "indexes": rows})
        return
    if not rows:
        typer.echo(f"{dataset.root}: no indexes; make one with: skipstone index {dataset.root} --minmax COLUMN")
        return
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    numbers = ("covered", "stale", "missing", "bytes")
    words = ("key", "refreshed") if any(row["key"] for row in rows) else ("refreshed",)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("index", overflow="fold")
    for heading in (*numbers, *words):
        table.add_column(heading, justify="right" if heading in numbers else "left", no_wrap=True)
    for row in rows:
        counts = ("?" if row[n] is None else f"{row[n]:,}" for n in numbers)
        table.add_row(escape(row["name"]), *counts, *(row[w] or "" for w in words))
    out = console()
    out.print(dataset.root, style="bold", markup=False, highlight=False, soft_wrap=True)
    out.print(table, highlight=False)
    for row in rows:
        if row["not_used"]:
            out.print(f"{row['name']} is not used: {row['not_used']}", markup=False, highlight=False, soft_wrap=True)


@dataset_command(app)
def explain(
    reading: Reading,
    path: PathArgument = None,
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help=f"A predicate, or a whole SELECT in which the dataset is called {VIEW}."),
    ] = None,
    indicators: Annotated[
        bool, typer.Option("--indicators", help="Run the predicate over every object, and say what limits skipping.")
    ] = False,
) -> None:
    """Show what skipping does to a query, without running it: clauses, objects kept, and what was not used and why."""
    path, query = _without_path(reading, path, query)
    if query is None:
        msg = "give the QUERY to explain: a predicate such as \"ts >= '2026-01-01'\", or a whole SELECT"
        raise DatasetError(msg)
    dataset = reading.dataset(path)
    df = dataset.dataframe
    if _SELECT.match(query):
        df.createOrReplaceTempView(VIEW)
        planned = df.sparkSession.sql(query)
    else:
        planned = df.where(query)
    explanation = dataset.explain(planned, indicators=indicators)
    if reading.output is Output.JSON:
        measured = {"indicators": explanation.indicators.as_dict()} if explanation.indicators is not None else {}
        print_json({"root": dataset.root, "scans": explanation.scans, "text": explanation.text} | measured)
    else:
        typer.echo(explanation.text)


@dataset_command(app)
def drop(
    reading: Reading,
    path: PathArgument = None,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Indexes as describe names them; none: all of them.")
    ] = None,
) -> None:
    """Drop indexes by name, or all metadata of a dataset; the data is never touched."""
    path, first = _without_path(reading, path, None)
    dropped = [*([first] if first else []), *(names or ())]
    dataset = reading.dataset(path)
    dataset.drop_indexes(*dropped)
    if reading.output is Output.JSON:
        print_json({"root": dataset.root, "dropped": dropped, "all": not dropped})
    else:
        typer.echo(f"{dataset.root}: dropped {', '.join(dropped) or 'all metadata'}")


add_apply(app)
add_indicators(app)
add_audit(app)
add_report(app)
add_server_conf(app)
add_doctor(app)


def _without_path(reading: Reading, path: str | None, argument: str | None) -> tuple[str | None, str | None]:
    """Return path and argument; where the dataset is a table, and so has no path, the first one is the argument."""
    if reading.table is not None and argument is None:
        return None, path
    return path, argument


@app.command()
def jar(
    conf: Annotated[
        bool, typer.Option("--conf", help="Show the settings for spark-submit and spark-defaults.conf.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the path of the bridge jar, building it first where needed."""
    with failing_politely(output):
        from skipstone.engines.spark.bridge.build import bridge_jar
        from skipstone.engines.spark.session import EXTENSION

        usage_is_checked()
        path = str(bridge_jar())
        settings = {"spark.jars": path, "spark.sql.extensions": EXTENSION}
        if output is Output.JSON:
            print_json({"jar": path, "conf": settings})
        elif conf:
            typer.echo(_conf_text(settings))
        else:
            typer.echo(path)


def _conf_text(settings: dict[str, str]) -> str:
    """Return the text for users of spark-submit."""
    flags = " \\\n    ".join(f"--conf {key}={value}" for key, value in settings.items())
    lines = "\n".join(f"{key:<22}{value}" for key, value in settings.items())
    return (
        f"# spark-submit (append to what these settings hold already, separated by a comma):\nspark-submit {flags} \\\n"
        f"    your_program.py\n\n# spark-defaults.conf:\n{lines}\n\n"
        "# And in your_program.py, since the planner is Python:\n"
        "#   spark = skipstone.configure(SparkSession.builder).getOrCreate()\n"
        "# which also adds the two settings by itself where they are missing."
    )
