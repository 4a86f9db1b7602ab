package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{classic, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.datasources._
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

  override def apply(plan: SparkPlan): SparkPlan =
    if ((Bridge.planner == null && !Companion.isWanted) || !isOn || PlannedScans.watched) plan
    else plan.transformUp {
      case a: HashAggregateExec if Tally.isServed(a) => guarded[SparkPlan](a)(answered(a))(warnOnce("a stage", _))
    }

  private def isOn: Boolean =
    SkipstoneRule.isTrue(conf, "spark.skipstone.enabled", "true") && SkipstoneRule.isTrue(conf, "spark.skipstone.aggregates", "true")

  private def answered(aggregate: HashAggregateExec): SparkPlan = {
    val found = for {
      below <- under(aggregate.child, Tally.inputs(aggregate), Nil)
      if isPlain(below.scan) && below.inputs.forall(isColumn(_, below.scan)) &&
        below.inputs.drop(aggregate.aggregateExpressions.size).forall(_.isInstanceOf[AttributeReference])
      relation <- PlannedRelations.of(below.scan.relation.location)
    } yield {
      val start = System.nanoTime()
      val location = below.scan.relation.location
      val filters = (below.scan.partitionFilters ++ below.scan.dataFilters).map(_.semanticHash()).toSet
      val entry = Stats.queryOf(session.asInstanceOf[classic.SparkSession]).getOrElse(relation.entry.query)
        .entryOf(location, filters).getOrElse(relation.entry)
      val outcome = new TallyOutcome
      val planned = guarded[SparkPlan](aggregate)(ask(aggregate, below, relation, entry, outcome))(e => outcome.error = Some(e))
      outcome.nanoseconds = System.nanoTime() - start
      outcome.error.foreach(warnOnce(entry.roots.headOption.getOrElse("a scan"), _))
      if (outcome.header.isDefined || outcome.error.isDefined) Stats.tallied(entry, outcome)
      planned
    }
    found.getOrElse(aggregate)
  }

  private def ask(aggregate: HashAggregateExec, below: Below, relation: PlannedRelation, entry: Entry, outcome: TallyOutcome): SparkPlan = {
    val scan = below.scan
    val (base, filtered) = scan.relation.location match {
      case s: SkipstoneFileIndex => (s.base, if (s.standsAside) None else Some(s))
      case other => (other, None)
    }
    val planner = Companion.planner(session)
    // A filter on partitions that a listing cannot be held against would leave out directories that are counted here.
    val names = base.partitionSchema.fieldNames.toSet
    if (planner == null || filtered.exists(_.decided.topped.isDefined) || TopK.dropsRows(scan.relation) ||
      !scan.partitionFilters.forall(_.references.forall(a => names(a.name)))) return aggregate
    // Nested columns are pruned by now; indexes were made of whole ones.
    val schema = if (PlannedRelations.isPruned(scan.relation.dataSchema, relation.dataSchema)) relation.dataSchema
      else scan.relation.dataSchema
    val fs = scan.relation.copy(location = base, dataSchema = schema)(scan.relation.sparkSession)
    val output = fs.schema.fields.toSeq.map(f => scan.output.find(a => a.name == f.name && !a.metadata.contains("__metadata_col"))
      .fold[Attribute](AttributeReference(f.name, f.dataType)())(_.withDataType(f.dataType)))
    val described = new RelationJson(fs, output, relation.table, session.asInstanceOf[classic.SparkSession])
    val tally = new Tally(aggregate, below.inputs)
    val partitions = tally.columns.filter(a => described.columns.get(a.exprId).exists(_.partition))
    val columns = tally.columns.diff(partitions)
    val places = tally.columns.map(columns.indexOf(_)).toArray
    if (!columns.forall(a => described.columns.contains(a.exprId) && relation.covers(a.name)) ||
      !partitions.forall(a => fs.partitionSchema.fieldNames.contains(a.name))) return aggregate
    val vouchers = output.filter(a => a.dataType.isInstanceOf[AtomicType] && relation.covers(a.name)).take(MostVouchers)
    if (vouchers.isEmpty) return aggregate
    val environments = described.environments()
    val timeout = SkipstoneRule.timeoutMs(conf)
    val request = requestOf(described, environments, below.whole, columns, vouchers)
    val decision = PlannerCalls.plan(planner, request, timeout)
    outcome.header = Some(decision.header)
    val still = new Still(described, environments, decision.environment, filtered.map(_.still))
    still.verifyFiles(decision.evidence)
    if (still.isLookedUp) {
      outcome.notes = Seq(s"counts and extremes: tasks look up settings by which ${described.format} files are read")
      return aggregate
    }

    val listing = Listing.of(base)
    val selects = ListedFileIndex.selector(scan.partitionFilters, base.partitionSchema)
    val selected = listing.directories.map(d => selects(d.values))
    val before = JoinRule.keptBefore(listing, selected, filtered)
    val answers = decision.kept.filter(_.held != null)
      .map(k => (new Held(k.held, columns.map(_.dataType)), listing.rowsIn(Snapshot.of(planner, k.id, k.rows, timeout))))
    val known = new BitSet(listing.files.length)
    for (d <- selected.indices if selected(d); i <- listing.starts(d) until listing.starts(d + 1) if before.get(i)) {
      val values = listing.directories(d).values
      val found = answers.exists { case (held, rows) => rows(i) >= 0 && tally.add(held.rows(rows(i)), c =>
        if (places(c) >= 0) held.fact(rows(i), places(c)) else constant(tally.columns(c), fs, values, held.rows(rows(i)))) }
      if (found) known.set(i)
    }
    if (known.isEmpty) return aggregate
    val (rest, others) = shares(fs, listing, selected, before, known, filtered)
    val left = withLocation(aggregate, scan, rest)
    entry.location = new WeakReference(rest)
    outcome.objects = known.cardinality
    outcome.bytes = JoinRule.bytes(listing, known)
    val counted = new Counted(known.stream().toArray.toSeq.map(listing.files(_).fileStatus), fs)
    AnsweredAggregateExec(left, withLocation(aggregate, scan, others),
      new Answer(tally.rows, outcome, entry, () => still.holds && counted.areAsListed, before.cardinality))
  }

  private def warnOnce(where: String, error: String): Unit = {
    val message = s"Skipstone: counts and extremes are not answered from metadata in $where: $error"
    if (SkipstoneRule.isNew(message)) logWarning(message)
  }
}

