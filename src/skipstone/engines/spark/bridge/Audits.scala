package org.apache.spark.sql.skipstone

import java.util.{BitSet, WeakHashMap}
import java.util.concurrent._

import scala.collection.mutable.ArrayBuffer
import scala.util.{Random, Try}
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.classic
import org.apache.spark.sql.internal.SQLConf

/** An index by whose metadata objects were left out. */
private[skipstone] case class Responsible(root: String, name: String, id: String)

/** A scan that left out objects, to be looked into when its query has run. */
private[skipstone] class Suspect(
    val scan: PlannedFiles, val still: Still, val entry: Entry, val request: String, val planner: Planner,
    val session: classic.SparkSession, conf: SQLConf) {
  val bounds = new AuditBounds(conf)
  val timeout: Long = SkipstoneRule.timeoutMs(conf)

  def responsible: Seq[Responsible] = entry.header.toSeq.flatMap(h => Audits.elements(h.path("responsible"))).map { node =>
    Responsible(node.path("root").asText, node.path("name").asText, node.path("id").asText)
  }
}

/** How much an audit reads at most, and what it does when it finds a row. */
private[skipstone] class AuditBounds(conf: SQLConf) {
  private def said(name: String, default: String): String = conf.getConfString(s"spark.skipstone.audit.$name", default).trim
  val objects: Int = Try(said("objects", "4").toInt).filter(_ > 0).getOrElse(4)
  val bytes: Long = Try(JavaUtils.byteStringAsBytes(said("bytes", "64m"))).filter(_ > 0).getOrElse(64L << 20)
  val milliseconds: Long = CompanionSettings.milliseconds(said("timeMs", "30s")).filter(_ > 0).getOrElse(30000L)
  val switchesOff: Boolean = !said("action", "disable").equalsIgnoreCase("log")
}

/** What an audit found; without `problem` it was carried through. */
private[skipstone] case class AuditOutcome(
    looked: Int, bytes: Long, lost: Seq[String], rows: Long, blamed: Seq[String], problem: Option[String]) {
  def write(g: JsonGenerator): Unit = {
    g.writeStartObject()
    g.writeNumberField("looked_into", looked)
    g.writeNumberField("bytes_looked_into", bytes)
    g.writeNumberField("rows_lost", rows)
    Json.strings(g, "lost_objects", lost.take(10))
    Json.strings(g, "blamed", blamed)
    g.writeStringField("problem", problem.orNull)
    g.writeEndObject()
  }
}

/**
 * Looks, for a share of the scans, into a few of the objects that filters left out: after the query, on a thread of its
 * own, by the query's own condition and with skipping off, within bounds of objects, bytes and time.
 *
 * A row that satisfies the condition there is one that the answer lacks. It is logged with what repeats it, counted, and
 * the index by which it was left out is not used any more by this application. What cannot be judged says nothing: a
 * setting or an object that changed since, a condition with a subquery, whose value may be another one by now.
 */
