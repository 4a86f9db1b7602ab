"""Avro in the session of the tests: Spark's own package, which is not part of its distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyspark

from tests.servers.downloads import maven

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = {"4.0": "4.0.2"}.get(".".join(pyspark.__version__.split(".")[:2]), "4.1.1")


def avro(spark: SparkSession) -> None:
    """Let a running session read and write Avro."""
    jvm: Any = spark._jvm
    jar = maven(f"org.apache.spark:spark-avro_2.13:{VERSION}")
    jvm.java.lang.Thread.currentThread().getContextClassLoader().addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    # Spark knows from now on when it was brought: a jar that is newer than the application, as one that was just
    # downloaded, leaves every compiled function of the session without an identity.
    spark._jsc.addJar(str(jar))
