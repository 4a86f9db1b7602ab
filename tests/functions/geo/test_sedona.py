"""Apache Sedona's own functions, by the real Sedona: on the Spark that it supports, and by its classes on this one.

Both run with ``--long``: the jars have a hundred megabytes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.downloads import maven
from tests.servers.environments import interpreter

REPOSITORY = Path(__file__).parents[3]
SPARK_OF_SEDONA = "4.0.2"
JARS = ("org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0", "org.datasyslab:geotools-wrapper:1.8.0-33.1")
EXTENSION = "org.apache.sedona.sql.SedonaSqlExtensions"


@pytest.fixture(scope="module")
def jars():
    """Sedona's jars, fetched once."""
    return ",".join(str(maven(coordinate)) for coordinate in JARS)


def run(python, folder, jars, extension):
    """Run the script in a process of its own, its output in a file: a JVM that has a pipe keeps it open."""
    out = folder / "out.txt"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "PYSPARK_PYTHON": str(python)}
    script = Path(__file__).with_name("sedona_script.py")
    with out.open("w") as file:
        code = subprocess.call(
            [str(python), str(script), str(REPOSITORY), jars, extension],
            stdout=file,
            stderr=file,
            cwd=folder,
            env=environment,
            timeout=1200,
        )
    assert code == 0, out.read_text()[-4000:]
    assert "ALL WELL" in out.read_text()


@pytest.mark.spark_versions
def test_sedona_on_the_spark_that_it_supports(tmp_path, jars):
    run(interpreter(SPARK_OF_SEDONA), tmp_path, jars, EXTENSION)


@pytest.mark.long
def test_the_classes_of_sedona_on_this_spark(tmp_path, jars):
    run(sys.executable, tmp_path, jars, "-")
