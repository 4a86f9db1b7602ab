package org.apache.spark.sql.skipstone

import java.util.BitSet
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata, PartitionDirectory}

/** A scan in a query whose objects are named by a table's snapshot, not by folders. */
private[skipstone] trait TableScan {
  /** What is read and how; the columns with what tells them apart in the files: physical names, field ids. */
  def described: Described

  /** The snapshot's objects after the format's own pruning, each as the table names it: path, size, and time or 0. */
  def listing: Listing

  /** Files and bytes of the snapshot before the format's own pruning, where they are known at no cost. */
  def beforePruning: Option[(Long, Long)]

  /** Objects of the listing that are not needed, but kept for the sake of the plan; and why. */
  def keptBesides(keep: BitSet): (BitSet, String) = (new BitSet, "")

  /** The scan of the kept objects of the listing, with what tells it in a plan; or why that cannot be. */
  def replaced(keep: BitSet, digest: String, planned: Outcome, still: Still): Either[String, (LogicalPlan, AnyRef)]

  /** What tells the scan as it is in a plan: what lists its objects. */
  def location: AnyRef

  /** The table as indicators and audits look at it, if they can. */
  def measured: Option[MeasuredTable] = None
}

/** The version of a table that a query reads, for those who look into its objects. */
private[skipstone] trait MeasuredTable {
  def session: classic.SparkSession
  /** The columns of the query's scan. */
  def output: Seq[Attribute]
  /** All objects of the version, before any pruning. */
  def listing: Listing
  /** The live rows of some of these objects, by the columns of the query's scan, and the object's place beside them. */
  def numbered(wanted: BitSet): (LogicalPlan, Attribute)
  /** What tells versions of tables apart. */
  def version: Any
}

/** A table as index jobs read it. */
private[skipstone] trait TableSource {
  def session: classic.SparkSession
  def described: Described
  /** The table's scan in a plan, for what is said over its columns. */
  def leaf: LogicalPlan
  /** The same table, read by another session. */
  def by(session: classic.SparkSession): TableSource
  /** The objects of the newest snapshot. */
  def files(): Seq[TableFile]
  /** Their physical rows, deleted ones included, with the object's place as [[FileScan.ObjectColumn]], an INT that is never NULL. */
  def read(files: Seq[TableFile]): classic.Dataset[Row]
  /** Files longer than this may be split over several tasks of `read`; none: as Spark splits files. */
  def maxSplitBytes(): Option[Long] = None
  /** Tells which files are there, by the table's own client, if it has one. */
  def existing: Option[Path => Boolean] = None
}

/** An object as a table names it, and what the format itself says of it. */
private[skipstone] case class TableFile(status: FileStatus, own: AnyRef)

private[skipstone] object TableFile {
  /** Path, size, and the time in milliseconds that the table has for it; 0 where it has none. */
  def status(path: Path, size: Long, modified: Long): FileStatus = new FileStatus(size, false, 0, 1, modified, path)

  /** Statuses as a listing without partitions. */
  def listing(files: Seq[FileStatus]): Listing =
    new Listing(Array(PartitionDirectory(InternalRow.empty, files.map(FileStatusWithMetadata(_)))))
}

/** What a table format does for queries and index jobs. Its methods are called only where its classes are there. */
private[skipstone] trait TableFormat {
  def name: String

  /** Whether a leaf is of this format, by the name of its class: nothing of the format's is loaded for that. */
  def isTable(leaf: LogicalPlan): Boolean

  /** The names of the classes by which catalogs give its tables. */
  def tables: Set[String]

  /** The folder of a leaf's table, by Spark's own interfaces. */
  def roots(leaf: LogicalPlan): Seq[Path]

  /** What keeps this release of the format from being served, if anything does; asked once. */
  def unsupported(): Option[String]

  /** A plan in which every scan of this format that can be served is one; called on plans that have a leaf of it. */
  def prepared(plan: LogicalPlan, session: classic.SparkSession): LogicalPlan = plan

  /** What writes are under way on this thread, if any: scans stand aside then. */
  def writing(): Option[String] = None

  /** The scan of a leaf, why it is left alone, or nothing to be said of it. */
  def scan(leaf: LogicalPlan, session: classic.SparkSession): Option[Either[String, TableScan]]

  /** The table of a leaf; throws IllegalArgumentException with a sentence for what cannot be indexed. */
  def source(leaf: LogicalPlan, session: classic.SparkSession): TableSource
}

/** The table formats, and whether they are served. */
private[skipstone] object TableFormats extends Logging {
  private val all: Seq[TableFormat] = Seq(DeltaFormat, IcebergFormat)
  private val checked = new ConcurrentHashMap[String, Option[String]]()

  def of(leaf: LogicalPlan): Option[TableFormat] = all.find(_.isTable(leaf))

  /** Whether a catalog's table is of one of the formats, by the name of its class. */
  def isNamed(table: String): Boolean = all.exists(_.tables(table))

  def isTable(leaf: LogicalPlan): Boolean = leaf.children.isEmpty && of(leaf).isDefined

  /** Why a format is not served, if it is not: looked into once, and logged. */
  def unsupported(format: TableFormat): Option[String] = checked.computeIfAbsent(format.name, _ => {
    val found = try format.unsupported() catch {
      case e: LinkageError => Some(e.toString)
      case NonFatal(e) => Some(e.toString)
    }
    found.foreach(reason => logWarning(s"Skipstone leaves ${format.name} tables alone: $reason"))
    found.map(reason => s"${format.name} tables are left alone: $reason")
  })

  def source(leaf: LogicalPlan, session: classic.SparkSession): TableSource = {
    val format = of(leaf).get
    unsupported(format).foreach(reason => throw new IllegalArgumentException(reason))
    format.source(leaf, session)
  }
}
