"""The distributions that an installer put into this interpreter, and the modules that are theirs.

A version is believed only of a distribution in one of the interpreter's own folders for packages, and only of modules
that it lists: metadata that lies beside a source tree, or on another folder of the search path, says nothing of sources
that anyone may edit.
"""

from __future__ import annotations

import csv
import hashlib
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

from skipstone.functions.identity.import_cache import kept_imports
from skipstone.functions.identity.source_imports import imports_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "ANY",
    "IMPORTABLE",
    "Installation",
    "Installed",
    "installation",
    "installed",
    "is_installers",
    "is_pythons_own",
    "module_named",
]

ANY = ".*"
"""Ends the name of a package of which any module may be imported."""

IMPORTABLE = (".py", ".pyc", ".so", ".pyd")
"""What the names of modules' files end with."""

Installation = tuple[tuple[str, int], ...]
"""What changes when something is installed."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOR_DEVELOPMENT = re.compile(r"""extra\s*==\s*["'](?:benchmark|build|dev|doc|lint|test|typ)""")
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import\b|import[ \t]+(\w[^\n#;]*))"
    rb"""|(?:import_module|__import__)\(\s*["'](\w[\w.]*)["']""",
    re.MULTILINE,
)
_TESTS = frozenset({"tests", "test", "conftest.py"})
_CONTINUED = re.compile(rb"\\\r?\n")
_FEW_SOURCES = 50
_CONTENTS = "/"  # before the digest of what a distribution lists, in its version


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


def installation() -> Installation:
    """Return what changes when something is installed: the folders that modules come from, and when they changed."""
    found = []
    for folder in sys.path:
        try:
            found.append((folder, os.stat(folder or ".").st_mtime_ns))  # noqa: PTH116  (asked in every planning)
        except OSError:
            continue
    return tuple(found)


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
        versions=frozenset(f"{one.name}=={one.version}" for one in required),
        needs=tuple(sorted(needs - {name + ANY})),
        imports=tuple(sorted(imports)),
        evidence=frozenset(path for one in required for path in one.metadata),
        roots=tuple(sorted({one.root for one in own})),
        recorded=_all_recorded(own),
        unknown=next(iter(untold), ""),
    )


@lru_cache(maxsize=4096)
def is_pythons_own(place: str) -> bool:
    """Whether a file or folder is part of Python itself."""
    path = os.path.realpath(place)
    folders = [os.path.realpath(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib")]
    if any(path.startswith(f"{folder}{os.sep}") for folder in site_folders()):
        return False
    if {"site-packages", "dist-packages"} & set(Path(path).parts):
        return False
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return any(path.startswith(f"{folder}{os.sep}") for folder in folders) or zipped in Path(path).parts


@lru_cache(maxsize=4096)
def is_installers(place: str) -> bool:
    """Whether a file or folder is in one of the folders of Python's own or for installed packages, or is such a one."""
    path = os.path.realpath(place)
    inside = any(f"{path}{os.sep}".startswith(f"{folder}{os.sep}") for folder in site_folders())
    return inside or is_pythons_own(os.path.join(path, "any"))  # noqa: PTH118


@cache
def site_folders() -> tuple[str, ...]:
    """Return the folders that this interpreter has for installed packages."""
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in found if folder))


def module_named(entry: str) -> str | None:
    """Return the name of the module that an entry of a folder could be imported as; ``None`` when it is none."""
    if entry.endswith(IMPORTABLE):
        return entry.partition(".")[0] or None
    return None if "." in entry or entry == "__pycache__" else entry


@dataclass(frozen=True)
class _Facts:
    """What a distribution says of itself: its headers, its modules, its files (if it lists them), where it is."""

    name: str
    version: str
    requires: tuple[str, ...]
    modules: frozenset[str]
    recorded: frozenset[str] | None
    is_editable: bool
    root: str
    metadata: tuple[str, ...]


def _own_folders(when: Installation) -> Installation:
    """Return what of an installation is the interpreter's own, and changes with distributions only."""
    return tuple((folder, changed) for folder, changed in when if _real(folder) in site_folders())


@lru_cache(maxsize=1024)
def _real(folder: str) -> str:
    """Resolve the links on the way to a folder of the search path."""
    return os.path.realpath(folder)


