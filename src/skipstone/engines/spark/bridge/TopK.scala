package org.apache.spark.sql.skipstone

import java.util.{Arrays, BitSet}

import scala.util.Try

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.internal.SQLConf

/** The expression by which rows are ordered first, and how. */
private[skipstone] case class SortKey(expression: Expression, descending: Boolean, nullsFirst: Boolean)

private[skipstone] object SortKey {
  def of(order: Seq[SortOrder]): Option[SortKey] =
    order.headOption.map(o => SortKey(o.child, o.direction == Descending, o.nullOrdering == NullsFirst))
}

/**
 * The first `rows` rows of what lies below, as a query asks for them: in an order, or in any. `numbered`: the first by the
 * number that the window below gives them.
 *
 * What is not known to hand rows on one by one ends it: see [[TopK.through]].
 */
private[skipstone] case class Top(rows: Long, key: Option[SortKey] = None, numbered: Boolean = false) {
  /** The key by what a projection makes it of. */
  def below(made: Seq[NamedExpression]): Top = key.fold(this) { k =>
    val aliases = made.collect { case a: Alias => a.exprId -> a.child }.toMap
    copy(key = Some(k.copy(expression = k.expression.transform { case a: AttributeReference => aliases.getOrElse(a.exprId, a) })))
  }

  /** What the planner is asked; `whole` is what is not true anyway of every row of the files that are selected. */
  def write(g: JsonGenerator, columns: Map[ExprId, Column], whole: Option[Expression]): Unit = {
    g.writeStartObject()
    g.writeNumberField("rows", rows)
    g.writeFieldName("key")
    key match {
      case Some(k) => new ExpressionJson(columns, g).write(k.expression)
      case None => g.writeNull()
    }
    g.writeBooleanField("descending", key.exists(_.descending))
    g.writeBooleanField("nulls_first", key.exists(_.nullsFirst))
    g.writeFieldName("whole")
    whole match {
      case Some(c) => new ExpressionJson(columns, g).write(c)
      case None => g.writeNull()
    }
    g.writeEndObject()
  }
}

/** Objects that the first rows do not need, and those whose rows are why. Indices of a [[Listing]]. */
private[skipstone] case class Topped(skipped: BitSet, counted: BitSet)

/**
 * `ORDER BY … LIMIT` and `WHERE … LIMIT`: which objects cannot hold any of the first rows (docs/adr/0015-top-k.md).
 *
 * An object that is left out by a filter is left out for its own sake. Here it is left out because *others* hold rows
 * enough that come before all of its own: so these others must still be listed, and be as they were, when the query runs.
 */
