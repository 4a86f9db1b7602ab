package org.apache.spark.sql.skipstone

import org.apache.spark.sql.{classic, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}

/**
 * `skipstone_entries(change)`: what happened to the queries of the calling session since a change, as JSON; those of its
 * latest query for a number below zero. For clients that reach Spark by SQL alone. A session sees its own and no others.
 */
private[skipstone] object SessionEntries {
  private val Name = "skipstone_entries"

  def inject(extensions: SparkSessionExtensions): Unit =
    extensions.injectFunction((FunctionIdentifier(Name), info, (arguments: Seq[Expression]) => Literal(answer(arguments))))

  private def info: ExpressionInfo = new ExpressionInfo(getClass.getName.stripSuffix("$"), null, Name,
    "_FUNC_(change) - Returns what Skipstone did for the queries of this session since a change, as JSON.",
    "", "", "", "misc_funcs", "4.0.0", "", "built-in")

  // Called while the query that has the call is analysed, once and on the driver.
  private def answer(arguments: Seq[Expression]): String = {
    val since = arguments match {
      case Seq(Literal(value: Number, _)) => value.longValue
      case Seq(other) if other.foldable => other.eval().asInstanceOf[Number].longValue
      case _ => throw new IllegalArgumentException(s"$Name takes one number")
    }
    Runs.settle()
    val session = classic.SparkSession.active.sessionUUID
    val entries = if (since < 0) Stats.ofLastQuery(_.session == session) else Stats.changedSince(since, session)
    s"""{"change":${Stats.lastChange()},"entry":${Stats.last()},"entries":$entries}"""
  }
}
