package org.apache.spark.sql.skipstone

import java.lang.reflect.{Field, InvocationTargetException, Method, Modifier}
import java.util.{ArrayList, List => JList}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.objenesis.ObjenesisStd

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.Scan

/** One data file of an Iceberg scan: the task that reads it, and what tells the file; `mark` is of its partition's values. */
private[skipstone] class IcebergFile(val task: AnyRef, val location: String, val length: Long, val mark: Long, val rows: Long)

/**
 * What is used of Apache Iceberg, by reflection: none of it is public, and the bridge is compiled without Iceberg.
 *
 * Making one is the self-check. It throws with the name of what this release of Iceberg does not have; docs/adr/0018-iceberg.md
 * lists what a release must keep.
 */
private[skipstone] class Iceberg(loader: ClassLoader) {
  import Iceberg._

  private def load(name: String): Class[_] = Class.forName(name, false, loader)
  private val scanClass = load(ScanName)
  private val schemaClass = load("org.apache.iceberg.Schema")
  private val tableClass = load(TableName)
  private val baseTable = load("org.apache.iceberg.BaseTable")
  private val fileTask = load("org.apache.iceberg.FileScanTask")
  private val baseTask = load("org.apache.iceberg.BaseFileScanTask")
  private val contentFile = load("org.apache.iceberg.ContentFile")
  private val deleteFile = load("org.apache.iceberg.DeleteFile")
  private val structLike = load("org.apache.iceberg.types.Types$StructType")
  private val groupClass = load("org.apache.iceberg.BaseScanTaskGroup")

  // Of the scan.
  private val tableOf = method(scanClass, "table")
  private val tasksOf = method(scanClass, "tasks")
  private val specsOf = method(scanClass, "specs")
  private val keyOf = method(scanClass, "groupingKeyType")
  private val scanOf = method(scanClass, "scan")
  private val reset = method(scanClass, "resetTasks", classOf[JList[_]])
  private val projected = either(scanClass, "projection", "expectedSchema")
  private val filters = field(scanClass, "runtimeFilters", "runtimeFilterExpressions")
  private val groups = field(scanClass, "taskGroups")
  private val sinceSnapshot = Try(field(scanClass, "startSnapshotId")).toOption // such scans have a class of their own since 1.12
  // Of the table, as Spark has it and as it is.
  private val insideOf = method(tableClass, "table")
  private val schemaOf: Table => AnyRef = Try(field(tableClass, "schema")).toOption.filter(_.getType == schemaClass)
    .map(f => (t: Table) => f.get(t)).getOrElse {
      val found = either(tableClass, "snapshotSchema") // up to 1.11
      t => found.invoke(t)
    }
  private val branchOf = method(tableClass, "branch")
  // Up to 1.11 only a table of another time has a snapshot's id.
  private val travels = Try(field(tableClass, "timeTravel")).getOrElse(field(tableClass, "snapshotId"))
  private val locationOf = method(baseTable, "location")
  private val propertiesOf = method(baseTable, "properties")
  private val ioOf = method(baseTable, "io")
  private val inputOf = load("org.apache.iceberg.io.FileIO").getMethod("newInputFile", classOf[String])
  private val existsOf = load("org.apache.iceberg.io.InputFile").getMethod("exists")
  private val notFound = load("org.apache.iceberg.exceptions.NotFoundException")
  private val snapshotOf = load("org.apache.iceberg.BatchScan").getMethod("snapshot")
  private val summaryOf = method(load("org.apache.iceberg.Snapshot"), "summary")
  private val idOf = method(load("org.apache.iceberg.Snapshot"), "snapshotId")
  private val toJson = load("org.apache.iceberg.SchemaParser").getMethod("toJson", schemaClass)
  // Of tasks and files.
  private val fileOf = fileTask.getMethod("file")
  private val startOf = fileTask.getMethod("start")
  private val lengthOf = fileTask.getMethod("length")
  private val specOf = fileTask.getMethod("spec")
  private val partitionOf = fileTask.getMethod("partition")
  private val splitOf = fileTask.getMethod("split", classOf[Long])
  private val rowsOf = fileTask.getMethod("estimatedRowsCount")
  private val placeOf = contentFile.getMethod("location")
  private val sizeOf = contentFile.getMethod("fileSizeInBytes")
  private val formatOf = contentFile.getMethod("format")
  private val contentOf = contentFile.getMethod("content")
  private val specId = load("org.apache.iceberg.PartitionSpec").getMethod("specId")
  private val partitions = new IcebergPartitions(load)
  private val fieldsOf = structLike.getMethod("fields")
  private val targetOf = load("org.apache.iceberg.Scan").getMethod("targetSplitSize")
  // What a task has to do with deletes.
  private val deletes = field(baseTask, "deletes")
  private val deleteCaches = Seq(field(baseTask, "deleteList"), field(baseTask, "deletesSizeBytes"))
  private val newGroup = groupClass.getConstructor(classOf[java.util.Collection[_]])

  /** Whether it is a scan of one snapshot of a table, not of a table's metadata nor of what came between two snapshots. */
  def isTableScan(scan: Scan): Boolean = scan.getClass == scanClass && baseTable.isInstance(tableOf.invoke(scan)) &&
    sinceSnapshot.forall(_.get(scan) == null)

  /** The data files that a scan reads after Iceberg's own pruning, in order; none where it reads anything else. */
  def files(scan: Scan): Option[Array[IcebergFile]] = {
    val tasks = tasksOf.invoke(scan).asInstanceOf[JList[AnyRef]].asScala.toArray
    lazy val mark = partitions.marks(tableOf.invoke(scan))
    if (tasks.forall(isWhole)) Some(tasks.map { t =>
      val file = fileOf.invoke(t)
      new IcebergFile(t, placeOf.invoke(file).asInstanceOf[String], sizeOf.invoke(file).asInstanceOf[Long], mark(file),
        math.max(0L, rowsOf.invoke(t).asInstanceOf[Long]))
    }.sortBy(_.location)) else None // Iceberg plans manifests side by side, so its own order is another one each time
  }

  private def isWhole(task: AnyRef): Boolean = baseTask.isInstance(task) && {
    val file = fileOf.invoke(task)
    contentOf.invoke(file).toString == "DATA" && startOf.invoke(task) == 0L && lengthOf.invoke(task) == sizeOf.invoke(file)
  }

  /** The table itself, if it is one and not a table of metadata. */
  def baseTable(table: Table): Option[AnyRef] = Option(insideOf.invoke(table)).filter(baseTable.isInstance)

  /** What else than the newest snapshot of the main branch a table stands for. */
  def isElsewhere(table: Table): Option[String] = Option(branchOf.invoke(table)).filter(_ != "main").map(b => s"the branch $b")
    .orElse(Option(travels.get(table)).map(_ => "another snapshot"))

  def location(table: AnyRef): String = locationOf.invoke(table).asInstanceOf[String]
  def properties(table: AnyRef): Map[String, String] = propertiesOf.invoke(table).asInstanceOf[java.util.Map[String, String]].asScala.toMap

  /** Whether a table's own client finds a file. */
  def exists(table: AnyRef, location: String): Boolean =
    try existsOf.invoke(inputOf.invoke(ioOf.invoke(table), location)) == true
    catch { case e: InvocationTargetException if notFound.isInstance(e.getCause) => false }

  /** Files and bytes of the snapshot that is read, as it says itself; its delete files are among the bytes. */
  def totals(scan: Scan): Option[(Long, Long)] = snapshot(scan).flatMap { s =>
    val summary = Option(summaryOf.invoke(s).asInstanceOf[java.util.Map[String, String]]).map(_.asScala.toMap).getOrElse(Map.empty)
    for {
      files <- summary.get("total-data-files").flatMap(_.toLongOption)
      bytes <- summary.get("total-files-size").flatMap(_.toLongOption)
    } yield (files, bytes)
  }

  private def snapshot(scan: Scan): Option[AnyRef] = Option(scanOf.invoke(scan)).flatMap(s => Option(snapshotOf.invoke(s)))

  /** The snapshot that a scan reads; none where the table has none yet. */
  def version(scan: Scan): Option[Long] = snapshot(scan).map(idOf.invoke(_).asInstanceOf[Long])

  /** All columns of a table, as of the snapshot that it stands for, as JSON with their ids. */
  def schema(table: Table): String = toJson.invoke(null, schemaOf(table)).asInstanceOf[String]

  /** The columns that a scan reads. */
  def projection(scan: Scan): String = toJson.invoke(null, projected.invoke(scan)).asInstanceOf[String]

  /** Whether a plan may rest on how its tasks are grouped. */
  def isGrouped(scan: Scan): Boolean = !fieldsOf.invoke(keyOf.invoke(scan)).asInstanceOf[JList[_]].isEmpty

  /** What groups a file with others; finer than what a scan groups by. */
  def group(file: IcebergFile): Any = (specId.invoke(specOf.invoke(file.task)), partitionOf.invoke(file.task))

  /** Whether the choice between reading rows and reading columns is the same for each of these files. */
  def isUniform(scan: Scan, files: Array[IcebergFile]): Boolean =
    files.forall(f => formatOf.invoke(fileOf.invoke(f.task)).toString == "PARQUET") && !projection(scan).contains("\"variant\"")

  /** The same scan of some of its tasks. What it knows of specs and grouping stays that of all of them. */
  def withTasks(scan: Scan, tasks: Seq[AnyRef]): Scan = {
    specsOf.invoke(scan)
    keyOf.invoke(scan)
    val copy = copied(scan)
    filters.set(copy, new ArrayList[AnyRef](filters.get(scan).asInstanceOf[JList[AnyRef]])) // its own: a run adds to it
    reset.invoke(copy, new ArrayList[AnyRef](tasks.asJava))
    check(copy, scan, tasks.size)
    copy
  }

  private def check(copy: Scan, scan: Scan, size: Int): Unit = {
    val as = tasksOf.invoke(copy).asInstanceOf[JList[_]]
    val kept = as.size == size && (as ne tasksOf.invoke(scan)) && (filters.get(copy) ne filters.get(scan)) &&
      keyOf.invoke(copy) == keyOf.invoke(scan) && specsOf.invoke(copy) == specsOf.invoke(scan)
    if (!kept) throw new IllegalStateException(s"a copy of Iceberg's ${scanClass.getSimpleName} is not as it should be")
  }

  /** Let a scan that nobody else has read given files; with all rows that were ever `deleted`, no delete file is applied. */
  def read(scan: Scan, files: Seq[IcebergFile], parallelism: Int, deleted: Boolean): Unit = {
    val tasks = if (deleted) files.map(f => undeleted(f.task)) else files.map(_.task)
    reset.invoke(scan, new ArrayList[AnyRef](tasks.asJava))
    val most = splitBytes(scan)
    val (short, long) = tasks.partition(t => lengthOf.invoke(t).asInstanceOf[Long] <= most)
    val pieces = long.flatMap(t => splitOf.invoke(t, Long.box(most)).asInstanceOf[java.lang.Iterable[AnyRef]].asScala.map(Seq(_)))
    groups.set(scan, new ArrayList[AnyRef]((packed(short, most, parallelism) ++ pieces).map(g =>
      newGroup.newInstance(g.asJava).asInstanceOf[AnyRef]).asJava))
  }

  /** The length up to which a file is read whole. */
  def splitBytes(scan: Scan): Long = Option(scanOf.invoke(scan)).map(targetOf.invoke(_).asInstanceOf[Long]).getOrElse(Long.MaxValue)

  private def packed(tasks: Seq[AnyRef], most: Long, parallelism: Int): Seq[Seq[AnyRef]] = {
    def cost(task: AnyRef): Long = lengthOf.invoke(task).asInstanceOf[Long] + OpenCost
    val size = math.min(most, math.max(OpenCost, tasks.map(cost).sum / math.max(1, parallelism)))
    val bins = Seq.newBuilder[Seq[AnyRef]]
    var bin = Seq.newBuilder[AnyRef]
    var filled = 0L
    tasks.foreach { t =>
      if (filled > 0 && filled + cost(t) > size) {
        bins += bin.result()
        bin = Seq.newBuilder[AnyRef]
        filled = 0L
      }
      bin += t
      filled += cost(t)
    }
    if (filled > 0) bins += bin.result()
    bins.result()
  }

  private def undeleted(task: AnyRef): AnyRef = {
    val copy = copied(task)
    deletes.set(copy, java.lang.reflect.Array.newInstance(deleteFile, 0))
    deleteCaches.foreach(f => if (f.getType == classOf[Long]) f.setLong(copy, 0L) else f.set(copy, null))
    copy
  }
}

