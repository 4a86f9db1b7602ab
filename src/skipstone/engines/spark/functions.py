"""Users' functions: what tells two of one name apart, across sessions, so that an index never trusts the wrong one.

An index that holds a function's results records the function's *identity*: the version that its author stated, or else
the function's bytes together with the versions of the libraries that they name, as Spark's workers have them.  A query
is served only by an index whose functions are, in that query, the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skipstone.engines.spark.client import Client
from skipstone.engines.spark.connect import classic_session
from skipstone.engines.spark.worker_packages import WorkerPackages
from skipstone.errors import IndexingError
from skipstone.functions.identity.identities import VERSION_SETTING, FunctionIdentities, calls_of
from skipstone.settings import read_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from skipstone.engines.spark.client import Scan

    Declared: TypeAlias = tuple[str, ...] | Mapping[str, str] | None

__all__ = [
    "FunctionIdentities",
    "Promise",
    "calls_of",
    "function_command",
    "promise_of",
    "query_identities",
    "raw_identity",
    "recorded_functions",
    "session_identities",
    "state_version",
    "why_unidentified",
]

_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_PATIENCE_OF_JOBS = 600.0
_PATIENCE_OF_QUERIES = 15.0


def state_version(spark: SparkSession, name: str, version: str) -> None:
    """State the version of the function that is registered under a name *now*.

    Indexes that hold the function's results then know it again by this version, in every session that states the same.
    Registering another function under the name takes the statement back.

    Parameters
    ----------
    spark
        The session.
    name
        The registered name.
    version
        Whatever its author changes when the function's results change.

    Raises
    ------
    IndexingError
        When no function of the user's is registered under that name, or it is one of Hive's.

    Examples
    --------
    >>> spark.udf.register("agent_family", agent_family)  # doctest: +SKIP
    >>> skipstone.state_version(spark, "agent_family", "2")  # doctest: +SKIP
    """
    found = _registered(spark, name)
    if found is None:
        msg = f"no function is registered as {name!r}: register it first, then state its version"
        raise IndexingError(msg)
    if not found["id"]:
        msg = f"{name} is a function of the catalog, and nothing shows when that is replaced: it cannot have a version"
        raise IndexingError(msg)
    spark = classic_session(spark)
    bound = session_identities(spark).bound(found["k"], found["id"])
    spark.conf.set(f"spark.skipstone.{VERSION_SETTING}{name.lower()}", f"{bound} {version}")


def session_identities(
    spark: SparkSession, when: Literal["collecting", "collected"] | None = None
) -> FunctionIdentities:
    """Return the identities of functions as a session knows them; without ``when`` as the driver sees them."""
    prefix = "spark.skipstone."
    settings = {k.removeprefix(prefix): v for k, v in spark.conf.getAll.items() if k.startswith(prefix)}
    anew = when == "collected"  # what workers ran, not what they would have run before
    workers = WorkerPackages(spark.sparkContext, patience=_PATIENCE_OF_JOBS, anew=anew) if when else None
    return FunctionIdentities(
        settings, lambda raw: function_command(spark, raw), workers, is_collected=when != "collecting"
    )


def query_identities(spark: SparkSession, settings: Mapping[str, str]) -> FunctionIdentities:
    """Return the identities of functions to a query, which waits for the workers' answer for a limited time only."""
    try:
        patience = read_milliseconds(settings.get("plannerTimeoutMs", "")) / 2000
    except ValueError:  # none, or one that the bridge does not understand either
        patience = _PATIENCE_OF_QUERIES
    workers = WorkerPackages(spark.sparkContext, patience=patience)
    return FunctionIdentities(settings, lambda raw: function_command(spark, raw), workers)


@dataclass(frozen=True)
class Promise:
    """What someone says of a function, bound to the function as it was then: its bytes, and what these refer to."""

    spark: SparkSession
    name: str
    kind: str
    raw: str
    bound: str

    def difference(self, raw: str) -> str | None:
        """Return why the function with a raw id is not known to be the one that was meant; ``None`` when it is."""
        if raw != self.raw:
            return f"{self.name} was registered anew since"
        limit = self.spark.conf.get("spark.skipstone.plannerTimeoutMs", None)
        identities = query_identities(self.spark, {"plannerTimeoutMs": limit or ""})
        if identities.bound(self.kind, raw) != self.bound:
            return f"modules that {self.name} refers to have changed since"
        return identities.problem(self.kind, raw) or None


