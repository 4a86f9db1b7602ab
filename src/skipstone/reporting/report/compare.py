"""Before and after: what has changed since an earlier report, over the queries that both have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from skipstone.errors import DatasetError
from skipstone.reporting.indicators import Indicators, WorkloadIndicators

__all__ = ["FORMAT", "compared", "read_report"]

FORMAT: Final = 1
"""The version of a report's data; keys are only added within a version."""

_EMBEDDED = re.compile(r'<script type="application/json" id="skipstone-report">(.*?)</script>', re.DOTALL)
_COUNTS = tuple(Indicators.__dataclass_fields__)
_CONDITIONS: Final = {"skipstone": "Skipstone", "spark": "Spark", "master": "the master", "store": "the store"}


def read_report(source: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    """Return the data of a report: given as it is, or in a page or a JSON file that was written of one.

    Raises
    ------
    DatasetError
        When it is not a report, cannot be read, or is of a later version.
    """
    data: Any = source
    if isinstance(source, str | Path):
        try:
            text = Path(source).read_text(encoding="utf-8")
            page = _EMBEDDED.search(text)
            data = json.loads(page[1] if page else text)
        except OSError as error:
            msg = f"the report {source} cannot be read: {error.strerror or error}"
            raise DatasetError(msg) from error
        except ValueError as error:
            msg = (
                f"{source} is not a report: give a page of 'skipstone report -o', or what it prints with --output json"
            )
            raise DatasetError(msg) from error
    if not isinstance(data, Mapping) or not isinstance(data.get("format"), int) or "queries" not in data:
        msg = "a report to compare with is wanted: a Report, its page, or its JSON"
        raise DatasetError(msg)
    if data["format"] != FORMAT:
        msg = f"the earlier report is of version {data['format']}, this Skipstone compares version {FORMAT}"
        raise DatasetError(msg)
    return data


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs between two reports, as the later one has it.

    Queries are the same if their SQL is, or, where a DataFrame was given, their title.  All sums and means are over the
    queries that both reports have.

    Raises
    ------
    DatasetError
        When the earlier one lacks something that reports have.
    """
    try:
        return _compared(before, after)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"the earlier report is damaged: {type(error).__name__}: {error}"
        raise DatasetError(msg) from error


def _compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    earlier = {_key(query): query for query in before["queries"]}
    later = {_key(query): (place, query) for place, query in enumerate(after["queries"])}
    both = [(place, earlier[key], query) for key, (place, query) in later.items() if key in earlier]
    measured = [(one, two) for _, one, two in both if one["indicators"] and two["indicators"]]
    names = [{index["name"] for index in report["indexes"]} for report in (before, after)]
    return {
        "made": str(before["conditions"]["made"]),
        "root": str(before["dataset"]["root"]),
        "differences": list(_differences(before, after)),
        "indexes_added": sorted(names[1] - names[0]),
        "indexes_dropped": sorted(names[0] - names[1]),
        "queries_in_both": len(both),
        "queries_only_before": len(earlier.keys() - later.keys()),
        "queries_only_after": len(later.keys() - earlier.keys()),
        "queries_measured": len(measured),
        "before": _totals(before, [one for _, one, _ in both], [one for one, _ in measured]),
        "after": _totals(after, [two for _, _, two in both], [two for _, two in measured]),
        "queries": [{"place": place, "before": _figures(one), "after": _figures(two)} for place, one, two in both],
    }


def _key(query: Mapping[str, Any]) -> str:
    """Return what a query is known by in both reports."""
    return " ".join(str(query["sql"] or f"-- {query['title']}").split())


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what else than indexes is not as it was: figures are then not the indexes' doing alone."""
    said = []
    if before["dataset"]["root"] != after["dataset"]["root"]:
        said.append(f"The earlier report is of another dataset: {before['dataset']['root']}.")
    for what in ("objects", "bytes"):
        then, now = before["dataset"][what], after["dataset"][what]
        if then != now:
            said.append(f"The dataset had {then:,} {what}, now {now:,}.")
    for key, name in _CONDITIONS.items():
        then, now = before["conditions"].get(key), after["conditions"].get(key)
        if then != now:
            said.append(f"{name[:1].upper()}{name[1:]} was {then}, now {now}.")
    return said


def _figures(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one query that are set side by side."""
    found = query["indicators"]
    return {
        "objects_read": int(query["objects"]["kept"]),
        "objects_total": int(query["objects"]["total"]),
        "bytes_read": int(query["bytes_total"]) - int(query["bytes_skipped"]),
        "scanning_factor": None if not found else _number(found["scanning_factor"]),
    }


def _totals(report: Mapping[str, Any], queries: list[Any], measured: list[Any]) -> dict[str, Any]:
    """Sum up one report over the queries that both have; the scanning factor is a geometric mean."""
    figures = [_figures(query) for query in queries]
    means = WorkloadIndicators([Indicators(**{c: int(q["indicators"][c]) for c in _COUNTS}) for q in measured])
    size = report["dataset"]["metadata_bytes"]
    return {
        **{name: sum(one[name] for one in figures) for name in ("objects_read", "objects_total", "bytes_read")},
        "metadata_bytes": None if size is None else int(size),
        "scanning_factor": means.scanning_factor,
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
