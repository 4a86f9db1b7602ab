"""The distributions that an installer put into this interpreter, and the modules that are theirs.

A version is believed only of a distribution in one of the interpreter's own folders for packages, and only of modules
that it lists: metadata that lies beside a source tree, or on another folder of the search path, says nothing of sources
that anyone may edit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.distribution_facts import REQUIREMENT, Facts, facts_of, normal
from skipstone.functions.identity.distribution_imports import imported, is_small
from skipstone.functions.identity.interpreter_folders import Installation, site_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ANY", "Installed", "installed"]

ANY = ".*"
"""Ends the name of a package of which any module may be imported."""


@dataclass(frozen=True)
class Installed:
    """What distributions say of a module of theirs.

    Attributes
    ----------
    versions
        Their names and versions, with those of what they require.
    needs
        The top-level modules of what they require, which others may hide, and the modules that their sources import
        without requiring them.
    imports
        The modules that their sources import and another distribution lists, which others may hide.
    evidence
        The files that an installer writes anew with them.
    roots
        The folders that they are installed in.
    recorded
        The files that they list; ``None`` when one of them has no list.
    unknown
        A required distribution whose modules are not known.
    """

    versions: frozenset[str]
    needs: tuple[str, ...]
    imports: tuple[str, ...]
    evidence: frozenset[str]
    roots: tuple[str, ...]
    recorded: frozenset[str] | None = None
    unknown: str = ""

    def unlisted(self, root: str, names: Iterable[str]) -> bool:
        """Whether one of some modules is there, and no distribution lists it: someone else put it there."""
        paths = [os.path.join(*name.split(".")) for name in names if "." in name.strip(".")]  # noqa: PTH118
        files = [path + end for path in paths for end in (".py", f"{os.sep}__init__.py")]
        unlisted = [path for path in files if self.recorded is not None and path not in self.recorded]
        return any(os.path.isfile(os.path.join(root, path)) for path in unlisted)  # noqa: PTH113, PTH118  (many)


@lru_cache(maxsize=4096)
def installed(name: str, places: tuple[str, ...], when: Installation) -> Installed | None:
    """Return what is known of a top-level module from the distributions that brought it; ``None`` when none did.

    Parameters
    ----------
    name
        The module.
    places
        The file or the folders that it is imported from.
    when
        The installation.
    """
    by_module = _site(_own_folders(when))[0]
    own = [one for one in by_module.get(name, ()) if not one.is_editable]
    if not any(_lists(one, name, places) for one in own):
        return None
    required = _required(own, when)
    untold = [one.name for one in required if not one.modules and (one.is_editable or one.root not in site_folders())]
    needs, imports = _needs(own, required, by_module)
    return Installed(
        versions=frozenset(one.release for one in required),
        needs=tuple(sorted(needs - {name + ANY})),
        imports=tuple(sorted(imports)),
        evidence=frozenset(path for one in required for path in one.metadata),
        roots=tuple(sorted({one.root for one in own})),
        recorded=_all_recorded(own),
        unknown=next(iter(untold), ""),
    )


def _own_folders(when: Installation) -> Installation:
    """Return what of an installation is the interpreter's own, and changes with distributions only."""
    return tuple((folder, changed) for folder, changed in when if _real(folder) in site_folders())


@lru_cache(maxsize=1024)
def _real(folder: str) -> str:
    """Resolve the links on the way to a folder of the search path."""
    return os.path.realpath(folder)


@lru_cache(maxsize=4)
def _site(folders: Installation) -> tuple[Mapping[str, list[Facts]], Mapping[str, Facts]]:
    """Return the distributions in the interpreter's own folders, by their top-level modules and by their names."""
    by_module: dict[str, list[Facts]] = {}
    by_name: dict[str, Facts] = {}
    for one in map(facts_of, distributions(path=[folder for folder, _ in folders])):
        by_name.setdefault(normal(one.name), one)
        for module in one.modules:
            by_module.setdefault(module, []).append(one)
    return by_module, by_name


@lru_cache(maxsize=4096)
def _named(name: str, when: Installation) -> Facts | None:
    """Find a distribution, an installed one first; ``None`` for an extra that is not installed."""
    try:
        return _site(_own_folders(when))[1].get(normal(name)) or facts_of(distribution(name))
    except PackageNotFoundError:
        return None


def _all_recorded(some: Iterable[Facts]) -> frozenset[str] | None:
    """Return the files that distributions list; ``None`` when one of them has no list."""
    lists = [one.recorded for one in some]
    return None if None in lists else frozenset(path for files in lists for path in files or ())


def _lists(one: Facts, name: str, places: Iterable[str]) -> bool:
    """Whether a distribution lists a module, as it is imported from these places, as its own."""
    inside = f"{one.root}{os.sep}"
    within = [real.removeprefix(inside) for p in places if (real := os.path.realpath(p)).startswith(inside)]
    if one.recorded is None:
        return any(Path(path).parts[0].partition(".")[0] == name for path in within)
    return any(path in one.recorded or any(r.startswith(f"{path}{os.sep}") for r in one.recorded) for path in within)


def _required(roots: Iterable[Facts], when: Installation) -> list[Facts]:
    """Return distributions and the installed ones that they require, for extras as well."""
    found: dict[str, Facts] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if normal(one.name) not in found:
            found[normal(one.name)] = one
            named = [match[0] for requirement in one.requires if (match := REQUIREMENT.match(requirement))]
            waiting += [other for name in named if (other := _named(name, when)) is not None]
    return list(found.values())


def _needs(
    own: Iterable[Facts], required: Iterable[Facts], by_module: Mapping[str, list[Facts]]
) -> tuple[set[str], set[str]]:
    """Name what distributions need, and apart from it what else they import of others.

    They need any module of those that they require, and what they import besides.  A module that no installer brought
    counts always.  One of another distribution counts if the importing one requires nothing at all and is small: others
    try to import dozens of modules for the convenience of some users, and say so as requirements where it matters.
    """
    found = {module + ANY for one in required for module in one.modules}
    others: set[str] = set()
    for one in own:
        names = imported(one)
        says_nothing = not one.requires and is_small(one)
        of_others = set() if says_nothing else {n for n in names if n.partition(".")[0] in by_module}
        found |= names - of_others
        others |= of_others
    known = {name.removesuffix(ANY) for name in found if name.endswith(ANY)}
    needs = {name for name in found if name.endswith(ANY) or name.partition(".")[0] not in known}
    return needs, {name for name in others if name.partition(".")[0] not in known}
