"""The versions of the packages that a pickled Python function may refer to, directly or through others.

A function of an installed module is pickled as the module's name, so its bytes alone would survive any upgrade.
"""

from __future__ import annotations

import ast
import hashlib
import pickletools
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["package_versions", "packages_named"]

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOR_DEVELOPMENT = re.compile(r"""extra\s*==\s*["'](?:all|benchmark|build|complete|dev|doc|lint|test|typ)""")
_UNVERSIONED = frozenset({*sys.stdlib_module_names, "builtins", "pyspark", "py4j", "__main__"})
_MOST_SOURCES = 2_000


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
    return frozenset(packages)


def _installation() -> tuple[tuple[str, int], ...]:
    """Give what changes when something is installed: the folders that modules come from, and when they changed."""
    folders = [Path(folder) for folder in sys.path]
    return tuple((str(folder), folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())


@lru_cache(maxsize=4)
def _distributions(installation: tuple[tuple[str, int], ...]) -> Mapping[str, list[str]]:  # noqa: ARG001  (the key)
    """Map top-level packages to the distributions that installed them."""
    return packages_distributions()


def package_versions(names: Iterable[str]) -> list[str] | None:
    """Give the versions of top-level packages and of all that these need; ``None`` when one has none."""
    versions: set[str] = set()
    installation = _installation()
    waiting, seen = list(names), set(_UNVERSIONED)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        found = _installed(name, installation) or _uninstalled(name)
        if found is None:
            return None
        versions |= found.versions
        waiting += found.needs
    return sorted(versions)


@dataclass(frozen=True)
class _Package:
    """The versions that name a top-level package, and the packages that it imports; none for what is no package."""

    versions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def _installed(name: str, installation: tuple[tuple[str, int], ...]) -> _Package | None:
    """Look up a top-level package that a distribution brought; ``None`` when none did, or its sources may change."""
    try:
        found = [distribution(d) for d in _distributions(installation).get(name, ())]
        if not found or any('"editable": true' in (d.read_text("direct_url.json") or "") for d in found):
            return None
        if not any(_is_imported_from(name, d) for d in found):
            return None
        return _Package(frozenset(version for d in found for version in _required(d)))
    except PackageNotFoundError:
        return None


def _is_imported_from(name: str, installed: Distribution) -> bool:
    """Say whether it is a distribution's package that is imported by a name, not another that hides it."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    places = [*(spec.submodule_search_locations or ()), spec.origin] if spec is not None else []
    root = Path(str(installed.locate_file(""))).resolve()
    return any(place is not None and Path(place).resolve().is_relative_to(root) for place in places)


def _uninstalled(name: str) -> _Package | None:
    """Look up a top-level package by its sources; ``None`` when nothing tells two states of it apart."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return _Package()
    if spec is None:
        return _Package()
    folders = list(spec.submodule_search_locations or ())
    files = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    if not folders:
        files = [Path(spec.origin)] if spec.origin and Path(spec.origin).is_file() else []
    if not files or len(files) > _MOST_SOURCES:
        return None
    return _sources(name, tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files))


def _required(root: Distribution) -> set[str]:
    """Give the versions of a distribution and of the installed ones that it requires, for extras as well."""
    found: dict[str, str] = {}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.name.lower() in found:
            continue
        found[one.name.lower()] = f"{one.name}=={one.version}"
        for requirement in one.requires or ():
            named = _REQUIREMENT.match(requirement)
            try:
                if named is not None and not _FOR_DEVELOPMENT.search(requirement):
                    waiting.append(distribution(named[0]))
            except PackageNotFoundError:
                continue  # an extra that is not installed
    return set(found.values())


@lru_cache(maxsize=1024)
def _sources(name: str, files: tuple[tuple[str, int, int], ...]) -> _Package:
    """Digest the sources of a package that has no version of its own, and find what they import.

    Sources may change while a session runs, and a worker imports them as they are then: the time and size of each file
    are part of the question.
    """
    digest = hashlib.sha256()
    needs: set[str] = set()
    for path, _, _ in files:
        source = Path(path).read_bytes()
        digest.update(source)
        needs |= _imported(source)
    return _Package(frozenset({f"{name}=={digest.hexdigest()[:16]}"}), tuple(needs))


def _imported(source: bytes) -> set[str]:
    """Name the top-level packages that a module imports, wherever in it; none for what is no Python."""
    try:
        vertices = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = [alias.name for vertex in vertices if isinstance(vertex, ast.Import) for alias in vertex.names]
    names += [vertex.module or "" for vertex in vertices if isinstance(vertex, ast.ImportFrom) and not vertex.level]
    return {name.partition(".")[0] for name in names if name}
