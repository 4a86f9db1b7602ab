"""Metadata that would be read as data: Spark can be told to show names that begin with an underscore.

Since Spark 4.3 ``ignoredPathSegmentRegex`` says which names a listing leaves out.  One that lets ``_skipstone`` through
makes a scan read the metadata beside the data: with ``recursiveFileLookup`` as rows, and beside partitions as a folder
that is none, which Spark refuses.  So nothing is indexed, and nothing is written, where that would happen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skipstone.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skipstone.engines.spark.client import Client
    from skipstone.engines.spark.description import ScanDescription
    from skipstone.indexing.objects import DataObject

__all__ = ["METADATA_FOLDER", "refuse_metadata_among", "refuse_visible_folder"]

METADATA_FOLDER = "_skipstone"
"""The folder of metadata that lies beside the data."""

_OPTION = "ignoredpathsegmentregex"
_SETTING = "spark.sql.files.ignoredPathSegmentRegex"
_REMEDY = (
    "let ignoredPathSegmentRegex hide names that begin with an underscore, as its default '^[._]' does, or keep the "
    "metadata elsewhere with spark.skipstone.location"
)
_FILES = (("_manifests", f"_{1:020d}.json"), ("_definitions", f"_{1:020d}.json"), ("_parts", "_0.part"))
"""Names that are like those of a metadata folder."""


def refuse_visible_folder(client: Client, described: ScanDescription, folder: str | None) -> None:
    """Raise when a scan would read the files of a metadata folder, whether it is there yet or not.

    Parameters
    ----------
    client, described
        The door to the JVM, and the bridge's description of the scan.
    folder
        Where the metadata is kept, or would be; ``None`` when it is in no folder.

    Raises
    ------
    DatasetError
        With what to do.
    """
    options = described.relation.folded_options
    regex = options.get(_OPTION, described.settings.get(_SETTING))
    if folder is None or regex is None:
        return
    recursive = str(options.get("recursivefilelookup", "")).lower() == "true"
    if not recursive and not described.is_partitioned:
        return  # Spark reads what lies in the root itself
    inside = [below for root in described.relation.roots if (below := _below(folder, root))]
    hidden = client.pattern(regex) if regex else None  # an empty one hides nothing
    glob = options.get("pathglobfilter")
    for below in inside:
        for kind, name in _FILES:
            shown = all(_is_shown(segment, hidden) for segment in (*below, kind, name))
            if shown and (glob is None or client.matches_glob(glob, name)):
                msg = (
                    f"the metadata in {folder} would be taken for data: ignoredPathSegmentRegex, which is {regex!r}, "
                    f"shows such names; {_REMEDY}"
                )
                raise DatasetError(msg)


def refuse_metadata_among(objects: Sequence[DataObject], roots: Sequence[str]) -> None:
    """Raise when a listing has files of metadata in it: they are no objects of the dataset.

    Raises
    ------
    DatasetError
        With what to do.
    """
    for found in objects:
        if f"/{METADATA_FOLDER}/" in found.path and any(METADATA_FOLDER in _below(found.path, root) for root in roots):
            msg = f"{found.path} is metadata, and the dataset is read in a way that takes it for data: {_REMEDY}"
            raise DatasetError(msg)


def _below(path: str, root: str) -> tuple[str, ...]:
    """Return the names by which a path lies below a root; none when it does not.

    >>> _below("file:/data/_skipstone/_parts", "file:/data"), _below("file:/database", "file:/data")
    (('_skipstone', '_parts'), ())
    """
    path, top = (re.sub(r"^file:/+", "file:/", text).rstrip("/") for text in (path, root))
    top = f"{top}/"
    return tuple(path.removeprefix(top).split("/")) if path.startswith(top) and path != top else ()


def _is_shown(name: str, hidden: Callable[[str], bool] | None) -> bool:
    """Whether Spark lists a name, by the rule of its ``HadoopFSUtils.shouldFilterOutPathName``."""
    if name.endswith("._COPYING_"):
        return False
    if name.startswith(("_metadata", "_common_metadata")) or (name.startswith("_") and "=" in name):
        return True
    return hidden is None or not hidden(name)
