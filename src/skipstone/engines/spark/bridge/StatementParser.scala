package org.apache.spark.sql.skipstone

import java.lang.reflect.{InvocationTargetException, Method}
import java.util.Locale

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.antlr.v4.runtime.{CharStreams, Token}

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.parser.{ParserInterface, SqlBaseLexer}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{CodegenMode, CostMode}
import org.apache.spark.sql.execution.command.ExplainCommand

/**
 * Lets the parser beneath, Spark's or another extension's, take SHOW INDEXES, REFRESH INDEXES and EXPLAIN SKIPPING.
 *
 * Whatever that parser takes is its own. Only when it refuses a text are these statements looked for in it, by Spark's own
 * lexer, and written as statements that every parser of Spark takes and nobody writes: so parameters, IDENTIFIER(…),
 * scripts and comments work as everywhere. [[ClaimIndexStatements]] knows them again.
 */
private[skipstone] class StatementParser(delegate: ParserInterface) extends ParserCalls {
  import StatementParser._

  override def call(method: Method, arguments: Array[AnyRef]): AnyRef = {
    def passOn(given: Array[AnyRef]): AnyRef =
      try method.invoke(delegate, given: _*) catch { case e: InvocationTargetException => throw e.getCause }
    if (!Statements(method.getName)) passOn(arguments) else try passOn(arguments) catch {
      case refused: AnalysisException =>
        val found = new Rewriting(arguments.head.asInstanceOf[String], delegate)
        found.rewritten.fold(throw refused) { text =>
          try passOn(arguments.updated(0, text)) catch {
            case NonFatal(_) =>
              found.complain()
              throw refused
          }
        }
    }
  }
}

