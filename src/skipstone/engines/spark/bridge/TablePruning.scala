package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Decides about one scan of a table: asks the planner, matches its answer to the snapshot's objects, replaces the scan. */
private[skipstone] class TablePruning(
    session: classic.SparkSession, scan: TableScan, condition: Option[Expression], planner: Planner) extends Logging {
  import SkipstoneRule._

  private val conf = session.sessionState.conf
  private val described = scan.described
  private val entry = new Entry(session.sessionUUID, described.roots.take(5).map(_.toString), described.format, described.table)

  /** The objects of the listing that the plan reads, if they are not all. */
  var kept: Option[BitSet] = None

  /** The scan of what is needed, or none: the scan stays as it is. `writing`: what writes meanwhile. */
  def applied(writing: Option[String]): Option[LogicalPlan] = {
    val start = System.nanoTime()
    at(scan.location)
    try guarded(Option.empty[LogicalPlan]) {
      Runs.watch(session.sparkContext)
      entry.filters = condition.toSeq.flatMap(ExpressionJson.conjuncts).map(_.semanticHash()).toSet
      entry.condition = condition.flatMap(c => guarded(Option.empty[String])(Some(c.sql.take(2000)))(_ => ()))
      if (planner == null) say(s"nobody planned: ${Companion.absence}")
      writing match {
        case Some(what) => say(s"nothing is left out of a table while one is written ($what)"); None
        case None => decided()
      }
    } { error => fail(error) }
    catch {
      case e: SkipstoneForceException =>
        entry.error = Some(e.getMessage)
        throw e
    } finally {
      entry.decided(start)
      Stats.add(entry)
      if (entry.wrapped) logInfo(entry.logged)
    }
  }

  private def decided(): Option[LogicalPlan] = {
    val timeout = timeoutMs(conf)
    val environments = described.environments()
    val decision = if (planner == null) None else guarded(Option.empty[Decision]) {
      val request = requestOf(described, environments, condition)
      val called = System.nanoTime()
      try Some(PlannerCalls.plan(planner, request, timeout)) finally entry.plannerNs = System.nanoTime() - called
    } { error => fail(error) }
    entry.header = decision.map(_.header)
    if (isTrue(conf, "spark.skipstone.force", "false")) decision.flatMap(_.refusal).foreach(reason => throw new SkipstoneForceException(reason))
    val still = new Still(described, environments, decision.map(_.environment).getOrElse(Set.empty))
    still.verifyFiles(decision.map(_.evidence).getOrElse(Nil))
    val listing = listed()
    decision.flatMap(pruned(_, listing, still, timeout))
  }

  private def listed(): Listing = {
    val start = System.nanoTime()
    val listing = scan.listing
    entry.listingNs = System.nanoTime() - start
    entry.listed = true
    entry.total = listing.files.length
    entry.kept = entry.total
    entry.bytesTotal = listing.bytes
    entry.prunedByFormat = scan.beforePruning.map { case (files, bytes) => (files - listing.files.length, bytes - listing.bytes) }
    listing
  }

  private def pruned(decision: Decision, listing: Listing, still: Still, timeout: Long): Option[LogicalPlan] = {
    val start = System.nanoTime()
    val answers = decision.kept.toArray
    val snapshots = answers.map(k => Snapshot.of(planner, k.id, k.rows, timeout))
    entry.objectsNs = System.nanoTime() - start
    val keep = new BitSet(listing.files.length)
    choose(listing, 0, listing.files.length, answers, snapshots.map(listing.rowsIn), keep, entry)
    val (besides, why) = scan.keptBesides(keep)
    if (!besides.isEmpty) {
      keep.or(besides)
      entry.skipped -= besides.cardinality
      entry.bytesSkipped -= besides.stream().mapToLong(listing.lengths(_)).sum
      say(why)
    }
    entry.kept = entry.total - entry.skipped
    entry.matchNs = System.nanoTime() - start
    if (entry.skipped == 0) None else {
      val planned = new Outcome(entry.kept, entry.total, entry.bytesSkipped)
      scan.replaced(keep, digestOf(listing, keep), planned, still) match {
        case Right((plan, location)) =>
          at(location)
          entry.planned = Some(planned)
          entry.wrapped = true
          kept = Some(keep)
          Some(plan)
        case Left(reason) =>
          entry.keepAll(reason)
          None
      }
    }
  }

  private def at(location: AnyRef): Unit = entry.location = new WeakReference(location)

  private def say(note: String): Unit = entry.notes = entry.notes :+ note

  private def fail(error: String): Unit = {
    entry.error = Some(error)
    entry.keepAll()
    val message = s"Skipstone: nothing skipped in ${entry.roots.headOption.getOrElse("a table")}: $error"
    if (isNew(message)) logWarning(message)
  }
}
