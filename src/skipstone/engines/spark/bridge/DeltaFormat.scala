package org.apache.spark.sql.skipstone

import java.lang.reflect.Modifier

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Delta tables. This knows Delta by the names of its classes only; [[DeltaTables]], which is loaded when a plan has one and
 * the check was passed, calls them.
 */
private[skipstone] object DeltaFormat extends TableFormat {
  private val Package = "org.apache.spark.sql.delta."
  private[skipstone] val Prepared = Package + "stats.PreparedDeltaFileIndex"
  private[skipstone] val Log = Package + "files.TahoeLogFileIndex"
  private[skipstone] val Skipping = "spark.databricks.delta.stats.skipping"
  private val Rule = "PrepareDeltaScan"

  override def name: String = "delta"

  override val tables: Set[String] = Set(Package + "catalog.DeltaTableV2")

  override def isTable(leaf: LogicalPlan): Boolean = location(leaf).exists(c => c == Prepared || c == Log)

  private def location(leaf: LogicalPlan): Option[String] = leaf match {
    case rel: LogicalRelation => rel.relation match {
      case fs: HadoopFsRelation => Some(fs.location.getClass.getName)
      case _ => None
    }
    case _ => None
  }

  override def roots(leaf: LogicalPlan): Seq[Path] = leaf match {
    case rel: LogicalRelation => rel.relation.asInstanceOf[HadoopFsRelation].location.rootPaths
    case _ => Nil
  }

  override def writing(): Option[String] = if (DeltaTables.inTransaction) Some("a transaction of Delta's is under way") else None

  override def scan(leaf: LogicalPlan, session: classic.SparkSession): Option[Either[String, TableScan]] =
    if (leaf.isStreaming) None
    else if (location(leaf).contains(Prepared)) Some(Right(DeltaTables.scan(leaf.asInstanceOf[LogicalRelation], session)))
    else Some(Left(unprepared(session)))

  /** Why Delta has not prepared a scan by now. */
  private def unprepared(session: classic.SparkSession): String = {
    val rules = session.extensions.buildPreCBORules(session).map(_.getClass.getSimpleName)
    if (!rules.contains(Rule)) "Delta's extension is not in spark.sql.extensions (io.delta.sql.DeltaSparkSessionExtension): its tables are left alone"
    else if (rules.indexOf(Rule) > rules.indexOf("SkipstoneRule")) "Delta's extension must stand before Skipstone's in " +
      "spark.sql.extensions, so that its own pruning comes first: its tables are left alone"
    else s"Delta has not prepared the scan ($Skipping is off, or the plan is one that it leaves to a later one)"
  }

  override def source(leaf: LogicalPlan, session: classic.SparkSession): TableSource =
    DeltaTables.source(leaf.asInstanceOf[LogicalRelation], session)

  /** Whether this release of Delta's has what is called of it, with the types that it is called with. */
  override def unsupported(): Option[String] = {
    val loader = getClass.getClassLoader
    def find(name: String): Class[_] = Class.forName(Package + name, false, loader)
    def lacks(owner: String, method: String, gives: String, takes: Class[_]*): Option[String] = Try(find(owner)).toOption match {
      case None => Some(s"this release of Delta has no class ${Package + owner}, or Skipstone's jar does not see it")
      case Some(c) => Try(c.getMethod(method, takes: _*)).toOption match {
        case Some(m) if m.getReturnType.getName == gives || m.getReturnType.getName == Package + gives => None
        case _ => Some(s"the class ${Package + owner} of this release of Delta has no method $method(${takes.map(_.getSimpleName).mkString(", ")}): $gives")
      }
    }
    val seq = classOf[Seq[_]]
    val option = classOf[Option[_]].getName
    lacks("stats.PreparedDeltaFileIndex", "preparedScan", "stats.DeltaScan")
      .orElse(lacks("stats.DeltaScan", "files", seq.getName))
      .orElse(lacks("stats.DeltaScan", "total", "stats.DataSize"))
      .orElse(lacks("stats.DataSize", "files", option))
      .orElse(lacks("stats.DataSize", "bytesCompressed", option))
      .orElse(lacks("actions.AddFile", "path", classOf[String].getName))
      .orElse(lacks("actions.AddFile", "size", "long"))
      .orElse(lacks("actions.AddFile", "modificationTime", "long"))
      .orElse(lacks("actions.AddFile", "partitionValues", classOf[Map[_, _]].getName))
      .orElse(lacks("files.TahoeFileIndex", "matchingFiles", seq.getName, seq, seq))
      .orElse(lacks("files.TahoeFileIndex", "absolutePath", classOf[Path].getName, classOf[String]))
      .orElse(lacks("files.TahoeFileIndex", "getPartitionValuesRow",
        "org.apache.spark.sql.catalyst.expressions.GenericInternalRow", classOf[Map[_, _]]))
      .orElse(lacks("files.TahoeLogFileIndex", "isTimeTravelQuery", "boolean"))
      .orElse(lacks("files.TahoeLogFileIndex", "partitionFilters", seq.getName))
      .orElse(lacks("DeltaParquetFileFormat", "columnMappingMode", "DeltaColumnMappingMode"))
      .orElse(lacks("DeltaParquetFileFormat", "referenceSchema", "org.apache.spark.sql.types.StructType"))
      .orElse(lacks("DeltaColumnMappingMode", "name", classOf[String].getName))
      .orElse(lacks("OptimisticTransaction$", "getActive", option))
      .orElse(DeltaTables.unfinished.map(m => s"this release of Delta wants $m of what lists a table's files"))
  }

  /** The methods of a class that nobody has written. */
  private[skipstone] def abstractIn(made: Class[_]): Option[String] =
    made.getMethods.find(m => Modifier.isAbstract(m.getModifiers)).map(_.getName)
}
