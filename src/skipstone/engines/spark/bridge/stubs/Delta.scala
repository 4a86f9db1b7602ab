// What Skipstone calls of Delta, to compile against: these classes are not packed, Delta's own are used. DeltaFormat checks
// once that they have what is declared here.
package org.apache.spark.sql.delta {
  import org.apache.hadoop.fs.Path
  import org.apache.spark.sql.types.StructType

  class DeltaLog

  trait SnapshotDescriptor {
    def version: Long
  }

  trait DeltaColumnMappingMode {
    def name: String
  }

  class DeltaParquetFileFormat extends org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat {
    def columnMappingMode: DeltaColumnMappingMode = ???
    def referenceSchema: StructType = ???
  }

  class OptimisticTransaction

  object OptimisticTransaction {
    def getActive(): Option[OptimisticTransaction] = ???
  }
}

package org.apache.spark.sql.delta.actions {
  class AddFile {
    def path: String = ???
    def partitionValues: Map[String, String] = ???
    def size: Long = ???
    def modificationTime: Long = ???
  }
}

package org.apache.spark.sql.delta.files {
  import org.apache.hadoop.fs.Path
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow}
  import org.apache.spark.sql.delta.{DeltaLog, SnapshotDescriptor}
  import org.apache.spark.sql.delta.actions.AddFile
  import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusWithMetadata, PartitionDirectory}
  import org.apache.spark.sql.types.StructType

  abstract class TahoeFileIndex(val spark: SparkSession, val deltaLog: DeltaLog, val path: Path)
    extends FileIndex with SnapshotDescriptor {
    override def rootPaths: Seq[Path] = ???
    override def partitionSchema: StructType = ???
    override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = ???
    override def metadataOpsTimeNs: Option[Long] = ???
    def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile]
    def fileStatusWithMetadataFromAddFile(file: AddFile): FileStatusWithMetadata = ???
    def absolutePath(child: String): Path = ???
    def getPartitionValuesRow(partitionValues: Map[String, String]): GenericInternalRow = ???
  }

  abstract class TahoeFileIndexWithSnapshotDescriptor(
      spark: SparkSession, deltaLog: DeltaLog, path: Path, snapshot: SnapshotDescriptor) extends TahoeFileIndex(spark, deltaLog, path) {
    override def version: Long = ???
  }

  abstract class TahoeLogFileIndex(spark: SparkSession, deltaLog: DeltaLog, path: Path) extends TahoeFileIndex(spark, deltaLog, path) {
    def isTimeTravelQuery: Boolean = ???
    def partitionFilters: Seq[Expression] = ???
  }
}

package org.apache.spark.sql.delta.stats {
  import org.apache.hadoop.fs.Path
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.delta.{DeltaLog, SnapshotDescriptor}
  import org.apache.spark.sql.delta.actions.AddFile
  import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor

  class DataSize {
    def bytesCompressed: Option[Long] = ???
    def files: Option[Long] = ???
  }

  class DeltaScan {
    def files: Seq[AddFile] = ???
    def total: DataSize = ???
  }

  abstract class PreparedDeltaFileIndex(spark: SparkSession, deltaLog: DeltaLog, path: Path, snapshot: SnapshotDescriptor)
    extends TahoeFileIndexWithSnapshotDescriptor(spark, deltaLog, path, snapshot) {
    def preparedScan: DeltaScan = ???
  }
}
