"""What the sources of a distribution import."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.import_cache import kept_imports
from skipstone.functions.identity.source_imports import imports_of

if TYPE_CHECKING:
    from skipstone.functions.identity.distribution_facts import Facts

__all__ = ["imported", "is_small"]

_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import\b|import[ \t]+(\w[^\n#;]*))"
    rb"""|(?:import_module|__import__)\(\s*["'](\w[\w.]*)["']""",
    re.MULTILINE,
)

_TESTS = frozenset({"tests", "test", "conftest.py"})
_CONTINUED = re.compile(rb"\\\r?\n")
_FEW_SOURCES = 50


@lru_cache(maxsize=1024)
def imported(one: Facts) -> frozenset[str]:
    """Name the modules that the sources of a distribution import."""
    return kept_imports(one.release, lambda: _read_imports(one)) if one.has_digests else _read_imports(one)


def is_small(one: Facts) -> bool:
    """Whether a distribution has few sources."""
    return len(_sources(one)) <= _FEW_SOURCES


def _read_imports(one: Facts) -> frozenset[str]:
    """Read the sources of a distribution for what they import."""
    found: set[str] = set()
    few = is_small(one)
    for path in _sources(one):
        try:
            source = Path(one.root, path).read_bytes()
        except OSError:
            continue  # listed, and not there: nothing is imported from it
        if few:
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
def _sources(one: Facts) -> tuple[str, ...]:
    """Return the sources of a distribution without its own tests, which are not what a function runs."""
    files = _walked(one) if one.recorded is None else one.recorded
    return tuple(path for path in files if path.endswith(".py") and not _TESTS & set(Path(path).parts))


def _walked(one: Facts) -> list[str]:
    """Return the files of the modules of a distribution that does not list them."""
    found = []
    for module in one.modules:
        place = Path(one.root, module)
        sources = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
        found += [str(path.relative_to(one.root)) for path in sources]
    return found
