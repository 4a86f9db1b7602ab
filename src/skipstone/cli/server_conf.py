"""``skipstone server-conf``: the complete settings with which a server, or any JVM program on Spark, skips."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from skipstone.cli.output import Output, print_json
from skipstone.cli.session import pairs
from skipstone.cli.support import ConfOption, OutputOption, failing_politely

__all__ = ["Place", "add_server_conf", "server_settings", "told"]


class Place(StrEnum):
    """Where settings go."""

    SPARK_DEFAULTS = "spark-defaults"
    SPARK_SUBMIT = "spark-submit"
    SPARK_SQL = "spark-sql"
    SPARK_SHELL = "spark-shell"
    CONNECT = "connect"
    THRIFT = "thrift"
    DOCKER = "docker"
    KUBERNETES = "kubernetes"
    YARN = "yarn"


_IN_IMAGE = "/opt/skipstone"
_PROGRAM = "--class com.example.Job your-job.jar"
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_THRIFT_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_APPEND = (
    "# Where spark.jars or spark.sql.extensions have a value already, append to it, separated by a comma;\n"
    "# Skipstone's extension comes last."
)


@dataclass(frozen=True)
class Installed:
    """Where a server finds what it needs: the jar, and a Python interpreter that has Skipstone."""

    jar: str
    python: str


def server_settings(place: Place, where: Installed, more: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a JVM program needs; what the user gives besides wins."""
    from skipstone.engines.spark.bridge.presence import EXTENSION

    # Index jobs run Python on the executors too.  Elsewhere they have an interpreter of their own, chosen already.
    everywhere = place in {Place.DOCKER, Place.KUBERNETES, Place.YARN}
    return {
        "spark.jars": where.jar,
        "spark.sql.extensions": EXTENSION,
        "spark.skipstone.companion.enabled": "true",
        "spark.skipstone.companion.python": where.python,
        **({"spark.pyspark.python": where.python} if everywhere else {}),
        **more,
    }


def told(place: Place, settings: Mapping[str, str]) -> str:
    """Return what to type, or to put into a file."""
    match place:
        case Place.SPARK_DEFAULTS:
            return (
                f"# conf/spark-defaults.conf: every program of this installation skips.\n{_APPEND}\n{_lines(settings)}"
            )
        case Place.SPARK_SUBMIT:
            return f"# A program in Scala or Java.\n{_APPEND}\n{_command('spark-submit', settings, _PROGRAM)}"
        case Place.SPARK_SQL | Place.SPARK_SHELL:
            return f"{_APPEND}\n{_command(place.value, settings)}"
        case Place.CONNECT:
            return (
                "# A Spark Connect server; sbin/start-connect-server.sh takes the same --conf options.\n"
                f"{_APPEND}\n{_command('spark-submit', settings, f'--class {_CONNECT_SERVER} spark-internal')}\n\n"
                "# Clients need nothing; with Skipstone they may call:\n"
                '#   skipstone.configure(SparkSession.builder.remote("sc://host:15002")).getOrCreate()'
            )
        case Place.THRIFT:
            return (
                "# A Thrift server (JDBC, ODBC); sbin/start-thriftserver.sh takes the same --conf options.\n"
                f"{_APPEND}\n{_command('spark-submit', settings, f'--class {_THRIFT_SERVER} spark-internal')}\n\n"
                "# beeline -u jdbc:hive2://host:10000"
            )
        case Place.DOCKER:
            return _dockerfile(settings)
        case Place.KUBERNETES:
            return (
                "# Cluster mode: the driver runs in your image, so that paths are the image's. Make it as you make\n"
                "# Spark's (bin/docker-image-tool.sh), with Python 3.11+ and Skipstone in /opt/skipstone.\n"
                f"{_APPEND}\n" + _command("spark-submit", _on_kubernetes(settings), _PROGRAM)
            )
        case Place.YARN:
            return (
                "# Cluster mode: the jar is sent along, and so is a Python environment with Skipstone in it.\n"
                "#   python -m venv env && env/bin/pip install skipstone venv-pack\n"
                "#   env/bin/venv-pack -p env -o env.tar.gz\n"
                f"{_APPEND}\n" + _command("spark-submit", _on_yarn(settings), _PROGRAM)
            )


