package org.apache.spark.sql.skipstone

import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, Decimal, Metadata}
import org.apache.spark.unsafe.types.UTF8String

/**
 * What a Catalyst expression means besides its class, its type and its children: the unit of a
 * timestampadd, the field of an array's structs, the patterns of LIKE ANY, whether an overflow is
 * an error; and Spark's version and the settings that an expression may look at when it runs.
 */
private[skipstone] object Parameters {
  /** Of an expression with a parameter that has no exact form: it equals nothing, not even itself. */
  val Unknown = "?"

  // Settings of these names decide how a query is run, where it reads and what it shows; a session's
  // time zone stands in the expressions that depend on it. Every other setting that is not at its
  // default counts.
  private val Harmless = Seq(
    "adaptive.", "ansi.enabled", "artifact.", "autoBroadcastJoinThreshold", "broadcastTimeout", "cache.", "catalog.", "catalogImplementation",
    "cbo.", "codegen.", "constraintPropagation.", "debug.", "execution.arrow.", "extensions", "files.", "hive.",
    "inMemoryColumnarStorage.", "join.", "maxPlanStringLength", "optimizer.", "orc.", "parquet.", "queryExecutionListeners",
    "redaction.", "repl.", "session.timeZone", "shuffle.", "sources.", "statistics.", "streaming.", "thriftServer.", "ui.",
    "warehouse.").map("spark.sql." + _)

  private val defaults = new SQLConf

  def digest(e: Expression): String = {
    val text = new StringBuilder(environment(e))
    val known = e.productIterator.forall(spell(_, e, text))
    if (known) ExpressionJson.hex(ExpressionJson.md5(text.toString.getBytes(UTF_8))).take(16) else Unknown
  }

  private def environment(e: Expression): String =
    s"$SPARK_VERSION ${SQLConf.get.ansiEnabled} ${changed(name => !Harmless.exists(name.startsWith)).mkString(" ")} ${e.productArity} "

  /** The settings that are not at their default, among those of Spark SQL whose names are wanted. */
  def changed(wanted: String => Boolean): Seq[(String, String)] =
    SQLConf.get.getAllConfs.toSeq.sorted.filter { case (name, value) =>
      name.startsWith("spark.sql.") && wanted(name) && !Try(defaults.getConfString(name)).toOption.contains(value)
    }

  /** Each value with its class and, where it has no fixed length, its length, so that equal texts are equal values. */
  private def spell(value: Any, e: Expression, text: StringBuilder): Boolean = value match {
    case child: Expression =>
      text.append("child;")
      e.children.exists(_ eq child)
    case null => append(text, "null", "")
    case t: DataType => append(text, "type", Json.typeText(t) + t.json + t.catalogString)
    case s @ (_: String | _: UTF8String) => append(text, "text", s.toString)
    case n @ (_: java.lang.Number | _: java.lang.Boolean | _: java.lang.Character | _: Decimal | _: BigDecimal) =>
      append(text, n.getClass.getName, n.toString)
    case n: Enumeration#Value => append(text, "value", s"${n.getClass.getName} ${n.id} $n")
    case n: java.lang.Enum[_] => append(text, n.getDeclaringClass.getName, n.name)
    case c: Class[_] => append(text, "class", c.getName)
    case m: Metadata => append(text, "metadata", m.json)
    case m: Map[_, _] => all("map", m.toSeq.map { case (k, v) => (String.valueOf(k), v) }.sortBy(_._1), e, text)
    case s: Seq[_] => all("seq", s, e, text)
    case p: Product => all(p.getClass.getName, p.productIterator.toSeq, e, text)
    case _ => false
  }

  private def append(text: StringBuilder, kind: String, value: String): Boolean = {
    text.append(kind).append(' ').append(value.length).append(' ').append(value).append(';')
    true
  }

  private def all(kind: String, values: Seq[Any], e: Expression, text: StringBuilder): Boolean = {
    append(text, kind, values.size.toString)
    values.forall(spell(_, e, text))
  }
}
