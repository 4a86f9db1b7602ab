"""A report on a dataset and a workload: its indexes, what they skip for each query, and what limits them."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skipstone
from skipstone.errors import DatasetError, SkipstoneError
from skipstone.indexing.describe import DESCRIBE_COLUMNS, describe_rows
from skipstone.indexing.objects import STATE_COLUMNS, recorded_states
from skipstone.reporting.contributions import unneeded
from skipstone.reporting.indicators import Indicators, WorkloadIndicators
from skipstone.reporting.report.advice import do_first
from skipstone.reporting.report.compare import FORMAT, compared, read_report
from skipstone.reporting.report.page import page
from skipstone.reporting.report.queries import COUNTS, PlannedQuery, measure_queries, plan_query, query_data
from skipstone.reporting.report.summary import summary_html, summary_lines
from skipstone.reporting.report.workload import Statement, analysed
from skipstone.settings import get_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.dataset import Dataset
    from skipstone.indexing.target import Target

__all__ = ["Report", "make_report"]


@dataclass(frozen=True)
class Report:
    """What is known of a dataset and a workload: as data, and as one page that needs nothing beside itself."""

    data: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it is embedded in the page: plain values, ready for JSON."""
        return self.data

    def __str__(self) -> str:
        return "\n".join(summary_lines(self.data))

    def __repr__(self) -> str:
        return f"Report({self.data['dataset']['root']!r}, {len(self.data['queries'])} queries)"

    def _repr_html_(self) -> str:
        return summary_html(self.data)

    def html(self) -> str:
        """Return the page."""
        return page(self.data)

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all.

        Raises
        ------
        DatasetError
            When the file cannot be written.
        """
        target = Path(path)
        try:
            handle, name = tempfile.mkstemp(prefix=".skipstone-", suffix=".html", dir=target.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(self.html())
                Path(name).chmod(0o666 & ~_umask())
                Path(name).replace(target)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            msg = f"the report cannot be written to {target}: {error.strerror or error}"
            raise DatasetError(msg) from error


def make_report(
    dataset: Dataset,
    queries: Sequence[str | DataFrame | Statement],
    *,
    measure: bool = True,
    compare: Report | Mapping[str, Any] | str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Plan a workload over a dataset and report what skipping does for it.

    Parameters
    ----------
    dataset
        The dataset, read as it was indexed.
    queries
        SQL in which the dataset is called ``dataset``, predicates on it, or DataFrames that read it.
    measure
        Whether to measure the indicators, for which Spark reads the columns of each query's condition in every object.
        Without, nothing of the data is read.
    compare
        An earlier report, its page or its JSON: what has changed since is said too.
    say
        Is told what is going on, for people who wait.

    Raises
    ------
    WorkloadError
        When a query is not one; the message has its number.
    DatasetError
        When what to compare with is not a report.
    SoundnessError
        When measuring finds that an object with a wanted row was skipped.  This must never happen: report it.

    Examples
    --------
    >>> make_report(logs, ["db_name = 'a'", "SELECT max(ts) FROM dataset"]).write("report.html")  # doctest: +SKIP
    """
    earlier = None if compare is None else read_report(compare.data if isinstance(compare, Report) else compare)
    planned = _planned(dataset, queries)
    target = dataset._target()
    say("looking at the indexes …")
    about, indexes = _about(target)
    seen: list[PlannedQuery] = []
    for statement, df in planned:
        say(f"planning query {statement.number} of {len(planned)} …")
        seen.append(plan_query(dataset, statement, df))
    measured: list[Indicators | str] = [query.unmeasured for query in seen]
    if measure:
        say("measuring the indicators …")
        measured = measure_queries(dataset, seen)
    found = [query_data(query, indicators) for query, indicators in zip(seen, measured, strict=True)]
    _add_contributions(indexes, found)
    _mark_unneeded(indexes, seen, found, target.root)
    data = {
        "format": FORMAT,
        "conditions": _conditions(dataset.dataframe.sparkSession),
        "do_first": do_first(about, indexes, seen, measured),
        "dataset": about,
        "indexes": indexes,
        "queries": found,
        "workload": _workload(found, [one for one in measured if isinstance(one, Indicators)]),
    }
    return Report(data | {"compared": None if earlier is None else compared(earlier, data)})


def _planned(dataset: Dataset, queries: Iterable[str | DataFrame | Statement]) -> list[tuple[Statement, DataFrame]]:
    """Number the queries and have Spark analyse those that are text."""
    numbered: list[tuple[Statement, DataFrame | None]] = []
    for number, query in enumerate(queries, 1):
        if isinstance(query, Statement):
            numbered.append((query, None))
        elif isinstance(query, str):
            numbered.append((Statement(number, query), None))
        else:
            numbered.append((Statement(number, ""), query))
    texts = iter(analysed(dataset.dataframe, [statement for statement, df in numbered if df is None]))
    return [(statement, next(texts) if df is None else df) for statement, df in numbered]


