package org.apache.spark.sql.skipstone

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan}
import org.apache.spark.sql.types.{BinaryType, DataType, StructField, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * What a projection of a columnar reader gives, in Arrow's buffers: a column of bytes, each the columns of many rows.
 *
 * Spark's own reader reads, and what it makes of a file is taken as it is. Only the way to Python is another one: columns are
 * copied as columns, where Spark makes a row of each value and of each row a value in Arrow's buffers.
 *
 * A value has the number of rows and of buffers, the length of each buffer (eight bytes each, little-endian), and the
 * buffers, each padded to a multiple of eight. See [[ArrowColumn]] for what buffers a column has.
 */
private[skipstone] object ColumnBatches {
  private val Column = "data"

  /** None where Spark's reader gives rows, or a type has no buffers here. */
  def of(df: classic.Dataset[_]): Option[classic.Dataset[Row]] = {
    // Without what is put around it for running: the reader's batches become rows there.
    val (expressions, reader) = readIn(df.queryExecution.sparkPlan)
    val plain = !expressions.exists(e => !e.deterministic || e.containsPattern(PLAN_EXPRESSION))
    if (!plain || !reads(reader, df) || ByteOrder.nativeOrder != ByteOrder.LITTLE_ENDIAN) None
    else if (!expressions.forall(e => ArrowColumn.carries(e.dataType))) None
    else {
      val session = df.sparkSession
      val encode = new Encode(BindReferences.bindReferences[Expression](expressions.map(withoutName), reader.output).toArray)
      val batches: RDD[InternalRow] = session.withActive(reader.executeColumnar().mapPartitions(encode))
      Some(session.internalCreateDataFrame(batches, StructType(Seq(StructField(Column, BinaryType, nullable = false))), false))
    }
  }

  /** The expressions of projections that lie on each other, as ones of the reader below. */
  private def readIn(plan: SparkPlan): (Seq[Expression], SparkPlan) = plan match {
    case ProjectExec(list, child) =>
      val (below, reader) = readIn(child)
      val of = AttributeMap(child.output.zip(below))
      (list.map(_.transform { case a: Attribute => withoutName(of.getOrElse(a, a)) }.transformUp {
        case GetStructField(KnownNotNull(s: CreateNamedStruct), i, _) => s.valExprs(i)
        case GetStructField(s: CreateNamedStruct, i, _) => s.valExprs(i)
      }), reader)
    case other => (other.output, other)
  }

  /** Whether the plan is a scan that gives columns, and the one that would run: another engine may have taken its place. */
  private def reads(plan: SparkPlan, df: classic.Dataset[_]): Boolean =
    plan.children.isEmpty && plan.supportsColumnar &&
      df.queryExecution.executedPlan.collectLeaves().map(_.getClass) == Seq(plan.getClass)

  private def withoutName(e: Expression): Expression = e match {
    case a: Alias => withoutName(a.child)
    case other => other
  }

  // A class, where a closure would do: see OwnClasses.
  private class Encode(expressions: Array[Expression])
      extends (Iterator[ColumnarBatch] => Iterator[InternalRow]) with Serializable {
    def apply(batches: Iterator[ColumnarBatch]): Iterator[InternalRow] = new Encoded(batches, expressions)
  }

  private class Encoded(batches: Iterator[ColumnarBatch], expressions: Array[Expression]) extends Iterator[InternalRow] {
    private val types: Array[DataType] = expressions.map(_.dataType)
    private val columns = types.map(ArrowColumn.of)
    // What is a column of the reader is copied as one; the rest is computed row by row.
    private val direct = expressions.indices.collect { case i if ordinal(i) >= 0 => (columns(i), ordinal(i)) }.toArray
    private val computed = expressions.indices.filter(ordinal(_) < 0).toArray
    private lazy val compute = UnsafeProjection.create(computed.toSeq.map(expressions(_)))
    private var rows = 0
    private var last = -1 // the object that was added last
    private var waiting: ColumnarBatch = _

    private def ordinal(i: Int): Int = expressions(i) match {
      case b: BoundReference => b.ordinal
      case _ => -1
    }

    override def hasNext: Boolean = {
      // A reader puts its next batch in the place of the last one, so that it is not asked before that one is copied.
      var full = isFull
      while (!full && (waiting != null || batches.hasNext)) {
        if (waiting == null) waiting = batches.next()
        // The rows of an object stay together, if they are not too many: its states need no merging then.
        full = rows >= ManyRows && waiting.numRows > 0 && numberOf(waiting) != last
        if (!full) {
          add(waiting)
          waiting = null
          full = isFull
        }
      }
      rows > 0
    }

    /** The object that a batch is of. */
    private def numberOf(batch: ColumnarBatch): Int = if (ordinal(0) >= 0) batch.column(ordinal(0)).getInt(0) else last

    override def next(): InternalRow = {
      if (!hasNext) throw new NoSuchElementException
      new GenericInternalRow(Array[Any](take()))
    }

    private def isFull: Boolean = rows >= MostRows || columns.iterator.map(_.size).sum >= ManyBytes

    private def add(batch: ColumnarBatch): Unit = {
      val count = batch.numRows
      if (count > 0) {
        direct.foreach { case (column, from) => column.append(batch.column(from), 0, count) }
        if (computed.nonEmpty) {
          val input = batch.rowIterator()
          while (input.hasNext) {
            val values = compute(input.next())
            var i = 0
            while (i < computed.length) {
              columns(computed(i)).append(values, i)
              i += 1
            }
          }
        }
        rows += count
        last = numberOf(batch)
      }
    }

    private def take(): Array[Byte] = {
      val buffers = columns.flatMap(_.take())
      val lengths = buffers.map(_.length)
      val size = lengths.foldLeft(8 * (2 + buffers.length))((sum, l) => Math.addExact(sum, padded(l)))
      val out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN)
      out.putLong(rows).putLong(buffers.length)
      lengths.foreach(l => out.putLong(l))
      buffers.foreach { b =>
        out.put(b.bytes, 0, b.length)
        out.position(out.position() + padded(b.length) - b.length)
      }
      rows = 0
      out.array()
    }
  }

  private val ManyRows = 1 << 16
  private val MostRows = 1 << 18
  private val ManyBytes = 16L << 20
  private def padded(length: Int): Int = (length + 7) & ~7
}
