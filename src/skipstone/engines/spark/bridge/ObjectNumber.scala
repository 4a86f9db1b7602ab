package org.apache.spark.sql.skipstone

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, IntegerType}
import org.apache.spark.unsafe.types.UTF8String

/** The number of the object that a row was read from, by the object's name. */
private[skipstone] case class ObjectNumber(child: Expression, numbers: ObjectNumbers) extends UnaryExpression {
  override def dataType: DataType = IntegerType
  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = numbers.of(child.eval(input).asInstanceOf[UTF8String])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val name = child.genCode(ctx)
    val known = ctx.addReferenceObj("numbers", numbers, classOf[ObjectNumbers].getName)
    ev.copy(isNull = org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral,
      code = code"${name.code}\nint ${ev.value} = $known.of(${name.isNull} ? null : ${name.value});")
  }

  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

/** Objects by name. Rows of one object come in runs, which is one comparison a row. */
class ObjectNumbers(numbers: Map[String, Int]) extends Serializable {
  @transient private var last: ObjectNumbers.Run = _

  def of(name: UTF8String): Int = {
    val run = last
    if (run != null && run.name == name) run.number else {
      val number = numbers.getOrElse(String.valueOf(name), throw new IllegalStateException(s"rows of $name, which was not asked for"))
      last = new ObjectNumbers.Run(name.clone(), number)
      number
    }
  }
}

private object ObjectNumbers {
  private class Run(val name: UTF8String, val number: Int)
}
