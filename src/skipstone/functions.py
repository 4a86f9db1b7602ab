"""Users' functions: what tells two of one name apart, across sessions, so that an index never trusts the wrong one.

An index that holds a function's results records the function's *identity*: the version that its author stated, or else
the function's bytes together with the versions of the libraries that they name.  A query is served only by an index
whose functions are, in that query, the recorded ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from skipstone.errors import IndexingError
from skipstone.expressions.tree import Call, Expression
from skipstone.package_versions import package_versions, packages_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    Declared: TypeAlias = tuple[str, ...] | Mapping[str, str] | None

__all__ = [
    "FunctionIdentities",
    "calls_of",
    "function_command",
    "raw_identity",
    "recorded_functions",
    "session_identities",
    "shown",
    "state_version",
    "why_unidentified",
]

VERSION_SETTING = "function."
"""``spark.skipstone.function.<name>`` has a stated version, after the raw id of the function that it was stated of."""

_USERS = ("python", "java", "scala")
_MOST_SHOWN = 100
_SESSION_ONLY = "~"


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
        msg = (
            f"{name} is a function of the catalog, of which nothing tells when it is replaced: it cannot have a version"
        )
        raise IndexingError(msg)
    spark.conf.set(f"spark.skipstone.{VERSION_SETTING}{name.lower()}", f"{found['id']} {version}")


class FunctionIdentities:
    """Knows the identity of functions: ``None`` for one that cannot be known again in another session.

    Parameters
    ----------
    settings
        The session's ``spark.skipstone.*`` settings, without that prefix.
    command
        Gives the pickled function of a Python function's raw id, or ``None``.
    """

    def __init__(self, settings: Mapping[str, str], command: Callable[[str], bytes | None]) -> None:
        self._settings = settings
        self._command = command

    def of(self, name: str, kind: str, raw: str) -> str | None:
        """Give a function's identity."""
        bound, _, version = self._settings.get(f"{VERSION_SETTING}{name.lower()}", "").partition(" ")
        if version and raw and bound == raw:
            return f"version {version}"
        if not raw or raw.startswith(_SESSION_ONLY):
            return None
        if kind != "python":
            return f"{kind} {raw}"
        if raw not in _references:
            command = self._command(raw)
            if command is None:
                return None
            _references[raw] = packages_named(command)
        return _python_identity(raw, _references[raw])

    def difference(self, recorded: Mapping[str, str], condition: Expression) -> str | None:
        """Say which function of a condition is not the recorded one of its name, or ``None`` when all are."""
        names = {name.lower(): identity for name, identity in recorded.items()}
        for call in calls_of(condition) if names else ():
            then = names.get(call.name.lower())
            if then is not None and self.of(call.name, call.kind, call.identity) != then:
                return (
                    f"{call.name} is not known to be the function whose results it holds ({shown(then)}): it was "
                    "registered anew or changed; make the index again, or state its version with "
                    "skipstone.state_version"
                )
        return None


def shown(identity: str) -> str:
    """Cut a long identity for a sentence."""
    return identity if len(identity) <= _MOST_SHOWN else f"{identity[:_MOST_SHOWN]}…"


_references: dict[str, frozenset[str] | None] = {}


def calls_of(condition: Expression) -> Iterator[Call]:
    """Give the calls of users' functions in a condition."""
    waiting = [condition]
    while waiting:
        vertex = waiting.pop()
        if isinstance(vertex, Call) and vertex.kind in _USERS:
            yield vertex
        waiting.extend(vertex.children)


def session_identities(spark: SparkSession) -> FunctionIdentities:
    """Give the identities of functions as a session knows them."""
    prefix = "spark.skipstone."
    settings = {k.removeprefix(prefix): v for k, v in spark.conf.getAll.items() if k.startswith(prefix)}
    return FunctionIdentities(settings, lambda raw: function_command(spark, raw))


def function_command(spark: SparkSession, raw: str) -> bytes | None:
    """Ask the bridge for the pickled function of a raw id."""
    found = _bridge(spark).functionCommand(raw)
    return None if found is None else bytes(found)


