package org.apache.spark.sql.skipstone

import java.util.BitSet

import org.apache.spark.sql.{classic, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.{FileSourceScanLike, SparkPlan}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation}

/**
 * A scan in a physical plan, when more is asked about it than its filters could tell: what lists its objects, how they are
 * read, and which of them are left.
 */
private[skipstone] class StageScan(
    val scan: SparkPlan with FileSourceScanLike, val relation: PlannedRelation, session: classic.SparkSession) {
  /** What lists all objects; and what filters left of them, unless that stands aside. */
  val (base: FileIndex, under: Option[SkipstoneFileIndex]) = scan.relation.location match {
    case s: SkipstoneFileIndex => (s.base, if (s.standsAside) None else Some(s))
    case other => (other, None)
  }

  /** What was counted for a limit must be kept as it is. */
  def isCounted: Boolean = under.exists(_.decided.topped.isDefined)

  /** With the whole schema: nested columns are pruned by now, and indexes were made of whole ones. */
  val fs: HadoopFsRelation = {
    val schema = if (PlannedRelations.isPruned(scan.relation.dataSchema, relation.dataSchema)) relation.dataSchema
      else scan.relation.dataSchema
    scan.relation.copy(location = base, dataSchema = schema)(scan.relation.sparkSession)
  }

  /** All columns, by what the plan calls those that it reads. */
  val output: Seq[Attribute] = fs.schema.fields.toSeq.map(f => scan.output.find(a => a.name == f.name && !a.metadata.contains("__metadata_col"))
    .fold[Attribute](AttributeReference(f.name, f.dataType)())(_.withDataType(f.dataType)))

  val described = new RelationJson(fs, output, relation.table, session)

  /** Where the statistics of its query are. */
  lazy val entry: Entry = Stats.queryOf(session).getOrElse(relation.entry.query)
    .entryOf(scan.relation.location, (scan.partitionFilters ++ scan.dataFilters).map(_.semanticHash()).toSet).getOrElse(relation.entry)

  /** Ask the planner, and note what its answer rests on. */
  def ask(planner: Planner, timeout: Long)(request: Seq[Environment] => String): (Decision, Still) = {
    val environments = described.environments()
    val decision = PlannerCalls.plan(planner, request(environments), timeout)
    val still = new Still(described, environments, decision.environment, under.map(_.still))
    still.verifyFiles(decision.evidence)
    (decision, still)
  }

  /** The objects, and the version of what lists them. */
  lazy val (version: Option[AnyRef], listing: Listing) = (Listing.version(base), Listing.of(base))

  /** In which directories Spark's partition pruning leaves them. */
  lazy val selected: Array[Boolean] = {
    val filters = scan.partitionFilters.filter(f => f.deterministic && !f.containsPattern(PLAN_EXPRESSION))
    val selects = ListedFileIndex.selector(filters, base.partitionSchema)
    listing.directories.map(d => selects(d.values))
  }

  /** The objects that the scan would read. */
  lazy val kept: BitSet = {
    val kept = new BitSet(listing.files.length)
    selected.indices.filter(selected(_)).foreach(d => kept.set(listing.starts(d), listing.starts(d + 1)))
    under.foreach(u => kept.andNot(u.decided.skippedOf(listing, kept)))
    kept
  }

  def over(location: FileIndex): SparkPlan = StageScan.withRelation(scan, scan.relation.copy(location = location)(scan.relation.sparkSession))
}

private[skipstone] object StageScan {
  /**
   * None where Skipstone did not plan the scan, or where the plan above rests on how its objects are put into partitions.
   *
   * By now no rule of Spark's puts an exchange where one is missing. A scan in a single task
   * (`spark.sql.optimizer.singleTaskExecution`) has none above it: its aggregation would give a row for each partition of what
   * takes its place, and for none no row. Scans of buckets keep their buckets, however few objects there are.
   */
  def of(scan: SparkPlan with FileSourceScanLike, session: SparkSession): Option[StageScan] =
    if (!scan.bucketedScan && !scan.outputPartitioning.isInstanceOf[UnknownPartitioning]) None
    else PlannedRelations.of(scan.relation.location).map(new StageScan(scan, _, session.asInstanceOf[classic.SparkSession]))

  def without(objects: BitSet, left: BitSet): BitSet = {
    val out = objects.clone().asInstanceOf[BitSet]
    out.andNot(left)
    out
  }

  /** By reflection, since the class has other parameters in every release. */
  def withRelation(scan: SparkPlan with FileSourceScanLike, relation: HadoopFsRelation): SparkPlan =
    scan.makeCopy(scan.productIterator.map {
      case _: HadoopFsRelation => relation
      case other => other.asInstanceOf[AnyRef]
    }.toArray)
}
