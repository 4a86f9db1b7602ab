"""What modules are that no installer brought: a digest of all their sources, and what these import.

Sources may change while a session runs, and a worker imports them as they are then: they are looked at whenever that
is asked.  All modules of a package count for the digest, whoever imports them.  Whether one imports what no source
tells is asked only of those that a function can reach from the names that it has.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.bytecode import hides_source, state_of
from skipstone.functions.identity.distributions import ANY
from skipstone.functions.identity.interpreter_folders import IMPORTABLE
from skipstone.functions.identity.source_imports import Imports, imports_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

__all__ = ["Local", "is_data_in_zip", "local_sources", "one_look"]

_MOST_SOURCES = 2_000
_MOST_ENTRIES = 5_000
_MOST_ENTRIES_OF_PACKAGE = 50_000
_NOTHING = "it has neither a version nor sources"

_File = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class Local:
    """What is known from local sources: a digest, what they import, the files; or why nothing is known.

    Without a digest and a reason there are none: a folder of data, which could be imported.
    """

    digest: str = ""
    needs: frozenset[str] = frozenset()
    evidence: frozenset[str] = frozenset()
    unknown: str = ""


def local_sources(name: str, places: Sequence[str | None], wanted: Collection[str], *, is_namespace: bool) -> Local:
    """Digest the sources of a top-level module, and find what they import.

    Parameters
    ----------
    name
        The module.
    places
        Its file, or its folders in the order that modules are looked for in them; ``None`` for one that a
        distribution vouches for.
    wanted
        The names by which it or modules in it are imported.
    is_namespace
        Whether it has no ``__init__``: any folder is such a package, one of data as well.
    """
    files: list[_File] = []
    for number, place in enumerate(places):
        if place is None:
            files.append((str(number), "", ()))
            continue
        found = _seen(place, _MOST_ENTRIES if is_namespace else _MOST_ENTRIES_OF_PACKAGE)
        if found is None:
            return Local(unknown=_NOTHING)
        start = f"{number}/{name}" if os.path.isdir(place) else f"{number}"  # noqa: PTH112
        files += [(f"{start}/{inside}", path, state) for inside, path, state in found]
    if not any(path for _, path, _ in files):
        return Local() if is_namespace else Local(unknown=_NOTHING)
    if len(files) > _MOST_SOURCES:
        return Local(unknown=f"it has more than {_MOST_SOURCES} sources and no version")
    read = _read(name, tuple(files))
    if isinstance(read, str):
        return Local(unknown=read)
    digest, modules = read
    reached = _reached(modules, wanted)
    for module in sorted(reached):
        if modules[module].computed:
            return Local(
                unknown=f"its module {module} {modules[module].computed}, so that no source tells what it runs"
            )
    needs = {one.partition(".")[0] for imports in modules.values() for one in (*imports.names, *imports.packages)}
    for module in reached:
        needs |= modules[module].names | {package + ANY for package in modules[module].packages}
    return Local(digest, frozenset(needs - {""}), frozenset(path for _, path, _ in files if path))


@contextmanager
def one_look() -> Iterator[None]:
    """Within the block, look at the files of a place once: functions of one package ask for it one after the other."""
    if _looks.get() is not None:
        yield
        return
    token = _looks.set({})
    try:
        yield
    finally:
        _looks.reset(token)


_looks: ContextVar[dict[tuple[str, int], tuple[_File, ...] | None] | None] = ContextVar("looks", default=None)


def _seen(place: str, most: int) -> tuple[_File, ...] | None:
    """Return the files that can be imported in a place, by their paths within it, in the state that they have."""
    looks = _looks.get()
    if looks is not None and (place, most) in looks:
        return looks[place, most]
    files = _files(place, most)
    root = Path(place)
    found = None if files is None else tuple((_inside(path, root), path, state_of(Path(path))) for path in files)
    if looks is not None:
        looks[place, most] = found
    return found


def _inside(path: str, root: Path) -> str:
    """Return the path of a file within a folder, or its name if it is the root itself."""
    return Path(path).relative_to(root).as_posix() if path != str(root) else root.name


def _files(place: str, most: int) -> list[str] | None:
    """Return the files that can be imported in a folder, or a file itself; ``None`` when that cannot be known."""
    if os.path.isfile(place):  # noqa: PTH113  (many)
        return [str(Path(place))]
    if not os.path.isdir(place):  # noqa: PTH112  (many)
        return [] if is_data_in_zip(place) else None
    found: list[str] = []
    count = 0
    for folder, inner, names in os.walk(place, followlinks=True):
        inner[:] = sorted(one for one in inner if "." not in one and one != "__pycache__")
        count += len(inner) + len(names)
        if count > most:
            return None
        found += [str(Path(folder, one)) for one in names if one.endswith(IMPORTABLE)]
    return sorted(found)


def is_data_in_zip(place: str) -> bool:
    """Whether a place is a folder in a zip that has nothing to import: Spark's own jars are on the path of workers."""
    archive = next((folder for folder in Path(place).parents if folder.is_file()), None)
    if archive is None:
        return False
    inside = f"{Path(place).relative_to(archive).as_posix()}/"
    names = _names_in_zip(str(archive), state_of(archive))
    return names is not None and not any(name.startswith(inside) and name.endswith(IMPORTABLE) for name in names)


@lru_cache(maxsize=64)
def _names_in_zip(archive: str, state: tuple[int, ...]) -> frozenset[str] | None:  # noqa: ARG001  (the state it is of)
    """Return the names in a zip; ``None`` for what is none."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            return frozenset(zipped.namelist())
    except (OSError, zipfile.BadZipFile):
        return None


@lru_cache(maxsize=1024)
def _read(name: str, files: tuple[_File, ...]) -> tuple[str, Mapping[str, Imports]] | str:
    """Digest files, and find what each module imports; return why where they do not show what would be run."""
    digest = hashlib.sha256()
    modules: dict[str, Imports] = {}
    for inside, path, _ in files:
        try:
            source = Path(path).read_bytes() if path else b""
        except OSError:
            return _NOTHING
        digest.update(f"{inside}\0{len(source)}\0".encode(errors="surrogateescape") + source)
        if not path:
            continue
        module = _module(inside)
        found = modules.setdefault(module, Imports())
        if not path.endswith(".py"):
            found.computed = found.computed or "is compiled"
            continue
        if hides_source(path, source):
            return f"byte code of another state hides {path}"
        new = imports_of(source, module, is_package=inside.endswith("/__init__.py"))
        found.names |= new.names
        found.packages |= new.packages
        found.computed = found.computed or new.computed
    return f"{name}=={digest.hexdigest()[:16]}", modules


def _module(inside: str) -> str:
    """Name the module of a file, by its path within the packages."""
    *folders, file = inside.split("/")[1:]
    stem = file.partition(".")[0]
    return ".".join(folders if stem == "__init__" and folders else [*folders, stem])


def _reached(modules: Mapping[str, Imports], wanted: Iterable[str]) -> set[str]:
    """Return the modules that are imported by names, and by those modules in their turn."""
    reached: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        parts = name.removesuffix(ANY).split(".")
        found = {".".join(parts[:length]) for length in range(1, len(parts) + 1)} & modules.keys()
        if name.endswith(ANY):
            within = f"{name.removesuffix(ANY)}."
            found |= {module for module in modules if module.startswith(within)}
        for module in found - reached:
            reached.add(module)
            waiting += modules[module].names
            waiting += [package + ANY for package in modules[module].packages]
    return reached
