package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec}
import org.apache.spark.sql.types.{AtomicType, Decimal}

/**
 * Lets metadata answer `count`, `min` and `max` for objects all of whose rows match (docs/adr/0016-aggregates.md).
 *
 * Adaptive execution calls it with each stage just before the stage starts. A partial aggregation right above a scan (with
 * deterministic projections and filters between) becomes two of them, each over a share of the objects, and every object
 * is in one share: those that metadata has no answer for are read; the others are read only if they are no longer as they
 * were listed, see [[AnsweredAggregateExec]].
 */
private[skipstone] class AggregateRule(session: SparkSession) extends Rule[SparkPlan] {
  import AggregateRule._
  import SkipstoneRule.guarded

  override def apply(plan: SparkPlan): SparkPlan = if (isIdle) plan else visit(plan)

  protected def visit(plan: SparkPlan): SparkPlan = plan match {
    case done: AnsweredAggregateExec => done
    case other => other.mapChildren(visit) match {
      case a: HashAggregateExec if Tally.isServed(a) && a.getTagValue(Unanswered).isEmpty => answered(a)(split(a, _)).getOrElse(a)
      case same => same
    }
  }

  protected def isIdle: Boolean = (Bridge.planner == null && !Companion.isWanted) || PlannedScans.watched ||
    !SkipstoneRule.isTrue(conf, "spark.skipstone.enabled", "true") || !SkipstoneRule.isTrue(conf, "spark.skipstone.aggregates", "true")

  /** What a plan becomes by what metadata knows of an aggregation in it; none where it knows nothing. */
  protected def answered(aggregate: HashAggregateExec)(made: Known => Option[SparkPlan]): Option[SparkPlan] =
    guarded(Option.empty[SparkPlan])(for {
      below <- under(aggregate.child, Tally.inputs(aggregate), Nil)
      if isPlain(below.scan) && below.inputs.forall(isColumn(_, below.scan)) &&
        below.inputs.drop(aggregate.aggregateExpressions.size).forall(_.isInstanceOf[AttributeReference])
      asked <- StageScan.of(below.scan, session)
      found <- {
        val start = System.nanoTime()
        val outcome = new TallyOutcome
        val planned = guarded(Option.empty[SparkPlan])(ask(aggregate, below, asked, outcome).flatMap(made))(e => outcome.error = Some(e))
        outcome.nanoseconds = System.nanoTime() - start
        outcome.error.foreach(warnOnce(asked.entry.roots.headOption.getOrElse("a scan"), _))
        if (planned.isDefined || outcome.error.isDefined || outcome.header.isDefined && outcome.objects == 0) Stats.tallied(asked.entry, outcome)
        planned
      }
    } yield found)(warnOnce("a stage", _))

  private def ask(aggregate: HashAggregateExec, below: Below, asked: StageScan, outcome: TallyOutcome): Option[Known] = {
    import asked.{base, described, fs, kept, listing, output, relation, scan, selected}
    val planner = Companion.planner(session)
    // A filter on partitions that a listing cannot be held against would leave out directories that are counted here.
    val names = base.partitionSchema.fieldNames.toSet
    if (planner == null || asked.isCounted || TopK.dropsRows(scan.relation) ||
      !scan.partitionFilters.forall(_.references.forall(a => names(a.name)))) return None
    val tally = new Tally(aggregate, below.inputs)
    val partitions = tally.columns.filter(a => described.columns.get(a.exprId).exists(_.partition))
    val columns = tally.columns.diff(partitions)
    val places = tally.columns.map(columns.indexOf(_)).toArray
    if (!columns.forall(a => described.columns.contains(a.exprId) && relation.covers(a.name)) ||
      !partitions.forall(a => fs.partitionSchema.fieldNames.contains(a.name))) return None
    val vouchers = output.filter(a => a.dataType.isInstanceOf[AtomicType] && relation.covers(a.name)).take(MostVouchers)
    if (vouchers.isEmpty) return None
    val timeout = SkipstoneRule.timeoutMs(conf)
    val (decision, still) = asked.ask(planner, timeout)(requestOf(described, _, below.whole, columns, vouchers))
    outcome.header = Some(decision.header)
    if (still.isLookedUp) {
      outcome.notes = Seq(s"counts and extremes: tasks look up settings by which ${described.format} files are read")
      aggregate.setTagValue(Unanswered, ())
      return None
    }

    val answers = decision.kept.filter(_.held != null)
      .map(k => (new Held(k.held, columns.map(_.dataType)), listing.rowsIn(Snapshot.of(planner, k.id, k.rows, timeout))))
    val known = new BitSet(listing.files.length)
    for (d <- selected.indices if selected(d); i <- listing.starts(d) until listing.starts(d + 1) if kept.get(i)) {
      val values = listing.directories(d).values
      val found = answers.exists { case (held, rows) => rows(i) >= 0 && tally.add(held.rows(rows(i)), c =>
        if (places(c) >= 0) held.fact(rows(i), places(c)) else constant(tally.columns(c), fs, values, held.rows(rows(i)))) }
      if (found) known.set(i)
    }
    outcome.objects = known.cardinality
    outcome.bytes = listing.bytesOf(known)
    if (known.isEmpty) aggregate.setTagValue(Unanswered, ())
    if (known.isEmpty) None else Some(new Known(asked, known, tally, still, outcome))
  }

  /** A partial aggregation of what metadata does not know, beside what it knows. */
  private def split(aggregate: HashAggregateExec, known: Known): Option[SparkPlan] = {
    import known.asked
    val others = new FixedFileIndex(asked.fs.location, SkipstoneRule.directoriesOf(asked.fs, asked.listing, known.objects))
    Some(AnsweredAggregateExec(known.rest(aggregate), withLocation(aggregate, asked, others), known.answer))
  }

  protected def warnOnce(where: String, error: String): Unit = {
    val message = s"Skipstone: counts and extremes are not answered from metadata in $where: $error"
    if (SkipstoneRule.isNew(message)) logWarning(message)
  }
}

