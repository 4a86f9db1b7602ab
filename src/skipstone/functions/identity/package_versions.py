"""The versions of the packages that a pickled Python function may refer to, directly or through others.

A function of an installed module is pickled as the module's name, so its bytes alone would survive any upgrade.
``packages_here`` tells what these packages are in the process that calls it, the driver or one of Spark's workers.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.machinery import (
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    NamespaceLoader,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.distributions import installed
from skipstone.functions.identity.interpreter_folders import (
    Installation,
    installation,
    is_installers,
    is_pythons_own,
    module_named,
)
from skipstone.functions.identity.local_sources import is_data_in_zip, local_sources, one_look
from skipstone.functions.identity.own_sources import own_digest, own_files
from skipstone.functions.identity.pickled_names import SPARKS
from skipstone.functions.identity.source_imports import is_dynamic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from importlib.machinery import ModuleSpec

__all__ = [
    "OWN",
    "Packages",
    "find_module",
    "gathered_evidence",
    "package_versions",
    "packages_here",
    "where",
]

OWN = "skipstone"
"""This package: workers have it as the driver sent it, so what it is does not change while an application runs."""

_PYTHONS = sys.stdlib_module_names | {"test"}
# What the functions of this package compute with.  Of pandas and Arrow they use columns only, as they come from Spark;
# to go through all that these two need would take ten seconds in every process that registers one.
_OWN_NEEDS = ("numpy", "shapely", "xxhash")
_SEARCH_PATH = frozenset({"sys", "path"})
_UNTOLD = "nothing tells two states of the package {} apart"
_OF_FILES = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
_OF_PYTHON: tuple[object, ...] = (BuiltinImporter, FrozenImporter)
_EXTENDS_PATH = (b"__path__", b"declare_namespace")


@dataclass(frozen=True)
class Packages:
    """What some packages are, with all that they need, as one process finds them.

    Attributes
    ----------
    versions
        Their versions, sorted; ``None`` when one has none.
    unknown
        Which package has none, and why.
    evidence
        The files that change when a package does: sources of what was not installed, metadata of what was.
    places
        Where each top-level name is imported from, by name; empty for a name that is no module.
    """

    versions: tuple[str, ...] | None
    unknown: str = ""
    evidence: frozenset[str] = frozenset()
    places: tuple[tuple[str, str], ...] = ()


@contextmanager
def gathered_evidence() -> Iterator[set[str]]:
    """Collect the files by which packages were known in a block: where one changes, what was found does not hold.

    Within the block the same names are looked up once: a planning asks for the packages of a function many times, and
    to look at all sources of a large local package takes milliseconds.  What changes between the first look and the end
    of the block is noticed as before, by those who compare the files' own times (``WorkerPackages``) and by whoever
    gets the evidence.
    """
    moment = _Moment()
    token = _moment.set(moment)
    try:
        with one_look():
            yield moment.evidence
    finally:
        _moment.reset(token)


@dataclass
class _Moment:
    """What was looked up in a block: by which files, and what was found by the names that were asked for."""

    evidence: set[str] = field(default_factory=set)
    found: dict[frozenset[str], Packages] = field(default_factory=dict)


_moment: ContextVar[_Moment | None] = ContextVar("moment", default=None)


def package_versions(names: Iterable[str]) -> list[str] | None:
    """Return the versions of modules and of all that these need; ``None`` when one has none."""
    found = packages_here(names).versions
    return None if found is None else list(found)


def packages_here(names: Iterable[str]) -> Packages:
    """Return what modules and all that these need are in this process, and by which files that is known."""
    wanted = frozenset(names)
    moment = _moment.get()
    if moment is None:
        with one_look():
            return _looked_up(wanted)
    if wanted not in moment.found:
        found = moment.found[wanted] = _looked_up(wanted)
        moment.evidence |= found.evidence | _searched(tuple(sys.path), found.evidence)
    return moment.found[wanted]


def _looked_up(names: frozenset[str]) -> Packages:
    """Look packages up as they are now."""
    named = sorted(names)
    dynamic = next((name for name in named if is_dynamic(name)), None)
    if dynamic is None and set(named) >= _SEARCH_PATH:
        dynamic = "sys.path"
    if dynamic is not None:
        return Packages(None, f"nothing tells what the function runs: it uses {dynamic}")
    found: dict[str, _Package] = {}
    places: dict[str, str] = {}
    wanted: dict[str, set[str]] = {}
    when = installation()
    while named:
        tops: set[str] = set()
        for name in named:
            top = name.partition(".")[0]
            if top and top not in SPARKS and name not in wanted.setdefault(top, set()):
                wanted[top].add(name)
                tops.add(top)
        named = []
        for top in sorted(tops):
            if top in found and not found[top].depends:
                continue
            found[top] = _found(top, wanted[top], when, places)
            named += found[top].needs
            if found[top].unknown:
                named = []
                break
    evidence = frozenset(path for one in found.values() for path in one.evidence)
    why = next((f"{_UNTOLD.format(top)}: {one.unknown}" for top, one in found.items() if one.unknown), "")
    versions = sorted({version for one in found.values() for version in one.versions})
    return Packages(None if why else tuple(versions), why, evidence, tuple(sorted(places.items())))


def find_module(name: str) -> ModuleSpec | None:
    """Find what importing a top-level name for the first time would import now, whatever was imported before.

    The finder that ``setuptools`` puts first brings ``distutils`` and nothing else, but forgets modules and warns as
    it is asked for ``pip``: it is asked for what it brings.
    """
    for finder in sys.meta_path:
        if name != "distutils" and getattr(finder, "__module__", "") == "_distutils_hack":
            continue
        try:
            spec = finder.find_spec(name, None)
        except (ImportError, ValueError, AttributeError):
            continue
        if spec is not None:
            return spec
    return getattr(sys.modules.get(name), "__spec__", None)


def where(spec: ModuleSpec) -> str:
    """Return the file of a module, or the folders of a package that has none."""
    return spec.origin or ":".join(map(str, spec.submodule_search_locations or ()))


@dataclass(frozen=True)
class _Package:
    """The versions that name a package, the modules that it imports, its evidence; none for what is no package.

    ``depends`` says that this depends on which of its modules are wanted.
    """

    versions: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    evidence: frozenset[str] = frozenset()
    unknown: str = ""
    depends: bool = False


_NOTHING = _Package()


def _found(top: str, wanted: Collection[str], when: Installation, places: dict[str, str]) -> _Package:
    """Look up a top-level module, of which some names are wanted, and note its place."""
    spec = find_module(top)
    places[top] = "" if spec is None else where(spec)
    if spec is None:
        made = top in sys.modules  # by another module, as that one ran
        return _Package(unknown="a module made it, and no file tells what it is") if made else _NOTHING
    if top == OWN:
        return _own()
    plain = spec if _is_plain(spec) else _of_file(top, spec)
    if plain is None:
        return _Package(unknown="it is imported in a way of its own, not from a file")
    if plain.loader in _OF_PYTHON or _is_pythons(top, plain):
        return _NOTHING
    return _of_places(top, plain, wanted, when)


@lru_cache(maxsize=256)
def _searched(path: tuple[str, ...], evidence: frozenset[str]) -> frozenset[str]:
    """Return the folders and archives in which a module could appear, to be imported instead of the one that was found.

    These are the search path and the folders of local modules; not those that only installers write to, whose own
    files are evidence.
    """
    local = {os.path.dirname(file) for file in evidence if not is_installers(file)}  # noqa: PTH120  (many)
    return frozenset(local | {os.path.abspath(folder) for folder in path if not is_installers(folder)})  # noqa: PTH100


def _is_plain(spec: ModuleSpec) -> bool:
    """Whether Python itself imports a module, from a file or from folders."""
    if spec.loader in _OF_PYTHON or type(spec.loader) in _OF_FILES:
        return True
    return spec.origin is None and (spec.loader is None or type(spec.loader) is NamespaceLoader)


def _of_file(top: str, spec: ModuleSpec) -> ModuleSpec | None:
    """Return what Python itself would import in the place of what another finds; ``None`` when that is something else.

    Whoever else imports a file that Python would import is taken to leave its meaning as it is, and so is a library
    that brings a newer state of a module of Python's own.
    """
    plain = PathFinder.find_spec(top)
    if plain is None or not _is_plain(plain) or plain.origin is None:
        return None
    is_same = plain.origin == spec.origin or (top in _PYTHONS and is_pythons_own(plain.origin))
    return plain if is_same else None


def _of_places(top: str, spec: ModuleSpec, wanted: Collection[str], when: Installation) -> _Package:
    """Return what a module is: by the distributions that vouch for it, and by its sources where none does."""
    folders = _once(map(str, spec.submodule_search_locations or ()))
    origin = str(spec.origin) if spec.origin else None
    vouched = installed(top, (origin,) if origin else tuple(folders), when)
    if vouched is None:
        found = local_sources(top, folders or [origin or ""], wanted, is_namespace=origin is None)
        digest = frozenset({found.digest} if found.digest else ())
        return _Package(digest, tuple(found.needs), found.evidence, found.unknown, depends=True)
    if vouched.unknown:
        return _Package(unknown=f"it requires {vouched.unknown}, whose modules are not known")
    evidence = vouched.evidence | ({origin} if origin and os.path.isfile(origin) else set())  # noqa: PTH113  (many)
    if origin is not None and _extends_path(origin):
        beside = [folder for entry in sys.path if os.path.isdir(folder := str(Path(entry, top)))]  # noqa: PTH112
        folders = _once((*folders, *beside))
    roots = {os.path.join(root, top) for root in vouched.roots if not vouched.unlisted(root, wanted)}  # noqa: PTH118
    portions = [None if os.path.realpath(folder) in roots else folder for folder in folders]
    needs = (*_there(vouched.needs, when), *_hidden(vouched.imports, when))
    if not any(portions):
        return _Package(vouched.versions, needs, evidence, depends=True)
    found = local_sources(top, portions, wanted, is_namespace=True)
    versions = vouched.versions | ({found.digest} if found.digest else set())
    return _Package(versions, (*needs, *found.needs), evidence | found.evidence, found.unknown, depends=True)


def _there(names: tuple[str, ...], when: Installation) -> tuple[str, ...]:
    """Return the names that are modules now, and not Python's own."""
    return _known_there(names, tuple(_modules_in(folder, changed) for folder, changed in when))


