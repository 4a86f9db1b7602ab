package org.apache.spark.sql.skipstone

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.Base64

import scala.collection.mutable.ArrayBuffer
import scala.util.Try

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A column of the relation, as its schema spells it. */
private[skipstone] case class Column(name: String, dataType: DataType, partition: Boolean)

/**
 * An expression as JSON, with types and exact values. Every node is an object with its kind `k`:
 *
 *  - `and`, `or` (c: two or more, flattened), `not` (c: one)
 *  - `col`: n (top-level name, then field names), t (type), p (partition column?)
 *  - `lit`: t, and v or `"x": true` when there is no exact form. v: null; boolean; byte, short, int,
 *    long, timestamp and timestamp_ntz (microseconds), time (nanoseconds), day-time interval
 *    (microseconds): decimal string; date (days), year-month interval (months): number; float,
 *    double: 8 or 16 hex digits of the raw bits; decimal: [unscaled string, scale]; string: text,
 *    or {"b64"} when it is not valid UTF-8; binary: base64 text; array: list of such values;
 *    a user-defined type of geometries: {"wkt"}, and {"md5"} of its stored form
 *  - `eq nseq lt le gt ge`, `startswith endswith contains` (c: left, right), `in` (c: value, then
 *    the list; or c: value, t: the type of all options, v: their values, of which int and long, and
 *    what Spark holds as such, are numbers), `like` (c: value, pattern; e: escape character),
 *    `isnull isnotnull isnan` (c: one)
 *  - `cast`: c, t (target), m (LEGACY, ANSI or TRY), z (time zone or null)
 *  - `call`, everything else: n (name), f (class), u ("" of Catalyst, "python", "scala", "java"),
 *    d (deterministic and free of subqueries, the whole subtree), t, c, and where they apply: id
 *    (see [[FunctionIds]]; of a lambda's variable, its number), z (time zone), m (class and method
 *    that a static_invoke or invoke calls), p (of Catalyst: a digest of what makes the expression
 *    besides its children, see [[Parameters]]). A subquery has no children.
 *    `_metadata` stands for any reference that is neither a data nor a partition column. What lies
 *    deeper than [[ExpressionJson.MaxDepth]] is a call that says so, is not deterministic and has no children.
 *
 * Types are written by [[Json.typeText]].
 */
