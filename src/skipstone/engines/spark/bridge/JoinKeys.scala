package org.apache.spark.sql.execution.skipstone // what a broadcast holds is private to Spark's execution

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide, NormalizeNaNAndZero}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The values that one key of a broadcast join has on the side that was broadcast; read when they are asked for, once.
 *
 * A row of the other side whose key is none of them has no partner. `among` are conditions on the broadcast side that only
 * its rows that matter satisfy: the keys of a join above, where that joins by a column of this broadcast (a snowflake).
 */
private[sql] class JoinKeys(
    join: BroadcastHashJoinExec, index: Int, among: Seq[KeyCondition], broadcast: SparkPlan => Option[HashedRelation]) {
  def this(join: BroadcastHashJoinExec, index: Int, among: Seq[KeyCondition]) = this(join, index, among, JoinKeys.broadcast)

  /** The keys of a relation that is at hand. */
  def this(join: BroadcastHashJoinExec, index: Int, relation: HashedRelation) = this(join, index, Nil, _ => Some(relation))

  private val (build, keys) = JoinKeys.built(join)
  val dataType: DataType = keys(index).dataType
  val ordering: Ordering[Any] = if (JoinKeys.isKnown(dataType)) TypeUtils.getInterpretedOrdering(dataType) else null

  /** Distinct, in order, without NaN; none if they are too many, or of a type that is left alone. */
  lazy val values: Option[Array[Any]] = read.map(found => JoinKeys.sorted(found, dataType, ordering))

  /** Whether NaN is among them, which equals itself and is greater than all others. */
  lazy val hasNaN: Boolean = read.exists(_.exists(JoinKeys.isNaN))

  def contains(value: Any): Boolean =
    JoinKeys.isNaN(value) && hasNaN || values.exists(v => java.util.Arrays.binarySearch(
      v.asInstanceOf[Array[AnyRef]], value.asInstanceOf[AnyRef], ordering.asInstanceOf[Ordering[AnyRef]]) >= 0)

  private lazy val read: Option[Array[Any]] = if (!JoinKeys.isKnown(dataType)) None else broadcast(build).flatMap(read(_))

  private def read(shared: HashedRelation): Option[Array[Any]] = {
    val relation = shared.asReadOnlyCopy()
    val key = relation match {
      case _: LongHashedRelation => HashJoin.extractKeyExprAt(keys, index)
      case _ => BoundReference(index, dataType, nullable = true)
    }
    val matters = JoinKeys.matching(relation, build, among)
    val found = ArrayBuffer.empty[Any]
    val rows = relation.keys()
    val end = System.nanoTime() + JoinKeys.MostNanoseconds
    var count = 0
    while (rows.hasNext && count < JoinKeys.Most && (count % 256 != 0 || System.nanoTime() < end)) {
      val row = rows.next()
      count += 1
      val value = key.eval(row)
      if (value != null && matters(row)) found += JoinKeys.copied(value)
    }
    if (rows.hasNext || found.isEmpty) None else Some(found.toArray)
  }
}

