package org.apache.spark.sql.skipstone

import scala.reflect.ClassTag

import org.apache.spark.Partition
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.plans.physical.{SinglePartition, UnknownPartitioning}
import org.apache.spark.sql.connector.read.{HasPartitionKey, Scan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceRDD, DataSourceRDDPartition}

/** The same of a scan of Iceberg's. */
private[skipstone] class IcebergGuard(scan: BatchScanExec, planned: IcebergScan) extends Guard {
  override val still: Still = planned.still

  override lazy val whole: SparkPlan = of(planned.whole)

  // By reflection, since the class has other parameters in some releases.
  private def of(other: Scan): SparkPlan = scan.makeCopy(scan.productIterator.map {
    case _: IcebergScan => other
    case parameter => parameter.asInstanceOf[AnyRef]
  }.toArray)

  /**
   * Where a plan rests on the groups, a task reads all of its group or what is kept of it, so both scans must have the same
   * groups in the same order. How Spark groups depends on settings, which later runs may not have, nor threads that send
   * tasks; so the whole scan is grouped here, as the kept files are, and a scan whose groups are others reads everything.
   */
  override def over[T: ClassTag](kept: RDD[T], execute: SparkPlan => RDD[T]): Option[RDD[T]] = {
    val grouped = scan.outputPartitioning match { // by keys, the class of which has another name in every other release
      case _: UnknownPartitioning | SinglePartition => false
      case _ => true
    }
    val groups = if (grouped) IcebergGuard.partitions(execute(whole)) else None
    if (grouped && !IcebergGuard.sameGroups(IcebergGuard.partitions(kept), groups)) None
    else if (scan.supportsColumnar && !still.isLookedUp && !still.verifies) Some(kept)
    else if (IcebergGuard.partitions(kept).isEmpty) None
    else {
      def found(): Array[Partition] =
        groups.getOrElse(IcebergGuard.partitions(execute(of(planned.others))).getOrElse(Array.empty))
      val guarded = new GuardedRDD[T](still, kept, () => found(), still.lookedUp, grouped)
      if (still.lookedUp.settings.nonEmpty) guarded.others // while there is a query to wait for
      Some(guarded)
    }
  }
}

private object IcebergGuard {
  /** The partitions of a scan that an RDD is, partition by partition, or none. */
  private def partitions(rdd: RDD[_]): Option[Array[Partition]] = rdd match {
    case d: DataSourceRDD => Some(d.partitions)
    case _ if rdd.getClass.getSimpleName == "MapPartitionsRDD" => partitions(rdd.dependencies.head.rdd)
    case _ => None
  }

  /** Whether the partitions of two scans are of the same groups, one by one. */
  private def sameGroups(some: Option[Array[Partition]], all: Option[Array[Partition]]): Boolean =
    some.isDefined && some.map(_.toSeq.map(group)) == all.map(_.toSeq.map(group))

  // What a partition reads is a sequence up to Spark 4.1, `inputPartitions`, and since then an option, `inputPartition`.
  private val inputs = classOf[DataSourceRDDPartition].getMethods.filter(_.getName.startsWith("inputPartition"))

  private def group(partition: Partition): Option[AnyRef] = (partition, inputs) match {
    case (p: DataSourceRDDPartition, Array(of)) =>
      of.invoke(p).asInstanceOf[IterableOnce[_]].iterator.collectFirst { case k: HasPartitionKey => k.partitionKey }
    case _ => Some(new AnyRef) // which equals none
  }
}