def _lines(settings: Mapping[str, str]) -> str:
    width = max(map(len, settings)) + 2
    return "\n".join(f"{key:<{width}}{value}" for key, value in settings.items())


def _command(program: str, settings: Mapping[str, str], rest: str = "") -> str:
    parts = [f"--conf {key}={_quoted(value)}" for key, value in settings.items()]
    return " \\\n    ".join([program, *parts, *([rest] if rest else [])])


def _quoted(value: str) -> str:
    from shlex import quote

    return quote(value)


def _dockerfile(settings: Mapping[str, str]) -> str:
    """Return a Dockerfile; the jar in the image is the one that its own Skipstone makes for its own Spark."""
    import pyspark

    import skipstone

    lines = "\\n\\\n".join(f"{key} {value}" for key, value in settings.items())
    return (
        "# An image with Python, Java, and Spark as pip installs it; spark-submit, spark-sql and servers in it skip.\n"
        "FROM python:3.11-slim-bookworm\n"
        "RUN apt-get update \\\n"
        " && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \\\n"
        " && rm -rf /var/lib/apt/lists/*\n"
        f"RUN python -m venv {_IN_IMAGE} \\\n"
        f" && {_IN_IMAGE}/bin/pip install skipstone=={skipstone.__version__} pyspark=={pyspark.__version__} \\\n"
        f' && cp "$({_IN_IMAGE}/bin/skipstone jar)" {_IN_IMAGE}/skipstone-bridge.jar \\\n'
        f" && mkdir {_IN_IMAGE}/conf\n"
        f"ENV SPARK_CONF_DIR={_IN_IMAGE}/conf PATH={_IN_IMAGE}/bin:$PATH\n"
        f"RUN printf '{lines}\\n' > {_IN_IMAGE}/conf/spark-defaults.conf"
    )


def _on_kubernetes(settings: Mapping[str, str]) -> dict[str, str]:
    own = {
        "spark.master": "k8s://https://your-cluster:6443",
        "spark.submit.deployMode": "cluster",
        "spark.kubernetes.container.image": "your-registry/spark-skipstone",
    }
    return {**own, **settings}


def _on_yarn(settings: Mapping[str, str]) -> dict[str, str]:
    own = {"spark.master": "yarn", "spark.submit.deployMode": "cluster", "spark.archives": "env.tar.gz#env"}
    return {**own, **settings}


def installed_at(place: Place, jar: str | None, python: str | None) -> Installed:
    """Return where a server finds the jar and the interpreter: as given, or where that kind of server has them."""
    if place is Place.DOCKER:
        found = f"{_IN_IMAGE}/skipstone-bridge.jar", f"{_IN_IMAGE}/bin/python"
    elif place is Place.KUBERNETES:
        found = f"local://{_IN_IMAGE}/skipstone-bridge.jar", f"{_IN_IMAGE}/bin/python"
    elif place is Place.YARN:
        found = jar or _own_jar(), "./env/bin/python"
    else:
        found = jar or _own_jar(), sys.executable
    return Installed(jar or found[0], python or found[1])


def _own_jar() -> str:
    from skipstone.engines.spark.bridge.build import bridge_jar

    return str(bridge_jar())


def add_server_conf(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("server-conf")
    def server_conf(
        place: Annotated[Place, typer.Option("--for", help="What the settings are for.")] = Place.SPARK_DEFAULTS,
        jar: Annotated[
            str | None, typer.Option("--jar", metavar="PATH", help="Where the server finds the jar; else this one's.")
        ] = None,
        python: Annotated[
            str | None,
            typer.Option("--python", metavar="PATH", help="The server's interpreter with Skipstone; else this one."),
        ] = None,
        conf: ConfOption = None,
        output: OutputOption = Output.TEXT,
    ) -> None:
        """Print the settings with which a server or a JVM program skips: what to type, or to put into a file."""
        with failing_politely(output):
            where = installed_at(place, jar, python)
            settings = server_settings(place, where, pairs(conf or (), "--conf"))
            text = told(place, settings)
            if output is Output.JSON:
                print_json({"for": place.value, "jar": where.jar, "conf": settings, "text": text})
            else:
                typer.echo(text)
