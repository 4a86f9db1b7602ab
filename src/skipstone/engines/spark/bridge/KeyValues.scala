package org.apache.spark.sql.execution.skipstone

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Cast, Expression, Literal}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The values of a key, in order and without NaN; but for arrays of bytes, each once. */
private[sql] trait KeyValues {
  def length: Int
  def literal(i: Int): Literal
  def contains(value: Any): Boolean

  /** Where a value lies, roughly: never in another order than the values. */
  def place(i: Int): Double

  /** What texts among them take. */
  def bytes(i: Int): Long
}

/** Collects values as they are met. */
private[sql] trait KeyCollector {
  /** Take a key of a row, unless it is NULL. */
  def add(row: InternalRow): Unit
  def isEmpty: Boolean
  def hasNaN: Boolean
  def result: KeyValues
}

private[sql] object KeyCollector {
  def of(key: Expression, dataType: DataType): KeyCollector = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => new NumberCollector(key, dataType)
    case _ => new ObjectCollector(key, dataType)
  }
}

/** A hundred thousand of them are usual: arrays only, since making and comparing objects takes longer than all the rest. */
private class NumberCollector(key: Expression, dataType: DataType) extends KeyCollector {
  private var numbers = new Array[Long](256)
  private var count = 0

  // Where a row has the number itself, as it has in the usual cases; -1: the key must be evaluated.
  private val (long, int) = key match {
    case Cast(BoundReference(i, LongType, false), to, _, _) if to == dataType => (i, -1) // made of numbers of that type
    case BoundReference(i, LongType | TimestampType | TimestampNTZType, _) => (i, -1)
    case BoundReference(i, IntegerType | DateType, _) => (-1, i)
    case _ => (-1, -1)
  }

  override def add(row: InternalRow): Unit =
    if (long >= 0) { if (!row.isNullAt(long)) append(row.getLong(long)) }
    else if (int >= 0) { if (!row.isNullAt(int)) append(row.getInt(int)) }
    else key.eval(row) match {
      case n: Number => append(n.longValue)
      case _ => // NULL
    }

  private def append(number: Long): Unit = {
    if (count == numbers.length) numbers = Arrays.copyOf(numbers, 2 * count)
    numbers(count) = number
    count += 1
  }

  override def isEmpty: Boolean = count == 0
  override def hasNaN: Boolean = false

  override def result: KeyValues = {
    Arrays.sort(numbers, 0, count)
    var distinct, i = 0
    while (i < count) {
      if (distinct == 0 || numbers(i) != numbers(distinct - 1)) {
        numbers(distinct) = numbers(i)
        distinct += 1
      }
      i += 1
    }
    new Numbers(Arrays.copyOf(numbers, distinct), dataType)
  }
}

private class Numbers(sorted: Array[Long], dataType: DataType) extends KeyValues {
  override def length: Int = sorted.length
  override def place(i: Int): Double = sorted(i).toDouble
  override def bytes(i: Int): Long = 0
  override def contains(value: Any): Boolean = value match {
    case n: Number => Arrays.binarySearch(sorted, n.longValue) >= 0
    case _ => false
  }

  override def literal(i: Int): Literal = Literal(dataType match {
    case ByteType => sorted(i).toByte
    case ShortType => sorted(i).toShort
    case IntegerType | DateType => sorted(i).toInt
    case _ => sorted(i)
  }, dataType)
}

private class ObjectCollector(key: Expression, dataType: DataType) extends KeyCollector {
  private val found = Array.newBuilder[Any]
  private var any, nan = false

  override def add(row: InternalRow): Unit = {
    val value = key.eval(row)
    if (value != null) {
      any = true
      if (JoinKeys.isNaN(value)) nan = true else found += copied(value)
    }
  }

  private def copied(value: Any): Any = value match { // of a row that the iterator uses again
    case s: UTF8String => s.copy()
    case b: Array[Byte] => b.clone()
    case other => other
  }

  override def isEmpty: Boolean = !any
  override def hasNaN: Boolean = nan

  override def result: KeyValues = {
    val ordering = TypeUtils.getInterpretedOrdering(dataType)
    new Objects(found.result().distinct.sorted(ordering), dataType, ordering)
  }
}

private class Objects(sorted: Array[Any], dataType: DataType, ordering: Ordering[Any]) extends KeyValues {
  override def length: Int = sorted.length
  override def literal(i: Int): Literal = Literal(sorted(i), dataType)
  override def bytes(i: Int): Long = Option(text(sorted(i))).fold(0L)(_.length.toLong)
  override def contains(value: Any): Boolean = Arrays.binarySearch(
    sorted.asInstanceOf[Array[AnyRef]], value.asInstanceOf[AnyRef], ordering.asInstanceOf[Ordering[AnyRef]]) >= 0

  private def text(value: Any): Array[Byte] = value match {
    case s: UTF8String => s.getBytes
    case b: Array[Byte] => b
    case _ => null
  }

  /** How many bytes all texts begin with. */
  private lazy val shared = {
    val (first, last) = (text(sorted.head), text(sorted.last))
    if (first == null) 0 else first.zip(last).takeWhile { case (a, b) => a == b }.length
  }

  override def place(i: Int): Double = sorted(i) match {
    case b: Boolean => if (b) 1.0 else 0.0
    case d: Decimal => d.toDouble
    case n: Number => n.doubleValue
    case other =>
      val all = text(other)
      var place = 0.0
      var i = shared
      while (i < shared + 7) {
        place = place * 256 + (if (i < all.length) all(i) & 255 else 0)
        i += 1
      }
      place
  }
}
