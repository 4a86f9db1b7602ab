package org.apache.spark.sql.skipstone

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, Row, SparkSession}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, ExternalCatalogUtils}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{ExecutableDuringAnalysis, LogicalPlan, SupervisingCommand}
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.command.{LeafRunnableCommand, RunnableCommand}
import org.apache.spark.sql.types._

/** What a statement is on. */
private[skipstone] sealed trait Place
/** A table of the catalog, with the full name by which no temporary view can be meant. */
private[skipstone] case class TablePlace(table: CatalogTable, name: String) extends Place {
  override def toString: String = name
}
/** A table of a table format, of whatever catalog, with its full name. */
private[skipstone] case class FormatPlace(name: String) extends Place {
  override def toString: String = name
}
private[skipstone] case class FilesPlace(format: String, path: String) extends Place {
  override def toString: String = s"$format.`$path`"
}

/** CREATE INDEX, DROP INDEX, SHOW INDEXES and REFRESH INDEXES: the planner does them, by the session of whoever asks. */
case class IndexCommand(verb: String, body: String, place: Place, override val output: Seq[Attribute]) extends LeafRunnableCommand {
  override protected def stringArgs: Iterator[Any] = Iterator(verb, place)

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[classic.SparkSession]
    val asked = Json.mapper.readTree(body)
    Statements.run(session, output) { g =>
      g.writeStringField("verb", verb)
      place match {
        case TablePlace(_, name) => g.writeStringField("table", name)
        case FormatPlace(name) => g.writeStringField("table", name)
        case FilesPlace(format, path) =>
          g.writeStringField("format", format)
          g.writeStringField("path", path)
      }
      g.writeFieldName("statement")
      g.writeRawValue(body)
      val partition = asked.path("partition").elements().asScala.map(p => p.get(0).asText -> p.get(1).asText).toSeq
      val paths = asked.path("paths").elements().asScala.map(_.asText).toSeq
      if (partition.nonEmpty || paths.nonEmpty) {
        Json.strings(g, "paths", paths ++ (if (partition.isEmpty) Nil else Partitions.folders(session, place, partition)))
      }
    }
  }
}

/** EXPLAIN SKIPPING: plans a query without running it, and has the planner tell what happened to its scans. */
case class ExplainSkipping(query: LogicalPlan, override val output: Seq[Attribute] = IndexStatement.output("explain"))
  extends RunnableCommand with SupervisingCommand {
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override def withTransformedSupervisedPlan(transformer: LogicalPlan => LogicalPlan): LogicalPlan =
    copy(query = transformer(query))

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[classic.SparkSession]
    Statements.refuse(session)
    val before = Stats.last()
    val staged = query.transform { case p: ExecutableDuringAnalysis => p.stageForExplain() }
    session.withActive(session.sessionState.executePlan(staged, CommandExecutionMode.SKIP).optimizedPlan)
    val thread = Bridge.threadId()
    val scans = Json.mapper.readTree(Stats.since(before)).elements().asScala.filter(_.path("thread").asLong == thread)
    Statements.run(session, output) { g =>
      g.writeStringField("verb", "explain")
      g.writeArrayFieldStart("scans")
      scans.foreach(scan => g.writeRawValue(scan.toString))
      g.writeEndArray()
    }
  }
}