private[skipstone] object Audits extends Logging {
  private val MostWaiting = 64
  private val random = new Random
  // What waits for its query to run dies with the query's plan.
  private val waiting = new WeakHashMap[QueryPlanningTracker, ArrayBuffer[Suspect]]()
  private val found = ConcurrentHashMap.newKeySet[String]()

  private def daemon(name: String): ThreadFactory = (task: Runnable) => {
    val thread = new Thread(() => {
      classic.SparkSession.clearActiveSession()
      task.run()
    }, name)
    thread.setDaemon(true)
    thread
  }
  private val worker = new ThreadPoolExecutor(0, 1, 30, TimeUnit.SECONDS,
    new LinkedBlockingQueue[Runnable](MostWaiting), daemon("skipstone-audit"))
  private val clock = {
    val made = new ScheduledThreadPoolExecutor(1, daemon("skipstone-audit-clock"))
    made.setRemoveOnCancelPolicy(true)
    made
  }

  /** The ids of the indexes that were caught. */
  def caught: Seq[String] = found.toArray(new Array[String](0)).toSeq.sorted

  def elements(node: com.fasterxml.jackson.databind.JsonNode): Seq[com.fasterxml.jackson.databind.JsonNode] =
    (0 until node.size).map(node.get)

  /** Whether the scan that is being planned is one of the share. */
  def chosen(conf: SQLConf): Boolean = {
    val share = Try(conf.getConfString("spark.skipstone.audit", "0").trim.toDouble).getOrElse(0.0)
    share > 0 && random.nextDouble() < share
  }

  /** Whether a query over a dataset with an index that was caught is to fail. */
  def raises(conf: SQLConf): Boolean = conf.getConfString("spark.skipstone.audit.action", "disable").trim.equalsIgnoreCase("raise")

  /** Look into a scan when its query has run. */
  def expect(suspect: Suspect): Unit = QueryPlanningTracker.get.foreach { tracker =>
    if (!suspect.scan.condition.exists(SubqueryExpression.hasSubquery)) waiting.synchronized {
      if (waiting.size < MostWaiting || waiting.containsKey(tracker)) {
        waiting.computeIfAbsent(tracker, _ => ArrayBuffer.empty[Suspect]) += suspect
      }
    }
  }

  /** The query has run: its scans are looked into once, however often it runs. */
  def ran(tracker: QueryPlanningTracker): Unit = {
    val suspects = waiting.synchronized(Option(waiting.remove(tracker))).toSeq.flatten
    suspects.foreach(suspect => try worker.execute(() => audit(suspect)) catch {
      case _: RejectedExecutionException => // many are waiting: this one is not among those that are looked into
    })
  }

  private def audit(suspect: Suspect): Unit = {
    val context = suspect.session.sparkContext
    val group = s"skipstone-audit-${java.util.UUID.randomUUID()}"
    val outcome = try {
      context.setJobGroup(group, s"Skipstone looks into objects that were left out of ${suspect.entry.roots.headOption.getOrElse("")}",
        interruptOnCancel = true)
      val end = clock.schedule(
        (() => context.cancelJobGroup(group)): Runnable, suspect.bounds.milliseconds, TimeUnit.MILLISECONDS)
      try looked(suspect) finally end.cancel(false)
    } catch {
      case NonFatal(e) => failed(e)
      case e: LinkageError => failed(e)
    } finally context.clearJobGroup()
    Stats.audited(suspect.entry, outcome)
    outcome.problem.foreach(said => logInfo(s"Skipstone: an audit was not carried through: $said"))
    if (outcome.rows > 0) say(suspect, outcome)
  }

  private def failed(e: Throwable): AuditOutcome =
    AuditOutcome(0, 0L, Nil, 0L, Nil, Some(s"${e.getClass.getSimpleName}: ${Option(e.getMessage).getOrElse("").takeWhile(_ != '\n').take(500)}"))

  private def looked(suspect: Suspect): AuditOutcome = {
    val scan = suspect.scan
    val indicators = new Indicators(new FileScan(suspect.session, scan.rel), suspect.entry.roots.headOption.getOrElse(""))
    val sample = indicators.sample(scan, suspect.bounds.objects, suspect.bounds.bytes, random)
    def unchanged = suspect.still.holds
    if (!unchanged) failed(new IllegalStateException("settings or modules have changed since the query was planned"))
    else {
      val lost = indicators.lostAmong(scan, sample.objects)
      if (lost.nonEmpty && !unchanged) failed(new IllegalStateException("settings or modules have changed since the query was planned"))
      else {
        val blamed = if (lost.isEmpty) Nil else culprits(suspect, lost.map(_._1))
        if (suspect.bounds.switchesOff) blamed.foreach(index => found.add(index.id))
        AuditOutcome(sample.objects.cardinality, sample.bytes, lost.map { case (i, _) => scan.listing.files(i).getPath.toString },
          lost.map(_._2).sum, blamed.map(_.name), None)
      }
    }
  }

  /** The indexes that leave out one of the lost objects when they are asked alone; all of them if it takes several. */
  private def culprits(suspect: Suspect, lost: Seq[Int]): Seq[Responsible] = {
    val all = suspect.responsible
    val alone = if (all.size < 2) all else all.filter { index =>
      SkipstoneRule.guarded(false) {
        val choice = Json.text { g =>
          g.writeStartObject()
          g.writeStringField("root", index.root)
          Json.strings(g, "indexes", Seq(index.name))
          g.writeBooleanField("alone", true)
          g.writeEndObject()
        }
        // Indexes of datasets in other folders are left in sight by a choice: they cannot be told from this one.
        val asked = s"""{"choice":${Json.text(_.writeString(choice))},${suspect.request.drop(1)}"""
        val decision = PlannerCalls.plan(suspect.planner, asked, suspect.timeout)
        decision.kept.exists { kept =>
          val rows = suspect.scan.listing.rowsIn(Snapshot.of(suspect.planner, kept.id, kept.rows, suspect.timeout))
          lost.exists(i => rows(i) >= 0 && !kept.keeps(rows(i)))
        }
      }(_ => ())
    }
    if (alone.nonEmpty) alone else all
  }

  private def say(suspect: Suspect, outcome: AuditOutcome): Unit = {
    val entry = suspect.entry
    val done = if (suspect.bounds.switchesOff) "not used any more by this application" else "still used (spark.skipstone.audit.action=log)"
    logError(s"Skipstone: ROWS ARE LOST in ${entry.roots.headOption.getOrElse("")}: ${outcome.rows} rows of ${outcome.looked} objects " +
      s"that were looked into satisfy ${entry.condition.getOrElse("the condition")} and were left out, by ${outcome.blamed.mkString(", ")}, " +
      s"which is $done. To repeat it, run the condition with spark.skipstone.enabled=false over ${outcome.lost.head}; " +
      s"the clause was ${entry.header.map(_.path("clause").asText).getOrElse("")}")
  }
}