private[skipstone] object TopK {
  private val MostRows = 100000L
  /** A run looks at each object that was counted. */
  private val MostCounted = 256
  /** What is said of a row of metadata, in numbers of 32 bits; see `querying/top_k.py`. */
  val Fields = 5

  /** What the first rows of a node are to its children: a list of what may lie between a limit and its scan, no more. */
  def through(node: LogicalPlan, top: Option[Top]): Option[Top] = (node, top.filter(t => t.key.isEmpty && !t.numbered)) match {
    case (GlobalLimit(IntegerLiteral(n), _), open) => Some(Top(math.min(n.toLong, open.fold(Long.MaxValue)(_.rows))))
    case (LocalLimit(IntegerLiteral(n), _), Some(t)) => Some(t).filter(_.rows <= n)
    case (Offset(IntegerLiteral(n), _), Some(t)) => Some(t.copy(rows = t.rows + n))
    case (s: Sort, Some(t)) if s.global => SortKey.of(s.order).map(k => t.copy(key = Some(k)))
    case (p: Project, _) if p.projectList.forall(_.deterministic) => top.filterNot(_.numbered).map(_.below(p.projectList))
    case (Filter(condition, w: Window), _) => numbered(condition, w)
    case (w: Window, _) => top.filter(_.numbered).map(t => Top(t.rows, SortKey.of(w.orderSpec)))
    case _ => None
  }

  /**
   * The rows that a filter lets pass by their number, or rank, in one window over everything. The window may number
   * nothing else: a number and a rank depend on the rows before, which are all there, and on no others.
   */
  private def numbered(condition: Expression, w: Window): Option[Top] = {
    val numbers = w.windowExpressions.collect {
      case a: Alias if a.child.isInstanceOf[WindowExpression] &&
        Seq("RowNumber", "Rank").contains(a.child.asInstanceOf[WindowExpression].windowFunction.getClass.getSimpleName) => a.exprId
    }.toSet
    val most = ExpressionJson.conjuncts(condition).collect {
      case LessThanOrEqual(a: AttributeReference, IntegerLiteral(n)) if numbers(a.exprId) => n.toLong
      case LessThan(a: AttributeReference, IntegerLiteral(n)) if numbers(a.exprId) => n - 1L
      case EqualTo(a: AttributeReference, IntegerLiteral(n)) if numbers(a.exprId) => n.toLong
    }
    if (w.partitionSpec.nonEmpty || w.orderSpec.isEmpty || numbers.size < w.windowExpressions.size) None
    else most.minOption.map(Top(_, numbered = true))
  }

  /** The question for a scan, if it can be asked. Says why not where it would surprise. */
  def asked(top: Option[Top], condition: Option[Expression], described: RelationJson, enabled: Boolean): Option[Top] =
    top.filter { t =>
      enabled && t.rows > 0 && t.rows <= MostRows && described.fs.bucketSpec.isEmpty &&
        !dropsRows(described.fs) && condition.forall(c => c.deterministic && !c.exists(_.isInstanceOf[OuterReference])) &&
        !t.numbered && t.key.map(_.expression).forall(isColumn(_, described.columns)) &&
        (t.key.isDefined || whole(condition, described.columns).isDefined)
    }

  /** Whether readers leave out what they cannot read: then no count of rows holds. */
  def dropsRows(fs: HadoopFsRelation): Boolean = {
    val options = fs.options.map { case (k, v) => k.toLowerCase(java.util.Locale.ROOT) -> v }
    val conf = SQLConf.get
    def isTrue(option: String, setting: Boolean): Boolean = options.get(option).fold(setting)(v => Try(v.trim.toBoolean).getOrElse(true))
    isTrue("ignorecorruptfiles", conf.ignoreCorruptFiles) ||
      isTrue("ignoremissingfiles", conf.ignoreMissingFiles) ||
      options.get("mode").exists(_.trim.equalsIgnoreCase("dropmalformed")) || options.contains("badrecordspath")
  }

  @scala.annotation.tailrec
  private def isColumn(e: Expression, columns: Map[ExprId, Column]): Boolean = e match {
    case f: GetStructField => isColumn(f.child, columns)
    case a: AttributeReference => columns.contains(a.exprId)
    case _ => false
  }

  /** What must hold of a row besides what holds in every directory that Spark's partition pruning leaves. */
  def whole(condition: Option[Expression], columns: Map[ExprId, Column]): Option[Expression] =
    condition.toSeq.flatMap(ExpressionJson.conjuncts).filterNot { c =>
      c.references.nonEmpty && !c.exists(_.isInstanceOf[PythonUDF]) && !SubqueryExpression.hasSubquery(c) &&
        c.references.forall(a => columns.get(a.exprId).exists(_.partition))
    }.reduceOption(And)

  /** Choose among the objects that are kept so far. */
  def choose(top: Top, decision: Decision, listing: Listing, selected: Array[Boolean], rows: Array[Array[Int]],
      keep: BitSet): Option[Topped] = {
    val ranked = new Ranked(decision, rows)
    val objects = selected.indices.filter(selected(_)).iterator
      .flatMap(d => Iterator.range(listing.starts(d), listing.starts(d + 1))).filter(keep.get).toArray
    val found = if (top.key.isDefined) ordered(top, objects, ranked) else any(top, objects, ranked, listing)
    found.filter(t => !t.skipped.isEmpty && !t.counted.isEmpty && t.counted.cardinality <= MostCounted)
  }

  /**
   * Let T be the first rank at which objects that are counted hold enough rows. An object whose best rank is greater than
   * T has no row among the first ones, and none that equals the last of them.
   */
  private def ordered(top: Top, objects: Array[Int], ranked: Ranked): Option[Topped] = {
    val standing = new Array[Long](ranked.ranks)
    objects.foreach(i => ranked.steps(i)((rank, count) => standing(rank) += count))
    var threshold = -1L
    var sum = 0L
    while (sum < top.rows && threshold + 1 < standing.length) {
      threshold += 1
      sum += standing(threshold.toInt)
    }
    if (sum < top.rows) None else {
      val skipped = new BitSet
      objects.foreach(i => if (ranked.best(i) > threshold) skipped.set(i))
      Some(Topped(skipped, fewest(top, objects.map(i => i -> ranked.count(i, threshold)))))
    }
  }

  /** As few objects as have the rows: a run looks at each of them. */
  private def fewest(top: Top, counts: Array[(Int, Long)]): BitSet = {
    val counted = new BitSet
    var left = top.rows
    counts.filter(_._2 > 0).sortBy(-_._2).iterator.takeWhile(_ => left > 0).foreach { case (i, count) =>
      counted.set(i)
      left -= count
    }
    if (left > 0) new BitSet else counted
  }

  /**
   * Any rows will do: one object that has enough, the smallest of them; otherwise those that have the most. A path may be listed
   * twice, and then so is what is kept: a run that reads the others after all knows objects by their paths.
   */
  private def any(top: Top, objects: Array[Int], ranked: Ranked, listing: Listing): Option[Topped] = {
    val counts = objects.map(i => i -> ranked.count(i, Int.MaxValue))
    val enough = counts.filter(_._2 >= top.rows)
    val counted = fewest(top, if (enough.isEmpty) counts else Array(enough.minBy { case (i, _) => listing.lengths(i) }))
    if (counted.isEmpty) None else {
      val paths = counted.stream().mapToLong(i => listing.hashes(2 * i)).sorted().toArray
      val skipped = new BitSet
      objects.foreach(i => if (Arrays.binarySearch(paths, listing.hashes(2 * i)) < 0) skipped.set(i))
      Some(Topped(skipped, counted))
    }
  }
}

