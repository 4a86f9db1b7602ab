package org.apache.spark.sql.skipstone

import java.io.{BufferedReader, File, InputStream, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.TimeUnit

import scala.util.Try

import org.apache.spark.{SparkConf, SPARK_VERSION}
import org.apache.spark.api.python.{Py4JServer, PythonUtils}
import org.apache.spark.internal.Logging

/**
 * One Python process and the Py4J server that it connects to.
 *
 * A server for each process: the finalised proxies of a dead one would collect objects of the next. The process learns of
 * the JVM's end by the end of its standard input, answers `ping` there by `pong`, and says `refused` and a sentence when it
 * cannot serve. The server's secret is in its environment only.
 */
private[skipstone] class CompanionChild(val number: Int, val process: Process, server: Py4JServer) extends Logging {
  import CompanionChild._

  private val born = System.nanoTime()
  @volatile private var refusal: Option[String] = None
  @volatile private var lastLine = ""
  @volatile private var pongs = 0L
  private var pings, ticks, silent = 0L
  private var lines = 0
  /** Set when the child has attached. */
  @volatile var planner: Planner = _

  private val readers = Seq(
    read("stdout", process.getInputStream) {
      case "pong" => pongs += 1
      case s"refused $why" => refusal = Some(why)
      case other => say(other)
    },
    read("stderr", process.getErrorStream)(say))

  def milliseconds: Long = (System.nanoTime() - born) / 1000000

  /** Called at every tick: why the child is to be taken for hung. Ticks are counted, not time, which a pause of this JVM takes. */
  def hung(): Option[String] = {
    ticks += 1
    if (ticks % PingEvery == 1) ping()
    silent = if (pongs == pings || pongs == 0) 0 else silent + 1
    if (silent >= MostSilent) Some("did not answer any more")
    else if (planner == null && ticks >= MostUnattached) Some("did not get ready")
    else None
  }

  private def ping(): Unit = if (pongs == pings) Try {
    process.getOutputStream.write("ping\n".getBytes(UTF_8))
    process.getOutputStream.flush()
    pings += 1
  }

  /** How a process that is no more has ended. */
  def obituary(): Ended = {
    readers.foreach(_.join(1000)) // what it said last
    refusal.map(why => Ended(s"refused to start: $why", forGood = true)).getOrElse {
      val code = process.exitValue()
      val how = if (code > 128) s"was killed by signal ${code - 128}" else s"ended with code $code"
      val hint = if (NotInstalled.findFirstIn(lastLine).isDefined) {
        "; install Skipstone for that interpreter, or name another by spark.skipstone.companion.python or a folder by " +
          "spark.skipstone.companion.path"
      } else ""
      Ended(if (lastLine.isEmpty || code > 128) how else s"$how: $lastLine$hint", forGood = hint.nonEmpty)
    }
  }

  /** Let it end by itself at the end of its input, and make sure of it. */
  def end(): Unit = {
    Try(process.getOutputStream.close())
    if (planner == null || !process.waitFor(200, TimeUnit.MILLISECONDS)) process.destroyForcibly()
    Try(server.shutdown())
  }

  private def say(line: String): Unit = {
    val shown = line.replace(server.secret, "...").take(MostLetters)
    if (shown.trim.nonEmpty) {
      lastLine = shown.trim
      lines += 1
      if (lines > MostLines) ()
      else if (Warnings.exists(shown.startsWith)) logWarning(s"Skipstone's companion: $shown")
      else logInfo(s"Skipstone's companion: $shown")
    }
  }

  private def read(name: String, stream: InputStream)(take: String => Unit): Thread = {
    val reader = new BufferedReader(new InputStreamReader(stream, UTF_8))
    val thread = new Thread(() => Try(Iterator.continually(reader.readLine()).takeWhile(_ != null).foreach(take)),
      s"skipstone-companion-$name")
    thread.setDaemon(true)
    thread.start()
    thread
  }
}

private[skipstone] object CompanionChild {
  private val Module = "skipstone.engines.spark.companion"
  // In ticks of half a second.
  private val PingEvery = 10
  private val MostSilent = 40
  private val MostUnattached = 600
  private val MostLines = 1000
  private val MostLetters = 1000
  private val NotInstalled = "No module named '?skipstone['.]".r
  private val Warnings = Seq("WARNING ", "ERROR ", "CRITICAL ")
  /** What would make the child another kind of program than a classic driver of this JVM. */
  private val Removed = Seq("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE",
    "SPARK_CONNECT_MODE", "PYSPARK_SUBMIT_ARGS", "_PYSPARK_DRIVER_CONN_INFO_PATH", "PYTHONSTARTUP", "PYTHONINSPECT")

  def start(number: Int, conf: SparkConf, settings: CompanionSettings): CompanionChild = {
    val server = new Py4JServer(conf)
    // The server's threads look classes up by the loader of the thread that starts it, and the jar may be a user's jar.
    val thread = Thread.currentThread()
    val loader = thread.getContextClassLoader
    thread.setContextClassLoader(getClass.getClassLoader)
    try {
      server.start()
      new CompanionChild(number, run(number, conf, settings, server), server)
    } catch {
      case e: Throwable =>
        Try(server.shutdown())
        throw e
    } finally thread.setContextClassLoader(loader)
  }

  private def run(number: Int, conf: SparkConf, settings: CompanionSettings, server: Py4JServer): Process = {
    val builder = new ProcessBuilder(settings.python, "-m", Module)
    val environment = builder.environment()
    Removed.foreach(environment.remove(_))
    val inherited = Option(environment.get("PYTHONPATH")).getOrElse("")
    val local = conf.get("spark.master", "").startsWith("local")
    environment.put("PYTHONPATH", Seq(settings.path, inherited, PythonUtils.sparkPythonPath).filter(_.nonEmpty).mkString(File.pathSeparator))
    environment.put("PYTHONSAFEPATH", "1") // the server's working folder is no place for modules
    environment.put("PYTHONUNBUFFERED", "1")
    environment.put("PYSPARK_PIN_THREAD", server.server.isInstanceOf[py4j.ClientServer].toString)
    environment.put("PYSPARK_GATEWAY_PORT", server.getListeningPort.toString)
    environment.put("PYSPARK_GATEWAY_SECRET", server.secret)
    // Its jobs run where functions do; on this machine any other interpreter than its own would be a surprise.
    conf.getOption("spark.pyspark.python").foreach(environment.put("PYSPARK_PYTHON", _))
    if (local) environment.putIfAbsent("PYSPARK_PYTHON", settings.python)
    environment.put("SKIPSTONE_COMPANION", number.toString)
    environment.put("SKIPSTONE_BRIDGE_HASH", recorded._1)
    environment.put("SKIPSTONE_BRIDGE_VERSION", recorded._2)
    environment.put("SKIPSTONE_SPARK_VERSION", SPARK_VERSION)
    builder.start()
  }

  /** What the jar says of itself: the hash of its sources and the version. */
  lazy val recorded: (String, String) = (read("source-hash"), read("version"))

  private def read(what: String): String = {
    val stream = getClass.getResourceAsStream(s"/META-INF/skipstone-$what")
    if (stream == null) "unknown" else try new String(stream.readAllBytes(), UTF_8).trim finally stream.close()
  }
}
