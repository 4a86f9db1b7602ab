package org.apache.spark.sql.skipstone

import java.nio.file.Paths
import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.classic

/**
 * Skipstone's own archive in sessions whose files Spark keeps apart from those of others, as a Connect server's are and,
 * unless a setting says otherwise, those of Scala programs: what was added to the application does not reach their jobs.
 */
private[skipstone] object SessionFiles {
  private val own = Collections.synchronizedMap(new WeakHashMap[classic.SparkSession, String])

  /** Let the Python workers of a session's jobs find an archive; where they do so anyway, nothing happens. */
  def add(session: classic.SparkSession, archive: String): Unit =
    if (session.artifactManager.state != null && !own.containsKey(session)) {
      val file = Paths.get(archive)
      val name = s"pyfiles/${file.getFileName}"
      session.artifactManager.addArtifact(Paths.get(name), file, None, deleteStagedFile = false)
      own.put(session, name)
    }

  /** A clone has the files of its session. */
  def cloned(session: classic.SparkSession, clone: classic.SparkSession): Unit =
    Option(own.get(session)).foreach(own.put(clone, _))

  /** Whether a file of a session is that archive: what a client brings is not, whatever its name. */
  def isOwn(session: classic.SparkSession, address: String): Boolean =
    Option(own.get(session)).exists(name => address.endsWith(s"/${session.sessionUUID}/$name"))
}
