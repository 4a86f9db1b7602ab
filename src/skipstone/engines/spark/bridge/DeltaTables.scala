package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.util.hashing.MurmurHash3

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta.{DeltaParquetFileFormat, OptimisticTransaction}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeFileIndexWithSnapshotDescriptor, TahoeLogFileIndex}
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.functions
import org.apache.spark.sql.types._

/** What is done with Delta's own classes; see [[DeltaFormat]]. */
private[skipstone] object DeltaTables {
  def inTransaction: Boolean = OptimisticTransaction.getActive().isDefined

  def unfinished: Option[String] = DeltaFormat.abstractIn(classOf[SkippingDeltaIndex])

  def scan(rel: LogicalRelation, session: classic.SparkSession): TableScan = new DeltaTableScan(rel, session)

  def source(rel: LogicalRelation, session: classic.SparkSession): TableSource = {
    val location = rel.relation.asInstanceOf[HadoopFsRelation].location.asInstanceOf[TahoeLogFileIndex]
    if (location.isTimeTravelQuery) throw new IllegalArgumentException(
      s"the DataFrame reads version ${location.version} of ${location.path}: give the table as it is now; queries that travel in " +
        "time use the same metadata")
    if (location.partitionFilters.nonEmpty) throw new IllegalArgumentException("the DataFrame reads some partitions of the table: give all of it")
    new DeltaTableSource(rel, session)
  }

  def listing(index: TahoeFileIndex, files: Seq[AddFile]): Listing = {
    val all = files.toArray
    TableListings.of(index.path, all.map(_.path), all.map(_.size), all.map(mark))(index.absolutePath)
  }

  /** A file as the log names it. */
  def status(index: TahoeFileIndex, file: AddFile): FileStatus =
    TableFile.status(index.absolutePath(file.path), file.size, mark(file))

  /**
   * What tells a file besides path and size: its time, and of partitioned tables the values that the log has for it, whatever
   * its name says. A file that is taken out and added again may have others.
   */
  private def mark(file: AddFile): Long = file.partitionValues.foldLeft(file.modificationTime) { case (sum, (name, value)) =>
    sum + hash(if (value == null) name else s"$name\u0000$value")
  }

  private def hash(text: String): Long =
    (MurmurHash3.stringHash(text, 1).toLong << 32) ^ (MurmurHash3.stringHash(text, 2) & 0xFFFFFFFFL)
}

/** A scan of a Delta table, or the table itself. */
private[skipstone] class DeltaDescribed(rel: LogicalRelation, running: classic.SparkSession) extends Described(rel.output, running) {
  private val fs = rel.relation.asInstanceOf[HadoopFsRelation]
  private val fileFormat = fs.fileFormat.asInstanceOf[DeltaParquetFileFormat]
  private val index = fs.location.asInstanceOf[TahoeFileIndex]

  override val roots: Seq[Path] = Seq(index.path)
  override def format: String = "delta"
  override def reader: String = "parquet"
  override def options: Map[String, String] = fs.options
  override val table: Option[String] = rel.catalogTable.map(_.identifier.unquotedString)
  override protected def tableLocation: Option[String] = None // the log's folder is the root, whatever the catalog calls it
  override protected def owner: classic.SparkSession = fs.sparkSession.asInstanceOf[classic.SparkSession]
  override def schema: StructType = fs.schema
  override def dataSchema: StructType = fs.dataSchema
  override def partitionSchema: StructType = fs.partitionSchema

  /** The schema by which the reader finds columns in files; the relation's own lacks that. */
  override protected def declaring(name: String): StructField = fileFormat.referenceSchema(name)

  /** What the reader finds a column by: its name in the files where it has another, its id where it goes by that. */
  override protected def identity(field: StructField): Metadata = {
    val kept = new MetadataBuilder
    val said = field.metadata
    if (fileFormat.columnMappingMode.name != "none") {
      val physical = if (said.contains(DeltaDescribed.Name)) said.getString(DeltaDescribed.Name) else field.name
      if (physical != field.name) kept.putString("physicalName", physical)
      if (fileFormat.columnMappingMode.name == "id" && said.contains(DeltaDescribed.Id)) kept.putLong("id", said.getLong(DeltaDescribed.Id))
    }
    DeltaDescribed.Reading.filter(said.contains).foreach(name => kept.putString(name, said.getString(name)))
    kept.build()
  }
}

