package org.apache.spark.sql.skipstone

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/** A file index whose directories are at hand; prunes them as Spark's own indexes do. */
private[skipstone] abstract class ListedFileIndex extends FileIndex {
  protected def directories: Seq[PartitionDirectory]

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val selects = ListedFileIndex.selector(partitionFilters, partitionSchema)
    val runner = new FilePruningRunner(dataFilters) // serves the filters on _metadata, ignores all others
    directories.filter(d => selects(d.values)).map(runner.prune)
  }

  override def inputFiles: Array[String] =
    directories.iterator.flatMap(_.files).map(f => SparkPath.fromFileStatus(f.fileStatus).urlEncoded).toArray

  override def sizeInBytes: Long = directories.iterator.flatMap(_.files).map(_.getLen).sum
}

private[skipstone] object ListedFileIndex {
  /** Whether a partition's values satisfy the filters that speak of partition columns only. */
  def selector(filters: Seq[Expression], schema: StructType): InternalRow => Boolean = {
    val names = schema.fieldNames.toSet
    val usable = filters.filter(_.references.forall(a => names.contains(a.name)))
    if (usable.isEmpty) _ => true else {
      val predicate = Predicate.createInterpreted(usable.reduce(And).transform {
        case a: AttributeReference =>
          val i = schema.fieldIndex(a.name)
          BoundReference(i, schema(i).dataType, nullable = true)
      })
      values => predicate.eval(values)
    }
  }
}

/** What was decided of a scan, for those who look at its plan. */
private[skipstone] class Outcome(val kept: Int, val total: Int, val bytesSkipped: Long) {
  /** How long deciding took; known a moment after the rest. */
  @volatile var nanoseconds: Long = 0L

  def counts: String = s"$kept of $total objects"
}

/**
 * The objects that a query needs, of those that `base` lists.
 *
 * Compares by value, since Spark reuses exchanges and merges subplans of equal relations: equal are
 * two with equal bases that list the same objects and keep the same of them (`digest`). After a refresh what is kept is
 * no longer known to be right, so from then on it is `base`; and so it is while files would be read otherwise than when
 * the query was planned.
 */
private[skipstone] class SkipstoneFileIndex(
    val base: FileIndex,
    override protected val directories: Seq[PartitionDirectory],
    digest: String,
    keptBytes: Long,
    val planned: Outcome,
    val still: Still) extends ListedFileIndex {
  @volatile private var refreshed = false

  override def rootPaths: Seq[Path] = base.rootPaths
  override def partitionSchema: StructType = base.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = base.metadataOpsTimeNs
  override def sizeInBytes: Long = if (refreshed) base.sizeInBytes else keptBytes
  override def inputFiles: Array[String] = if (refreshed) base.inputFiles else super.inputFiles

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    if (refreshed || !still.holds) base.listFiles(partitionFilters, dataFilters)
    else super.listFiles(partitionFilters, dataFilters)

  override def refresh(): Unit = {
    refreshed = true
    base.refresh()
  }

  /** Whether all that `base` lists is read, since what was planned is no longer known to be right. */
  def standsAside: Boolean = refreshed

  private def contents: String = if (refreshed) "" else digest

  override def equals(other: Any): Boolean = other match {
    case that: SkipstoneFileIndex => (this eq that) || (contents == that.contents && base == that.base)
    case _ => false
  }

  override def hashCode(): Int = base.hashCode()

  override def toString: String = s"SkipstoneFileIndex(${planned.counts} of ${rootPaths.take(5).mkString(", ")})"
}

/** Given objects, each a partition of its own that carries the object's number as its last value. */
private[skipstone] class IndexingFileIndex(
    override val rootPaths: Seq[Path],
    override val partitionSchema: StructType,
    override protected val directories: Seq[PartitionDirectory]) extends ListedFileIndex {
  override def refresh(): Unit = ()
}