def _conditions(spark: SparkSession) -> dict[str, Any]:
    """Return where and when the figures come from."""
    context = spark.sparkContext
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "skipstone": skipstone.__version__,
        "spark": spark.version,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "master": context.master,
        "store": get_setting(spark, "store"),
    }


def _about(target: Target) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Describe the dataset and its indexes; metadata that cannot be read is said to be so."""
    listed = target.source.list_objects()
    size = sum(data_object.length for data_object in listed)
    about: dict[str, Any] = {
        "root": target.root,
        "format": target.source.relation.format,
        "table": target.source.relation.table,
        "objects": len(listed),
        "bytes": size,
        "rows": None,
        "metadata_bytes": None,
        "metadata_share": None,
        "problem": None,
    }
    indexes: list[dict[str, Any]] = []
    try:
        indexes += [_index(dict(zip(DESCRIBE_COLUMNS, row, strict=True)), size) for row in describe_rows(target)]
        snapshot = target.store.latest(target.root)
        if snapshot is not None:
            stored = sum(target.store.size(snapshot).values())
            known = target.store.objects(snapshot, ["path", *STATE_COLUMNS, "row_count"])
            about |= {"metadata_bytes": stored, "metadata_share": _share(stored, size), "rows": _rows(listed, known)}
    except SkipstoneError as error:
        about["problem"] = str(error)
    return about, indexes


def _rows(listed: Sequence[Any], known: Any) -> int | None:
    """Count the rows of the dataset, if the metadata has the count of every object as it is now."""
    rows = dict(zip(recorded_states(known), known.column("row_count").to_pylist(), strict=True))
    found = [rows.get((o.path, o.state)) for o in listed]
    return None if any(count is None or count < 0 for count in found) else sum(filter(None, found))


def _index(described: dict[str, Any], size: int) -> dict[str, Any]:
    """Return what is known of an index; the options of a protected one stay where they are protected."""
    options = json.loads(described.pop("options"), parse_constant=str)
    stored = described["bytes"]
    return described | {
        "options": {} if described["key"] else options,
        "share": None if stored is None else _share(stored, size),
        "queries": 0,
        "alone": 0,
        "only": 0,
        "unneeded": False,
    }


def _share(part: int, whole: int) -> float | None:
    """Return a part of a whole; nothing is a part of nothing."""
    return part / whole if whole else None


def _add_contributions(indexes: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    """Sum up over the workload what each index did."""
    by_name = {index["name"]: index for index in indexes}
    for query in queries:
        scans = query["scans"]
        for name in {name for scan in scans for name in scan["used"]} & by_name.keys():
            by_name[name]["queries"] += 1
        for one in (one for scan in scans for one in scan["contributions"] or ()):
            if one["index"] in by_name:
                by_name[one["index"]]["alone"] += one["alone"]
                by_name[one["index"]]["only"] += one["only"]


def _mark_unneeded(
    indexes: list[dict[str, Any]], seen: Sequence[PlannedQuery], queries: list[dict[str, Any]], root: str
) -> None:
    """Mark the indexes that the workload could do without, all together, the largest first; nothing needs them here."""
    if not queries:
        return
    untold = {name for q in queries for scan in q["scans"] if scan["contributions"] is None for name in scan["used"]}
    tried = [i for i in indexes if not i["only"] and i["name"] not in untold and i["not_used"] is None]
    tried.sort(key=lambda index: -(index["bytes"] or 0))
    found = unneeded([(query.df, query.scans) for query in seen if query.scans], root, [i["name"] for i in tried])
    for index in tried:
        index["unneeded"] = index["name"] in found


def _workload(queries: list[dict[str, Any]], measured: list[Indicators]) -> dict[str, Any]:
    """Sum up the queries."""
    objects: dict[str, Any] = {name: sum(query["objects"][name] for query in queries) for name in COUNTS}
    total, skipped = (sum(query[name] for query in queries) for name in ("bytes_total", "bytes_skipped"))
    means = WorkloadIndicators(measured)
    return {
        "queries": len(queries),
        "objects": objects | {"share": _share(objects["skipped"], objects["total"])},
        "bytes_total": total,
        "bytes_skipped": skipped,
        "bytes_share": _share(skipped, total),
        "planning_seconds": sum(query["planning_seconds"] for query in queries),
        "rows_total": sum(one.rows for one in measured) if measured else None,
        "rows_read": sum(one.rows_in_kept_objects for one in measured) if measured else None,
        "rows_share": _share(sum(one.rows_in_kept_objects for one in measured), sum(one.rows for one in measured)),
        "measured": len(measured),
        "indicators": means.as_dict() | {"queries": len(means) - means.left_out} if measured else None,
    }


def _umask() -> int:
    """Return the mask that files of this process are made with."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
