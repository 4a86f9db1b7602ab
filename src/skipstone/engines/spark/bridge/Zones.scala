package org.apache.spark.sql.skipstone

import java.time.{Instant, ZoneOffset}

import org.apache.spark.sql.catalyst.util.DateTimeUtils

/** Time zones as this JVM's functions of times see them. */
private[skipstone] object Zones {
  /** Rules that go on for ever are written out until then. */
  private val Until = Instant.parse("2200-01-01T00:00:00Z")

  /** JSON: `first`, the offset before all transitions; `transitions`, pairs of the second and the offset from then on; `until`. */
  def rules(id: String): String = Json.text { g =>
    val rules = DateTimeUtils.getZoneId(id).getRules
    val transitions = Iterator.iterate(rules.nextTransition(Instant.MIN))(t => rules.nextTransition(t.getInstant))
      .takeWhile(t => t != null && t.getInstant.isBefore(Until)).toSeq
    val first = transitions.headOption.map(_.getOffsetBefore).getOrElse(rules.getOffset(Instant.EPOCH): ZoneOffset)
    g.writeStartObject()
    g.writeNumberField("first", first.getTotalSeconds)
    g.writeNumberField("until", if (rules.isFixedOffset) Long.MaxValue / 1000000 * 2 else Until.getEpochSecond)
    g.writeArrayFieldStart("transitions")
    transitions.foreach { t =>
      g.writeStartArray()
      g.writeNumber(t.toEpochSecond)
      g.writeNumber(t.getOffsetAfter.getTotalSeconds)
      g.writeEndArray()
    }
    g.writeEndArray()
    g.writeEndObject()
  }
}
