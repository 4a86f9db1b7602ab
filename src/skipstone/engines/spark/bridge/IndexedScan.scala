package org.apache.spark.sql.skipstone

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.internal.SQLConf

/** A scan as the indexing side uses it: describe it, list it, read some of its objects. */
abstract class IndexedScan {
  def session: classic.SparkSession
  def isPinned: Boolean
  private[skipstone] def described: Described
  /** The scan in a plan, for what is said over its columns. */
  private[skipstone] def leaf: LogicalPlan

  /** What is read and how, at this moment. */
  def describe(): String = Json.text(described.write(_, described.environments(), None, full = true))

  /**
   * The same scan by a clone of its session, which nobody else has: its settings stay as the session's are now, but for
   * the given ones. What the executors' JVMs are like is known afterwards.
   */
  def pinned(settings: java.util.Map[String, String]): IndexedScan

  /** Write all objects, listed anew, to a local file; gives their number. */
  private[skipstone] def list(file: String): Int

  /** The same of some objects and folders only. */
  private[skipstone] def list(paths: Seq[String], file: String): Int

  /** Write those of the named objects that are not as they were listed; gives their number, or -1 if only another listing tells. */
  private[skipstone] def changed(pathsFile: String, file: String): Int = -1

  /** Write those of the named objects that are not there any more; gives their number. Looks at folders where they have many. */
  private[skipstone] def gone(pathsFile: String, file: String): Int = {
    val conf = hadoop
    val missing = paths(pathsFile).map(new Path(_)).groupBy(_.getParent).toSeq.flatMap { case (folder, files) =>
      files.filterNot(existing(folder, files.size, conf))
    }
    write(missing.iterator.map(p => new FileStatus(0L, false, 0, 0L, 0L, p)), file)
  }

  /** Tells which files of a folder are there, if about so many are asked for. */
  protected def existing(folder: Path, count: Int, conf: Configuration): Path => Boolean = {
    val fs = folder.getFileSystem(conf)
    if (count < IndexedScan.MostSingle) fs.exists else {
      val names = try fs.listStatus(folder).map(_.getPath.getName).toSet catch { case _: FileNotFoundException => Set.empty[String] }
      file => names(file.getName)
    }
  }

  /** The named objects as a DataFrame with one more column, the number of the object's line. */
  private[skipstone] def read(pathsFile: String): classic.Dataset[Row]

  /** The column in which the reader shows records that it cannot read, if what it makes of the rest of them depends on the columns asked for. */
  private[skipstone] def unreadable(): Option[String]

  /** Files longer than this may be split over several tasks, as Spark computes it for `read`. */
  private[skipstone] def maxSplitBytes(pathsFile: String): Long

  private[skipstone] def hadoop: Configuration = session.sessionState.newHadoopConfWithOptions(described.options)

  protected def cloned(settings: java.util.Map[String, String]): classic.SparkSession = {
    Executors.ask(session.sparkContext)
    val clone = session.cloneSession()
    SessionFiles.cloned(session, clone)
    settings.asScala.foreach { case (name, value) => clone.conf.set(name, value) }
    clone
  }

  /** SQL expressions over the scan's columns, resolved. */
  private[skipstone] def analyzed(sql: Seq[String]): Seq[Expression] =
    SilentJob.planned(session, parse => Project(sql.map(parse(_)).map {
      case named: NamedExpression => named
      case other => UnresolvedAlias(other)
    }, leaf)).analyzed match {
      case Project(expressions, _) => expressions
      case other => other.expressions
    }

  /**
   * A predicate as a query's condition arrives at the rule; null when the optimizer leaves none.
   *
   * Without the IS NOT NULL terms that Spark infers for a whole condition and not for a part of an OR.
   */
  private[skipstone] def condition(predicate: String): String = {
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.CONSTRAINT_PROPAGATION_ENABLED, false)
    SQLConf.withExistingConf(conf) {
      val query = SilentJob.planned(session, parse => Filter(parse(predicate), leaf))
      if (query.analyzed.expressions.exists(_.containsPattern(CURRENT_LIKE))) throw new IllegalArgumentException(
        "it asks for the current time or user, which is another one in every query")
      Capture.of(query.optimizedPlan).map(c => Json.text(new ExpressionJson(described.columns, _).write(c))).orNull
    }
  }

  private lazy val tasks: Option[Int] = session.sessionState.conf.filesMinPartitionNum

  /**
   * Spark cuts files into pieces for as many cores as there are when the job is made, and which objects are read whole is said
   * before: executors that come in between change nothing in a job's own session.
   */
  protected def holdTasks(): Unit = if (isPinned)
    session.conf.set(SQLConf.FILES_MIN_PARTITION_NUM.key, tasks.getOrElse(session.leafNodeDefaultParallelism).toLong)

  protected def qualified(path: String): Path = {
    val p = new Path(path)
    p.getFileSystem(hadoop).makeQualified(p)
  }

  protected def within(path: Path, root: Path): Boolean =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).contains(root)

  /** Write objects as lines of JSON: p (path), l (length), m (milliseconds), e (e-tag or ""). */
  protected def write(files: Iterator[FileStatus], localFile: String): Int = {
    val writer = Files.newBufferedWriter(Paths.get(localFile), UTF_8)
    var count = 0
    try files.foreach { f =>
      writer.write(Json.text { g =>
        g.writeStartObject()
        g.writeStringField("p", f.getPath.toString)
        g.writeNumberField("l", f.getLen)
        g.writeNumberField("m", f.getModificationTime)
        g.writeStringField("e", Listing.etag(f))
        g.writeEndObject()
      })
      writer.write('\n')
      count += 1
    } finally writer.close()
    count
  }

  /** The paths in lines of JSON. */
  protected def paths(localFile: String): Seq[String] =
    Files.readAllLines(Paths.get(localFile), UTF_8).asScala.toSeq.map(Json.mapper.readTree(_).path("p").asText)

  protected def notListed(path: String): Nothing =
    throw new IllegalArgumentException(s"$path was not in the last listing of this scan")

  protected def splitBytes(lengths: Seq[Long]): Long = {
    val conf = session.sessionState.conf
    val total = lengths.map(_ + conf.filesOpenCostInBytes).sum
    val tasks = conf.filesMinPartitionNum.getOrElse(session.leafNodeDefaultParallelism)
    math.min(conf.filesMaxPartitionBytes, math.max(conf.filesOpenCostInBytes, total / math.max(tasks, 1)))
  }
}

private object IndexedScan {
  private val MostSingle = 8
}
