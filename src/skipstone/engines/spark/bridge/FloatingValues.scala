package org.apache.spark.sql.skipstone

import java.nio.{ByteBuffer, ByteOrder}

import scala.jdk.CollectionConverters._

import org.apache.parquet.column.{ColumnDescriptor, ColumnReader}
import org.apache.parquet.column.impl.ColumnReadStoreImpl
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.io.api.{Converter, GroupConverter, PrimitiveConverter}
import org.apache.parquet.schema.{MessageType, PrimitiveType}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.{DOUBLE, FLOAT}

/**
 * What a footer does not say for certain of a column of floating numbers, since it leaves NaN out: Parquet's own reader
 * reads the values where they lie, and no row is made of them.
 */
private[skipstone] class FloatingValues(val values: Long, column: ColumnReader, isDouble: Boolean, present: Int) {
  var nulls = 0L
  var nans = 0L
  private var min = Double.PositiveInfinity
  private var max = Double.NegativeInfinity

  {
    var i = 0L
    while (i < values) {
      if (column.getCurrentDefinitionLevel < present) nulls += 1
      else {
        val value = if (isDouble) column.getDouble else column.getFloat.toDouble
        if (value != value) nans += 1
        else {
          if (value < min) min = value
          if (value > max) max = value
        }
      }
      column.consume()
      i += 1
    }
  }

  /** The bounds of what is neither NULL nor NaN, in the form that a footer has them in. */
  def bounds: Option[(Array[Byte], Array[Byte])] =
    if (nulls + nans == values) None else Some((spelled(min), spelled(max)))

  private def spelled(value: Double): Array[Byte] = {
    val bytes = ByteBuffer.allocate(if (isDouble) 8 else 4).order(ByteOrder.LITTLE_ENDIAN)
    (if (isDouble) bytes.putDouble(value) else bytes.putFloat(value.toFloat)).array()
  }
}

private[skipstone] object FloatingValues {
  /** More than this of an object is left to Spark's reader, which several tasks share. */
  private val MostBytes = 64L << 20

  /** Whether a column is one whose values are read here. */
  def serves(leaf: PrimitiveType): Boolean =
    leaf.getLogicalTypeAnnotation == null && Set(DOUBLE, FLOAT)(leaf.getPrimitiveTypeName)

  /** Of columns by name: what each row group has. Empty where there is too much of it. */
  def of(footer: ParquetMetadata, open: () => ParquetFileReader, names: Seq[String]): Map[String, Seq[FloatingValues]] = {
    val schema = footer.getFileMetaData.getSchema
    val wanted = new MessageType(schema.getName, names.map(name => schema.getFields.get(schema.getFieldIndex(name))).asJava)
    val size = footer.getBlocks.asScala.iterator.flatMap(_.getColumns.asScala)
      .filter(c => c.getPath.size == 1 && names.contains(c.getPath.toArray.head)).map(_.getTotalUncompressedSize).sum
    if (names.isEmpty || size > MostBytes) Map.empty else {
      val reader = open()
      reader.setRequestedSchema(wanted)
      val groups = footer.getBlocks.asScala.toSeq.map { block =>
        val pages = reader.readNextRowGroup() // leaves out groups without rows, and what a filter of Hadoop's settings does
        if (pages == null || pages.getRowCount != block.getRowCount) throw new IllegalStateException("not all row groups are read")
        val read = wanted.getColumns.asScala.map(c => c.getPath.head -> ofGroup(pages, c, wanted, footer.getFileMetaData.getCreatedBy))
        pages.close()
        read.toMap
      }
      names.map(n => n -> groups.map(_(n))).toMap
    }
  }

  private def ofGroup(pages: PageReadStore, column: ColumnDescriptor, schema: MessageType, createdBy: String): FloatingValues = {
    val reader = new ColumnReadStoreImpl(pages, Nowhere, schema, createdBy).getColumnReader(column)
    new FloatingValues(reader.getTotalValueCount, reader,
      column.getPrimitiveType.getPrimitiveTypeName == DOUBLE, column.getMaxDefinitionLevel)
  }

  /** Where Parquet would put values that nobody asks the column for. */
  private object Nowhere extends GroupConverter {
    private val value = new PrimitiveConverter {}
    override def getConverter(field: Int): Converter = value
    override def start(): Unit = ()
    override def end(): Unit = ()
  }
}