private[sql] object JoinKeys {
  /** Bounds on what is read of a broadcast: bytes, of which one page of up to 64 MB is taken for the smallest of tables;
    * keys, and the time for the keys. */
  val MostBytes: Long = 256L << 20
  val Most = 1000000
  val MostNanoseconds = 200000000L

  def built(join: BroadcastHashJoinExec): (SparkPlan, Seq[Expression]) =
    if (isLeft(join.buildSide)) (join.left, join.leftKeys) else (join.right, join.rightKeys)

  def streamed(join: BroadcastHashJoinExec): (SparkPlan, Seq[Expression]) =
    if (isLeft(join.buildSide)) (join.right, join.rightKeys) else (join.left, join.leftKeys)

  def isLeft(side: BuildSide): Boolean = side == BuildLeft

  /** What was broadcast, if that is there and not too large. */
  private def broadcast(build: SparkPlan): Option[HashedRelation] = build match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized && isSmall(stage.getRuntimeStatistics.sizeInBytes.min(Long.MaxValue).toLong) =>
      stage.executeBroadcast[Any]().value match {
        case EmptyHashedRelation | HashedRelationWithAllNullKeys => None // Spark makes use of the first itself
        case relation: HashedRelation => Some(relation)
        case _ => None
      }
    case _ => None
  }

  def isSmall(bytes: Long): Boolean = bytes <= MostBytes

  def isMaterialized(join: BroadcastHashJoinExec): Boolean = built(join)._1 match {
    case stage: BroadcastQueryStageExec => stage.isMaterialized
    case _ => false
  }

  /** Types whose equality in a hash join, of bytes, is that of SQL; floating points are normalised by Spark before. */
  def isKnown(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType => true
    case DateType | TimestampType | TimestampNTZType | BinaryType => true
    case s: StringType => s == StringType // with no collation
    case _: DecimalType => true
    case _ => false
  }

  def isNaN(value: Any): Boolean = value match {
    case d: Double => d.isNaN
    case f: Float => f.isNaN
    case _ => false
  }

  /** Without NaN and, but for arrays of bytes, each once. */
  private def sorted(found: Array[Any], dataType: DataType, ordering: Ordering[Any]): Array[Any] = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType =>
      // A hundred thousand keys are usual, and comparing objects would take longer than all the rest.
      val numbers = found.map(_.asInstanceOf[Number].longValue)
      java.util.Arrays.sort(numbers)
      val once = numbers.indices.iterator.filter(i => i == 0 || numbers(i) != numbers(i - 1)).map(numbers(_))
      (dataType match {
        case ByteType => once.map(_.toByte: Any)
        case ShortType => once.map(_.toShort: Any)
        case IntegerType | DateType => once.map(_.toInt: Any)
        case _ => once.map(n => n: Any)
      }).toArray
    case _ => found.filterNot(isNaN).distinct.sorted(ordering)
  }

  private def copied(value: Any): Any = value match { // of a row that the iterator uses again
    case s: UTF8String => s.copy()
    case b: Array[Byte] => b.clone()
    case other => other
  }

  /** Whether some row of the broadcast with a key satisfies conditions on the broadcast's columns. */
  private def matching(relation: HashedRelation, build: SparkPlan, among: Seq[KeyCondition]): InternalRow => Boolean = {
    val known = among.filter(_.values.values.isDefined)
      .map(c => BindReferences.bindReference(c.key, AttributeSeq(build.output)) -> c.values)
    if (known.isEmpty) _ => true else { key =>
      val rows = relation.get(key)
      rows != null && rows.exists { row =>
        known.forall { case (expression, values) =>
          val value = expression.eval(row)
          value != null && values.contains(value)
        }
      }
    }
  }
}

/** Something that every row satisfies that matters, known once the query runs. */
private[sql] trait KnownCondition {
  def references: AttributeSet

  /** The same of what an attribute stands for. */
  def substituted(meaning: Attribute => Option[Expression]): Option[KnownCondition]

  /** TRUE for every row that matters; none where nothing is known after all. */
  def predicate: Option[Expression]

  /** What it is, for people. */
  def text: String
}

private[sql] object KnownCondition {
  def substituted(e: Expression, meaning: Attribute => Option[Expression]): Option[Expression] = {
    val known = e.references.toSeq.map(a => a.exprId -> meaning(a)).toMap
    if (known.values.exists(_.isEmpty)) None else Some(e.transformUp { case a: Attribute => known(a.exprId).get })
  }
}

/** That the value of an expression is among the keys of a join. */
private[sql] case class KeyCondition(key: Expression, values: JoinKeys, join: String) extends KnownCondition {
  override def references: AttributeSet = key.references

  override def substituted(meaning: Attribute => Option[Expression]): Option[KeyCondition] =
    KnownCondition.substituted(key, meaning).map(k => copy(key = k))

  /** TRUE for every row whose key is among the values. */
  override lazy val predicate: Option[Expression] = values.values.flatMap(_ => KeyCondition.of(key, values))

  override def text: String = {
    val count = values.values.map(_.length + (if (values.hasNaN) 1 else 0))
    val how = if (count.exists(_ > KeyCondition.MostValues)) s", as ${KeyCondition.MostRanges} ranges or fewer" else ""
    s"$join (${count.fold("keys not read")(n => s"$n keys$how")})"
  }
}

