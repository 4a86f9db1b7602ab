"""JSON files that carry their own checksum: how manifests and definitions are written, and checked when read."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from skipstone.errors import MetadataCorruptError, MetadataTooNewError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FORMAT_VERSION", "damaged", "decode", "encode"]

FORMAT_VERSION = 1
T = TypeVar("T")
_REPAIR = "queries read everything until `refresh()` makes it again (or `drop_indexes()` and `create_indexes(...)` do)"
_CHECKSUM = re.compile(rb',"checksum":"([0-9a-f]{64})"\}\n')
_CHECKSUM_BYTES = len(',"checksum":""}\n') + 64


def encode(content: Mapping[str, Any]) -> bytes:
    """Write one JSON object, its checksum last: SHA-256 of every byte before ``,"checksum"``."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=True)[:-1].encode("ascii")
    return body + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode("ascii") + b'"}\n'


def decode(data: bytes, path: str, what: str, build: Callable[[Any], T]) -> T:
    """Read what ``encode`` wrote, check that every byte is as written, and make of it what it stands for.

    Parameters
    ----------
    data, path
        The bytes of the file, and its path for messages.
    what
        What the file is, in a word.
    build
        Makes the typed value; raises ``ValueError`` or its like for whatever makes no sense.

    Raises
    ------
    MetadataTooNewError
        When a later format wrote it.
    MetadataCorruptError
        When it is not as written, or makes no sense.
    """
    content = _checked(data, path, what)
    try:
        return build(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(path, what, f"{type(error).__name__}: {str(error)[:200]}") from error


def _checked(data: bytes, path: str, what: str) -> Any:
    try:
        content = json.loads(data)
        found = content["format_version"]
    except (ValueError, RecursionError, TypeError, KeyError, IndexError) as error:
        raise damaged(path, what, f"it is not a {what} ({type(error).__name__}: {str(error)[:200]})") from error
    if isinstance(found, int) and found > FORMAT_VERSION:
        msg = (
            f"the metadata {path} has format {found}; this Skipstone reads up to {FORMAT_VERSION}: "
            "`pip install --upgrade skipstone`, or drop the indexes and create them again"
        )
        raise MetadataTooNewError(msg)
    ending = _CHECKSUM.fullmatch(data[-_CHECKSUM_BYTES:])
    if ending is None or hashlib.sha256(data[:-_CHECKSUM_BYTES]).hexdigest().encode("ascii") != ending[1]:
        raise damaged(path, what, "its checksum does not fit its content")
    return content


def damaged(path: str, what: str, why: str) -> MetadataCorruptError:
    """Make the error that says that a file is not as it was written."""
    return MetadataCorruptError(f"the {what} {path} is damaged: {why}; {_REPAIR}")
