package org.apache.spark.sql.skipstone

import java.util.{Arrays, BitSet}

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform

/**
 * A column in Arrow's buffers: physical values, dates as days and times as microseconds.
 *
 * Its buffers are, in this order, which values are not NULL (a bit each, or nothing where all are), then the values; of text
 * and bytes where each begins (four bytes each, and the end), then all of them; of an array where each begins and the end,
 * then the buffers of the elements.
 */
private[skipstone] abstract class ArrowColumn {
  protected var rows = 0
  private val missing = new BitSet

  /** Add values of a reader's column. */
  final def append(vector: ColumnVector, from: Int, count: Int): Unit = {
    reserve(count)
    val end = from + count
    if (vector.hasNull) {
      var i = from
      while (i < end) {
        if (vector.isNullAt(i)) {
          appendNull()
          i += 1
        } else {
          val start = i
          while (i < end && !vector.isNullAt(i)) i += 1
          copy(vector, start, i - start)
        }
      }
    } else if (count > 0) copy(vector, from, count)
  }

  /** Add a value of a row, or of an array. */
  final def append(row: SpecializedGetters, ordinal: Int): Unit = {
    reserve(1)
    if (row.isNullAt(ordinal)) appendNull() else put(row, ordinal)
  }

  private def appendNull(): Unit = {
    missing.set(rows)
    putNothing()
  }

  /** Make room for values. */
  protected def reserve(count: Int): Unit

  /** Add values that are not NULL. */
  protected def copy(vector: ColumnVector, from: Int, count: Int): Unit
  protected def put(row: SpecializedGetters, ordinal: Int): Unit

  /** Add something in the place of NULL. */
  protected def putNothing(): Unit

  /** The bytes so far, without the bits. */
  def size: Long

  /** The buffers so far; the column is empty then. */
  final def take(): Seq[Buffer] = {
    val valid = if (missing.isEmpty) Buffer.none else {
      val bits = new BitSet(rows)
      bits.set(0, rows)
      bits.andNot(missing)
      Buffer.ofBits(bits, rows)
    }
    val taken = valid +: takeValues()
    missing.clear()
    rows = 0
    taken
  }

  protected def takeValues(): Seq[Buffer]
}

/** The first bytes of an array. */
private[skipstone] class Buffer(val bytes: Array[Byte], val length: Int)

private[skipstone] object Buffer {
  val none = new Buffer(Array.emptyByteArray, 0)

  def ofBits(bits: BitSet, count: Int): Buffer = {
    val length = (count + 7) / 8
    new Buffer(Arrays.copyOf(bits.toByteArray, length), length)
  }
}

/** Bytes that grow. What is taken stays as it is until more is added. */
private[skipstone] class Growing {
  private val First = 1 << 12
  var bytes = new Array[Byte](First)
  var length = 0

  def reserve(more: Int): Unit = {
    val needed = Math.addExact(length, more)
    if (needed > bytes.length) bytes = Arrays.copyOf(bytes, math.max(needed.toLong, math.min(bytes.length * 2L, Int.MaxValue - 16)).toInt)
  }

  def add(source: AnyRef, offset: Long, count: Int): Unit = {
    Platform.copyMemory(source, offset, bytes, Platform.BYTE_ARRAY_OFFSET + length, count)
    length += count
  }

  def addInt(value: Int): Unit = {
    Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + length, value)
    length += 4
  }

  def addLong(value: Long): Unit = {
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + length, value)
    length += 8
  }

  def take(): Buffer = {
    val taken = new Buffer(bytes, length)
    length = 0
    taken
  }
}

private[skipstone] object ArrowColumn {
  def carries(type_ : DataType): Boolean = type_ match {
    case ArrayType(element, _) => isFlat(element)
    case other => isFlat(other)
  }

  private def isFlat(type_ : DataType): Boolean = type_ match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | BinaryType => true
    case DateType | TimestampType | TimestampNTZType => true
    case _: DecimalType => true
    case _: StringType => true
    case _ => false
  }

  def of(type_ : DataType): ArrowColumn = type_ match {
    case BooleanType => new BooleanColumn
    case ByteType => new ByteColumn
    case ShortType => new ShortColumn
    case IntegerType | DateType => new IntColumn
    case LongType | TimestampType | TimestampNTZType => new LongColumn
    case FloatType => new FloatColumn
    case DoubleType => new DoubleColumn
    case d: DecimalType => new DecimalColumn(d)
    case _: StringType => new BytesColumn(text = true)
    case BinaryType => new BytesColumn(text = false)
    case ArrayType(element, _) => new ArrayColumn(of(element))
    case other => throw new IllegalArgumentException(s"no buffers for ${other.simpleString}")
  }
}
