package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.api.java.JavaSparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.{classic, SparkSession}

/**
 * Keeps a Python child that plans for an application without a Python driver.
 *
 * Whatever becomes of the child, queries are answered: while there is none they read everything and their entries say
 * why. A child that ends is started again, ever later, until it has ended too often within a window of time.
 */
private[skipstone] class Supervisor(context: SparkContext, settings: CompanionSettings) extends Logging {
  import Companion._

  private val wanted = new CountDownLatch(1)
  private val settled = new CountDownLatch(1)
  private val over = new CountDownLatch(1)
  private val failures = mutable.Queue.empty[Long]
  private val timeouts = new AtomicInteger
  @volatile private var child: CompanionChild = _
  @volatile private var waitUntil = 0L
  @volatile private var caller = new WeakReference[SparkSession](null)
  /** Why there is no planner. */
  @volatile private var absence = "Skipstone's companion is still starting"

  def serves(other: SparkContext): Boolean = other eq context
  def reason: String = absence
  private def isOver: Boolean = over.getCount == 0

  def start(): Unit = {
    val thread = new Thread(() => supervise(), "skipstone-companion")
    thread.setDaemon(true)
    thread.start()
  }

  /** A query wants a planner: wait for the first child, but no longer than the setting says, all queries together. */
  def await(session: SparkSession): Unit = if (settled.getCount > 0) {
    caller = new WeakReference(session)
    wanted.countDown()
    synchronized(if (waitUntil == 0L) waitUntil = System.nanoTime() + settings.waitMs * 1000000L)
    settled.await(math.max(0L, waitUntil - System.nanoTime()), TimeUnit.NANOSECONDS)
  }

  /** The child's own session, in which nobody else sets anything; null while the application has none to make it from. */
  def session(number: Int): classic.SparkSession = if (!isCurrent(number)) null else {
    val parent = classic.SparkSession.getDefaultSession.filter(_.sparkContext eq context).orElse(
      Option(caller.get).collect { case s: classic.SparkSession => s })
    parent.map(_.newSession()).orNull
  }

  def context(number: Int): JavaSparkContext = if (isCurrent(number)) new JavaSparkContext(context) else null

  /** The child is ready; false: it is no longer wanted. */
  def attach(number: Int, planner: Planner): Boolean = locked {
    isCurrent(number) && {
      child.planner = planner
      timeouts.set(0)
      Bridge.planner = planner
      settled.countDown()
      logInfo(s"Skipstone's companion plans from now on (process ${child.process.pid}, ${child.milliseconds} ms after its start)")
      true
    }
  }

  private def isCurrent(number: Int): Boolean = !isOver && child != null && child.number == number

  /** Nobody needs a child any more. */
  def end(why: String): Unit = locked {
    if (!isOver) {
      absence = why
      over.countDown()
      settled.countDown()
      wanted.countDown()
      retire(child)
    }
  }

  def answered(): Unit = if (timeouts.get != 0) timeouts.set(0)

  /** A call was waited for in vain. A client's own impatience is not the child's fault. */
  def timedOut(milliseconds: Long): Unit = if (milliseconds >= settings.timeoutMs) timeouts.incrementAndGet()

  private def supervise(): Unit = try {
    classic.SparkSession.clearActiveSession() // inherited: a thread that lives as long as the application would keep it alive
    OwnClasses.load()
    CompanionChild.recorded // read from the jar, too
    awaitMoment()
    while (!isOver) {
      val ended = live()
      settled.countDown()
      if (!isOver) mourn(ended)
    }
  } catch {
    case e: InterruptedException => end(s"the thread that keeps Skipstone's companion was interrupted: $e")
    case NonFatal(e) =>
      logWarning("Skipstone's companion is not kept any more", e)
      end(s"Skipstone's companion is not kept any more: $e")
  }

  /** Until a query wants a planner, or the application has had a session for a while: not in the way of its own start. */
  private def awaitMoment(): Unit = {
    var quiet = 0L
    while (!isOver && quiet < settings.delayMs && !wanted.await(Tick, TimeUnit.MILLISECONDS)) {
      if (context.isStopped) end("the application has ended")
      if (classic.SparkSession.getDefaultSession.exists(_.sparkContext eq context)) quiet += Tick
    }
  }

  /** One child's life; returns how it ended. */
  private def live(): Ended = {
    val born = try CompanionChild.start(starts.incrementAndGet(), context.conf, settings) catch {
      case NonFatal(e) => return Ended(s"could not be started by ${settings.python}: ${e.getMessage} (set " +
        "spark.skipstone.companion.python to an interpreter that has Skipstone)", forGood = true)
    }
    timeouts.set(0) // those of the one before
    locked(if (isOver) born.end() else child = born)
    try {
      var ended: Option[Ended] = None
      while (ended.isEmpty) {
        if (born.process.waitFor(Tick, TimeUnit.MILLISECONDS)) ended = Some(born.obituary())
        else if (isOver) ended = Some(Ended("is not needed"))
        else if (context.isStopped) {
          end("the application has ended")
          ended = Some(Ended("is not needed"))
        } else ended = born.hung().orElse(
          Option.when(timeouts.get >= MostTimeouts)(s"gave no answer to ${timeouts.get} queries in a row")).map(Ended(_))
      }
      ended.get
    } finally locked(retire(born))
  }

  private def retire(one: CompanionChild): Unit = if (one != null) {
    if (one.planner != null && (Bridge.planner eq one.planner)) Bridge.planner = null
    if (child eq one) child = null
    one.end()
  }

  /** Say it, and wait before the next start. */
  private def mourn(ended: Ended): Unit = {
    val now = System.nanoTime()
    failures.enqueue(now)
    while (now - failures.head > Window) failures.dequeue()
    if (ended.forGood || failures.size >= MostFailures) {
      val often = if (ended.forGood) "" else s"; that was the ${failures.size}th end within ${Window / 60000000000L} minutes"
      end(s"Skipstone's companion ${ended.how}$often; it is not started again before the application is")
      logWarning(s"Nothing is skipped from now on: $absence")
    } else {
      val pause = FirstPause << (failures.size - 1)
      absence = s"Skipstone's companion ${ended.how}, and is being started again"
      logWarning(s"Skipstone's companion ${ended.how}; queries read everything, and it is started again in $pause ms")
      over.await(pause, TimeUnit.MILLISECONDS)
    }
  }
}

