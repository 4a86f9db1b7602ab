package org.apache.spark.sql.skipstone

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.util.Base64

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.schema.Type
import org.apache.parquet.schema.Type.Repetition.REPEATED

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.util.{SerializableConfiguration, ThreadUtils}

/**
 * Parquet footers of many objects, read by the executors (a few: by the driver): facts only, what they prove is judged elsewhere. Of floating
 * numbers the values are read as well, see [[FloatingValues]].
 *
 * A line an object: {"o": ordinal, "error"} or {"o", "rows", "created_by", "meta": {key: value},
 * "columns": [...]} with one element for each requested column, either {"absent": reason} (`missing`,
 * `case`: there under another spelling, `repeated`, `group`: not a leaf, or an error's text) or
 * {"physical", "length" (of a fixed binary), "logical" or null, "groups": [{"rows", "values", "nulls"
 * or null, "nans" if the values were read, "min", "max": base64 or null}]}.
 */
private[skipstone] object Footers {
  private val Keys =
    Seq("org.apache.spark.version", "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96",
      "org.apache.spark.timeZone")

  // So few are read here: a job, for as little as that, takes longer.
  private val FewFiles = 8
  private val FewBytes = 64L << 20

  def write(scan: FileScan, pathsFile: String, columnsJson: String, outFile: String): Int = {
    val columns = Json.mapper.readTree(columnsJson).elements().asScala
      .map(_.elements().asScala.map(_.asText).toArray).toArray
    val files = scan.named(pathsFile).zipWithIndex.map { case ((f, _), i) =>
      (i, f.getPath.toString, f.getLen, f.getModificationTime)
    }
    if (files.isEmpty) Files.write(Paths.get(outFile), Array.emptyByteArray)
    else if (files.size <= FewFiles && files.map(_._3).sum <= FewBytes) {
      val hadoop = scan.session.sessionState.newHadoopConfWithOptions(scan.fs.options)
      val lines = ThreadUtils.parmap(files, "skipstone-footers", FewFiles) { case (i, path, length, time) =>
        line(i, path, length, time, columns, new FooterReader(columns.toSeq.map(_.toSeq), hadoop))
      }
      Files.write(Paths.get(outFile), lines.asJava)
    } else {
      val sc = scan.session.sparkContext
      val conf = sc.broadcast(new SerializableConfiguration(
        scan.session.sessionState.newHadoopConfWithOptions(scan.fs.options)))
      val slices = math.min(files.size, math.max(sc.defaultParallelism * 4, files.size / 1000))
      val writer = Files.newBufferedWriter(Paths.get(outFile), UTF_8)
      val read = new Read(columns, conf)
      // Written as tasks end, so that the driver holds no more than a task's lines.
      try sc.runJob(sc.parallelize(files, slices), read, 0 until slices, (_: Int, lines: Array[String]) =>
        writer.synchronized(lines.foreach { l => writer.write(l); writer.write('\n') }))
      finally {
        writer.close()
        conf.destroy()
      }
    }
    files.size
  }

  // A class, where a closure would do: see OwnClasses.
  private class Read(columns: Array[Array[String]], conf: Broadcast[SerializableConfiguration])
      extends ((TaskContext, Iterator[(Int, String, Long, Long)]) => Array[String]) with Serializable {
    def apply(task: TaskContext, part: Iterator[(Int, String, Long, Long)]): Array[String] = {
      val reader = new FooterReader(columns.toSeq.map(_.toSeq), conf.value.value)
      part.map { case (i, path, length, time) => line(i, path, length, time, columns, reader) }.toArray
    }
  }

  private def line(ordinal: Int, path: String, length: Long, time: Long,
      columns: Array[Array[String]], reader: FooterReader): String = {
    try {
      // With the listing's status there is no need to ask the file system again.
      reader.read(new FileStatus(length, false, 1, 128L << 20, time, new Path(path)))(describe(ordinal, _, _, columns))
    } catch {
      case NonFatal(e) => Json.text { g =>
        g.writeStartObject()
        g.writeNumberField("o", ordinal)
        g.writeStringField("error", s"${e.getClass.getSimpleName}: ${Option(e.getMessage).getOrElse("").take(500)}")
        g.writeEndObject()
      }
    }
  }

  private def describe(ordinal: Int, footer: ParquetMetadata, reader: () => ParquetFileReader, columns: Array[Array[String]]): String = {
    val schema = footer.getFileMetaData.getSchema
    val floating = FloatingValues.of(footer, reader, columns.toSeq.collect {
      case Array(name) if absence(schema, Array(name)).isEmpty && FloatingValues.serves(schema.getFields.get(schema.getFieldIndex(name)).asPrimitiveType) => name
    })
    val blocks = footer.getBlocks.asScala
    // By index, not by a map a row group: files with many columns and few requested ones are common.
    val wanted = columns.map(_.toSeq).toSet
    val chunks = blocks.map(_.getColumns.asScala.filter(c => wanted(c.getPath.toArray.toSeq))
      .map(c => c.getPath.toArray.toSeq -> c).toMap)
    Json.text { g =>
      g.writeStartObject()
      g.writeNumberField("o", ordinal)
      g.writeNumberField("rows", blocks.map(_.getRowCount).sum)
      g.writeStringField("created_by", footer.getFileMetaData.getCreatedBy)
      val meta = footer.getFileMetaData.getKeyValueMetaData
      Json.map(g, "meta", Keys.filter(meta.containsKey).map(k => k -> meta.get(k)))
      g.writeArrayFieldStart("columns")
      columns.foreach { column =>
        val text = try {
          absence(schema, column).getOrElse {
            statistics(chunks.map(_.apply(column.toSeq)).toSeq, blocks.map(_.getRowCount).toSeq, schema.getType(column: _*),
              if (column.length == 1) floating.get(column.head) else None)
          }
        } catch {
          case NonFatal(e) => absent(s"${e.getClass.getSimpleName}: ${e.getMessage}") // a column whose key is missing
        }
        g.writeRawValue(text)
      }
      g.writeEndArray()
      g.writeEndObject()
    }
  }

  private def absent(reason: String): String = Json.text { g =>
    g.writeStartObject()
    g.writeStringField("absent", reason)
    g.writeEndObject()
  }

  private def absence(schema: Type, column: Array[String]): Option[String] = {
    var node = schema
    column.foreach { name =>
      if (node.isPrimitive) return Some(absent("missing"))
      val group = node.asGroupType()
      // Two fields that differ in case only are one column to Spark, and an error.
      val similar = group.getFields.asScala.filter(_.getName.equalsIgnoreCase(name))
      if (!group.containsField(name)) return Some(absent(if (similar.isEmpty) "missing" else "case"))
      if (similar.size > 1) return Some(absent("case"))
      node = group.getType(name)
      if (node.isRepetition(REPEATED)) return Some(absent("repeated"))
    }
    if (node.isPrimitive) None else Some(absent("group"))
  }

  private def statistics(chunks: Seq[ColumnChunkMetaData], rows: Seq[Long], leaf: Type, read: Option[Seq[FloatingValues]]): String = Json.text { g =>
    val primitive = leaf.asPrimitiveType()
    g.writeStartObject()
    g.writeStringField("physical", primitive.getPrimitiveTypeName.name)
    if (primitive.getTypeLength > 0) g.writeNumberField("length", primitive.getTypeLength)
    g.writeStringField("logical", Option(primitive.getLogicalTypeAnnotation).map(_.toString).orNull)
    g.writeArrayFieldStart("groups")
    chunks.zip(rows).zipWithIndex.foreach { case ((chunk, count), i) =>
      g.writeStartObject()
      g.writeNumberField("rows", count)
      read.map(_(i)) match {
        case Some(values) =>
          g.writeNumberField("values", values.values)
          g.writeNumberField("nulls", values.nulls)
          g.writeNumberField("nans", values.nans)
          bounds(g, values.bounds)
        case None =>
          val stats = Option(chunk.getStatistics)
          g.writeNumberField("values", chunk.getValueCount)
          stats.filter(_.isNumNullsSet).fold(g.writeNullField("nulls"))(s => g.writeNumberField("nulls", s.getNumNulls))
          bounds(g, stats.filter(_.hasNonNullValue).map(s => (s.getMinBytes, s.getMaxBytes)))
      }
      g.writeEndObject()
    }
    g.writeEndArray()
    g.writeEndObject()
  }

  private def bounds(g: JsonGenerator, found: Option[(Array[Byte], Array[Byte])]): Unit =
    Seq("min" -> found.map(_._1), "max" -> found.map(_._2)).foreach { case (name, bytes) =>
      g.writeStringField(name, bytes.map(Base64.getEncoder.encodeToString).orNull)
    }
}
