package org.apache.spark.sql.skipstone

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent._
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.classic

/**
 * What decides which objects a query needs; implemented in Python, called through Py4J.
 *
 * A request is JSON in ASCII. Py4J stalls 44 ms on a string of 8 KB or more, so all but the last
 * piece travel by `part` (in order, all of one key from one thread) and `plan` gets the last one
 * and answers. Most requests are one call of `plan`.
 */
trait Planner {
  def part(key: Long, text: String): Unit

  /**
   * Answer: int32 big-endian length of the header, the header (UTF-8 JSON), then for each snapshot
   * that is not `all` its bitmap of ceil(rows / 8) bytes, least significant bit first, 1 = keep, for each that is
   * `ranked` [[TopK.Fields]] int32 a row, and for each that is `tallied` so many int64 a row (see [[Held]]), little-endian.
   */
  def plan(key: Long, text: String): Array[Byte]

  /** Path of a local temporary file with the snapshot's object table; the reader deletes it. */
  def objects(snapshot: String): String

  /**
   * Carry out a statement on indexes (JSON) by the session of whoever asks; earlier pieces came by `part`.
   * Answer: UTF-8 JSON, `rows` (lists of values) or an `error` (condition, state, message).
   */
  def command(session: classic.SparkSession, key: Long, text: String): Array[Byte]
}

/** Thrown into a query in force mode only: an indexed dataset that no index can serve. */
class SkipstoneForceException(message: String) extends RuntimeException(message)

/** A snapshot of metadata and which of its rows are kept; `bits` is null when all are. `ranks`: see [[TopK.Fields]]; `held`:
  * see [[Held]]. */
private[skipstone] case class Kept(id: String, rows: Int, bits: Array[Byte], ranks: Array[Int] = null, held: Array[Long] = null) {
  def keeps(row: Int): Boolean = bits == null || ((bits(row >> 3) >> (row & 7)) & 1) == 1
}

private[skipstone] case class Decision(header: JsonNode, kept: Seq[Kept]) {
  def refusal: Option[String] = Option(header.get("refuse")).filterNot(_.isNull).map(_.asText)
  /** The groups of the [[Environment]] that the decision rests on. */
  def environment: Set[String] = Decision.texts(header, "environment").toSet
  /** The files of modules that it rests on. */
  def evidence: Seq[String] = Decision.texts(header, "evidence")
  /** The scan's indexes that an audit caught. */
  def caught: Seq[String] = Decision.texts(header, "caught")
  /** Whether something is known of where rows stand in the query's order, and the rank of NULL and of NaN there. */
  def ranked: Boolean = header.path("top").isObject
  def question: String = header.path("top").path("question").asText
  def place(name: String): Int = header.path("top").path(name).asInt
  def indexed: Boolean = Option(header.get("indexed")).map(_.asBoolean).getOrElse(kept.nonEmpty)
}

private[skipstone] object Decision {
  def texts(header: JsonNode, name: String): Seq[String] =
    Option(header.get(name)).toSeq.flatMap(_.elements().asScala.map(_.asText))
}