def _hidden(names: tuple[str, ...], when: Installation) -> tuple[str, ...]:
    """Return the names, of modules that distributions list, that are imported from elsewhere now, if only in part."""
    there = _there(names, when)
    tops = {name.partition(".")[0] for name in there}
    hidden = {top for top in tops if (spec := find_module(top)) is not None and not _is_vouched_for(top, spec, when)}
    return tuple(name for name in there if name.partition(".")[0] in hidden)


def _is_vouched_for(top: str, spec: ModuleSpec, when: Installation) -> bool:
    """Whether distributions list a module in each of the places that it is imported from.

    A folder of data in a zip is none: Spark's jars, which workers have on their path, bring a ``google`` of messages.
    """
    places = (str(spec.origin),) if spec.origin else tuple(map(str, spec.submodule_search_locations or ()))
    return all(installed(top, (place,), when) is not None or is_data_in_zip(place) for place in places)


@lru_cache(maxsize=256)
def _modules_in(folder: str, changed: int) -> tuple[str, int | frozenset[str]]:
    """Return what changes when a folder of the search path gets or loses a module: the names; for a zip, its time."""
    try:
        return folder, frozenset(name for entry in os.listdir(folder or ".") if (name := module_named(entry)))  # noqa: PTH208
    except OSError:
        return folder, changed


