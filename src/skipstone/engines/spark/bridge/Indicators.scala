package org.apache.spark.sql.skipstone

import java.util.BitSet

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.functions
import org.apache.spark.sql.types._

/**
 * Measures what the paper's indicators are made of (section IV-A): for each scan of a dataset the objects and rows that
 * there are, that satisfy the scan's condition, and that the plan keeps.
 *
 * The condition is the one that the rule saw; it is run once more over every object that partition pruning leaves, with
 * skipping off and the object's number as a partition column (Python UDFs read ahead, so a file's name would not do).
 */
private[skipstone] class Indicators(dataset: IndexedScan, root: String) {
  import Indicators._

  private lazy val everything: Seq[FileStatusWithMetadata] = dataset match {
    case files: FileScan => files.fresh().flatMap(_.files)
    case _ => Nil
  }
  private val rows = mutable.HashMap.empty[(Any, Path), Long]
  private val sessions = mutable.HashMap.empty[String, classic.SparkSession]

  /** A list for each query, with an object for each of its scans of the dataset. */
  def of(queries: Seq[classic.Dataset[_]]): String = {
    val planned = queries.map(q => scansOf(q))
    val scans = planned.flatten
    val hits = relevantRows(scans)
    var next = 0
    Json.text { g =>
      g.writeStartArray()
      planned.foreach { ofQuery =>
        g.writeStartArray()
        ofQuery.foreach { scan =>
          write(g, scan, hits(next))
          next += 1
        }
        g.writeEndArray()
      }
      g.writeEndArray()
    }
  }

  /**
   * Look into some of the objects that the queries' plans leave out, at most so many of a scan and so many bytes, but one at
   * least: do they hold a row that satisfies the condition? A list for each query, with an object for each of its scans.
   */
  def audit(queries: Seq[classic.Dataset[_]], objects: Int, bytes: Long, seed: Long): String = {
    val random = new scala.util.Random(seed)
    Json.text { g =>
      g.writeStartArray()
      queries.foreach { query =>
        g.writeStartArray()
        scansOf(query).foreach(audit(g, _, objects, bytes, random))
        g.writeEndArray()
      }
      g.writeEndArray()
    }
  }

  private def audit(g: JsonGenerator, scan: PlannedScan, most: Int, mostBytes: Long, random: scala.util.Random): Unit = {
    val skipped = scan.skipped
    val sampled = sample(scan, most, mostBytes, random)
    val lost = lostAmong(scan, sampled.objects)
    g.writeStartObject()
    g.writeStringField("condition", scan.condition.map(_.sql.take(2000)).orNull)
    g.writeNumberField("objects", scan.selected.cardinality)
    g.writeNumberField("skipped", skipped.cardinality)
    g.writeNumberField("bytes_skipped", scan.listing.bytesOf(skipped))
    g.writeNumberField("looked_into", sampled.objects.cardinality)
    g.writeNumberField("bytes_looked_into", sampled.bytes)
    g.writeNumberField("lost", lost.size)
    g.writeNumberField("rows_lost", lost.map(_._2).sum)
    Json.strings(g, "lost_objects", lost.take(10).map { case (i, _) => scan.listing.files(i).getPath.toString })
    g.writeEndObject()
  }

  /** Some of the objects that a plan leaves out, at most so many and so many bytes, but one at least. */
  def sample(scan: PlannedScan, most: Int, mostBytes: Long, random: scala.util.Random): Sample = {
    val looked = new BitSet()
    var bytes = 0L
    random.shuffle(scan.skipped.stream().toArray.toSeq).iterator.takeWhile(_ => looked.cardinality < most).foreach { i =>
      val size = scan.listing.lengths(i)
      if (looked.isEmpty || bytes + size <= mostBytes) {
        looked.set(i)
        bytes += size
      }
    }
    new Sample(looked, bytes)
  }

  /** Which of these objects hold rows that satisfy the condition, and how many; they are as they were listed. */
  def lostAmong(scan: PlannedScan, objects: BitSet): Seq[(Int, Long)] = {
    val hits = if (objects.isEmpty) (_: Int) => 0L else countAlone(scan, objects)
    val lost = objects.stream().toArray.toSeq.map(i => i -> hits(i)).filter(_._2 > 0)
    lost.foreach { case (i, _) => refuseChanged(scan, scan.listing.files(i)) }
    lost
  }

  private def scansOf(query: classic.Dataset[_]): Seq[PlannedScan] = {
    // A DataFrame is planned once; the same plan in a new one is planned anew.
    val execution = classic.Dataset.ofRows(query.sparkSession, query.queryExecution.analyzed).queryExecution
    val planned = PlannedScans.of(execution.optimizedPlan).filter(concerns)
    if (planned.nonEmpty) planned else contradicted(execution.withCachedData).filter(concerns).take(1)
  }

  /** The scans of a query that the optimizer found to select nothing, such as `n < 1 AND n > 2`: they read nothing. */
  private def contradicted(plan: LogicalPlan): Seq[PlannedScan] = plan.collectWithSubqueries {
    case rel: LogicalRelation if SkipstoneRule.candidate(rel) =>
      val listing = Listing.of(rel.relation.asInstanceOf[HadoopFsRelation].location)
      new PlannedFiles(None, rel, listing, new BitSet(), new BitSet())
  }

  private def concerns(scan: PlannedScan): Boolean =
    scan.roots.exists(within(_, root)) || scan.listing.files.exists(f => within(f.getPath, root))

  /** The dataset's objects as a query sees it: as it listed them itself, where it reads the whole of the dataset. */
  private def objectsFor(scan: PlannedScan): Seq[FileStatusWithMetadata] = (scan, dataset) match {
    case (s: PlannedFiles, d: FileScan) if s.fs.location.rootPaths.toSet != d.fs.location.rootPaths.toSet || s.fs.options != d.fs.options =>
      everything
    case _ => scan.listing.files.toSeq
  }

  /** For each scan the number of rows that satisfy its condition, by the object's place in the listing; null: all do. */
  private def relevantRows(scans: Seq[PlannedScan]): Seq[Int => Long] = {
    val found = new Array[Int => Long](scans.size)
    val filtered = scans.zipWithIndex.filter(_._1.condition.isDefined)
    val (together, alone) = filtered.partition { case (s, _) => combines(s.condition.get) }
    together.groupBy { case (scan, _) => scan.signature }.values.flatMap(_.grouped(MostTogether)).foreach { group =>
      val counts = if (group.size == 1) None else try Some(countTogether(group.map(_._1))) catch {
        case NonFatal(_) => None // a condition that fails where another one would have spared it the row
      }
      group.zipWithIndex.foreach { case ((scan, i), place) =>
        found(i) = counts.map(_(place)).getOrElse(countAlone(scan))
      }
    }
    alone.foreach { case (scan, i) => found(i) = countAlone(scan) }
    found.toSeq
  }

  private def countAlone(scan: PlannedScan): Int => Long = countAlone(scan, scan.selected)

  private def countAlone(scan: PlannedScan, objects: BitSet): Int => Long = {
    val (relation, number) = scan.numbered(objects)
    val counts = run(scan, Project(Seq(number), Filter(scan.condition.get, relation)))
      .groupBy(FileScan.ObjectColumn).count().collect().map(r => r.getInt(0) -> r.getLong(1)).toMap
    counts.getOrElse(_, 0L)
  }

  /** Conditions over the same files in one pass. */
  private def countTogether(scans: Seq[PlannedScan]): Seq[Int => Long] = {
    val union = new BitSet()
    scans.foreach(s => union.or(s.selected))
    val (relation, number) = scans.head.numbered(union)
    val marks = scans.zipWithIndex.map { case (scan, i) =>
      val columns = AttributeMap(scan.output.zip(scans.head.output))
      val condition = scan.condition.get.transform { case a: AttributeReference => columns.getOrElse(a, a) }
      Alias(If(Coalesce(Seq(condition, Literal.FalseLiteral)), Literal(1L), Literal(0L)), s"c$i")()
    }
    val sums = scans.indices.map(i => functions.sum(s"c$i"))
    val counts = run(scans.head, Project(number +: marks, relation))
      .groupBy(FileScan.ObjectColumn).agg(sums.head, sums.tail: _*).collect().map(r => r.getInt(0) -> r).toMap
    scans.indices.map(i => (object_ : Int) => counts.get(object_).fold(0L)(_.getLong(i + 1)))
  }

  /** The rows of objects, as a scan reads them; each counted once, of Parquet files from their footers alone. */
  private def rowsOf(scan: PlannedScan, files: Seq[FileStatusWithMetadata]): FileStatusWithMetadata => Long = {
    val kind = scan match {
      case s: PlannedFiles => (s.fs.fileFormat.getClass.getName, s.fs.options)
      case other => other.signature
    }
    def key(file: FileStatusWithMetadata) = (kind: Any, file.getPath)
    val unknown = files.distinctBy(_.getPath).filterNot(f => rows.contains(key(f)))
    if (unknown.nonEmpty) {
      unknown.foreach(f => rows(key(f)) = 0L)
      val (plan, named) = scan match {
        case s: PlannedFiles => (numbered(s, unknown), unknown)
        case other =>
          val all = new BitSet
          all.set(0, other.listing.files.length)
          (other.numbered(all)._1, other.listing.files.toSeq)
      }
      run(scan, plan).groupBy(PlannedScans.Number.name).count().collect().foreach(r => rows(key(named(r.getInt(0)))) = r.getLong(1))
    }
    file => rows(key(file))
  }

  /** Objects that need not be among those that the scan listed. */
  private def numbered(scan: PlannedFiles, files: Seq[FileStatusWithMetadata]): LogicalPlan = {
    val schema = StructType(Seq(PlannedScans.Number))
    val directories = files.zipWithIndex.map { case (f, i) => PartitionDirectory(new GenericInternalRow(Array[Any](i)), Seq(f)) }
    val location = new IndexingFileIndex(scan.fs.location.rootPaths, schema, directories)
    val relation = scan.fs.copy(location = location, partitionSchema = schema, bucketSpec = None)(scan.fs.sparkSession)
    val columns = DataTypeUtils.toAttributes(CharVarcharUtils.replaceCharVarcharWithStringInSchema(relation.schema))
    LogicalRelation(relation, columns, None, false, None)
  }

  /** In a session of its own, so that skipping is off for this query only. */
  private def run(scan: PlannedScan, plan: LogicalPlan): classic.Dataset[Row] = {
    val session = sessions.getOrElseUpdate(scan.session.sessionUUID, {
      val made = scan.session.cloneSession()
      made.conf.set("spark.skipstone.enabled", "false")
      made
    })
    classic.Dataset.ofRows(session, plan.transformUpWithSubqueries {
      case rel: LogicalRelation => unwrapped(rel)
      case rel: DataSourceV2ScanRelation => IcebergScan.unwrapped(rel)
    })
  }

  private def write(g: JsonGenerator, scan: PlannedScan, satisfying: Int => Long): Unit = {
    val objects = objectsFor(scan)
    val counted = rowsOf(scan, objects)
    val known = objects.iterator.map(_.getPath).toSet
    val places = scan.listing.files.indices.filter(i => known(scan.listing.files(i).getPath))
    def rows(place: Int): Long = counted(scan.listing.files(place))
    val hits = if (satisfying == null) rows _ else satisfying
    val relevant = places.filter(i => scan.selected.get(i) && hits(i) > 0)
    val kept = places.filter(scan.kept.get)
    val lost = relevant.filterNot(scan.kept.get).map(scan.listing.files(_))
    lost.foreach(refuseChanged(scan, _))
    g.writeStartObject()
    g.writeNumberField("objects", objects.size)
    g.writeNumberField("relevant_objects", relevant.size)
    g.writeNumberField("kept_objects", kept.size)
    g.writeNumberField("rows", objects.iterator.map(counted).sum)
    g.writeNumberField("relevant_rows", relevant.map(hits).sum)
    g.writeNumberField("rows_in_relevant_objects", relevant.map(rows(_)).sum)
    g.writeNumberField("rows_in_kept_objects", kept.map(rows(_)).sum)
    g.writeStringField("condition", scan.condition.map(_.sql.take(2000)).orNull)
    g.writeNumberField("lost", lost.size)
    Json.strings(g, "lost_objects", lost.take(10).map(_.getPath.toString))
    g.writeEndObject()
  }

  /** An object that is another one than the query listed tells nothing about skipping. */
  private def refuseChanged(scan: PlannedScan, file: FileStatusWithMetadata): Unit = if (scan.isInstanceOf[PlannedFiles]) {
    val path = file.getPath
    val now = path.getFileSystem(dataset.hadoop).getFileStatus(path)
    if (now.getLen != file.getLen || now.getModificationTime != file.getModificationTime) {
      throw new IllegalArgumentException(s"$path has changed since the DataFrame listed it: read the dataset anew")
    }
  }
}

/** Objects that are looked into, and their size. */
private[skipstone] class Sample(val objects: BitSet, val bytes: Long)

private[skipstone] object Indicators {
  private val MostTogether = 32

  private def within(path: Path, root: String): Boolean =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).exists(_.toString == root)

  /** Whether a condition may be evaluated for every row: no user's code, no subquery, nothing that varies. */
  private def combines(condition: Expression): Boolean =
    condition.deterministic && !SubqueryExpression.hasSubquery(condition) && !condition.exists {
      case _: PythonUDF | _: ScalaUDF | _: UserDefinedExpression => true
      case _ => false
    }

  /** The relation as it was before the rule: the subqueries of a condition have been planned already. */
  private def unwrapped(rel: LogicalRelation): LogicalRelation = rel.relation match {
    case fs: HadoopFsRelation => fs.location match {
      case wrapped: SkipstoneFileIndex => rel.copy(relation = fs.copy(location = wrapped.base)(fs.sparkSession))
      case wrapped: SkippingIndex => rel.copy(relation = fs.copy(location = wrapped.everything)(fs.sparkSession))
      case _ => rel
    }
    case _ => rel
  }
}
