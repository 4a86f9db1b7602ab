"""The identity of a user's function: what tells it from others of its name, in this session and in later ones."""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.expressions.tree import Call, Expression
from skipstone.functions.identity.answer import Answer
from skipstone.functions.identity.package_versions import packages_here
from skipstone.functions.identity.pickled_names import packages_named
from skipstone.indexing.records import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from skipstone.functions.identity.answer import Workers

__all__ = ["VERSION_SETTING", "FunctionIdentities", "Known", "calls_of"]

VERSION_SETTING = "function."
"""``spark.skipstone.function.<name>`` has a stated version, after what it was stated of (``bound``)."""

_USERS = ("python", "java", "scala")
_SESSION_ONLY = "~"
_ENVIRONMENT = "/env:"
_INTERPRETER = re.compile(r"/exec:([0-9a-f]*)")
_TYPES = re.compile(r"/udt:([^/]*)")
_CARRIED = re.compile(r"/udt:[^/]*!")
_CHANGED_JAR = "!"
_UNTOLD = "?"
_NO_MODULE = (
    "the class of a type that it takes or gives travels with the data, and no module tells what it does: define the "
    "type in a module, or state the function's version with skipstone.state_version"
)
CHANGED_JAR = (
    "a jar changed after it was brought to this application, which may still run it as it was: restart the application"
)


@dataclass(frozen=True)
class Known:
    """A function's identity, ``None`` when it is not known, and why."""

    identity: str | None
    why: str = ""


