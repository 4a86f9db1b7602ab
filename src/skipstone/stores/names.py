"""Names that every store gives and checks: of datasets, of parts, and of whatever names a column."""

from __future__ import annotations

import re
import uuid

__all__ = ["is_part_name", "is_plain_name", "normal_root", "part_name"]

_FILE_SCHEME = re.compile(r"file:/+")
_PART = re.compile(r"_[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.part")
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,120}")


def normal_root(root: str) -> str:
    """Spell one folder in one way: ``file:///x/`` is ``file:/x``.

    >>> normal_root("file:///data/logs/"), normal_root("s3a://lake/logs/")
    ('file:/data/logs', 's3a://lake/logs')
    """
    spelled = _FILE_SCHEME.sub("file:/", root, count=1) if root.startswith("file:") else root
    return spelled.rstrip("/") or "/"


def part_name() -> str:
    """Make a name that no other part has."""
    return f"_{uuid.uuid4()}.part"


def is_part_name(name: object) -> bool:
    """Whether a name is a plain part name: no folder, no ``..``, nothing that leads elsewhere."""
    return isinstance(name, str) and _PART.fullmatch(name) is not None


def is_plain_name(name: object) -> bool:
    """Whether an index id or field name can name a column: letters, digits, ``_`` and ``-`` only."""
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None
