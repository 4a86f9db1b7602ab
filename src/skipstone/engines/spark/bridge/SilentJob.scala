package org.apache.spark.sql.skipstone

import java.io.{BufferedOutputStream, DataOutputStream}
import java.nio.file.{Files, Paths}

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}

/**
 * Plans and runs without telling. An SQL execution tells its plan to every listener, hence to the event log and the
 * web interface, with each literal spelled out; a plain job tells of stages, tasks and the names of operators only.
 */
private[skipstone] object SilentJob {
  private val Execution = Seq(SQLExecution.EXECUTION_ID_KEY, SQLExecution.EXECUTION_ROOT_ID_KEY)

  /**
   * A plan made of parsed expressions, not analyzed yet. A Dataset is analyzed at once, and what cannot be is told to
   * listeners like an execution that failed, its plan included.
   */
  def planned(session: classic.SparkSession, plan: (String => Expression) => LogicalPlan): QueryExecution =
    session.withActive(session.sessionState.executePlan(plan(session.sessionState.sqlParser.parseExpression(_))))

  // A class, where a closure would do: see OwnClasses.
  private class Value extends (InternalRow => Array[Byte]) with Serializable {
    def apply(row: InternalRow): Array[Byte] = row.getBinary(0)
  }

  /** Write the values of the only column, binary, to a local file: four bytes of length before each. */
  def collect(df: classic.Dataset[_], localFile: String): Int = {
    val session = df.sparkSession
    val context = session.sparkContext
    // Inside of another execution (a streaming batch, say) the plan would be told as a part of that one.
    val outer = Execution.map(context.getLocalProperty)
    Execution.foreach(context.setLocalProperty(_, null))
    val found = try session.withActive {
      // As an execution does it: executors see the settings of the session, and what was added to it.
      SQLExecution.withSQLConfPropagated(session) {
        session.artifactManager.withResources {
          df.queryExecution.executedPlan.execute().map(new Value).collect()
        }
      }
    } finally Execution.zip(outer).foreach { case (key, value) => context.setLocalProperty(key, value) }
    val out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Paths.get(localFile))))
    try found.foreach { value =>
      out.writeInt(value.length)
      out.write(value)
    } finally out.close()
    found.length
  }
}