private[skipstone] case class Ended(how: String, forGood: Boolean = false)

/** The companion of this JVM's application, and what the child and the rule call, as static methods. */
object Companion {
  private[skipstone] val Tick = 500L
  private[skipstone] val Window = 600L * 1000 * 1000 * 1000
  private[skipstone] val MostFailures = 6
  private[skipstone] val FirstPause = 500L
  private[skipstone] val MostTimeouts = 3
  private[skipstone] val starts = new AtomicInteger
  @volatile private var current: Supervisor = _

  private[skipstone] def locked[T](body: => T): T = synchronized(body)

  /** Called when an application makes its first session, and perhaps later ones. */
  private[skipstone] def start(): Unit = SkipstoneRule.guarded(()) {
    SparkContext.getActive.foreach { context =>
      val settings = CompanionSettings.of(context.conf)
      locked {
        if (current == null || !current.serves(context)) {
          if (current != null) current.end("the application has ended")
          current = settings.map(new Supervisor(context, _)).orNull
          if (current != null) {
            Bridge.planner = null // one of an application that was stopped
            current.start()
          }
        }
      }
    }
  }(error => CompanionSettings.say(s"Skipstone's companion is not started: $error"))

  /** Whether queries without a planner should say why. */
  private[skipstone] def isWanted: Boolean = current != null

  /** The planner of a query, for whose first child it waits; null when there is none, and then [[absence]] says why. */
  private[skipstone] def planner(session: SparkSession): Planner = {
    if (Bridge.planner == null) Option(current).foreach(_.await(session))
    Bridge.planner
  }

  private[skipstone] def absence: String = Option(current).map(_.reason).getOrElse("no planner is registered")

  /** A Python driver has a planner of its own. */
  private[skipstone] def yieldTo(planner: Planner): Unit = locked {
    Bridge.planner = planner
    if (planner != null) Option(current).foreach(_.end("the Python driver planned instead of Skipstone's companion"))
  }

  private[skipstone] def answered(): Unit = Option(current).foreach(_.answered())
  private[skipstone] def timedOut(milliseconds: Long): Unit = Option(current).foreach(_.timedOut(milliseconds))

  // What the child calls, with the number that it was started under: one of before gets nothing.
  def context(number: Int): JavaSparkContext = Option(current).map(_.context(number)).orNull
  def session(number: Int): classic.SparkSession = Option(current).map(_.session(number)).orNull
  def attach(number: Int, planner: Planner): Boolean = Option(current).exists(_.attach(number, planner))
}

/** The application's own settings: those of a client's session have no say. */
private[skipstone] case class CompanionSettings( // `delayMs` is there for the benchmark that compares moments to start
    python: String, path: String, waitMs: Long, timeoutMs: Long, delayMs: Long)

private[skipstone] object CompanionSettings extends Logging {
  private val Prefix = "spark.skipstone."

  def of(conf: SparkConf): Option[CompanionSettings] =
    Option.when(conf.get(Prefix + "companion.enabled", "false").trim.equalsIgnoreCase("true")) {
      val python = conf.getOption(Prefix + "companion.python").orElse(conf.getOption("spark.pyspark.driver.python"))
        .orElse(conf.getOption("spark.pyspark.python")).orElse(sys.env.get("PYSPARK_PYTHON"))
      CompanionSettings(python.map(_.trim).filter(_.nonEmpty).getOrElse("python3"), conf.get(Prefix + "companion.path", ""),
        number(conf, "companion.waitMs", 10000L), number(conf, "plannerTimeoutMs", 30000L), number(conf, "companion.delayMs", 2000L))
    }

  def say(message: String): Unit = logWarning(message)

  private def number(conf: SparkConf, name: String, default: Long): Long = {
    val text = conf.get(Prefix + name, default.toString).trim
    milliseconds(text).getOrElse {
      say(s"$Prefix$name is '$text', allowed is a time, such as 500ms or 10s: $default ms are taken")
      default
    }
  }

  /** A time as Spark writes it; a number alone is milliseconds. */
  def milliseconds(text: String): Option[Long] =
    Try(JavaUtils.timeStringAs(text.trim, TimeUnit.MILLISECONDS)).toOption.filter(_ >= 0)
}
