"""The versions of the packages that a pickled Python function may refer to, directly or through others.

A function of an installed module is pickled as the module's name, so its bytes alone would survive any upgrade.
``packages_here`` tells what these packages are in the process that calls it, the driver or one of Spark's workers.
"""

from __future__ import annotations

import ast
import hashlib
import pickletools
import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.bytecode import hides_source, state_of
from skipstone.own_sources import own_digest, own_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.machinery import ModuleSpec

__all__ = ["OWN", "Packages", "find_module", "package_versions", "packages_here", "packages_named", "where"]

OWN = "skipstone"
"""This package: workers have it as the driver sent it, so what it is does not change while an application runs."""

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOR_DEVELOPMENT = re.compile(r"""extra\s*==\s*["'](?:all|benchmark|build|complete|dev|doc|lint|test|typ)""")
_UNVERSIONED = frozenset({*sys.stdlib_module_names, "builtins", "pyspark", "py4j", "__main__"})
_OWN_NEEDS = ("numpy", "pandas", "pyarrow", "shapely", "xxhash")
_IMPORTABLE = (".py", ".pyc", ".so", ".pyd")
_MOST_SOURCES = 2_000
_MOST_ENTRIES = 5_000


@dataclass(frozen=True)
class Packages:
    """What some packages are, with all that they need, as one process finds them.

    Attributes
    ----------
    versions
        Their versions, sorted; ``None`` when one has none.
    unknown
        The package without a version.
    evidence
        The files that change when a package does: sources of what was not installed, metadata of what was.
    places
        Where each name is imported from, by name; empty for a name that is no module.
    """

    versions: tuple[str, ...] | None
    unknown: str = ""
    evidence: frozenset[str] = frozenset()
    places: tuple[tuple[str, str], ...] = ()


def packages_named(command: bytes) -> frozenset[str] | None:
    """Give the top-level packages that a pickled function may refer to; ``None`` for what is no pickle.

    Every text in the pickle that could name a package counts as a reference, and so does what such a package needs in
    its turn: one too many only makes the identity stricter.
    """
    packages: set[str] = set()
    try:
        for _, argument, _ in pickletools.genops(command):
            for text in argument.split(" ") if isinstance(argument, str) else ():
                if len(text) < 200 and _DOTTED.fullmatch(text):
                    packages.add(text.partition(".")[0])
    except (ValueError, IndexError):
        return None
    return frozenset(packages) - _UNVERSIONED


def package_versions(names: Iterable[str]) -> list[str] | None:
    """Give the versions of top-level packages and of all that these need; ``None`` when one has none."""
    found = packages_here(names).versions
    return None if found is None else list(found)


def packages_here(names: Iterable[str]) -> Packages:
    """Tell what top-level packages and all that these need are in this process, and by which files that is known."""
    versions: set[str] = set()
    evidence: set[str] = set()
    places: dict[str, str] = {}
    installation = _installation()
    waiting, seen = sorted(names), set(_UNVERSIONED)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = find_module(name)
        places[name] = "" if spec is None else where(spec)
        if spec is None:
            continue  # a word, and no package
        found = _own() if name == OWN else _installed(name, installation) or _uninstalled(name, spec)
        if found is None:
            return Packages(None, name, frozenset(evidence), tuple(sorted(places.items())))
        versions |= found.versions
        evidence |= found.evidence
        waiting += found.needs
    return Packages(tuple(sorted(versions)), "", frozenset(evidence), tuple(sorted(places.items())))


