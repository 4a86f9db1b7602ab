package org.apache.spark.sql.skipstone

import java.lang.ref.WeakReference
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.{Partition, SparkContext, SparkEnv}
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.util.RpcUtils

/**
 * Tells a task the objects that a scan left out, when it finds that it does not read as planned.
 *
 * Only the task knows the settings that it runs with: they are those of the query that it is part of, and an RDD of one
 * session's query may be part of another's. To send all objects along with every task would cost more than to be asked.
 */
private[skipstone] object Others {
  private case class Asked(rdd: Int)
  private val Name = "skipstone-others"
  private val known = new ConcurrentHashMap[Int, WeakReference[GuardedRDD[_]]]()
  @volatile private var serving = new WeakReference[RpcEnv](null)

  private class Endpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = { case Asked(rdd) =>
      val found = Option(known.get(rdd)).flatMap(r => Option(r.get))
      try context.reply(found.getOrElse(throw new IllegalStateException(s"no scan of files is RDD $rdd")).others)
      catch { case e: Exception => context.sendFailure(e) }
    }
  }

  /** Be ready for questions about a scan, for as long as it lives. */
  def serve(context: SparkContext, rdd: GuardedRDD[_]): Unit = {
    if (serving.get ne context.env.rpcEnv) synchronized {
      if (serving.get ne context.env.rpcEnv) {
        known.clear()
        context.env.rpcEnv.setupEndpoint(Name, new Endpoint(context.env.rpcEnv))
        serving = new WeakReference(context.env.rpcEnv)
      }
    }
    known.values.removeIf(_.get == null)
    known.put(rdd.id, new WeakReference(rdd))
  }

  /** The objects that a scan left out; a task asks. */
  def of(rdd: Int): Array[Partition] = {
    val env = SparkEnv.get
    RpcUtils.makeDriverRef(Name, env.conf, env.rpcEnv).askSync[Array[Partition]](Asked(rdd))
  }
}
