package org.apache.spark.sql.skipstone

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.{FilterExec, ScalarSubquery}
import org.apache.spark.sql.execution.skipstone.{KeyCondition, KnownCondition}
import org.apache.spark.sql.types._

/**
 * That a part of a filter holds whose scalar subqueries have their values (ADR 14).
 *
 * The values are those that the filter itself compares with: they are taken from its own subqueries, each of which runs once
 * in a plan and keeps its rows. The stage would wait for them before its first task. So this waits for nothing that Spark
 * would not wait for, and runs nothing twice.
 */
private[skipstone] case class SubqueryCondition(condition: Expression) extends KnownCondition {
  import SubqueryCondition._

  override def references: AttributeSet = condition.references

  override def substituted(meaning: Attribute => Option[Expression]): Option[SubqueryCondition] =
    KnownCondition.substituted(condition, meaning).map(SubqueryCondition(_))

  private def subqueries: Seq[ScalarSubquery] = condition.collect { case s: ScalarSubquery => s }

  /** Let them run, on threads of their own. */
  def start(): Unit = subqueries.foreach(_.plan.prepare())

  /**
   * The condition with values in place of subqueries. None if a subquery failed or has several rows, which Spark finds in its
   * own place and says; or if a value is too long to be sent.
   */
  override lazy val predicate: Option[Expression] = {
    val found = try subqueries.map(s => s.plan -> s.plan.executeCollect()) catch { // an interrupt is not caught
      case NonFatal(_) => Nil
    }
    val values = found.collect { case (plan, rows) if rows.length < 2 && rows.forall(isShort) => plan -> rows.headOption }
    if (values.length < subqueries.length) None else Some(condition.transformUp {
      case s: ScalarSubquery =>
        Literal(values.find(_._1 eq s.plan).flatMap(_._2).map(_.get(0, s.dataType)).orNull, s.dataType)
      case e if isFolded(e) => folded(e)
    })
  }

  override def text: String = s"${predicate.fold("?")(JoinRule.text)} (value of a subquery)"
}

private[skipstone] object SubqueryCondition {
  /**
   * The parts of a filter that have scalar subqueries and columns. Other subqueries stay as they are, and nothing is known of
   * them; a Bloom filter that Spark made of a join's keys has nothing to compare with.
   */
  def of(filter: FilterExec): Seq[SubqueryCondition] =
    if (!filter.condition.containsPattern(PLAN_EXPRESSION)) Nil
    else ExpressionJson.conjuncts(filter.condition).filter(c => c.references.nonEmpty && c.deterministic &&
      c.exists(_.isInstanceOf[ScalarSubquery]) && !c.exists(_.isInstanceOf[BloomFilterMightContain])).map(SubqueryCondition(_))

  def isIn(filter: FilterExec): Boolean =
    filter.condition.containsPattern(PLAN_EXPRESSION) && filter.condition.exists(_.isInstanceOf[ScalarSubquery])

  /**
   * What may be computed now, of literals alone: it is the same whatever the settings are under which tasks compute it, and
   * they may be others where a plan runs again. Sums of decimals have a type that depends on settings.
   */
  private def isFolded(e: Expression): Boolean = e.children.nonEmpty && e.children.forall(_.isInstanceOf[Literal]) && (e match {
    case _: GetStructField => true
    case c: Cast => isPlain(c.child.dataType) && isPlain(c.dataType)
    case _: BinaryArithmetic | _: UnaryMinus => isPlain(e.dataType) && !e.dataType.isInstanceOf[DecimalType]
    case other => names(other.getClass.getSimpleName)
  })

  private def isShort(row: InternalRow): Boolean = row match {
    case r: UnsafeRow => r.getSizeInBytes <= KeyCondition.MostBytes
    case _ => false
  }

  // Named, since one is called otherwise in Spark 4.0.
  private val names = Set("DateAdd", "DateSub", "TimeAdd", "TimestampAddInterval", "TimestampAddYMInterval")

  private def isPlain(dataType: DataType): Boolean = dataType match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** The value, or the expression where computing it fails: then Spark fails, too, if a row comes so far. */
  private def folded(e: Expression): Expression = try Literal(e.eval(), e.dataType) catch { case NonFatal(_) => e }
}