def find_module(name: str) -> ModuleSpec | None:
    """Find what importing a top-level name for the first time would import now, whatever was imported before."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, None)
        except (ImportError, ValueError, AttributeError):
            continue
        if spec is not None:
            return spec
    return getattr(sys.modules.get(name), "__spec__", None)


def where(spec: ModuleSpec) -> str:
    """Give the file of a module, or the folders of a package that has none."""
    return spec.origin or ":".join(map(str, spec.submodule_search_locations or ()))


def _installation() -> tuple[tuple[str, int], ...]:
    """Give what changes when something is installed: the folders that modules come from, and when they changed."""
    folders = [Path(folder) for folder in sys.path]
    return tuple((str(folder), folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())


@lru_cache(maxsize=4)
def _distributions(installation: tuple[tuple[str, int], ...]) -> Mapping[str, list[str]]:  # noqa: ARG001  (the key)
    """Map top-level packages to the distributions that installed them."""
    return packages_distributions()


@dataclass(frozen=True)
class _Package:
    """The versions that name a package, the packages that it imports, its evidence; none for what is no package."""

    versions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    evidence: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def _installed(name: str, installation: tuple[tuple[str, int], ...]) -> _Package | None:
    """Look up a top-level package that a distribution brought; ``None`` when none did, or its sources may change."""
    try:
        found = [distribution(d) for d in _distributions(installation).get(name, ())]
        if not found or any('"editable": true' in (d.read_text("direct_url.json") or "") for d in found):
            return None
        spec = find_module(name)
        if spec is None or not any(_is_imported_from(spec, d) for d in found):
            return None
        required = [one for d in found for one in _required(d)]
        evidence = {path for one in required for path in _metadata_files(one)}
        evidence |= {spec.origin} if spec.origin and Path(spec.origin).is_file() else set()
        return _Package(frozenset(f"{one.name}=={one.version}" for one in required), (), frozenset(evidence))
    except PackageNotFoundError:
        return None


def _is_imported_from(spec: ModuleSpec, installed: Distribution) -> bool:
    """Say whether it is a distribution's package that is imported by a name, not another that hides it."""
    places = [*(spec.submodule_search_locations or ()), spec.origin]
    root = Path(str(installed.locate_file(""))).resolve()
    return any(place is not None and Path(place).resolve().is_relative_to(root) for place in places)


def _metadata_files(installed: Distribution) -> list[str]:
    """Give the files that an installer writes anew with a distribution: what it is, and what belongs to it."""
    folder = Path(str(getattr(installed, "_path", "")))
    return [str(folder / name) for name in ("METADATA", "PKG-INFO", "RECORD") if (folder / name).is_file()]


def _uninstalled(name: str, spec: ModuleSpec) -> _Package | None:
    """Look up a top-level package by its sources; ``None`` when nothing tells two states of it apart."""
    folders = list(spec.submodule_search_locations or ())
    if spec.origin is None:  # any folder is such a package, one of data as well
        found = list(islice((p for f in folders for p in Path(f).rglob("*")), _MOST_ENTRIES + 1))
        if len(found) <= _MOST_ENTRIES and not any(path.suffix in _IMPORTABLE for path in found):
            return _Package()
        files = [path for path in found if path.suffix == ".py"] if len(found) <= _MOST_ENTRIES else []
    elif folders:
        files = [path for folder in folders for path in Path(folder).rglob("*.py")]
    else:
        files = [Path(spec.origin)] if Path(spec.origin).is_file() else []
    if not files or len(files) > _MOST_SOURCES:
        return None
    return _sources(name, tuple((str(path), state_of(path)) for path in sorted(files)))


def _required(root: Distribution) -> list[Distribution]:
    """Give a distribution and the installed ones that it requires, for extras as well."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.name.lower() in found:
            continue
        found[one.name.lower()] = one
        for requirement in one.requires or ():
            named = _REQUIREMENT.match(requirement)
            try:
                if named is not None and not _FOR_DEVELOPMENT.search(requirement):
                    waiting.append(distribution(named[0]))
            except PackageNotFoundError:
                continue  # an extra that is not installed
    return list(found.values())


@lru_cache(maxsize=1024)
def _sources(name: str, files: tuple[tuple[str, tuple[int, ...]], ...]) -> _Package | None:
    """Digest the sources of a package that has no version of its own, and find what they import.

    Sources may change while a session runs, and a worker imports them as they are then: the state of each file is
    part of the question.  There is no telling where byte code of another state would be run in a source's place.
    """
    digest = hashlib.sha256()
    needs: set[str] = set()
    for path, _ in files:
        source = Path(path).read_bytes()
        if hides_source(path, source):
            return None
        digest.update(source)
        needs |= _imported(source)
    version = f"{name}=={digest.hexdigest()[:16]}"
    return _Package(frozenset({version}), tuple(needs), frozenset(path for path, _ in files))


def _imported(source: bytes) -> set[str]:
    """Name the top-level packages that a module imports, wherever in it; none for what is no Python."""
    try:
        vertices = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = [alias.name for vertex in vertices if isinstance(vertex, ast.Import) for alias in vertex.names]
    names += [vertex.module or "" for vertex in vertices if isinstance(vertex, ast.ImportFrom) and not vertex.level]
    return {name.partition(".")[0] for name in names if name}


@cache
def _own() -> _Package:
    """Tell what this package itself is: once, for the driver sends it once, and workers keep what they were sent."""
    return _Package(frozenset({f"{OWN}=={own_digest()[:16]}"}), _OWN_NEEDS, frozenset(own_files()))
