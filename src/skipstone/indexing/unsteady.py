"""Rows that a reader gives in one read and not in another, of the same file and in the same environment.

Metadata must describe every row that any later read may return.  Nothing is indexed that is read so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skipstone.errors import IndexingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.indexing.relation import Relation

__all__ = ["refuse_unsteady_rows"]

_COLUMN_PRUNING = "spark.sql.csv.parser.columnPruning.enabled"
_QUOTING = "STOP_AT_DELIMITER"
_ONE_CHARACTER = re.compile(r".|\\.|\\u[0-9a-fA-F]{4}", re.DOTALL)  # itself, or as Spark lets it be written

# The settings of the same effect are switched off for the job; options are part of the DataFrame.
_DROPPING = {"ignorecorruptfiles": "true", "ignoremissingfiles": "true", "mode": "dropmalformed"}
# With these, what is read of one column depends on which others are read with it.
_PARQUET_STRUCTS = ("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", "true")
_TOGETHER = {
    "json": ("spark.sql.json.enablePartialResults", "false"),
    "parquet": _PARQUET_STRUCTS,
    "delta": _PARQUET_STRUCTS,
}


def refuse_unsteady_rows(relation: Relation) -> None:
    """Raise when the scan's reader may leave out rows, or give others in another read.

    Parameters
    ----------
    relation
        How the scan reads its files.

    Raises
    ------
    IndexingError
        With what to do instead.
    """
    options = {name: str(value) for name, value in relation.folded_options.items()}  # one may be null
    found = {name: value for name, value in _DROPPING.items() if options.get(name, "").lower() == value}
    if "badrecordspath" in options:
        found["badrecordspath"] = options["badrecordspath"]
    setting, value = _TOGETHER.get(relation.format, ("", ""))
    if setting and relation.reader_settings.get(setting) == value:
        found[setting] = value
    if found:
        msg = (
            f"a dataset that is read with {' and '.join(f'{n}={v}' for n, v in found.items())} cannot be indexed: "
            "rows that the reader leaves out would be missing from the metadata, and a read that returns them "
            "would skip them; read it without that to index it"
        )
        raise IndexingError(msg)
    if relation.format == "json" and relation.has_voids:
        msg = (
            "a dataset that is read as JSON with a column of the type VOID cannot be indexed: if it is read, Spark's "
            "reader takes what is inside of it for columns; give the column a type, or leave it out of the schema"
        )
        raise IndexingError(msg)
    if relation.format == "csv":
        _refuse_unsteady_csv(relation, options)
    separator = options.get("linesep", "")
    if _overlaps_itself(separator):
        msg = (
            f"a dataset that is read with lineSep={separator!r} cannot be indexed: where such separators meet, rows "
            "depend on where Spark cuts the file; use one that no two of can overlap"
        )
        raise IndexingError(msg)


def _refuse_unsteady_csv(relation: Relation, options: Mapping[str, str]) -> None:
    """Raise when a CSV reader that skips the columns which are not asked for takes others for them."""
    if _is_headed_with_comments(options):
        msg = (
            "a dataset that is read with header=true and comment=… cannot be indexed: behind long comments, whether "
            "the header is read as a row depends on where Spark cuts the file; read it with multiLine=true, which "
            "cuts none"
        )
        raise IndexingError(msg)
    pruned = options.get("columnpruning", relation.reader_settings.get(_COLUMN_PRUNING, "true")).lower()
    if pruned == "false":
        return
    separator = options.get("sep", options.get("delimiter", ","))
    found = [] if _ONE_CHARACTER.fullmatch(separator) else [f"sep={separator!r}"]
    if (quoting := options.get("unescapedquotehandling", _QUOTING)).upper() != _QUOTING:
        found.append(f"unescapedQuoteHandling={quoting}")
    if (escape := options.get("escape", "\\")) == options.get("quote", '"'):
        found.append(f"escape={escape}, the same as quote,")
    if found:
        msg = (
            f"a dataset that is read with {' and '.join(found)} cannot be indexed: what Spark's CSV reader takes for a "
            "column then depends on which others are read with it; read it with columnPruning=false"
        )
        raise IndexingError(msg)


def _is_headed_with_comments(options: Mapping[str, str]) -> bool:
    """Whether lines may come before the header in a file that is cut."""
    headed, whole = (options.get(name, "false").strip().lower() == "true" for name in ("header", "multiline"))
    return headed and not whole and bool(options.get("comment"))


def _overlaps_itself(separator: str) -> bool:
    r"""Whether a text begins as it ends, so that two of it can share characters.

    >>> [_overlaps_itself(text) for text in ("\n", "\r\n", "\n\n", "aba")]
    [False, False, True, True]
    """
    return any(separator[:length] == separator[-length:] for length in range(1, len(separator)))