/**
 * The same for an aggregation over all rows, of which metadata leaves next to nothing to read: the partial aggregation, the
 * exchange and the final one become one stage of one task.
 *
 * Adaptive execution calls it with a whole plan, before it is cut into stages. So the plan may run much later, after Spark
 * listed anew: then, as whenever the answered objects are not as they were, the plan is what it was before.
 */
private[skipstone] class WholeAggregateRule(session: SparkSession) extends AggregateRule(session) {
  import AggregateRule._

  override def apply(plan: SparkPlan): SparkPlan = AnsweredResultExec.over(super.apply(plan))

  override protected def visit(plan: SparkPlan): SparkPlan = plan match {
    case done: AnsweredAggregateExec => done
    case e: ShuffleExchangeExec if e.outputPartitioning == SinglePartition && e.shuffleOrigin == ENSURE_REQUIREMENTS =>
      e.child match {
        case a: HashAggregateExec if a.groupingExpressions.isEmpty && Tally.isServed(a) => whole(e, a)
        case _ => e.mapChildren(visit)
      }
    case other => other.mapChildren(visit)
  }

  private def whole(exchange: ShuffleExchangeExec, aggregate: HashAggregateExec): SparkPlan = answered(aggregate) { known =>
    import known.asked.{kept, listing, version}
    val left = StageScan.without(kept, known.objects)
    if (version.isEmpty || left.cardinality > MostLeft || listing.bytesOf(left) > MostBytesLeft) None
    else Some(AnsweredAggregateExec(known.rest(aggregate), aggregate, known.answer.instead(exchange)))
  }.getOrElse(exchange)
}

