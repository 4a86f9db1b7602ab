package org.apache.spark.sql.skipstone

import java.nio.file.{Files, Paths}
import java.nio.file.attribute.BasicFileAttributes
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.HadoopFsRelation

/** Objects whose rows were counted, as they were listed: for the sake of their rows something else is not read. */
private[skipstone] class Counted(statuses: Seq[FileStatus], fs: HadoopFsRelation) {
  private lazy val hadoop =
    fs.sparkSession.asInstanceOf[classic.SparkSession].sessionState.newHadoopConfWithOptions(fs.options)

  /** Whether they are still there, as they were, and read whole. By the file system: Spark's listing may be old. */
  def areAsListed: Boolean = !TopK.dropsRows(fs) && all(statuses.groupBy(_.getPath.getParent).toSeq) { case (folder, here) =>
    if (isLocal(folder)) all(here, alone = Counted.FewFiles)(isSameLocally) else if (here.size <= Counted.MostLookups) all(here)(isSame) else areIn(folder, here)
  }

  /**
   * Those that are not as they were, by the file system. None if some are not local files: then a listing tells it sooner, and
   * tells e-tags. A local file's state is its length and time, which is what a listing has of it.
   */
  def changedLocally: Option[Seq[FileStatus]] = if (!statuses.map(_.getPath.getParent).distinct.forall(isLocal)) None
    else Some(statuses.asJava.parallelStream().filter(!isSameLocally(_)).toList.asScala.toSeq)

  private def isLocal(folder: Path): Boolean =
    folder.toUri.getScheme == "file" && Try(folder.getFileSystem(hadoop)).toOption.exists(f => Counted.Local(f.getClass.getName))

  /**
   * Hadoop takes several calls and a new path for each file; thousands may be looked at here, and Spark's listing has no more of a
   * local file than this.
   */
  private def isSameLocally(status: FileStatus): Boolean = Try {
    val now = Files.readAttributes(Paths.get(status.getPath.toUri.getPath), classOf[BasicFileAttributes])
    now.isRegularFile && now.size == status.getLen && now.lastModifiedTime.toMillis == status.getModificationTime
  }.getOrElse(false)

  private def all[T](looked: Seq[T], alone: Int = 3)(holds: T => Boolean): Boolean =
    if (looked.size < alone) looked.forall(holds) else looked.asJava.parallelStream().allMatch(holds(_))

  private def isSame(status: FileStatus): Boolean =
    Try(status.getPath.getFileSystem(hadoop).getFileStatus(status.getPath)).toOption.exists(isAsListed(status, _))

  /** One request for a thousand objects, where looking at each would be one for each. */
  private def areIn(folder: Path, here: Seq[FileStatus]): Boolean = Try {
    val found = new ConcurrentHashMap[Path, FileStatus]()
    folder.getFileSystem(hadoop).listStatus(folder).foreach(s => found.put(s.getPath, s))
    here.forall(s => Option(found.get(s.getPath)).exists(isAsListed(s, _)))
  }.getOrElse(false)

  // Two e-tags tell more than times, which a store may give to the second in one answer and finer in another.
  private def isAsListed(before: FileStatus, now: FileStatus): Boolean = {
    val (tag, old) = (Listing.etag(now), Listing.etag(before))
    if (tag.nonEmpty && old.nonEmpty) tag == old && now.getLen == before.getLen else Listing.sameState(before, now)
  }
}

private object Counted {
  private val MostLookups = 16
  /** So few local files are looked at sooner than other threads would take part. */
  private val FewFiles = 512

  /** What reads the disk as it is: Hadoop's own, and what stands in for it where Hive is on the class path. */
  private val Local = Set("org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")
}
