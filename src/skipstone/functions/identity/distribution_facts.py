"""What a distribution says of itself: its headers, the files that it lists, the modules that are its own."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.interpreter_folders import IMPORTABLE, module_named

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import Distribution

__all__ = ["REQUIREMENT", "Facts", "facts_of", "normal"]

REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_FOR_DEVELOPMENT = re.compile(r"""extra\s*==\s*["'](?:benchmark|build|dev|doc|lint|test|typ)""")

_CONTENTS = "/"  # before the digest of what a distribution lists, in its version


@dataclass(frozen=True)
class Facts:
    """What a distribution says of itself: its headers, its modules, its files (if it lists them), where it is."""

    name: str
    version: str
    requires: tuple[str, ...]
    modules: frozenset[str]
    recorded: frozenset[str] | None
    is_editable: bool
    root: str
    metadata: tuple[str, ...]

    @property
    def release(self) -> str:
        """Its name and version, with a digest of the digests that it lists."""
        return f"{self.name}=={self.version}"

    @property
    def has_digests(self) -> bool:
        """Whether its version tells two builds apart."""
        return self.recorded is not None and _CONTENTS in self.version


def facts_of(one: Distribution) -> Facts:
    """Read what a distribution says of itself."""
    headers = _headers(one)
    required = [value for header, value in headers if header == "requires-dist"] or one.read_text("requires.txt")
    requires = (one.requires or ()) if isinstance(required, str) else required or ()
    records = _records(one)
    recorded = None if records is None else frozenset(path for path, _ in records)
    root = os.path.realpath(str(one.locate_file("")))
    folder = Path(str(getattr(one, "_path", "")))
    return Facts(
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


def _not_for_development(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return requirements without those for developing the package itself, even where an extra repeats them."""
    split: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for one in requirements:
        match = REQUIREMENT.match(one)
        split[_FOR_DEVELOPMENT.search(one) is not None].append((normal(match[0]) if match else "", one))
    for_it = {name for name, _ in split[True]}
    return tuple(one for name, one in split[False] if name not in for_it or "extra" not in one)


def normal(name: str) -> str:
    """Write a distribution's name as all ways to write it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
