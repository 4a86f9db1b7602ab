package org.apache.spark.sql.skipstone

import java.util

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Some data files of an Iceberg table, by default each with all rows that were written to it, deleted ones included.
 *
 * An index must know the deleted rows: in another snapshot of the table (time travel, a rollback, a branch) they are there.
 * Who asks what a query finds, of some of its columns, asks for the live rows.
 */
private[skipstone] class IcebergFilesTable(
    base: Table with SupportsRead with SupportsMetadataColumns, files: Seq[IcebergFile], iceberg: Iceberg,
    options: CaseInsensitiveStringMap, parallelism: Int, live: Option[StructType] = None)
    extends Table with SupportsRead with SupportsMetadataColumns {
  override def name(): String = base.name()
  override def schema(): StructType = live.getOrElse(base.schema())
  override def columns(): Array[Column] = live.map(_.fields.map(f => Column.create(f.name, f.dataType, f.nullable))).getOrElse(base.columns())
  override def partitioning(): Array[Transform] = Array.empty
  override def properties(): util.Map[String, String] = base.properties()
  override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(TableCapability.BATCH_READ)
  override def metadataColumns(): Array[MetadataColumn] = base.metadataColumns()

  override def newScanBuilder(none: CaseInsensitiveStringMap): ScanBuilder =
    new ScanBuilder with SupportsPushDownRequiredColumns {
      private val builder = base.newScanBuilder(options)

      override def pruneColumns(required: StructType): Unit =
        builder.asInstanceOf[SupportsPushDownRequiredColumns].pruneColumns(required)

      override def build(): Scan = {
        val scan = builder.build()
        iceberg.read(scan, files, parallelism, deleted = live.isEmpty)
        scan
      }
    }
}
