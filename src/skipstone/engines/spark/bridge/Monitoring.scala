package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.concurrent.TimeUnit.NANOSECONDS

import com.codahale.metrics.{Gauge, MetricRegistry}

import org.apache.spark.SparkEnv
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.metrics.source.Source

/**
 * Counters and timers for whoever watches an application: a source of Spark's own metrics system, so that every sink
 * that Spark has (the Prometheus servlet, JMX, Graphite, CSV files) shows them. They count from the start of the
 * context; docs/operations.md says what each means and when to be alarmed.
 */
private[skipstone] class Monitoring extends Source {
  override val sourceName: String = "skipstone"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val planned = metricRegistry.counter("scans.planned")
  private val skipping = metricRegistry.counter("scans.skipping")
  private val stoodAside = metricRegistry.counter("scans.stoodAside")
  private val failed = metricRegistry.counter("scans.failed")
  private val objects = metricRegistry.meter("objects.total")
  private val skipped = metricRegistry.counter("objects.skipped")
  private val stale = metricRegistry.meter("objects.stale")
  private val unindexed = metricRegistry.counter("objects.unindexed")
  private val bytes = metricRegistry.counter("bytes.total")
  private val bytesSkipped = metricRegistry.counter("bytes.skipped")
  private val metadataBytes = metricRegistry.counter("metadata.bytesRead")
  private val audits = metricRegistry.counter("audits.made")
  private val auditsFailed = metricRegistry.counter("audits.failed")
  private val auditedObjects = metricRegistry.counter("audits.objects")
  private val rowsLost = metricRegistry.counter("audits.rowsLost")
  private val planning = metricRegistry.timer("planning")
  metricRegistry.register("objects.staleShare", new Gauge[Double] {
    override def getValue: Double = {
      val all = objects.getFifteenMinuteRate
      if (all > 0) stale.getFifteenMinuteRate / all else 0.0
    }
  })

  def add(entry: Entry): Unit = {
    planned.inc()
    if (entry.wrapped) skipping.inc()
    objects.mark(entry.total)
    skipped.inc(if (entry.wrapped) entry.skipped else 0)
    stale.mark(entry.stale)
    unindexed.inc(entry.unindexed)
    bytes.inc(entry.bytesTotal)
    bytesSkipped.inc(if (entry.wrapped) entry.bytesSkipped else 0L)
    entry.header.foreach(h => metadataBytes.inc(h.path("metadata_bytes_read").asLong(0)))
    planning.update(entry.totalNs, NANOSECONDS)
    entry.error.foreach { said =>
      failed.inc()
      reason(said).foreach(name => metricRegistry.counter(s"failures.$name").inc())
    }
  }

  def audited(outcome: AuditOutcome): Unit = {
    audits.inc()
    auditedObjects.inc(outcome.looked)
    if (outcome.problem.isDefined) auditsFailed.inc()
    rowsLost.inc(outcome.rows)
  }

  def ranWithout(): Unit = stoodAside.inc()

  /** The name of what was thrown; a bounded number of different ones. */
  private def reason(said: String): Option[String] = {
    val name = said.takeWhile(_ != ':').filter(c => c.isLetterOrDigit).take(60)
    if (name.isEmpty) None
    else if (metricRegistry.getCounters.size < Monitoring.MostCounters ||
      metricRegistry.getCounters.containsKey(s"failures.$name")) Some(name)
    else Some("others")
  }
}

private[skipstone] object Monitoring {
  private val MostCounters = 60
  private var known = new WeakReference[MetricsSystem](null)
  @volatile private var source: Monitoring = _

  /** The source of the present context; a context that follows another in one JVM has a metrics system of its own. */
  def current(): Option[Monitoring] = SkipstoneRule.guarded(Option.empty[Monitoring]) {
    Option(SparkEnv.get).map { env =>
      synchronized {
        if (known.get ne env.metricsSystem) {
          source = new Monitoring
          env.metricsSystem.registerSource(source)
          known = new WeakReference(env.metricsSystem)
        }
        source
      }
    }
  }(_ => ())
}
