package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.BitSet
import java.util.concurrent.ConcurrentHashMap

import scala.collection.immutable.ArraySeq
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.{CatalogStatistics, CatalogTable}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.internal.SQLConf

/** The entry of `spark.sql.extensions`. */
class SkipstoneExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPreCBORule(session => new SkipstoneRule(session))
    extensions.injectQueryStageOptimizerRule(session => new JoinRule(session))
    extensions.injectQueryStageOptimizerRule(session => new AggregateRule(session))
    extensions.injectQueryStagePrepRule(session => new WholeAggregateRule(session))
    extensions.injectColumnar(_ => new GuardScans)
    extensions.injectParser((_, parser) => StatementParser.over(parser))
    extensions.injectHintResolutionRule(_ => new ClaimIndexStatements)
    extensions.injectResolutionRule(session => new ResolveIndexStatements(session))
    SessionEntries.inject(extensions)
    Monitoring.current()
    Companion.start()
  }
}

/**
 * Makes every file scan list only the objects that its filter can need.
 *
 * Runs before cost-based optimisation: by then the whole condition stands in a Filter on the
 * relation, Python UDFs included, and joins are not chosen yet. Whatever goes wrong, the scan is
 * left as it is and the reason is recorded; only force mode throws.
 */
class SkipstoneRule(session: SparkSession) extends Rule[LogicalPlan] {
  import SkipstoneRule._

  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (Capture.active) return Capture.from(plan)
    if ((Bridge.planner == null && !Companion.isWanted) || !isTrue("spark.skipstone.enabled", "true")) {
      if (PlannedScans.watched) {
        watch(Try(PruneFileSourcePartitions(plan)).getOrElse(plan))
        guarded(plan)(new TableRule(session.asInstanceOf[classic.SparkSession], deciding = false)(plan))(_ => ())
      }
      plan
    } else guarded(plan) {
      val files = if (!plan.exists(candidate)) plan
        else wrap(Try(PruneFileSourcePartitions(plan)).getOrElse(plan), Companion.planner(session))
      guarded(files)(new TableRule(session.asInstanceOf[classic.SparkSession])(files))(
        error => warnOnce(s"Skipstone left the tables of a plan alone: $error"))
    }(error => warnOnce(s"Skipstone left a plan alone: $error"))
  }

  // Not `transform`: it would visit the relation below a Filter once more.
  private def wrap(plan: LogicalPlan, planner: Planner, top: Option[Top] = None): LogicalPlan = plan match {
    case f @ Filter(condition, rel: LogicalRelation) if candidate(rel) =>
      val wrapped = noted(Some(condition), rel, decide(Some(condition), rel, planner, top))
      if (wrapped eq rel) f else f.withNewChildren(Seq(wrapped))
    case rel: LogicalRelation if candidate(rel) => noted(None, rel, decide(None, rel, planner, top))
    case other => other.mapChildren(wrap(_, planner, TopK.through(other, top)))
  }

  /** The same visit where nothing is decided. */
  private def watch(plan: LogicalPlan): Unit = plan match {
    case Filter(condition, rel: LogicalRelation) if candidate(rel) => noted(Some(condition), rel, rel)
    case rel: LogicalRelation if candidate(rel) => noted(None, rel, rel)
    case other => other.children.foreach(watch)
  }

  private def noted(condition: Option[Expression], rel: LogicalRelation, planned: LogicalRelation): LogicalRelation = {
    if (PlannedScans.watched) {
      PlannedScans.add(condition, rel, planned)(selection(condition, rel, rel.relation.asInstanceOf[HadoopFsRelation]))
    }
    planned
  }

  private def decide(
      condition: Option[Expression], rel: LogicalRelation, planner: Planner, first: Option[Top]): LogicalRelation = {
    val start = System.nanoTime()
    val described = new RelationJson(rel, session.asInstanceOf[classic.SparkSession])
    val uuid = session.asInstanceOf[classic.SparkSession].sessionUUID
    val top = TopK.asked(first, condition, described, isTopAsked && !rel.isStreaming)
    val entry = new Entry(uuid, described.roots.take(5).map(_.toString), described.format, described.table)
    entry.location = new WeakReference(described.fs.location)
    try guarded(rel) {
      Runs.watch(session.asInstanceOf[classic.SparkSession].sparkContext)
      entry.filters = condition.toSeq.flatMap(ExpressionJson.conjuncts).map(_.semanticHash()).toSet
      entry.condition = condition.flatMap(c => guarded(Option.empty[String])(Some(c.sql.take(2000)))(_ => ()))
      val timeout = timeoutMs(conf)
      val environments = described.environments()
      if (planner == null) entry.notes = entry.notes :+ s"nobody planned: ${Companion.absence}"
      var request = ""
      val decision = if (planner == null) None else guarded(Option.empty[Decision]) {
        request = requestOf(described, environments, condition, top)
        val called = System.nanoTime()
        try Some(PlannerCalls.plan(planner, request, timeout)) finally entry.plannerNs = System.nanoTime() - called
      } { error => fail(entry, error) }
      entry.header = decision.map(_.header)
      if (isTrue("spark.skipstone.force", "false")) decision.flatMap(_.refusal).foreach(reason => throw new SkipstoneForceException(reason))
      if (decision.exists(_.caught.nonEmpty) && Audits.raises(conf)) throw new SkipstoneForceException(
        s"an audit found that rows were lost by ${decision.get.caught.mkString(", ")} of ${entry.roots.headOption.getOrElse("")}: drop it, " +
          "or set spark.skipstone.audit.action to disable to go on without it")
      // Listing a catalog table's partitions is not free: not for statistics alone.
      if (decision.exists(_.indexed) || described.fs.location.isInstanceOf[PartitioningAwareFileIndex]) {
        val still = new Still(described, environments, decision.map(_.environment).getOrElse(Set.empty))
        still.verifyFiles(decision.map(_.evidence).getOrElse(Nil))
        val planned = prune(condition, rel, still, decision, entry, planner, timeout, top)
        if (entry.wrapped && condition.isDefined && Audits.chosen(conf)) suspected(condition, rel, planned, still, entry, request, planner)
        planned
      } else rel
    } { error => fail(entry, error) }
    catch {
      case e: SkipstoneForceException =>
        entry.error = Some(e.getMessage)
        throw e
    } finally {
      entry.decided(start)
      if (!WarmUp.isActive) Option(entry.location.get).collect { case l: FileIndex => l }.foreach(PlannedRelations.add(_, new PlannedRelation(
        described.fs.dataSchema, rel.catalogTable, entry, entry.header.toSeq.flatMap(Decision.texts(_, "columns")).toSet)))
      if (!WarmUp.isActive) Stats.add(entry)
      if (entry.wrapped) logInfo(entry.logged)
    }
  }

  private def prune(condition: Option[Expression], rel: LogicalRelation, still: Still,
      decision: Option[Decision], entry: Entry, planner: Planner, timeout: Long, top: Option[Top]): LogicalRelation = {
    val fs = rel.relation.asInstanceOf[HadoopFsRelation]
    val listingStart = System.nanoTime()
    val version = Listing.version(fs.location)
    val (listing, selected) = selection(condition, rel, fs)
    entry.listingNs = System.nanoTime() - listingStart
    entry.listed = true
    count(entry, listing, selected)

    if (decision.exists(_.indexed) && !listing.metadata.isEmpty) sayMetadata(listing.metadata.cardinality, entry)

    val matchStart = System.nanoTime()
    val answers = decision.map(_.kept).getOrElse(Nil).toArray
    val snapshots = answers.map(k => Snapshot.of(planner, k.id, k.rows, timeout))
    entry.objectsNs = System.nanoTime() - matchStart
    val rows = snapshots.map(listing.rowsIn)
    val keep = new BitSet(listing.files.length)
    selected.indices.filter(selected(_)).foreach { d =>
      choose(listing, listing.starts(d), listing.starts(d + 1), answers, rows, keep, entry)
    }
    if (decision.isEmpty) entry.unindexed = 0 // nobody was asked
    val topped = top.filter(_ => decision.exists(_.ranked)).flatMap(TopK.choose(_, decision.get, listing, selected, rows, keep))
    if (topped.isEmpty && decision.exists(_.ranked)) {
      entry.notes = entry.notes :+ s"${decision.get.question}: no object comes after rows enough of few that match wholly"
    }
    topped.foreach(drop(_, listing, rows, keep, entry, fs, still))
    if (entry.skipped > 0 && (isLogged(fs.location) || isTrue("spark.skipstone.verifyListing", "false"))) {
      val changed = Listing.changed(listing, selected, keep, fs)
      keep.or(changed)
      still.verify(() => Listing.changed(listing, selected, keep, fs).isEmpty)
      entry.skipped -= changed.cardinality
      entry.stale += changed.cardinality
      topped.foreach(t => entry.byTop -= { val both = t.skipped.clone.asInstanceOf[BitSet]; both.and(changed); both.cardinality })
      entry.bytesSkipped -= listing.bytesOf(changed)
    }
    entry.kept = entry.total - entry.skipped
    entry.matchNs = System.nanoTime() - matchStart
    if (entry.skipped > 0 && isTrue(Ordering, "false") && fs.bucketSpec.exists(_.sortColumnNames.nonEmpty)) {
      // The plan would rest on the order of the kept files, and a run that reads the others does not have it.
      entry.keepAll(s"$Ordering makes plans depend on which files are read")
    }
    if (entry.skipped > 0 && isTrue(MetadataOnly, "false")) {
      // Spark then answers from the partitions that are listed, whether or not their files hold a row.
      entry.keepAll(s"$MetadataOnly makes answers depend on which files are listed")
    }
    if (entry.skipped == 0) rel else {
      val wrapped = replace(rel, fs, new Decided(fs.location, version, listing, selected, keep, topped), keep, entry, still)
      entry.location = new WeakReference(wrapped.relation.asInstanceOf[HadoopFsRelation].location)
      entry.wrapped = true
      wrapped
    }
  }

  /** Have it looked into, once the query has run, what the filters of a scan left out; not what its first rows do not need. */
  private def suspected(condition: Option[Expression], rel: LogicalRelation, planned: LogicalRelation, still: Still, entry: Entry,
      request: String, planner: Planner): Unit = guarded(()) {
    val decided = planned.relation.asInstanceOf[HadoopFsRelation].location.asInstanceOf[SkipstoneFileIndex].decided
    val scan = new PlannedFiles(condition, rel, decided.listing, decided.chosen, decided.keptByFilters)
    Audits.expect(new Suspect(scan, still, entry, request, planner, session.asInstanceOf[classic.SparkSession], conf))
  }(error => warnOnce(s"Skipstone: a scan is not audited: $error"))

  /** Leave out what the first rows do not need, for as long as what was counted for that is as it was. */
  private def drop(topped: Topped, listing: Listing, rows: Array[Array[Int]], keep: BitSet, entry: Entry, fs: HadoopFsRelation,
      still: Still): Unit = {
    keep.andNot(topped.skipped)
    entry.byTop = topped.skipped.cardinality
    entry.skipped += entry.byTop
    topped.skipped.stream().forEach { i =>
      entry.bytesSkipped += listing.lengths(i)
      if (!rows.exists(_(i) >= 0)) { if (rows.exists(_(i) == Snapshot.Stale)) entry.stale -= 1 else entry.unindexed -= 1 }
    }
    val counted = new Counted(topped.counted.stream().toArray.toSeq.map(listing.files(_).fileStatus), fs)
    still.verify(() => counted.areAsListed)
  }

  private def sayMetadata(files: Int, entry: Entry): Unit = {
    val said = s"$files files of metadata (_skipstone) are read as data: let ignoredPathSegmentRegex hide names that " +
      "begin with _ (its default does), or keep metadata elsewhere with spark.skipstone.location"
    entry.notes = entry.notes :+ said
    warnOnce(s"Skipstone: in ${entry.roots.headOption.getOrElse("a scan")} $said")
  }

  private def count(entry: Entry, listing: Listing, selected: Array[Boolean]): Unit = {
    selected.indices.filter(selected(_)).foreach { d =>
      entry.total += listing.starts(d + 1) - listing.starts(d)
      entry.bytesTotal += listing.directoryBytes(d)
    }
    entry.kept = entry.total
  }

  /** The objects of a scan, and of which of its directories Spark will read something. */
  private def selection(
      condition: Option[Expression], rel: LogicalRelation, fs: HadoopFsRelation): (Listing, Array[Boolean]) = {
    val listing = Listing.of(fs.location)
    val selects = partitionSelector(condition, rel, fs)
    (listing, listing.directories.map(d => selects(d.values)))
  }

  /** The partition filters that Spark will prune with when it plans the scan. */
  private def partitionSelector(
      condition: Option[Expression], rel: LogicalRelation, fs: HadoopFsRelation): InternalRow => Boolean = {
    if (condition.isEmpty || fs.partitionSchema.isEmpty) _ => true else {
      val usable = ExpressionJson.conjuncts(condition.get).filter { f =>
        f.deterministic && !SubqueryExpression.hasSubquery(f) && !f.exists(_.isInstanceOf[PythonUDF])
      }
      val normal = DataSourceStrategy.normalizeExprs(usable, rel.output)
      val (filters, _) = DataSourceUtils.getPartitionFiltersAndDataFilters(fs.partitionSchema, normal)
      ListedFileIndex.selector(filters, fs.location.partitionSchema)
    }
  }

  private def replace(
      rel: LogicalRelation, fs: HadoopFsRelation, decided: Decided, keep: BitSet, entry: Entry, still: Still): LogicalRelation = {
    val listing = decided.listing
    val keptBytes = entry.bytesTotal - entry.bytesSkipped
    val planned = new Outcome(entry.kept, entry.total, entry.bytesSkipped)
    entry.planned = Some(planned)
    val location = new SkipstoneFileIndex(
      fs.location, directoriesOf(fs, listing, keep), digestOf(listing, keep, decided.topped), keptBytes, planned, decided, still)
    // The table's statistics win over the index's size once they exist.
    val table = scaled(rel.catalogTable, keptBytes, listing.bytes)
    val wrapped = rel.copy(relation = fs.copy(location = location)(fs.sparkSession), catalogTable = table)
    wrapped.copyTagsFrom(rel)
    wrapped
  }

  // Indicators measure filters: an object that is not needed for its place is none that they expect.
  private def isTopAsked: Boolean = !PlannedScans.watched && isTrue("spark.skipstone.topk", "true")

  private def isTrue(setting: String, default: String): Boolean = SkipstoneRule.isTrue(conf, setting, default)

  private def fail(entry: Entry, error: String): Unit = {
    entry.error = Some(error)
    if (!WarmUp.isActive) warnOnce(s"Skipstone: nothing skipped in ${entry.roots.headOption.getOrElse("a scan")}: $error")
  }

  private def warnOnce(message: String): Unit = if (isNew(message)) logWarning(message)
}

