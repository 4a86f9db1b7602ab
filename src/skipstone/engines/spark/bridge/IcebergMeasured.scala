package org.apache.spark.sql.skipstone

import java.util.BitSet

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.connector.catalog.{SupportsMetadataColumns, SupportsRead, Table}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}
import org.apache.spark.sql.types.{StructField, StructType}

/** The snapshot that a scan of Iceberg's reads: all of its files, with their live rows. */
private[skipstone] class MeasuredIceberg(
    rel: DataSourceV2ScanRelation, override val session: classic.SparkSession, iceberg: Iceberg) extends MeasuredTable {
  private val base = rel.relation.table.asInstanceOf[Table with SupportsRead with SupportsMetadataColumns]
  private val root = new IcebergDescribed(rel.relation, session, iceberg).roots.head

  // Without the query's filters, which would keep Iceberg from giving all rows.
  private lazy val files: Array[IcebergFile] = session.withActive {
    val scan = base.newScanBuilder(rel.relation.options).build()
    if (iceberg.version(scan) != version) throw new IllegalArgumentException(
      s"${base.name} has changed since the DataFrame was planned: read the table anew")
    iceberg.files(scan).getOrElse(throw new IllegalArgumentException(s"${base.name} has other things than whole data files"))
  }

  override def output: Seq[Attribute] = rel.output
  override def version: Option[Long] = iceberg.version(rel.scan)
  override lazy val listing: Listing = TableListings.of(root, files.map(_.location), files.map(_.length), files.map(_.mark))(
    IcebergTableSource.path(_, root))

  override def numbered(wanted: BitSet): (LogicalPlan, Attribute) = {
    val numbers = files.iterator.zipWithIndex.filter { case (_, i) => wanted.get(i) }.toSeq
    val (own, columns) = rel.output.partition(_.metadata.contains("__metadata_col"))
    val read = StructType(columns.map(a => StructField(a.name, a.dataType, a.nullable)))
    val table = new IcebergFilesTable(base, numbers.map(_._1), iceberg, rel.relation.options, session.leafNodeDefaultParallelism, Some(read))
    val made = DataSourceV2Relation.create(table, None, None)
    val all = made.withMetadataColumns()
    val besides = all.output.filterNot(a => made.output.exists(_.exprId == a.exprId))
    val file = besides.find(_.name == IcebergTableSource.FileColumn).get
    val same = columns.zip(made.output) ++ own.map(a => a -> besides.find(b => b.name == a.name && b.dataType == a.dataType).getOrElse(
      throw new IllegalArgumentException(s"a part of the metadata column ${a.name} cannot be looked into")))
    val number = Alias(ObjectNumber(file, new ObjectNumbers(numbers.map { case (f, i) => f.location -> i }.toMap)), FileScan.ObjectColumn)()
    (Project(same.map { case (a, b) => Alias(b, a.name)(a.exprId) } :+ number, all), number.toAttribute)
  }
}
