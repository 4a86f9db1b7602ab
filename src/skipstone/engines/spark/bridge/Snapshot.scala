package org.apache.spark.sql.skipstone

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Paths}

import org.apache.hadoop.fs.FileStatus

/**
 * The object table of one version of the metadata: which row describes which object, as it was when
 * indexed. 40 bytes a row and a hash table of ints: a million rows take 48 MB.
 */
private[skipstone] class Snapshot(val id: String, table: ByteBuffer) {
  val rows: Int = table.remaining() / Snapshot.Record
  private val fields = {
    val out = new Array[Long](rows * 5)
    table.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(out)
    out
  }
  private val mask = Integer.highestOneBit(math.max(4, rows + rows / 2)) * 2 - 1
  private val slots = new Array[Int](mask + 1) // row + 1; 0 is free
  (0 until rows).foreach { row =>
    val slot = find(fields(5 * row), fields(5 * row + 1))
    if (slots(slot) == 0) slots(slot) = row + 1
    else fields(5 * (slots(slot) - 1) + 2) = -1 // twice: no length equals -1, so it is stale for ever
  }

  private def find(a: Long, b: Long): Int = {
    var slot = (a ^ (a >>> 32)).toInt & mask
    while (slots(slot) != 0 && (fields(5 * (slots(slot) - 1)) != a || fields(5 * (slots(slot) - 1) + 1) != b)) {
      slot = (slot + 1) & mask
    }
    slot
  }

  /** The row that describes the object as it is now, or [[Snapshot.Unknown]] or [[Snapshot.Stale]]. */
  def row(a: Long, b: Long, status: FileStatus): Int = {
    val row = slots(find(a, b)) - 1
    if (row < 0) Snapshot.Unknown else {
      val etag = fields(5 * row + 4)
      val fresh = fields(5 * row + 2) == status.getLen && fields(5 * row + 3) == status.getModificationTime &&
        (etag == 0 || etag == Listing.etagHash(status))
      if (fresh) row else Snapshot.Stale
    }
  }
}

private[skipstone] object Snapshot {
  val Record = 40
  val Unknown: Int = -1
  val Stale: Int = -2

  private val cache = new Lru[String, Snapshot](8)

  def of(planner: Planner, id: String, rows: Int, timeout: Long): Snapshot = {
    val snapshot = cache.getOrElseUpdate(id) {
      val path = Paths.get(PlannerCalls.within(timeout)(planner.objects(id)))
      try {
        val bytes = Files.readAllBytes(path)
        if (bytes.length != rows.toLong * Record) {
          throw new IllegalStateException(s"object table of $id has ${bytes.length} bytes for $rows rows")
        }
        new Snapshot(id, ByteBuffer.wrap(bytes))
      } finally Files.deleteIfExists(path)
    }
    if (snapshot.rows != rows) throw new IllegalStateException(s"snapshot $id had ${snapshot.rows} rows, now $rows")
    snapshot
  }
}
