"""The folders that this interpreter imports from: its own, those for installed packages, and when they changed."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import cache, lru_cache
from pathlib import Path

__all__ = [
    "IMPORTABLE",
    "Installation",
    "installation",
    "is_installers",
    "is_pythons_own",
    "module_named",
    "site_folders",
]

IMPORTABLE = (".py", ".pyc", ".so", ".pyd")
"""What the names of modules' files end with."""

Installation = tuple[tuple[str, int], ...]
"""What changes when something is installed."""


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
