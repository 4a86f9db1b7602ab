"""What notebooks show: pieces of HTML in one look, light or dark as the notebook is.

Whatever is not ``Html`` is somebody's data (names of columns, predicates, paths) and is escaped.  Nothing is run or
fetched.  Where a viewer takes the style away, as viewers of notebooks that are not trusted do, plain tables remain.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from skipstone.showing.format import FORMATS, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Html",
    "card",
    "code",
    "count",
    "facts",
    "folded",
    "items",
    "note",
    "percent",
    "share",
    "size",
    "table",
    "written",
]

_MOST_TEXT = 4_000
_MOST_ROWS = 200
_STYLE = """
.skipstone{color-scheme:light dark;--ink:light-dark(#16202a,#e6ebef);--muted:light-dark(#51606e,#a3b1bd);
--paper:light-dark(#fff,#12181e);--line:light-dark(#d5dce2,#35414c);--raised:light-dark(#f5f7f8,#1b232b);
--skipped:light-dark(#0f8a7e,#5cd6c8);--kept:light-dark(#e08a2e,#e2994a);--warning:light-dark(#9a3412,#f7a072);
background:var(--paper);color:var(--ink);border:1px solid var(--line);border-radius:6px;padding:.8em 1em;
margin:.3em 0;max-width:62em;font:13px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere;text-align:start}
[data-jp-theme-light=true] .skipstone,.vscode-light .skipstone,html[theme=light] .skipstone,
[data-theme=light] .skipstone{color-scheme:light}
[data-jp-theme-light=false] .skipstone,.vscode-dark .skipstone,html[theme=dark] .skipstone,
[data-theme=dark] .skipstone{color-scheme:dark}
.skipstone .title{font-weight:650;font-size:14px}.skipstone .about{color:var(--muted);margin-inline-start:.7em}
.skipstone .skp-scroll{overflow-x:auto;margin:.5em 0}
.skipstone table{border-collapse:collapse;width:100%;margin:0;border:0;font-size:13px;color:inherit;table-layout:auto}
.skipstone :is(tr,tbody tr:nth-child(odd),tbody tr:hover){background:none}
.skipstone :is(th,td){padding:.25em 1.2em .25em 0;border:0;border-bottom:1px solid var(--line);text-align:start;
vertical-align:top;color:inherit;white-space:normal;max-width:34em;background:none}
.skipstone td{min-width:6em}.skipstone :is(th,td).n{min-width:0;text-align:end;white-space:nowrap;overflow-wrap:normal}
.skipstone thead th{color:var(--muted);font-weight:600;font-size:12px;overflow-wrap:normal}
.skipstone tbody th{font-weight:600;min-width:9em}
.skipstone dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1em 1.2em;margin:.5em 0;width:auto}
.skipstone :is(dt,dd){float:none;clear:none;width:auto;margin:0;padding:0}
.skipstone dt{color:var(--muted);font-weight:400;grid-column:1}.skipstone dd{grid-column:2}
.skipstone :is(pre,code){font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
color:inherit;background:var(--raised)}
.skipstone pre{margin:.5em 0;padding:.6em .8em;border:1px solid var(--line);border-radius:4px;white-space:pre-wrap;
max-height:32em;overflow:auto}
.skipstone p{margin:.35em 0}.skipstone ul{margin:.35em 0;padding-inline-start:1.2em}
.skipstone .muted{color:var(--muted)}.skipstone .warning{color:var(--warning);font-weight:600}
.skipstone code{background:none;padding:0}
.skipstone details{margin:.35em 0}.skipstone summary{cursor:pointer;color:var(--muted)}
.skipstone .bar{display:flex;height:8px;margin:.5em 0;border-radius:4px;overflow:hidden;background:var(--kept)}
.skipstone .bar i{display:block;background:var(--skipped)}
@media print{.skipstone{color-scheme:light}}
""".replace(".skipstone ", ".skipstone.skipstone.skipstone ")  # outweighs what notebooks say of any table and list


class Html(str):
    """Markup: what is in it was escaped."""

    __slots__ = ()


def _safe(value: object) -> Html:
    """Escape what is not markup, show what cannot be seen, and cut what is very long."""
    if isinstance(value, Html):
        return value
    text = visible(str(value))
    rest = len(text) - _MOST_TEXT
    shown = escape(text[:_MOST_TEXT])
    return Html(f"{shown} … {rest:,} more characters" if rest > 0 else shown)


def _joined(parts: Iterable[object]) -> Html:
    return Html("".join(map(_safe, parts)))


def card(title: str, *parts: Html, about: str = "") -> str:
    """Put parts together under a title: what ``_repr_html_`` gives."""
    said = f'<span class="about">{_safe(about)}</span>' if about else ""
    return (
        f'<div class="skipstone"><style>{_STYLE}</style><div><span class="title">{_safe(title)}</span>{said}</div>'
        f"{_joined(parts)}</div>"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Iterable[int] = ()) -> Html:
    """Make a table whose rows begin with what they are of; the columns in ``numbers`` are set to the right.

    Examples
    --------
    >>> "<th scope=row>&lt;b&gt;</th><td class=n>7</td>" in table(["name", "n"], [["<b>", 7]], numbers=[1])
    True
    """
    right = frozenset(numbers)
    kinds = [" class=n" if place in right else "" for place in range(len(headings))]
    head = "".join(f"<th scope=col{kind}>{_safe(said)}</th>" for kind, said in zip(kinds, headings, strict=True))
    body = "".join(f"<tr>{_row(row, kinds)}</tr>" for row in rows[:_MOST_ROWS])
    more = f"<p class=muted>… {len(rows) - _MOST_ROWS:,} more</p>" if len(rows) > _MOST_ROWS else ""
    return Html(f"<div class=skp-scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}")


def _row(row: Sequence[object], kinds: Sequence[str]) -> str:
    """Make the cells of a row."""
    first, *others = row
    cells = [f"<td{kind}>{_safe(value)}</td>" for kind, value in zip(kinds[1:], others, strict=True)]
    return f"<th scope=row>{_safe(first)}</th>{''.join(cells)}"


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Make a list of names and values; a value that is ``None`` is left out."""
    told = [f"<dt>{_safe(name)}</dt><dd>{_safe(value)}</dd>" for name, value in pairs if value is not None]
    return Html(f"<dl>{''.join(told)}</dl>")


def share(part: int, whole: int) -> Html:
    """Draw which share of a whole was skipped; the text beside it says the same, so that it is hidden from readers."""
    width = f"{100 * part / whole:.2f}" if whole else "0"
    return Html(f'<div class=bar aria-hidden=true><i style="width:{width}%"></i></div>')


def note(text: object, *, warning: bool = False) -> Html:
    """Make a sentence of its own."""
    return Html(f"<p class={'warning' if warning else 'muted'}>{_safe(text)}</p>")


def items(texts: Iterable[object]) -> Html:
    """Make a list of sentences; nothing when there are none."""
    made = "".join(f"<li>{_safe(text)}</li>" for text in texts)
    return Html(f"<ul>{made}</ul>" if made else "")


def code(text: object) -> Html:
    """Show a text as it is, lines kept."""
    return Html(f"<pre>{_safe(text)}</pre>")


def written(text: object) -> Html:
    """Show a line to type, inside of a sentence."""
    return Html(f"<code>{_safe(text)}</code>")


def folded(summary: str, *parts: Html) -> Html:
    """Hide details until somebody wants them."""
    return Html(f"<details><summary>{_safe(summary)}</summary>{_joined(parts)}</details>")


def count(value: int | None) -> str:
    """Spell a number of things; one that is not known is a dash."""
    return _spelled("count", value)


def size(value: int | None) -> str:
    """Spell bytes."""
    return _spelled("size", value)


def percent(value: float | None) -> str:
    """Spell a share."""
    return _spelled("percent", value)


def _spelled(kind: str, value: float | None) -> str:
    return "\N{EN DASH}" if value is None else FORMATS[kind](value)
