"""Building one index of each type, against reading its columns once; and the bytes that each keeps of an object.

An index that runs a user's function, or parses text, is held against running that function once over the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import session
from skipstone import (
    BloomFilterIndex,
    Dataset,
    FeatureIndex,
    FormattedIndex,
    GapListIndex,
    GeoBoxIndex,
    HybridIndex,
    Index,
    MetricDistanceIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
)

PREDICATES = {"large": "n > 1e13", "host": "url LIKE 'https://host-7/%'", "north": "lat > 60 AND lng < 0"}


@dataclass(frozen=True)
class Case:
    """An index, what Spark is asked for in comparison, the target, and the formula of the paper's table I in bytes."""

    index: Index
    scan: tuple[str, ...]
    target: float = 2.0
    formula: str | None = None


CASES = (
    Case(GapListIndex("n", gaps=8), ("n",), formula="2 * 8 * 8"),
    Case(GapListIndex("url", gaps=8), ("url",)),
    Case(PrefixIndex("url", length=15), ("url",), formula="15 * prefixes"),
    Case(SuffixIndex("url", length=3), ("url",), formula="3 * suffixes"),
    Case(GeoBoxIndex("lat", "lng", boxes=4), ("lat", "lng"), formula="4 * 4 * 8"),
    Case(GeoBoxIndex.of_geometry("shape"), ("ST_GeomFromWKT(shape)",), 1.3, "4 * 4 * 8"),
    Case(MetricDistanceIndex("v"), ("v",), formula=f"2 * 8 + {data.DIMENSIONS} * 8"),
    Case(FormattedIndex("user_agent", extract="getAgentName"), ("getAgentName(user_agent)",), 1.3),
    Case(FeatureIndex(PREDICATES), tuple(f"({p})" for p in PREDICATES.values()), formula="3 / 8"),
    Case(ValueListIndex("tags"), ("tags",)),
    Case(BloomFilterIndex("tags"), ("tags",)),
    Case(HybridIndex("tags"), ("tags",)),
)


def measure(*, small: bool) -> list[Row]:
    """Compare the two for each type, and report bytes per object."""
    generated = data.mixed(20 if small else 200)
    rows: list[Row] = []
    with session() as spark:
        skipstone.geo.register(spark)
        skipstone.agents.register(spark)
        df = spark.read.parquet(generated.path)
        dataset = Dataset(df)
        counts = df.selectExpr(
            "count(DISTINCT _metadata.file_path, left(url, 15)) AS prefixes",
            "count(DISTINCT _metadata.file_path, right(url, 3)) AS suffixes",
        ).first()
        known = {name: counts[name] / generated.objects for name in ("prefixes", "suffixes")}
        for case in CASES:
            taken = interleave(
                {
                    "index": Subject(lambda case=case: dataset.create_indexes(case.index), dataset.drop_indexes),
                    "scan": Subject(
                        lambda case=case: df.selectExpr(*case.scan).write.format("noop").mode("overwrite").save()
                    ),
                },
                repeats=1 if small else 3,
            )
            size = dataset.describe().first()["bytes"] / generated.objects
            expected = None if case.formula is None else eval(case.formula, {}, known)
            details = {"metadata_bytes_per_object": size, "formula_bytes": expected}
            what = f"create_indexes({case.index.name}) / Spark reads {', '.join(case.scan)[:60]}"
            rows.append(ratio(what, taken["index"], taken["scan"], case.target, str(generated), details=details))
            if expected is not None:
                bound = 1.2 * expected + 16
                text = f"{case.formula} = {expected:,.1f} bytes by table I; target 1.2 x + 16"
                rows.append(Row(f"{case.index.name}: bytes an object", size, "B", bound, text))
        dataset.drop_indexes()
    return rows
