package org.apache.spark.sql.skipstone

import java.util.concurrent.atomic.AtomicLong

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/** What was decided about one scan of one plan. Filled by one thread, then published once. */
private[skipstone] class Entry(val session: String, val roots: Seq[String], val format: String, val table: Option[String]) {
  var sequence = 0L
  val thread: Long = Thread.currentThread().getId
  val query: Long = Stats.queryId()
  val timeMs: Long = System.currentTimeMillis()
  var listed, wrapped = false
  var total, kept, skipped, unindexed, stale = 0
  var bytesTotal, bytesSkipped = 0L
  var listingNs, plannerNs, matchNs, totalNs = 0L
  var header: Option[JsonNode] = None
  var condition, error: Option[String] = None

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
    g.writeNumberField("seq", sequence)
    g.writeNumberField("thread", thread)
    g.writeStringField("session", session)
    g.writeNumberField("query", query)
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
    Seq("clause", "not_used", "used", "metadata_bytes_read", "indexed", "refuse", "skipped_by", "plan").foreach(passOn)
    seconds("planning_seconds", totalNs)
    g.writeObjectFieldStart("seconds")
    seconds("listing", listingNs)
    seconds("planner", plannerNs)
    seconds("match", matchNs)
    g.writeEndObject()
    g.writeStringField("condition", condition.orNull)
    g.writeStringField("error", error.orNull)
    g.writeEndObject()
  }
}

/** The latest entries of this JVM. */
private[skipstone] object Stats {
  private val Capacity = 10000
  private val entries = new java.util.ArrayDeque[Entry]()
  private val sequence = new AtomicLong
  private val queries = new AtomicLong
  // A plan and its subqueries share a tracker; it has no id, so it is given one while it lives.
  private val ids = new java.util.WeakHashMap[QueryPlanningTracker, java.lang.Long]()

  def queryId(): Long = QueryPlanningTracker.get match {
    case Some(tracker) => ids.synchronized {
      ids.computeIfAbsent(tracker, _ => java.lang.Long.valueOf(queries.incrementAndGet()))
    }
    case None => queries.incrementAndGet()
  }

  def add(entry: Entry): Unit = entries.synchronized {
    entry.sequence = sequence.incrementAndGet()
    if (entries.size >= Capacity) entries.removeFirst()
    entries.addLast(entry)
  }

  def last(): Long = sequence.get

  def since(seq: Long): String = {
    val found = entries.synchronized(entries.toArray(new Array[Entry](0))).filter(_.sequence > seq)
    Json.text { g =>
      g.writeStartArray()
      found.foreach(_.write(g))
      g.writeEndArray()
    }
  }
}
