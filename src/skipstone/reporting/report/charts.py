"""The report's charts: inline SVG whose bars and axes are as wide as the page and whose text keeps its size.

Positions are percentages of the width, so that a chart fits a telephone and a sheet of paper without a script.  Colours
are the page's CSS variables.  Every figure that a chart shows stands in it as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from skipstone.showing.format import visible

__all__ = ["MOST_ROWS", "SHAPES", "Bar", "Dot", "Row", "bar_chart", "dot_chart"]

MOST_ROWS = 60
_ROWS_A_PART = 12
_MOST_LABEL = 200
_BAR_ROW, _DOT_ROW, _AXIS = 40, 66, 22
_LEFT, _RIGHT, _NEAR = 2.0, 98.0, 2.5
SHAPES = {
    "sigma": "M-5-5H5V5H-5Z",
    "lambda": "M0-6.5 6 5H-6Z",
    "mu": "M0-7 7 0 0 7-7 0Z",
    **dict.fromkeys(("skipped", "kept", "partly", "meta"), "M-6-4H6V4H-6Z"),
    "psi": "M-5.5 0A5.5 5.5 0 1 1 5.5 0A5.5 5.5 0 1 1-5.5 0Z",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One piece of a row's bar; pieces of another lane lie in a thinner bar of their own, below one another."""

    share: float
    kind: str
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """One mark on a row's axis; ``kind`` is its shape and colour."""

    value: float
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a chart: what it is of, the figures as text (markup), and what is drawn."""

    label: str
    figures: Markup
    marks: tuple[Bar | Dot, ...]


def bar_chart(name: str, title: str, description: str, rows: Sequence[Row]) -> Markup:
    """Draw a bar a row, or one for each lane; the pieces of a bar follow one another."""
    drawn: list[Markup] = []
    for part, shown in _parts(rows):
        pieces = [piece for number, row in enumerate(shown) for piece in _bars(row, number * _BAR_ROW)]
        drawn.append(_figure(f"{name}-{part}", title, description, pieces, len(shown) * _BAR_ROW))
    return Markup("").join(drawn)


def _bars(row: Row, top: int) -> Iterable[Markup]:
    """Draw one row of bars."""
    yield _label(row.label, top, 12 + 7 * len(row.figures.striptags()))
    yield Markup('<text class="figure" x="100%" y="{}" text-anchor="end">{}</text>').format(top + 14, row.figures)
    yield Markup('<rect class="track" x="0" y="{}" width="100%" height="11"/>').format(top + 20)
    ends: dict[int | None, float] = {}
    for bar in row.marks:
        if isinstance(bar, Bar) and bar.share > 0:
            start = ends.get(bar.lane, 0.0)
            width = min(bar.share, 1 - start)
            ends[bar.lane] = start + width
            yield Markup('<rect class="{}" x="{}%" y="{}" width="{}%" height="{}"/>').format(
                bar.kind,
                _round(100 * start),
                top + 20 + 6 * (bar.lane or 0),
                _round(100 * width),
                11 if bar.lane is None else 5,
            )


def dot_chart(name: str, title: str, description: str, rows: Sequence[Row]) -> Markup:
    """Draw dots on a logarithmic axis from the least power of ten that is needed up to one."""
    least = min((dot.value for row in rows[:MOST_ROWS] for dot in row.marks if isinstance(dot, Dot)), default=0.1)
    decades = max(1, math.ceil(-math.log10(least) - 1e-9))
    drawn: list[Markup] = []
    for part, shown in _parts(rows):
        height = _AXIS + len(shown) * _DOT_ROW
        pieces = list(_axis(decades, height))
        for number, row in enumerate(shown):
            pieces += _dots(row, _AXIS + number * _DOT_ROW, decades)
        drawn.append(_figure(f"{name}-{part}", title, description, pieces, height))
    return Markup("").join(drawn)


def _dots(row: Row, top: int, decades: int) -> Iterable[Markup]:
    """Draw one row of dots."""
    line = top + 48
    yield _label(row.label, top, 0)
    yield Markup('<text class="figure" x="0" y="{}">{}</text>').format(top + 30, row.figures)
    yield Markup('<line class="axis" x1="{0}%" x2="{1}%" y1="{2}" y2="{2}"/>').format(_LEFT, _RIGHT, line)
    for dot, place, offset in _apart([dot for dot in row.marks if isinstance(dot, Dot)], decades):
        yield Markup('<svg x="{}%" y="{}" class="mark"><path class="{}" d="{}"><title>{}</title></path></svg>').format(
            _round(place), line + offset, dot.kind, SHAPES[dot.kind], dot.said
        )


def _apart(dots: Sequence[Dot], decades: int) -> Iterable[tuple[Dot, float, int]]:
    """Yield each dot with its place, and how far it is moved up or down so that no two lie on one another."""
    near: list[tuple[Dot, float]] = []
    for dot in sorted(dots, key=lambda dot: dot.value):
        place = _place(dot.value, decades)
        if near and place - near[-1][1] > _NEAR:
            yield from _stacked(near)
            near = []
        near.append((dot, place))
    yield from _stacked(near)


def _stacked(near: list[tuple[Dot, float]]) -> Iterable[tuple[Dot, float, int]]:
    """Put dots above one another, around their line."""
    for number, (dot, place) in enumerate(near):
        yield dot, place, round(8 * (number - (len(near) - 1) / 2))


def _parts(rows: Sequence[Row]) -> Iterable[tuple[int, Sequence[Row]]]:
    """Divide rows into drawings that fit a sheet of paper, which cannot be divided."""
    shown = rows[:MOST_ROWS]
    for start in range(0, len(shown), _ROWS_A_PART):
        yield start // _ROWS_A_PART + 1, shown[start : start + _ROWS_A_PART]


def _axis(decades: int, height: int) -> Iterable[Markup]:
    """Draw the powers of ten."""
    step = math.ceil(decades / 6)
    for power in range(0, decades + 1, step):
        place = _round(_place(10.0**-power, decades))
        anchor = "end" if power == 0 else "start" if power == decades else "middle"
        label = f"{10.0**-power:.{power}f}" if power < 4 else f"10⁻{str(power).translate(_SUPERSCRIPT)}"
        yield Markup('<line class="grid" x1="{0}%" x2="{0}%" y1="18" y2="{1}"/>').format(place, height)
        yield Markup('<text class="tick" x="{}%" y="12" text-anchor="{}">{}</text>').format(place, anchor, label)


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _place(value: float, decades: int) -> float:
    """Return where a value lies on the axis, in percent of the width."""
    share = 1 + math.log10(value) / decades
    return _LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0)


def _label(text: str, top: int, taken: int) -> Markup:
    """Write what a row is of; what does not fit beside the pixels that are taken is cut."""
    seen = " ".join(visible(text).split())[:_MOST_LABEL]
    return Markup(
        '<foreignObject x="0" y="{}" width="100%" height="19"><div class="label" style="margin-right: {}px">'
        "<bdi>{}</bdi></div></foreignObject>"
    ).format(top, taken, seen)


def _figure(name: str, title: str, description: str, drawn: Iterable[Markup], height: int) -> Markup:
    """Put a chart together, with what people who do not see it are told."""
    return Markup(
        '<svg class="chart" role="img" aria-labelledby="{0}-title {0}-desc" width="100%" height="{1}">'
        '<title id="{0}-title">{2}</title><desc id="{0}-desc">{3}</desc>{4}</svg>'
    ).format(name, height, title, description, Markup("").join(drawn))


def _round(percent: float) -> str:
    return f"{percent:.3f}".rstrip("0").rstrip(".")
