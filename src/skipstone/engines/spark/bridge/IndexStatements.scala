package org.apache.spark.sql.skipstone

import org.apache.spark.QueryContext
import org.apache.spark.sql.{classic, AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedTable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.COMMAND
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.connector.catalog.V1Table
import org.apache.spark.sql.connector.catalog.index.SupportsIndex
import org.apache.spark.sql.execution.command.ExplainCommand
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2
import org.apache.spark.sql.types._

import scala.util.Try

/** What a statement is refused with: a condition and a sentence, as Spark's own errors have them. */
class SkipstoneSqlException(condition: String, state: String, sentence: String)
  // These seven arguments are there in every release; 4.1 has more, with defaults.
  extends AnalysisException(s"[$condition] $sentence SQLSTATE: $state", Option.empty[Int], Option.empty[Int],
    Option.empty[Throwable], Some(condition), Map("message" -> sentence), Array.empty[QueryContext]) {
  override def getSqlState: String = state
}

/**
 * A statement on a table's indexes, before the table is looked up.
 *
 * Spark checks the columns of a CREATE INDEX as soon as its table is resolved, and would refuse what is no column: a
 * feature's name, `*`. So it becomes this node before anything is resolved, and Spark's own command again (`theirs`)
 * when the table turns out to be another's.
 *
 * @param body the statement in JSON, without its table
 */
case class IndexStatement(table: LogicalPlan, verb: String, body: String, theirs: Option[LogicalPlan]) extends UnaryCommand {
  override def child: LogicalPlan = table
  override protected def withNewChildInternal(newChild: LogicalPlan): IndexStatement = copy(table = newChild)
}

private[skipstone] object IndexStatement {
  /** Before the JSON of a statement that stands as the name of an index in a DROP INDEX; see [[StatementParser]]. */
  val Mark = "skipstone:"

  private val Report = "root string, indexes array<string>, objects bigint, indexed bigint, removed bigint, " +
    "left_out bigint, untrusted bigint, rows bigint, metadata_bytes bigint, seconds double, version bigint, " +
    "problems array<string>, repaired string, lost array<string>"

  /** What each statement answers, known before it runs. */
  private val Schemas: Map[String, StructType] = Map(
    "create" -> Report,
    "refresh" -> Report,
    "show" -> ("name string, type string, columns array<string>, options string, covered bigint, stale bigint, " +
      "missing bigint, bytes bigint, key string, created string, refreshed string, not_used string"),
    "explain" -> "plan string").map { case (verb, ddl) => verb -> StructType.fromDDL(ddl) } + ("drop" -> new StructType())

  def output(verb: String) = DataTypeUtils.toAttributes(Schemas(verb))

  def of(c: CreateIndex): IndexStatement = IndexStatement(c.table, "create", Json.text { g =>
    g.writeStartObject()
    g.writeStringField("name", c.indexName)
    g.writeStringField("using", c.indexType)
    g.writeBooleanField("if_not_exists", c.ignoreIfExists)
    g.writeArrayFieldStart("columns")
    c.columns.foreach { case (column, options) =>
      g.writeStartObject()
      Json.strings(g, "parts", column.name)
      Json.map(g, "options", options)
      g.writeEndObject()
    }
    g.writeEndArray()
    Json.map(g, "options", c.properties)
    g.writeEndObject()
  }, Some(c))

  def of(d: DropIndex): IndexStatement = if (d.indexName.startsWith(Mark)) {
    val body = d.indexName.stripPrefix(Mark)
    val verb = Json.mapper.readTree(body).path("verb").asText
    val called = if (verb == "show") "SHOW INDEXES" else "REFRESH INDEXES"
    val table = d.table match {
      case u: UnresolvedTable => UnresolvedTable(u.multipartIdentifier, called, suggestAlternative = false)
      case other => other
    }
    IndexStatement(table, verb, body, None)
  } else IndexStatement(d.table, "drop", Json.text { g =>
    g.writeStartObject()
    g.writeStringField("name", d.indexName)
    g.writeBooleanField("if_exists", d.ignoreIfNotExists)
    g.writeEndObject()
  }, Some(d))
}

/** Takes index statements over, before anything of them is resolved. */
class ClaimIndexStatements extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = if (!plan.containsPattern(COMMAND)) plan else plan.resolveOperatorsUp {
    case c: CreateIndex if !c.table.resolved => IndexStatement.of(c)
    case d: DropIndex if !d.table.resolved => IndexStatement.of(d)
    case StatementParser.Explained(query) => ExplainSkipping(query)
  }
}

/** Makes commands of index statements once it is known what their tables are. */
class ResolveIndexStatements(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = if (!plan.containsPattern(COMMAND)) plan else plan.resolveOperatorsUp {
    case s @ IndexStatement(r: ResolvedTable, _, _, _) => r.table match {
      case V1Table(table) if !table.provider.exists(p => Others(p.toLowerCase(java.util.Locale.ROOT))) =>
        command(s, TablePlace(table, named(r)))
      case t if TableFormats.isNamed(t.getClass.getName) && !t.isInstanceOf[SupportsIndex] => command(s, FormatPlace(named(r)))
      case other => s.theirs.map(_.withNewChildren(Seq(r))).getOrElse(throw new SkipstoneSqlException(
        "SKIPSTONE_NOT_A_DATASET", "42809", s"${other.name} has no indexes of Skipstone's: it is not a table of plain files."))
    }
    case s @ IndexStatement(u: UnresolvedTable, _, _, _) if isFiles(u.multipartIdentifier) =>
      command(s, FilesPlace(u.multipartIdentifier.head, u.multipartIdentifier.last))
  }

  private def named(r: ResolvedTable): String =
    (r.catalog.name() +: r.identifier.namespace().toSeq :+ r.identifier.name()).map(quoteIfNeeded).mkString(".")

  private def command(s: IndexStatement, place: Place) =
    IndexCommand(s.verb, s.body, place, IndexStatement.output(s.verb))

  // Tables of formats with indexes, or listings, of their own.
  private val Others = Set("delta", "iceberg", "hudi")

  /** Whether a name is a path that Spark would read by SELECT … FROM format.`path`; a table of that name comes first. */
  private def isFiles(name: Seq[String]): Boolean = name.size == 2 && conf.runSQLonFile &&
    Try(DataSource.lookupDataSource(name.head, conf)).toOption.exists(found =>
      classOf[FileFormat].isAssignableFrom(found) || classOf[FileDataSourceV2].isAssignableFrom(found)) &&
    !Try(session.asInstanceOf[classic.SparkSession].sessionState.catalog
      .tableExists(TableIdentifier(name.last, Some(name.head)))).getOrElse(false)
}
