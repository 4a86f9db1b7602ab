"""Configuring a session: what is kept of the user's, and what is refused with a way out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.session import EXTENSION, configure, get_setting, require_bridge
from skipstone.errors import SettingError, UnsupportedSparkError

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from skipstone.errors import SessionNotConfiguredError
from skipstone.engines.spark.session import configure, require_bridge

def builder():
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")

plain = builder().getOrCreate()
try:
    configure(builder()).getOrCreate()
except SessionNotConfiguredError as error:
    assert "spark.stop()" in str(error), error
else:
    raise AssertionError("a session without the extension was accepted")
plain.stop()
# The JVM is still the one that was started without the jar.
spark = configure(builder()).config("spark.app.name", "later").config("spark.jars", sys.argv[1]).getOrCreate()
require_bridge(spark)
require_bridge(spark.newSession())
assert spark.conf.get("spark.app.name") == "later"
jars = spark.sparkContext.getConf().get("spark.jars").split(",")
assert jars[0] == sys.argv[1] and "skipstone-bridge" in jars[1], jars
spark.stop()
print("all good")
"""


def test_a_running_jvm_and_the_users_own_jars(tmp_path):
    jar = tmp_path / "own.jar"
    jar.write_bytes(b"PK\x05\x06" + bytes(18))  # an empty archive
    with (tmp_path / "out").open("wb") as out:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(jar)], stdout=out, stderr=out, env=environment, check=False, timeout=400
        )
    assert (tmp_path / "out").read_text().rstrip().endswith("all good"), (tmp_path / "out").read_text()[-3000:]


def test_the_session_has_the_bridge(spark):
    require_bridge(spark)
    assert EXTENSION in spark.conf.get("spark.sql.extensions").split(",")


@pytest.mark.parametrize("version", ["3.5.1", "5.0.0"])
def test_other_versions_are_refused(monkeypatch, version):
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(UnsupportedSparkError, match=version):
        configure(SparkSession.builder)


def test_settings(spark):
    assert get_setting(spark, "enabled") is True
    assert get_setting(spark, "force") is False
    assert get_setting(spark, "store") == "parquet"
    assert get_setting(spark, "plugins") == ()
    try:
        spark.conf.set("spark.skipstone.plugins", "a, b.c")
        assert get_setting(spark, "plugins") == ("a", "b.c")
        spark.conf.set("spark.skipstone.enabled", "maybe")
        with pytest.raises(SettingError, match=r"spark\.skipstone\.enabled is 'maybe', allowed is true or false"):
            get_setting(spark, "enabled")
    finally:
        spark.conf.unset("spark.skipstone.enabled")
        spark.conf.unset("spark.skipstone.plugins")
