package org.apache.spark.sql.skipstone

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * What Spark's own places tell of a scan that skips: its line in EXPLAIN, and the metrics of its node in the SQL tab, the
 * status store and the event log. EXPLAIN tells what was planned; the metrics tell what was done when the scan ran.
 */
private[skipstone] object ScanMetrics {
  private val Total = "objectsTotal"
  private val Skipped = "objectsSkipped"
  private val BytesSkipped = "bytesSkipped"
  private val Planning = "planningTime"

  // By hand: the methods of SQLMetrics that make them have other parameters in some releases.
  private def metric(context: SparkContext, kind: String, name: String): SQLMetric = {
    val made = new SQLMetric(kind, 0L)
    made.register(context, name = Some(name), countFailedValues = false)
    made
  }

  def of(context: SparkContext): Map[String, SQLMetric] = Map(
    Total -> metric(context, "sum", "objects in total"),
    Skipped -> metric(context, "sum", "objects skipped"),
    BytesSkipped -> metric(context, "size", "size of objects skipped"),
    Planning -> metric(context, "nsTiming", "planning time"))

  /** What EXPLAIN says in the scan's line. Not by which clause: plans go to the event log, and clauses name the options of
    * indexes, which may be protected. */
  def planned(location: Skipping): String =
    if (location.standsAside) "all objects, after a refresh" else s"reads ${location.planned.counts}"

  /** Tell what a run does: it reads the kept objects, or, where files are not read as planned, all of them. */
  def post(context: SparkContext, metrics: Map[String, SQLMetric], location: Skipping, skips: Boolean): Unit = {
    val planned = location.planned
    val skipped = skips && !location.standsAside
    metrics(Total).set(planned.total)
    metrics(Skipped).set(if (skipped) planned.total - planned.kept else 0L)
    metrics(BytesSkipped).set(if (skipped) planned.bytesSkipped else 0L)
    metrics(Planning).set(planned.nanoseconds)
    if (!skips) Monitoring.current().foreach(_.ranWithout())
    val execution = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    if (execution != null) SQLMetrics.postDriverMetricUpdates(context, execution, metrics.values.toSeq)
  }
}
