package org.apache.spark.sql.skipstone

import java.io.ByteArrayInputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.util.{Arrays, List => JList}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.{HadoopReadOptions, ParquetReadOptions}
import org.apache.parquet.crypto.DecryptionPropertiesFactory
import org.apache.parquet.format.{FileMetaData, Util}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetFileWriter}
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.{InputFile, SeekableInputStream}

/**
 * Opens Parquet files of whose footers no more is taken apart than what they say of some columns: to make objects of the
 * metadata of all columns is most of what reading the footer of a wide file costs.
 *
 * What is there is what Parquet's own reader would have: its own converter makes it of the same bytes, from which nothing but other
 * columns' chunks was taken away. The schema, the row groups and their rows, the writer and its notes are whole. A file that is not plain (it, a
 * column or the settings have to do with encryption, a chunk lies in another file, a row group has no columns), or with which
 * anything goes wrong, is opened by Parquet's own reader, and fails there or not.
 *
 * Not for several threads at once: readers give back their decompressors to the options that they share.
 */
private[skipstone] class FooterReader(columns: Seq[Seq[String]], conf: Configuration) {
  private val wanted: java.util.Set[JList[String]] = columns.map(_.asJava).toSet.asJava
  // With a factory of keys the options are the file's.
  private lazy val shared: Option[(ParquetReadOptions, ParquetMetadataConverter)] =
    if (conf.get(DecryptionPropertiesFactory.CRYPTO_FACTORY_CLASS_PROPERTY_NAME) != null) None else {
      val options = HadoopReadOptions.builder(conf).build()
      Some((options, new ParquetMetadataConverter(options)))
    }

  /** Use a file's footer and, if the values are needed, a reader of the file, which reads the wanted columns only. */
  def read[T](file: FileStatus)(use: (ParquetMetadata, () => ParquetFileReader) => T): T = {
    val input = HadoopInputFile.fromStatus(file, conf)
    shared.flatMap { case (options, converter) => plain(input, converter).map { case (footer, stream) => (options, footer, stream) } } match {
      case Some((options, footer, stream)) =>
        var opened: AutoCloseable = stream
        try use(footer, () => {
          val reader = FooterReader.over(input, footer, options, stream)
          opened = reader // which closes the stream
          reader
        }) finally opened.close()
      case None =>
        val reader = ParquetFileReader.open(input, HadoopReadOptions.builder(conf, file.getPath).build())
        try use(reader.getFooter, () => reader) finally reader.close()
    }
  }

  private def plain(input: HadoopInputFile, converter: ParquetMetadataConverter): Option[(ParquetMetadata, SeekableInputStream)] =
    try {
      val stream = input.newStream()
      val footer = try FooterReader.metadata(input.getLength, stream).filter(prune).map(converter.fromParquetMetadata)
      catch { case NonFatal(_) => None }
      if (footer.isEmpty) stream.close()
      footer.map(_ -> stream)
    } catch { case NonFatal(_) => None }

  /** Take away the chunks of other columns; false where the file is not plain. */
  private def prune(metadata: FileMetaData): Boolean = {
    val groups = if (metadata.getRow_groups == null) Nil else metadata.getRow_groups.asScala.toSeq
    !metadata.isSetEncryption_algorithm && groups.forall { group =>
      val chunks = group.getColumns
      val isPlain = !chunks.isEmpty && chunks.asScala.forall(c =>
        c.getMeta_data != null && c.getCrypto_metadata == null && c.getEncrypted_column_metadata == null && c.getFile_path == null)
      if (isPlain) {
        val first = chunks.get(0) // a row group without chunks is more than the converter takes
        chunks.removeIf(c => !wanted.contains(c.getMeta_data.getPath_in_schema))
        if (chunks.isEmpty) chunks.add(first)
      }
      isPlain
    }
  }
}

private object FooterReader {
  /** Most footers are shorter: then one request of a store gives all. */
  private val Tail = 32 << 10
  private val LengthAndMagic = 8

  /** What stands at the end of a file; none where that is not the footer of a file in the clear. */
  private def metadata(length: Long, stream: SeekableInputStream): Option[FileMetaData] = {
    val tail = bytes(stream, length, math.min(length, Tail.toLong).toInt)
    val end = tail.length - LengthAndMagic
    if (end < ParquetFileWriter.MAGIC.length || !Arrays.equals(Arrays.copyOfRange(tail, end + 4, tail.length), ParquetFileWriter.MAGIC)) None else {
      val size = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt(end)
      if (size <= 0 || size > length - LengthAndMagic - ParquetFileWriter.MAGIC.length) None
      else if (size <= end) Some(Util.readFileMetaData(new ByteArrayInputStream(tail, end - size, size)))
      else Some(Util.readFileMetaData(new ByteArrayInputStream(bytes(stream, length - LengthAndMagic, size))))
    }
  }

  private def bytes(stream: SeekableInputStream, end: Long, count: Int): Array[Byte] = {
    val found = new Array[Byte](count)
    stream.seek(end - count)
    stream.readFully(found)
    found
  }

  // Parquet has it since 1.16; before, a reader over a known footer asks the file system for the file's length once more.
  private val open = Try(classOf[ParquetFileReader].getMethod(
    "open", classOf[InputFile], classOf[ParquetMetadata], classOf[ParquetReadOptions], classOf[SeekableInputStream])).toOption

  @annotation.nowarn private def over(
      input: HadoopInputFile, footer: ParquetMetadata, options: ParquetReadOptions, stream: SeekableInputStream): ParquetFileReader =
    open.map(_.invoke(null, input, footer, options, stream).asInstanceOf[ParquetFileReader]).getOrElse(
      new ParquetFileReader(input.getConfiguration, input.getPath, footer, options, stream))
}
