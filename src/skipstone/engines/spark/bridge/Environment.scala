package org.apache.spark.sql.skipstone

import java.io.{ByteArrayOutputStream, ObjectOutputStream}
import java.nio.charset.{Charset, StandardCharsets}
import java.time.{Instant, ZoneId}
import java.time.zone.ZoneRulesProvider
import java.util.{Locale, TimeZone}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.conf.Configuration

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf

/**
 * What may change the values that a reader makes of the same bytes, besides schema and options, as it is now in the
 * session and the JVM that read. Everything counts unless it is known not to matter; docs/soundness.md lists, reader by
 * reader, what was found in Spark's sources.
 *
 * In groups, for not every index depends on all of it:
 *  - `values`: the columns of any file;
 *  - `timestamps`: columns that hold timestamps, besides;
 *  - `partitions`: partition columns, besides;
 *  - `session`, `machine`: what Spark or a user's function computes of the columns;
 *  - `zones`: what functions of times make of timestamps in zones with rules.
 */
private[skipstone] case class Environment(groups: Map[String, Seq[(String, String)]]) {
  def stamp(wanted: Set[String]): Map[String, Seq[(String, String)]] = groups.view.filterKeys(wanted).toMap

  /** The settings of Spark SQL's that count and are not at their defaults: a task may look them up. */
  def lookedUp(wanted: Set[String]): Map[String, String] =
    (wanted + Environment.Values).flatMap(groups.getOrElse(_, Nil)).collect {
      case ("caseSensitive", value) => "spark.sql.caseSensitive" -> value
      case ("ansi", value) => "spark.sql.ansi.enabled" -> value
      case (name, value) if name.startsWith("spark.sql.") => name -> value
    }.filterNot { case (name, value) => Environment.isDefault(name, value) }.toMap

  def isSettled: Boolean = !groups.values.flatten.exists(_._2.startsWith(Executors.NotKnown))

  private lazy val text = Json.text { g =>
    g.writeStartObject()
    groups.toSeq.sortBy(_._1).foreach { case (group, entries) => Json.map(g, group, entries) }
    g.writeEndObject()
  }

  def write(g: JsonGenerator, name: String): Unit = {
    g.writeFieldName(name)
    g.writeRawValue(text)
  }
}

