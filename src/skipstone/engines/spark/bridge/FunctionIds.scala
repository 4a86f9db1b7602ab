package org.apache.spark.sql.skipstone

import java.io.{ByteArrayOutputStream, File, ObjectOutputStream}
import java.net.URLClassLoader
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.nio.file.attribute.FileTime
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.{SparkContext, SparkFiles}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.classic
import org.apache.spark.sql.types._

/** A user's function: its registered name, `python`, `scala` or `java`, and what tells it from another of that name. */
private[skipstone] case class FunctionId(name: String, kind: String, id: String, deterministic: Boolean)

/**
 * Tells two definitions of one name apart.
 *
 *  - Python: the MD5 of the pickled function and return type, the way it is evaluated, and MD5s of
 *    the settings that decide how values go to Python and back, the classes of the user-defined types
 *    that it takes and gives, whose code makes its values (`udt:`), of the interpreter that it was made
 *    for (`exec:`), and of the environment variables that its workers are given (`env:`), where
 *    these are not at their default. Where the session has another interpreter run all functions,
 *    nothing is known of it.
 *  - Java, Scala: the class, the MD5 of its byte code and of the function object as Java serialises
 *    it, an MD5 of the jars that the user brought (what it calls may be in any of them) with the
 *    version of Java, the type of its results, and an MD5 of the settings that decide in which classes values reach it,
 *    where these are not at their default.
 *
 * An id that begins with `~` tells functions apart within this application only: what the function
 * does is not all in it (a broadcast variable, files that its session brought for itself, a lambda whose class is made up at run time, a class
 * in a folder, whose neighbours may change). One that begins with `!` tells nothing: a jar changed
 * under its path, and whether the classes that run are of before or after is not known. A class of
 * `udt:` that ends so travels with its type.
 */
