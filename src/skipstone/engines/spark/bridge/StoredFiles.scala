package org.apache.spark.sql.skipstone

import java.io.{EOFException, FileNotFoundException}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileRange, FileSystem, FSDataInputStream, Path}
import org.apache.hadoop.util.functional.FutureIO

import org.apache.spark.sql.classic

/**
 * A metadata store's files on any Hadoop file system, for Python: one call each, bytes through a local file.
 *
 * Written for object stores, where each request takes milliseconds: nothing is asked that is known.
 */
private[skipstone] object StoredFiles {
  private val MostAtOnce = 32 << 20
  private val listed = new Lru[String, String](1024)

  /** List the files directly in a folder; a JSON line a file: n (name), l (length), m (milliseconds), e (e-tag or ""). */
  def list(session: classic.SparkSession, folder: String, localFile: String): Unit = {
    val place = new Path(folder)
    val system = place.getFileSystem(session.sessionState.newHadoopConf())
    // Listing a folder that is not there costs S3A three requests, asking whether it is there one.
    if (listed.get(folder).isEmpty && !isFolder(system, place)) throw new FileNotFoundException(s"$folder is not there")
    listed.put(folder, folder)
    val found = try system.listStatus(place) catch {
      case e: FileNotFoundException =>
        listed.remove(folder)
        throw e
    }
    val writer = Files.newBufferedWriter(Paths.get(localFile), UTF_8)
    try found.filter(_.isFile).foreach { status =>
      writer.write(Json.text { g =>
        g.writeStartObject()
        g.writeStringField("n", status.getPath.getName)
        g.writeNumberField("l", status.getLen)
        g.writeNumberField("m", status.getModificationTime)
        g.writeStringField("e", Listing.etag(status))
        g.writeEndObject()
      })
      writer.write('\n')
    } finally writer.close()
  }

  // Deprecated for hiding a request, and the only call that lets S3A look for a folder without looking for a file.
  @annotation.nowarn private def isFolder(system: FileSystem, place: Path): Boolean = system.isDirectory(place)

  /**
   * Copy ranges of a file ("offset:count,…") one behind the other to a local file.
   *
   * @param length the length of the whole file: where it is given, object stores need not be asked for it
   * @return the bytes found of each range, fewer where the file ends before
   */
  def read(session: classic.SparkSession, path: String, length: Long, ranges: String, localFile: String): String = {
    val source = new Path(path)
    val in = FutureIO.awaitFuture(source.getFileSystem(session.sessionState.newHadoopConf()).openFile(source)
      .opt("fs.option.openfile.length", length.toString)
      .opt("fs.option.openfile.read.policy", "random")
      .build())
    try {
      val out = Files.newOutputStream(Paths.get(localFile))
      val wanted = ranges.split(',').toSeq.map(_.split(':').map(_.toLong)).map { case Array(offset, count) => (offset, count) }
      try together(in, wanted).map { found =>
        found.foreach(out.write)
        found.map(_.length.toLong)
      }.getOrElse(wanted.map { case (offset, count) => copy(in, offset, count, out) }).mkString(",")
      finally out.close()
    } finally in.close()
  }

  /** Several ranges asked for at once, which object stores answer side by side; none when the file ends before. */
  private def together(in: FSDataInputStream, wanted: Seq[(Long, Long)]): Option[Seq[Array[Byte]]] =
    if (wanted.length < 2 || wanted.exists(_._2 == 0) || wanted.map(_._2).sum > MostAtOnce) None else {
      val asked = wanted.map { case (offset, count) => FileRange.createFileRange(offset, count.toInt) }
      try {
        in.readVectored(asked.asJava, (size: Int) => ByteBuffer.allocate(size))
        Some(asked.map { range =>
          val found = FutureIO.awaitFuture(range.getData)
          val bytes = new Array[Byte](found.remaining)
          found.get(bytes)
          bytes
        })
      } catch { case _: EOFException => None }
    }

  private def copy(in: FSDataInputStream, offset: Long, count: Long, out: java.io.OutputStream): Long = {
    // In pieces as large as possible: S3A makes a request of each.
    val buffer = new Array[Byte](math.min(count, MostAtOnce).toInt)
    var copied = 0L
    var n = 0
    while (n >= 0 && copied < count) {
      n = fill(in, offset + copied, buffer, math.min(buffer.length.toLong, count - copied).toInt)
      if (n > 0) {
        out.write(buffer, 0, n)
        copied += n
      }
    }
    copied
  }

  /** Read as many bytes as asked for, or as there are; -1 when there are none. */
  private def fill(in: FSDataInputStream, offset: Long, buffer: Array[Byte], count: Int): Int = {
    var filled = 0
    var n = 0
    while (n >= 0 && filled < count) {
      n = in.read(offset + filled, buffer, filled, count - filled)
      if (n > 0) filled += n
    }
    if (filled == 0) -1 else filled
  }
}
