package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * One scan of a plan: what it asks for, the objects that it listed, which of them Spark's partition pruning leaves
 * (`selected`), and which of these the plan reads (`kept`).
 */
private[skipstone] class PlannedScan(
    val condition: Option[Expression],
    val rel: LogicalRelation,
    val listing: Listing,
    val selected: BitSet,
    val kept: BitSet) {
  val fs: HadoopFsRelation = rel.relation.asInstanceOf[HadoopFsRelation]

  /** The objects that it leaves out. */
  def skipped: BitSet = {
    val left = selected.clone().asInstanceOf[BitSet]
    left.andNot(kept)
    left
  }
}

/** Lets a thread watch the scans of the plans that it makes. */
private[skipstone] object PlannedScans {
  private class Watch {
    val scans = ArrayBuffer.empty[PlannedScan]
    var failure: Option[Throwable] = None
  }
  private val current = new ThreadLocal[Watch]

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
      watch.scans += new PlannedScan(condition, rel, listing, selected, kept)
    } catch {
      case NonFatal(e) => watch.failure = Some(e) // the rule survives everything, so the watcher is told here
    }
  }
}
