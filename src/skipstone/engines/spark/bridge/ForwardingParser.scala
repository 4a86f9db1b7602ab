package org.apache.spark.sql.skipstone

import java.lang.reflect.{Method, Modifier}

import scala.util.control.NonFatal

import org.codehaus.janino.SimpleCompiler

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.parser.ParserInterface

/** What becomes of the calls of a [[ForwardingParser]]. */
trait ParserCalls {
  def call(method: Method, arguments: Array[AnyRef]): AnyRef
}

/**
 * A parser that passes every call on.
 *
 * Releases of Spark differ in the methods of a parser and in the classes these name, so that no class of ours can have
 * them all; and one of Java's dynamic proxies hides the errors of a parser that its methods do not declare. So the class is
 * made of the methods that are there, once, by the compiler with which Spark makes code of its queries.
 */
private[skipstone] object ForwardingParser extends Logging {
  private val Name = "SkipstoneForwardingParser"
  private lazy val methods = classOf[ParserInterface].getMethods.filterNot(m => Modifier.isStatic(m.getModifiers)).toIndexedSeq

  private lazy val made: Option[Class[_]] = try {
    val compiler = new SimpleCompiler()
    compiler.setParentClassLoader(getClass.getClassLoader)
    compiler.cook(source)
    Some(compiler.getClassLoader.loadClass(Name))
  } catch {
    case NonFatal(e) =>
      logWarning(s"Skipstone: SHOW INDEXES, REFRESH INDEXES and EXPLAIN SKIPPING are not understood here: $e")
      None
  }

  def to(calls: ParserCalls): Option[ParserInterface] = made.map(_.getConstructors.head
    .newInstance(methods.toArray, calls).asInstanceOf[ParserInterface])

  private def source: String = {
    val calls = classOf[ParserCalls].getCanonicalName
    val passed = methods.zipWithIndex.map { case (m, number) =>
      val types = m.getParameterTypes.map(_.getCanonicalName)
      val parameters = types.indices.map(i => s"${types(i)} a$i").mkString(", ")
      val given = types.indices.map(i => s"a$i").mkString(", ")
      s"""public ${m.getReturnType.getCanonicalName} ${m.getName}($parameters) {
         |  return (${m.getReturnType.getCanonicalName}) calls.call(methods[$number], new Object[] {$given});
         |}""".stripMargin
    }
    s"""public class $Name implements ${classOf[ParserInterface].getCanonicalName} {
       |private final java.lang.reflect.Method[] methods;
       |private final $calls calls;
       |public $Name(java.lang.reflect.Method[] methods, $calls calls) {
       |  this.methods = methods;
       |  this.calls = calls;
       |}
       |${passed.mkString("\n")}
       |}""".stripMargin
  }
}
