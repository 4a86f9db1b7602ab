"""The report as one page: a template filled with the report's data, which the page also carries as JSON.

Nothing is run or fetched by the page.  Every figure in it names the place in the JSON document that it shows.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from skipstone.reporting.report.charts import MOST_ROWS, SHAPES, Bar, Dot, Row, bar_chart, dot_chart
from skipstone.showing.format import FORMATS, visible

__all__ = ["embedded", "page"]

_FACTORS = {
    "selectivity": ("σ", "sigma"),
    "layout_factor": ("λ", "lambda"),
    "metadata_factor": ("μ", "mu"),
    "scanning_factor": ("ψ", "psi"),
}
_FACTOR_NAMES = {factor: factor.replace("_", " ").capitalize() for factor in _FACTORS}
_FACTOR_SHARES = {
    "selectivity": "rows wanted, of all",
    "layout_factor": "rows wanted, of those in objects that hold one",
    "metadata_factor": "rows in objects with a wanted one, of those read",
    "scanning_factor": "rows read, of all",
}
_MOST_TEXT = 6_000
_UNKNOWN = "\N{EN DASH}"


def page(data: dict[str, Any]) -> str:
    """Fill the page with a report's data."""
    shown = _Shown(data)
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=data,
            embedded=embedded(data),
            number=shown.number,
            text=shown.text,
            moment=shown.moment,
            charts=_charts(data, shown),
            factors=_FACTORS,
            factor_names=_FACTOR_NAMES,
            factor_shares=_FACTOR_SHARES,
            places={query["number"]: place for place, query in enumerate(data["queries"])},
            shapes=SHAPES,
            most_rows=MOST_ROWS,
        )
    )


