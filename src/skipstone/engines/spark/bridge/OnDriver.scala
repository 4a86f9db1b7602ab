package org.apache.spark.sql.skipstone

import org.apache.spark.{Partition, TaskContext, TaskContextImpl}
import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{SparkPlan, SQLExecution}
import org.apache.spark.sql.execution.metric.SQLMetrics

/**
 * The rows of an RDD without a job, for what is so little that sending a task takes longer than running it.
 *
 * The context tells the scan when the rows are there. It is not the thread's: to readers and blocks a thread without one is the
 * driver's, which they allow for, and one with a context is a task that the executor knows.
 */
private[skipstone] object OnDriver extends Logging {
  /** What tasks count; the rest, scans count on the driver anyway. */
  private val Counted = Seq("numOutputRows", "scanTime", "aggTime")

  /** None if it fails: a task may be able to do what the driver is not. The RDD, that of `plan`, must need no shuffle. */
  def rows(rdd: RDD[InternalRow], plan: SparkPlan): Option[Seq[InternalRow]] = SkipstoneRule.guarded(Option.empty[Seq[InternalRow]]) {
    val made = rdd.partitions.toSeq.flatMap(rowsOf(rdd, _))
    val counted = plan.collect { case p => Counted.flatMap(p.metrics.get) }.flatten.filter(_.value > 0)
    SQLMetrics.postDriverMetricUpdates(rdd.sparkContext, rdd.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY), counted)
    Some(made)
  }(error => logWarning(s"Skipstone: a task does what could not be done on the driver: $error"))

  private def rowsOf(rdd: RDD[InternalRow], partition: Partition): Array[InternalRow] = {
    val context: TaskContextImpl = TaskContext.empty()
    try rdd.iterator(partition, context).map(_.copy()).toArray finally context.markTaskCompleted(None)
  }
}
