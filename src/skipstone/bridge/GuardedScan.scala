package org.apache.spark.sql.skipstone

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A scan of the objects that were kept when the query was planned, as long as files are read as they were read then.
 *
 * A plan may run later than it was made, and more than once, and the settings that readers look at are those of then. Some
 * are taken when the scan runs for the first time: that is when Spark makes the reader, which it keeps. Others are looked
 * up by the tasks of each run. So:
 *  - If at the first run the files would be read otherwise than planned, every run is a scan of all objects.
 *  - If at a later run they would be, that run is a scan of all objects, with a reader as the first run made it.
 *
 * Either way the rows are those that Spark would give without skipping.
 */
case class GuardedScanExec(child: SparkPlan) extends UnaryExecNode {
  @transient private lazy val scan = child.asInstanceOf[FileSourceScanLike]
  @transient private lazy val location = scan.relation.location.asInstanceOf[SkipstoneFileIndex]
  @transient private var first: Option[First] = None

  // What the first run found: the scan of all objects where the plan did not hold, else the settings that it began with.
  private sealed trait First
  private case class Whole(plan: SparkPlan) extends First
  private case class Begun(settings: Map[String, String]) extends First

  override def nodeName: String = "SkipstoneScan"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def supportsColumnar: Boolean = child.supportsColumnar
  override def supportsRowBased: Boolean = child.supportsRowBased
  override def vectorTypes: Option[Seq[String]] = child.vectorTypes

  override protected def doExecute(): RDD[InternalRow] = run(_.execute())
  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = run(_.executeColumnar())
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)

  private def run[T](execute: SparkPlan => T): T = synchronized(first) match {
    case Some(Whole(plan)) => execute(plan)
    case Some(Begun(settings)) => if (location.still.holds) execute(child) else execute(whole(pinned(settings)))
    case None =>
      val session = scan.relation.sparkSession.asInstanceOf[classic.SparkSession]
      val settings = session.sessionState.conf.getAllConfs
      val begun = if (location.still.holds) Some(execute(child)) else None
      // The reader is made by now; a setting that changed while it was made shows here.
      if (begun.isDefined && location.still.holds) {
        synchronized { first = Some(Begun(settings)) }
        begun.get
      } else {
        val plan = whole(session)
        synchronized { first = Some(Whole(plan)) }
        execute(plan)
      }
  }

  private def pinned(settings: Map[String, String]): classic.SparkSession = {
    val clone = scan.relation.sparkSession.asInstanceOf[classic.SparkSession].cloneSession()
    val conf = clone.sessionState.conf
    conf.getAllConfs.keys.filterNot(settings.contains).foreach(conf.unsetConf)
    settings.foreach { case (name, value) => if (!conf.getAllConfs.get(name).contains(value)) conf.setConfString(name, value) }
    clone
  }

  /** The scan of all objects. By reflection, since the class has other parameters in every release. */
  private def whole(session: classic.SparkSession): SparkPlan = {
    val all = scan.relation.copy(location = location.base)(session)
    child.makeCopy(child.productIterator.map {
      case _: HadoopFsRelation => all
      case other => other.asInstanceOf[AnyRef]
    }.toArray)
  }
}

/** Puts a guard above each scan whose objects were chosen by [[SkipstoneRule]]. */
private[skipstone] class GuardScans extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = SkipstoneRule.guarded(plan)(guard(plan))(e =>
      logWarning(s"Skipstone: a plan runs without its guard: $e"))
  }

  private def guard(plan: SparkPlan): SparkPlan = plan match {
    case guarded: GuardedScanExec => guarded
    case scan: FileSourceScanLike if chosen(scan.relation.location) => GuardedScanExec(scan)
    case other => other.mapChildren(guard)
  }

  private def chosen(location: FileIndex): Boolean = location.isInstanceOf[SkipstoneFileIndex]
}
