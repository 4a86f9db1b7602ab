"""The distributions that an installer put into this interpreter, and the modules that are theirs.

A version is believed only of a distribution in one of the interpreter's own folders for packages, and only of modules
that it lists: metadata that lies beside a source tree, or on another folder of the search path, says nothing of sources
that anyone may edit.
"""

from __future__ import annotations

import csv
import json
import os
import re
import site
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["IMPORTABLE", "Installation", "Installed", "installation", "installed", "is_pythons_own", "module_named"]

IMPORTABLE = (".py", ".pyc", ".so", ".pyd")
"""What the names of modules' files end with."""

Installation = tuple[tuple[str, int], ...]
"""What changes when something is installed."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOR_DEVELOPMENT = re.compile(r"""extra\s*==\s*["'](?:all|benchmark|build|complete|dev|doc|lint|test|typ)""")


@dataclass(frozen=True)
class Installed:
    """What distributions tell of a module of theirs.

    Attributes
    ----------
    versions
        Their names and versions, with those of what they require.
    needs
        The top-level modules of what they require, which others may hide.
    evidence
        The files that an installer writes anew with them.
    roots
        The folders that they are installed in.
    unknown
        A required distribution of which nothing tells what its modules are.
    """

    versions: frozenset[str]
    needs: tuple[str, ...]
    evidence: frozenset[str]
    roots: tuple[str, ...]
    unknown: str = ""


def installation() -> Installation:
    """Give what changes when something is installed: the folders that modules come from, and when they changed."""
    found = []
    for folder in sys.path:
        try:
            found.append((folder, os.stat(folder or ".").st_mtime_ns))  # noqa: PTH116  (asked in every planning)
        except OSError:
            continue
    return tuple(found)


@lru_cache(maxsize=4096)
def installed(name: str, places: tuple[str, ...], when: Installation) -> Installed | None:
    """Tell what is known of a top-level module by the distributions that brought it; ``None`` when none did.

    Parameters
    ----------
    name
        The module.
    places
        The file or the folders that it is imported from.
    when
        The installation.
    """
    own = [one for one in _by_module(when).get(name, ()) if not _is_editable(one) and _lists(one, name, places)]
    if not own:
        return None
    required = _required(own)
    needs: set[str] = set()
    unknown = ""
    for one in required:
        modules = _modules(one)
        if not modules and (_is_editable(one) or not _is_believed(one)):
            unknown = unknown or one.name
        needs |= modules
    return Installed(
        versions=frozenset(f"{one.name}=={one.version}" for one in required),
        needs=tuple(sorted(needs - {name})),
        evidence=frozenset(path for one in required for path in _metadata_files(one)),
        roots=tuple(sorted({_root(one) for one in own})),
        unknown=unknown,
    )


@lru_cache(maxsize=4096)
def is_pythons_own(place: str) -> bool:
    """Say whether a file or folder is part of Python itself."""
    path = os.path.realpath(place)
    folders = [os.path.realpath(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib")]
    if any(path.startswith(f"{folder}{os.sep}") for folder in site_folders()):
        return False
    if {"site-packages", "dist-packages"} & set(Path(path).parts):
        return False
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return any(path.startswith(f"{folder}{os.sep}") for folder in folders) or zipped in Path(path).parts


@cache
def site_folders() -> tuple[str, ...]:
    """Give the folders that this interpreter has for installed packages."""
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in found if folder))


def module_named(entry: str) -> str | None:
    """Give the name of the module that an entry of a folder could be imported as; ``None`` when it is none."""
    if entry.endswith(IMPORTABLE):
        return entry.partition(".")[0] or None
    return None if "." in entry or entry == "__pycache__" else entry


@lru_cache(maxsize=4)
def _by_module(when: Installation) -> Mapping[str, list[Distribution]]:
    """Map top-level modules to the distributions in the interpreter's own folders that list them."""
    folders = [folder for folder, _ in when if os.path.realpath(folder) in site_folders()]
    found: dict[str, list[Distribution]] = {}
    for one in distributions(path=folders):
        for name in _modules(one):
            found.setdefault(name, []).append(one)
    return found


def _lists(one: Distribution, name: str, places: Iterable[str]) -> bool:
    """Say whether a distribution lists a module, as it is imported from these places, as its own."""
    root = _root(one)
    within = [
        os.path.relpath(real, root) for p in places if (real := os.path.realpath(p)).startswith(f"{root}{os.sep}")
    ]
    recorded = _recorded(one)
    if recorded is None:
        return any(Path(path).parts[0].partition(".")[0] == name for path in within)
    return any(path in recorded or any(r.startswith(f"{path}{os.sep}") for r in recorded) for path in within)


def _root(one: Distribution) -> str:
    """Give the folder that a distribution is installed in."""
    return os.path.realpath(str(one.locate_file("")))


def _is_believed(one: Distribution) -> bool:
    """Say whether a distribution lies where only an installer puts it."""
    return _root(one) in site_folders()


def _is_editable(one: Distribution) -> bool:
    """Say whether a distribution stands for sources elsewhere."""
    try:
        return bool(json.loads(one.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return True


def _recorded(one: Distribution) -> frozenset[str] | None:
    """Give the files that a distribution lists, relative to its folder; ``None`` when it has no list."""
    text = one.read_text("RECORD")
    if text is None:
        return None
    return frozenset(os.path.normpath(row[0]) for row in csv.reader(text.splitlines()) if row)


def _modules(one: Distribution) -> set[str]:
    """Name the top-level modules that a distribution brings, or stands for."""
    found = set((one.read_text("top_level.txt") or "").split())
    for path in _recorded(one) or ():
        first, _, rest = path.partition(os.sep)
        if first.endswith(".pth") and not rest:
            found |= _brought_by(Path(_root(one), first))
        elif first != ".." and (name := module_named(first)) is not None and (rest or first.endswith(IMPORTABLE)):
            found.add(name)
    return found


def _brought_by(pth: Path) -> set[str]:
    """Name the modules in the folders that a file of paths adds."""
    try:
        folders = [Path(pth.parent, line.strip()) for line in pth.read_text().splitlines() if line.strip()]
        entries = [entry.name for folder in folders if folder.is_dir() for entry in folder.iterdir()]
    except (OSError, ValueError):
        return set()
    return {name for entry in entries if (name := module_named(entry)) is not None}


def _metadata_files(one: Distribution) -> list[str]:
    """Give the files that an installer writes anew with a distribution: what it is, and what belongs to it."""
    folder = Path(str(getattr(one, "_path", "")))
    return [str(folder / name) for name in ("METADATA", "PKG-INFO", "RECORD") if (folder / name).is_file()]


def _required(roots: Iterable[Distribution]) -> list[Distribution]:
    """Give distributions and the installed ones that they require, for extras as well."""
    found: dict[str, Distribution] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if one.name.lower() in found:
            continue
        found[one.name.lower()] = one
        for requirement in one.requires or ():
            named = _REQUIREMENT.match(requirement)
            if named is not None and not _FOR_DEVELOPMENT.search(requirement):
                waiting += _named(named[0])
    return list(found.values())


def _named(name: str) -> list[Distribution]:
    """Find a distribution, an installed one first; none for an extra that is not installed."""
    try:
        folders = [folder for folder in sys.path if os.path.realpath(folder) in site_folders()]
        return list(distributions(name=name, path=folders))[:1] or [distribution(name)]
    except PackageNotFoundError:
        return []
