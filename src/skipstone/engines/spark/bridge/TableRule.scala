package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Makes the scans of tables read only the objects that their filters can need, of those that the format's own pruning left.
 *
 * A format prepares the scans of a plan together with those of its subqueries, so this visits them from the root, too.
 * Nothing is left out of a plan with a write in it, or while a transaction is under way. Without `deciding`, scans are only
 * shown to whoever watches.
 */
private[skipstone] class TableRule(session: classic.SparkSession, deciding: Boolean = true) extends Logging {
  import SkipstoneRule.guarded

  private lazy val planner = Companion.planner(session)

  def apply(plan: LogicalPlan): LogicalPlan = {
    val formats = TableRule.leaves(plan).flatMap(TableFormats.of).distinct
    if (formats.isEmpty || TableRule.isSubquery(plan)) plan else {
      val prepared = formats.filter(TableFormats.unsupported(_).isEmpty).foldLeft(plan)((p, f) => f.prepared(p, session))
      val writing = TableRule.write(plan).orElse(
        formats.iterator.filter(TableFormats.unsupported(_).isEmpty).flatMap(_.writing()).nextOption())
      visit(prepared, Nil, writing)
    }
  }

  /** `known`: what holds of all rows that are read of a plan. */
  private def visit(plan: LogicalPlan, known: Seq[Expression], writing: Option[String]): LogicalPlan = {
    val below = plan match {
      case leaf if TableFormats.isTable(leaf) => return decided(leaf, known, writing)
      case f: Filter => f.mapChildren(visit(_, known ++ ExpressionJson.conjuncts(f.condition), writing))
      case p: Project =>
        val made = p.projectList.collect { case a: Alias => a.toAttribute -> a.child }
        p.mapChildren(visit(_, TableRule.substituted(known, made), writing))
      // It adds the results of Python functions to rows, and leaves none out.
      case p: BaseEvalPython => p.mapChildren(visit(_, TableRule.substituted(known, p.resultAttrs.zip(p.udfs)), writing))
      case other => other.mapChildren(visit(_, Nil, writing))
    }
    if (!below.containsPattern(PLAN_EXPRESSION)) below else below.transformExpressionsWithPruning(_.containsPattern(PLAN_EXPRESSION)) {
      case s: SubqueryExpression =>
        val inside = visit(s.plan, Nil, writing)
        if (inside eq s.plan) s else s.withNewPlan(inside)
    }
  }

  private def decided(leaf: LogicalPlan, known: Seq[Expression], writing: Option[String]): LogicalPlan = {
    val format = TableFormats.of(leaf).get
    val said = TableFormats.unsupported(format).map(Left(_)).orElse(
      guarded(Option.empty[Either[String, TableScan]])(format.scan(leaf, session))(e => warnOnce(s"Skipstone left a scan alone: $e")))
    said match {
      case None => leaf
      case Some(Left(reason)) =>
        leftAlone(format, leaf, reason)
        leaf
      case Some(Right(scan)) =>
        val condition = known.filter(_.references.subsetOf(leaf.outputSet)).reduceOption(And)
        val pruning = new TablePruning(session, scan, condition, planner)
        val planned = if (deciding) pruning.applied(writing) else None
        if (PlannedScans.watched) PlannedScans.add(condition, scan, pruning.kept.getOrElse {
          val all = new BitSet
          all.set(0, scan.listing.files.length)
          all
        })
        planned.getOrElse(leaf)
    }
  }

  /** What is left alone for reasons that are not the query's is said where statistics are. */
  private def leftAlone(format: TableFormat, leaf: LogicalPlan, reason: String): Unit = {
    val entry = new Entry(session.sessionUUID, format.roots(leaf).map(qualified(_).toString), format.name, None)
    entry.notes = Seq(reason)
    Stats.add(entry)
    warnOnce(s"Skipstone: $reason")
  }

  /** A folder as datasets call it: catalogs may leave out what is the default. */
  private def qualified(root: Path): Path =
    Try(root.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(root)).getOrElse(root)

  private def warnOnce(message: String): Unit = if (SkipstoneRule.isNew(message)) logWarning(message)
}

private[skipstone] object TableRule {
  /** The leaves of a plan and of its subqueries. */
  def leaves(plan: LogicalPlan): Seq[LogicalPlan] = plan.collectLeaves() ++
    (if (!plan.containsPattern(PLAN_EXPRESSION)) Nil else plan.subqueriesAll.flatMap(_.collectLeaves()))

  /** The plan of a subquery is visited once more, with the plan that it is in. Row-level writes are a root as well. */
  private def isSubquery(plan: LogicalPlan): Boolean = plan match {
    case _: Subquery => true
    case p => p.isInstanceOf[SupportsSubquery] && !p.isInstanceOf[Command]
  }

  /** What writes in a plan. The batches of a stream are written by nodes that are no commands, or by none that the plan has. */
  private def write(plan: LogicalPlan): Option[String] = plan.collectFirst { case c: Command => c.nodeName }
    .orElse(if (plan.isStreaming) Some("a batch of a stream") else None)

  /** Whether something writes in a plan. */
  def writes(plan: LogicalPlan): Boolean = write(plan).isDefined

  /** Conditions with what stands for attributes. */
  private def substituted(known: Seq[Expression], made: Seq[(Attribute, Expression)]): Seq[Expression] = {
    val meaning = made.collect { case (a, e) if e.deterministic => a.exprId -> e }.toMap
    if (meaning.isEmpty) known else known.map(_.transform { case a: AttributeReference => meaning.getOrElse(a.exprId, a) })
  }
}
