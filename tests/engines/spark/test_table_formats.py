"""Table formats that are not there: what is looked for, and that nothing of them is loaded before."""

from __future__ import annotations


def test_a_format_whose_classes_are_not_there_is_off_with_the_reason(spark):
    bridge = spark._jvm.org.apache.spark.sql.skipstone
    reason = bridge.DeltaFormat.unsupported().get()
    assert "has no class org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex" in reason


def test_the_jar_has_nothing_of_the_formats_in_it():
    from zipfile import ZipFile

    from skipstone.engines.spark.bridge.build import bridge_jar

    with ZipFile(bridge_jar()) as jar:
        names = jar.namelist()
    assert "org/apache/spark/sql/skipstone/DeltaTables.class" in names
    assert not [name for name in names if name.startswith("org/apache/spark/sql/delta")]
