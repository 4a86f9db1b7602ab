"""Spark Connect: how a session reaches its server, and the server's own session where that is in this process.

``.remote("local[*]")`` and ``spark.api.mode=connect`` start the server as a classic session in the same Python process.
A client's session then has a twin there: the session in which the server carries out what the client asks for.  What
needs the JVM works on the twin.  A server elsewhere has no twin here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from skipstone.errors import UnsupportedSparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "SERVER_NEEDS",
    "Api",
    "classic_frame",
    "classic_session",
    "find_twin",
    "is_connect",
    "local_options",
    "without_remote",
]

_CONNECT: Final = "pyspark.sql.connect."
_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"
_MOST_LEVELS: Final = 1024
"""How deep a plan may be: Spark's own bound, spark.connect.grpc.marshallerRecursionLimit."""

SERVER_NEEDS: Final = (
    "the server itself must be started with Skipstone: its jar, its extension and the companion, which "
    "'skipstone server-conf --for connect' prints"
)


class Api(Enum):
    """The ways in which a session reaches Spark."""

    CLASSIC = "a classic session"
    IN_PROCESS = "Spark Connect, whose server is started in this process"
    REMOTE = "Spark Connect, whose server is another process"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Api:
        """Return the way that pyspark will choose for a builder's options: ``SparkSession.Builder.getOrCreate``."""
        address = _address(options)
        if address is None:
            return cls.CLASSIC
        if "SPARK_LOCAL_REMOTE" in os.environ:
            return cls.IN_PROCESS
        reuse = options.get("spark.local.connect.reuse", os.environ.get("SPARK_LOCAL_CONNECT_REUSE", ""))
        if address.startswith("sc://") or (address.startswith("local") and str(reuse).lower() in {"1", "true"}):
            return cls.REMOTE
        return cls.IN_PROCESS


def _address(options: Mapping[str, Any]) -> str | None:
    """Return the server's address, or the master for one that is to be started here; ``None`` for a classic session."""
    from pyspark import util

    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    if mode not in {"classic", "connect"}:
        mode = str(getattr(util, "default_api_mode", lambda: "classic")()).lower()
    given = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if given is not None:
        return str(given)
    if mode == "connect":
        return str(options.get("spark.master", os.environ.get("MASTER", "local")))
    return "sc://" if "SPARK_CONNECT_MODE_ENABLED" in os.environ else None  # pyspark itself says what is missing


def local_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which pyspark starts a server in this process: those of a classic session."""
    kept = {key: value for key, value in options.items() if key not in {"spark.remote", "spark.api.mode"}}
    return {**kept, "spark.master": _address(options)}


@contextmanager
def without_remote() -> Iterator[None]:
    """Hide ``SPARK_REMOTE`` from a JVM that is started inside, as pyspark does: it is to be the server."""
    remote = os.environ.pop("SPARK_REMOTE", None)
    try:
        yield
    finally:
        if remote is not None:
            os.environ["SPARK_REMOTE"] = remote


def is_connect(what: object) -> bool:
    """Whether something is a session or a DataFrame of Spark Connect."""
    return type(what).__module__.startswith(_CONNECT)


_twins: WeakKeyDictionary[Any, SparkSession] = WeakKeyDictionary()


def find_twin(spark: SparkSession) -> SparkSession | None:
    """Return the server's own session of a Connect client; ``None`` when its server is another process."""
    known = _twins.get(spark)
    if known is not None and known.sparkContext._jsc is not None:
        return known
    holder = _holder(spark)
    if holder is None:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    assert context is not None  # noqa: S101  (the holder is in its JVM)
    twin = _twins[spark] = SparkSession(context, holder.session())
    return twin


def classic_session(spark: SparkSession) -> SparkSession:
    """Return the session in which the JVM of this process carries out what a session asks for: itself, or its twin.

    Raises
    ------
    UnsupportedSparkError
        If it is the client of a Connect server in another process.
    """
    if not is_connect(spark):
        return spark
    twin = find_twin(spark)
    if twin is None:
        msg = f"this is not possible from a client of a remote Spark Connect server; {SERVER_NEEDS}"
        raise UnsupportedSparkError(msg)
    return twin


def classic_frame(df: DataFrame) -> DataFrame:
    """Return the same query as a DataFrame of the classic session: itself, or what the server makes of its plan.

    Raises
    ------
    UnsupportedSparkError
        If it is a query of a client of a Connect server in another process.
    """
    if not is_connect(df):
        return df
    from pyspark.sql import DataFrame

    client: Any = df.sparkSession
    spark = classic_session(client)
    jvm: Any = spark._jvm
    asked = getattr(df, "_plan").to_proto(client.client).root.SerializeToString()  # noqa: B009
    stream = jvm.org.sparkproject.connect.protobuf.CodedInputStream.newInstance(asked)
    stream.setRecursionLimit(_MOST_LEVELS)
    relation = jvm.org.apache.spark.connect.proto.Relation.parseFrom(stream)
    planner = jvm.org.apache.spark.sql.connect.planner.SparkConnectPlanner(_holder(client), jvm.scala.Option.empty())
    plan = planner.transformRelation(relation)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def _holder(spark: Any) -> Any:
    """Return what the server of this process keeps of a client's session, or ``None``."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None
    service = getattr(getattr(context._jvm, _SERVICE), "MODULE$")
    # A server has a session once it was asked something.
    if not service.started() or not spark.version:
        return None
    jvm: Any = context._jvm
    key = jvm.org.apache.spark.sql.connect.service.SessionKey(spark.client._user_id or "", spark.session_id)
    found = service.sessionManager().getIsolatedSessionIfPresent(key)
    return found.get() if found.isDefined() else None
