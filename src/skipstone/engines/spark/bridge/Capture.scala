package org.apache.spark.sql.skipstone

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.execution.datasources.LogicalRelation

/** Takes the condition of a scan at the point where the rule runs, and plans nothing. */
private[skipstone] object Capture {
  private val found = new ThreadLocal[Option[Option[Expression]]] { override def initialValue() = None }

  def active: Boolean = found.get.isDefined

  def of(optimize: => LogicalPlan): Option[Expression] = {
    found.set(Some(None))
    try {
      optimize
      found.get.flatten
    } finally found.remove()
  }

  def from(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case Filter(condition, leaf) if leaf.isInstanceOf[LogicalRelation] || TableFormats.isTable(leaf) => found.set(Some(Some(condition)))
      case _ =>
    }
    plan
  }
}
