package org.apache.spark.sql.skipstone

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.types._

/** What is known of one column in the rows of one object: how many are NULL, and the least and greatest of the others. */
private[skipstone] case class Fact(nulls: Long, valued: Int, lower: Any, upper: Any)

/**
 * What the planner says of the objects of one snapshot, in numbers of 64 bits a row: how many rows the object has, -1 unless
 * all of them match; then for each column how many NULLs (-1: not known), whether it has other values (1; 0: none; -1: not
 * known), and the least and the greatest of them. See `querying/plan_tally.py`.
 */
private[skipstone] class Held(numbers: Array[Long], types: Seq[DataType]) {
  private val width = 1 + Held.Fields * types.size

  def rows(row: Int): Long = numbers(row * width)

  def fact(row: Int, column: Int): Fact = {
    val at = row * width + 1 + Held.Fields * column
    val valued = numbers(at + 1).toInt
    def value(n: Int): Any = if (valued == 1) Held.value(numbers(at + n), types(column)) else null
    Fact(numbers(at), valued, value(2), value(3))
  }
}

private[skipstone] object Held {
  val Fields = 4

  /** Whether a value is a number of 64 bits at most, so that a bound of it is the value itself. */
  def isExact(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
    case d: DecimalType => d.precision <= Decimal.MAX_LONG_DIGITS
    case _ => false
  }

  def value(number: Long, dataType: DataType): Any = dataType match {
    case BooleanType => number != 0
    case ByteType => number.toByte
    case ShortType => number.toShort
    case IntegerType | DateType => number.toInt
    case d: DecimalType => Decimal.createUnsafe(number, d.precision, d.scale)
    case _ => number
  }
}

/**
 * What a partial aggregation computes, of which an object's metadata may know the result: `count`, `min` and `max` over all
 * rows, or by columns that have one value in each object.
 *
 * `inputs` are the functions' arguments and then the keys, by what the scan calls them.
 */
private[skipstone] class Tally(aggregate: HashAggregateExec, inputs: Seq[Expression]) {
  /** The columns of which something must be known. */
  val columns: Seq[AttributeReference] = inputs.collect { case a: AttributeReference => a }.distinct

  private val functions = aggregate.aggregateExpressions.map(_.aggregateFunction).toArray
  // By number among the columns; -1 for a literal. Each object is looked at: arrays only.
  private val (arguments, keys) = inputs.map(columns.indexOf(_)).toArray.splitAt(functions.length)
  private val orderings = functions.map(f => if (f.isInstanceOf[Count]) null else TypeUtils.getInterpretedOrdering(f.dataType))

  /** The buffers of some objects, by key: what the aggregation would make of their rows. */
  private val buffers = mutable.LinkedHashMap.empty[Seq[Any], Array[Any]]

  /**
   * Take an object's rows as aggregated, if all that is needed is known of it; say whether it was.
   *
   * Why this is the result: a buffer of `count(*)` is how many rows there are, of `count(c)` how many are not NULL, of
   * `min` and `max` the least and the greatest value that is not NULL, or NULL where there is none. Buffers of parts of the
   * rows merge to that of all of them. A column is constant where its least and greatest value are one and no row is NULL,
   * or where each is NULL. An object without rows adds nothing to any group, and no group.
   */
  def add(rows: Long, fact: Int => Fact): Boolean = {
    val facts = if (rows < 0) Array.empty[Fact] else Array.tabulate(columns.size)(fact)
    val answered = rows >= 0 && functions.indices.forall(isKnown(_, facts)) && (rows == 0 || keys.forall(k => isConstant(facts(k))))
    if (answered && (rows > 0 || keys.isEmpty)) {
      val buffer = buffers.getOrElseUpdate(keys.toSeq.map(facts(_).lower), functions.map(f => if (f.isInstanceOf[Count]) 0L else null))
      functions.indices.foreach(i => buffer(i) = merged(i, buffer(i), rows, facts))
    }
    answered
  }

  def rows: Seq[InternalRow] = {
    val project = UnsafeProjection.create(aggregate.output.map(_.dataType).toArray)
    buffers.toSeq.map { case (key, buffer) => project(new GenericInternalRow((key ++ buffer).toArray)).copy() }
  }

  private def isKnown(i: Int, facts: Array[Fact]): Boolean =
    if (functions(i).isInstanceOf[Count]) arguments(i) < 0 || facts(arguments(i)).nulls >= 0
    else arguments(i) >= 0 && facts(arguments(i)).valued >= 0

  private def isConstant(f: Fact): Boolean = f.valued == 0 || (f.valued == 1 && f.nulls == 0 && f.lower == f.upper)

  private def merged(i: Int, before: Any, rows: Long, facts: Array[Fact]): Any = functions(i) match {
    case _: Count => before.asInstanceOf[Long] + (if (arguments(i) < 0) rows else rows - facts(arguments(i)).nulls)
    case f =>
      val value = if (f.isInstanceOf[Min]) facts(arguments(i)).lower else facts(arguments(i)).upper
      if (before == null || value == null) Option(before).getOrElse(value)
      else if (f.isInstanceOf[Min]) orderings(i).min(before, value)
      else orderings(i).max(before, value)
  }
}

private[skipstone] object Tally {
  /** Whether an aggregation is one whose buffers metadata may know: a list of what may, no more. */
  def isServed(aggregate: HashAggregateExec): Boolean =
    aggregate.aggregateExpressions.forall(a => a.mode == Partial && !a.isDistinct && a.filter.isEmpty && isServed(a.aggregateFunction)) &&
      aggregate.groupingExpressions.forall(_.isInstanceOf[AttributeReference]) &&
      (aggregate.aggregateExpressions.nonEmpty || aggregate.groupingExpressions.nonEmpty) && !aggregate.isStreaming &&
      aggregate.requiredChildDistributionExpressions.isEmpty && // otherwise it is a final one, with no other above it
      aggregate.output.map(_.dataType) ==
        aggregate.groupingExpressions.map(_.dataType) ++ aggregate.aggregateExpressions.map(_.aggregateFunction).map(bufferOf)

  private def isServed(f: AggregateFunction): Boolean = f match {
    case c: Count => c.children.size == 1 && !c.children.exists { case l: Literal => l.value == null; case _ => false }
    case m: Min => Held.isExact(m.dataType)
    case m: Max => Held.isExact(m.dataType)
    case _ => false
  }

  private def bufferOf(f: AggregateFunction): DataType = if (f.isInstanceOf[Count]) LongType else f.dataType

  /** What functions aggregate, and then the keys. */
  def inputs(aggregate: HashAggregateExec): Seq[Expression] =
    aggregate.aggregateExpressions.map(_.aggregateFunction.children.head) ++ aggregate.groupingExpressions
}
