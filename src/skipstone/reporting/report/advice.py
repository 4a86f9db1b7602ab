"""What to do first: the steps that would let a workload read least, ranked, each with the line to run.

What a step may save is counted in objects over the whole workload, and is never more than was seen: objects that a
query read without need (where that was measured), objects that no metadata describes as they are, objects that wanted
rows are spread over.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from skipstone.engines.spark.reasons import reason_of
from skipstone.engines.spark.remedies import lacks
from skipstone.querying.plan import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skipstone.engines.spark.remedies import Lack
    from skipstone.reporting.indicators import Indicators
    from skipstone.reporting.report.queries import PlannedQuery

__all__ = ["Step", "do_first"]

_FLAGS: Final = {"minmax": "--minmax", "valuelist": "--valuelist", "hybrid": "--hybrid"}
_MOST_STEPS = 12
_TOLD_ELSEWHERE: Final = frozenset({"unserved", "no metadata", "damaged metadata", "no predicate", "partition values"})


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do.

    ``objects`` is how many objects fewer the workload might read, at most; ``queries`` are the numbers of those that
    gain.  ``command`` is a line for the shell, ``python`` one in which ``dataset`` is the report's dataset.
    """

    action: str
    what: str
    why: str
    python: str
    command: str | None = None
    columns: tuple[str, ...] = ()
    index: str | None = None
    objects: int | None = None
    bytes: int | None = None
    queries: tuple[int, ...] = ()


def do_first(
    about: dict[str, Any],
    indexes: Sequence[dict[str, Any]],
    queries: Sequence[PlannedQuery],
    measured: Sequence[Indicators | str],
) -> list[dict[str, Any]]:
    """Return the steps as a report has them, the most useful first.

    Parameters
    ----------
    about, indexes
        What the report says of the dataset and its indexes; those marked ``unneeded`` are to be dropped.
    queries, measured
        The queries as they were planned, and their indicators or why there are none.
    """
    place = _place(about)
    seen = [
        (query, found if not isinstance(found, str) else None) for query, found in zip(queries, measured, strict=True)
    ]
    if about["problem"]:
        mending = [Step("repair", "Make the metadata anew", f"It cannot be read: {about['problem']}", *_refresh(place))]
        return _written([*mending, *_to_mend(seen)])
    useful = [*_to_refresh(indexes, seen, place), *_to_create(seen, place), *_to_lay_out(about, seen), *_to_mend(seen)]
    ranked = sorted(useful, key=lambda step: -(step.objects or 0))
    dropped = sorted(_to_drop(indexes, place), key=lambda step: -(step.bytes or 0))
    return _written([*ranked[: _MOST_STEPS - min(len(dropped), 4)], *dropped][:_MOST_STEPS])


def _written(steps: list[Step]) -> list[dict[str, Any]]:
    """Make plain values of steps."""
    return [asdict(step) | {"columns": list(step.columns), "queries": list(step.queries)} for step in steps]


def _place(about: dict[str, Any]) -> str:
    """Return how the command line names a dataset."""
    if about["table"]:
        return f"--table {shlex.quote(about['table'])}"
    named = shlex.quote(about["root"])
    return named if about["format"] == "parquet" else f"{named} --format {shlex.quote(about['format'])}"


def _refresh(place: str) -> tuple[str, str]:
    return "dataset.refresh()", f"skipstone refresh {place}"


_Seen = tuple["PlannedQuery", "Indicators | None"]


def _to_refresh(indexes: Sequence[dict[str, Any]], seen: Sequence[_Seen], place: str) -> Iterator[Step]:
    """Index objects that are new or have changed."""
    lacking = max(((index["stale"] or 0) + (index["missing"] or 0) for index in indexes), default=0)
    if not lacking:
        return
    counts = {
        query.statement.number: sum(scan.objects.unindexed + scan.objects.stale for scan in query.scans)
        for query, _ in seen
    }
    why = (
        f"{_objects(lacking)} {'is' if lacking == 1 else 'are'} new or changed since indexing: every query reads them."
    )
    gaining = tuple(number for number, count in counts.items() if count)
    yield Step(
        "refresh", "Refresh the indexes", why, *_refresh(place), objects=sum(counts.values()) or None, queries=gaining
    )


