package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, SinglePartition}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.storage.StorageLevel

/**
 * What metadata says of some objects: the buffers of an aggregation over their rows, for as long as `holds` says so. Where it
 * stands in place of an `exchange`, too, Spark must list what it listed then (`isCurrent`).
 */
private[skipstone] class Answer(
    val buffers: Seq[InternalRow], val outcome: TallyOutcome, asked: StageScan, isHeld: () => Boolean, isCurrent: () => Boolean,
    val exchange: Option[SparkPlan] = None) {
  def instead(exchange: SparkPlan): Answer = new Answer(buffers, outcome, asked, isHeld, isCurrent, Some(exchange))

  /** Whether nothing is left to read, as long as this holds and Spark lists what it listed then. */
  val isWhole: Boolean = outcome.objects == asked.kept.cardinality

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
 * In place of an exchange it gives one partition, and `right` is the aggregation of all objects, whose rows are exchanged. What is
 * left is read on the driver then, and if that fails by a task. What was read and answered first is kept as an exchange
 * keeps it: a plan that runs again has that.
 *
 * Looked at after the reader of the first share is made: a setting that changed meanwhile shows by then.
 */
case class AnsweredAggregateExec(left: SparkPlan, right: SparkPlan, @transient answer: Answer) extends BinaryExecNode {
  private[skipstone] val isSingle = Option(answer).exists(_.exchange.isDefined)
  /** Whether its rows are there, without a task. */
  @transient @volatile private[skipstone] var isDone = false

  override def nodeName: String = "SkipstoneAggregate"
  override protected def stringArgs: Iterator[Any] = Option(answer).iterator
  override def output: Seq[Attribute] = left.output
  override def outputPartitioning: Partitioning = if (isSingle) SinglePartition else super.outputPartitioning

  override protected def doExecute(): RDD[InternalRow] = answer.exchange match {
    case None =>
      val read = left.execute()
      sparkContext.union(read, if (answer.holds) known else right.execute())
    case Some(exchange) =>
      val read = if (answer.isWhole) None else Some(left.execute())
      if (answer.holds) single(read) else exchange.withNewChildren(Seq(right)).execute()
  }

  private def single(read: Option[RDD[InternalRow]]): RDD[InternalRow] = {
    val rows = read.fold(Option(Seq.empty[InternalRow]))(OnDriver.rows(_, left))
    isDone = rows.isDefined
    rows.map(r => sparkContext.parallelize(r ++ answer.buffers, 1)).getOrElse(
      sparkContext.union(read.get, known).coalesce(1).map(new Copied).persist(StorageLevel.MEMORY_AND_DISK))
  }

  private def known: RDD[InternalRow] =
    if (answer.buffers.isEmpty) sparkContext.emptyRDD[InternalRow] else sparkContext.parallelize(answer.buffers, 1)

  override protected def withNewChildrenInternal(newLeft: SparkPlan, newRight: SparkPlan): SparkPlan = copy(newLeft, newRight)
}

/** The rows of a whole query made of such an aggregation: no job is run for them where the driver has all that they are made of. */
case class AnsweredResultExec(child: SparkPlan) extends UnaryExecNode {
  override def nodeName: String = "SkipstoneResult"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  @transient private lazy val rows: Option[Array[InternalRow]] = {
    val made = child.execute()
    if (child.exists { case a: AnsweredAggregateExec => a.isDone; case _ => false }) OnDriver.rows(made, child).map(_.toArray) else None
  }

  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override def executeCollect(): Array[InternalRow] = rows.getOrElse(super.executeCollect())
  override def executeTake(n: Int): Array[InternalRow] = rows.fold(super.executeTake(n))(_.take(n))
  override def executeTail(n: Int): Array[InternalRow] = rows.fold(super.executeTail(n))(_.takeRight(n))
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(newChild)
}

private[skipstone] object AnsweredResultExec {
  /** A plan whose rows come, one by one, from an aggregation that needs no exchange; any other plan as it is. */
  def over(plan: SparkPlan): SparkPlan = if (isSingle(plan)) AnsweredResultExec(plan) else plan

  /** What is random, or counts its own calls, is for tasks: its rows may be others when it runs again. */
  private def isSingle(plan: SparkPlan): Boolean = plan match {
    case a: AnsweredAggregateExec => a.isSingle
    case _: HashAggregateExec | _: ProjectExec | _: FilterExec => plan.expressions.forall(_.deterministic) && isSingle(plan.children.head)
    case _ => false
  }
}

/** A row that outlives the iterator which gave it. A class with a name, as all that jobs run: see [[OwnClasses]]. */
private class Copied extends (InternalRow => InternalRow) with Serializable {
  override def apply(row: InternalRow): InternalRow = row.copy()
}
