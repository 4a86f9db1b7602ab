package org.apache.spark.sql.skipstone

import java.io.ObjectOutputStream

import scala.reflect.ClassTag

import org.apache.spark.{NarrowDependency, Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, SinglePartition}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A scan of the objects that were kept when the query was planned, as long as files are read as they were read then.
 *
 * A plan may run later than it was made, and more than once, and the settings that readers look at are those of then:
 *  - Most are taken at the first run, when Spark makes the reader, which it keeps. If they are not as planned, the scan is
 *    one of all objects, for good.
 *  - Some are looked up by the tasks of each run: the run's own, or, in a run of an RDD outside of a query, the defaults.
 *    Readers of rows do that, and expressions; readers of columns do not. [[GuardedRDD]] sees to it.
 *
 * Either way the rows are those that Spark would give without skipping.
 */
case class GuardedScanExec(child: SparkPlan) extends UnaryExecNode {
  @transient private lazy val guard = Guard.of(child)
  private def location: Option[Skipping] = Guard.skipping(child)

  override def nodeName: String = "SkipstoneScan"
  override protected def stringArgs: Iterator[Any] = location.iterator.map(ScanMetrics.planned)
  override lazy val metrics: Map[String, SQLMetric] = ScanMetrics.of(sparkContext)
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def supportsColumnar: Boolean = child.supportsColumnar
  override def supportsRowBased: Boolean = child.supportsRowBased
  override def vectorTypes: Option[Seq[String]] = child.vectorTypes

  override protected def doExecute(): RDD[InternalRow] = run(_.execute())
  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = run(_.executeColumnar())
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)

  private def run[T: ClassTag](execute: SparkPlan => RDD[T]): RDD[T] = {
    val kept = if (guard.still.holds) guard.over(execute(child), execute) else None
    // The reader is made by now; a setting that changed while it was made shows here.
    val held = kept.filter(_ => guard.still.holds)
    location.foreach(ScanMetrics.post(sparkContext, metrics, _, held.isDefined))
    val rows = held.getOrElse(execute(guard.whole))
    if (outputPartitioning == SinglePartition && rows.getNumPartitions > 1) rows.coalesce(1) else rows
  }
}

/** What is known on the driver of a guarded scan: whether its plan holds, and the objects that were not kept. */
private[skipstone] abstract class Guard {
  def still: Still

  /** The scan of all objects. */
  def whole: SparkPlan

  /** Guard the tasks of a scan, or leave it as it is if they look nothing up; none when they cannot be guarded. */
  def over[T: ClassTag](kept: RDD[T], execute: SparkPlan => RDD[T]): Option[RDD[T]]
}

/** The same of a scan whose objects a file index lists. */
private[skipstone] class FileGuard(scan: SparkPlan with FileSourceScanLike) extends Guard {
  private val location = scan.relation.location.asInstanceOf[SkippingIndex]
  override val still: Still = location.still

  // By reflection, since the class has other parameters in every release.
  override lazy val whole: SparkPlan = {
    val all = scan.relation.copy(location = location.everything)(scan.relation.sparkSession)
    scan.makeCopy(scan.productIterator.map {
      case _: HadoopFsRelation => all
      case other => other.asInstanceOf[AnyRef]
    }.toArray)
  }

  override def over[T: ClassTag](kept: RDD[T], execute: SparkPlan => RDD[T]): Option[RDD[T]] =
    if (scan.supportsColumnar && !still.isLookedUp && !still.verifies) Some(kept)
    else if (scan.bucketedScan || Guard.files(kept).isEmpty) None // a task more would be one of no bucket
    else {
      val guarded = new GuardedRDD(still, kept, () => others(kept, execute(whole)), still.lookedUp)
      if (still.lookedUp.settings.nonEmpty) guarded.others // while there is a query to wait for
      Some(guarded)
    }

  private def others(kept: RDD[_], all: RDD[_]): Array[Partition] = {
    val paths = Guard.files(kept).toSeq.flatMap(_.filePartitions).flatMap(_.files).map(_.filePath.toString).toSet
    Guard.files(all).toArray.flatMap(_.filePartitions)
      .map(p => p.copy(files = p.files.filterNot(f => paths(f.filePath.toString)))).filter(_.files.nonEmpty).toArray[Partition]
  }
}