private[skipstone] class ExpressionJson(columns: Map[ExprId, Column], g: JsonGenerator) {
  import ExpressionJson._

  def write(e: Expression): Unit = node(e, 0)

  private def node(e: Expression, depth: Int): Unit = {
    if (depth > MaxDepth) tooDeep(e) else e match {
      case _: And => simple("and", flatten(e), depth)
      case _: Or => simple("or", flatten(e), depth)
      case n: Not => simple("not", n.children, depth)
      case _: AttributeReference | _: GetStructField => reference(e, depth)
      case l: Literal => literal(l.value, l.dataType)
      case _: EqualTo => simple("eq", e.children, depth)
      case _: EqualNullSafe => simple("nseq", e.children, depth)
      case _: LessThan => simple("lt", e.children, depth)
      case _: LessThanOrEqual => simple("le", e.children, depth)
      case _: GreaterThan => simple("gt", e.children, depth)
      case _: GreaterThanOrEqual => simple("ge", e.children, depth)
      case _: StartsWith => simple("startswith", e.children, depth)
      case _: EndsWith => simple("endswith", e.children, depth)
      case _: Contains => simple("contains", e.children, depth)
      case _: IsNull => simple("isnull", e.children, depth)
      case _: IsNotNull => simple("isnotnull", e.children, depth)
      case _: IsNaN => simple("isnan", e.children, depth)
      case i: In => i.list match {
        case Seq(first: Literal, _, _*) if exact(first.dataType) && i.list.forall(o => o.isInstanceOf[Literal] && o.dataType == first.dataType) =>
          among(i.value, i.list.iterator.map(_.asInstanceOf[Literal].value), first.dataType, depth)
        case list => simple("in", i.value +: list, depth)
      }
      case s: InSet if exact(s.child.dataType) => among(s.child, s.hset.iterator, s.child.dataType, depth)
      case s: InSet =>
        start("in")
        g.writeArrayFieldStart("c")
        node(s.child, depth + 1)
        s.hset.foreach(literal(_, s.child.dataType))
        end()
      case l: Like =>
        start("like")
        g.writeStringField("e", l.escapeChar.toString)
        children(l.children, depth)
      case c: Cast =>
        start("cast")
        g.writeStringField("t", Json.typeText(c.dataType))
        g.writeStringField("m", c.evalMode.toString)
        g.writeStringField("z", c.timeZoneId.orNull)
        children(c.children, depth)
      case other => call(other, depth)
    }
  }

  /** What lies deeper is not looked into: nothing is known of it, and the other parts of the condition may still skip. */
  private def tooDeep(e: Expression): Unit = {
    start("call")
    g.writeStringField("n", s"<nested deeper than $MaxDepth levels>")
    g.writeBooleanField("d", false)
    g.writeStringField("t", Json.typeText(e.dataType))
    children(Nil, 0)
  }

  private def start(kind: String): Unit = {
    g.writeStartObject()
    g.writeStringField("k", kind)
  }

  private def end(): Unit = {
    g.writeEndArray()
    g.writeEndObject()
  }

  private def children(nodes: Iterable[Expression], depth: Int): Unit = {
    g.writeArrayFieldStart("c")
    nodes.foreach(node(_, depth + 1))
    end()
  }

  private def simple(kind: String, nodes: Iterable[Expression], depth: Int): Unit = {
    start(kind)
    children(nodes, depth)
  }

  /** A list may have thousands of options: their type is written once. */
  private def among(value: Expression, options: Iterator[Any], dataType: DataType, depth: Int): Unit = {
    start("in")
    g.writeStringField("t", Json.typeText(dataType))
    g.writeArrayFieldStart("v")
    options.foreach {
      case n: Long => g.writeNumber(n)
      case n: Int => g.writeNumber(n)
      case other => plain(other, dataType)
    }
    g.writeEndArray()
    children(Seq(value), depth)
  }

  private def reference(e: Expression, depth: Int): Unit = {
    var fields = List.empty[String]
    var base = e
    while (base.isInstanceOf[GetStructField]) {
      val field = base.asInstanceOf[GetStructField]
      fields = field.childSchema(field.ordinal).name :: fields
      base = field.child
    }
    base match {
      case a: AttributeReference if columns.contains(a.exprId) =>
        val column = columns(a.exprId)
        start("col")
        Json.strings(g, "n", column.name :: fields)
        g.writeStringField("t", Json.typeText(e.dataType))
        g.writeBooleanField("p", column.partition)
        g.writeEndObject()
      case a: AttributeReference =>
        callHead("_metadata", a, "")
        children(Nil, depth)
      case _ => call(e, depth) // a field of what a function returns, or of an array's or map's element
    }
  }

  private def callHead(name: String, e: Expression, origin: String): Unit = {
    start("call")
    g.writeStringField("n", name)
    g.writeStringField("f", e.getClass.getName)
    g.writeStringField("u", origin)
    g.writeBooleanField("d", e.deterministic && !e.containsPattern(PLAN_EXPRESSION))
    g.writeStringField("t", Json.typeText(e.dataType))
  }

  private def call(e: Expression, depth: Int): Unit = FunctionIds.of(e) match {
    case Some(function) =>
      callHead(function.name, e, function.kind)
      g.writeStringField("id", function.id)
      children(e.children, depth)
    case None if e.isInstanceOf[PlanExpression[_]] =>
      callHead(e.prettyName, e, "")
      children(Nil, depth)
    case None =>
      callHead(e.prettyName, e, "")
      e match {
        case i: StaticInvoke => g.writeStringField("m", s"${i.staticObject.getName}.${i.functionName}")
        case i: Invoke => g.writeStringField("m", i.functionName)
        case v: NamedLambdaVariable => g.writeStringField("id", v.exprId.id.toString)
        case z: TimeZoneAwareExpression => g.writeStringField("z", z.timeZoneId.orNull)
        case _ =>
      }
      if (!e.isInstanceOf[NamedLambdaVariable]) g.writeStringField("p", Parameters.digest(e))
      children(e.children, depth)
  }

  private def literal(value: Any, dataType: DataType): Unit = {
    start("lit")
    g.writeStringField("t", Json.typeText(dataType))
    if (exact(dataType)) {
      g.writeFieldName("v")
      plain(value, dataType)
    } else if (value == null) {
      g.writeNullField("v")
    } else if (geometry(value, dataType).isDefined) {
      g.writeObjectFieldStart("v")
      g.writeStringField("wkt", geometry(value, dataType).get)
      value match { // the text leaves out what a function may look at: height, measure, reference system
        case bytes: Array[Byte] => g.writeStringField("md5", hex(md5(bytes)))
        case _ =>
      }
      g.writeEndObject()
    } else {
      g.writeBooleanField("x", true)
    }
    g.writeEndObject()
  }

  private def plain(value: Any, dataType: DataType): Unit = (value, dataType) match {
    case (null, _) => g.writeNull()
    case (b: Boolean, _) => g.writeBoolean(b)
    case (i: Int, DateType | _: YearMonthIntervalType) => g.writeNumber(i)
    case (n @ (_: Byte | _: Short | _: Int | _: Long), _) => g.writeString(n.toString)
    case (f: Float, _) => g.writeString(f"${java.lang.Float.floatToRawIntBits(f)}%08x")
    case (d: Double, _) => g.writeString(f"${java.lang.Double.doubleToRawLongBits(d)}%016x")
    case (d: Decimal, _) =>
      val exact = d.toJavaBigDecimal
      g.writeStartArray()
      g.writeString(exact.unscaledValue.toString)
      g.writeNumber(exact.scale)
      g.writeEndArray()
    case (s: UTF8String, _) =>
      val bytes = s.getBytes
      val text = new String(bytes, UTF_8)
      if (java.util.Arrays.equals(text.getBytes(UTF_8), bytes)) g.writeString(text) else {
        g.writeStartObject()
        g.writeStringField("b64", Base64.getEncoder.encodeToString(bytes))
        g.writeEndObject()
      }
    case (bytes: Array[Byte], _) => g.writeString(Base64.getEncoder.encodeToString(bytes))
    case (array: ArrayData, a: ArrayType) =>
      g.writeStartArray()
      array.foreach(a.elementType, (_, element) => plain(element, a.elementType))
      g.writeEndArray()
    case _ => throw new IllegalArgumentException(s"a literal of ${dataType.catalogString} that is a ${value.getClass}")
  }
}

