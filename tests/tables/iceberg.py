"""What the tests of Iceberg tables share: catalogs, tables, deletes that Spark does not write, and the comparison."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skipstone import skipping_stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.engines.spark.scan_stats import ScanStats

CATALOG = "ice"
# Without column statistics, so that it is not Iceberg itself that leaves out files.
NO_STATISTICS = {"write.metadata.metrics.default": "none"}
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
COPY_ON_WRITE = {f"write.{verb}.mode": "copy-on-write" for verb in ("delete", "update", "merge")}


def add_catalog(spark: SparkSession, folder: Path, name: str = CATALOG, **settings: str) -> None:
    """Return the session an Iceberg catalog whose tables lie in a folder."""
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {"warehouse": str(folder), **settings}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key.replace('_', '-')}", value)


def new_table(
    spark: SparkSession,
    columns: str = "id BIGINT, s STRING",
    *,
    partitioned: str = "",
    properties: dict[str, str] | None = None,
    catalog: str = CATALOG,
) -> str:
    """Create an empty table under a name of its own."""
    name = f"{catalog}.db.t{uuid.uuid4().hex[:8]}"
    said = ", ".join(
        f"'{k}' = '{v}'" for k, v in {"format-version": "2", **NO_STATISTICS, **(properties or {})}.items()
    )
    parts = f"PARTITIONED BY ({partitioned})" if partitioned else ""
    spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {parts} TBLPROPERTIES ({said})")
    return name


def append(spark: SparkSession, table: str, objects: Iterable[str]) -> None:
    """Append each of some queries as one data file."""
    for query in objects:
        spark.sql(query).coalesce(1).writeTo(table).append()


def ranges(select: str, files: int, rows: int = 10) -> list[str]:
    """Queries over consecutive numbers, one for each file."""
    return [f"SELECT {select} FROM range({n * rows}, {n * rows + rows})" for n in range(files)]


def numbers(first: int, files: int, rows: int = 10) -> list[str]:
    """Queries of consecutive numbers and texts of them, one for each file."""
    starts = range(first, first + files * rows, rows)
    return [f"SELECT id, concat('s', id) AS s FROM range({start}, {start + rows})" for start in starts]


@contextmanager
def setting(spark: SparkSession, **values: str) -> Iterator[None]:
    """Set settings for a while; in their names ``__`` stands for a dot and ``_`` for a hyphen."""
    names = {k.replace("__", ".").replace("_", "-"): v for k, v in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def rows(df: DataFrame) -> list[str]:
    """The rows, in an order that does not depend on how they were read."""
    return sorted(map(repr, df.collect()))


def without(spark: SparkSession, sql: str) -> list[str]:
    """The rows of a query that nothing is left out of."""
    with setting(spark, spark__skipstone__enabled="false"):
        return rows(spark.sql(sql))


def compared(spark: SparkSession, sql: str) -> list[ScanStats]:
    """Run a query with skipping and without, see that the rows are the same, and give what happened to its scans."""
    expected = without(spark, sql)
    with skipping_stats(spark) as stats:
        assert rows(spark.sql(sql)) == expected, sql
    assert not [scan.error for scan in stats if scan.error], list(stats)
    return list(stats)


def skipped(spark: SparkSession, sql: str, *, kept: int | None = None) -> list[ScanStats]:
    """The same, and files must have been skipped: to ``kept`` in the scans together, if it is given."""
    scans = compared(spark, sql)
    assert sum(scan.objects.skipped for scan in scans) > 0, (sql, scans)
    if kept is not None:
        assert sum(scan.objects.kept for scan in scans) == kept, (sql, scans)
    return scans


def left_alone(spark: SparkSession, sql: str) -> list[ScanStats]:
    """The same, and nothing may have been skipped."""
    scans = compared(spark, sql)
    assert not sum(scan.objects.skipped for scan in scans), (sql, scans)
    return scans


def java_table(spark: SparkSession, table: str) -> Any:
    """Iceberg's own table."""
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)


def delete_equal(spark: SparkSession, table: str, column: str, values: Iterable[object]) -> None:
    """Commit a file of equality deletes, as Flink writes them, for those of some values that are there."""
    jvm: Any = spark._jvm
    loaded = java_table(spark, table)
    loaded.refresh()
    schema = loaded.schema().select([column])
    found = []
    for value in values:  # as Iceberg's own records: a number that went through Python would be of another type
        where = jvm.org.apache.iceberg.expressions.Expressions.equal(column, value)
        read = jvm.org.apache.iceberg.data.IcebergGenerics.read(loaded).select([column]).where(where).build()
        rows = read.iterator()
        while rows.hasNext():
            found.append(rows.next().copy())
    if not found:
        return
    ids = spark._sc._gateway.new_array(jvm.int, 1)
    ids[0] = schema.findField(column).fieldId()
    builder = getattr(jvm.org.apache.iceberg.data, "GenericFileWriterFactory$Builder")(loaded)
    parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
    factory = builder.deleteFileFormat(parquet).equalityFieldIds(ids).equalityDeleteRowSchema(schema).build()
    place = loaded.io().newOutputFile(f"{loaded.location()}/data/deletes-{uuid.uuid4().hex}.parquet")
    encrypted = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(place)
    writer = factory.newEqualityDeleteWriter(encrypted, loaded.spec(), None)
    for record in found:
        writer.write(record)
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    spark.sql(f"REFRESH TABLE {table}")


def snapshots(spark: SparkSession, table: str) -> list[int]:
    """The ids of a table's snapshots, oldest first."""
    return [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()]


def procedure(spark: SparkSession, table: str, name: str, arguments: str = "") -> None:
    """Call a procedure of the table's catalog."""
    catalog, _, rest = table.partition(".")
    spark.sql(f"CALL {catalog}.system.{name}(table => '{rest}'{', ' if arguments else ''}{arguments})").collect()
