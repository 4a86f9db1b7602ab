"""Where a dataset's metadata lies: folder and file names of the Parquet store (docs/format.md, "Layout")."""

from __future__ import annotations

import hashlib
import re

from skipstone.stores.names import normal_root

__all__ = [
    "DEFINITIONS",
    "HIDDEN_FOLDER",
    "MANIFESTS",
    "PARTS",
    "dataset_folder",
    "is_temporary_name",
    "manifest_name",
    "manifest_version",
]

HIDDEN_FOLDER = "_skipstone"
# Every name begins with an underscore: readers that reach them by a glob take none of them for data.
MANIFESTS = "_manifests"
DEFINITIONS = "_definitions"
PARTS = "_parts"

_MANIFEST = re.compile(r"_([0-9]{20})\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")


def dataset_folder(root: str, location: str | None = None) -> str:
    """Name the folder of a dataset's metadata: beside the data, or under a base folder by a stable name.

    >>> dataset_folder("s3a://lake/logs")
    's3a://lake/logs/_skipstone'
    >>> dataset_folder("s3a://lake/logs", "hdfs://meta/skipstone")
    'hdfs://meta/skipstone/logs-86679e33fd5085780627a2ab'
    """
    root = normal_root(root)
    if location is None:
        return f"{root}/{HIDDEN_FOLDER}"
    tail = re.sub(r"[^A-Za-z0-9]+", "-", root.rsplit("/", 1)[-1]).strip("-")[:40] or "dataset"
    return f"{location.rstrip('/')}/{tail}-{hashlib.sha256(root.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def manifest_name(version: int) -> str:
    """Name a version's manifest, and its definitions in their own folder; names sort as versions do."""
    return f"_{version:020d}.json"


def manifest_version(name: str) -> int | None:
    """Read the version from a manifest's name; ``None`` for any other file."""
    found = _MANIFEST.fullmatch(name)
    return int(found[1]) if found else None


def is_temporary_name(name: str) -> bool:
    """Whether a file was being written when its writer died: no other file is named so."""
    return _TEMPORARY.fullmatch(name) is not None
