package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet

import org.apache.hadoop.fs.{FileStatus, Path}

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

/** Directories that were listed once. */
private[skipstone] class FixedFileIndex(
    base: FileIndex, override protected val directories: Seq[PartitionDirectory]) extends ListedFileIndex {
  override def rootPaths: Seq[Path] = base.rootPaths
  override def partitionSchema: StructType = base.partitionSchema
  override def refresh(): Unit = ()
}

/** Which objects of a listing a query does not need, and the version of the listing that this was decided on. */
private[skipstone] class Decided(
    base: FileIndex, version: Option[AnyRef], val listing: Listing, selected: Array[Boolean], keep: BitSet,
    val topped: Option[Topped] = None) {
  private val listed = version.map(new WeakReference(_))

  /** The objects that partition pruning leaves. */
  def chosen: BitSet = {
    val out = new BitSet(listing.files.length)
    selected.indices.filter(selected(_)).foreach(d => out.set(listing.starts(d), listing.starts(d + 1)))
    out
  }

  /** Those that are kept, and those that are left out only since the first rows of the query do not need them. */
  def keptByFilters: BitSet = {
    val out = keep.clone().asInstanceOf[BitSet]
    topped.foreach(t => out.or(t.skipped))
    out
  }

  /** Whether Spark would list now what it listed then. */
  def isCurrent: Boolean = listed.exists(l => Listing.version(base).exists(_ eq l.get))

  private def states(objects: Iterator[Int]): Map[Path, FileStatus] =
    objects.map(i => listing.files(i).getPath -> listing.files(i).fileStatus).toMap

  private lazy val skipped: Map[Path, FileStatus] = states(
    selected.indices.iterator.filter(selected(_)).flatMap(d => listing.starts(d) until listing.starts(d + 1)).filterNot(keep.get))

  /** Of some objects of a listing those that are not needed, as they were; by their numbers where it is the same listing. */
  def skippedOf(now: Listing, objects: BitSet): BitSet = {
    if (now eq listing) {
      val out = chosen
      out.and(objects)
      out.andNot(keep)
      out
    } else {
      val out = new BitSet(now.files.length)
      objects.stream().forEach(i => if (skips(now.files(i))) out.set(i))
      out
    }
  }

  /** Whether an object is one that is not needed, as it was. */
  def skips(file: FileStatusWithMetadata): Boolean = skipped.get(file.getPath).exists(Listing.sameState(_, file.fileStatus))

  /** The objects that are not needed because of others, which were counted. */
  private lazy val (needless, counted) = topped.fold((Set.empty[Path], Map.empty[Path, FileStatus])) { t =>
    (t.skipped.stream().toArray.map(listing.files(_).getPath).toSet, states(t.counted.stream().toArray.iterator))
  }

  /** A listing without the objects that are not needed, where they are as they were, and so are those that they are not
    * needed for. */
  def without(directories: Seq[PartitionDirectory]): Seq[PartitionDirectory] = {
    val found = directories.iterator.flatMap(_.files).count(f => counted.get(f.getPath).exists(Listing.sameState(_, f.fileStatus)))
    val here = if (found == counted.size) Set.empty[Path] else needless
    directories.map(d => d.copy(files = d.files.filterNot(f => !here(f.getPath) && skips(f))))
  }
}

/** What was decided of a scan, for those who look at its plan. */
private[skipstone] class Outcome(val kept: Int, val total: Int, val bytesSkipped: Long, run: Option[JoinOutcome] = None) {
  /** How long deciding took; known a moment after the rest. */
  @volatile var nanoseconds: Long = 0L

  def counts: String = s"$kept of $total objects" + run.fold("")(r => s" (${r.skipped} left out by ${r.reason})")
}

/** What reads the objects that a query needs, for as long as files are read as they were when it was planned. */
private[skipstone] trait Skipping {
  /** What was decided. */
  def planned: Outcome
  def still: Still
  /** Whether all objects are read, since what was planned is no longer known to be right. */
  def standsAside: Boolean = false
}

/** What lists such objects. */
private[skipstone] trait SkippingIndex extends FileIndex with Skipping {
  /** What lists all objects of the scan. */
  def everything: FileIndex
}

/**
 * The objects that a query needs, of those that `base` lists.
 *
 * Compares by value, since Spark reuses exchanges and merges subplans of equal relations: equal are
 * two with equal bases that list the same objects and keep the same of them (`digest`). After a refresh what is kept is
 * no longer known to be right, so from then on it is `base`; and so it is while files would be read otherwise than when
 * the query was planned.
 *
 * A plan may run after `base` was refreshed by someone else (an INSERT into the table, REFRESH TABLE), and the index of a
 * catalog table asks for its partitions in each run. Spark reads what is listed when a scan first runs; so does this.
 *
 * `under` is what was planned by filters, where keys of joins or values of subqueries left out more when the query ran.
 */
private[skipstone] class SkipstoneFileIndex(
    val base: FileIndex,
    override protected val directories: Seq[PartitionDirectory],
    digest: String,
    keptBytes: Long,
    val planned: Outcome,
    val decided: Decided,
    val still: Still,
    under: Option[SkipstoneFileIndex] = None) extends ListedFileIndex with SkippingIndex {
  @volatile private var refreshedItself = false
  @volatile private var listed: FileIndex = base

  /** All that was there when the scan first ran; before that, `base`. */
  override def everything: FileIndex = listed

  override def rootPaths: Seq[Path] = base.rootPaths
  override def partitionSchema: StructType = base.partitionSchema
  override def metadataOpsTimeNs: Option[Long] = base.metadataOpsTimeNs
  override def sizeInBytes: Long = if (refreshed) base.sizeInBytes else keptBytes
  override def inputFiles: Array[String] = if (refreshed) base.inputFiles else super.inputFiles

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    if (refreshed || !still.holds) base.listFiles(partitionFilters, dataFilters)
    else if (decided.isCurrent) {
      listed = new FixedFileIndex(base, decided.listing.directories.toSeq)
      super.listFiles(partitionFilters, dataFilters)
    } else {
      val now = base.listFiles(partitionFilters, dataFilters)
      listed = new FixedFileIndex(base, now)
      decided.without(now)
    }

  override def refresh(): Unit = {
    refreshedItself = true
    base.refresh()
  }

  /** Whether all that `base` lists is read, since what was planned is no longer known to be right. */
  override def standsAside: Boolean = refreshed

  private def refreshed: Boolean = refreshedItself || under.exists(_.refreshed)

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
