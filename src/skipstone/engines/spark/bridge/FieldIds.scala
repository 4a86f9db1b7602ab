package org.apache.spark.sql.skipstone

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.types._

/**
 * What tells the columns of an Iceberg table apart: field ids, those of nested fields too.
 *
 * A file that was written without ids (by someone else, and added to the table) is read by a mapping of names to ids, which
 * renaming and adding columns changes; so where a table has one, a column's names in it count as well. Files that were
 * written before a column read as its first default: no column gets another, but a table that takes its place may have one.
 */
private[skipstone] object FieldIds {
  private val Mapping = "schema.name-mapping.default"

  /** Spark's schema with what Iceberg's (as JSON) says of each field in its metadata. */
  def marked(schema: StructType, iceberg: String, properties: Map[String, String]): StructType = {
    val names = properties.get(Mapping).map(m => mapped(Json.mapper.readTree(m))).getOrElse(Map.empty)
    struct(schema, Json.mapper.readTree(iceberg), names)
  }

  /** Whether the columns that are read have the ids that a table has under their names; those of Iceberg's own are not in it. */
  def agree(read: String, table: String): Boolean = agree(Json.mapper.readTree(read), Json.mapper.readTree(table))

  private def agree(read: JsonNode, table: JsonNode): Boolean = if (!read.isObject) true else {
    val fields = table.path("fields").elements().asScala.map(f => f.path("name").asText -> f).toMap
    read.path("fields").elements().asScala.forall { f =>
      fields.get(f.path("name").asText).forall(g => f.path("id") == g.path("id") && agree(f.path("type"), g.path("type")))
    } && Seq("element", "key", "value").forall(inside => agree(read.path(inside), table.path(inside)))
  }

  private def struct(schema: StructType, node: JsonNode, names: Map[Int, String]): StructType = {
    val fields = node.path("fields").elements().asScala.map(f => f.path("name").asText -> f).toMap
    StructType(schema.map { field =>
      val said = fields.getOrElse(field.name, throw new IllegalStateException(s"Iceberg's schema has no column ${field.name}"))
      val id = said.path("id").asInt
      val marks = new MetadataBuilder().putLong("id", id)
      names.get(id).foreach(marks.putString("names", _))
      Option(said.get("initial-default")).foreach(value => marks.putString("default", value.toString))
      StructField(field.name, inside(field.dataType, said.path("type"), names), field.nullable, marks.build())
    })
  }

  private def inside(dataType: DataType, node: JsonNode, names: Map[Int, String]): DataType = dataType match {
    case s: StructType => struct(s, node, names)
    case a: ArrayType => a.copy(elementType = inside(a.elementType, node.path("element"), names))
    case m: MapType => m.copy(keyType = inside(m.keyType, node.path("key"), names), valueType = inside(m.valueType, node.path("value"), names))
    case other => other
  }

  private def mapped(node: JsonNode): Map[Int, String] = node.elements().asScala.flatMap { f =>
    val own = if (f.has("field-id")) Some(f.path("field-id").asInt -> f.path("names").elements().asScala.map(_.asText).toSeq.sorted.mkString("\u0000"))
      else None
    own ++ mapped(f.path("fields"))
  }.toMap
}
