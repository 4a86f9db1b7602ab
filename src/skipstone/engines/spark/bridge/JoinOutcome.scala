package org.apache.spark.sql.skipstone

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.execution.skipstone.KnownCondition

/** What keys of joins and values of subqueries left out of a scan, for the statistics of its query. */
private[skipstone] class JoinOutcome(known: Seq[KnownCondition]) {
  private val keys = known.map(_.text).distinct
  val reason: String = {
    val (values, joins) = known.partition(_.isInstanceOf[SubqueryCondition])
    Seq(joins -> "keys of joins", values -> "values of subqueries").collect { case (found, what) if found.nonEmpty => what }
      .mkString(" and ")
  }
  var skipped = 0
  var bytesSkipped, nanoseconds = 0L
  var header: Option[JsonNode] = None
  var error: Option[String] = None

  def write(g: JsonGenerator): Unit = {
    g.writeStartObject()
    Json.strings(g, "keys", keys)
    g.writeStringField("reason", reason)
    g.writeNumberField("skipped", skipped)
    g.writeNumberField("bytes_skipped", bytesSkipped)
    g.writeNumberField("seconds", nanoseconds / 1e9)
    g.writeStringField("clause", header.map(_.path("clause")).filter(_.isTextual).map(_.asText).orNull)
    Json.strings(g, "used", header.toSeq.flatMap(Decision.texts(_, "used")))
    Json.strings(g, "not_used", header.toSeq.flatMap(Decision.texts(_, "not_used")) ++ error)
    g.writeEndObject()
  }
}