@lru_cache(maxsize=1024)
def _known_there(names: tuple[str, ...], path: tuple[tuple[str, int | frozenset[str]], ...]) -> tuple[str, ...]:  # noqa: ARG001  (what makes it another answer)
    """Look the names up, once for each state of the search path."""
    tops = {name.partition(".")[0] for name in names}
    specs = {top: spec for top in tops if (spec := find_module(top)) is not None}
    own = {top for top, spec in specs.items() if spec.loader in _OF_PYTHON or _is_pythons(top, spec)}
    return tuple(name for name in names if (top := name.partition(".")[0]) in specs and top not in own)


def _is_pythons(top: str, spec: ModuleSpec) -> bool:
    """Whether a module is one of Python's own, and still the one that came with it."""
    return top in _PYTHONS and bool(spec.origin) and is_pythons_own(str(spec.origin))


def _once(folders: Iterable[str]) -> list[str]:
    """Return folders in their order, each once: where one repeats, nothing new is found in it.

    A search path may have a folder twice, by two spellings even, and that of workers once.
    """
    found: dict[str, str] = {}
    for folder in folders:
        found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


@cache
def _extends_path(origin: str) -> bool:
    """Whether an installed package may look for its modules in other folders as well."""
    try:
        text = Path(origin).read_bytes() if origin.endswith("__init__.py") else b""
    except OSError:
        return True
    return any(mark in text for mark in _EXTENDS_PATH)


@cache
def _own() -> _Package:
    """Return what this package itself is: found once, since the driver sends it once, and workers keep that."""
    return _Package(frozenset({f"{OWN}=={own_digest()[:16]}"}), _OWN_NEEDS, frozenset(own_files()))
