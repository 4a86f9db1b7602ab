"""What one of Spark's workers says of the packages that it finds: their versions, and when their files changed."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.package_versions import Packages, packages_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Report", "newest_changes", "report_of", "zone"]


@dataclass(frozen=True)
class Report:
    """What one worker says of the packages that it was asked for.

    Attributes
    ----------
    executor, python, zone
        The executor that the worker belongs to, its version of Python, and the rules of its local time.
    now
        Its clock.
    path
        The folders that it imports from.
    packages
        What it finds, for each set of names.
    changes
        When the files that count as evidence changed last, by path.
    copies
        The same of files that Spark was given for workers, and copied: it does not change them.
    others
        Modules that the worker has imported from another place than they would be imported from now.
    """

    executor: str
    python: str
    zone: str
    now: int
    path: tuple[str, ...]
    packages: Mapping[frozenset[str], Packages]
    changes: Mapping[str, int]
    copies: Mapping[str, int]
    others: Mapping[str, str]


def report_of(sets: Iterable[frozenset[str]], *, copies_stay: bool) -> Report:
    """Report, in a worker, which packages are there.

    Parameters
    ----------
    sets
        The names of packages, a set for each function.
    copies_stay
        Whether Spark leaves the files that it was given for workers as they are.
    """
    from pyspark import SparkFiles

    found = {names: packages_here(names) for names in sets}
    places = dict(place for packages in found.values() for place in packages.places)
    root = SparkFiles.getRootDirectory()
    copies = {place for name, place in places.items() if copies_stay and _is_sparks_copy(name, place, root)}
    evidence = {path for packages in found.values() for path in packages.evidence}
    return Report(
        executor=os.environ.get("SPARK_LOCAL_DIRS", ""),
        python=platform.python_version(),
        zone=zone(),
        now=time.time_ns(),
        path=tuple(sys.path),
        packages=found,
        changes=newest_changes(evidence - copies),
        copies=newest_changes(evidence & copies),
        others={name: there for name, place in places.items() if (there := _imported_from(name, place)) is not None},
    )


def _is_sparks_copy(name: str, place: str, root: str) -> bool:
    """Whether a module is the copy that Spark made of an added file, and workers can never have had another."""
    if not place or Path(place).parent.resolve() != Path(root).resolve():
        return False
    inside = f"{Path(root).resolve()}{os.sep}"
    rest = [folder for folder in sys.path if not f"{Path(folder).resolve()}{os.sep}".startswith(inside)]
    return PathFinder.find_spec(name, rest) is None


def _imported_from(name: str, place: str) -> str | None:
    """Return where a module was imported from, if that is not where it would be imported from now."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or spec.origin is None or spec.origin == place:
        return None
    return str(spec.origin)


def newest_changes(paths: Iterable[str]) -> dict[str, int]:
    """Return when files changed last, in nanoseconds, by any sign: contents, name, a link or folder on the way."""
    folders: dict[str, int] = {}
    return {path: max(_changed(path), _way_changed(Path(path), folders)) for path in paths}


def _changed(path: str) -> int:
    """Return the newest time of a file; one that is gone changes now."""
    try:
        found = os.stat(path)  # noqa: PTH116  (a string will do, and there are many)
    except OSError:
        return time.time_ns()
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _way_changed(path: Path, known: dict[str, int]) -> int:
    """Return when a link on the way to a file was made, or a folder on that way was renamed.

    A folder that got its name later than its last entry was renamed, or its owner or mode was changed; one that got an
    entry since does not tell.
    """
    newest = 0
    for step in (path, *path.parents):
        text = str(step)
        if text not in known:
            try:
                found = os.lstat(text)
            except OSError:
                known[text] = 0
                continue
            is_link = step.is_symlink()
            renamed = step != path and found.st_ctime_ns > found.st_mtime_ns
            known[text] = found.st_ctime_ns if is_link or renamed else 0
        newest = max(newest, known[text])
    return newest


@cache
def zone() -> str:
    """Name the local time of this process and digest its rules: what offset holds when, to the second, 1900 to 2100."""
    week, first, last = 7 * 86_400, -2_208_988_800, 4_102_444_800
    digest = hashlib.sha256()
    before, rule = first, _offset(first)
    for moment in range(first, last, week):
        if _offset(moment) == rule:
            before = moment
            continue
        after = moment
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if _offset(middle) == rule else (before, middle)
        before, rule = moment, _offset(moment)
        digest.update(f"{after} {rule}\n".encode())
    digest.update(repr(_offset(first)).encode())
    return f"{'/'.join(time.tzname)}:{digest.hexdigest()[:12]}"


def _offset(moment: int) -> tuple[int, str]:
    """Return the offset and name of local time at a moment."""
    then = time.localtime(moment)
    return then.tm_gmtoff, then.tm_zone
