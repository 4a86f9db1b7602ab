package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.FileIndex

/** What was decided about one scan of one plan. Filled by one thread, then published once; a run completes it later. */
private[skipstone] class Entry(val session: String, val roots: Seq[String], val format: String, val table: Option[String]) {
  var sequence = 0L
  /** Grows with everything that is published about any entry. */
  @volatile var change = 0L
  val thread: Long = Thread.currentThread().getId
  val query: Query = Stats.query()
  val timeMs: Long = System.currentTimeMillis()
  var listed, wrapped = false
  var total, kept, skipped, unindexed, stale = 0
  /** Of the skipped ones, those that the first rows of the query do not need. */
  var byTop = 0
  var bytesTotal, bytesSkipped = 0L
  /** What a table format's own pruning left out before: files and bytes, where that is known. */
  var prunedByFormat: Option[(Long, Long)] = None
  var listingNs, plannerNs, objectsNs, matchNs, totalNs = 0L
  var header: Option[JsonNode] = None
  /** What the plan shows of it. */
  var planned: Option[Outcome] = None
  var condition, error: Option[String] = None
  /** Sentences on what was not used, besides those of the planner. */
  var notes = Seq.empty[String]
  /** What the planned scan lists its objects by: tells the scan in the plan that runs. */
  @volatile var location = new WeakReference[AnyRef](null)
  /** Hashes of its filters, which tell it from others of the same objects. */
  var filters = Set.empty[Int]
  /** What keys of joins and values of subqueries left out besides, when the query ran. */
  @volatile var joins: Option[JoinOutcome] = None
  /** What metadata answered of its counts and extremes. */
  @volatile var tally: Option[TallyOutcome] = None
  /** What was found in objects that it left out. */
  @volatile var audit: Option[AuditOutcome] = None
  @volatile var runMs: Option[Long] = None
  @volatile var run: Option[ScanRun] = None

  /** Nothing is left out after all. */
  def keepAll(): Unit = {
    kept = total
    skipped = 0
    byTop = 0
    bytesSkipped = 0
  }

  /** The same, for a reason that is said. */
  def keepAll(note: String): Unit = {
    notes = notes :+ note
    keepAll()
  }

  /** It is decided, after a start. */
  def decided(start: Long): Unit = {
    totalNs = System.nanoTime() - start
    planned.foreach(_.nanoseconds = totalNs)
  }

  /** What is read, in a line of the log. */
  def logged: String = f"Skipstone: read $kept of $total objects ($bytesSkipped of $bytesTotal bytes skipped) of " +
    f"${roots.headOption.getOrElse("")} in ${totalNs / 1e6}%.1f ms by ${header.map(_.path("clause").asText).getOrElse("")}"

  /** Reading metadata: what the planner says of itself, and fetching the table of objects. */
  private def metadataNs: Long = {
    val told = header.map(_.path("metadata_read_seconds").asDouble(0)).getOrElse(0.0)
    math.min((told * 1e9).toLong, plannerNs)
  }

  def write(g: JsonGenerator): Unit = {
    def seconds(name: String, ns: Long): Unit = g.writeNumberField(name, ns / 1e9)
    def passOn(name: String): Unit = {
      g.writeFieldName(name)
      header.map(_.path(name)).filterNot(_.isMissingNode) match {
        case Some(node) => g.writeRawValue(node.toString)
        case None => g.writeNull()
      }
    }
    g.writeStartObject()
    def counted(name: String, value: Option[Long]): Unit = value.filter(_ >= 0) match {
      case Some(n) => g.writeNumberField(name, n)
      case None => g.writeNullField(name)
    }
    g.writeNumberField("seq", sequence)
    g.writeNumberField("change", change)
    g.writeNumberField("thread", thread)
    g.writeStringField("session", session)
    g.writeNumberField("query", query.id)
    g.writeNumberField("time_ms", timeMs)
    Json.strings(g, "roots", roots)
    g.writeStringField("format", format)
    g.writeStringField("table", table.orNull)
    g.writeObjectFieldStart("objects")
    g.writeNumberField("total", total)
    val more = joins.map(_.skipped).getOrElse(0) + tally.map(_.skipped).getOrElse(0)
    g.writeNumberField("kept", kept - more)
    g.writeNumberField("skipped", skipped + more)
    g.writeNumberField("unindexed", unindexed)
    g.writeNumberField("stale", stale)
    g.writeEndObject()
    prunedByFormat.foreach { case (files, bytes) =>
      g.writeNumberField("pruned_by_format", files)
      g.writeNumberField("bytes_pruned_by_format", bytes)
    }
    g.writeNumberField("skipped_by_top", byTop)
    g.writeStringField("top", header.map(_.path("top").path("question")).filter(_.isTextual).map(_.asText).orNull)
    g.writeBooleanField("listed", listed)
    g.writeNumberField("bytes_total", bytesTotal)
    g.writeNumberField("bytes_skipped",
      bytesSkipped + joins.map(_.bytesSkipped).getOrElse(0L) + tally.map(_.bytesSkipped).getOrElse(0L))
    joins.foreach { j =>
      g.writeFieldName("joins")
      j.write(g)
    }
    tally.foreach { t =>
      g.writeFieldName("aggregates")
      t.write(g)
    }
    audit.foreach { a =>
      g.writeFieldName("audit")
      a.write(g)
    }
    Json.strings(g, "not_used", header.toSeq.flatMap(_.path("not_used").elements().asScala.map(_.asText)) ++ notes)
    Seq("clause", "used", "metadata_bytes_read", "indexed", "refuse", "plan").foreach(passOn)
    seconds("planning_seconds", totalNs)
    g.writeObjectFieldStart("seconds")
    seconds("listing", listingNs)
    seconds("planner", plannerNs - metadataNs)
    seconds("metadata", metadataNs + objectsNs)
    seconds("match", matchNs - objectsNs)
    g.writeEndObject()
    counted("run_ms", runMs)
    counted("scan_ms", run.map(_.milliseconds))
    counted("rows_read", run.map(_.rows))
    counted("files_read", run.map(_.files))
    g.writeStringField("condition", condition.orNull)
    g.writeStringField("error", error.orNull)
    g.writeEndObject()
  }
}

