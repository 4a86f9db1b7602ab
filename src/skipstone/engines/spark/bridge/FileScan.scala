package org.apache.spark.sql.skipstone

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAlias
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** A plain scan of files, as the indexing side uses it: describe it, list it, read some of its objects. */
class FileScan private[skipstone] (
    override val session: classic.SparkSession, rel: LogicalRelation, override val isPinned: Boolean = false) extends IndexedScan {
  override private[skipstone] val described: RelationJson = new RelationJson(rel, session)
  override private[skipstone] def leaf: LogicalPlan = rel
  private[skipstone] val fs: HadoopFsRelation = described.fs
  @volatile private var objects = Map.empty[String, (FileStatusWithMetadata, InternalRow)]

  /**
   * The same scan by a clone of its session, which nobody else has: its settings stay as the session's are now, but for
   * the given ones. What the executors' JVMs are like is known afterwards.
   */
  override def pinned(settings: java.util.Map[String, String]): FileScan = {
    val clone = cloned(settings)
    new FileScan(clone, rel.copy(relation = fs.copy()(clone)), isPinned = true)
  }

  override private[skipstone] def list(file: String): Int = record(fresh(), file)

  override private[skipstone] def list(paths: Seq[String], file: String): Int = {
    val wanted = paths.map(qualified)
    record(fs.location match {
      case catalog: CatalogFileIndex if catalog.table.partitionColumnNames.nonEmpty => listPartitions(catalog, wanted)
      case _ => wanted.groupBy(rootOf).toSeq.flatMap { case (root, below) => listBelow(root, below) }
    }, file)
  }

  // A partition may leave a catalog's table and its files stay: that only a listing tells.
  override private[skipstone] def changed(pathsFile: String, file: String): Int = (fs.location match {
    case catalog: CatalogFileIndex if catalog.table.partitionColumnNames.nonEmpty => None
    case _ => new Counted(named(pathsFile).map(_._1.fileStatus), fs).changedLocally
  }).fold(-1)(found => write(found.iterator, file))

  override private[skipstone] def hadoop = session.sessionState.newHadoopConfWithOptions(fs.options)

  private[skipstone] def fresh(): Seq[PartitionDirectory] = {
    val index = fs.location match {
      case catalog: CatalogFileIndex => // a new one has a cache of its own, which is empty
        new CatalogFileIndex(session, catalog.table, catalog.sizeInBytes).filterPartitions(Nil)
      case other => inMemory(other.rootPaths, fs.options)
    }
    check(index)
    index.listFiles(Nil, Nil)
  }

  private def inMemory(roots: Seq[Path], options: Map[String, String]): InMemoryFileIndex =
    new InMemoryFileIndex(session, roots, options, Some(fs.partitionSchema), NoopCache, None, None)

  private def check(index: FileIndex): Unit =
    if (index.partitionSchema.fieldNames.toSeq != fs.partitionSchema.fieldNames.toSeq) {
      throw new IllegalArgumentException("the partition columns are now " +
        s"(${index.partitionSchema.fieldNames.mkString(", ")}), in the DataFrame they are " +
        s"(${fs.partitionSchema.fieldNames.mkString(", ")}): read the dataset anew")
    }

  private def rootOf(path: Path): Path = fs.location.rootPaths.map(r => qualified(r.toString)).find(within(path, _)).getOrElse(
    throw new IllegalArgumentException(
      s"$path is not in the dataset, whose roots are ${fs.location.rootPaths.take(5).mkString(", ")}"))

  private def visible(path: Path, root: Path): Boolean =
    Iterator.iterate(path)(_.getParent).takeWhile(p => p != null && p != root).map(_.getName)
      .forall(n => !n.startsWith(".") && !(n.startsWith("_") && !n.contains("=")))

  private def listBelow(root: Path, paths: Seq[Path]): Seq[PartitionDirectory] = {
    val statuses = statusesOf(paths.filter(visible(_, root)))
    val there = statuses.keys.toSeq
    if (there.isEmpty) Nil else {
      val lower = fs.options.map { case (k, v) => k.toLowerCase(java.util.Locale.ROOT) -> v }
      val rootIsFile = statuses.get(root).exists(_.isFile)
      val base = lower.getOrElse("basepath", (if (rootIsFile) root.getParent else root).toString)
      val index = inMemory(there, lower + ("basepath" -> base))
      val directories = tagged(index.listFiles(Nil, Nil).filter(_.files.nonEmpty), statuses)
      if (directories.nonEmpty) check(index)
      // Without partitions Spark reads what lies in a root itself, not in folders below it.
      val deep = fs.partitionSchema.nonEmpty || lower.get("recursivefilelookup").exists(_.toBoolean)
      if (deep) directories else directories.map { d =>
        d.copy(files = d.files.filter(f => f.getPath == root || f.getPath.getParent == root))
      }
    }
  }

  private def listPartitions(catalog: CatalogFileIndex, paths: Seq[Path]): Seq[PartitionDirectory] = {
    val conf = session.sessionState.conf
    val all = ExternalCatalogUtils.listPartitionsByFilter(conf, session.sessionState.catalog, catalog.table, Nil).map { p =>
      PartitionPath(p.toRow(catalog.partitionSchema, conf.sessionLocalTimeZone), qualified(new Path(p.location).toString))
    }
    val roots = catalog.rootPaths.map(r => qualified(r.toString))
    paths.find(p => !(roots ++ all.map(_.path)).exists(within(p, _))).foreach { p =>
      throw new IllegalArgumentException(s"$p is neither in the table's folder nor in one of its partitions")
    }
    val touched = all.filter(a => paths.exists(p => within(p, a.path) || within(a.path, p)))
    val statuses = statusesOf(paths)
    if (statuses.isEmpty || touched.isEmpty) Nil
    else tagged(new InMemoryFileIndex(session, statuses.keys.toSeq, Map.empty[String, String],
      Some(catalog.partitionSchema), NoopCache, Some(PartitionSpec(catalog.partitionSchema, touched)), None)
      .listFiles(Nil, Nil), statuses)
  }

  private def statusesOf(paths: Seq[Path]): Map[Path, FileStatus] = paths.flatMap { p =>
    try Some(p -> p.getFileSystem(hadoop).getFileStatus(p)) catch { case _: FileNotFoundException => None }
  }.toMap

  /** Spark drops the e-tags of files that it lists by their own paths, not those of files in folders. */
  private def tagged(directories: Seq[PartitionDirectory], statuses: Map[Path, FileStatus]): Seq[PartitionDirectory] =
    directories.map(d => d.copy(files = d.files.map(f => statuses.get(f.getPath) match {
      case Some(s) if Listing.etag(s).nonEmpty && Listing.etag(f.fileStatus).isEmpty &&
          s.getLen == f.getLen && s.getModificationTime == f.getModificationTime => FileStatusWithMetadata(s, f.metadata)
      case _ => f
    })))

  private def record(directories: Seq[PartitionDirectory], file: String): Int = {
    val listed = directories.flatMap(d => d.files.map(f => f.getPath.toString -> (f, d.values)))
    objects = listed.toMap
    write(listed.iterator.map { case (_, (file, _)) => file.fileStatus }, file)
  }

  private[skipstone] def named(pathsFile: String): Seq[(FileStatusWithMetadata, InternalRow)] =
    paths(pathsFile).map(p => objects.getOrElse(p, notListed(p)))

  /** The named objects as a DataFrame with one more column, the number of the object's line. */
  override private[skipstone] def read(pathsFile: String): classic.Dataset[Row] = {
    val schema = StructType(fs.partitionSchema.fields :+ StructField(FileScan.ObjectColumn, IntegerType, nullable = false))
    val types = fs.location.partitionSchema
    val files = named(pathsFile)
    holdTasks()
    countOpening(files.map(_._1.getLen))
    val directories = files.zipWithIndex.map { case ((file, values), i) =>
      PartitionDirectory(new GenericInternalRow(types.fields.indices.map(c =>
        values.get(c, types(c).dataType)).toArray[Any] :+ i), Seq(file))
    }
    val relation = HadoopFsRelation(new IndexingFileIndex(fs.location.rootPaths, schema, directories),
      schema, withUnreadable, None, fs.fileFormat, fs.options)(session)
    // Cleaned of char(n): an index describes what is in the file; at query time padding is a function of the column.
    val output = DataTypeUtils.toAttributes(CharVarcharUtils.replaceCharVarcharWithStringInSchema(relation.schema))
      .map(CharVarcharUtils.cleanAttrMetadata)
    classic.Dataset.ofRows(session, LogicalRelation(relation, output, None, false, None))
  }

  private lazy val openCost = session.sessionState.conf.filesOpenCostInBytes

  /**
   * Spark counts four megabytes for opening a file, so that some thirty small ones make a task, and each task waits for a turn of
   * a Python worker. A job's own session counts less, unless a file would be split for it that is not split otherwise: tasks are
   * longer then, as many as there are cores if there is little, and each object is read as it was.
   */
  private def countOpening(lengths: Seq[Long]): Unit = if (isPinned) {
    def count(cost: Long): Long = {
      session.conf.set(SQLConf.FILES_OPEN_COST_IN_BYTES.key, cost)
      splitBytes(lengths)
    }
    val before = count(openCost)
    if (openCost > FileScan.OpenCost) {
      val split = count(FileScan.OpenCost)
      if (lengths.exists(_ > split) && split < before) count(openCost)
    }
  }

  /** The data columns, and where records that cannot be read show in one of their own, that one. */
  private def withUnreadable: StructType = unreadable().filterNot(n => fs.dataSchema.fieldNames.contains(n))
    .fold(fs.dataSchema)(fs.dataSchema.add(_, StringType, nullable = true))

  /** The column in which the reader shows records that it cannot read, if what it makes of the rest of them depends on the columns asked for. */
  override private[skipstone] def unreadable(): Option[String] = if (!FileScan.Unsteady(described.format)) None else {
    val lower = fs.options.map { case (k, v) => k.toLowerCase(java.util.Locale.ROOT) -> v }
    Some(lower.getOrElse("columnnameofcorruptrecord", session.sessionState.conf.columnNameOfCorruptRecord))
  }

  /** Files longer than this may be split over several tasks, as Spark computes it for `read`. */
  override private[skipstone] def maxSplitBytes(pathsFile: String): Long =
    splitBytes(named(pathsFile).map(_._1.getLen))
}

