package org.apache.spark.sql.skipstone

import scala.reflect.ClassTag

import org.apache.spark.Partition
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.plans.physical.{SinglePartition, UnknownPartitioning}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceRDD}

/** The same of a scan of Iceberg's. */
private[skipstone] class IcebergGuard(scan: BatchScanExec, planned: IcebergScan) extends Guard {
  override val still: Still = planned.still

  override lazy val whole: SparkPlan = of(planned.whole)

  // By reflection, since the class has other parameters in some releases.
  private def of(other: Scan): SparkPlan = scan.makeCopy(scan.productIterator.map {
    case _: IcebergScan => other
    case parameter => parameter.asInstanceOf[AnyRef]
  }.toArray)

  override def over[T: ClassTag](kept: RDD[T], execute: SparkPlan => RDD[T]): Option[RDD[T]] = {
    val grouped = scan.outputPartitioning match { // by keys, the class of which has another name in every other release
      case _: UnknownPartitioning | SinglePartition => false
      case _ => true
    }
    if (scan.supportsColumnar && !still.isLookedUp && !still.verifies) Some(kept)
    else if (IcebergGuard.partitions(kept).isEmpty) None
    else {
      // Where a plan rests on the groups, a task reads all of its group or what is kept of it.
      def found(): Array[Partition] =
        if (grouped) all(kept, execute(whole)) else IcebergGuard.partitions(execute(of(planned.others))).getOrElse(Array.empty)
      val guarded = new GuardedRDD[T](still, kept, () => found(), still.lookedUp, grouped)
      if (still.lookedUp.settings.nonEmpty) guarded.others // while there is a query to wait for
      Some(guarded)
    }
  }

  private def all(kept: RDD[_], rows: RDD[_]): Array[Partition] = {
    val found = IcebergGuard.partitions(rows).getOrElse(Array.empty)
    if (found.length != kept.getNumPartitions) throw new IllegalStateException(
      s"the table's files are in ${found.length} groups, those that were kept in ${kept.getNumPartitions}")
    found
  }
}

private object IcebergGuard {
  /** The partitions of a scan that an RDD is, partition by partition, or none. */
  private def partitions(rdd: RDD[_]): Option[Array[Partition]] = rdd match {
    case d: DataSourceRDD => Some(d.partitions)
    case _ if rdd.getClass.getSimpleName == "MapPartitionsRDD" => partitions(rdd.dependencies.head.rdd)
    case _ => None
  }
}
