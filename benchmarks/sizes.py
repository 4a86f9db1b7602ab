"""How large the metadata of an object is, beside the least that is known for what it says.

Objects have the paper's height and distinct values.  What an index keeps for exact answers (values, prefixes, suffixes,
bounds) is held against the same lists of all objects, sorted and compressed together by LZMA as strongly as it can: no
part of that could be looked up by itself.  A Bloom filter is held against the bound of information theory for sets that
err with a given probability, log2(1 / fpp) bits a value; no Bloom filter takes less than 1.44 times as much.
"""

from __future__ import annotations

import lzma
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.functions import expr

import skipstone
from benchmarks.datasets import database_logs
from benchmarks.measures import Row
from benchmarks.session import session
from skipstone import (
    BloomFilterIndex,
    Dataset,
    FormattedIndex,
    HybridIndex,
    Index,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FPP = 0.01
LENGTH = 15


@dataclass(frozen=True)
class Case:
    """An index, and in SQL what it says of an object's rows: exactly, or that a value may be among these."""

    index: Index
    says: str
    exactly: bool = True


CASES = (
    Case(ValueListIndex("db_name"), "db_name"),
    Case(BloomFilterIndex("db_name", fpp=FPP), "db_name", exactly=False),
    Case(HybridIndex("db_name", threshold=1, fpp=FPP), "db_name", exactly=False),
    Case(PrefixIndex("db_name", length=LENGTH), f"left(db_name, {LENGTH})"),
    Case(SuffixIndex("db_name", length=LENGTH), f"right(db_name, {LENGTH})"),
    Case(ValueListIndex("account_name"), "account_name"),
    Case(FormattedIndex("user_agent", extract="getAgentName"), "getAgentName(user_agent)"),
    Case(MinMaxIndex("http_status"), "http_status"),
)


def measure(*, small: bool) -> list[Row]:
    """Build each index alone, and compress what it says by itself."""
    generated = database_logs.tall(3 if small else 24, "named")
    rows: list[Row] = []
    with session() as spark:
        skipstone.agents.register(spark)
        df = spark.read.parquet(str(generated.path))
        dataset = Dataset(df)
        for case in CASES:
            dataset.create_indexes(case.index)
            size = dataset.describe().first()["bytes"] / generated.objects
            dataset.drop_indexes()
            least, told = _least(df, case)
            least /= generated.objects
            text = f"{generated}; {size:,.0f} bytes an object, {told} {least:,.0f}"
            details = {"metadata_bytes_per_object": size, "least_bytes_per_object": least}
            what = f"{case.index.name}: metadata / the least that is known"
            rows.append(Row(what, size / least, "x", None, text, details=details))
    return rows


def _least(df: DataFrame, case: Case) -> tuple[float, str]:
    """Return the bytes that all objects would take at the least, and by what."""
    said = df.selectExpr("_metadata.file_name AS file", f"CAST({case.says} AS STRING) AS value").where(
        "value IS NOT NULL"
    )
    if not case.exactly:
        return said.distinct().count() * math.log2(1 / FPP) / 8, "by information theory"
    kept = ("min(value)", "max(value)") if isinstance(case.index, MinMaxIndex) else ("collect_set(value)",)
    lists = said.groupBy("file").agg(*map(expr, kept)).orderBy("file").collect()
    texts = ["\n".join(sorted(row[1]) if len(row) == 2 else row[1:]) for row in lists]
    return len(lzma.compress("\n\n".join(texts).encode(), preset=9 | lzma.PRESET_EXTREME)), "by LZMA"
