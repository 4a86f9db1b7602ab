package org.apache.spark.sql.execution.skipstone // what a broadcast holds is private to Spark's execution

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide, NormalizeNaNAndZero}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.types._

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

  /** None if they are too many, or of a type that is left alone. */
  lazy val values: Option[KeyValues] = read.map(_.result)

  /** Whether NaN is among them, which equals itself and is greater than all others. */
  lazy val hasNaN: Boolean = read.exists(_.hasNaN)

  def contains(value: Any): Boolean = if (JoinKeys.isNaN(value)) hasNaN else values.exists(_.contains(value))

  private lazy val read: Option[KeyCollector] = if (!JoinKeys.isKnown(dataType)) None else broadcast(build).flatMap(read(_))

  private def read(shared: HashedRelation): Option[KeyCollector] = {
    val relation = shared.asReadOnlyCopy()
    val key = relation match {
      case _: LongHashedRelation => HashJoin.extractKeyExprAt(keys, index)
      case _ => BoundReference(index, dataType, nullable = true)
    }
    val matters = JoinKeys.matching(relation, build, among)
    val found = KeyCollector.of(key, dataType)
    val rows = relation.keys()
    val end = System.nanoTime() + JoinKeys.MostNanoseconds
    var count = 0
    while (rows.hasNext && count < JoinKeys.Most && (count % 256 != 0 || System.nanoTime() < end)) {
      val row = rows.next()
      count += 1
      if (matters(row)) found.add(row)
    }
    if (rows.hasNext || found.isEmpty) None else Some(found)
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
      val literals = if (all.length > MostValues) None else listed(all, 0 until all.length)
      val within = literals.map(l => if (l.isEmpty) None else Some(In(other, l))).orElse(
        listed(all, bounds(all)).map(_.grouped(2).map { case Seq(low, high) =>
          And(GreaterThanOrEqual(other, low), LessThanOrEqual(other, high))
        }.reduceOption[Expression](Or)))
      val nan = if (!values.hasNaN) None else Some(other match {
        case cast: Cast if cast.child.dataType == FloatType && cast.dataType == DoubleType => IsNaN(cast.child)
        case _ => IsNaN(other)
      })
      within.flatMap(w => (w.toSeq ++ nan).reduceOption[Expression](Or))
  }

  /** Some of the values as literals, if their texts are not too long to be sent. */
  private def listed(values: KeyValues, places: Seq[Int]): Option[Seq[Literal]] =
    if (places.iterator.map(values.bytes).sum > MostBytes) None else Some(places.map(values.literal))

  /** The ends of ranges that hold all values, which are in order: cut at the widest gaps. */
  private def bounds(sorted: KeyValues): Seq[Int] = if (sorted.length == 0) Nil else {
    val widest = mutable.PriorityQueue.empty[(Double, Int)](Ordering.by(-_._1)) // its head is the narrowest of them
    var before = sorted.place(0)
    var i = 1
    while (i < sorted.length) {
      val here = sorted.place(i)
      if (widest.size < MostRanges - 1) widest += here - before -> i
      else if (here - before > widest.head._1) {
        widest.dequeue()
        widest += here - before -> i
      }
      before = here
      i += 1
    }
    val cuts = widest.toSeq.map(_._2).sorted
    (0 +: cuts).zip(cuts :+ sorted.length).flatMap { case (from, until) => Seq(from, until - 1) }
  }
}