private object DeltaDescribed {
  val Name = "delta.columnMapping.physicalName"
  val Id = "delta.columnMapping.id"
  /** What else a reader looks at: char(n), and the default of files that lack the column, which converted tables may have. */
  val Reading = Seq("__CHAR_VARCHAR_TYPE_STRING", "EXISTS_DEFAULT")
}

private class DeltaTableScan(rel: LogicalRelation, session: classic.SparkSession) extends TableScan {
  private val fs = rel.relation.asInstanceOf[HadoopFsRelation]
  private val base = fs.location.asInstanceOf[PreparedDeltaFileIndex]
  private lazy val files = base.preparedScan.files.distinctBy(_.path)

  override val described: Described = new DeltaDescribed(rel, session)
  override def location: AnyRef = base
  override lazy val listing: Listing = DeltaTables.listing(base, files)

  override def beforePruning: Option[(Long, Long)] = {
    val total = base.preparedScan.total
    total.files.flatMap(n => total.bytesCompressed.map((n, _)))
  }

  override def measured: Option[MeasuredTable] = Some(new MeasuredDelta(rel, session, base))

  override def replaced(keep: BitSet, digest: String, planned: Outcome, still: Still): Either[String, (LogicalPlan, AnyRef)] = {
    val dropped = files.iterator.zipWithIndex.collect { case (file, i) if !keep.get(i) => file.path }.toSet
    val keptBytes = listing.bytes - planned.bytesSkipped
    val index = new SkippingDeltaIndex(base, dropped, digest, keptBytes, planned, still)
    val wrapped = rel.copy(relation = fs.copy(location = index)(fs.sparkSession),
      catalogTable = SkipstoneRule.scaled(rel.catalogTable, keptBytes, listing.bytes))
    wrapped.copyTagsFrom(rel)
    Right((wrapped, index))
  }
}

/**
 * The files of a prepared scan that a query needs. A file index of Delta's own kind, since the rules that hide deleted rows
 * and make row ids look for that.
 *
 * Spark asks for files with the filters that it has by then, and Delta selects anew where they are not those that it
 * prepared the scan for: what is dropped is dropped from that. It is of one version of the table, so a path tells a file.
 */
private[skipstone] class SkippingDeltaIndex(
    base: PreparedDeltaFileIndex, dropped: Set[String], digest: String, keptBytes: Long,
    override val planned: Outcome, override val still: Still)
  extends TahoeFileIndexWithSnapshotDescriptor(base.spark, base.deltaLog, base.path, base) with SkippingIndex {
  override def everything: FileIndex = base
  override def metadataOpsTimeNs: Option[Long] = base.metadataOpsTimeNs
  override def refresh(): Unit = base.refresh()
  override def sizeInBytes: Long = keptBytes

  override def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile] = {
    val all = base.matchingFiles(partitionFilters, dataFilters)
    if (SkippingDeltaIndex.looksForDeletions(partitionFilters, dataFilters) || !still.holds) all
    else all.filterNot(f => dropped(f.path))
  }

  override def inputFiles: Array[String] =
    base.preparedScan.files.iterator.map(_.path).filterNot(dropped).map(absolutePath(_).toString).toArray

  override def equals(other: Any): Boolean = other match {
    case that: SkippingDeltaIndex => (this eq that) || (digest == that.contents && base == that.everything)
    case _ => false
  }

  private[skipstone] def contents: String = digest

  override def hashCode(): Int = digest.hashCode

  override def toString: String = s"SkippingDeltaIndex(${planned.counts} of $base)"
}

