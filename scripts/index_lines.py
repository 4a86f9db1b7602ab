"""Count the lines of code of each index type: what is collected, the clauses, the filter.

``python scripts/index_lines.py`` prints the table, ``--write`` puts it into ``docs/indexes/README.md``.

Blank lines, comments, docstrings, imports and ``__all__`` do not count.  An index type is a module of ``indexes``, or
the ``index.py`` of a package there; the package's other modules, with their lines, and the modules of other rooms that
the type is made of have columns apart.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"
INDEXES = SOURCES / "skipstone" / "indexes"
SHARED = ("skipstone.toolkit.", "skipstone.functions.")
PAGE = Path(__file__).parent.parent / "docs" / "indexes" / "README.md"
BEGIN, END = "<!-- lines: begin -->", "<!-- lines: end -->"


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines that are code."""
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            left_out.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    for node in tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        exported = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        guarded = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if text or exported or guarded:
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    used = {n for t in tokens if t.type not in skipped for n in range(t.start[0], t.end[0] + 1)}
    return used - left_out


def pieces(path: Path) -> dict[str, int]:
    """Count a module's lines by the piece that they belong to; helper functions belong to ``other``."""
    source = path.read_text(encoding="utf-8")
    lines = code_lines(source)
    found = {"collection": 0, "clause": 0, "filter": 0, "other": 0}
    for node in ast.parse(source).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        count = len(lines & set(range(first, (node.end_lineno or 0) + 1)))
        found[_piece(node)] += count
    return found


def _piece(node: ast.stmt) -> str:
    """Return the piece that a top-level statement belongs to."""
    if isinstance(node, ast.ClassDef):
        for ending, piece in (
            ("Filter", "filter"),
            ("Clause", "clause"),
            ("Metadata", "collection"),
            ("Index", "collection"),
        ):
            if node.name.endswith(ending):
                return piece
    return "other"


def index_types() -> dict[str, Path]:
    """Find the modules that define index types, by the name of the module or of its package."""
    found = {path.stem: path for path in INDEXES.glob("[a-z]*.py")}
    found.update({path.parent.name: path for path in INDEXES.glob("*/index.py")})
    return dict(sorted(found.items()))


def own_modules(path: Path) -> list[Path]:
    """Find the other modules of an index type's package."""
    return sorted(path.parent.glob("[a-z]*.py")) if path.name == "index.py" else []


def shared_by(path: Path) -> list[str]:
    """Name the modules of the toolkit and of functions that an index type uses, directly or through others."""
    found: dict[str, None] = {}
    waiting = [path, *own_modules(path)]
    while waiting:
        for module in _imported(waiting.pop(0)):
            if module.startswith(SHARED) and module not in found:
                found[module] = None
                waiting.append((SOURCES / Path(*module.split("."))).with_suffix(".py"))
    return sorted(module.removeprefix("skipstone.") for module in found)


def _imported(path: Path) -> list[str]:
    """Name the modules that a module imports when it is run; what only type checkers see is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    return [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in guarded]


def table() -> str:
    """Return the counts as a table in Markdown."""
    rows = [
        "| index type | collection | clause | filter | helpers in its file | its other modules | shared modules |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, path in index_types().items():
        count = pieces(path)
        lines = [str(count[piece]) for piece in ("collection", "clause", "filter", "other")]
        own = [
            f"`{other.stem}` {len(code_lines(other.read_text(encoding='utf-8')))}"
            for other in own_modules(path)
            if other != path
        ]
        shared = [f"`{module}`" for module in shared_by(path)]
        cells = [f"`{name}`", *lines, ", ".join(own) or "none", ", ".join(shared) or "none"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    """Print the table, or put it where the documentation has it."""
    if "--write" in sys.argv:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    else:
        print(table())


if __name__ == "__main__":
    main()