/** Calls the planner for a statement, on the statement's own thread: what cancels its jobs cancels the statement. */
private[skipstone] object Statements {
  private val Enabled = "spark.skipstone.sql.enabled"

  def run(session: classic.SparkSession, output: Seq[Attribute])(request: JsonGenerator => Unit): Seq[Row] = {
    val planner = refuse(session)
    val text = Json.text { g =>
      g.writeStartObject()
      request(g)
      g.writeEndObject()
    }
    val answer = try Json.mapper.readTree(PlannerCalls.command(planner, session, text)) catch {
      case NonFatal(e) => throw new SkipstoneSqlException("SKIPSTONE_NO_PLANNER", "55000",
        s"The process that carries out statements on indexes gave no answer: $e. Whether something was committed is not known.")
    }
    Option(answer.get("error")).foreach { e =>
      throw new SkipstoneSqlException(e.path("condition").asText, e.path("state").asText, e.path("message").asText)
    }
    answer.path("rows").elements().asScala.map(row => Row.fromSeq(output.zipWithIndex.map { case (column, i) =>
      value(row.get(i), column.dataType)
    })).toSeq
  }

  /** Who carries statements out. An application that was started without them cannot be talked into them by SET. */
  def refuse(session: classic.SparkSession): Planner = {
    val settings = Seq(session.sparkContext.getConf.get(Enabled, "true"), session.sessionState.conf.getConfString(Enabled, "true"))
    if (settings.exists(!_.trim.equalsIgnoreCase("true"))) throw new SkipstoneSqlException("SKIPSTONE_SQL_DISABLED", "0A000",
      s"Statements on indexes are switched off here: $Enabled is not true.")
    Option(Companion.planner(session)).getOrElse(throw new SkipstoneSqlException("SKIPSTONE_NO_PLANNER", "55000",
      if (Companion.isWanted) s"Nothing carries out statements on indexes now: ${Companion.absence}."
      else "Nothing in this program carries out statements on indexes: it has Skipstone's extension, but no Python process that plans for it."))
  }

  private def value(node: JsonNode, dataType: DataType): Any = if (node == null || node.isNull) null else dataType match {
    case LongType => node.asLong
    case DoubleType => node.asDouble
    case _: ArrayType => node.elements().asScala.map(_.asText).toSeq
    case _ => node.asText
  }
}

/** The folders of partitions that a statement names. */
private[skipstone] object Partitions {
  def folders(session: classic.SparkSession, place: Place, wanted: Seq[(String, String)]): Seq[String] = place match {
    case TablePlace(table, name) if table.tracksPartitionsInCatalog =>
      val found = session.sessionState.catalog.listPartitions(table.identifier, Some(named(session, place, table.partitionColumnNames, wanted).toMap))
      if (found.isEmpty) throw refused(s"$name has no partition ${spelled(wanted)}.")
      found.map(p => new Path(p.location).toString)
    case TablePlace(table, _) => Seq(folder(session, place, table.partitionColumnNames, new Path(table.location), wanted))
    case FormatPlace(name) => throw refused(s"The partitions of $name are no folders: name files, or refresh all of the table.")
    case FilesPlace(format, path) =>
      val scan = FileScan.of(session.read.format(format).load(path).asInstanceOf[classic.Dataset[_]])
      Seq(folder(session, place, scan.described.partitionSchema.fieldNames.toSeq, new Path(path), wanted))
  }

  /** Without a catalog a partition is the folder of its first columns' values. */
  private def folder(session: classic.SparkSession, place: Place, columns: Seq[String], root: Path, wanted: Seq[(String, String)]): String = {
    val values = named(session, place, columns, wanted).toMap
    if (!columns.take(values.size).forall(values.contains)) throw refused(
      s"The partitions of $place lie in folders by (${columns.mkString(", ")}): name the first of these, not only ${spelled(wanted)}.")
    columns.take(values.size).foldLeft(root)((folder, c) =>
      new Path(folder, ExternalCatalogUtils.getPartitionPathString(c, values(c)))).toString
  }

  private def named(session: classic.SparkSession, place: Place, columns: Seq[String], wanted: Seq[(String, String)]) = wanted.map { case (name, value) =>
    columns.find(session.sessionState.conf.resolver(_, name)).getOrElse(throw refused(
      s"$place is not partitioned by $name; " +
        (if (columns.isEmpty) "it has no partitions." else s"it is by ${columns.mkString(", ")}."))) -> value
  }

  private def spelled(wanted: Seq[(String, String)]): String = wanted.map { case (k, v) => s"$k=$v" }.mkString("(", ", ", ")")

  private def refused(sentence: String) = new SkipstoneSqlException("PARTITIONS_NOT_FOUND", "428FT", sentence)
}
