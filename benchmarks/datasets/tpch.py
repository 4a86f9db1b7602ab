"""TPC-H: its tables, the two large ones laid out by date, and its 22 queries.

``tpchgen-cli`` (extra ``bench``) generates the tables.  lineitem is laid out by ship date and orders by order date, as
facts are that arrive day by day; the other tables stay as they were generated.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets.writing import WRITTEN, folder

LAID_OUT = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
OTHERS = ("customer", "part", "partsupp", "supplier", "nation", "region")
OBJECTS = 256


def tables(scale: float) -> dict[str, Path]:
    """Give the folder of each table, generated unless it is there; a folder appears when it is complete."""
    root = folder() / f"tpch-{scale:g}"
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
    command = [_generator(), "parquet", "-s", f"{scale:g}", f"--tables={name}", f"--output-dir={target}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if name in LAID_OUT:
        generated = target / f"{name}.parquet"
        table = pq.read_table(generated)
        generated.unlink()
        _lay_out(_with_plain_text(table).sort_by(LAID_OUT[name]), target)


def _lay_out(table: pa.Table, target: Path) -> None:
    """Cut a table into objects of as many rows each."""
    rows = -(-table.num_rows // OBJECTS)
    for number in range(OBJECTS):
        path = target / f"part-{number:05d}.parquet"
        pq.write_table(table.slice(number * rows, rows), path, compression="snappy", version="2.6")


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
    """Give the queries, ``Q1`` to ``Q22``; Q11's fraction depends on the scale, as the specification says."""
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    text = Template(re.sub("(?m)^--.*$", "", text)).substitute(fraction=f"{0.0001 / scale:.10f}")
    statements = [statement.strip() for statement in text.split(";") if statement.strip()]
    return {f"Q{number}": statement for number, statement in enumerate(statements, 1)}