def promise_of(spark: SparkSession, name: str) -> Promise | None:
    """Bind what is said of a name to the function that is registered under it now; ``None`` as for ``raw_identity``."""
    spark = classic_session(spark)
    found = _registered(spark, name)
    if found is None or not found["id"]:
        return None
    kind, raw = str(found["k"]), str(found["id"])
    return Promise(spark, name, kind, raw, session_identities(spark).bound(kind, raw))


def function_command(spark: SparkSession, raw: str) -> bytes | None:
    """Ask the bridge for the pickled function of a raw id."""
    return Client(spark).function_command(raw)


def recorded_functions(
    scan: Scan,
    index_name: str,
    computed: Sequence[Sequence[str]],
    declared: Declared,
    when: Literal["collecting", "collected"],
) -> dict[str, str]:
    """Return the identities of the functions whose results an index will hold, by name.

    Those that it declares; where it declares nothing, those in what it has Spark compute (inputs and aggregates, apart)
    and whatever else the session has registered, so that a function registered anew under such a name is noticed.
    Identities that it declares itself stand.  Before the index is collected, one that workers lack is let pass: the job
    that calls it will fail, and says so.

    Raises
    ------
    IndexingError
        When one of them is not registered, not deterministic, or could not be known again, or Spark would compute with
        a function of the user's that is not declared.
    """
    client = scan.client
    spark = client.spark
    called = [f for some in computed if some for f in scan.functions_in(some)]
    if declared is not None:
        _refuse_undeclared(index_name, called, declared)
    if isinstance(declared, Mapping):
        return dict(declared)
    if declared == ():
        return {}
    if (called or declared) and str(spark.conf.get(_LARGE, "false")).lower() == "true":
        msg = (
            f"{index_name} cannot be built: with {_LARGE}=true functions get other types than index jobs give them; "
            "unset it"
        )
        raise IndexingError(msg)
    identities = session_identities(spark, when)
    found = called if declared is None else []
    calls = {f["n"].lower(): f for f in called}  # which know the types that a function is called with
    for name in declared or ():
        function = calls.get(name.lower()) or _registered(spark, name)
        if function is None:
            msg = f"{index_name} cannot be built: no function is registered as {name!r}; register it first"
            raise IndexingError(msg)
        found.append(function)
    others = client.functions() if declared is None else []
    identities.prepare([*found, *others])
    recorded: dict[str, str] = {}
    for function in found:
        recorded[function["n"]] = _identified(index_name, function, identities)
    for function in others:
        identity = identities.of(function["n"], function["k"], function["id"])
        if identity is not None:
            recorded.setdefault(function["n"], identity)
    return recorded


def _identified(index_name: str, function: Mapping[str, Any], identities: FunctionIdentities) -> str:
    """Return the identity of a function whose results an index will hold, or raise."""
    name = function["n"]
    if not function["d"]:
        msg = f"{index_name} cannot be built: {name} is not deterministic, so its results cannot be kept"
        raise IndexingError(msg)
    known = identities.known(name, function["k"], function["id"])
    if known.identity is None:
        why = known.why or f"state its version with skipstone.state_version(spark, {name!r}, '1')"
        msg = (
            f"{index_name} cannot be built: nothing tells {name} from another function of that name in a later "
            f"session; {why}"
        )
        raise IndexingError(msg)
    return known.identity


def _refuse_undeclared(index_name: str, called: Sequence[Mapping[str, Any]], declared: Iterable[str]) -> None:
    """Raise when the SQL of an index calls a user's function that it does not declare: one that hides Spark's."""
    known = {name.lower() for name in declared}
    hiding = sorted({function["n"] for function in called if function["n"].lower() not in known})
    if hiding:
        msg = (
            f"{index_name} cannot be built: {', '.join(hiding)} is a registered function here, where the index means "
            "the one of Spark's own or of the library that it is named after; register it under another name"
        )
        raise IndexingError(msg)


def raw_identity(spark: SparkSession, name: str) -> str | None:
    """Return what tells the function registered under a name from others within this application, or ``None``.

    Of a function of the catalog (Hive's) nothing does.
    """
    found = _registered(spark, name)
    return None if found is None or not found["id"] else str(found["id"])


def why_unidentified(spark: SparkSession, name: str) -> str:
    """Return why a name has no ``raw_identity``, and what to do first."""
    if not spark.catalog.functionExists(name):
        return f"no function is registered as {name!r}: register it first"
    return (
        f"{name!r} is not a Python, Java or Scala function of this session, and nothing would tell when another takes "
        "its name: register one under a name of its own first"
    )


def _registered(spark: SparkSession, name: str) -> dict[str, Any] | None:
    """Look a user's function up by its registered name."""
    return Client(spark).function(name)
