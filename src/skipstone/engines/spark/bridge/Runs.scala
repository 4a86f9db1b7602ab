package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.{ArrayDeque, Collections, IdentityHashMap}
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.{FileSourceScanLike, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** What Spark counted in one scan when its query ran; a counter that the scan does not have is -1. */
private[skipstone] class ScanRun(found: AnyRef, val filters: Set[Int], metric: String => Long) {
  private var index = found
  val milliseconds: Long = metric("scanTime")
  val rows: Long = metric("numOutputRows")
  val files: Long = metric("numFiles")

  def location: AnyRef = index

  /** An entry outlives its query: what it lists, and the session that it belongs to, must not be kept by it. */
  def forget(): Unit = index = null
}

/** Told by Spark when a query has run: completes the entries of its scans. */
private[skipstone] class Runs extends SparkListener {
  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if end.qe != null && end.executionFailure.isEmpty =>
      SkipstoneRule.guarded(()) {
        Stats.ran(end.qe.tracker, end.duration)(Runs.scans(end.qe.executedPlan))
      }(_ => ())
      SkipstoneRule.guarded(())(Audits.ran(end.qe.tracker))(_ => ())
    case mark: Runs.Mark => mark.seen.countDown()
    case _ =>
  }
}

private[skipstone] object Runs {
  @volatile private var watched = new WeakReference[SparkContext](null)
  private val MostMilliseconds = 1000L

  private class Mark extends SparkListenerEvent {
    val seen = new CountDownLatch(1)
    override protected[spark] def logEvent: Boolean = false
  }

  def watch(context: SparkContext): Unit = if (watched.get ne context) synchronized {
    if (watched.get ne context) {
      context.addSparkListener(new Runs)
      watched = new WeakReference(context)
    }
  }

  /** Wait until all that has run by now is counted: Spark tells it in order, on a thread of its own. */
  def settle(): Unit = {
    val context = watched.get
    if (context != null && !context.isStopped) {
      val mark = new Mark
      context.listenerBus.post(mark)
      mark.seen.await(MostMilliseconds, TimeUnit.MILLISECONDS)
    }
  }

  /** The file scans of a plan that ran, those of its subqueries included, each once. */
  private def scans(root: SparkPlan): Seq[ScanRun] = {
    val found = ArrayBuffer.empty[ScanRun]
    val visited = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean])
    val waiting = new ArrayDeque[SparkPlan]()
    waiting.add(root)
    while (!waiting.isEmpty) {
      val plan = waiting.poll()
      if (visited.add(plan)) {
        plan match {
          case adaptive: AdaptiveSparkPlanExec => waiting.add(adaptive.executedPlan)
          case stage: QueryStageExec => waiting.add(stage.plan)
          case scan: FileSourceScanLike =>
            val filters = (scan.partitionFilters ++ scan.dataFilters).map(_.semanticHash()).toSet
            found += new ScanRun(scan.relation.location, filters, scan.metrics.get(_).map(_.value).getOrElse(-1L))
          case scan: BatchScanExec if Iceberg.isRead(scan.scan) =>
            found += new ScanRun(scan.scan, Set.empty, scan.metrics.get(_).map(_.value).getOrElse(-1L))
          case _ =>
        }
        plan.children.foreach(waiting.add)
        plan.subqueries.foreach(waiting.add)
      }
    }
    found.toSeq
  }
}
