package org.apache.spark.sql.skipstone

import java.io.StringWriter

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator, StreamWriteConstraints}
import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.types._

/** JSON as the bridge writes it: ASCII (a character is a byte on the wire) and as deep as need be. */
private[skipstone] object Json {
  // Jackson stops at 1,000 levels unless told; a node of an expression is two levels.
  private val factory = new JsonFactory()
    .setStreamWriteConstraints(StreamWriteConstraints.builder().maxNestingDepth(Int.MaxValue).build())
  val mapper = new ObjectMapper()

  def text(body: JsonGenerator => Unit): String = {
    val writer = new StringWriter()
    val generator = factory.createGenerator(writer)
    generator.enable(JsonGenerator.Feature.ESCAPE_NON_ASCII)
    body(generator)
    generator.close()
    writer.toString
  }

  def strings(g: JsonGenerator, name: String, values: Iterable[String]): Unit = {
    g.writeArrayFieldStart(name)
    values.foreach(g.writeString)
    g.writeEndArray()
  }

  def map(g: JsonGenerator, name: String, values: Iterable[(String, String)]): Unit = {
    g.writeObjectFieldStart(name)
    values.foreach { case (k, v) => g.writeStringField(k, v) }
    g.writeEndObject()
  }

  /**
   * A type as text: its name when it is atomic (`integer`, `decimal(10,2)`, `string collate X`),
   * `udt:<class>`, of Python's own with the type it is stored as, or for arrays, maps and structs Spark's JSON, which begins with a brace.
   * Spark's JSON leaves a collation out of everything but struct fields, so a nested collation is
   * given in the catalog's notation, which no one will mistake for a plain string.
   */
  def typeText(dataType: DataType): String = dataType match {
    case udt: PythonUserDefinedType => s"udt:${udt.pyUDT} ${udt.sqlType.catalogString}" // of one class in Scala
    case udt: UserDefinedType[_] => "udt:" + udt.getClass.getName.stripSuffix("$")
    case _: ArrayType | _: MapType | _: StructType =>
      val collated = dataType.existsRecursively {
        case s: StringType => s.typeName != "string"
        case _ => false
      }
      if (collated) dataType.catalogString else dataType.json
    case StringType => "string" // also `string collate UTF8_BINARY`, as types from Connect clients are spelled
    case other => other.typeName
  }
}