def recorded_functions(
    spark: SparkSession, scan: Any, index_name: str, computed: Sequence[Sequence[str]], declared: Declared
) -> dict[str, str]:
    """Give the identities of the functions whose results an index will hold, by name.

    Those that it declares; where it declares nothing, those in what it has Spark compute (inputs and aggregates, apart)
    and whatever else the session has registered, so that a function registered anew under such a name is noticed.
    Identities that it declares itself stand.

    Raises
    ------
    IndexingError
        When one of them is not registered, not deterministic, or could not be known again, or Spark would compute with
        a function of the user's that is not declared.
    """
    called = [f for some in computed if some for f in json.loads(_bridge(spark).functionsIn(scan, list(some)))]
    if declared is not None:
        _refuse_undeclared(index_name, called, declared)
    if isinstance(declared, Mapping):
        return dict(declared)
    if declared == ():
        return {}
    identities = session_identities(spark)
    found = called if declared is None else []
    for name in declared or ():
        function = _registered(spark, name)
        if function is None:
            msg = f"{index_name} cannot be built: no function is registered as {name!r}; register it first"
            raise IndexingError(msg)
        found.append(function)
    recorded: dict[str, str] = {}
    for function in found:
        if not function["d"]:
            msg = f"{index_name} cannot be built: {function['n']} is not deterministic, so its results cannot be kept"
            raise IndexingError(msg)
        identity = identities.of(function["n"], function["k"], function["id"])
        if identity is None:
            msg = (
                f"{index_name} cannot be built: nothing tells {function['n']} from another function of that name in a "
                f"later session; state its version with skipstone.state_version(spark, {function['n']!r}, '1')"
            )
            raise IndexingError(msg)
        recorded[function["n"]] = identity
    if declared is None:
        for function in json.loads(_bridge(spark).functions(spark._jsparkSession)):
            identity = identities.of(function["n"], function["k"], function["id"])
            if identity is not None:
                recorded.setdefault(function["n"], identity)
    return recorded


def _refuse_undeclared(index_name: str, called: Sequence[Mapping[str, Any]], declared: Iterable[str]) -> None:
    """Raise when what an index has Spark compute calls a user's function unbeknown to it: one that hides Spark's."""
    known = {name.lower() for name in declared}
    hiding = sorted({function["n"] for function in called if function["n"].lower() not in known})
    if hiding:
        msg = (
            f"{index_name} cannot be built: {', '.join(hiding)} is a registered function here, where the index means "
            "the one of Spark's own or of the library that it is named after; register it under another name"
        )
        raise IndexingError(msg)


def raw_identity(spark: SparkSession, name: str) -> str | None:
    """Give what tells the function registered under a name from others within this application, or ``None``.

    Of a function of the catalog (Hive's) nothing does.
    """
    found = _registered(spark, name)
    return None if found is None or not found["id"] else str(found["id"])


def why_unidentified(spark: SparkSession, name: str) -> str:
    """Say why a name has no ``raw_identity``, and what to do first."""
    if not spark.catalog.functionExists(name):
        return f"no function is registered as {name!r}: register it first"
    return (
        f"{name!r} is not a Python, Java or Scala function of this session, and nothing would tell when another takes "
        "its name: register one under a name of its own first"
    )


def _registered(spark: SparkSession, name: str) -> dict[str, Any] | None:
    """Look a user's function up by its registered name."""
    text = _bridge(spark).function(spark._jsparkSession, name)
    return None if text is None else next(iter(json.loads(text)), None)


def _bridge(spark: SparkSession) -> Any:
    """Give the bridge's static methods."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.skipstone.Bridge


def _python_identity(raw: str, packages: frozenset[str] | None) -> str | None:
    """Name a Python function by its pickled bytes and by the versions of what they refer to."""
    versions = None if packages is None else package_versions(packages)
    if versions is None:
        return None
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return " ".join([f"python {raw} {python}", *versions])
