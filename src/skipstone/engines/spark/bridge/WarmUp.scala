package org.apache.spark.sql.skipstone

import java.nio.file.Files
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic
import org.apache.spark.sql.internal.StaticSQLConf

/**
 * Plans a query over an empty folder, beside whatever a new application does next: a first query would otherwise wait until the
 * classes of Spark's optimizer and ours are loaded, which takes longer than all that it does. Nobody learns of it: nothing is
 * counted, said or remembered of what is planned on this thread, no plug-in is imported, and no job runs.
 */
private[skipstone] object WarmUp extends Logging {
  private val done = new AtomicBoolean
  private val rehearsing = new ThreadLocal[Boolean]

  /** Whether this thread plans for nobody. */
  def isActive: Boolean = rehearsing.get

  /** Once in a JVM; not with Hive's catalog, which a query would open, nor on a cluster, whose executors would be asked. */
  def start(session: classic.SparkSession): Unit =
    if (session.sparkContext.isLocal && session.sparkContext.conf.get(StaticSQLConf.CATALOG_IMPLEMENTATION.key, "in-memory") != "hive" &&
        done.compareAndSet(false, true)) {
      val thread = new Thread(() => rehearse(session), "skipstone-warm-up")
      thread.setDaemon(true)
      thread.setPriority(Thread.MIN_PRIORITY)
      thread.setContextClassLoader(Thread.currentThread().getContextClassLoader)
      thread.start()
    }

  /** Whatever fails here is left to the query that it concerns. */
  def rehearse(session: classic.SparkSession): Unit = {
    rehearsing.set(true)
    try {
      val folder = Files.createTempDirectory("skipstone-")
      try rehearse(session.newSession(), folder.toUri.toString) finally Files.delete(folder) // a session of its own: it goes with it
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) => logDebug("Skipstone's planning was not rehearsed", e)
    } finally rehearsing.remove()
  }

  private def rehearse(session: classic.SparkSession, folder: String): Unit =
    session.read.schema("i BIGINT, d DOUBLE, s STRING, t TIMESTAMP").parquet(folder)
      .where("i = 1 AND d < 2 AND s = 'a' AND t > timestamp'2000-01-01'").queryExecution.optimizedPlan
}
