package org.apache.spark.sql.skipstone

/**
 * Whether files would still be read as they were when a query was planned. A plan may run much later, and then it is the
 * settings of then that readers look at. What was decided when a query ran also rests on what was decided `before`.
 */
private[skipstone] class Still(
    described: Described, planned: Seq[Environment], groups: Set[String], before: Option[Still] = None) {
  private val stamps = planned.map(_.stamp(groups))
  @volatile private var unchanged: List[() => Boolean] = Nil

  def holds: Boolean =
    described.environments().map(_.stamp(groups)) == stamps && unchanged.forall(_()) && before.forall(_.holds)

  /** From now on something else must also be as it was: the objects that were not kept, modules of functions. */
  def verify(check: () => Boolean): Unit = unchanged ::= check

  /** The same of files of modules. */
  def verifyFiles(modules: Seq[String]): Unit = if (modules.nonEmpty) {
    val states = modules.map(Still.stateOf)
    verify(() => modules.map(Still.stateOf) == states)
  }

  def verifies: Boolean = unchanged.nonEmpty || before.exists(_.verifies)

  /** Whether the decision rests on what tasks look up even where columns are read: for expressions, or of the JVM. */
  val isLookedUp: Boolean = groups(Environment.Session) ||
    stamps.exists(_.values.flatten.exists(_._1.startsWith("JVM "))) || before.exists(_.isLookedUp)

  /** The settings that a task may look up. */
  lazy val lookedUp: LookedUp = LookedUp(described.reader, described.options, allGroups,
    planned.map(_.lookedUp(allGroups)).reduceOption(_ ++ _).getOrElse(Map.empty))

  private def allGroups: Set[String] = groups ++ before.map(_.allGroups).getOrElse(Set.empty)
}

/** Settings that tasks may look up, as they were when a query was planned, where they were not at their defaults. */
private[skipstone] case class LookedUp(
    format: String, options: Map[String, String], groups: Set[String], settings: Map[String, String]) {
  /** Whether the settings that a task sees are the same. */
  def isAsPlanned: Boolean = Environment.inTask(format, options).lookedUp(groups) == settings
}

private[skipstone] object Still {
  private val importable = Seq(".py", ".pyc", ".so", ".pyd")

  /** What changes when a file is written, appears or goes; of a folder, when something that Python imports does. */
  def stateOf(file: String): (Long, Long) = {
    val found = new java.io.File(file)
    Option(found.list) match {
      case Some(names) =>
        val modules = names.filter(name => !name.contains('.') || importable.exists(name.endsWith))
        (modules.map(_.hashCode.toLong * 0x9E3779B97F4A7C15L).sum, modules.length)
      case None => (found.lastModified, found.length)
    }
  }
}
