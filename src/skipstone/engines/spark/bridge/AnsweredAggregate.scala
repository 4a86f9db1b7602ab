package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, SinglePartition}
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.storage.StorageLevel

/**
 * What metadata says of some objects: the buffers of an aggregation over their rows, for as long as `holds` says so. Where it
 * stands in place of an `exchange`, too, Spark must list what it listed then (`isCurrent`).
 */
private[skipstone] class Answer(
    val buffers: Seq[InternalRow], val outcome: TallyOutcome, asked: StageScan, isHeld: () => Boolean, isCurrent: () => Boolean,
    val exchange: Option[SparkPlan] = None) {
  def instead(exchange: SparkPlan): Answer = new Answer(buffers, outcome, asked, isHeld, isCurrent, Some(exchange))

  /** Whether to use it now, which is told. */
  def holds: Boolean = {
    val held = SkipstoneRule.guarded(false)(isHeld() && (exchange.isEmpty || isCurrent()))(e => outcome.error = Some(e))
    outcome.held = held
    if (!held && exchange.isDefined) asked.entry.location = new WeakReference(asked.scan.relation.location)
    Stats.tallied(asked.entry, outcome)
    held
  }

  override def toString: String = s"answers ${outcome.objects} of ${asked.kept.cardinality} objects from metadata"
}

/**
 * A partial aggregation of the objects that metadata does not know (`left`), and the buffers that metadata knows of the
 * others. Where these are no longer as they were listed, or files are not read as they were when this was planned, the
 * others are aggregated as well (`right`). Each object is read, or answered for, once: so the result is that of the
 * aggregation over all of them.
 *
 * In place of an exchange it gives one partition, and `right` is the aggregation of all objects, whose rows are exchanged. What was
 * read and answered first is kept as an exchange keeps it: a plan that runs again has that.
 *
 * Looked at after the reader of the first share is made: a setting that changed meanwhile shows by then.
 */
case class AnsweredAggregateExec(left: SparkPlan, right: SparkPlan, @transient answer: Answer) extends BinaryExecNode {
  private val isSingle = Option(answer).exists(_.exchange.isDefined)

  override def nodeName: String = "SkipstoneAggregate"
  override protected def stringArgs: Iterator[Any] = Option(answer).iterator
  override def output: Seq[Attribute] = left.output
  override def outputPartitioning: Partitioning = if (isSingle) SinglePartition else super.outputPartitioning

  override protected def doExecute(): RDD[InternalRow] = {
    val read = left.execute()
    val held = answer.holds
    answer.exchange match {
      case None => sparkContext.union(read, if (held) known else right.execute())
      case Some(_) if held => sparkContext.union(read, known).coalesce(1).map(new Copied).persist(StorageLevel.MEMORY_AND_DISK)
      case Some(exchange) => exchange.withNewChildren(Seq(right)).execute()
    }
  }

  private def known: RDD[InternalRow] =
    if (answer.buffers.isEmpty) sparkContext.emptyRDD[InternalRow] else sparkContext.parallelize(answer.buffers, 1)

  override protected def withNewChildrenInternal(newLeft: SparkPlan, newRight: SparkPlan): SparkPlan = copy(newLeft, newRight)
}

/** A row that outlives the iterator which gave it. A class with a name, as all that jobs run: see [[OwnClasses]]. */
private class Copied extends (InternalRow => InternalRow) with Serializable {
  override def apply(row: InternalRow): InternalRow = row.copy()
}
