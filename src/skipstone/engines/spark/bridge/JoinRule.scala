package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide, UnwrapCastInBinaryComparison}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.skipstone.{JoinKeys, KeyCondition, KnownCondition}

/**
 * Lets the keys of a broadcast join leave out objects of the other side, and the values of scalar subqueries in a filter those of
 * the scan below it (ADR 14).
 *
 * Adaptive execution calls it with each stage just before the stage starts. By then the broadcasts that the stage joins with
 * are there, and the scans that it streams have not begun. What is known of a scan's rows is collected on the way down from
 * joins and filters: every row that contributes to the stage's result satisfies it. Nodes are passed only where that is certain; at
 * any other node all that is known is forgotten, and an exchange or a cached table is such a node. So what is left out is
 * left out of one place of one stage.
 */
private[skipstone] class JoinRule(session: SparkSession) extends Rule[SparkPlan] {
  import JoinRule._
  import SkipstoneRule.guarded

  override def apply(plan: SparkPlan): SparkPlan =
    if ((Bridge.planner == null && !Companion.isWanted) || !isOn || !plan.exists(tells)) plan
    else guarded(plan) {
      start(plan)
      visit(plan, Nil)
    }(warnOnce("a stage", _))

  /** Start the subqueries that scans of the stage may be asked about, all at once as the stage would: the walk waits for each. */
  private def start(plan: SparkPlan): Unit = {
    val relations = plan.collect { case scan: FileSourceScanLike => PlannedRelations.of(scan.relation.location) }.flatten
    plan.foreach {
      case f: FilterExec if f.references.exists(a => relations.exists(_.covers(a.name))) => SubqueryCondition.of(f).foreach(_.start())
      case _ =>
    }
  }

  private def isOn: Boolean =
    SkipstoneRule.isTrue(conf, "spark.skipstone.enabled", "true") && SkipstoneRule.isTrue(conf, "spark.skipstone.joins", "true")

  /** `known`: conditions on the plan's output that hold for all of its rows that matter. */
  private def visit(plan: SparkPlan, known: Seq[KnownCondition]): SparkPlan = plan match {
    case join: BroadcastHashJoinExec if isRowByRow(join) && !join.isNullAwareAntiJoin =>
      val (stream, keys) = JoinKeys.streamed(join)
      val (build, others) = JoinKeys.built(join)
      val below = known.filter(_.references.subsetOf(stream.outputSet))
      val own = if (!bothSidesNeeded(join.joinType, join.buildSide) || !JoinKeys.isMaterialized(join)) Nil else {
        // Above an inner join, a condition may be on a column of the broadcast: it tells which rows of it matter.
        val among = if (!join.joinType.isInstanceOf[InnerLike]) Nil
          else known.collect { case c: KeyCondition if c.references.nonEmpty && c.references.subsetOf(build.outputSet) => c }
        keys.zip(others).zipWithIndex.collect { case ((key, other), i) if key.deterministic && key.references.nonEmpty =>
          KeyCondition(key, new JoinKeys(join, i, among), s"${text(key)} = ${text(other)}")
        }
      }
      streaming(join, join.buildSide, stream, below ++ own)
    case join: BroadcastNestedLoopJoinExec if isRowByRow(join) =>
      val stream = if (join.buildSide == BuildLeft) join.right else join.left
      streaming(join, join.buildSide, stream, known.filter(_.references.subsetOf(stream.outputSet)))
    case project: ProjectExec if project.projectList.forall(_.deterministic) =>
      val meaning = project.projectList.collect { case a: Alias => a.exprId -> a.child }.toMap
      below(project, known.flatMap(_.substituted(a => Some(meaning.getOrElse(a.exprId, a)))))
    case filter: FilterExec if filter.condition.deterministic => below(filter, known ++ SubqueryCondition.of(filter))
    case union: UnionExec if known.nonEmpty =>
      union.withNewChildren(union.children.map { child =>
        val meaning = union.output.map(_.exprId).zip(child.output).toMap
        visit(child, known.flatMap(_.substituted(a => meaning.get(a.exprId))))
      })
    case scan: FileSourceScanLike =>
      if (known.isEmpty) scan else guarded[SparkPlan](scan)(pruned(scan, known))(warnOnce(scan.relation.location.rootPaths.mkString(", "), _))
    case other => other.mapChildren(visit(_, Nil))
  }

  private def below(plan: UnaryExecNode, known: Seq[KnownCondition]): SparkPlan = plan.withNewChildren(Seq(visit(plan.child, known)))

  private def streaming(join: BaseJoinExec, build: BuildSide, stream: SparkPlan, known: Seq[KnownCondition]): SparkPlan = {
    val visited = visit(stream, known)
    join.withNewChildren(if (build == BuildLeft) Seq(join.left, visited) else Seq(visited, join.right))
  }

  /** The scan of the objects that may hold a key of all joins and satisfy the filters; or the same scan, where nothing is asked or left out. */
  private def pruned(scan: SparkPlan with FileSourceScanLike, known: Seq[KnownCondition]): SparkPlan = {
    val found = for {
      relation <- PlannedRelations.of(scan.relation.location)
      wanted = known.filter(_.references.exists(a => relation.covers(a.name)))
      _ = wanted.collect { case c: SubqueryCondition => c.predicate } // the time to wait for these is Spark's own
      start = System.nanoTime()
      keys = wanted.filter(_.predicate.isDefined)
      if keys.nonEmpty
      condition <- conditionOf(keys)
      asked <- StageScan.of(scan, session)
    } yield {
      val outcome = new JoinOutcome(keys)
      val planned = guarded[SparkPlan](scan)(ask(asked, condition, outcome))(e => outcome.error = Some(e))
      outcome.nanoseconds = System.nanoTime() - start
      outcome.error.foreach(warnOnce(asked.entry.roots.headOption.getOrElse("a scan"), _))
      Stats.joined(asked.entry, outcome)
      planned
    }
    found.getOrElse(scan)
  }

  private def ask(asked: StageScan, condition: Expression, outcome: JoinOutcome): SparkPlan = {
    import asked.{base, fs, kept => before, listing, scan, selected, under}
    val planner = Companion.planner(session)
    if (planner == null || asked.isCounted) return scan
    val timeout = SkipstoneRule.timeoutMs(conf)
    val (decision, still) = asked.ask(planner, timeout)(SkipstoneRule.requestOf(asked.described, _, Some(condition)))
    outcome.header = Some(decision.header)

    val keep = keptNow(listing, before, decision, planner, timeout)
    val bucketOrder = fs.bucketSpec.exists(_.sortColumnNames.nonEmpty) && SkipstoneRule.isTrue(conf, SkipstoneRule.Ordering, "false")
    if (keep == before || bucketOrder) return scan
    if (SkipstoneRule.isLogged(base) || SkipstoneRule.isTrue(conf, "spark.skipstone.verifyListing", "false")) {
      val changed = Listing.changed(listing, selected, keep, fs)
      changed.and(before)
      keep.or(changed)
      still.verify(() => Listing.changed(listing, selected, keep, fs).isEmpty)
    }
    val left = StageScan.without(before, keep)
    if (left.isEmpty) return scan
    outcome.skipped = left.cardinality
    outcome.bytesSkipped = listing.bytesOf(left)
    val keptBytes = listing.bytesOf(keep)
    val total = selected.indices.filter(selected(_)).map(d => listing.starts(d + 1) - listing.starts(d)).sum
    val all = selected.indices.filter(selected(_)).map(listing.directoryBytes(_)).sum
    val shown = new Outcome(keep.cardinality, total, all - keptBytes, Some(outcome))
    shown.nanoseconds = asked.entry.totalNs
    val decided = new Decided(base, asked.version, listing, selected, keep)
    val index = new SkipstoneFileIndex(base, SkipstoneRule.directoriesOf(fs, listing, keep),
      SkipstoneRule.digestOf(listing, keep), keptBytes, shown, decided, still, under)
    asked.entry.location = new WeakReference(index)
    asked.over(index)
  }

  private def warnOnce(where: String, error: String): Unit = {
    val message = s"Skipstone: keys of joins and values of subqueries leave out nothing in $where: $error"
    if (SkipstoneRule.isNew(message)) logWarning(message)
  }
}

