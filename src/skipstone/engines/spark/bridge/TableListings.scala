package org.apache.spark.sql.skipstone

import java.lang.ref.SoftReference
import java.util.Arrays

import org.apache.hadoop.fs.Path

/**
 * The latest listings of tables. A format makes its files anew for every query; comparing their names with those of the last
 * one is less work than making paths and hashes of them, and what was matched to metadata is kept with a listing.
 */
private[skipstone] object TableListings {
  private class Known(
      val names: Array[String], val sizes: Array[Long], val times: Array[Long], val listing: Listing) {
    def isOf(n: Array[String], s: Array[Long], t: Array[Long]): Boolean =
      Arrays.equals(sizes, s) && Arrays.equals(times, t) && Arrays.equals(names.asInstanceOf[Array[AnyRef]], n.asInstanceOf[Array[AnyRef]])
  }
  private val known = new Lru[(String, Int), SoftReference[Known]](16)

  /** The listing of a table's files by the names, sizes and times (or 0) that it has for them; `path` makes a path of a name. */
  def of(root: Path, names: Array[String], sizes: Array[Long], times: Array[Long])(path: String => Path): Listing = {
    val key = (root.toString, Arrays.hashCode(names.asInstanceOf[Array[AnyRef]]) * 31 + Arrays.hashCode(sizes))
    known.get(key).flatMap(k => Option(k.get)).filter(_.isOf(names, sizes, times)).map(_.listing).getOrElse {
      val made = TableFile.listing(names.indices.map(i => TableFile.status(path(names(i)), sizes(i), times(i))))
      known.put(key, new SoftReference(new Known(names, sizes, times, made)))
      made
    }
  }
}
