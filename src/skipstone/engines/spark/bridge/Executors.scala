package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.Try

import org.apache.spark.{SparkContext, SparkEnv}

/**
 * What the JVMs are like that read: in local mode this one, else those of the executors, who are asked by a small job.
 * An index job waits for the answer; a query does not, and takes for unknown what it does not know yet. What is unknown,
 * or differs between JVMs, equals nothing.
 */
private[skipstone] object Executors {
  private case class Answers(context: WeakReference[SparkContext], byExecutor: Map[String, Jvm])
  private val TasksAnExecutor = 4
  val NotKnown = "not known yet"

  @volatile private var known = Answers(new WeakReference(null), Map.empty)
  private val asking = new AtomicBoolean

  def jvm(context: SparkContext): Jvm = if (context.isLocal) Jvm.here else {
    val answers = answersOf(context)
    if (!areKnown(context)) {
      askLater(context)
      unknown(s"$NotKnown of the executors")
    } else {
      val all = answers.values.toSeq :+ Jvm.here
      def one(of: Jvm => String): String = all.map(of).distinct match {
        case Seq(same) => same
        case several => s"not one: ${several.sorted.mkString(", ")} ($unique)"
      }
      Jvm(one(_.zone), one(_.locale), one(_.charset), one(_.java), one(_.zones))
    }
  }

  // A class, where a closure would do: see OwnClasses.
  private class Answer extends (Int => (String, Jvm)) with Serializable {
    def apply(task: Int): (String, Jvm) = SparkEnv.get.executorId -> Jvm.here
  }

  /** Ask, unless all have answered, and wait. */
  def ask(context: SparkContext): Unit = if (!context.isLocal && !areKnown(context)) {
    val tasks = math.max(context.defaultParallelism, TasksAnExecutor * math.max(1, present(context).size))
    val answers = context.parallelize(0 until tasks, tasks).map(new Answer).collect()
    synchronized { known = Answers(new WeakReference(context), answersOf(context) ++ answers) }
  }

  private def askLater(context: SparkContext): Unit = if (asking.compareAndSet(false, true)) {
    val thread = new Thread(() => try {
      context.clearJobGroup()
      context.setJobDescription("Skipstone: time zone and locale of the executors")
      Try(ask(context))
    } finally asking.set(false), "skipstone-executors")
    thread.setDaemon(true)
    thread.start()
  }

  private def areKnown(context: SparkContext): Boolean = {
    val answers = answersOf(context)
    answers.nonEmpty && present(context).forall(answers.contains)
  }

  private def answersOf(context: SparkContext): Map[String, Jvm] =
    if (known.context.get eq context) known.byExecutor else Map.empty

  private def present(context: SparkContext): Seq[String] = Try(context.getExecutorIds()).getOrElse(Nil)

  private def unique: String = UUID.randomUUID().toString.take(8)

  /** What equals nothing, itself included when it is looked at again. */
  def unknownValue(what: String): String = s"$NotKnown $what ($unique)"

  private def unknown(why: String): Jvm = {
    val text = s"$why ($unique)"
    Jvm(text, text, text, text, text)
  }
}