private[skipstone] object Iceberg {
  val ScanName = "org.apache.iceberg.spark.source.SparkBatchQueryScan"
  val TableName = "org.apache.iceberg.spark.source.SparkTable"
  private val OpenCost = 4L << 20
  private val objenesis = new ObjenesisStd
  private val known = new ConcurrentHashMap[ClassLoader, Either[String, Iceberg]]()

  /** What is used of the Iceberg of a class loader, or why that one is not used. */
  def by(loader: ClassLoader): Either[String, Iceberg] = known.computeIfAbsent(loader, loader =>
    Try(new Iceberg(loader)).toEither.left.map(e => s"this release of Iceberg is not known to Skipstone: ${e match {
      case _: ClassNotFoundException => s"it has no class ${e.getMessage}"
      case _ => e.getMessage
    }}"))

  /** Whether it is one of Iceberg's scans, or one that leaves out files of it. */
  def isRead(scan: Scan): Boolean = scan.isInstanceOf[IcebergScan] || isScan(scan)

  def isScan(scan: Scan): Boolean = scan.getClass.getName == ScanName

  private def lineage(c: Class[_]): Iterator[Class[_]] = Iterator.iterate[Class[_]](c)(_.getSuperclass).takeWhile(_ != null)

  private def method(c: Class[_], name: String, parameters: Class[_]*): Method = {
    val found = lineage(c).flatMap(k => Try(k.getDeclaredMethod(name, parameters: _*)).toOption).nextOption()
      .orElse(Try(c.getMethod(name, parameters: _*)).toOption)
      .getOrElse(throw new NoSuchMethodException(s"${c.getSimpleName} has no method $name"))
    found.setAccessible(true)
    found
  }

  private def either(c: Class[_], names: String*): Method = names.flatMap(n => Try(method(c, n)).toOption).headOption
    .getOrElse(throw new NoSuchMethodException(s"${c.getSimpleName} has no method ${names.mkString(" or ")}"))

  private def field(c: Class[_], names: String*): Field = {
    val found = names.iterator.flatMap(n => lineage(c).flatMap(k => Try(k.getDeclaredField(n)).toOption)).nextOption()
      .getOrElse(throw new NoSuchFieldException(s"${c.getSimpleName} has no field ${names.mkString(" or ")}"))
    found.setAccessible(true)
    found
  }

  /** A copy whose fields are the same objects. */
  private def copied[T <: AnyRef](made: T): T = {
    val copy = objenesis.newInstance(made.getClass).asInstanceOf[T]
    lineage(made.getClass).flatMap(_.getDeclaredFields).filterNot(f => Modifier.isStatic(f.getModifiers)).foreach { f =>
      f.setAccessible(true)
      f.set(copy, f.get(made))
    }
    copy
  }
}