@cache
def _environment() -> Environment:
    """Make what fills templates: all that is not markup is escaped, and a name that is not there is an error."""
    made = Environment(
        loader=PackageLoader("skipstone.reporting.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"visible": visible, "plain": lambda value: value if isinstance(value, str) else json.dumps(value)}
    return made


def embedded(data: dict[str, Any]) -> Markup:
    r"""Write the data as JSON that cannot end the element it stands in.

    Examples
    --------
    >>> embedded({"a": "</script>\u2028"})
    Markup('{"a": "\\u003c/script\\u003e\\u2028"}')
    """
    written = json.dumps(data, ensure_ascii=True, allow_nan=False)
    for letter in "<>&":
        written = written.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(written)  # noqa: S704  (escaped above)


class _Shown:
    """Shows parts of the data, each with the JSON pointer of where it is in the document."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def value(self, *place: str | int) -> Any:
        """Return what is at a place."""
        found: Any = self._data
        for step in place:
            found = found[step]
        return found

    def number(self, kind: str, *place: str | int, element: str = "data") -> Markup:
        """Show a number in one of the ways of ``showing.format``."""
        value = self.value(*place)
        shown = _UNKNOWN if value is None else FORMATS[kind](value)
        exact = "" if value is None else repr(value)
        if element == "tspan":
            return Markup('<tspan data-of="{}" data-kind="{}" data-value="{}">{}</tspan>').format(
                _pointer(place), kind, exact, shown
            )
        return Markup('<data data-of="{}" data-kind="{}" value="{}">{}</data>').format(
            _pointer(place), kind, exact, shown
        )

    def text(self, *place: str | int) -> Markup:
        """Show a text, whatever is in it, apart from the direction of what stands around it; a very long one is cut."""
        value = visible(self.value(*place))
        shown = Markup('<bdi data-of="{}">{}</bdi>').format(_pointer(place), value[:_MOST_TEXT])
        if len(value) <= _MOST_TEXT:
            return shown
        return Markup('{} <span class="muted">… {:,} more characters</span>').format(shown, len(value) - _MOST_TEXT)

    def moment(self, *place: str | int) -> Markup:
        """Show a point in time."""
        value = str(self.value(*place))
        try:
            shown = datetime.fromisoformat(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        except ValueError:
            return self.text(*place)
        return Markup('<time data-of="{}" datetime="{}">{}</time>').format(_pointer(place), value, shown)


def _pointer(place: tuple[str | int, ...]) -> str:
    """Write a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in place)


def _charts(data: dict[str, Any], shown: _Shown) -> dict[str, Markup]:
    """Draw all charts; one that would have no row is left out."""
    drawn: dict[str, Markup] = {}
    queries, indexes = data["queries"], data["indexes"]
    if any(query["objects"]["total"] for query in queries):
        drawn["objects"] = bar_chart(
            "objects",
            "Objects skipped per query",
            "A bar for each query: the part of the objects that skipping left out, and the part that is read.",
            [_objects_row(number, query, shown) for number, query in enumerate(queries)],
        )
    measured = [n for n, q in enumerate(queries) if q["indicators"] and q["indicators"]["selectivity"] is not None]
    if measured:
        drawn["factors"] = dot_chart(
            "factors",
            "Indicators per query",
            "Selectivity, layout factor, metadata factor and scanning factor of each query on a logarithmic axis.",
            [_factors_row(number, queries[number], shown) for number in measured],
        )
    if any(index["bytes"] for index in indexes):
        most = max(index["bytes"] or 0 for index in indexes)
        drawn["sizes"] = bar_chart(
            "sizes",
            "Metadata per index",
            "A bar for each index: its stored bytes, beside those of the largest.",
            [
                Row(
                    index["name"],
                    shown.number("size", "indexes", n, "bytes", element="tspan"),
                    (Bar((index["bytes"] or 0) / most, "meta"),),
                )
                for n, index in enumerate(indexes)
            ],
        )
    total = data["workload"]["objects"]["total"]
    if total and any(index["queries"] for index in indexes):
        drawn["contributions"] = bar_chart(
            "contributions",
            "Objects skipped per index",
            "Two bars for each index: of all objects of all queries the part that it would skip alone, and the part "
            "that only it skips.",
            [_index_row(n, index, total, shown) for n, index in enumerate(indexes)],
        )
    return drawn


def _objects_row(number: int, query: dict[str, Any], shown: _Shown) -> Row:
    """Draw what was skipped for one query."""
    objects = query["objects"]
    total = objects["total"] or 1
    figures = Markup("{} of {} skipped").format(
        shown.number("count", "queries", number, "objects", "skipped", element="tspan"),
        shown.number("count", "queries", number, "objects", "total", element="tspan"),
    )
    bars = (Bar(objects["skipped"] / total, "skipped"), Bar(objects["kept"] / total, "kept"))
    return Row(_named(query), figures, bars)


def _factors_row(number: int, query: dict[str, Any], shown: _Shown) -> Row:
    """Draw the four factors of one query."""
    figures = Markup("  ").join(
        Markup("{} {}").format(sign, shown.number("factor", "queries", number, "indicators", factor, element="tspan"))
        for factor, (sign, _) in _FACTORS.items()
    )
    dots = tuple(
        Dot(value, kind, f"{sign} = {FORMATS['factor'](value)}")
        for factor, (sign, kind) in _FACTORS.items()
        if (value := query["indicators"][factor])
    )
    return Row(_named(query), figures, dots)


def _index_row(number: int, index: dict[str, Any], total: int, shown: _Shown) -> Row:
    """Draw what one index did for the workload."""
    figures = Markup("{} alone, {} only").format(
        shown.number("count", "indexes", number, "alone", element="tspan"),
        shown.number("count", "indexes", number, "only", element="tspan"),
    )
    only, alone = index["only"] / total, index["alone"] / total
    return Row(index["name"], figures, (Bar(alone, "partly", 0), Bar(only, "skipped", 1)))


def _named(query: dict[str, Any]) -> str:
    """Label a query in a chart."""
    own = f"Query {query['number']}"
    return own if query["title"] == own else f"{query['number']}. {query['title']}"
