package org.apache.spark.sql.skipstone

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32

import scala.jdk.CollectionConverters._

/**
 * The values that Iceberg gives the columns by which a file is partitioned: those that the table has for the file, whatever
 * the file holds. A file that is taken out of a table and added again may have others, so they are a part of its identity.
 */
private[skipstone] class IcebergPartitions(load: String => Class[_]) {
  private val specsOf = load("org.apache.iceberg.BaseTable").getMethod("specs")
  private val fieldsOf = load("org.apache.iceberg.PartitionSpec").getMethod("fields")
  private val transformOf = load("org.apache.iceberg.PartitionField").getMethod("transform")
  private val isIdentity = load("org.apache.iceberg.transforms.Transform").getMethod("isIdentity")
  private val specIdOf = load("org.apache.iceberg.ContentFile").getMethod("specId")
  private val partitionOf = load("org.apache.iceberg.ContentFile").getMethod("partition")
  private val valueOf = load("org.apache.iceberg.StructLike").getMethod("get", classOf[Int], classOf[Class[_]])

  /** What tells a table's files of other partition values apart; 0 where the files themselves hold all columns. */
  def marks(table: AnyRef): AnyRef => Long = {
    val given = specsOf.invoke(table).asInstanceOf[java.util.Map[Integer, AnyRef]].asScala.map { case (id, spec) =>
      val fields = fieldsOf.invoke(spec).asInstanceOf[java.util.List[AnyRef]].asScala
      id.intValue -> fields.indices.filter(i => isIdentity.invoke(transformOf.invoke(fields(i))) == true)
    }.toMap
    if (given.values.forall(_.isEmpty)) _ => 0L
    else file => {
      val places = given(specIdOf.invoke(file).asInstanceOf[Int])
      if (places.isEmpty) 0L else marked(places.map(i => valueOf.invoke(partitionOf.invoke(file), Int.box(i), classOf[Object])))
    }
  }

  private def marked(values: Seq[Any]): Long = {
    val sum = new CRC32
    values.foreach { value =>
      val bytes = value match {
        case null => Array.emptyByteArray
        case b: ByteBuffer => s"${b.hashCode}".getBytes(UTF_8)
        case other => s"=$other".getBytes(UTF_8)
      }
      sum.update(s"${bytes.length}:".getBytes(UTF_8))
      sum.update(bytes)
    }
    1L + sum.getValue
  }
}