def _to_create(seen: Sequence[_Seen], place: str) -> Iterator[Step]:
    """Create the indexes that predicates lack, where objects are read in vain."""
    wanted: dict[str, tuple[Lack, dict[int, int]]] = {}
    for query, found in seen:
        if not (vain := _in_vain(query, found)):
            continue
        for lack in (lack for plan in query.plans for lack in lacks(plan)):
            wanted.setdefault(lack.index.name, (lack, {}))[1][query.statement.number] = vain
    for name, (lack, gains) in wanted.items():
        column, kind = lack.column, lack.index.type_name
        yield Step(
            "create",
            f"Create {name}",
            f"No index serves {lack.predicate}{_others(gains)}; this one would.",
            f"dataset.create_indexes({type(lack.index).__name__}({column!r}))",
            f"skipstone index {place} {_FLAGS[kind]} {shlex.quote(column)}",
            (column,),
            name,
            sum(gains.values()),
            queries=tuple(gains),
        )


def _in_vain(query: PlannedQuery, found: Indicators | None) -> int:
    """Return how many objects a query reads that better metadata might skip; all that it reads if that is not known."""
    if found is not None:
        return found.kept_objects - found.relevant_objects
    return sum(scan.objects.kept for scan in query.scans)


def _others(gains: dict[int, int]) -> str:
    return f" and {len(gains) - 1:,} more like it" if len(gains) > 1 else ""


def _to_lay_out(about: dict[str, Any], seen: Sequence[_Seen]) -> Iterator[Step]:
    """Write the data in another order, where wanted rows are spread."""
    spread: dict[tuple[str, ...], dict[int, int]] = {}
    for query, found in seen:
        conditions = [plan.condition for plan in query.plans if plan is not None and plan.condition is not None]
        columns = tuple(dict.fromkeys(column.name for condition in conditions for column in columns_of(condition)))
        if found is not None and found.limit == "layout" and columns:
            spread.setdefault(columns, {})[query.statement.number] = found.relevant_objects - found.fewest_objects
    for columns, gains in spread.items():
        listed = ", ".join(map(repr, columns))
        yield Step(
            "layout",
            f"Write the data sorted by {', '.join(columns)}",
            "The rows that are wanted lie in more objects than they would fill; no index can skip those. Weigh it: "
            "data that is sorted by these columns is less sorted by others.",
            f"dataset.dataframe.repartitionByRange({about['objects']}, {listed}).sortWithinPartitions({listed})"
            f".write.format({about['format']!r}).save('NEW_FOLDER')",
            columns=columns,
            objects=sum(gains.values()),
            queries=tuple(gains),
        )


def _to_mend(seen: Sequence[_Seen]) -> Iterator[Step]:
    """Do away with what keeps indexes from being used."""
    kept: dict[str, dict[int, int]] = {}
    for query, indicators in seen:
        for sentence in (
            sentence for scan in query.scans for sentence in (*scan.not_used, *filter(None, [scan.error]))
        ):
            kind = reason_of(sentence)
            if kind is not None and kind.name not in _TOLD_ELSEWHERE:
                kept.setdefault(sentence, {})[query.statement.number] = _in_vain(query, indicators)
    for sentence, gains in kept.items():
        kind = reason_of(sentence)
        saved = sum(gains.values())
        if kind is not None and saved:
            what = f"{kind.remedy[:1].upper()}{kind.remedy[1:]}"
            yield Step("mend", what, sentence, kind.python, kind.command or None, objects=saved, queries=tuple(gains))


def _to_drop(indexes: Sequence[dict[str, Any]], place: str) -> Iterator[Step]:
    """Drop indexes that nothing needs."""
    for index in indexes:
        if index["unneeded"]:
            name = index["name"]
            used = "other indexes skip all that it skips" if index["queries"] else "no query of this workload uses it"
            yield Step(
                "drop",
                f"Drop {name}, unless other queries need it",
                f"Nothing here needs it: {used}.",
                f"dataset.drop_indexes({name!r})",
                f"skipstone drop {place} {shlex.quote(name)}",
                tuple(index["columns"]),
                name,
                bytes=index["bytes"],
            )


def _objects(count: int) -> str:
    return f"{count:,} object{'' if count == 1 else 's'}"