private[skipstone] object Guard {
  /** What a plan's node reads its objects by, if that leaves out some. */
  def skipping(plan: SparkPlan): Option[Skipping] = plan match {
    case scan: FileSourceScanLike => Option(scan.relation.location).collect { case l: SkippingIndex => l }
    case scan: BatchScanExec => Option(scan.scan).collect { case s: IcebergScan => s }
    case _ => None
  }

  def of(plan: SparkPlan): Guard = plan match {
    case scan: BatchScanExec => new IcebergGuard(scan, scan.scan.asInstanceOf[IcebergScan])
    case scan => new FileGuard(scan.asInstanceOf[SparkPlan with FileSourceScanLike])
  }

  /** The scan of files that an RDD is, partition by partition, or none. */
  def files(rdd: RDD[_]): Option[FileScanRDD] = rdd match {
    case f: FileScanRDD => Some(f)
    case _ if rdd.getClass.getSimpleName == "MapPartitionsRDD" => files(rdd.dependencies.head.rdd)
    case _ => None
  }
}

/**
 * The rows of kept objects, and one partition more: the rows of the others, if the task does not read as planned.
 *
 * Whether it does is looked at twice. When the task is sent: are the settings of the session still those of planning? It
 * takes the other objects along if not. When it runs: are the settings that it sees those of planning? They need not be
 * its session's: a run of an RDD outside of a query has the defaults, and one inside of another session's query has that
 * session's. It asks for the other objects if not.
 *
 * Where the plan rests on how objects are `grouped` into partitions there is none more: `found` are then the partitions of all
 * objects, and each partition is that of the kept objects or that of all of its group.
 */
private[skipstone] class GuardedRDD[T: ClassTag](
    @transient still: Still,
    kept: RDD[T],
    @transient found: () => Array[Partition],
    lookedUp: LookedUp,
    grouped: Boolean = false) extends RDD[T](kept.sparkContext, Seq(new KeptDependency(kept))) {
  Others.serve(kept.sparkContext, this)

  @transient lazy val others: Array[Partition] = found()

  /** Whether a task that is sent now is known to need the other objects, and these. */
  def along(): Option[Array[Partition]] = if (still.holds) None else Some(others)

  override protected def getPartitions: Array[Partition] =
    if (grouped) kept.partitions.map(p => new OtherObjects(p.index, this, Some(p)))
    else kept.partitions :+ new OtherObjects(kept.partitions.length, this)

  override def compute(split: Partition, context: TaskContext): Iterator[T] = split match {
    // Asked when it reads: an RDD outside of a query has its session's settings while iterators are made, not later.
    case o: OtherObjects => Iterator.single(o).flatMap { _ =>
      val files = o.files.getOrElse(if (lookedUp.isAsPlanned) Array.empty[Partition] else Others.of(id))
      val read = o.kept.fold(files.toSeq)(kept => Seq(files.lift(o.index).getOrElse(kept)))
      read.iterator.flatMap(firstParent[T].compute(_, context))
    }
    case _ => firstParent[T].iterator(split, context)
  }

  override protected def getPreferredLocations(split: Partition): Seq[String] = split match {
    case o: OtherObjects => o.kept.map(firstParent[T].preferredLocations).getOrElse(Nil)
    case _ => firstParent[T].preferredLocations(split)
  }
}

private class KeptDependency[T](kept: RDD[T]) extends NarrowDependency[T](kept) {
  override def getParents(partition: Int): Seq[Int] = if (partition < rdd.partitions.length) Seq(partition) else Nil
}

/** Looks at what it takes along each time that it is sent, which is once for each run. */
private class OtherObjects(override val index: Int, @transient rows: GuardedRDD[_], val kept: Option[Partition] = None) extends Partition {
  var files: Option[Array[Partition]] = None

  private def writeObject(out: ObjectOutputStream): Unit = synchronized {
    files = rows.along()
    out.defaultWriteObject()
  }
}

/** Puts a guard above each scan whose objects were chosen by [[SkipstoneRule]]. */
private[skipstone] class GuardScans extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = guard(plan)
  }

  private def guard(plan: SparkPlan): SparkPlan = plan match {
    case guarded: GuardedScanExec => guarded
    case scan if scan.children.isEmpty && Guard.skipping(scan).isDefined => GuardedScanExec(scan)
    case other => other.mapChildren(guard)
  }
}
