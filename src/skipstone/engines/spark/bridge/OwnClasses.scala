package org.apache.spark.sql.skipstone

import java.net.URLClassLoader
import java.nio.file.Paths
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._

/**
 * Loads all of Skipstone's classes. The end of a JDBC session makes Hive close the loader of the application's jars, for
 * all sessions: from then on a Thrift server has only those classes of `spark.jars` that it had loaded. For the same reason
 * what jobs run are classes with names: Spark reads the byte code of closures from the jar before it sends them.
 */
private[skipstone] object OwnClasses {
  def load(): Unit = getClass.getClassLoader match {
    case loader: URLClassLoader if loader ne ClassLoader.getSystemClassLoader =>
      val jar = new JarFile(Paths.get(getClass.getProtectionDomain.getCodeSource.getLocation.toURI).toFile)
      try jar.entries.asScala.map(_.getName).filter(_.endsWith(".class")).foreach { name =>
        try Class.forName(name.stripSuffix(".class").replace('/', '.'), false, loader)
        catch { case _: LinkageError => } // it is a kind of a table format's own class, and the format is not there
      } finally jar.close()
    case _ => // on the class path
  }
}