/** A plan with its subqueries, and the entries of their scans. */
private[skipstone] class Query(val id: Long) {
  private val entries = ArrayBuffer.empty[Entry]

  def add(entry: Entry): Unit = entries.synchronized(entries += entry)

  /** The entry of a scan of this plan, of several with one location the likeliest that no keys were asked for yet. */
  def entryOf(location: FileIndex, filters: Set[Int]): Option[Entry] =
    entries.synchronized(entries.toSeq).filter(e => (e.location.get eq location) && e.joins.isEmpty && e.tally.isEmpty)
      .sortBy(e => -e.filters.count(filters)).headOption

  /** Match the scans that ran to the entries: by what lists their objects and, of a self-join, by their filters. */
  def ran(scans: Seq[ScanRun]): Seq[(Entry, Option[ScanRun])] = {
    val planned = entries.synchronized(entries.toSeq)
    val likely = for {
      entry <- planned
      location = entry.location.get
      scan <- scans if location != null && scan.location == location
    } yield (entry, scan, scan.location eq location, scan.filters.count(entry.filters.contains))
    val found = new java.util.IdentityHashMap[Entry, ScanRun]()
    likely.sortBy { case (_, _, same, filters) => (!same, -filters) }.foreach { case (entry, scan, _, _) =>
      if (!found.containsKey(entry) && !found.containsValue(scan)) found.put(entry, scan)
    }
    planned.map(entry => entry -> Option(found.get(entry)))
  }
}

/** The latest entries of this JVM. */
private[skipstone] object Stats {
  private val Capacity = 10000
  private val entries = new java.util.ArrayDeque[Entry]()
  private val sequence = new AtomicLong
  private val changes = new AtomicLong
  private val ids = new AtomicLong
  // A plan and its subqueries share a tracker; it has no id, so it is given one while it lives.
  private val queries = new java.util.WeakHashMap[QueryPlanningTracker, Query]()

  def query(): Query = QueryPlanningTracker.get match {
    case Some(tracker) => queries.synchronized {
      queries.computeIfAbsent(tracker, _ => new Query(ids.incrementAndGet()))
    }
    case None => new Query(ids.incrementAndGet())
  }

  /** The query that this thread runs, if any of its scans was planned; Spark 4.0 sets no tracker while it runs one. */
  def queryOf(session: classic.SparkSession): Option[Query] = for {
    id <- Option(session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
    running <- Option(SQLExecution.getQueryExecution(id.toLong))
    query <- queries.synchronized(Option(queries.get(running.tracker)))
  } yield query

  /** Keys of joins or values of subqueries were asked for while a query ran. */
  def joined(entry: Entry, outcome: JoinOutcome): Unit = entries.synchronized {
    entry.joins = Some(outcome)
    entry.change = changes.incrementAndGet()
  }

  /** Metadata was asked for counts and extremes while a query ran. */
  def tallied(entry: Entry, outcome: TallyOutcome): Unit = entries.synchronized {
    entry.tally = Some(outcome)
    entry.change = changes.incrementAndGet()
  }

  /** Objects that a scan left out were looked into. */
  def audited(entry: Entry, outcome: AuditOutcome): Unit = {
    Monitoring.current().foreach(_.audited(outcome))
    entries.synchronized {
      entry.audit = Some(outcome)
      entry.change = changes.incrementAndGet()
    }
  }

  def add(entry: Entry): Unit = {
    entry.query.add(entry)
    Monitoring.current().foreach(_.add(entry))
    entries.synchronized {
      entry.sequence = sequence.incrementAndGet()
      entry.change = changes.incrementAndGet()
      if (entries.size >= Capacity) entries.removeFirst()
      entries.addLast(entry)
    }
  }

  /** A query has run, perhaps once more. */
  def ran(tracker: QueryPlanningTracker, nanoseconds: Long)(scans: => Seq[ScanRun]): Unit = {
    val query = queries.synchronized(queries.get(tracker))
    if (query != null) {
      val completed = query.ran(scans)
      entries.synchronized(completed.foreach { case (entry, run) =>
        run.foreach(_.forget())
        entry.run = run
        entry.runMs = Some(nanoseconds / 1000000)
        entry.change = changes.incrementAndGet()
      })
    }
  }

  def last(): Long = sequence.get

  def lastChange(): Long = changes.get

  def since(seq: Long): String = written(all().filter(_.sequence > seq))

  def changedSince(change: Long): String = written(entries.synchronized(all().filter(_.change > change)))

  def changedSince(change: Long, session: String): String =
    written(entries.synchronized(all().filter(e => e.change > change && e.session == session)))

  /** The entries of the latest query among those of a thread, or of a session. */
  def ofLastQuery(owned: Entry => Boolean): String = {
    val own = all().filter(owned)
    written(own.filter(_.query eq own.last.query))
  }

  private def all(): Array[Entry] = entries.synchronized(entries.toArray(new Array[Entry](0)))

  private def written(found: Array[Entry]): String = Json.text { g =>
    g.writeStartArray()
    found.foreach(_.write(g))
    g.writeEndArray()
  }
}