private[skipstone] object FunctionIds {
  private val MaxCommands = 512
  private val MaxArity = 22
  private val PythonSettings = Seq(
    "execution.pythonUDF.", "execution.pandas.", "execution.pyspark.", "pyspark.", "legacy.execution.pythonUDF.",
    "legacy.execution.pandas.", "execution.arrow.useLargeVarTypes").map("spark.sql." + _)
  // What decides in which classes a compiled function gets its arguments, and what becomes of its results.
  private val JvmSettings = Seq("datetime.", "legacy.").map("spark.sql." + _)
  private val Interpreter = "spark.sql.execution.pyspark.python"
  private val OfSpark = Seq("SPARK_", "PYSPARK_", "PYTHON_", "OMP_NUM_THREADS")
  private val UserDefined = Set("python_udf", "scala_udf", "java_udf", "hive")

  private val commands = new java.util.LinkedHashMap[String, Array[Byte]](64, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, Array[Byte]]): Boolean = size > MaxCommands
  }
  private val files = new ConcurrentHashMap[String, String]()

  def nameOf(e: Expression): Option[String] = e match {
    case p: PythonFuncExpression => Some(p.name)
    case s: ScalaUDF => s.udfName
    case u: UserDefinedExpression => Some(u.name)
    case _ => None
  }

  def of(e: Expression): Option[FunctionId] = e match {
    case p: PythonFuncExpression => Some(FunctionId(p.name, "python", python(p), e.deterministic))
    case s: ScalaUDF =>
      val (kind, function) = unwrapped(s.function)
      val id = s"${compiled(function)}/${s.dataType.catalogString}${told(settingsOf(JvmSettings))}"
      Some(FunctionId(s.udfName.getOrElse(""), kind, id, e.deterministic))
    case u: UserDefinedExpression => Some(FunctionId(u.name, "java", "", e.deterministic)) // Hive's and the catalogs'
    case _ => None
  }

  /** The pickled function of a Python id that was met lately, or null. */
  def command(id: String): Array[Byte] = commands.synchronized(commands.get(id))

  /** By resolving a call of it, which is the same in every release; a Python function takes any number of arguments. */
  def registered(session: classic.SparkSession, name: String): Option[FunctionId] = {
    val quoted = name.split('.').map(part => "`" + part.replace("`", "``") + "`").mkString(".")
    session.withActive((0 to MaxArity).iterator.flatMap { n =>
      Try(session.range(1).selectExpr(s"$quoted(${Seq.fill(n)("NULL").mkString(", ")})").queryExecution.analyzed).toOption
    }.flatMap(_.expressions.flatMap(_.collect(Function.unlift(of)))).nextOption())
      .filter(f => unqualified(f.name) == unqualified(name)) // one written in SQL is resolved to what it calls
  }

  private def unqualified(name: String): String = name.split('.').last.toLowerCase(java.util.Locale.ROOT)

  def temporary(session: classic.SparkSession): Seq[FunctionId] = {
    val registry = session.sessionState.functionRegistry
    registry.listFunction().filter { f =>
      registry.lookupFunction(f).exists(info => UserDefined(info.getSource))
    }.flatMap(f => registered(session, f.funcName).map(_.copy(name = f.funcName)))
  }

  private def settingsOf(prefixes: Seq[String]): String =
    Parameters.changed(name => prefixes.exists(name.startsWith)).mkString(" ")

  private def told(settings: String): String =
    if (settings.isEmpty) "" else "/" + ExpressionJson.hex(ExpressionJson.md5(settings.getBytes(UTF_8)))

  private def python(p: PythonFuncExpression): String = {
    val command = p.func.command.toArray
    val settings = settingsOf(PythonSettings)
    val exec = "/exec:" + ExpressionJson.hex(ExpressionJson.md5(String.valueOf(p.func.pythonExec).getBytes(UTF_8)))
    val types = userDefined(p.dataType +: p.children.map(_.dataType)).sorted
    val digest = ExpressionJson.hex(ExpressionJson.md5(command))
    def of(classes: String) = s"$digest/${p.evalType}${told(settings)}$classes$exec${environment(p.func.envVars)}"
    val id = if (types.isEmpty) of("") else of(types.mkString("/udt:", ",", ""))
    commands.synchronized(Seq(id, of("")).foreach(commands.put(_, command)))
    val elsewhere = settings.contains(Interpreter)
    if (elsewhere || hasModules || (p.func.broadcastVars != null && !p.func.broadcastVars.isEmpty)) s"~$id" else id
  }

  // Files that a client brought to its session alone may hide the modules that workers otherwise find.
  private def hasModules: Boolean = classic.SparkSession.getActiveSession.exists { session =>
    val context = session.sparkContext
    Seq(context.addedFiles, context.addedArchives)
      .exists(_.get(session.sessionUUID).exists(_.keys.exists(!SessionFiles.isOwn(session, _))))
  }

  // By name, with a digest of the pickled class that workers take where its module has none; that of a notebook has none.
  private def userDefined(types: Seq[DataType]): Seq[String] = types.flatMap {
    case udt: UserDefinedType[_] =>
      val pickled = Option(udt.serializedPyClass).map(c => "#" + ExpressionJson.hex(ExpressionJson.md5(c.getBytes(UTF_8))))
      val mark = if (String.valueOf(udt.pyUDT).startsWith("__main__.")) "!" else ""
      Option(udt.pyUDT).map(_ + pickled.getOrElse("") + mark).toSeq ++ userDefined(Seq(udt.sqlType))
    case ArrayType(element, _) => userDefined(Seq(element))
    case MapType(key, value, _) => userDefined(Seq(key, value))
    case struct: StructType => userDefined(struct.map(_.dataType))
    case _ => Nil
  }.distinct

  // Without what Spark's runners put there themselves, some of it only when the function first runs.
  private def environment(variables: java.util.Map[String, String]): String = {
    val own = if (variables == null) Nil else variables.asScala.toSeq.filterNot { case (name, value) =>
      OfSpark.exists(name.startsWith) || (name == "PYTHONHASHSEED" && value == "0")
    }.map { case (name, value) => s"$name=$value" }.sorted
    if (own.isEmpty) "" else "/env:" + ExpressionJson.hex(ExpressionJson.md5(own.mkString("\n").getBytes(UTF_8)))
  }

  // A Java UDF is a ScalaUDF whose function is Spark's adaptor; the user's object is what it captured.
  private def unwrapped(f: AnyRef): (String, AnyRef) = Try {
    f.getClass.getDeclaredFields.iterator.map { field =>
      field.setAccessible(true)
      field.get(f)
    }.find(_.getClass.getInterfaces.exists(_.getName.startsWith("org.apache.spark.sql.api.java.UDF")))
  }.toOption.flatten.map(udf => ("java", udf)).getOrElse(("scala", f))

  private def compiled(function: AnyRef): String = {
    val kind = function.getClass
    val state = Try {
      val out = new ByteArrayOutputStream()
      val stream = new ObjectOutputStream(out)
      try stream.writeObject(function) finally stream.close()
      out.toByteArray
    }
    Try {
      val code = kind.getResourceAsStream(s"/${kind.getName.replace('.', '/')}.class")
      val bytes = try code.readAllBytes() finally code.close()
      val digest = ExpressionJson.hex(ExpressionJson.md5(bytes ++ state.get))
      val mark = if (jars(kind).exists(changed)) "!" else if (source(kind).exists(_.isDirectory)) "~" else ""
      s"$mark${kind.getName}/$digest${library(kind)}"
    }.getOrElse { // lambdas of one place in the code have one class: what they captured tells them apart
      val own = state.map(bytes => ExpressionJson.hex(ExpressionJson.md5(bytes)))
      s"~${kind.getName}/${own.getOrElse(System.identityHashCode(function).toHexString)}"
    }
  }

  private def source(kind: Class[_]): Option[File] =
    Option(kind.getProtectionDomain.getCodeSource).map(s => new File(s.getLocation.toURI))

  private def jars(kind: Class[_]): Seq[File] = {
    val loaders = Iterator.iterate(kind.getClassLoader)(_.getParent).takeWhile(_ != null).toSeq
    val brought = loaders.collect { case u: URLClassLoader => u.getURLs.toSeq }.flatten.map(u => new File(u.toURI))
    (brought ++ classPath ++ source(kind)).filter(f => f.isFile && !f.getName.startsWith("skipstone-bridge")).distinct
  }

  // What the JVM was started with, which no loader tells, without Spark's own jars: these are of its release.
  private lazy val classPath: Seq[File] = {
    val own = source(classOf[SparkContext]).map(_.getParentFile)
    System.getProperty("java.class.path", "").split(File.pathSeparator).toSeq.filter(_.nonEmpty).map(new File(_))
      .filterNot(f => own.contains(f.getParentFile))
  }

  // A loader goes on with the jar that it opened, executors with the copy that they fetched: the path may have another.
  private def changed(jar: File): Boolean = !isSparksCopy(jar) && SparkContext.getActive.forall { context =>
    val added = context.allAddedJars.collect { case (name, when) if name.split('/').last == jar.getName => when }
    modified(jar) > added.maxOption.getOrElse(context.startTime)
  }

  private def isSparksCopy(jar: File): Boolean =
    Try(jar.toPath.startsWith(new File(SparkFiles.getRootDirectory()).toPath)).getOrElse(false)

  private def modified(jar: File): Long = {
    val other = Try(Files.getAttribute(jar.toPath, "unix:ctime").asInstanceOf[FileTime].toMillis).getOrElse(0L)
    math.max(jar.lastModified, other)
  }

  private def library(kind: Class[_]): String = {
    val digests = jars(kind).map { jar =>
      files.computeIfAbsent(s"$jar ${jar.length} ${modified(jar)}",
        _ => ExpressionJson.hex(ExpressionJson.md5(Files.readAllBytes(jar.toPath))))
    }
    val java = System.getProperty("java.specification.version")
    s"/${ExpressionJson.hex(ExpressionJson.md5((java +: digests.distinct.sorted).mkString(" ").getBytes(UTF_8)))}"
  }
}
