"""Count the lines of code of each index type: what is collected, the clauses, the filter.

``python scripts/index_lines.py`` prints the table, ``--write`` puts it into ``docs/indexes/README.md``.

Blank lines, comments, docstrings, imports and ``__all__`` do not count.  Modules with a leading underscore serve
several types, or one whose collection is a matter of its own; they are named in a column apart.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

INDEXES = Path(__file__).parent.parent / "src" / "skipstone" / "indexes"
PAGE = Path(__file__).parent.parent / "docs" / "indexes" / "README.md"
BEGIN, END = "<!-- lines: begin -->", "<!-- lines: end -->"


def code_lines(source: str) -> set[int]:
    """Give the numbers of the lines that are code."""
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
    """Say to which piece a top-level statement belongs."""
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


def shared_by(path: Path) -> list[str]:
    """Name the private modules that an index's module uses, directly or through others."""
    found: dict[str, None] = {}
    waiting = [path]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            name = module.removeprefix("skipstone.indexes.")
            if name.startswith("_") and module.startswith("skipstone.indexes.") and name not in found:
                found[name] = None
                waiting.append(INDEXES / f"{name}.py")
    return list(found)


def table() -> str:
    """Give the counts as a table in Markdown."""
    rows = [
        "| index type | collection | clause | filter | helpers in its file | shared modules |",
        "|---|---|---|---|---|---|",
    ]
    for path in sorted(INDEXES.glob("[a-z]*.py")):
        count = pieces(path)
        own = [str(count[piece]) for piece in ("collection", "clause", "filter", "other")]
        rows.append(f"| `{path.stem}` | {' | '.join(own)} | {', '.join(f'`{n}`' for n in shared_by(path)) or 'none'} |")
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