/** What the planner said of the objects of a listing, by the snapshots in which they are fresh. */
private class Ranked(decision: Decision, rows: Array[Array[Int]]) {
  private val answers = decision.kept.toArray
  private val (nulls, nans) = (decision.place("nulls"), decision.place("nans"))
  /** More than any rank at which rows are counted. */
  val ranks: Int = {
    val worst = answers.iterator.filter(_.ranks != null).flatMap(k => Iterator.range(1, k.ranks.length, TopK.Fields).map(k.ranks(_)))
    (Iterator(nulls, nans) ++ worst).max + 1
  }

  private def field(a: Int, i: Int, n: Int): Int = answers(a).ranks(rows(a)(i) * TopK.Fields + n)
  private def isKnown(a: Int, i: Int): Boolean = answers(a).ranks != null && rows(a)(i) >= 0

  /** No row of the object stands before this rank; each snapshot that knows the object says something true. */
  def best(i: Int): Int = {
    var found = -1
    var a = 0
    while (a < answers.length) {
      if (isKnown(a, i)) found = math.max(found, field(a, i, 0))
      a += 1
    }
    found
  }

  /** Ranks, and how many rows of the object stand there or before: of one snapshot, so that no row is counted twice. */
  def steps(i: Int)(tell: (Int, Int) => Unit): Unit = {
    var a = 0
    while (a < answers.length && !(isKnown(a, i) && (2 to 4).exists(field(a, i, _) > 0))) a += 1
    if (a < answers.length) {
      if (field(a, i, 2) > 0) tell(field(a, i, 1), field(a, i, 2))
      if (field(a, i, 3) > 0) tell(nulls, field(a, i, 3))
      if (field(a, i, 4) > 0) tell(nans, field(a, i, 4))
    }
  }

  /** How many rows of the object stand at a rank or before. */
  def count(i: Int, threshold: Long): Long = {
    var sum = 0L
    steps(i)((rank, count) => if (rank <= threshold) sum += count)
    sum
  }
}
