"""The modules that a pickled Python function may refer to: every text in the pickle that could name one."""

from __future__ import annotations

import pickletools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SPARKS", "packages_named"]

SPARKS = frozenset({"pyspark", "py4j", "__main__"})
"""What every function of a Spark application refers to: Spark itself, and the program."""

_WORDS = re.compile(r"\w+(?:\.\w+)*")
_LONGEST = 255
_PICKLE = b"\x80"


def packages_named(command: bytes) -> frozenset[str] | None:
    """Return the modules that a pickled function may refer to; ``None`` for what is no pickle.

    Every text in the pickle that could name a module counts as a reference, and so does what such a module needs in
    its turn: one too many only makes the identity stricter.
    """
    try:
        found = {name for text in _texts(command) for name in _names_in(text)}
    except (ValueError, IndexError):
        return None
    return frozenset(name for name in found if name.partition(".")[0] not in SPARKS)


def _texts(command: bytes) -> Iterator[str]:
    """Yield the texts in a pickle, and in pickles within it."""
    for _, argument, _ in pickletools.genops(command):
        if isinstance(argument, str):
            yield argument
        elif isinstance(argument, bytes | bytearray) and argument.startswith(_PICKLE):
            try:
                yield from list(_texts(bytes(argument)))
            except (ValueError, IndexError):
                continue  # bytes, and no pickle


def _names_in(text: str) -> Iterator[str]:
    """Yield what in a text could be the name of a module: all of it, and every word.

    The path of a source, which code carries along for its tracebacks, names none: whoever makes a name of a part of it
    imports by a computed name, and such code is not known at all (``is_dynamic``).
    """
    if text.startswith("/") and text.endswith(".py"):
        return
    for name in {text, text.rpartition(" ")[0], *text.split(), *_WORDS.findall(text)}:
        top = name.partition(".")[0]
        if top and len(top) <= _LONGEST and not {"/", "\0"} & set(top):
            yield name