private[skipstone] object AggregateRule {
  private val MostVouchers = 8

  /** What one task reads beside the answer: so much that another task, and an exchange, would take longer. */
  val MostLeft = 8
  val MostBytesLeft = 4L << 20

  /** On an aggregation of which metadata knew nothing when the query was planned: it need not be asked again. */
  private val Unanswered = TreeNodeTag[Unit]("skipstone_unanswered")

  /** Objects of a scan whose rows metadata has aggregated. */
  class Known(val asked: StageScan, val objects: BitSet, tally: Tally, still: Still, outcome: TallyOutcome) {
    private val listed = asked.version.map(new WeakReference(_))

    def answer: Answer = {
      val counted = new Counted(objects.stream().toArray.toSeq.map(asked.listing.files(_).fileStatus), asked.fs)
      new Answer(tally.rows, outcome, asked, () => still.holds && counted.areAsListed,
        () => listed.exists(l => Listing.version(asked.base).exists(_ eq l.get)))
    }

    /** The aggregation of all other objects; what filters left out is left out of these, for as long as that holds. */
    def rest(aggregate: HashAggregateExec): SparkPlan = {
      import asked.{fs, listing}
      val everything = new BitSet(listing.files.length)
      everything.set(0, listing.files.length)
      val fixed = new FixedFileIndex(fs.location, SkipstoneRule.directoriesOf(fs, listing, StageScan.without(everything, objects)))
      val location = asked.under.fold[FileIndex](fixed) { f =>
        val keep = StageScan.without(asked.kept, objects)
        val shown = new Outcome(keep.cardinality, f.planned.total, f.planned.bytesSkipped + listing.bytesOf(objects))
        shown.nanoseconds = f.planned.nanoseconds
        new SkipstoneFileIndex(fixed, SkipstoneRule.directoriesOf(fs, listing, keep), SkipstoneRule.digestOf(listing, keep),
          listing.bytesOf(keep), shown, new Decided(fixed, None, listing, asked.selected, asked.kept), f.still)
      }
      asked.entry.location = new WeakReference(location)
      withLocation(aggregate, asked, location)
    }
  }

  /** What lies below an aggregation: a scan, the aggregation's inputs by the scan's columns, and which rows reach it. */
  case class Below(scan: SparkPlan with FileSourceScanLike, inputs: Seq[Expression], conditions: Seq[Expression]) {
    /** What must hold of a row besides what holds in every directory that Spark's partition pruning leaves. */
    def whole: Option[Expression] = conditions.flatMap(ExpressionJson.conjuncts)
      .filterNot(c => scan.partitionFilters.exists(_.semanticEquals(c))).reduceOption(And)
  }

  /** Down through what hands on rows one by one, each as it is or not at all. */
  def under(plan: SparkPlan, inputs: Seq[Expression], conditions: Seq[Expression]): Option[Below] = plan match {
    case p: ProjectExec if p.projectList.forall(_.deterministic) =>
      val meaning = p.projectList.collect { case a: Alias => a.exprId -> a.child }.toMap
      def below(e: Expression): Expression = e.transform { case a: AttributeReference => meaning.getOrElse(a.exprId, a) }
      under(p.child, inputs.map(below), conditions.map(below))
    case f: FilterExec if f.condition.deterministic && !f.condition.containsPattern(PLAN_EXPRESSION) =>
      under(f.child, inputs, conditions :+ f.condition)
    case scan: FileSourceScanLike => Some(Below(scan, inputs, conditions))
    case _ => None
  }

  /** Whether a scan reads all rows of the objects of its directories, as settings of now say, which its tasks do not look up. */
  def isPlain(scan: SparkPlan with FileSourceScanLike): Boolean = scan.supportsColumnar && !scan.bucketedScan &&
    scan.partitionFilters.forall(f => f.deterministic && !f.containsPattern(PLAN_EXPRESSION))

  private def isColumn(input: Expression, scan: SparkPlan): Boolean = input match {
    case a: AttributeReference => scan.outputSet.contains(a)
    case Literal(value, _) => value != null // a projection may have put it there: its count is 0
    case _ => false
  }

  private def requestOf(described: RelationJson, environments: Seq[Environment], whole: Option[Expression],
      columns: Seq[Attribute], vouchers: Seq[Attribute]): String = Json.text { g =>
    g.writeStartObject()
    g.writeFieldName("relation")
    described.write(g, environments, (whole ++ (columns ++ vouchers).map(IsNotNull(_))).reduceOption[Expression](And), full = false)
    g.writeNullField("condition")
    g.writeObjectFieldStart("tally")
    g.writeFieldName("whole")
    whole match {
      case Some(c) => new ExpressionJson(described.columns, g).write(c)
      case None => g.writeNull()
    }
    Seq("columns" -> columns, "vouchers" -> vouchers).foreach { case (name, attributes) =>
      g.writeArrayFieldStart(name)
      attributes.foreach(new ExpressionJson(described.columns, g).write(_))
      g.writeEndArray()
    }
    g.writeEndObject()
    g.writeEndObject()
  }

  /**
   * What a partition column is in the rows of an object. Of decimals nothing but how many are NULL: Spark's own value may have
   * another scale than the column, and projecting it would change it for Spark as well.
   */
  private def constant(a: AttributeReference, fs: HadoopFsRelation, values: InternalRow, rows: Long): Fact = {
    val i = fs.partitionSchema.fieldIndex(a.name)
    val value = values.get(i, fs.partitionSchema(i).dataType)
    if (value == null || rows <= 0) Fact(math.max(rows, 0), 0, null, null)
    else if (value.isInstanceOf[Decimal]) Fact(0, -1, null, null)
    else Fact(0, 1, value, value)
  }

  private def withLocation(plan: SparkPlan, asked: StageScan, location: FileIndex): SparkPlan = plan.transformUp {
    case s if s eq asked.scan => asked.over(location)
  }
}

/** What metadata answered of a query's counts and extremes, for the statistics of its scan. */
private[skipstone] class TallyOutcome {
  /** The objects whose rows need not be read, and how much that is. */
  var objects = 0
  var bytes, nanoseconds = 0L
  var header: Option[JsonNode] = None
  var error: Option[String] = None
  var notes = Seq.empty[String]
  /** Whether they were not read. */
  @volatile var held = false

  def skipped: Int = if (held) objects else 0
  def bytesSkipped: Long = if (held) bytes else 0L

  def write(g: JsonGenerator): Unit = {
    g.writeStartObject()
    g.writeNumberField("answered", skipped)
    g.writeNumberField("bytes_skipped", bytesSkipped)
    g.writeNumberField("seconds", nanoseconds / 1e9)
    Json.strings(g, "used", header.toSeq.flatMap(Decision.texts(_, "used")))
    Json.strings(g, "not_used", header.toSeq.flatMap(Decision.texts(_, "not_used")) ++ notes ++ error)
    g.writeEndObject()
  }
}
