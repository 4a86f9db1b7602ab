package org.apache.spark.sql.skipstone

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, UnsupportedFileSystemException}

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** The files of a table, as index jobs use them: its newest snapshot is the listing. */
private[skipstone] class TableFiles(source: TableSource, override val isPinned: Boolean = false) extends IndexedScan {
  @volatile private var objects = Map.empty[String, TableFile]

  override val session: classic.SparkSession = source.session
  override private[skipstone] val described: Described = source.described
  override private[skipstone] def leaf: LogicalPlan = source.leaf

  override def pinned(settings: java.util.Map[String, String]): TableFiles =
    new TableFiles(source.by(cloned(settings)), isPinned = true)

  override private[skipstone] def list(file: String): Int = record(source.files(), file)

  override private[skipstone] def list(paths: Seq[String], file: String): Int = {
    val wanted = paths.map(known).toSet
    def below(path: Path): Boolean = Iterator.iterate(path)(_.getParent).takeWhile(_ != null).exists(wanted)
    record(source.files().filter(f => below(f.status.getPath)), file)
  }

  // A table may have a client of its own for its files, and Hadoop need not know their scheme.
  private def known(path: String): Path = try qualified(path) catch { case _: UnsupportedFileSystemException => new Path(path) }

  override protected def existing(folder: Path, count: Int, conf: Configuration): Path => Boolean =
    try super.existing(folder, count, conf) catch { case e: UnsupportedFileSystemException => source.existing.getOrElse(throw e) }

  private def record(files: Seq[TableFile], file: String): Int = {
    objects = files.map(f => f.status.getPath.toString -> f).toMap
    write(files.iterator.map(_.status), file)
  }

  private def named(pathsFile: String): Seq[TableFile] = paths(pathsFile).map(p => objects.getOrElse(p, notListed(p)))

  override private[skipstone] def read(pathsFile: String): classic.Dataset[Row] = {
    holdTasks()
    source.read(named(pathsFile))
  }

  override private[skipstone] def unreadable(): Option[String] = None

  override private[skipstone] def maxSplitBytes(pathsFile: String): Long =
    source.maxSplitBytes().getOrElse(splitBytes(named(pathsFile).map(_.status.getLen)))
}