class FunctionIdentities:
    """Knows the identity of functions: ``None`` for one that cannot be known again in another session.

    Parameters
    ----------
    settings
        The session's ``spark.skipstone.*`` settings, without that prefix.
    command
        Returns the pickled function of a Python function's raw id, or ``None``.
    workers
        Returns what Spark's workers run; without it the driver's view is all that counts.
    is_collected
        Whether the functions have run by now.  One that workers cannot import has no results: that is left to the job
        which calls it to say.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        command: Callable[[str], bytes | None],
        workers: Workers | None = None,
        *,
        is_collected: bool = True,
    ) -> None:
        self._settings = settings
        self._command = command
        self._workers = workers
        self._is_collected = is_collected

    def of(self, name: str, kind: str, raw: str) -> str | None:
        """Return a function's identity."""
        return self.known(name, kind, raw).identity

    def known(self, name: str, kind: str, raw: str) -> Known:
        """Return a function's identity, or why it has none."""
        if raw.startswith(_CHANGED_JAR):
            return Known(None, CHANGED_JAR)
        bound, _, version = self._settings.get(f"{VERSION_SETTING}{name.lower()}", "").partition(" ")
        if version and raw and bound == self.bound(kind, raw):
            problem = self._edited(kind, raw)
            return Known(None, problem) if problem else Known(f"version {version}")
        why = ""
        if version and raw and bound.rpartition("@")[0] == _TYPES.sub("", raw):
            why = (
                "modules that it refers to have changed since its version was stated; state it again if it still holds"
            )
        if not raw or raw.startswith(_SESSION_ONLY):
            return Known(None, why)
        return Known(f"{kind} {raw}", why) if kind != "python" else self._python(raw, why)

    def bound(self, kind: str, raw: str) -> str:
        """Return what a statement about a function is bound to: its raw id, and what its packages are for the driver.

        A statement is made before it is known which types the function will be called with.
        """
        raw = _TYPES.sub("", raw)
        packages = self._packages(raw) if kind == "python" else frozenset()
        versions = None if packages is None else packages_here(packages).versions
        if versions is None:
            return f"{raw}@{_UNTOLD}"
        return f"{raw}@{hashlib.sha256(' '.join(versions).encode()).hexdigest()[:16]}" if versions else raw

    def problem(self, kind: str, raw: str) -> str:
        """Return why a function may not be, for workers, what the driver takes it for; empty when it is."""
        if raw.startswith(_CHANGED_JAR):
            return CHANGED_JAR
        if kind != "python":
            return ""
        packages = self._packages(raw)
        return "its pickled form is not known" if packages is None else self._asked(raw, packages).problem

    def prepare(self, functions: Iterable[Mapping[str, Any]]) -> None:
        """Ask the workers about several functions at once."""
        named = {self._packages(f["id"]) for f in functions if f["k"] == "python" and f["id"]}
        if self._workers is not None:
            self._workers.prepare(packages for packages in named if packages is not None)

    def _python(self, raw: str, why: str) -> Known:
        """Name a Python function by its pickled bytes and by the versions of what they refer to."""
        if _CARRIED.search(raw):
            return Known(None, why or _NO_MODULE)
        packages = self._packages(raw)
        if packages is None:
            return Known(None, why)
        here = packages_here(packages)
        if here.versions is None:
            return Known(None, self._asked(raw, packages).problem or why)
        answer = self._asked(raw, packages)
        if answer.problem and (self._is_collected or not answer.missing):
            return Known(None, answer.problem)
        python = answer.python or platform.python_version()
        zone = [f"zone {answer.zone}"] if answer.zone else []
        return Known(" ".join([f"python {_INTERPRETER.sub('', raw)} {python}", *zone, *here.versions]), why)

    def _edited(self, kind: str, raw: str) -> str:
        """Return why workers may run a function with a stated version as it was before an edit; empty when not."""
        packages = self._packages(raw) if kind == "python" and self._workers is not None else None
        if packages is None or self._workers is None:
            return ""
        if not self._workers.changed_here(packages_here(packages).evidence):
            return ""
        answer = self._asked(raw, packages)
        return answer.problem if self._is_collected or not answer.missing else ""

    def _asked(self, raw: str, packages: frozenset[str]) -> Answer:
        """Ask the workers, if there are any."""
        if self._workers is None:
            return Answer()
        made_for = _INTERPRETER.search(raw)
        if made_for is not None and made_for[1] != self._workers.interpreter:
            return Answer(
                problem="it was made for another Python than SparkContext.pythonExec is now: register it again"
            )
        if raw.partition(_ENVIRONMENT)[2] != self._workers.environment:
            return Answer(
                problem="it was made for workers with other environment variables than SparkContext.environment has "
                "now: make and register it again"
            )
        return self._workers.of(packages)

    def _packages(self, raw: str) -> frozenset[str] | None:
        """Return the packages that a Python function refers to, and those of the types that it takes and gives.

        ``None`` when its pickled form is not known.
        """
        if raw not in _references:
            command = self._command(raw.removeprefix(_SESSION_ONLY))
            if command is None:
                return None
            types = {name.partition("#")[0].rstrip("!") for found in _TYPES.findall(raw) for name in found.split(",")}
            named = packages_named(command)
            sparks = {name for name in types if name.startswith(("pyspark.", "__main__."))}
            _references[raw] = None if named is None else named | (types - sparks)
        return _references[raw]

    def difference(self, recorded: Mapping[str, str], condition: Expression) -> str | None:
        """Return which function of a condition is not the recorded one of its name, or ``None`` when all are."""
        names = {name.lower(): identity for name, identity in recorded.items()}
        for call in calls_of(condition) if names else ():
            then = names.get(call.name.lower())
            known = None if then is None else self.known(call.name, call.kind, call.identity)
            if known is not None and known.identity != then:
                why = known.why or (
                    "it was registered anew or changed; make the index again, or state its version with "
                    "skipstone.state_version"
                )
                return (
                    f"{call.name} is not known to be the function whose results it holds ({shown(then or '')}): {why}"
                )
        return None


_references: dict[str, frozenset[str] | None] = {}


def calls_of(condition: Expression) -> Iterator[Call]:
    """Return the calls of users' functions in a condition."""
    return (vertex for vertex in condition.walk() if isinstance(vertex, Call) and vertex.kind in _USERS)
