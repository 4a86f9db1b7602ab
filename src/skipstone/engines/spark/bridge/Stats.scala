package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.QueryPlanningTracker
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
  var bytesTotal, bytesSkipped = 0L
  var listingNs, plannerNs, objectsNs, matchNs, totalNs = 0L
  var header: Option[JsonNode] = None
  /** What the plan shows of it. */
  var planned: Option[Outcome] = None
  var condition, error: Option[String] = None
  /** Sentences on what was not used, besides those of the planner. */
  var notes = Seq.empty[String]
  /** What the planned scan lists its objects by: tells the scan in the plan that runs. */
  var location = new WeakReference[FileIndex](null)
  /** Hashes of its filters, which tell it from others of the same objects. */
  var filters = Set.empty[Int]
  @volatile var runMs: Option[Long] = None
  @volatile var run: Option[ScanRun] = None

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
    g.writeNumberField("kept", kept)
    g.writeNumberField("skipped", skipped)
    g.writeNumberField("unindexed", unindexed)
    g.writeNumberField("stale", stale)
    g.writeEndObject()
    g.writeBooleanField("listed", listed)
    g.writeNumberField("bytes_total", bytesTotal)
    g.writeNumberField("bytes_skipped", bytesSkipped)
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

  def add(entry: Entry): Unit = {
    entry.query.add(entry)
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
