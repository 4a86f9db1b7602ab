"""Metadata that exceeds the driver's bound: a million objects with value lists, evaluated by a cluster's executors.

The metadata is made up and committed through the store; its evaluation needs no data files.  The cluster is a
standalone master with two workers of one core each, as processes on this machine; executors have no Skipstone.  The
same clauses are evaluated in the driver's memory by a store that may use as much as it likes: answers must be equal.
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import skipstone
from benchmarks.measures import Row, Subject, interleave
from benchmarks.memory import _forget_peak, _peak, _resident
from benchmarks.session import heap_used
from benchmarks.synthetic import identity
from skipstone import ValueListIndex
from skipstone.engines.spark.evaluation import SparkPartEvaluator
from skipstone.indexes.value_list import ValueListClause
from skipstone.querying.clause import OrClause
from skipstone.stores.metadata_store import Change, ColumnRecord, IndexRecord, ReadProfile, field_column
from skipstone.stores.parquet.store import ParquetStore

sys.path.insert(0, str(Path(__file__).parent.parent))  # the cluster is the tests'

from tests.servers.cluster import bare_python, standalone_cluster

if TYPE_CHECKING:
    from skipstone.querying.clause import Clause

VALUES = 20
BOUND = 64 << 20
INDEX = ValueListIndex("name")


def measure(*, small: bool) -> list[Row]:
    """Evaluate in the driver and by the executors, in turn."""
    objects = 20_000 if small else 1_000_000
    with tempfile.TemporaryDirectory(prefix="skipstone-cluster-") as scratch:
        folder = Path(scratch)
        root, location = f"file:{folder}/data", f"file:{folder}"
        # By another process: what making it up takes is not to be found in this one's memory.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as writer:
            size = writer.submit(write, root, location, objects).result()
        os.environ["PYSPARK_PYTHON"] = bare_python(folder / "python")
        with standalone_cluster(folder, memory="3g") as master:
            return _measure(master, root, location, objects, size)


def _measure(master: str, root: str, location: str, objects: int, size: int) -> list[Row]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("skipstone-benchmarks")
    settings = {"spark.executor.memory": "2g", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = skipstone.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        bound = min(BOUND, size // 4)
        executors = ParquetStore(location=location, cache_bytes=bound, part_evaluator=SparkPartEvaluator(spark))
        snapshot = executors.latest(root)
        assert snapshot is not None
        clauses = _clauses(objects)
        executors.evaluate(snapshot, clauses[0])  # starts the executors' Python processes
        resident, heap = _resident(), heap_used(spark)
        _forget_peak()
        answers = [executors.evaluate(snapshot, clause) for clause in clauses]
        grown, grown_heap = _peak() - resident, heap_used(spark) - heap
        assert all(answer.by_spark for answer in answers)
        driver = ParquetStore(location=location, cache_bytes=8 * size)
        expected = [driver.evaluate(snapshot, clause) for clause in clauses]
        assert not any(answer.by_spark for answer in expected)
        for found, known in zip(answers, expected, strict=True):
            assert np.array_equal(found.kept, known.kept)
            assert 0 < known.kept.sum() < objects
        roomy = {"location": location, "cache_bytes": 8 * size}
        subjects = {
            "executors": Subject(lambda: executors.evaluate(snapshot, clauses[0])),
            "driver, cold": Subject(lambda: ParquetStore(**roomy).evaluate(snapshot, clauses[0])),
            "driver, warm": Subject(lambda: driver.evaluate(snapshot, clauses[0])),
        }
        taken = interleave(subjects, repeats=5)
    finally:
        spark.stop()
    conditions = (
        f"{objects:,} objects, {VALUES} strings each: {size / 1e6:,.0f} MB in memory, bound {bound / 1e6:,.0f} MB; "
        "two executors of one core"
    )
    rows = [
        Row(f"evaluation of value lists, {name}", t.median, "s", None, conditions, low=t.low, high=t.high)
        for name, t in taken.items()
    ]
    rows.append(Row("… driver's Python at its peak, by executors", grown / 1e6, "MB", size / 1e6, conditions))
    rows.append(Row("… driver's heap, by executors", grown_heap / 1e6, "MB", None, conditions))
    return rows


def _clauses(objects: int) -> list[Clause]:
    """Clauses that keep few objects; strings are ``value-`` and a number below half the number of objects."""
    one, few, other = (
        ValueListClause(INDEX, tuple(f"value-{n:08d}" for n in numbers)) for numbers in ((objects // 3,), (7, 9), (5,))
    )
    return [one, few, OrClause((one, other))]


def write(root: str, location: str, objects: int) -> int:
    """Commit made-up value lists; gives the bytes that they take in memory."""
    numbers = np.random.default_rng(3).integers(0, objects // 2, objects * VALUES)
    texts = pa.DictionaryArray.from_arrays(
        pa.array(numbers.astype(np.int32)), pa.array([f"value-{n:08d}" for n in range(objects // 2)])
    ).cast(pa.string())
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, len(texts) + 1, VALUES, dtype=np.int32)), texts)
    columns = identity(root, objects)
    fields = {"values": lists, "null_count": pa.array(np.zeros(objects, np.int64))}
    columns |= {field_column("v", name): array for name, array in fields.items()}
    record = IndexRecord(
        id="v",
        name=INDEX.name,
        type_name=INDEX.type_name,
        options=dict(INDEX.options()),
        columns=(ColumnRecord("name", "string"),),
        profile=ReadProfile("parquet", {}, {}, ""),
        fields={name: str(array.type) for name, array in fields.items()},
    )
    ParquetStore(location=location).commit(root, None, Change((record,), pa.table(columns)))
    return int(lists.nbytes)