private[skipstone] object ExpressionJson {
  /**
   * The one bound on depth: whoever reads the condition, here and in Python, may recurse. Operands of ANDs and ORs are
   * flattened, so that thousands of them are one level.
   */
  val MaxDepth = 200

  // TimeType came with Spark 4.1: known by name, so that the jar loads on 4.0.
  private def exact(dataType: DataType): Boolean = dataType match {
    case NullType | BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType => true
    case _: DecimalType | _: StringType | BinaryType | DateType | TimestampType | TimestampNTZType => true
    case _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case ArrayType(element, _) => exact(element)
    case other => other.getClass.getName.stripSuffix("$") == "org.apache.spark.sql.types.TimeType"
  }

  /** The operands of nested ANDs (or ORs), left to right, without recursion: thousands may be left-deep. */
  def flatten(e: Expression): Seq[Expression] = {
    val and = e.isInstanceOf[And]
    val out = ArrayBuffer.empty[Expression]
    val stack = new java.util.ArrayDeque[Expression]()
    stack.push(e)
    while (!stack.isEmpty) stack.pop() match {
      case a: And if and => stack.push(a.right); stack.push(a.left)
      case o: Or if !and => stack.push(o.right); stack.push(o.left)
      case other => out += other
    }
    out.toSeq
  }

  def conjuncts(e: Expression): Seq[Expression] = if (e.isInstanceOf[And]) flatten(e) else Seq(e)

  def md5(bytes: Array[Byte]): Array[Byte] = MessageDigest.getInstance("MD5").digest(bytes)

  def hex(bytes: Array[Byte]): String = java.util.HexFormat.of().formatHex(bytes)

  /** A constant of a user-defined type whose objects are JTS geometries, in well-known text: exact, and readable. */
  private def geometry(value: Any, dataType: DataType): Option[String] = dataType match {
    case udt: UserDefinedType[_] => Try(udt.deserialize(value).asInstanceOf[AnyRef]).toOption
      .filter(_.getClass.getName.contains(".jts.geom.")).map(_.toString)
    case _ => None
  }
}