private[skipstone] object Environment {
  val Values = "values"
  val Session = "session"
  private val Typed = Set("parquet", "orc", "avro", "iceberg")
  private val Text = Set("csv", "json", "xml", "text")
  private val Own = Typed ++ Text + "binaryfile"
  private val Names = Own + "jsongenerator"

  // Settings whose effective values are compared, so that another default of another release is noticed. One that this
  // Spark does not know is left out.
  private val Effective = Seq(
    "parquet.datetimeRebaseModeInRead", "parquet.int96RebaseModeInRead", "parquet.int96AsTimestamp",
    "parquet.int96TimestampConversion", "parquet.int64AsTimestampMillis", "parquet.binaryAsString",
    "parquet.inferTimestampNTZ.enabled", "parquet.fieldId.read.enabled", "parquet.fieldId.read.ignoreMissing",
    "parquet.ignoreVariantAnnotation", "legacy.parquet.nanosAsLong",
    "legacy.parquet.returnNullStructIfAllFieldsMissing", "parquet.enableVectorizedReader",
    "avro.datetimeRebaseModeInRead", "legacy.avro.allowIncompatibleSchema", "orc.impl", "orc.positionalAccess",
    "legacy.timeParserPolicy", "columnNameOfCorruptRecord", "csv.parser.columnPruning.enabled",
    "legacy.csv.enableDateTimeParsingFallback", "legacy.json.enableDateTimeParsingFallback",
    "legacy.json.allowEmptyString.enabled", "json.enablePartialResults", "json.enableExactStringParsing",
    "legacy.javaCharsets", "legacy.codingErrorAction", "legacy.useLegacyXMLParser", "readSideCharPadding",
    "charAsVarchar", "legacy.charVarcharAsString", "preserveCharVarcharTypeInfo",
    "legacy.noCharPaddingInPredicate").map("spark.sql." + _)

  // The values in partitions' names are read by these, besides the session's zone.
  private val Partitions = Seq("partitionColumnTypeInference.enabled", "validatePartitionColumns").map("spark.sql.sources." + _)

  // Settings of these names decide how a query is parsed, planned, run and shown, which files are listed, how files are
  // written, and what the schema is (types are compared by themselves).
  private val Harmless = Seq(
    "adaptive.", "allowNamed", "alwaysInline", "analyzer.", "artifact.", "autoBroadcastJoinThreshold", "binaryOutputStyle",
    "broadcastTimeout", "bucketing.", "cache.", "cartesianProductExec.", "catalog.", "catalogImplementation", "cbo.",
    "classic.", "codegen.", "constraintPropagation.", "crossJoin.", "cte", "dataFrame", "dataframe", "dataset.", "debug.",
    "defaultCacheStorageLevel", "defaultCatalog", "defaultPath", "defaultSizeInBytes", "defaultUrl", "dropDuplicates",
    "dropTable", "enforceTypeCoercion", "error.", "event.", "exchange.", "execution.", "experimental.", "expressionTree",
    "extendedExplain", "extensions", "files.", "filesourceTableRelationCacheSize", "generatedColumn.",
    "globalTempDatabase", "groupBy", "hive.", "iceberg.", "inMemory", "insert", "join.", "lateralColumnAlias", "lazySet",
    "leafNodeDefaultParallelism", "lightweight", "limit.", "listagg.", "mapZip", "maven.", "max", "mergeNested",
    "metadataCacheTTLSeconds", "nameResolution", "objectHashAggregate.", "operatorPipe", "optimize", "optimizer.",
    "orderBy", "ordering", "parser.", "path.", "pipelines.", "pivot", "plan", "prioritize", "pyspark.", "python.",
    "queryExecutionListeners", "redaction.", "repl.", "require", "resultQueryStage", "retainGroupColumns", "run",
    "scripting.", "scriptTransformation", "selfJoin", "session.timeZone", "sessionWindow.", "shuffle", "sort", "sources.",
    "stable", "stackTraces", "statistics.", "storeAssignmentPolicy", "streaming.", "subexpressionElimination.",
    "subquery.", "thriftServer.", "thriftserver.", "timeTravel", "transpose", "truncateTable", "tvf.",
    "ui.", "union", "useCommon", "variable.", "view.", "warehouse.", "window").map("spark.sql." + _)
  // The default of a column that files lack is a text of SQL, which is parsed and evaluated when they are read.
  private val ForSql = Seq("parser.", "ansi.", "storeAssignmentPolicy").map("spark.sql." + _)
  private val ButNotHarmless = Seq("execution.datasources.", "files.archive.").map("spark.sql." + _)
  // These decide in which Python a user's function runs, and what it gets and gives: they matter to nothing else.
  private val ForPython = Seq("execution.arrow.", "execution.pandas.", "execution.pyspark.", "execution.python", "legacy.execution.",
    "pyspark.").map("spark.sql." + _)
  private val OfBatches = "(?i).*(batch|buffer|\\.max|profiler|faulthandler|idletimeout|jvmstacktrace).*".r // how many values at a time, what is said of failures
  private val OfEveryFormat = Seq("files.archive.", "variant.").map("spark.sql." + _)
  private val ForWriting = "(?i)compression|pushdown|write|output|batchsize|level$|committer|summaryfiles|mergeschema|recordlevelfilter".r

  // Settings of Hadoop's of these names find, open and guard files, or schedule and write; they make no value.
  private val HarmlessHadoop = Seq(
    "adl.", "datanucleus.", "dfs.", "file.", "fs.", "ftp.", "ha.", "hadoop.", "hdfs.", "hive.", "io.bytes.", "io.erasurecode.",
    "io.file.", "io.map.", "io.mapfile.", "io.native.", "io.seqfile.", "ipc.", "javax.", "map.sort.", "mapred.", "mapreduce.",
    "net.", "nfs.", "orc.block.", "orc.bloom.", "orc.buffer.", "orc.compress", "orc.create.", "orc.stripe.", "parquet.block.",
    "parquet.bloom.", "parquet.columnindex.", "parquet.compression", "parquet.crypto.", "parquet.dictionary",
    "parquet.enable.", "parquet.encryption.", "parquet.memory.", "parquet.page.", "parquet.statistics.", "parquet.summary.",
    "parquet.writer.", "rpc.", "s3.", "s3native.", "seq.", "spark.", "tfile.", "yarn.", "zlib.", "zookeeper.")
  private val ButNot = Seq("hive.exec.orc.", "hive.orc.", "mapreduce.input.", "mapred.linerecordreader.")
  private val OfText = Seq("mapreduce.", "mapred.", "textinputformat.")

  private val defaults = new SQLConf
  private val effectiveOf = new ConcurrentHashMap[String, Seq[String]]()
  private val harmless = new ConcurrentHashMap[String, java.lang.Boolean]()
  private val harmlessHadoop = new ConcurrentHashMap[String, java.lang.Boolean]()

  // All that a description is made of. Between two queries little of it changes, and comparing is less work than making.
  private case class Seen(set: Map[String, String], options: Map[String, String], properties: Seq[(String, String)],
      hadoop: Seq[(String, String)], jvm: Jvm, zone: String)
  private val described = new ConcurrentHashMap[String, (Seen, Environment)]()

  def of(session: classic.SparkSession, format: String, options: Map[String, String]): Environment = {
    val context = session.sparkContext
    val properties = Option(context.getLocalProperties).toSeq.flatMap(_.asScala).filter(p => SQLConf.containsConfigKey(p._1))
    // The session's zone is by default the JVM's.
    val seen = Seen(session.sessionState.conf.getAllConfs, options, properties, shared(context.hadoopConfiguration),
      Executors.jvm(context), TimeZone.getDefault.getID)
    val last = described.get(format)
    if (last != null && last._1 == seen) last._2 else {
      val made = of(format, seen)
      if (made.isSettled) described.put(format, seen -> made)
      made
    }
  }

  /** Of the settings that a task sees, and not of Hadoop's, which readers got when they were made. */
  def inTask(format: String, options: Map[String, String]): Environment =
    of(format, Seen(SQLConf.get.getAllConfs, options, Nil, Nil, Jvm.here, TimeZone.getDefault.getID))

  /** From what was seen and nothing else, whatever changes meanwhile. */
  private def of(format: String, seen: Seen): Environment = {
    import seen.{jvm, options, set}
    val conf = new SQLConf
    set.foreach { case (name, value) => conf.settings.put(name, value) }
    val zone = zoned(set.getOrElse(SQLConf.SESSION_LOCAL_TIMEZONE.key, seen.zone))
    val sensitive = "caseSensitive" -> conf.caseSensitiveAnalysis.toString
    val ansi = "ansi" -> conf.ansiEnabled.toString
    val spark = "Spark" -> SPARK_VERSION.split('.').take(2).mkString(".")
    val java = "Java" -> jvm.java
    val names = effectiveOf.computeIfAbsent(format, f => Effective.filter(n => SQLConf.containsConfigKey(n) && concerns(f, n)))
    val effective = names.flatMap(n => valueOf(conf, n).map(n -> _))
    val counting = set.filter { case (name, _) => name.startsWith("spark.sql.") && !isHarmless(name) }
    val changed = counting.toSeq.filter { case (name, value) =>
      !names.contains(name) && concerns(format, name) &&
        (!Own(format) || SQLConf.containsConfigKey(name)) && !isDefault(name, value)
    }
    // Tasks also see what a thread brings along, where the session has set nothing: a stream's settings, in its batches.
    val brought = seen.properties.filter { case (name, value) =>
      set.get(name).forall(_ != value) && !isHarmless(name) && !(isDefault(name, value) && !set.contains(name))
    }.map { case (name, value) => s"thread's $name" -> value }
    val hadoop = hadoopSettings(seen, format)
    val legacy = valueOf(conf, "spark.sql.legacy.timeParserPolicy").exists(_.equalsIgnoreCase("LEGACY"))
    val zones = format match {
      case "parquet" if valueOf(conf, "spark.sql.parquet.int96TimestampConversion").contains("true") => Seq("sessionTimeZone" -> zone)
      case "parquet" | "avro" | "iceberg" | "binaryfile" => Nil
      case _ => Seq("sessionTimeZone" -> zone)
    }
    val parsing = if (Typed(format) || format == "binaryfile") Nil else
      Seq(ansi, java, spark) ++ lowered(options).get("timezone").map(z => "option timeZone" -> zoned(z))
    // XML reads numbers by the JVM's locale; what Spark's old parsers and other formats look at is not known.
    val machine = if (format == "xml" || !Own(format) || (legacy && Text(format))) Seq("JVM locale" -> jvm.locale, "JVM zone" -> jvm.zone)
      else if (format == "orc") Seq("JVM zone" -> jvm.zone) // a timestamp may be read as text or a number
      else Nil
    val timestamps = if (Typed(format)) Seq("JVM zone" -> jvm.zone) else Nil
    val forSql = set.toSeq.filter { case (n, v) => ForSql.exists(n.startsWith) && n != SQLConf.ANSI_ENABLED.key && !isDefault(n, v) }
    val forPython = set.toSeq.filter { case (n, v) => ForPython.exists(n.startsWith) && !OfBatches.matches(n) && !isDefault(n, v) }
    Environment(settled(Map(
      Values -> (Seq(sensitive) ++ zones ++ parsing ++ machine ++ effective ++ changed ++ brought ++ hadoop).sorted,
      "timestamps" -> timestamps,
      "partitions" -> (Seq("sessionTimeZone" -> zone) ++ Partitions.flatMap(n => valueOf(conf, n).map(n -> _))).sorted,
      Session -> (Seq(ansi, sensitive, "sessionTimeZone" -> zone) ++ counting.filterNot { case (n, v) => isDefault(n, v) } ++ forSql ++ forPython ++ brought).distinct.sorted,
      "machine" -> Seq("JVM charset" -> jvm.charset, "JVM locale" -> jvm.locale, "JVM zone" -> jvm.zone, java, spark),
      "zones" -> Seq("time zone rules" -> jvm.zones))))
  }

  /** A value that refers to others, which may change, is taken to be another one each time that it is looked at. */
  private def settled(groups: Map[String, Seq[(String, String)]]): Map[String, Seq[(String, String)]] =
    groups.map { case (group, entries) => group -> entries.map {
      case (name, value) if value.contains("${") => name -> Executors.unknownValue(s"what $value stands for")
      case entry => entry
    } }

  /** Whether a setting of Spark SQL that names formats names this one; typed formats look at no others. */
  private def concerns(format: String, setting: String): Boolean = {
    val named = setting.split('.').map(_.toLowerCase(Locale.ROOT)).filter(Names) ++
      (if (setting.endsWith("XMLParser")) Seq("xml") else Nil)
    if (named.nonEmpty) named.contains(format) && ForWriting.findFirstIn(setting).isEmpty
    else !Typed(format) || OfEveryFormat.exists(setting.startsWith)
  }

  private def isHarmless(name: String): Boolean =
    harmless.computeIfAbsent(name, n => n == "spark.sql.caseSensitive" || n.startsWith("spark.sql.ansi.") ||
      (Harmless.exists(n.startsWith) && !ButNotHarmless.exists(n.startsWith)))

  def isDefault(setting: String, value: String): Boolean = valueOf(defaults, setting).contains(value)

  private def valueOf(conf: SQLConf, name: String): Option[String] = Try(conf.getConfString(name)).toOption.filter(_ != null)

  private def lowered(options: Map[String, String]): Map[String, String] = options.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }

  /** A reader gets Hadoop's settings with those of the session in them. */
  private def hadoopSettings(seen: Seen, format: String): Seq[(String, String)] = {
    def counts(name: String): Boolean = !isHarmlessHadoop(name) && (name.takeWhile(_ != '.') match {
      case "parquet" => format == "parquet" || format == "iceberg" || !Own(format)
      case "orc" | "hive" => format == "orc" || format == "iceberg" || !Own(format)
      case "avro" => format == "avro" || format == "iceberg" || !Own(format)
      case _ => !OfText.exists(name.startsWith) || Text(format) || !Own(format)
    })
    val found = Map.newBuilder[String, String]
    found ++= seen.hadoop.filter { case (name, _) => counts(name) }
    found ++= seen.set.filter { case (name, value) => !name.startsWith("spark.") && value != null && counts(name) }
    found.result().toSeq.map { case (name, value) => s"hadoop $name" -> value }
  }

  // Going through a thousand settings for every query would take longer than the rest of this. What was set is in a
  // small table of its own; what was loaded is in another, which is made anew when files are loaded again.
  private val tables = Try(Seq("getProps", "getOverlay").map { name =>
    val method = classOf[Configuration].getDeclaredMethod(name)
    method.setAccessible(true)
    method
  }).toOption

  private case class Shared(all: AnyRef, size: Int, set: AnyRef, settings: Seq[(String, String)])
  @volatile private var known = Shared(null, 0, null, Nil)

  /** Hadoop's settings that are not at their defaults and not known to be harmless. */
  private def shared(conf: Configuration): Seq[(String, String)] = {
    def all = conf.iterator().asScala.map(e => e.getKey -> e.getValue)
      .filter { case (name, _) => !isHarmlessHadoop(name) && !isDefault(conf, name) }.toSeq
    val state = tables.flatMap(ms => Try(ms.map(_.invoke(conf).asInstanceOf[java.util.Properties])).toOption)
    state.fold(all) { case Seq(loaded, overlay) =>
      val (size, set, last) = (loaded.size, overlay.clone(), known)
      if ((last.all eq loaded) && last.size == size && last.set == set) last.settings else {
        val found = all
        known = Shared(loaded, size, set, found)
        found
      }
    }
  }

  private def isHarmlessHadoop(name: String): Boolean = harmlessHadoop.computeIfAbsent(name,
    n => HarmlessHadoop.exists(n.startsWith) && !ButNot.exists(n.startsWith))

  private def isDefault(conf: Configuration, name: String): Boolean =
    Option(conf.getPropertySources(name)).exists(_.lastOption.exists(_.endsWith("-default.xml")))

  private val zones = new ConcurrentHashMap[String, String]()

  /** A zone by its name and its rules, which differ between releases of Java; by its offset where that is all. */
  def zoned(id: String): String = zones.computeIfAbsent(id, _ => Try(DateTimeUtils.getZoneId(id)).map(zoned(id, _)).getOrElse(id))

  private def zoned(id: String, zone: ZoneId): String = {
    val rules = zone.getRules
    if (rules.isFixedOffset) rules.getOffset(Instant.EPOCH).getId.replace("Z", "UTC") else {
      val out = new ByteArrayOutputStream()
      val stream = new ObjectOutputStream(out)
      try stream.writeObject(rules) finally stream.close()
      s"$id (rules ${ExpressionJson.hex(ExpressionJson.md5(out.toByteArray)).take(8)})"
    }
  }
}

