package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, PartitionDirectory}
import org.apache.spark.sql.types.{IntegerType, StructField, StructType}

/**
 * One scan of a plan: what it asks for, the objects that there are, which of them the pruning of Spark or of a table format
 * leaves (`selected`), and which of these the plan reads (`kept`).
 */
private[skipstone] abstract class PlannedScan(
    val condition: Option[Expression], val listing: Listing, val selected: BitSet, val kept: BitSet) {
  def session: classic.SparkSession
  def output: Seq[Attribute]
  def roots: Seq[Path]
  /** The rows of some objects, and the object's place in the listing beside them. */
  def numbered(wanted: BitSet): (LogicalPlan, Attribute)
  /** Scans of which this is equal read the same objects in the same way. */
  def signature: Any
}

/** A scan of files. */
private[skipstone] class PlannedFiles(
    condition: Option[Expression], val rel: LogicalRelation, listing: Listing, selected: BitSet, kept: BitSet)
  extends PlannedScan(condition, listing, selected, kept) {
  val fs: HadoopFsRelation = rel.relation.asInstanceOf[HadoopFsRelation]
  override def session: classic.SparkSession = fs.sparkSession.asInstanceOf[classic.SparkSession]
  override def output: Seq[Attribute] = rel.output
  override def roots: Seq[Path] = fs.location.rootPaths ++ rel.catalogTable.flatMap(_.storage.locationUri).map(new Path(_))

  override def numbered(wanted: BitSet): (LogicalPlan, Attribute) = {
    val types = fs.location.partitionSchema
    val directories = listing.directories.indices.flatMap { d =>
      val directory = listing.directories(d)
      (listing.starts(d) until listing.starts(d + 1)).filter(wanted.get).map { i =>
        val values = types.fields.indices.map(c => directory.values.get(c, types(c).dataType))
        PartitionDirectory(new GenericInternalRow(values.toArray[Any] :+ i), Seq(listing.files(i)))
      }
    }
    val schema = StructType(fs.partitionSchema.fields :+ PlannedScans.Number)
    val number = AttributeReference(PlannedScans.Number.name, PlannedScans.Number.dataType, nullable = false)()
    val relation = fs.copy(location = new IndexingFileIndex(fs.location.rootPaths, schema, directories),
      partitionSchema = schema, bucketSpec = None)(fs.sparkSession)
    (rel.copy(relation = relation, output = rel.output :+ number, catalogTable = None), number)
  }

  override def signature: Any = (fs.sparkSession, listing.digest.toSeq, fs.fileFormat.getClass, fs.options, fs.dataSchema,
    fs.partitionSchema, output.map(a => (a.name, a.dataType, a.metadata)))
}

/** A scan of a table. */
private[skipstone] class PlannedTable(condition: Option[Expression], table: MeasuredTable, override val roots: Seq[Path],
    selected: BitSet, kept: BitSet) extends PlannedScan(condition, table.listing, selected, kept) {
  override def session: classic.SparkSession = table.session
  override def output: Seq[Attribute] = table.output
  override def numbered(wanted: BitSet): (LogicalPlan, Attribute) = table.numbered(wanted)
  override def signature: Any = (session, roots, table.version, output.map(a => (a.name, a.dataType, a.metadata)))
}

/** Lets a thread watch the scans of the plans that it makes. */
private[skipstone] object PlannedScans {
  private class Watch {
    val scans = ArrayBuffer.empty[PlannedScan]
    var failure: Option[Throwable] = None
  }
  private val current = new ThreadLocal[Watch]

  val Number: StructField = StructField(FileScan.ObjectColumn, IntegerType, nullable = false)

  def watched: Boolean = current.get != null

  /** The scans that `planning` plans on this thread, subqueries included. */
  def of(planning: => Unit): Seq[PlannedScan] = {
    val watch = new Watch
    current.set(watch)
    try planning finally current.remove()
    watch.failure.foreach(throw _)
    watch.scans.toSeq
  }

  /** Called by the rule; `selection` lists the objects and tells which directories partition pruning leaves. */
  def add(condition: Option[Expression], rel: LogicalRelation, planned: LogicalRelation)(
      selection: => (Listing, Array[Boolean])): Unit = {
    val watch = current.get
    try {
      val (listing, directories) = selection
      val selected = new BitSet(listing.files.length)
      directories.indices.filter(directories(_)).foreach(d => selected.set(listing.starts(d), listing.starts(d + 1)))
      val kept = planned.relation.asInstanceOf[HadoopFsRelation].location match {
        case wrapped: SkipstoneFileIndex =>
          val paths = wrapped.listFiles(Nil, Nil).iterator.flatMap(_.files).map(_.getPath).toSet
          val left = new BitSet(listing.files.length)
          selected.stream().filter(i => paths(listing.files(i).getPath)).forEach(i => left.set(i))
          left
        case _ => selected
      }
      watch.scans += new PlannedFiles(condition, rel, listing, selected, kept)
    } catch {
      case NonFatal(e) => watch.failure = Some(e) // the rule survives everything, so the watcher is told here
    }
  }

  /** The same of a table; `kept` are those of the objects of `scan.listing` that the plan reads. */
  def add(condition: Option[Expression], scan: TableScan, kept: BitSet): Unit = {
    val watch = current.get
    try {
      val table = scan.measured.getOrElse(throw new IllegalArgumentException(
        s"objects of ${scan.described.format} tables cannot be looked into yet"))
      val places = table.listing.files.iterator.map(_.getPath).zipWithIndex.toMap
      def among(objects: Iterator[Int]): BitSet = {
        val found = new BitSet
        objects.foreach(i => found.set(places(scan.listing.files(i).getPath)))
        found
      }
      watch.scans += new PlannedTable(condition, table, scan.described.roots,
        among(scan.listing.files.indices.iterator), among(kept.stream().toArray.iterator))
    } catch {
      case NonFatal(e) => watch.failure = Some(e)
    }
  }
}
