"""After damage: the names that stand in what is left of a manifest, and a sentence for what is lost."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["names_in", "said_of_loss"]

_NAME = re.compile(rb'"name":("(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu]){1,300}"),"type_name":')
_MOST_NAMES = 20


def names_in(data: bytes) -> list[str]:
    """Return the names of indexes that stand in what is left of a manifest: a hint for people, nothing to act on.

    >>> names_in(b'{"indexes":[{"id":"a","name":"minmax(ts)","type_name":"minmax"},{"id":"b","name":"valu')
    ['minmax(ts)']
    """
    return list(dict.fromkeys(_spelled(data)))[:_MOST_NAMES]


def _spelled(data: bytes) -> Iterator[str]:
    for found in _NAME.finditer(data):
        try:
            name = json.loads(found[1])
        except ValueError:
            continue
        yield "".join(letter if letter.isprintable() else "?" for letter in name)


def said_of_loss(
    unread: Sequence[int], version: int, indexes: Sequence[IndexRecord], named: Sequence[str]
) -> tuple[str, ...]:
    """Return what is lost when versions after the one that could be read cannot.

    Parameters
    ----------
    unread
        The versions that cannot be read, the newest first.
    version, indexes
        The one that can, 0 for none, and the indexes that it has.
    named
        Names of indexes that can still be read in what is left of the others.
    """
    if not unread:
        return ()
    known = [record.name for record in indexes]
    which = f"version {unread[0]} was" if len(unread) == 1 else f"versions {unread[-1]} to {unread[0]} were"
    gone = [name for name in named if name not in known]
    missing = f"; what is left of it names {', '.join(gone)}: create again what you need of these" if gone else ""
    if not version:
        return (f"{which} damaged and cannot be read, and nothing else says which indexes there were{missing}",)
    said = (
        f"{which} damaged and cannot be read; what changed after version {version} is lost: an index made since then "
        f"is gone{missing}; one dropped since then is back, and drop_indexes(…) drops it again; here are, as of "
        f"version {version}: {', '.join(known) or 'none'}"
    )
    return (said,)