private[skipstone] object JoinRule {
  /**
   * Whether each row of a join comes from one row of the side that is streamed, with that row's values, and does not depend
   * on other rows of that side. Then whatever tells which rows of the join matter tells it of that side's rows.
   */
  def isRowByRow(join: BaseJoinExec): Boolean = join.condition.forall(_.deterministic) && (join.joinType match {
    case Inner | Cross => true
    case LeftOuter | LeftSemi | LeftAnti | ExistenceJoin(_) => buildSide(join) == BuildRight
    case RightOuter => buildSide(join) == BuildLeft
    case _ => false
  })

  private def buildSide(join: BaseJoinExec): BuildSide = join match {
    case j: BroadcastHashJoinExec => j.buildSide
    case j: BroadcastNestedLoopJoinExec => j.buildSide
  }

  /** Whether a row of the streamed side without a partner gives no row at all. */
  def bothSidesNeeded(joinType: JoinType, build: BuildSide): Boolean = (joinType, build) match {
    case (Inner | Cross, _) => true
    case (LeftSemi, BuildRight) => true
    case _ => false
  }

  /** Casts are taken from columns to keys, as Spark does with literals. */
  def conditionOf(keys: Seq[KnownCondition]): Option[Expression] = {
    val condition = keys.flatMap(_.predicate).reduce[Expression](And)
    UnwrapCastInBinaryComparison(Filter(condition, LocalRelation(condition.references.toSeq))) match {
      case Filter(unwrapped, _) if unwrapped.references.nonEmpty => Some(unwrapped)
      case _ => None
    }
  }

  def text(e: Expression): String = SkipstoneRule.guarded("?")(e.sql.take(200))(_ => ())

  /** Whether something may be known of a node's rows. */
  private def tells(plan: SparkPlan): Boolean = plan match {
    case _: BroadcastHashJoinExec => true
    case filter: FilterExec => SubqueryCondition.isIn(filter)
    case _ => false
  }

  /** Of the objects that a scan would read, the ones that some fresh metadata does not exclude. */
  private def keptNow(listing: Listing, before: BitSet, decision: Decision, planner: Planner, timeout: Long): BitSet = {
    val kept = before.clone().asInstanceOf[BitSet]
    decision.kept.filter(_.bits != null).foreach { answer =>
      val rows = listing.rowsIn(Snapshot.of(planner, answer.id, answer.rows, timeout))
      var i = kept.nextSetBit(0)
      while (i >= 0) {
        if (rows(i) >= 0 && !answer.keeps(rows(i))) kept.clear(i)
        i = kept.nextSetBit(i + 1)
      }
    }
    kept
  }
}
