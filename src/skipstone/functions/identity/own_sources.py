"""Skipstone's own Python files, as they are sent to workers; the same whether it runs from a folder or from a zip."""

from __future__ import annotations

import hashlib
import zipfile
from functools import cache
from pathlib import Path

__all__ = ["own_digest", "own_files", "own_sources"]

_NOT_SHIPPED = ("cli",)
_PACKAGE = Path(__file__).parents[2]


@cache
def own_sources() -> dict[str, bytes]:
    """Return the files by their paths, read once, so that what is sent to workers is what their digest is of."""
    archive = next((folder for folder in _PACKAGE.parents if zipfile.is_zipfile(folder)), None)
    if archive is None:
        root = _PACKAGE.parent
        return {Path(path).relative_to(root).as_posix(): Path(path).read_bytes() for path in own_files()}
    with zipfile.ZipFile(archive) as zipped:
        inside = f"{_PACKAGE.relative_to(archive).as_posix()}/"
        names = sorted(n for n in zipped.namelist() if n.startswith(inside) and n.endswith(".py"))
        found = {f"{_PACKAGE.name}/{n.removeprefix(inside)}": zipped.read(n) for n in names}
    return {name: content for name, content in found.items() if name.split("/")[1] not in _NOT_SHIPPED}


def own_files() -> list[str]:
    """Return the paths of the files; none when they are in a zip."""
    paths = sorted(_PACKAGE.rglob("*.py"))
    return [str(path) for path in paths if path.relative_to(_PACKAGE).parts[0] not in _NOT_SHIPPED]


@cache
def own_digest() -> str:
    """Digest the files with their paths."""
    digest = hashlib.sha256()
    for name, content in sorted(own_sources().items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
