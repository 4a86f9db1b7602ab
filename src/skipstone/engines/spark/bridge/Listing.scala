package org.apache.spark.sql.skipstone

import java.io.FileNotFoundException
import java.lang.ref.{SoftReference, WeakReference}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.BitSet
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{EtagSource, FileStatus, Path}

import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources._

/** The objects of one listing of a file index, flat, with what was found out about them. */
private[skipstone] class Listing(val directories: Array[PartitionDirectory]) {
  val files: Array[FileStatusWithMetadata] = directories.flatMap(_.files)
  /** Where each directory's files begin, and where the last one's end. */
  val starts: Array[Int] = directories.scanLeft(0)(_ + _.files.size)
  // Queries go through these: a million statuses lie all over the heap, their lengths do not.
  val lengths: Array[Long] = files.map(_.getLen)
  val directoryBytes: Array[Long] = directories.map(_.files.foldLeft(0L)(_ + _.getLen))
  val bytes: Long = directoryBytes.sum

  def bytesOf(objects: BitSet): Long = objects.stream().mapToLong(lengths(_)).sum

  /** Two longs an object: the MD5 of its path, as the snapshots hold it. */
  lazy val hashes: Array[Long] = {
    val md5 = MessageDigest.getInstance("MD5")
    val out = new Array[Long](2 * files.length)
    var i = 0
    while (i < files.length) {
      val buffer = ByteBuffer.wrap(md5.digest(files(i).getPath.toString.getBytes(UTF_8))).order(ByteOrder.LITTLE_ENDIAN)
      out(2 * i) = buffer.getLong()
      out(2 * i + 1) = buffer.getLong()
      i += 1
    }
    out
  }

  /** What tells listings apart: the MD5 of all their objects' hashes, in order. */
  lazy val digest: Array[Byte] = {
    val buffer = ByteBuffer.allocate(8 * hashes.length)
    buffer.asLongBuffer().put(hashes)
    ExpressionJson.md5(buffer.array())
  }

  /** The files of metadata in it: a listing that shows hidden folders has them, and they are no data. */
  lazy val metadata: BitSet = {
    val out = new BitSet
    files.indices.foreach(i => if (files(i).getPath.toString.contains(Listing.MetadataFolder)) out.set(i))
    out
  }

  private val matches = new Lru[String, Array[Int]](8)

  /** For each object its row in the snapshot, or why there is none (see [[Snapshot]]). */
  def rowsIn(snapshot: Snapshot): Array[Int] = matches.getOrElseUpdate(snapshot.id) {
    Array.tabulate(files.length)(i =>
      if (metadata.get(i)) Snapshot.Unknown else snapshot.row(hashes(2 * i), hashes(2 * i + 1), files(i).fileStatus))
  }
}

private[skipstone] object Listing {
  private val MetadataFolder = "/_skipstone/"

  // Spark keeps what it listed in `leafFiles` and replaces it on refresh: its identity is the listing's version.
  // Protected in Scala, public in bytecode.
  private val leafFiles = Try(classOf[PartitioningAwareFileIndex].getMethod("leafFiles")).toOption

  private case class Entry(index: WeakReference[FileIndex], version: WeakReference[AnyRef], listing: SoftReference[Listing])
  private val cached = ArrayBuffer.empty[Entry]
  private val Capacity = 16

  /** What is replaced by another object whenever an index is refreshed; none of one that lists anew each time. */
  def version(index: FileIndex): Option[AnyRef] = index match {
    case p: PartitioningAwareFileIndex => leafFiles.flatMap(m => Try(m.invoke(p)).toOption).filter(_ != null)
    case _ => None
  }

  /** The listing of an index, listed at most once for each version of it. */
  def of(index: FileIndex): Listing = {
    val before = version(index)
    val known = before.flatMap(v => cached.synchronized {
      cached.filterInPlace(e => e.index.get != null && e.version.get != null && e.listing.get != null)
      cached.find(e => (e.index.get eq index) && (e.version.get eq v)).flatMap(e => Option(e.listing.get))
    })
    known.getOrElse {
      val listing = new Listing(index.listFiles(Nil, Nil).toArray)
      // A refresh in between would file the old listing under the new version.
      if (before.isDefined && version(index).exists(_ eq before.get)) cached.synchronized {
        if (cached.size >= Capacity) cached.remove(0)
        cached += Entry(new WeakReference(index), new WeakReference(before.get), new SoftReference(listing))
      }
      listing
    }
  }

  /**
   * The objects not kept that are not any more as they were listed: Spark keeps listings, of a catalog table until it is
   * refreshed, and reads files as they are. Lists their folders, not each of them.
   */
  def changed(listing: Listing, selected: Array[Boolean], keep: BitSet, fs: HadoopFsRelation): BitSet = {
    val hadoop = fs.sparkSession.asInstanceOf[classic.SparkSession].sessionState.newHadoopConfWithOptions(fs.options)
    val skipped = selected.indices.filter(selected(_)).flatMap(d => listing.starts(d) until listing.starts(d + 1)).filterNot(keep.get)
    val folders = skipped.groupBy(i => listing.files(i).getPath.getParent)
    val found = new ConcurrentHashMap[Path, FileStatus]()
    folders.keys.toArray.toSeq.asJava.parallelStream().forEach { folder =>
      try folder.getFileSystem(hadoop).listStatus(folder).foreach(s => found.put(s.getPath, s))
      catch { case _: FileNotFoundException => () } // what was in it is not found, and so not as it was
    }
    val out = new BitSet(listing.files.length)
    skipped.foreach { i =>
      val now = found.get(listing.files(i).getPath)
      if (now == null || !sameState(listing.files(i).fileStatus, now)) out.set(i)
    }
    out
  }

  /** Whether an object is as it was, as far as two listings tell. */
  def sameState(before: FileStatus, now: FileStatus): Boolean =
    now.getLen == before.getLen && now.getModificationTime == before.getModificationTime &&
      (etag(now).isEmpty || etag(before).isEmpty || etag(now) == etag(before))

  def etag(status: FileStatus): String = status match {
    case e: EtagSource => Option(e.getEtag).getOrElse("")
    case _ => ""
  }

  /** The first 8 bytes, little-endian, of the e-tag's MD5; 0 is kept for "none". */
  def etagHash(status: FileStatus): Long = {
    val tag = etag(status)
    if (tag.isEmpty) 0L else {
      val hash = ByteBuffer.wrap(ExpressionJson.md5(tag.getBytes(UTF_8))).order(ByteOrder.LITTLE_ENDIAN).getLong()
      if (hash == 0) 1L else hash
    }
  }
}

/** A small map that forgets what was used longest ago; computes outside its lock. */
private[skipstone] class Lru[K, V](capacity: Int) {
  private val entries = new java.util.LinkedHashMap[K, V](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[K, V]): Boolean = size > capacity
  }

  def getOrElseUpdate(key: K)(compute: => V): V = get(key).getOrElse {
    val value = compute
    put(key, value)
    value
  }

  def get(key: K): Option[V] = synchronized(Option(entries.get(key)))

  def put(key: K, value: V): Unit = synchronized(entries.put(key, value))

  def remove(key: K): Unit = synchronized(entries.remove(key))
}