private[skipstone] object AggregateRule {
  private val MostVouchers = 8

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

  /** The objects of a listing in two shares: without those that metadata knows, and these. What filters left out is left
    * out of the first, for as long as that holds. */
  private def shares(fs: HadoopFsRelation, listing: Listing, selected: Array[Boolean], before: BitSet,
      known: BitSet, filtered: Option[SkipstoneFileIndex]): (FileIndex, FileIndex) = {
    def without(objects: BitSet, left: BitSet): BitSet = { val out = objects.clone().asInstanceOf[BitSet]; out.andNot(left); out }
    val everything = new BitSet(listing.files.length)
    everything.set(0, listing.files.length)
    val fixed = new FixedFileIndex(fs.location, SkipstoneRule.directoriesOf(fs, listing, without(everything, known)))
    val rest = filtered.fold[FileIndex](fixed) { f =>
      val keep = without(before, known)
      val kept = JoinRule.bytes(listing, keep)
      val shown = new Outcome(keep.cardinality, f.planned.total, f.planned.bytesSkipped + JoinRule.bytes(listing, known))
      shown.nanoseconds = f.planned.nanoseconds
      new SkipstoneFileIndex(fixed, SkipstoneRule.directoriesOf(fs, listing, keep), SkipstoneRule.digestOf(listing, keep), kept, shown,
        new Decided(fixed, None, listing, selected, before), f.still)
    }
    (rest, new FixedFileIndex(fs.location, SkipstoneRule.directoriesOf(fs, listing, known)))
  }

  private def withLocation(plan: SparkPlan, scan: SparkPlan with FileSourceScanLike, location: FileIndex): SparkPlan = plan.transformUp {
    case s if s eq scan => JoinRule.withRelation(scan, scan.relation.copy(location = location)(scan.relation.sparkSession))
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
