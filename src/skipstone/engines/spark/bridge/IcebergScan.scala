package org.apache.spark.sql.skipstone

import java.util.OptionalLong

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.connector.read.partitioning.Partitioning
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.types.StructType

/**
 * Iceberg's scan of the files that a query needs, and for runs that do not read as planned, of the others.
 *
 * Compares by value, as [[SkipstoneFileIndex]] does: equal are two whose scans of all files are equal and that keep the same
 * of them. What Spark filters at run time is filtered in all of them.
 */
private[skipstone] class IcebergScan(
    val whole: Scan,
    kept: Scan,
    val others: Scan,
    reading: PartitionReaderFactory,
    val digest: String,
    share: Double,
    override val planned: Outcome,
    override val still: Still) extends Scan with Skipping with SupportsReportStatistics with SupportsReportPartitioning with SupportsRuntimeV2Filtering {
  private val columnar = reading.supportColumnarReads(null)

  override def readSchema(): StructType = whole.readSchema()
  override def description(): String = s"Skipstone(${planned.counts}) ${kept.description()}"
  override def toString: String = description()
  override def supportedCustomMetrics(): Array[CustomMetric] = whole.supportedCustomMetrics()
  override def reportDriverMetrics(): Array[CustomTaskMetric] = whole.reportDriverMetrics()
  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = whole.toMicroBatchStream(checkpoint)

  // Said and not found out by Spark, which would ask the partitions: there may be none.
  override def columnarSupportMode(): Scan.ColumnarSupportMode =
    if (columnar) Scan.ColumnarSupportMode.SUPPORTED else Scan.ColumnarSupportMode.UNSUPPORTED

  override def toBatch: Batch = new IcebergBatch(this, kept.toBatch, reading)

  override def outputPartitioning(): Partitioning = kept.asInstanceOf[SupportsReportPartitioning].outputPartitioning()

  override def filterAttributes(): Array[NamedReference] = whole.asInstanceOf[SupportsRuntimeV2Filtering].filterAttributes()

  override def filter(predicates: Array[Predicate]): Unit =
    Seq(whole, kept, others).foreach(_.asInstanceOf[SupportsRuntimeV2Filtering].filter(predicates))

  override def estimateStatistics(): Statistics = {
    val all = whole.asInstanceOf[SupportsReportStatistics].estimateStatistics()
    def scaled(n: OptionalLong): OptionalLong =
      if (n.isPresent) OptionalLong.of(math.ceil(n.getAsLong * share).toLong) else n
    new Statistics {
      override def sizeInBytes(): OptionalLong = scaled(all.sizeInBytes())
      override def numRows(): OptionalLong = scaled(all.numRows())
      override def columnStats(): java.util.Map[NamedReference, ColumnStatistics] = all.columnStats()
    }
  }

  private[skipstone] def sameAs(that: IcebergScan): Boolean = (this eq that) || digest == that.digest && whole == that.whole

  override def equals(other: Any): Boolean = other match {
    case that: IcebergScan => sameAs(that)
    case _ => false
  }

  override def hashCode(): Int = whole.hashCode()
}

/** Equal by its scan: Iceberg's own compares by a hash of the scan, which does not know what was kept. */
private[skipstone] class IcebergBatch(val scan: IcebergScan, kept: Batch, reading: PartitionReaderFactory) extends Batch {
  override def planInputPartitions(): Array[InputPartition] = kept.planInputPartitions()
  override def createReaderFactory(): PartitionReaderFactory = reading

  override def equals(other: Any): Boolean = other match {
    case that: IcebergBatch => scan == that.scan
    case _ => false
  }

  override def hashCode(): Int = scan.hashCode()
}

private[skipstone] object IcebergScan {
  /**
   * A scan without the files that are not kept.
   *
   * Where the plan may rest on how files are grouped by their partitions (storage-partitioned joins), each partition keeps a
   * file: a run that does not read as planned must find the same groups.
   */
  def of(iceberg: Iceberg, whole: Scan, files: Array[IcebergFile], keep: Int => Boolean, digest: String, planned: Outcome,
      still: Still): IcebergScan = {
    val (kept, others) = files.indices.partition(keep)
    val scan = iceberg.withTasks(whole, kept.map(files(_).task))
    val rows = files.iterator.map(_.rows).sum
    val share = if (rows == 0) 1.0 else kept.iterator.map(files(_).rows).sum.toDouble / rows
    // Whether rows or columns are read depends on all files of a scan: where they differ in that, all must be looked at.
    val reading = (if (kept.nonEmpty && iceberg.isUniform(whole, files)) scan else whole).toBatch.createReaderFactory()
    new IcebergScan(whole, scan, iceberg.withTasks(whole, others.map(files(_).task)), reading, digest, share, planned, still)
  }

  /** A relation as it was before the rule. */
  def unwrapped(rel: DataSourceV2ScanRelation): LogicalPlan = rel.scan match {
    case skipping: IcebergScan => replaced(rel, skipping.whole)
    case _ => rel
  }

  /** The same relation with another scan; by reflection, since the class has other parameters in every release. */
  def replaced(rel: DataSourceV2ScanRelation, scan: Scan): LogicalPlan = {
    val made = rel.makeCopy(rel.productIterator.map {
      case _: Scan => scan
      case other => other.asInstanceOf[AnyRef]
    }.toArray)
    made.copyTagsFrom(rel)
    made
  }

  /** The files that are kept for the sake of grouping: the shortest of each partition of which none is kept. */
  def keptForGroups(iceberg: Iceberg, scan: Scan, files: Array[IcebergFile], keep: Int => Boolean): Set[Int] =
    if (!iceberg.isGrouped(scan)) Set.empty
    else files.indices.groupBy(i => iceberg.group(files(i))).values.filterNot(_.exists(keep)).map(_.minBy(files(_).length)).toSet
}
