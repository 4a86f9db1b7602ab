package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StructField, StructType}

/** Iceberg tables in queries and in index jobs; called where the check of [[Iceberg]] was passed. */
private[skipstone] object IcebergTables {
  private val Spread = "a partition's files may be spread over several tasks of a storage-partitioned join " +
    s"(${SQLConf.V2_BUCKETING_PARTIALLY_CLUSTERED_DISTRIBUTION_ENABLED.key}), which rests on all of them"
  private val Changed = "the scan reads other columns under the names that the table has: they changed while the query was planned"
  private val Elsewhere = "give the table as it is now; queries of other snapshots, branches and tags use the same metadata"

  def known(of: AnyRef): Iceberg = Iceberg.by(of.getClass.getClassLoader).fold(reason => throw new IllegalStateException(reason), identity)

  /** A table that is not read by a scan yet, in a plan that writes. */
  def unread(rel: DataSourceV2Relation, session: classic.SparkSession): Option[Either[String, TableScan]] = {
    val iceberg = known(rel.table)
    if (iceberg.baseTable(rel.table).isEmpty) None else Some(Right(new TableScan {
      override val described: Described = new IcebergDescribed(rel, session, iceberg)
      override def listing: Listing = TableFile.listing(Nil)
      override def beforePruning: Option[(Long, Long)] = None
      override def location: AnyRef = rel.table
      override def replaced(keep: BitSet, digest: String, planned: Outcome, still: Still): Either[String, (LogicalPlan, AnyRef)] =
        Left("the table is not read by a scan of Iceberg's")
    }))
  }

  def scan(rel: DataSourceV2ScanRelation, session: classic.SparkSession): Option[Either[String, TableScan]] = {
    val iceberg = known(rel.scan)
    if (!iceberg.isTableScan(rel.scan)) None
    else if (!FieldIds.agree(iceberg.projection(rel.scan), iceberg.schema(rel.relation.table))) Some(Left(Changed))
    else if (iceberg.isGrouped(rel.scan) && session.sessionState.conf.v2BucketingPartiallyClusteredDistributionEnabled) Some(Left(Spread))
    else iceberg.files(rel.scan) match {
      case Some(files) => Some(Right(new IcebergTableScan(rel, session, iceberg, files)))
      case None => Some(Left("the scan reads other things than whole data files"))
    }
  }

  def source(rel: DataSourceV2Relation, session: classic.SparkSession): TableSource = {
    val iceberg = known(rel.table)
    if (iceberg.baseTable(rel.table).isEmpty) refuse(s"${rel.name} is a metadata table")
    iceberg.isElsewhere(rel.table).foreach(what => refuse(s"the DataFrame reads $what of ${rel.table.name}: $Elsewhere"))
    audited(iceberg, rel, session).foreach(b => refuse(s"the DataFrame reads the branch $b of ${rel.table.name}: $Elsewhere"))
    rel.options.asScala.keys.find(IcebergDescribed.Elsewhere).foreach(o =>
      refuse(s"the DataFrame reads ${rel.table.name} with the option $o: $Elsewhere"))
    new IcebergTableSource(rel, session, iceberg)
  }

  /** The branch that a session's setting lets all reads of a table go to; up to 1.11 the table itself does not tell. */
  private def audited(iceberg: Iceberg, rel: DataSourceV2Relation, session: classic.SparkSession): Option[String] =
    iceberg.baseTable(rel.table).filter(iceberg.properties(_).get("write.wap.enabled").contains("true"))
      .flatMap(_ => session.conf.getOption("spark.wap.branch")).filter(_ != "main")

  private def refuse(reason: String): Nothing = throw new IllegalArgumentException(reason)
}

private class IcebergTableScan(rel: DataSourceV2ScanRelation, session: classic.SparkSession, iceberg: Iceberg, files: Array[IcebergFile])
  extends TableScan {
  override val described: Described = new IcebergDescribed(rel.relation, session, iceberg)
  override def location: AnyRef = rel.scan
  override lazy val listing: Listing = TableListings.of(described.roots.head, files.map(_.location), files.map(_.length), files.map(_.mark))(
    IcebergTableSource.path(_, described.roots.head))
  override def beforePruning: Option[(Long, Long)] = iceberg.totals(rel.scan)

  override def measured: Option[MeasuredTable] = Some(new MeasuredIceberg(rel, session, iceberg))

  override def keptBesides(keep: BitSet): (BitSet, String) = {
    val besides = new BitSet(files.length)
    IcebergScan.keptForGroups(iceberg, rel.scan, files, keep.get).foreach(besides.set(_))
    (besides, s"${besides.cardinality} files are read for the sake of grouping: a storage-partitioned join rests on each partition having one")
  }

  override def replaced(keep: BitSet, digest: String, planned: Outcome, still: Still): Either[String, (LogicalPlan, AnyRef)] = {
    val scan = IcebergScan.of(iceberg, rel.scan, files, keep.get, digest, planned, still)
    Right((IcebergScan.replaced(rel, scan), scan))
  }
}

/** A table of Iceberg's as index jobs read it: the newest snapshot of its main branch. */
private class IcebergTableSource(rel: DataSourceV2Relation, override val session: classic.SparkSession, iceberg: Iceberg) extends TableSource {
  @volatile private var newest: Option[Table] = None

  override val described: Described = new IcebergDescribed(rel, session, iceberg)
  override def leaf: LogicalPlan = rel
  override def by(other: classic.SparkSession): TableSource = new IcebergTableSource(rel, other, iceberg)

