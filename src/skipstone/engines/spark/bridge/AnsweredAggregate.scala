package org.apache.spark.sql.skipstone

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}

/** What metadata says of some objects: the buffers of an aggregation over their rows, for as long as `holds` says so. */
private[skipstone] class Answer(
    val buffers: Seq[InternalRow], val outcome: TallyOutcome, val entry: Entry, val holds: () => Boolean, total: Int) {
  override def toString: String = s"answers ${outcome.objects} of $total objects from metadata"
}

/**
 * A partial aggregation of the objects that metadata does not know (`left`), and the buffers that metadata knows of the
 * others. Where these are no longer as they were listed, or files are not read as they were when this was planned, the
 * others are aggregated as well (`right`). Each object is read, or answered for, once: so the result is that of the
 * aggregation over all of them.
 *
 * Looked at after the reader of the first share is made: a setting that changed meanwhile shows by then.
 */
case class AnsweredAggregateExec(left: SparkPlan, right: SparkPlan, @transient answer: Answer) extends BinaryExecNode {
  override def nodeName: String = "SkipstoneAggregate"
  override protected def stringArgs: Iterator[Any] = Option(answer).iterator
  override def output: Seq[Attribute] = left.output

  override protected def doExecute(): RDD[InternalRow] = {
    val read = left.execute()
    val held = SkipstoneRule.guarded(false)(answer.holds())(e => answer.outcome.error = Some(e))
    answer.outcome.held = held
    Stats.tallied(answer.entry, answer.outcome)
    sparkContext.union(read, if (held) known else right.execute())
  }

  private def known: RDD[InternalRow] =
    if (answer.buffers.isEmpty) sparkContext.emptyRDD[InternalRow] else sparkContext.parallelize(answer.buffers, 1)

  override protected def withNewChildrenInternal(newLeft: SparkPlan, newRight: SparkPlan): SparkPlan = copy(newLeft, newRight)
}
