"""Why a scan reads what it reads, and what to do about it: one table, by the sentences that planning gives.

The sentences come from where the thing went wrong: the planner, a store, the bridge in the JVM.  This table says of
each kind what helps.  ``docs/reasons.md`` is the same table for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["REASONS", "Reason", "reason_of"]


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind of reason.

    Parameters
    ----------
    name
        A short name that stays.
    sentence
        A pattern that finds sentences of this kind.
    example
        Such a sentence.
    remedy
        What to do, as the end of a sentence; for some sentences it says the same in other words.
    python, command
        A line of Python and one for the shell that do it, where there is one; ``{path}`` is the dataset's place.
    said
        Whether the sentence itself says what to do, so that the remedy need not be put behind it.
    """

    name: str
    sentence: str
    example: str
    remedy: str
    python: str = ""
    command: str = ""
    said: bool = False


_AGAIN = "dataset.drop_indexes('NAME'); dataset.create_indexes(…)"
_REFRESH = ("dataset.refresh()", "skipstone refresh {path}")

REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "unserved",
        r"^no index serves ",
        "no index serves status = 500",
        "create an index that serves the predicate: explain names those that would, each tried out on it",
        "dataset.create_indexes(HybridIndex('status'))",
        "skipstone index {path} --hybrid status",
    ),
    Reason(
        "one of two coordinates",
        r" needs ranges on both columns",
        "geobox(lat, lng) needs ranges on both columns: add one on lng",
        "bound the other coordinate too",
        said=True,
    ),
    Reason(
        "OR",
        r" cannot skip because of ",
        "(day > date '2026-01-01') OR (length(line) = 6) cannot skip because of length(line) = 6",
        "give the named side an index too: an OR skips an object only if every side does",
        said=True,
    ),
    Reason(
        "no metadata",
        r"^no metadata: the dataset is not indexed$",
        "no metadata: the dataset is not indexed",
        "index it; if it was indexed once, its folder was perhaps overwritten, or spark.skipstone.location is another",
        "dataset.create_indexes(MinMaxIndex('COLUMN'))",
        "skipstone index {path} --minmax COLUMN",
    ),
    Reason(
        "no predicate",
        r"^no predicate reaches this scan$",
        "no predicate reaches this scan",
        "put the condition below a LIMIT, sample, window or deduplication, where Spark can push it to the files",
    ),
    Reason(
        "no bounds",
        r": no index bounds ",
        "the first 10 rows by ts DESC NULLS LAST: no index bounds ts",
        "create a MinMaxIndex on the first column of ORDER BY",
        "dataset.create_indexes(MinMaxIndex('ts'))",
        "skipstone index {path} --minmax ts",
    ),
    Reason(
        "counts from files",
        r"^counts and extremes: ",
        "counts and extremes: no object is known to match wholly",
        "create a MinMaxIndex on the columns of WHERE, GROUP BY, count, min and max: numbers and times in Parquet",
        "dataset.create_indexes(MinMaxIndex('ts'))",
        "skipstone index {path} --minmax ts",
    ),
    Reason(
        "first rows everywhere",
        r": no object (?:comes after rows enough|is known to match wholly)|: the (?:metadata was|store does)",
        "the first 10 rows by ts DESC NULLS LAST: no object comes after rows enough of few that match wholly",
        "lay the data out by the first column of ORDER BY, and index the columns of WHERE; else nothing can be done",
    ),
    Reason(
        "no key",
        r"no key '",
        "minmax(salary): no key 'hr': spark.skipstone.kms.class names no key provider",
        "give the session a key provider that has the key (docs/security.md)",
        "spark.conf.set('spark.skipstone.kms.class', '…')",
        said=True,
    ),
    Reason(
        "damaged metadata",
        r"^metadata of \S+: ",
        "metadata of file:/lake/logs: the manifest is damaged",
        "refresh, which makes damaged metadata anew; if a server or disk is at fault, wait until it is back",
        *_REFRESH,
    ),
    Reason(
        "another format",
        r": read as \S+ here, as \S+ when indexed$",
        "minmax(ts): read as csv here, as parquet when indexed",
        "read the dataset in the format in which it was indexed, or drop the index and create it for this one",
        _AGAIN,
    ),
    Reason(
        "another option",
        r": option \S+ is .* here, was .* when indexed$",
        "minmax(ts): option sep is ';' here, was ',' when indexed",
        "read with the option as it was, or drop the index and create it from a DataFrame that is read like this",
        _AGAIN,
    ),
    Reason(
        "another setting",
        r": setting .* is .* here, was .* when indexed$",
        "minmax(ts): setting spark.sql.session.timeZone is 'UTC' here, was 'Asia/Tokyo' when indexed",
        "set it as it was, or drop the index and create it under this setting",
        _AGAIN,
    ),
    Reason(
        "another schema",
        r": read with another schema than when indexed",
        "minmax(ts): read with another schema than when indexed, and columns are found by position in csv",
        "read with the schema of then, or drop the index and create it with this one",
        _AGAIN,
    ),
    Reason(
        "another column",
        r" is (?:a partition column|a column of the files) here, was |"
        r" is declared with another default or field id than when indexed$|: \S+ is .* here, was .* when indexed$",
        "minmax(id): id is bigint here, was int when indexed",
        "read the column with the type of then, or drop the index and create it anew",
        _AGAIN,
    ),
    Reason(
        "partition values",
        r"Spark prunes by them itself$",
        "minmax(day): its partition values come from the catalog, which may change them; Spark prunes by them itself",
        "nothing: Spark's own partition pruning does this",
        said=True,
    ),
    Reason(
        "another function",
        r" is not known to be the function whose results it holds ",
        "formatted(ua, extract='agent'): agent is not known to be the function whose results it holds (…): …",
        "make the index again with the function of now, or state the function's version with skipstone.state_version",
        _AGAIN,
        said=True,
    ),
    Reason(
        "caught by an audit",
        r": an audit found a row in an object that it left out: ",
        "lengths(line): an audit found a row in an object that it left out: drop it, mend what it rests on, …",
        "drop the index, mend the plug-in, promise or function that it rests on, and create it anew",
        _AGAIN,
        said=True,
    ),
    Reason(
        "type not loaded",
        r": its type .* is not loaded; ",
        "lengths(line): its type 'lengths' is not loaded; name its module in spark.skipstone.plugins",
        "name the module that defines it, before the query is planned",
        "spark.conf.set('spark.skipstone.plugins', 'my_package.indexes')",
        said=True,
    ),
    Reason(
        "options of another version",
        r": it cannot be made from its options: ",
        "lengths(line): it cannot be made from its options: TypeError: unexpected keyword",
        "install the version of the plug-in that made it, or drop the index and create it with this one",
        _AGAIN,
    ),
    Reason(
        "sort order of buckets",
        r"makes plans depend on which files are read$",
        "spark.sql.legacy.bucketedTableScan.outputOrdering makes plans depend on which files are read",
        "unset this legacy setting",
        "spark.conf.unset('spark.sql.legacy.bucketedTableScan.outputOrdering')",
    ),
    Reason(
        "answers from partitions",
        r"makes answers depend on which files are listed$",
        "spark.sql.optimizer.metadataOnly makes answers depend on which files are listed",
        "unset this setting",
        "spark.conf.unset('spark.sql.optimizer.metadataOnly')",
    ),
    Reason(
        "metadata read as data",
        r"files of metadata \(_skipstone\) are read as data",
        "3 files of metadata (_skipstone) are read as data: let ignoredPathSegmentRegex hide names that begin with _ …",
        "let Spark hide names that begin with _, as it does by default, or keep metadata elsewhere",
        "spark.conf.set('spark.skipstone.location', '…')",
        said=True,
    ),
    Reason(
        "nobody planned",
        r"^nobody planned: ",
        "nobody planned: no planner is registered",
        "let the machine tell what is missing",
        command="skipstone doctor",
    ),
    Reason(
        "slow planner",
        r"planner (?:gave no answer within|is busy)",
        "TimeoutException: planner gave no answer within 30000 ms",
        "look at what the driver is busy with; give the planner more time",
        "spark.conf.set('spark.skipstone.plannerTimeoutMs', '60s')",
    ),
    Reason(
        "a setting",
        r"^spark\.skipstone\.\S+ is ",
        "spark.skipstone.store is 'parqet': there is no such metadata store; use one of 'parquet', …",
        "set it to a value that the sentence names",
        said=True,
    ),
    Reason(
        "a plug-in's error",
        r": (?:\w+ )?raised \w+|: \w+(?:Error|Exception): ",
        "lengths(line): LengthsFilter raised KeyError: 'minimum'",
        "mend the plug-in that is named; until then its index is not used and the query is right",
    ),
)


def reason_of(sentence: str) -> Reason | None:
    """Return the kind of a reason, or ``None`` for one that the table does not know.

    Examples
    --------
    >>> reason_of("minmax(ts): read as csv here, as parquet when indexed").name
    'another format'
    """
    return next((reason for reason in REASONS if re.search(reason.sentence, sentence)), None)