/** The version that a prepared scan reads: its files with their deletions, as Delta reads them. */
private class MeasuredDelta(rel: LogicalRelation, override val session: classic.SparkSession, base: PreparedDeltaFileIndex)
  extends MeasuredTable {
  private val fs = rel.relation.asInstanceOf[HadoopFsRelation]
  private lazy val files = base.matchingFiles(Nil, Nil).distinctBy(_.path)

  override def output: Seq[Attribute] = rel.output
  override lazy val listing: Listing = DeltaTables.listing(base, files)
  override def version: Any = base.version

  override def numbered(wanted: BitSet): (LogicalPlan, Attribute) = {
    val numbers = files.iterator.zipWithIndex.collect { case (file, i) if wanted.get(i) => file -> i }.toSeq
    val metadata = rel.output.find(a => a.name == "_metadata" && a.metadata.contains("__metadata_col")).getOrElse(
      fs.fileFormat.createFileMetadataCol())
    val relation = rel.copy(relation = fs.copy(location = new NumberedDeltaIndex(base, numbers))(fs.sparkSession),
      output = rel.output.filterNot(_.exprId == metadata.exprId) :+ metadata.asInstanceOf[AttributeReference], catalogTable = None)
    val time = GetStructField(metadata, metadata.dataType.asInstanceOf[StructType].fieldIndex("file_modification_time"))
    val number = Alias(Cast(UnixMillis(time), IntegerType), FileScan.ObjectColumn)()
    (Project(rel.output :+ number, relation), number.toAttribute)
  }
}

/** Given files of a version, each with its number as its time; of Delta's kind, so that deleted rows are hidden. */
private[skipstone] class NumberedDeltaIndex(base: PreparedDeltaFileIndex, numbers: Seq[(AddFile, Int)])
  extends TahoeFileIndexWithSnapshotDescriptor(base.spark, base.deltaLog, base.path, base) {
  private val numberOf = numbers.map { case (file, i) => file.path -> i }.toMap

  override def metadataOpsTimeNs: Option[Long] = None
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = numbers.iterator.map(_._1.size).sum
  override def inputFiles: Array[String] = numbers.iterator.map(f => absolutePath(f._1.path).toString).toArray
  // They were selected by the filters that are asked with.
  override def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile] = numbers.map(_._1)

  override def fileStatusWithMetadataFromAddFile(file: AddFile): FileStatusWithMetadata =
    super.fileStatusWithMetadataFromAddFile(file).copy(fileStatus =
      TableFile.status(absolutePath(file.path), file.size, numberOf(file.path)))
}

private object SkippingDeltaIndex {
  /**
   * Whether Delta asks if any file has deleted rows, to hide them. A run may have to read the dropped files after all, so
   * these count.
   */
  def looksForDeletions(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Boolean =
    partitionFilters == Seq(Literal.TrueLiteral) && dataFilters == Seq(Literal.TrueLiteral)
}

private class DeltaTableSource(rel: LogicalRelation, override val session: classic.SparkSession) extends TableSource {
  private val fs = rel.relation.asInstanceOf[HadoopFsRelation]
  private val index = fs.location.asInstanceOf[TahoeLogFileIndex]

  override val described: Described = new DeltaDescribed(rel, session)
  override def leaf: LogicalPlan = rel
  override def by(other: classic.SparkSession): TableSource = new DeltaTableSource(rel.copy(relation = fs.copy()(other)), other)

  // Delta looks for a newer version of the table, and refuses if its schema is another than the DataFrame's.
  override def files(): Seq[TableFile] = session.withActive {
    index.matchingFiles(Nil, Nil).map(f => TableFile(DeltaTables.status(index, f), f))
  }

  /**
   * By Delta's reader, which finds the columns, but not by an index of Delta's: so deleted rows are not hidden. The object's
   * number travels as the time of its file, which Spark gives as a constant.
   */
  override def read(files: Seq[TableFile]): classic.Dataset[Row] = {
    val directories = files.zipWithIndex.map { case (file, i) =>
      val status = TableFile.status(file.status.getPath, file.status.getLen, i)
      PartitionDirectory(index.getPartitionValuesRow(file.own.asInstanceOf[AddFile].partitionValues), Seq(FileStatusWithMetadata(status)))
    }
    val location = new IndexingFileIndex(Seq(index.path), index.partitionSchema, directories)
    // Cleaned of char(n), as files are: an index describes what is in them.
    val output = rel.output.map(CharVarcharUtils.cleanAttrMetadata)
    val relation = LogicalRelation(fs.copy(location = location)(session), output, None, false, None)
    val rows = classic.Dataset.ofRows(session, relation)
    val time = rows.metadataColumn("_metadata").getField("file_modification_time")
    rows.withColumn(FileScan.ObjectColumn, functions.coalesce(functions.unix_millis(time).cast(IntegerType), functions.lit(-1)))
  }
}