private[skipstone] object SkipstoneRule {
  private val MetadataOnly = "spark.sql.optimizer.metadataOnly"
  val Ordering = "spark.sql.legacy.bucketedTableScan.outputOrdering"
  private val warned = ConcurrentHashMap.newKeySet[String]()

  def isNew(warning: String): Boolean = warned.size < 1000 && warned.add(warning)

  def isTrue(conf: SQLConf, setting: String, default: String): Boolean =
    conf.getConfString(setting, default).trim.equalsIgnoreCase("true")

  def timeoutMs(conf: SQLConf): Long =
    CompanionSettings.milliseconds(conf.getConfString("spark.skipstone.plannerTimeoutMs", "30s")).getOrElse(30000L)

  def requestOf(described: Described, environments: Seq[Environment], condition: Option[Expression],
      top: Option[Top] = None): String = Json.text { g =>
    g.writeStartObject()
    g.writeFieldName("relation")
    val mentioned = condition ++ top.flatMap(_.key).map(k => IsNotNull(k.expression))
    described.write(g, environments, mentioned.reduceOption(And), full = false)
    g.writeFieldName("condition")
    condition match {
      case Some(c) => new ExpressionJson(described.columns, g).write(c)
      case None => g.writeNull()
    }
    if (Audits.caught.nonEmpty) Json.strings(g, "distrusted", Audits.caught)
    if (WarmUp.isActive) g.writeBooleanField("rehearsal", true)
    top.foreach { t =>
      g.writeFieldName("top")
      t.write(g, described.columns, TopK.whole(condition, described.columns))
    }
    g.writeEndObject()
  }

  /** The files of a stream's output are listed by what its log says of them, however often. */
  def isLogged(location: FileIndex): Boolean = location.getClass.getSimpleName == "MetadataLogFileIndex"

  /** The kept objects of a listing in their directories. */
  def directoriesOf(fs: HadoopFsRelation, listing: Listing, keep: BitSet): Seq[PartitionDirectory] =
    listing.directories.indices.flatMap { d =>
      val files = Array.newBuilder[FileStatusWithMetadata]
      var i = keep.nextSetBit(listing.starts(d))
      val any = i >= 0 && i < listing.starts(d + 1)
      while (i >= 0 && i < listing.starts(d + 1)) {
        files += listing.files(i)
        i = keep.nextSetBit(i + 1)
      }
      if (!any && fs.partitionSchema.nonEmpty) None
      else Some(listing.directories(d).copy(files = ArraySeq.unsafeWrapArray(files.result())))
    }

  /** What tells apart scans that read different objects, or stand aside for the sake of different ones. */
  def digestOf(listing: Listing, keep: BitSet, topped: Option[Topped] = None): String = {
    val counted = topped.fold(Array.emptyByteArray)(t => 0.toByte +: t.counted.toByteArray)
    ExpressionJson.hex(ExpressionJson.md5(listing.digest ++ keep.toByteArray ++ counted))
  }

  // Runs for every object of every query: arrays and local variables only.
  def choose(listing: Listing, from: Int, until: Int, answers: Array[Kept], rows: Array[Array[Int]],
      keep: BitSet, entry: Entry): Unit = {
    var skipped, stale, unindexed = 0
    var bytesSkipped = 0L
    var i = from
    while (i < until) {
      var fresh, known, skip = false
      var a = 0
      while (a < answers.length) {
        val row = rows(a)(i)
        if (row >= 0) {
          fresh = true
          if (!answers(a).keeps(row)) skip = true
        } else if (row == Snapshot.Stale) known = true
        a += 1
      }
      if (skip) {
        skipped += 1
        bytesSkipped += listing.lengths(i)
      } else {
        keep.set(i)
        if (!fresh) { if (known) stale += 1 else unindexed += 1 }
      }
      i += 1
    }
    entry.skipped += skipped
    entry.bytesSkipped += bytesSkipped
    entry.stale += stale
    entry.unindexed += unindexed
  }

  /** Fail open: on any error that Spark could survive, say it and give the fallback. */
  def guarded[T](fallback: T)(body: => T)(onError: String => Unit): T = {
    def caught(t: Throwable): T = {
      onError(s"${t.getClass.getSimpleName}: ${Option(t.getMessage).getOrElse("").take(1000)}")
      fallback
    }
    try body catch {
      case e: SkipstoneForceException => throw e
      case e: LinkageError => caught(e)
      case e: StackOverflowError => caught(e)
      case NonFatal(e) => caught(e)
    }
  }

  /** A table with statistics as if it had only some of its bytes. */
  def scaled(table: Option[CatalogTable], keptBytes: Long, bytes: Long): Option[CatalogTable] = table.map(t => t.stats.fold(t) { s =>
    val share = BigDecimal(keptBytes) / BigDecimal(math.max(bytes, 1L))
    def scaled(n: BigInt): BigInt = (BigDecimal(n) * share).setScale(0, BigDecimal.RoundingMode.UP).toBigInt
    withStats(t, CatalogStatistics(scaled(s.sizeInBytes), s.rowCount.map(scaled), s.colStats))
  })

  /** `copy(stats = ...)` by reflection: the class gets a field with nearly every release, and the jar serves several. */
  def withStats(table: CatalogTable, stats: CatalogStatistics): CatalogTable = {
    val values = table.productIterator.map(_.asInstanceOf[AnyRef]).toArray
    values(table.productElementNames.indexOf("stats")) = Some(stats)
    classOf[CatalogTable].getMethods.find(m => m.getName == "copy" && m.getParameterCount == values.length).get
      .invoke(table, values: _*).asInstanceOf[CatalogTable]
  }

  /** A scan of files by one of Spark's own indexes; others (Delta's, Hudi's) have rules that look for their class. */
  def candidate(plan: LogicalPlan): Boolean = plan match {
    case rel: LogicalRelation => rel.relation match {
      case fs: HadoopFsRelation =>
        (fs.location.isInstanceOf[PartitioningAwareFileIndex] || fs.location.isInstanceOf[CatalogFileIndex]) &&
          !fs.location.rootPaths.take(50).forall(inMetadata)
      case _ => false
    }
    case _ => false
  }

  private def inMetadata(path: Path): Boolean =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null).exists(_.getName == "_skipstone")
}
