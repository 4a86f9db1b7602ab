package org.apache.spark.sql.skipstone

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types._

/**
 * What is read and how, as JSON: the same for indexing and for querying, so that they can be compared.
 *
 * Readers look at the settings of the relation's own session, which for a global view is the one that made the view, and
 * in their tasks at those of the session that runs the query.
 */
private[skipstone] abstract class Described(output: Seq[Attribute], running: classic.SparkSession) {
  private val conf = running.sessionState.conf
  def roots: Seq[Path]
  def format: String
  /** The reader whose settings count; a table format has files of another one. */
  def reader: String = format
  def options: Map[String, String]
  def table: Option[String]
  protected def tableLocation: Option[String]
  /** The session that the files are read by. */
  protected def owner: classic.SparkSession
  /** All columns, those of the files, and those whose values do not come from the files. */
  def schema: StructType
  def dataSchema: StructType
  def partitionSchema: StructType

  /** The relation's data and partition columns by the attributes that stand for them in the plan. */
  lazy val columns: Map[ExprId, Column] = output.filterNot(_.metadata.contains("__metadata_col")).flatMap { a =>
    val partition = partitionSchema.fieldNames.exists(conf.resolver(_, a.name))
    if (schema.fieldNames.contains(a.name)) Some(a.exprId -> Column(a.name, a.dataType, partition)) else None
  }.toMap

  /** Of the session that the files are read by, and of the one that runs the query, where that is another. */
  def environments(): Seq[Environment] = Seq(owner, running).distinct.map(Environment.of(_, reader, options)).distinct

  def write(g: JsonGenerator, environments: Seq[Environment], mentioned: Option[Expression], full: Boolean): Unit = {
    g.writeStartObject()
    // A pruned catalog table has a root a partition; their parents tell the dataset as well.
    val named = if (full || roots.size <= 50) roots else roots.map(p => Option(p.getParent).getOrElse(p)).distinct
    Json.strings(g, "roots", named.map(_.toString))
    g.writeStringField("format", format)
    // Lower case, since Spark gives them so or as they were written, depending on where the scan came from.
    Json.map(g, "options", options.map { case (k, v) => k.toLowerCase(java.util.Locale.ROOT) -> v }.toSeq.sorted)
    g.writeArrayFieldStart("columns")
    val wanted = if (full) schema.fieldNames.toSet else mentioned.map(names).getOrElse(Set.empty)
    output.flatMap(a => columns.get(a.exprId)).filter(c => wanted(c.name)).foreach { c =>
      g.writeStartObject()
      g.writeStringField("n", c.name)
      g.writeStringField("t", Json.typeText(c.dataType))
      g.writeBooleanField("p", c.partition)
      declared(c.name).foreach(g.writeStringField("d", _))
      g.writeEndObject()
    }
    g.writeEndArray()
    g.writeStringField("schema_digest", ExpressionJson.hex(ExpressionJson.md5(dataSchema.json.getBytes(UTF_8))))
    g.writeStringField("partition_schema", partitionSchema.json)
    g.writeBooleanField("variants", dataSchema.existsRecursively(_.isInstanceOf[VariantType]))
    g.writeBooleanField("voids", dataSchema.existsRecursively(_.isInstanceOf[NullType]))
    if (full) g.writeStringField("data_schema", dataSchema.json)
    g.writeStringField("table", table.orNull)
    g.writeStringField("table_location", tableLocation.orNull)
    environments.zip(Seq("environment", "running")).foreach { case (e, name) => e.write(g, name) }
    Json.map(g, "conf", settings(mentioned.map(functions).getOrElse(Set.empty)))
    g.writeEndObject()
  }

  /** What the schema says of a column and the fields in it besides their types: char(n), a default, a field's id. */
  private def declared(name: String): Option[String] = {
    val said = Seq.newBuilder[String]
    def look(field: StructField, path: String): Unit = {
      val cleaned = identity(field)
      if (cleaned != Metadata.empty) said += s"$path${cleaned.json}"
      inside(field.dataType, path)
    }
    def inside(dataType: DataType, path: String): Unit = dataType match {
      case s: StructType => s.fields.foreach(f => look(f, s"$path.${f.name}"))
      case a: ArrayType => inside(a.elementType, s"$path[]")
      case m: MapType => Seq(m.keyType, m.valueType).zip(Seq("k", "v")).foreach { case (t, n) => inside(t, s"$path{$n}") }
      case _ =>
    }
    look(declaring(name), "")
    Some(said.result().mkString(" ")).filter(_.nonEmpty)
  }

  /** The field that says of a column what counts, and what of that does. */
  protected def declaring(name: String): StructField = schema(name)

  protected def identity(field: StructField): Metadata = Seq("comment", "CURRENT_DEFAULT").foldLeft(
    new MetadataBuilder().withMetadata(field.metadata))((m, key) => m.remove(key)).build()

  private def functions(e: Expression): Set[String] =
    visit(e)(FunctionIds.nameOf).map(_.toLowerCase(java.util.Locale.ROOT))

  private def names(e: Expression): Set[String] = visit(e) {
    case a: AttributeReference => columns.get(a.exprId).map(_.name)
    case _ => None
  }

  // Without recursion: a condition may be thousands of levels deep.
  private def visit(e: Expression)(say: Expression => Option[String]): Set[String] = {
    val found = Set.newBuilder[String]
    val stack = new java.util.ArrayDeque[Expression]()
    stack.push(e)
    while (!stack.isEmpty) {
      val next = stack.pop()
      found ++= say(next)
      next.children.foreach(stack.push)
    }
    found.result()
  }

  // A session may have stated versions of many functions: only those that a condition calls travel with it.
  private def settings(functions: Set[String]): Seq[(String, String)] =
    ("caseSensitive" -> conf.caseSensitiveAnalysis.toString) +: ("sessionTimeZone" -> conf.sessionLocalTimeZone) +:
      conf.getAllConfs.filter { case (name, _) => name == Described.HiddenNames || name.startsWith("spark.skipstone.") &&
          !name.startsWith(Described.OfCompanion) &&
          (!name.startsWith(Described.Stated) || functions(name.stripPrefix(Described.Stated)))
      }.toSeq.sorted
}

/** A scan of files. */
private[skipstone] class RelationJson(
    val fs: HadoopFsRelation, output: Seq[Attribute], catalogTable: Option[CatalogTable], running: classic.SparkSession)
  extends Described(output, running) {
  def this(rel: LogicalRelation, running: classic.SparkSession) =
    this(rel.relation.asInstanceOf[HadoopFsRelation], rel.output, rel.catalogTable, running)

  override val roots: Seq[Path] = fs.location.rootPaths
  override val format: String = fs.fileFormat match {
    case r: DataSourceRegister => r.shortName().toLowerCase(java.util.Locale.ROOT)
    case other => other.getClass.getName
  }
  override def options: Map[String, String] = fs.options
  override val table: Option[String] = catalogTable.map(_.identifier.unquotedString)
  override protected def tableLocation: Option[String] =
    catalogTable.flatMap(_.storage.locationUri).map(new Path(_).toString)
  override protected def owner: classic.SparkSession = fs.sparkSession.asInstanceOf[classic.SparkSession]
  override def schema: StructType = fs.schema
  override def dataSchema: StructType = fs.dataSchema
  override def partitionSchema: StructType = fs.partitionSchema
}

private[skipstone] object Described {
  private val OfCompanion = "spark.skipstone.companion."
  private val Stated = "spark.skipstone.function."
  private val HiddenNames = "spark.sql.files.ignoredPathSegmentRegex"
}
