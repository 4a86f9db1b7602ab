package org.apache.spark.sql.skipstone

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

/**
 * Iceberg tables of any catalog. A leaf is known by the names of its classes; what is done with it is in [[Iceberg]] and
 * [[IcebergTables]].
 */
private[skipstone] object IcebergFormat extends TableFormat {
  @volatile private var loader: ClassLoader = _

  override def name: String = "iceberg"

  override val tables: Set[String] = Set(Iceberg.TableName)

  override def isTable(leaf: LogicalPlan): Boolean = leaf match {
    case rel: DataSourceV2Relation => isTable(rel)
    case scan: DataSourceV2ScanRelation => isTable(scan.relation) && Iceberg.isScan(scan.scan)
    case _ => false
  }

  private def isTable(rel: DataSourceV2Relation): Boolean = rel.table.getClass.getName == Iceberg.TableName && {
    loader = rel.table.getClass.getClassLoader
    true
  }

  override def roots(leaf: LogicalPlan): Seq[Path] = Seq(leaf).collect {
    case rel: DataSourceV2Relation => rel.table
    case scan: DataSourceV2ScanRelation => scan.relation.table
  }.flatMap(table => Option(table.properties.get("location")).map(new Path(_)))

  override def unsupported(): Option[String] = Iceberg.by(loader).left.toOption

  /**
   * Spark makes scans of relations right after this rule's batch, by these rules. To make them here takes nothing away: the
   * rules find nothing to do when they come again. A plan that writes is left as it is.
   */
  override def prepared(plan: LogicalPlan, session: classic.SparkSession): LogicalPlan =
    if (TableRule.writes(plan)) plan
    else session.sessionState.optimizer.earlyScanPushDownRules.foldLeft(plan)((made, rule) => rule(made))

  override def scan(leaf: LogicalPlan, session: classic.SparkSession): Option[Either[String, TableScan]] = leaf match {
    case rel: DataSourceV2Relation => IcebergTables.unread(rel, session)
    case made: DataSourceV2ScanRelation => IcebergTables.scan(made, session)
    case _ => None
  }

  override def source(leaf: LogicalPlan, session: classic.SparkSession): TableSource = leaf match {
    case rel: DataSourceV2Relation => IcebergTables.source(rel, session)
    case other => throw new IllegalArgumentException(s"${other.nodeName} is not a table of Iceberg's")
  }
}