private[skipstone] object FileScan {
  val ObjectColumn = "__skipstone_object"
  private val OpenCost = 256L << 10
  private val Unsteady = Set("json", "xml")

  def parts(session: classic.SparkSession, paths: Seq[Path]): classic.Dataset[Row] = {
    val options = Map("parquet.page.verify-checksum.enabled" -> "true")
    val hadoop = session.sessionState.newHadoopConfWithOptions(options)
    val files = paths.map(p => FileStatusWithMetadata(p.getFileSystem(hadoop).getFileStatus(p)))
    val format = new ParquetFileFormat()
    val schema = format.inferSchema(session, options, files.map(_.fileStatus)).getOrElse(new StructType())
    val none = new StructType()
    val index = new IndexingFileIndex(paths.map(_.getParent).distinct, none, Seq(PartitionDirectory(InternalRow.empty, files)))
    val relation = HadoopFsRelation(index, none, schema, None, format, options)(session)
    classic.Dataset.ofRows(session, LogicalRelation(relation, DataTypeUtils.toAttributes(relation.schema), None, false, None))
  }

  def of(df: classic.Dataset[_]): IndexedScan = peel(df.queryExecution.analyzed) match {
    case rel: LogicalRelation if SkipstoneRule.candidate(rel) || !TableFormats.isTable(rel) => new FileScan(df.sparkSession, rel)
    case leaf => new TableFiles(TableFormats.source(leaf, df.sparkSession))
  }

  private def peel(plan: LogicalPlan): LogicalPlan = plan match {
    case leaf if TableFormats.isTable(leaf) => leaf
    case rel: LogicalRelation => rel.relation match {
      case fs: HadoopFsRelation => fs.location match {
        case _: PartitioningAwareFileIndex | _: CatalogFileIndex => rel
        case other => refuse(s"files listed by ${other.getClass.getName}, which is not one of Spark's own")
      }
      case other => refuse(s"a source that is not files: ${other.getClass.getSimpleName}")
    }
    case s: SubqueryAlias => peel(s.child)
    case v: View => peel(v.child)
    case p: Project => p.projectList.find(!passesThrough(_)) match {
      case None => peel(p.child)
      case Some(e) => refuse(s"a computed or renamed column: ${e.sql.take(200)}")
    }
    case f: Filter => refuse(s"a filter: ${f.condition.sql.take(200)}")
    case _: Join => refuse("a join")
    case other => refuse(s"${other.nodeName}, which is not a scan of files")
  }

  private def passesThrough(e: NamedExpression): Boolean = e match {
    case _: Attribute => true
    case a: Alias => a.child match {
      case b: Attribute => b.name == a.name
      case c: Cast => // what a view adds around each column
        c.child.isInstanceOf[Attribute] && c.child.asInstanceOf[Attribute].name == a.name && c.dataType == c.child.dataType
      case padding => // read-side padding of char(n)
        padding.references.size == 1 && padding.references.head.name == a.name && padding.exists {
          case s: objects.StaticInvoke =>
            s.staticObject.getSimpleName == "CharVarcharCodegenUtils" && s.functionName.toLowerCase.contains("readside")
          case _ => false
        }
    }
    case _ => false
  }

  /** What is done with the files of a folder, and not yet with those of a table. */
  def plain(scan: IndexedScan): FileScan = scan match {
    case files: FileScan => files
    case other => throw new IllegalArgumentException(
      s"this is for plain files: ${other.described.roots.mkString(", ")} is a table of ${other.described.format}")
  }

  private def refuse(found: String): Nothing = throw new IllegalArgumentException(
    s"only a plain scan of files can be indexed, but the DataFrame has $found")
}
