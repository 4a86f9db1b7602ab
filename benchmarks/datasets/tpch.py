"""TPC-H: its tables, the two large ones laid out by date, and its 22 queries.

``tpchgen-cli`` (extra ``bench``) generates the tables.  lineitem is laid out by ship date and orders by order date, as
facts are that arrive day by day: an object holds a day, or at smaller scales a week, so that it has about a megabyte.
The other tables stay as they were generated.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets.writing import WRITTEN, folder

LAID_OUT = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
OTHERS = ("customer", "part", "partsupp", "supplier", "nation", "region")
_FIRST_DAY = 8_035  # 1992-01-01, in days since 1970: no order is older


def days(scale: float) -> int:
    """Return how many days an object of a large table holds."""
    return 1 if scale >= 10 else 7


def tables(scale: float) -> dict[str, Path]:
    """Return the folder of each table, generated unless it is there; a folder appears when it is complete."""
    root = folder() / f"tpch-{scale:g}-{days(scale)}"
    found = {name: root / name for name in (*LAID_OUT, *OTHERS)}
    for name, path in found.items():
        if not path.exists():
            partial = path.with_name(f".{name}")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            _write(name, scale, partial)
            for file in partial.iterdir():
                os.utime(file, (WRITTEN, WRITTEN))
            partial.rename(path)
    return found


def _write(name: str, scale: float, target: Path) -> None:
    """Generate one table and lay it out."""
    if name not in LAID_OUT:
        _generate(name, scale, target)
        return
    pieces = target / "pieces"
    parts = max(1, round(scale))  # all at once may not fit into memory
    for part in range(1, parts + 1):
        _generate(name, scale, target, f"--parts={parts}", f"--part={part}")
        generated = target / name / f"{name}.{part}.parquet"
        for number, rows in cut(pq.read_table(generated), LAID_OUT[name], days(scale)):
            (pieces / f"{number:05d}").mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, pieces / f"{number:05d}" / f"{part}.parquet", compression="snappy")
        shutil.rmtree(target / name)
    for piece in sorted(pieces.iterdir()):
        rows = pa.concat_tables(pq.read_table(file) for file in sorted(piece.iterdir()))
        path = target / f"part-{piece.name}.parquet"
        pq.write_table(rows.sort_by(LAID_OUT[name]), path, compression="snappy", version="2.6")
    shutil.rmtree(pieces)


def _generate(name: str, scale: float, target: Path, *options: str) -> None:
    """Generate a table, or a part of it."""
    command = [_generator(), "parquet", "-s", f"{scale:g}", f"--tables={name}", f"--output-dir={target}", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def cut(table: pa.Table, column: str, span: int) -> Iterator[tuple[int, pa.Table]]:
    """Cut rows into those of as many days each; give them by the number of their span of days, in order."""
    table = _with_plain_text(table).sort_by(column)
    spans = (table.column(column).cast(pa.int32()).to_numpy() - _FIRST_DAY) // span
    numbers, starts = np.unique(spans, return_index=True)
    for number, start, end in zip(numbers, starts, [*starts[1:], len(spans)], strict=True):
        yield int(number), table.slice(start, end - start)


def _with_plain_text(table: pa.Table) -> pa.Table:
    """Turn views of strings into strings, which can be sorted along with the rest."""
    fields = [f.with_type(pa.large_string()) if f.type == pa.string_view() else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _generator() -> str:
    """Find the program that generates the tables, beside this Python or on the path."""
    found = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")
    if found is None:
        msg = "tpchgen-cli is not installed; run pip install 'skipstone[bench]'"
        raise RuntimeError(msg)
    return found


def queries(scale: float) -> dict[str, str]:
    """Return the queries, ``Q1`` to ``Q22``; Q11's fraction depends on the scale, as the specification says."""
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    text = Template(re.sub("(?m)^--.*$", "", text)).substitute(fraction=f"{0.0001 / scale:.10f}")
    statements = [statement.strip() for statement in text.split(";") if statement.strip()]
    return {f"Q{number}": statement for number, statement in enumerate(statements, 1)}
