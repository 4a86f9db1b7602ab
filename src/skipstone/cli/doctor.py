"""``skipstone doctor``: whether a session or a server has all that it needs to skip, and what to do if it has not."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from skipstone.cli.checks import (
    Finding,
    State,
    broken,
    check_companion,
    check_extensions,
    check_jar,
    check_settings,
    check_software,
    defaults_file,
    odd,
    read_defaults,
    well,
)
from skipstone.cli.dataset_checks import check_dataset, check_skipping
from skipstone.cli.output import Output, print_json
from skipstone.cli.session import pairs, quiet_session
from skipstone.cli.support import ConfOption, OutputOption, failing_politely
from skipstone.engines.spark.bridge.presence import EXTENSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_doctor"]

_PORT = 15002
_PATIENCE_SECONDS = 10.0
_EXTENSIONS = "spark.sql.extensions"
_COMPANION = "spark.skipstone.companion.enabled"


def add_doctor(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="A dataset's folder: may its metadata be written?")
    ] = None,
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server to look at.")
    ] = None,
    properties_file: Annotated[
        Path | None,
        typer.Option(
            "--properties-file", metavar="FILE", help="Settings of a server, in place of spark-defaults.conf."
        ),
    ] = None,
    conf: ConfOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check a session or a server: jar, versions, interpreter, companion, settings, extensions, a dataset's folder.

    The exit code is 1 when something keeps Skipstone from working.
    """
    with failing_politely(output):
        if remote is not None:
            findings = list(_of_server(remote))
        else:
            findings = list(_of_machine(properties_file, conf or (), path))
        _print(findings, output)
        if any(finding.state is State.BROKEN for finding in findings):
            raise typer.Exit(1)


def _of_machine(file: Path | None, conf: Sequence[str], path: str | None) -> Iterator[Finding]:
    """Check what a program on this machine would have."""
    given = pairs(conf, "--conf")
    file = file or defaults_file()
    settings = {**(read_defaults(file) if file is not None else {}), **given}
    findings = [*check_software(), *check_jar(), *check_settings(settings)]
    findings += _of_programs(settings, file)
    yield from findings
    if any(finding.state is State.BROKEN for finding in findings):
        yield odd("session", "no session was started, since the above would keep it from working", "see above")
        return
    # A session of this command has a Python driver, whatever the settings say of a companion.
    spark = quiet_session([f"{k}={v}" for k, v in settings.items() if k != _COMPANION])
    yield from check_skipping(spark)
    if path is not None:
        yield from check_dataset(spark, path)


def _of_programs(settings: Mapping[str, str], file: Path | None) -> Iterator[Finding]:
    """Check the settings that programs without a Python driver start with."""
    where = file or "spark-defaults.conf, which is not there"
    if not settings.get(_EXTENSIONS) and _COMPANION not in settings:
        said = f"not in {where}: programs that call skipstone.configure skip, and no others"
        yield well("extensions", said)
        return
    yield from check_extensions(settings.get(_EXTENSIONS, ""))
    yield from check_companion(settings)


def _of_server(address: str) -> Iterator[Finding]:
    """Check a Spark Connect server from a client."""
    import pyspark
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    yield from check_software()
    try:
        _knock(address)  # a client would try for minutes
        spark: SparkSession = SparkSession.builder.remote(address).getOrCreate()
        theirs = spark.version
    except (PySparkException, ImportError, OSError) as error:
        todo = "start it as 'skipstone server-conf --for connect' prints; clients need pip install 'skipstone[connect]'"
        yield broken("server", f"{address} does not answer: {str(error).splitlines()[0]}", todo)
        return
    try:
        if theirs.split(".")[:2] == pyspark.__version__.split(".")[:2]:
            yield well("server", f"Spark {theirs} at {address}")
        else:
            todo = f"pip install pyspark=={theirs}"
            yield odd("server", f"the server runs Spark {theirs}, this client pyspark {pyspark.__version__}", todo)
        settings = _settings_of(spark)
        yield from _of_server_settings(settings)
        if EXTENSION in settings[_EXTENSIONS]:
            yield _planner(spark)
    finally:
        spark.stop()


def _knock(address: str) -> None:
    """Raise ``OSError`` when nobody listens at a server's address."""
    found = urlsplit(address)
    if found.scheme != "sc" or not found.hostname:
        msg = "an address is sc://HOST:PORT"
        raise OSError(msg)
    socket.create_connection((found.hostname, found.port or _PORT), timeout=_PATIENCE_SECONDS).close()


def _settings_of(spark: SparkSession) -> dict[str, str]:
    """Return a server's settings as a client sees them."""
    found: dict[str, Any] = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    extensions = spark.conf.get(_EXTENSIONS, "") or ""
    return {**found, _EXTENSIONS: extensions}


def _of_server_settings(settings: Mapping[str, str]) -> Iterator[Finding]:
    yield from check_settings(settings)
    yield from check_extensions(settings[_EXTENSIONS])
    if settings.get(_COMPANION, "false").strip().lower() == "true":
        python = settings.get("spark.skipstone.companion.python") or "the interpreter that PySpark would take"
        yield well("companion", f"on, run by {python} of the server")
    else:
        yield odd(
            "companion",
            "off: unless a Python program has made this server, its queries read everything",
            f"start the server with {_COMPANION}=true ('skipstone server-conf --for connect' prints all)",
        )


def _planner(spark: SparkSession) -> Finding:
    """Have the server's planner answer a statement."""
    from pyspark.errors import PySparkException

    try:
        spark.sql("EXPLAIN SKIPPING SELECT 1").collect()
    except PySparkException as error:
        todo = "see the server's log for what its companion says, and spark.skipstone.sql.enabled"
        return broken("planner", f"the server's planner does not answer: {str(error).splitlines()[0]}", todo)
    return well("planner", "the server's planner answers")


def _print(findings: Sequence[Finding], output: Output) -> None:
    broken_ones = sum(finding.state is State.BROKEN for finding in findings)
    if output is Output.JSON:
        print_json({"well": not broken_ones, "findings": findings})
        return
    width = max(len(finding.check) for finding in findings) + 2
    for finding in findings:
        typer.echo(f"{finding.state:<8}{finding.check:<{width}}{finding.said}")
        if finding.todo is not None:
            typer.echo(f"{'':<{8 + width}}-> {finding.todo}")
    summary = f"{broken_ones} of {len(findings)} checks failed" if broken_ones else "Skipstone can work here."
    typer.echo(summary)