private[skipstone] object StatementParser {
  private val Statements = Set("parsePlan", "parsePlanWithParameters")
  private val Explain = "EXPLAIN CODEGEN EXPLAIN COST EXPLAIN CODEGEN"

  def over(delegate: ParserInterface): ParserInterface = ForwardingParser.to(new StatementParser(delegate)).getOrElse(delegate)

  /** The query of an EXPLAIN SKIPPING, as it was rewritten. */
  object Explained {
    def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
      case ExplainCommand(ExplainCommand(ExplainCommand(query, CodegenMode), CostMode), CodegenMode) => Some(query)
      case _ => None
    }
  }

  /** Words after which a statement of a script may begin. */
  private val Before = Set(";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ATOMIC")

  private def syntax(sentence: String) = new SkipstoneSqlException("PARSE_SYNTAX_ERROR", "42601", sentence)

  /** A text with Skipstone's statements in it, if there are any, written in Spark's own words. */
  private class Rewriting(text: String, delegate: ParserInterface) {
    private val characters = text.codePoints().toArray
    private case class Word(start: Int, end: Int) { val upper: String = slice(start, end).toUpperCase(Locale.ROOT) }
    private val words: IndexedSeq[Word] = {
      // The lexer knows keywords in capitals only; letter by letter, so that places stay the same.
      val lexer = new SqlBaseLexer(CharStreams.fromString(new String(characters.map(Character.toUpperCase), 0, characters.length)))
      lexer.removeErrorListeners()
      Iterator.continually(lexer.nextToken()).takeWhile(_.getType != Token.EOF)
        .filter(_.getChannel == Token.DEFAULT_CHANNEL).map(t => Word(t.getStartIndex, t.getStopIndex + 1)).toIndexedSeq
    }
    private val edits = ArrayBuffer.empty[(Int, Int, String)]
    private val checks = ArrayBuffer.empty[() => Any]

    words.indices.filter(i => i == 0 || Before(words(i - 1).upper)).foreach { i =>
      val first = words.slice(i, i + 3).map(_.upper)
      val end = words.indexWhere(_.upper == ";", i) match { case -1 => words.size; case n => n }
      first match {
        case IndexedSeq("SHOW", "INDEXES", "ON" | "FROM" | "IN") => onTable(i, end, "show", "")
        case IndexedSeq("REFRESH", "INDEX" | "INDEXES", "ON") =>
          val tail = words.indexWhere(w => Set("PARTITION", "PATH")(w.upper), i + 4) match {
            case n if n >= 0 && n < end => n
            case _ => end
          }
          onTable(i, tail, "refresh", options(tail, end))
          if (tail < end) edits += ((words(tail).start, words(end - 1).end, ""))
        case IndexedSeq("EXPLAIN", "SKIPPING", _*) =>
          edits += ((words(i).start, words(i + 1).end, Explain))
          if (i + 2 < end) checks += (() => delegate.parsePlan(between(i + 2, end)))
          else checks += (() => throw syntax("EXPLAIN SKIPPING needs a query: EXPLAIN SKIPPING SELECT * FROM t WHERE …"))
        case _ =>
      }
    }

    def rewritten: Option[String] = if (edits.isEmpty) None else {
      val made = new StringBuilder
      var from = 0
      edits.sortBy(_._1).foreach { case (start, end, by) =>
        made ++= slice(from, start) ++= by
        from = end
      }
      Some((made ++= slice(from, characters.length)).toString)
    }

    /** Say what is wrong with a statement, in its own words rather than in those it was rewritten to. */
    def complain(): Unit = checks.foreach(_.apply())

    private def onTable(i: Int, end: Int, verb: String, more: String): Unit = {
      val payload = s"""${IndexStatement.Mark}{"verb":"$verb"$more}""".replace("`", "``")
      edits += ((words(i).start, words(i + 2).end, s"DROP INDEX `$payload` ON"))
      val called = between(i, math.min(i + 3, end))
      if (i + 3 >= end) checks += (() => throw syntax(s"$called needs a table: a name, or format.`path`."))
      else if (words(i + 3).upper != "IDENTIFIER") checks += (() => delegate.parseMultipartIdentifier(between(i + 3, end)))
    }

    /** What follows the table in a REFRESH, as JSON: PARTITION (name = value, …) PATH 'folder', … */
    private def options(from: Int, end: Int): String = {
      var partition = Seq.empty[(String, String)]
      var paths = Seq.empty[String]
      var i = from
      if (i < end && words(i).upper == "PARTITION") {
        val close = words.indexWhere(_.upper == ")", i)
        if (close < 0 || close >= end || words(i + 1).upper != "(") throw usage
        partition = parts(i + 2, close).map { case (a, b) =>
          if (b - a < 3 || !Set("=", "==")(words(a + 1).upper)) throw usage
          delegate.parseMultipartIdentifier(between(a, a + 1)).mkString(".") -> constant(a + 2, b)
        }
        i = close + 1
      }
      if (i < end && words(i).upper == "PATH") {
        paths = parts(i + 1, end).map { case (a, b) => constant(a, b) }
        i = end
      }
      if (i < end) throw usage
      Json.text { g =>
        g.writeStartObject()
        g.writeArrayFieldStart("partition")
        partition.foreach { case (name, value) =>
          g.writeStartArray()
          g.writeString(name)
          g.writeString(value)
          g.writeEndArray()
        }
        g.writeEndArray()
        Json.strings(g, "paths", paths)
        g.writeEndObject()
      }.replaceFirst("^\\{", ",").stripSuffix("}")
    }

    private def usage = syntax("REFRESH INDEXES takes a table, then perhaps PARTITION (column = constant, …) and PATH 'folder or file', …")

    /** The places between commas. */
    private def parts(from: Int, end: Int): Seq[(Int, Int)] = {
      val commas = (from until end).filter(words(_).upper == ",")
      (from +: commas.map(_ + 1)).zip(commas :+ end).map { case (a, b) => if (a < b) (a, b) else throw usage }
    }

    private def constant(from: Int, end: Int): String = try {
      val e = delegate.parseExpression(between(from, end))
      if (!e.resolved || !e.foldable) throw usage
      Literal(e.eval(), e.dataType).toString
    } catch { case _: AnalysisException => throw usage }

    private def between(from: Int, end: Int): String = slice(words(from).start, words(end - 1).end)
    private def slice(from: Int, end: Int): String = new String(characters, from, end - from)
  }
}