private[skipstone] object PlannerCalls {
  private val MaxPiece = 6000
  private val keys = new AtomicLong
  private val threads = new AtomicInteger

  // Daemon threads: a planner that hangs must not keep the process alive. Bounded: one that always
  // hangs must not eat threads; the caller that finds the pool full reads everything.
  private val pool = new ThreadPoolExecutor(0, 64, 30, TimeUnit.SECONDS,
    new SynchronousQueue[Runnable], (task: Runnable) => {
      val thread = new Thread(() => {
        classic.SparkSession.clearActiveSession() // inherited: it would be kept alive by a thread that others use
        task.run()
      }, s"skipstone-planner-${threads.incrementAndGet()}")
      thread.setDaemon(true)
      thread
    })

  // Py4J answers a planner's own calls on the thread that called the planner.
  private val callers = new ThreadLocal[classic.SparkSession]

  /** The session of the query that this thread is planning; otherwise the given one. */
  def caller(session: classic.SparkSession): classic.SparkSession =
    Option(callers.get).filter(_.sparkContext eq session.sparkContext).getOrElse(session)

  def within[T](milliseconds: Long)(body: => T): T = {
    val loader = Thread.currentThread().getContextClassLoader
    val session = classic.SparkSession.getActiveSession
    val future = try pool.submit(new Callable[T] {
      override def call(): T = {
        Thread.currentThread().setContextClassLoader(loader)
        session.foreach(callers.set)
        try body finally callers.remove()
      }
    }) catch {
      case _: RejectedExecutionException => throw new IllegalStateException("planner is busy: 64 calls under way")
    }
    try {
      val answer = future.get(milliseconds, TimeUnit.MILLISECONDS)
      Companion.answered()
      answer
    } catch {
      case _: TimeoutException =>
        Companion.timedOut(milliseconds)
        future.cancel(true)
        throw new TimeoutException(s"planner gave no answer within $milliseconds ms")
      case e: ExecutionException => throw e.getCause
      case e: InterruptedException =>
        future.cancel(true)
        throw e
    }
  }

  def plan(planner: Planner, request: String, timeout: Long): Decision = within(timeout) {
    val key = keys.incrementAndGet()
    val pieces = split(request)
    pieces.init.foreach(planner.part(key, _))
    decode(planner.plan(key, pieces.last))
  }

  /** On this thread, whose jobs are the statement's, and for as long as it takes. */
  def command(planner: Planner, session: classic.SparkSession, request: String): String = {
    val key = keys.incrementAndGet()
    val pieces = split(request)
    pieces.init.foreach(planner.part(key, _))
    new String(planner.command(session, key, pieces.last), UTF_8)
  }

  // Py4J doubles backslashes, so they count twice.
  private[skipstone] def split(text: String): Seq[String] = {
    val pieces = ArrayBuffer.empty[String]
    var start = 0
    var size = 0
    var i = 0
    while (i < text.length) {
      val cost = if (text.charAt(i) == '\\') 2 else 1
      if (size + cost > MaxPiece) {
        pieces += text.substring(start, i)
        start = i
        size = 0
      }
      size += cost
      i += 1
    }
    pieces += text.substring(start)
    pieces.toSeq
  }

  private[skipstone] def decode(bytes: Array[Byte]): Decision = {
    if (bytes == null || bytes.length < 4) throw new IllegalStateException("planner gave no answer")
    val buffer = ByteBuffer.wrap(bytes)
    val length = buffer.getInt()
    if (length < 2 || length > buffer.remaining()) {
      throw new IllegalStateException(s"planner's answer is damaged: header of $length bytes in ${bytes.length}")
    }
    val header = Json.mapper.readTree(new String(bytes, 4, length, UTF_8))
    if (header == null || !header.isObject) throw new IllegalStateException("planner's header is not an object")
    buffer.position(4 + length)
    val snapshots = Option(header.get("snapshots")).map(_.elements().asScala.toSeq).getOrElse(Nil)
    val kept = snapshots.map { node =>
      val rows = node.path("rows").asInt(-1)
      if (rows < 0 || !node.path("id").isTextual) throw new IllegalStateException(s"planner's snapshot is damaged: $node")
      val bits = if (node.path("all").asBoolean(false)) null else {
        val bitmap = new Array[Byte](((rows + 7L) / 8).toInt)
        if (bitmap.length > buffer.remaining()) throw new IllegalStateException("planner's bitmaps are cut short")
        buffer.get(bitmap)
        bitmap
      }
      val ranks = if (!node.path("ranked").asBoolean(false)) null else {
        val numbers = new Array[Int](Math.multiplyExact(rows, TopK.Fields))
        if (4L * numbers.length > buffer.remaining()) throw new IllegalStateException("planner's ranks are cut short")
        buffer.slice().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(numbers)
        buffer.position(buffer.position() + 4 * numbers.length)
        numbers
      }
      val width = node.path("tallied").asInt(0)
      val held = if (width <= 0) null else {
        val numbers = new Array[Long](Math.multiplyExact(rows, width))
        if (8L * numbers.length > buffer.remaining()) throw new IllegalStateException("planner's counts are cut short")
        buffer.slice().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(numbers)
        buffer.position(buffer.position() + 8 * numbers.length)
        numbers
      }
      Kept(node.get("id").asText, rows, bits, ranks, held)
    }
    if (buffer.hasRemaining) throw new IllegalStateException(s"planner's answer has ${buffer.remaining()} bytes too many")
    Decision(header, kept)
  }
}