@lru_cache(maxsize=4)
def _site(folders: Installation) -> tuple[Mapping[str, list[_Facts]], Mapping[str, _Facts]]:
    """Return the distributions in the interpreter's own folders, by their top-level modules and by their names."""
    by_module: dict[str, list[_Facts]] = {}
    by_name: dict[str, _Facts] = {}
    for one in map(_facts, distributions(path=[folder for folder, _ in folders])):
        by_name.setdefault(_normal(one.name), one)
        for module in one.modules:
            by_module.setdefault(module, []).append(one)
    return by_module, by_name


@lru_cache(maxsize=4096)
def _named(name: str, when: Installation) -> _Facts | None:
    """Find a distribution, an installed one first; ``None`` for an extra that is not installed."""
    try:
        return _site(_own_folders(when))[1].get(_normal(name)) or _facts(distribution(name))
    except PackageNotFoundError:
        return None


def _facts(one: Distribution) -> _Facts:
    """Read what a distribution says of itself."""
    headers = _headers(one)
    required = [value for header, value in headers if header == "requires-dist"] or one.read_text("requires.txt")
    requires = (one.requires or ()) if isinstance(required, str) else required or ()
    records = _records(one)
    recorded = None if records is None else frozenset(path for path, _ in records)
    root = os.path.realpath(str(one.locate_file("")))
    folder = Path(str(getattr(one, "_path", "")))
    return _Facts(
        name=dict(headers).get("name", folder.name),
        version=dict(headers).get("version", "") + _contents(records or ()),
        requires=_not_for_development(requires),
        modules=frozenset(_modules(root, recorded or (), one.read_text("top_level.txt") or "")),
        recorded=recorded,
        is_editable=_is_editable(one),
        root=root,
        metadata=tuple(str(folder / n) for n in ("METADATA", "PKG-INFO", "RECORD") if (folder / n).is_file()),
    )


def _headers(one: Distribution) -> list[tuple[str, str]]:
    """Read the headers of a distribution's metadata."""
    text = one.read_text("METADATA") or one.read_text("PKG-INFO") or one.read_text("") or ""
    head = text.replace("\r\n", "\n").partition("\n\n")[0].replace("\n ", " ").replace("\n\t", " ")
    parts = [line.partition(":") for line in head.splitlines()]
    return [(header.strip().lower(), value.strip()) for header, _, value in parts]


def _all_recorded(some: Iterable[_Facts]) -> frozenset[str] | None:
    """Return the files that distributions list; ``None`` when one of them has no list."""
    lists = [one.recorded for one in some]
    return None if None in lists else frozenset(path for files in lists for path in files or ())


def _lists(one: _Facts, name: str, places: Iterable[str]) -> bool:
    """Whether a distribution lists a module, as it is imported from these places, as its own."""
    inside = f"{one.root}{os.sep}"
    within = [real.removeprefix(inside) for p in places if (real := os.path.realpath(p)).startswith(inside)]
    if one.recorded is None:
        return any(Path(path).parts[0].partition(".")[0] == name for path in within)
    return any(path in one.recorded or any(r.startswith(f"{path}{os.sep}") for r in one.recorded) for path in within)


