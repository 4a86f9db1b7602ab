"""The example notebook runs from its first cell to its last, and its results show themselves."""

from __future__ import annotations

import ast
import json
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def shown_by(cell, names):
    """Run a cell as a notebook does, and give what its last line shows."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell["id"], "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)


def test_the_notebook_runs(spark):
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)
    names = {"__name__": "__main__"}
    shown = [shown_by(cell, names)._repr_html_() for cell in cells]
    titles = [text.partition('class="title">')[2].partition("<")[0] for text in shown]
    assert titles == [
        "Dataset",
        "Indexed",
        "Indexes",
        "Last query",
        "Queries of this block",
        "Explanation",
        "Indicators",
        "Report",
        "Report",
    ]
    assert "Create hybrid(status)" in shown[-2]
    assert names["after"].as_dict()["compared"]["before"]["objects_read"] == 39
    assert names["after"].as_dict()["compared"]["after"]["objects_read"] == 17