private[sql] object KeyCondition {
  /** A set of so many values is asked for as such, if its texts are not long. */
  val MostValues = 1000
  val MostBytes = 65536
  /** A larger one is asked for by so many ranges that have all of its values. */
  val MostRanges = 32

  def of(key: Expression, values: JoinKeys): Option[Expression] = key match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(value)) => of(value, values) // SQL's own equality does that
    case NormalizeNaNAndZero(value) => of(value, values)
    case Coalesce(Seq(value, Literal(default, _))) if default != null => // l <=> r joins by coalesce(l, default) ...
      of(value, values).map(p => if (values.contains(default)) Or(p, IsNull(value)) else p)
    case IsNull(value) => // ... and by l IS NULL
      (values.contains(true), values.contains(false)) match {
        case (true, false) => Some(IsNull(value))
        case (false, true) => Some(IsNotNull(value))
        case _ => None
      }
    case other =>
      val all = values.values.get
      val literals = if (all.length > MostValues) None else listed(all, values.dataType)
      val within = literals.map(l => if (l.isEmpty) None else Some(In(other, l))).orElse(
        listed(bounds(all), values.dataType).map(_.grouped(2).map { case Seq(low, high) =>
          And(GreaterThanOrEqual(other, low), LessThanOrEqual(other, high))
        }.reduceOption[Expression](Or)))
      val nan = if (!values.hasNaN) None else Some(other match {
        case cast: Cast if cast.child.dataType == FloatType && cast.dataType == DoubleType => IsNaN(cast.child)
        case _ => IsNaN(other)
      })
      within.flatMap(w => (w.toSeq ++ nan).reduceOption[Expression](Or))
  }

  /** As literals, if their texts are not too long to be sent. */
  private def listed(values: Array[Any], dataType: DataType): Option[Seq[Literal]] = {
    val bytes = values.foldLeft(0L) {
      case (sum, s: UTF8String) => sum + s.numBytes
      case (sum, b: Array[Byte]) => sum + b.length
      case (sum, _) => sum
    }
    if (bytes > MostBytes) None else Some(values.toSeq.map(Literal(_, dataType)))
  }

  /** Ends of ranges that hold all values, which are in order: cut at the widest gaps. */
  private def bounds(sorted: Array[Any]): Array[Any] = if (sorted.isEmpty) sorted else {
    val places = positions(sorted)
    def gap(i: Int): Double = places(i) - places(i - 1)
    val widest = mutable.PriorityQueue.empty[Int](Ordering.by(i => -gap(i))) // its head is the narrowest of them
    (1 until sorted.length).foreach { i =>
      if (widest.size < MostRanges - 1) widest += i
      else if (gap(i) > gap(widest.head)) {
        widest.dequeue()
        widest += i
      }
    }
    val cuts = widest.toSeq.sorted
    (0 +: cuts).zip(cuts :+ sorted.length).flatMap { case (from, until) => Seq(sorted(from), sorted(until - 1)) }.toArray
  }

  /** Where values lie, roughly: never in another order than the values. */
  private def positions(sorted: Array[Any]): Array[Double] = {
    def bytes(value: Any): Array[Byte] = value match {
      case s: UTF8String => s.getBytes
      case b: Array[Byte] => b
      case _ => null
    }
    val (first, last) = (bytes(sorted.head), bytes(sorted.last))
    val shared = if (first == null) 0 else first.zip(last).takeWhile { case (a, b) => a == b }.length
    sorted.map {
      case b: Boolean => if (b) 1.0 else 0.0
      case d: Decimal => d.toDouble
      case n: Number => n.doubleValue
      case text =>
        val all = bytes(text)
        (0 until 7).foldLeft(0.0)((place, i) => place * 256 + (if (shared + i < all.length) all(shared + i) & 255 else 0))
    }
  }
}