  override def files(): Seq[TableFile] = session.withActive {
    val table = loaded()
    // Those of the DataFrame's table may be other ones by now, too; what was described is what will be recorded.
    if (IcebergDescribed.marked(DataSourceV2Relation.create(table, None, None), iceberg) != described.schema) throw new IllegalArgumentException(
      s"the columns of ${rel.table.name} are not those of the DataFrame any more: read the table anew")
    newest = Some(table)
    val scan = table.asInstanceOf[SupportsRead].newScanBuilder(rel.options).build()
    iceberg.files(scan).getOrElse(throw new IllegalArgumentException(s"${rel.table.name} has other things than whole data files"))
      .toSeq.map(f => TableFile(IcebergTableSource.status(f, described.roots.head), f))
  }

  /** Catalogs keep tables for a while, and a table keeps its snapshot. */
  private def loaded(): Table = (rel.catalog, rel.identifier) match {
    case (Some(catalog: TableCatalog), Some(name)) =>
      catalog.invalidateTable(name)
      catalog.loadTable(name)
    case _ => rel.table
  }

  override def read(files: Seq[TableFile]): classic.Dataset[Row] = session.withActive {
    val chosen = files.map(_.own.asInstanceOf[IcebergFile])
    val numbers = chosen.iterator.map(_.location).zipWithIndex.toMap
    val base = newest.getOrElse(rel.table).asInstanceOf[Table with SupportsRead with SupportsMetadataColumns]
    val table = new IcebergFilesTable(base, chosen, iceberg, rel.options, session.leafNodeDefaultParallelism)
    val made = DataSourceV2Relation.create(table, None, None)
    val all = made.withMetadataColumns()
    val file = all.output.find(a => a.name == IcebergTableSource.FileColumn && !made.output.exists(_.exprId == a.exprId)).getOrElse(
      throw new IllegalArgumentException(s"${rel.table.name} has a column ${IcebergTableSource.FileColumn}, which is what Iceberg names files by"))
    classic.Dataset.ofRows(session, Project(made.output :+ Alias(ObjectNumber(file, new ObjectNumbers(numbers)), FileScan.ObjectColumn)(), all))
  }

  override def existing: Option[Path => Boolean] = {
    val table = iceberg.baseTable(newest.getOrElse(rel.table)).get
    Some(path => iceberg.exists(table, path.toString))
  }

  // Whole files up to this length: see Iceberg.physical.
  override def maxSplitBytes(): Option[Long] = session.withActive {
    Some(iceberg.splitBytes(newest.getOrElse(rel.table).asInstanceOf[SupportsRead].newScanBuilder(rel.options).build()))
  }
}

private object IcebergTableSource {
  val FileColumn = "_file"

  /** A data file's path; of a warehouse without a scheme, the names of files have none either, and may be relative, too. */
  def path(location: String, root: Path): Path = {
    val path = new Path(location)
    val uri = path.toUri
    if (uri.getScheme != null) path
    else if (path.isAbsolute) new Path(root.toUri.getScheme, root.toUri.getAuthority, uri.getPath)
    else root.getFileSystem(SparkHadoopUtil.get.conf).makeQualified(path)
  }

  /** Path and size tell a data file, and what the table has for its partition: Iceberg never writes one again, and knows no time of it. */
  def status(file: IcebergFile, root: Path): FileStatus = TableFile.status(path(file.location, root), file.length, file.mark)
}

/** A table of Iceberg's, or a scan of one of its snapshots. Columns are told apart by their field ids. */
private[skipstone] class IcebergDescribed(
    rel: DataSourceV2Relation, running: classic.SparkSession, iceberg: Iceberg)
  extends Described(rel.output, running) {
  private val made = iceberg.baseTable(rel.table).get

  override val roots: Seq[Path] = {
    val path = new Path(iceberg.location(made))
    Seq(Try(path.getFileSystem(running.sessionState.newHadoopConf()).makeQualified(path)).getOrElse(path))
  }
  override def format: String = IcebergFormat.name
  override lazy val options: Map[String, String] =
    rel.options.asScala.toMap.filterNot { case (name, _) => IcebergDescribed.Harmless(name.toLowerCase(java.util.Locale.ROOT)) }
  override val table: Option[String] = rel.identifier.map(i => (i.namespace :+ i.name).mkString(".")).filter(_ => rel.catalog.isDefined)
    .filterNot(_.contains("/"))
  override protected def tableLocation: Option[String] = None
  override protected def owner: classic.SparkSession = running
  override lazy val schema: StructType = IcebergDescribed.marked(rel, iceberg)
  override def dataSchema: StructType = schema
  override def partitionSchema: StructType = new StructType()
}

private object IcebergDescribed {
  /** The columns of a table, each with what tells it from others. */
  def marked(rel: DataSourceV2Relation, iceberg: Iceberg): StructType = FieldIds.marked(
    StructType(rel.output.filterNot(_.metadata.contains("__metadata_col")).map(a => StructField(a.name, a.dataType, a.nullable))),
    iceberg.schema(rel.table), iceberg.properties(iceberg.baseTable(rel.table).get))

  /** Options that choose a snapshot. */
  val Elsewhere = Set("snapshot-id", "as-of-timestamp", "branch", "tag", "start-snapshot-id", "end-snapshot-id", "start-timestamp",
    "end-timestamp", "version", "versionasof", "timestampasof")
  /** Options that change no value. */
  val Harmless: Set[String] = Elsewhere ++ Set("path", "paths", "split-size", "lookback", "file-open-cost", "vectorization-enabled",
    "batch-size", "locality", "executor-cache-locality", "aggregate-push-down-enabled", "stream-from-timestamp")
}
