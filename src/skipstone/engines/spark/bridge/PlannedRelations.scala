package org.apache.spark.sql.skipstone

import java.lang.ref.{Reference, ReferenceQueue, WeakReference}
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.types._

/**
 * What the plan of a scan no longer tells when it runs: the schema before nested columns were pruned, the table, the entry of
 * its statistics, and the columns that indexes cover.
 */
private[skipstone] class PlannedRelation(
    val dataSchema: StructType, val table: Option[CatalogTable], val entry: Entry, covered: Set[String]) {
  /** Whether an index has to do with a column; an index may be on a field of it. */
  def covers(column: String): Boolean = {
    val name = column.toLowerCase(java.util.Locale.ROOT)
    covered(name) || covered.exists(c => c.startsWith(s"$name.") || c.startsWith("`"))
  }
}

/** The planned relations of scans, by what lists their objects: by identity, and for as long as that lives. */
private[skipstone] object PlannedRelations {
  private class Key(location: FileIndex, queue: ReferenceQueue[FileIndex]) extends WeakReference[FileIndex](location, queue) {
    private val hash = System.identityHashCode(location)
    override def hashCode(): Int = hash
    override def equals(other: Any): Boolean = other match {
      case that: Key => (this eq that) || { val l = get; l != null && (l eq that.get) }
      case _ => false
    }
  }
  private val gone = new ReferenceQueue[FileIndex]
  // No value may hold its key: a table, a schema and an entry do not.
  private val known = new ConcurrentHashMap[Key, PlannedRelation]()

  def add(location: FileIndex, relation: PlannedRelation): Unit = {
    Iterator.continually(gone.poll(): Reference[_]).takeWhile(_ != null).foreach(known.remove(_))
    known.put(new Key(location, gone), relation)
  }

  def of(location: FileIndex): Option[PlannedRelation] = Option(known.get(new Key(location, null)))

  /** Whether one schema is another of which columns and fields were left out. */
  def isPruned(part: DataType, whole: DataType): Boolean = (part, whole) match {
    case (p: StructType, w: StructType) => p.fields.forall(f => w.fields.exists(g => g.name == f.name && isPruned(f.dataType, g.dataType)))
    case (p: ArrayType, w: ArrayType) => isPruned(p.elementType, w.elementType)
    case (p: MapType, w: MapType) => isPruned(p.keyType, w.keyType) && isPruned(p.valueType, w.valueType)
    case _ => part == whole
  }
}
