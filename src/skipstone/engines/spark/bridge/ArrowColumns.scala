package org.apache.spark.sql.skipstone

import java.util.{Arrays, BitSet}

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.{Decimal, DecimalType}
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

private[skipstone] class BooleanColumn extends ArrowColumn {
  private val values = new BitSet

  override protected def reserve(count: Int): Unit = ()
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit = {
    var i = from
    while (i < from + count) {
      if (vector.getBoolean(i)) values.set(rows)
      rows += 1
      i += 1
    }
  }
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit = {
    if (row.getBoolean(ordinal)) values.set(rows)
    rows += 1
  }
  override protected def putNothing(): Unit = rows += 1
  override def size: Long = rows / 8
  override protected def takeValues(): Seq[Buffer] = {
    val taken = Buffer.ofBits(values, rows)
    values.clear()
    Seq(taken)
  }
}

/** Values of one width each. */
private[skipstone] abstract class FixedColumn(width: Int) extends ArrowColumn {
  protected val data = new Growing

  override protected def reserve(count: Int): Unit = data.reserve(Math.multiplyExact(width, count))
  override protected def putNothing(): Unit = {
    Arrays.fill(data.bytes, data.length, data.length + width, 0.toByte)
    data.length += width
    rows += 1
  }
  protected def added(array: AnyRef, offset: Int, count: Int): Unit = {
    data.add(array, offset, count * width)
    rows += count
  }
  override def size: Long = data.length
  override protected def takeValues(): Seq[Buffer] = Seq(data.take())
}

private[skipstone] class ByteColumn extends FixedColumn(1) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getBytes(from, count), Platform.BYTE_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    added(Array(row.getByte(ordinal)), Platform.BYTE_ARRAY_OFFSET, 1)
}

private[skipstone] class ShortColumn extends FixedColumn(2) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getShorts(from, count), Platform.SHORT_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    added(Array(row.getShort(ordinal)), Platform.SHORT_ARRAY_OFFSET, 1)
}

private[skipstone] class IntColumn extends FixedColumn(4) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getInts(from, count), Platform.INT_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit = {
    data.addInt(row.getInt(ordinal))
    rows += 1
  }
}

private[skipstone] class LongColumn extends FixedColumn(8) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getLongs(from, count), Platform.LONG_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit = {
    data.addLong(row.getLong(ordinal))
    rows += 1
  }
}

private[skipstone] class FloatColumn extends FixedColumn(4) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getFloats(from, count), Platform.FLOAT_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    added(Array(row.getFloat(ordinal)), Platform.FLOAT_ARRAY_OFFSET, 1)
}

private[skipstone] class DoubleColumn extends FixedColumn(8) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit =
    added(vector.getDoubles(from, count), Platform.DOUBLE_ARRAY_OFFSET, count)
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    added(Array(row.getDouble(ordinal)), Platform.DOUBLE_ARRAY_OFFSET, 1)
}

private[skipstone] class DecimalColumn(type_ : DecimalType) extends FixedColumn(16) {
  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit = {
    var i = from
    while (i < from + count) {
      one(vector.getDecimal(i, type_.precision, type_.scale))
      i += 1
    }
  }
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    one(row.getDecimal(ordinal, type_.precision, type_.scale))
  private def one(value: Decimal): Unit = {
    val unscaled = value.toJavaBigDecimal.setScale(type_.scale).unscaledValue
    data.addLong(unscaled.longValue)
    data.addLong(unscaled.shiftRight(64).longValue)
    rows += 1
  }
}

/** Values with ends. */
private[skipstone] abstract class VariableColumn extends ArrowColumn {
  private val ends = new Growing

  override protected def reserve(count: Int): Unit = ends.reserve(Math.multiplyExact(4, count))
  protected def ended(end: Int): Unit = {
    ends.addInt(end)
    rows += 1
  }
  protected def takeEnds(): Buffer = {
    val taken = ends.take()
    val offsets = new Array[Byte](4 + taken.length)
    System.arraycopy(taken.bytes, 0, offsets, 4, taken.length)
    new Buffer(offsets, offsets.length)
  }
  override def size: Long = ends.length
}

private[skipstone] class BytesColumn(text: Boolean) extends VariableColumn {
  private val data = new Growing

  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit = {
    var i = from
    while (i < from + count) {
      if (text) add(vector.getUTF8String(i)) else add(vector.getBinary(i))
      i += 1
    }
  }
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit =
    if (text) add(row.getUTF8String(ordinal)) else add(row.getBinary(ordinal))
  private def add(value: UTF8String): Unit = add(value.getBaseObject, value.getBaseOffset, value.numBytes)
  private def add(value: Array[Byte]): Unit = add(value, Platform.BYTE_ARRAY_OFFSET.toLong, value.length)
  private def add(source: AnyRef, offset: Long, count: Int): Unit = {
    data.reserve(count)
    data.add(source, offset, count)
    ended(data.length)
  }
  override protected def putNothing(): Unit = ended(data.length)
  override def size: Long = super.size + data.length
  override protected def takeValues(): Seq[Buffer] = Seq(takeEnds(), data.take())
}

private[skipstone] class ArrayColumn(elements: ArrowColumn) extends VariableColumn {
  private var all = 0

  override protected def copy(vector: ColumnVector, from: Int, count: Int): Unit = vector match {
    case arrays: WritableColumnVector =>
      // Arrays mostly lie one behind the other, and go in one piece.
      val child = arrays.getChild(0)
      var i = from
      while (i < from + count) {
        val start = arrays.getArrayOffset(i)
        var end = start
        while (i < from + count && arrays.getArrayOffset(i) == end) {
          end += arrays.getArrayLength(i)
          added(arrays.getArrayLength(i))
          i += 1
        }
        elements.append(child, start, end - start)
      }
    case other =>
      var i = from
      while (i < from + count) {
        add(other.getArray(i))
        i += 1
      }
  }
  override protected def put(row: SpecializedGetters, ordinal: Int): Unit = add(row.getArray(ordinal))
  private def add(array: ArrayData): Unit = {
    val length = array.numElements()
    var i = 0
    while (i < length) {
      elements.append(array, i)
      i += 1
    }
    added(length)
  }
  private def added(length: Int): Unit = {
    all = Math.addExact(all, length)
    ended(all)
  }
  override protected def putNothing(): Unit = ended(all)
  override def size: Long = super.size + elements.size
  override protected def takeValues(): Seq[Buffer] = {
    all = 0
    takeEnds() +: elements.take()
  }
}