def _is_editable(one: Distribution) -> bool:
    """Whether a distribution stands for sources elsewhere."""
    try:
        return bool(json.loads(one.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return True


def _records(one: Distribution) -> list[tuple[str, str]] | None:
    """Return the files that a distribution lists, relative to its folder, with digests; ``None`` without a list."""
    text = one.read_text("RECORD")
    if text is None:
        return None
    return [(os.path.normpath(row[0]), row[1] if len(row) > 1 else "") for row in csv.reader(text.splitlines()) if row]


def _contents(records: Iterable[tuple[str, str]]) -> str:
    """Return a text that differs between two builds of one version, by the digests they list; empty without any."""
    rows = [f"{path} {digest}" for path, digest in records if digest and path.endswith((".py", ".so", ".pyd"))]
    return f"{_CONTENTS}{hashlib.sha256(chr(10).join(sorted(rows)).encode()).hexdigest()[:12]}" if rows else ""


def _modules(root: str, recorded: Iterable[str], declared: str) -> set[str]:
    """Name the top-level modules that a distribution brings, or stands for."""
    found = set(declared.split())
    for path in recorded:
        first, _, rest = path.partition(os.sep)
        if first.endswith(".pth") and not rest:
            found |= _brought_by(Path(root, first))
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


def _required(roots: Iterable[_Facts], when: Installation) -> list[_Facts]:
    """Return distributions and the installed ones that they require, for extras as well."""
    found: dict[str, _Facts] = {}
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if _normal(one.name) not in found:
            found[_normal(one.name)] = one
            named = [match[0] for requirement in one.requires if (match := _REQUIREMENT.match(requirement))]
            waiting += [other for name in named if (other := _named(name, when)) is not None]
    return list(found.values())


def _not_for_development(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return requirements without those for developing the package itself, even where an extra repeats them."""
    split: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for one in requirements:
        match = _REQUIREMENT.match(one)
        split[_FOR_DEVELOPMENT.search(one) is not None].append((_normal(match[0]) if match else "", one))
    for_it = {name for name, _ in split[True]}
    return tuple(one for name, one in split[False] if name not in for_it or "extra" not in one)


def _needs(
    own: Iterable[_Facts], required: Iterable[_Facts], by_module: Mapping[str, list[_Facts]]
) -> tuple[set[str], set[str]]:
    """Name what distributions need, and apart from it what else they import of others.

    They need any module of those that they require, and what they import besides.  A module that no installer brought
    counts always.  One of another distribution counts if the importing one requires nothing at all and is small: others
    try to import dozens of modules for the convenience of some users, and say so as requirements where it matters.
    """
    found = {module + ANY for one in required for module in one.modules}
    others: set[str] = set()
    for one in own:
        imported = _imported(one)
        says_nothing = not one.requires and len(_sources(one)) <= _FEW_SOURCES
        of_others = set() if says_nothing else {n for n in imported if n.partition(".")[0] in by_module}
        found |= imported - of_others
        others |= of_others
    known = {name.removesuffix(ANY) for name in found if name.endswith(ANY)}
    needs = {name for name in found if name.endswith(ANY) or name.partition(".")[0] not in known}
    return needs, {name for name in others if name.partition(".")[0] not in known}


@lru_cache(maxsize=1024)
def _imported(one: _Facts) -> frozenset[str]:
    """Name the modules that the sources of a distribution import."""
    has_digests = one.recorded is not None and _CONTENTS in one.version
    return kept_imports(f"{one.name}=={one.version}", lambda: _read_imports(one)) if has_digests else _read_imports(one)


def _read_imports(one: _Facts) -> frozenset[str]:
    """Read the sources of a distribution for what they import."""
    found: set[str] = set()
    sources = _sources(one)
    for path in sources:
        try:
            source = Path(one.root, path).read_bytes()
        except OSError:
            continue  # listed, and not there: nothing is imported from it
        if len(sources) <= _FEW_SOURCES:
            module = path.removesuffix(".py").removesuffix(f"{os.sep}__init__").replace(os.sep, ".")
            imports = imports_of(source, module, is_package=path.endswith("__init__.py"))
            found |= imports.names | imports.packages
            continue
        for whole, several, called in _IMPORT.findall(_CONTINUED.sub(b" ", source)):
            names = (
                [whole or called]
                if whole or called
                else [part.split()[0] for part in several.split(b",") if part.split()]
            )
            found |= {name.decode(errors="replace").strip(".()\\\r") for name in names}
    return frozenset(found - {""})


@lru_cache(maxsize=1024)
def _sources(one: _Facts) -> tuple[str, ...]:
    """Return the sources of a distribution without its own tests, which are not what a function runs."""
    files = _walked(one) if one.recorded is None else one.recorded
    return tuple(path for path in files if path.endswith(".py") and not _TESTS & set(Path(path).parts))


def _walked(one: _Facts) -> list[str]:
    """Return the files of the modules of a distribution that does not list them."""
    found = []
    for module in one.modules:
        place = Path(one.root, module)
        sources = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
        found += [str(path.relative_to(one.root)) for path in sources]
    return found


def _normal(name: str) -> str:
    """Write a distribution's name as all ways to write it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
