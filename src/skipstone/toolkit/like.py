"""LIKE patterns read exactly as Spark reads them (``StringUtils.escapeLikeRegex``)."""

from __future__ import annotations

import re
from enum import Enum
from typing import TypeAlias

__all__ = ["REPLACEMENT", "LikeTokens", "Wildcard", "literal_prefix", "parse_like", "to_regex"]

REPLACEMENT = "\ufffd"
"""What Java puts in place of bytes that are not UTF-8 before it matches a pattern; it stands for more than itself."""


class Wildcard(Enum):
    """The two wildcards: one code point, any number of them."""

    ONE = "_"
    ANY = "%"


LikeTokens: TypeAlias = tuple[str | Wildcard, ...]
"""A LIKE pattern in pieces: texts, and the wildcards between them."""


def parse_like(pattern: str, escape: str = "\\") -> LikeTokens | None:
    r"""Take a pattern apart into literal runs and wildcards; ``None`` where Spark would raise an error.

    The escape character comes first, so that it may be ``_`` or ``%`` itself; it may stand before ``_``, ``%`` and
    itself only.

    Examples
    --------
    >>> parse_like(r"50\% off%")
    ('50% off', <Wildcard.ANY: '%'>)
    """
    if len(escape) != 1 or ord(escape) > 0xFFFF:
        return None
    tokens: list[str | Wildcard] = []
    run: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("_", "%", escape):
                return None
            run.append(following)
        elif character in ("_", "%"):
            if run:
                tokens.append("".join(run))
                run = []
            tokens.append(Wildcard(character))
        else:
            run.append(character)
    if run:
        tokens.append("".join(run))
    return tuple(tokens)


def literal_prefix(tokens: LikeTokens) -> str:
    """Return the text with whose bytes every matching value begins, however invalid its UTF-8."""
    first = tokens[0] if tokens and isinstance(tokens[0], str) else ""
    return first.partition(REPLACEMENT)[0]


def to_regex(tokens: LikeTokens) -> str:
    """Spell the pattern for RE2, whose ``.`` is a code point as Java's is; the whole value must match."""
    spelled = (
        {Wildcard.ONE: ".", Wildcard.ANY: ".*"}[token] if isinstance(token, Wildcard) else _literal(token)
        for token in tokens
    )
    return rf"(?s)\A{''.join(spelled)}\z"


def _literal(text: str) -> str:
    """Quote what RE2 would take for an operator; NUL would end its pattern."""
    return re.sub(r"[!-/:-@\[-`{-~]", r"\\\g<0>", text).replace("\0", r"\x00")