/** What readers and functions can find out about the JVM that they run in. */
private[skipstone] case class Jvm(zone: String, locale: String, charset: String, java: String, zones: String)

private[skipstone] object Jvm {
  /** Where names of months and the like come from; by default the release decides. */
  private val Providers = "java.locale.providers"

  /** A zone by its name, and by its offsets where these are not what Java knows under that name. */
  private def zone(zone: TimeZone): String =
    if (zone.hasSameRules(TimeZone.getTimeZone(zone.getID))) Environment.zoned(zone.getID)
    else s"${zone.getID} (own rules ${ExpressionJson.hex(ExpressionJson.md5(zone.toString.getBytes(StandardCharsets.UTF_8))).take(8)})"

  /** The release of the time zone database, or another source that was put in its place. */
  private lazy val zones: String = (Try(ZoneRulesProvider.getVersions("Europe/London").lastKey).toOption ++
    Option(System.getProperty("java.time.zone.DefaultZoneRulesProvider"))).mkString(" ")

  def here: Jvm = {
    val locales = Seq(Locale.getDefault, Locale.getDefault(Locale.Category.FORMAT), Locale.getDefault(Locale.Category.DISPLAY))
    Jvm(zone(TimeZone.getDefault), locales.map(_.toString).distinct.mkString(", "), Charset.defaultCharset.name,
      (System.getProperty("java.specification.version") +: Option(System.getProperty(Providers)).toSeq).mkString(" "), zones)
  }
}
