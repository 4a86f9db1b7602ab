package org.apache.spark.sql.skipstone

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, Row, SparkSession}

/** What Python calls, as static methods. */
object Bridge {
  @volatile private[skipstone] var planner: Planner = _

  /** From now on queries ask this planner; null: none, and every plan is left as it is. */
  def register(planner: Planner): Unit = Companion.yieldTo(planner)

  def registered(): Planner = planner

  /** Load in the background what a first query would wait for; see [[WarmUp]]. */
  def warmUp(session: classic.SparkSession): Unit = WarmUp.start(session)

  /** Whether the session was made with [[SkipstoneExtensions]]. */
  def installed(session: SparkSession): Boolean = session match {
    case c: classic.SparkSession => c.extensions.buildPreCBORules(c).exists(_.isInstanceOf[SkipstoneRule])
    case _ => false
  }

  def threadId(): Long = Thread.currentThread().getId
  def interrupted(): Boolean = Thread.currentThread().isInterrupted
  def lastSeq(): Long = Stats.last()
  def lastChange(): Long = Stats.lastChange()
  def entriesSince(seq: Long): String = Stats.since(seq)
  def entriesChangedSince(change: Long): String = Stats.changedSince(change)
  def entriesOfLastQuery(): String = {
    val thread = threadId()
    Stats.ofLastQuery(_.thread == thread)
  }

  /** The same of a session, whichever thread planned for it: a Connect server plans on threads of its own. */
  def entriesOfLastQuery(session: String): String = Stats.ofLastQuery(_.session == session)

  /** Wait until the entries of all queries that have run by now tell so. */
  def settle(): Unit = Runs.settle()

  /** Counts of rows and objects for the scans that queries make of a dataset; see [[Indicators]]. */
  def indicators(scan: IndexedScan, root: String, queries: java.util.List[classic.Dataset[_]]): String =
    new Indicators(scan, root).of(queries.asScala.toSeq)

  /** See [[Indicators.audit]]. */
  def audit(scan: IndexedScan, root: String, queries: java.util.List[classic.Dataset[_]], objects: Int, bytes: Long, seed: Long): String =
    new Indicators(scan, root).audit(queries.asScala.toSeq, objects, bytes, seed)

  def scan(df: classic.Dataset[_]): IndexedScan = FileScan.of(df)

  /** A scan whose settings nobody changes; see [[IndexedScan.pinned]]. */
  def pinned(scan: IndexedScan, settings: java.util.Map[String, String]): IndexedScan = scan.pinned(settings)

  /** The user's function of a name, as JSON (n, k, id, d; see [[FunctionIds]]), or null when there is none. */
  def function(session: classic.SparkSession, name: String): String =
    FunctionIds.registered(session, name).map(f => functions(Seq(f.copy(name = name)))).orNull

  /** All the user's functions that the session has under a name. */
  def functions(session: classic.SparkSession): String = functions(FunctionIds.temporary(session))

  /** The user's functions in expressions over a scan's columns. */
  def functionsIn(scan: IndexedScan, expressions: java.util.List[String]): String =
    functions(scan.session.withActive(
      scan.analyzed(expressions.asScala.toSeq).flatMap(_.collect(Function.unlift(FunctionIds.of)))))

  /** The pickled function of a Python function's id, or null. */
  def functionCommand(id: String): Array[Byte] = FunctionIds.command(id)

  /** The type of an expression over a scan's columns. */
  def typeOf(scan: IndexedScan, expression: String): String =
    Json.typeText(scan.analyzed(Seq(expression)).head.dataType)

  /** A predicate over a scan's columns in the form in which a query's condition reaches the planner. */
  def condition(scan: IndexedScan, predicate: String): String = scan.condition(predicate)

  private def functions(found: Seq[FunctionId]): String = Json.text { g =>
    g.writeStartArray()
    found.distinct.foreach { f =>
      g.writeStartObject()
      Seq("n" -> f.name, "k" -> f.kind, "id" -> f.id).foreach { case (k, v) => g.writeStringField(k, v) }
      g.writeBooleanField("d", f.deterministic)
      g.writeEndObject()
    }
    g.writeEndArray()
  }

  /** List everything anew; a JSON line an object: p (path), l (length), m (milliseconds), e (e-tag or ""). */
  def listing(scan: IndexedScan, localFile: String): Int = scan.list(localFile)

  /** The same of some objects and folders only, without listing the rest. What is not there is left out. */
  def listing(scan: IndexedScan, paths: java.util.List[String], localFile: String): Int =
    scan.list(paths.asScala.toSeq, localFile)

  /** Of the objects of a file's lines those that are not as they were listed, in the same form; -1 if only another listing tells. */
  def changed(scan: IndexedScan, pathsFile: String, localFile: String): Int = scan.changed(pathsFile, localFile)

  /** Of the objects of a file's lines those that are in no file system any more, in the same form. */
  def gone(scan: IndexedScan, pathsFile: String, localFile: String): Int = scan.gone(pathsFile, localFile)

  /** The objects of the file's lines (as `listing` writes them), numbered from 0 in `__skipstone_object`. */
  def scanObjects(scan: IndexedScan, pathsFile: String): classic.Dataset[Row] = scan.read(pathsFile)

  /** What a DataFrame over `scanObjects` has, as columns in bytes, or null where they only come in rows; see [[ColumnBatches]]. */
  def columnBatches(df: classic.Dataset[_]): classic.Dataset[Row] = ColumnBatches.of(df).orNull

  /** The column of `scanObjects` that is not NULL in a record that cannot be read, or null; see [[FileScan]]. */
  def unreadable(scan: IndexedScan): String = scan.unreadable().orNull

  /** Metadata files as the Parquet files that they are; Spark's own reader takes names with an underscore for hidden. */
  def parts(session: classic.SparkSession, paths: java.util.List[String]): classic.Dataset[Row] =
    FileScan.parts(session, paths.asScala.toSeq.map(new Path(_)))

  /** Collect a DataFrame of one binary column without telling its plan; see [[SilentJob]]. */
  def collectSilently(df: classic.Dataset[_], localFile: String): Int = SilentJob.collect(df, localFile)

  /** Let the Python workers of a session's jobs find an archive; see [[SessionFiles]]. */
  def addToSession(session: classic.SparkSession, archive: String): Unit = SessionFiles.add(session, archive)

  /** The offsets of a zone; see [[Zones]]. */
  def zoneRules(id: String): String = Zones.rules(id)

  def maxSplitBytes(scan: IndexedScan, pathsFile: String): Long = scan.maxSplitBytes(pathsFile)

  /** `columnsJson`: a list of lists of names. Returns the number of lines written; see [[Footers]]. */
  def footers(scan: IndexedScan, pathsFile: String, columnsJson: String, outFile: String): Int =
    Footers.write(FileScan.plain(scan), pathsFile, columnsJson, outFile)

  /** The files directly in a folder, and ranges of one file; see [[StoredFiles]]. */
  def listFolder(session: classic.SparkSession, folder: String, localFile: String): Unit =
    StoredFiles.list(PlannerCalls.caller(session), folder, localFile)

  def readRanges(session: classic.SparkSession, path: String, length: Long, ranges: String, localFile: String): String =
    StoredFiles.read(PlannerCalls.caller(session), path, length, ranges, localFile)

  /** Hadoop's settings with a session's own in them: of the query that is being planned, where this is for one. */
  def hadoopSettings(session: classic.SparkSession): Configuration = PlannerCalls.caller(session).sessionState.newHadoopConf()
}
