package org.apache.spark.sql.skipstone

import java.io.ObjectOutputStream

import scala.util.Try

import org.apache.spark.{NarrowDependency, Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A scan of the objects that were kept when the query was planned, as long as files are read as they were read then.
 *
 * A plan may run later than it was made, and more than once, and the settings that readers look at are those of then:
 *  - Most are taken at the first run, when Spark makes the reader, which it keeps. If they are not as planned, the scan is
 *    one of all objects, for good.
 *  - Some are looked up by the tasks of each run (by readers of rows; those of columns look up none): the run's own, or, in
 *    a run of an RDD outside of a query, the defaults. [[GuardedRDD]] sees to that.
 *
 * Either way the rows are those that Spark would give without skipping.
 */
case class GuardedScanExec(child: SparkPlan) extends UnaryExecNode {
  @transient private lazy val guard = new Guard(child.asInstanceOf[SparkPlan with FileSourceScanLike])

  override def nodeName: String = "SkipstoneScan"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def supportsColumnar: Boolean = child.supportsColumnar
  override def supportsRowBased: Boolean = child.supportsRowBased
  override def vectorTypes: Option[Seq[String]] = child.vectorTypes

  override protected def doExecute(): RDD[InternalRow] = run(_.execute())(guard.over)
  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = run(_.executeColumnar())(Some(_))
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)

  private def run[T](execute: SparkPlan => T)(guarded: T => Option[T]): T = {
    val kept = if (guard.still.holds) guarded(execute(child)) else None
    // The reader is made by now; a setting that changed while it was made shows here.
    kept.filter(_ => guard.still.holds).getOrElse(execute(guard.whole))
  }
}

/** What is known on the driver of a guarded scan: whether its plan holds, and the objects that were not kept. */
private[skipstone] class Guard(scan: SparkPlan with FileSourceScanLike) {
  private val location = scan.relation.location.asInstanceOf[SkipstoneFileIndex]
  val still: Still = location.still

  /** The scan of all objects. By reflection, since the class has other parameters in every release. */
  lazy val whole: SparkPlan = {
    val all = scan.relation.copy(location = location.base)(scan.relation.sparkSession)
    scan.makeCopy(scan.productIterator.map {
      case _: HadoopFsRelation => all
      case other => other.asInstanceOf[AnyRef]
    }.toArray)
  }

  def over(kept: RDD[InternalRow]): Option[RDD[InternalRow]] =
    if (Guard.files(kept).isEmpty) None else {
      val lookedUp = still.lookedUp
      if (lookedUp.nonEmpty) others // while there is a query to wait for
      Some(new GuardedRDD(this, kept, lookedUp))
    }

  /** What a task that is sent now takes along of the other objects, and whether it is known to need them. */
  def along(task: Int, lookedUp: Map[String, String]): (Boolean, Array[FilePartition]) = {
    val changed = !still.holdsByIdentity && !still.holds
    (changed, if (changed || lookedUp.nonEmpty) others.getOrElse(task, Array.empty) else Array.empty)
  }

  // By the task that reads them: of a bucketed table the one of their bucket, otherwise any.
  private lazy val others: Map[Int, Array[FilePartition]] = {
    val kept = Guard.files(scan.execute()).toSeq.flatMap(_.filePartitions)
    val paths = kept.iterator.flatMap(_.files).map(_.filePath.toString).toSet
    Guard.files(whole.execute()).toSeq.flatMap(_.filePartitions)
      .map(p => p.copy(files = p.files.filterNot(f => paths(f.filePath.toString)))).filter(_.files.nonEmpty)
      .groupBy(p => if (scan.bucketedScan) p.index else p.index % math.max(1, kept.size))
      .map { case (task, found) => task -> found.toArray }
  }
}

private[skipstone] object Guard {
  /** The scan of files that an RDD is one partition by partition, or none. */
  def files(rdd: RDD[_]): Option[FileScanRDD] = rdd match {
    case f: FileScanRDD => Some(f)
    case _ if rdd.getClass.getSimpleName == "MapPartitionsRDD" => files(rdd.dependencies.head.rdd)
    case _ => None
  }
}

/**
 * The rows of kept objects, and of the others in a task that does not read as planned.
 *
 * Whether it does is looked at twice. When a task is sent: are the settings of the session still those of planning? It
 * takes the other objects along if not, and also if settings that tasks look up are not at their defaults, for not every
 * task is sent with its session's settings. When it runs: are the settings that it sees those of planning?
 */
private[skipstone] class GuardedRDD(@transient guard: Guard, kept: RDD[InternalRow], lookedUp: Map[String, String])
    extends RDD[InternalRow](kept.sparkContext, Seq(new KeptDependency(kept))) {

  // One at least, or nothing is sent.
  override protected def getPartitions: Array[Partition] = {
    val found = kept.partitions.map(p => new GuardedPartition(p.index, Some(p), guard, lookedUp))
    (if (found.isEmpty) Array(new GuardedPartition(0, None, guard, lookedUp)) else found).toArray[Partition]
  }

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val partition = split.asInstanceOf[GuardedPartition]
    val parent = firstParent[InternalRow]
    val rows = partition.kept.iterator.flatMap(parent.iterator(_, context))
    // Behind `++` it is asked when the others' turn comes: an RDD outside of a query has its session's settings while its
    // iterators are made, and the defaults when they read.
    if (partition.others.isEmpty) rows
    else rows ++ (if (partition.changed || !asPlanned) partition.others.iterator.flatMap(parent.compute(_, context)) else Nil)
  }

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    split.asInstanceOf[GuardedPartition].kept.toSeq.flatMap(firstParent[InternalRow].preferredLocations)

  private def asPlanned: Boolean = {
    val conf = SQLConf.get
    lookedUp.forall { case (name, value) => Try(conf.getConfString(name)).toOption.contains(value) }
  }
}

private class KeptDependency(kept: RDD[InternalRow]) extends NarrowDependency[InternalRow](kept) {
  override def getParents(partition: Int): Seq[Int] = if (partition < rdd.partitions.length) Seq(partition) else Nil
}

/** Looks at what it takes along each time that it is sent, which is once for each run. */
private class GuardedPartition(
    override val index: Int,
    val kept: Option[Partition],
    @transient guard: Guard,
    @transient lookedUp: Map[String, String]) extends Partition {
  var changed: Boolean = false
  var others: Array[FilePartition] = Array.empty

  private def writeObject(out: ObjectOutputStream): Unit = synchronized {
    val (known, along) = guard.along(index, lookedUp)
    changed = known
    others = along
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
    case scan: FileSourceScanLike if scan.relation.location.isInstanceOf[SkipstoneFileIndex] => GuardedScanExec(scan)
    case other => other.mapChildren(guard)
  }
}
