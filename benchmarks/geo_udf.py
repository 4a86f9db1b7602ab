"""A needle by a function on geometries: with skipping, without, and rewritten by hand to ranges for Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import enable, session
from skipstone import Dataset, GeoBoxIndex, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WITHOUT_SKIPPING = 100
BY_HAND = 5


def measure(*, small: bool) -> list[Row]:
    """Run the paper's query (section V-D) in three ways, in turn; the slow one last and seldom."""
    generated = data.weather(1_024 if small else 8_192)
    ranges, numbers = data.needle(generated.objects)
    latitudes, longitudes, when = _parts(ranges)
    (south, north), (west, east) = latitudes, longitudes
    triangle = f"POLYGON (({west} {south}, {east} {south}, {east} {north}, {west} {south}))"
    place = f"ST_Contains(ST_WKTToSQL('{triangle}'), ST_Point(lat, lng))"
    inside = f"{place} AND {when}"
    rewritten = f"{inside} AND lat BETWEEN {south} AND {north} AND lng BETWEEN {west} AND {east}"
    with session() as spark:
        skipstone.geo.register(spark)
        Dataset.for_path(spark, generated.path).create_indexes(GeoBoxIndex("lat", "lng"), MinMaxIndex("ts"))
        everything = spark.read.parquet(generated.path)

        def query(predicate: str) -> list[object]:
            df: DataFrame = everything.where(predicate)
            return df.selectExpr("count(*)", "avg(temp)", "max(wind_gust)").collect()

        with skipstone.skipping_stats(spark) as stats:
            answer = query(inside)
        enable(spark, False)
        if query(rewritten) != answer or stats[-1].objects.kept != len(numbers):
            msg = f"the needle is not where it should be: {stats[-1]}"
            raise AssertionError(msg)
        on, off = (lambda: enable(spark, True)), (lambda: enable(spark, False))
        skipping = Subject(lambda: query(inside), on)
        by_hand = interleave(
            {"skipping": skipping, "by hand": Subject(lambda: query(rewritten), off)},
            repeats=5 if small else 10,
            warmups=3,
        )
        without = interleave(
            {"skipping": skipping, "without": Subject(lambda: query(inside), off)}, repeats=2 if small else 3, warmups=0
        )
        with skipstone.skipping_stats(spark) as stats:
            enable(spark, True)
            query(place)
        kept = stats[-1].objects.kept
        alone = interleave(
            {"skipping": Subject(lambda: query(place), on), "without": Subject(lambda: query(place), off)},
            repeats=2,
            warmups=0,
        )
    conditions = (
        f"{generated}, 33 columns, indexed by geobox(lat, lng) and minmax(ts); {len(numbers)} objects match; warm; "
        "listing made once, excluded"
    )
    fast = by_hand["skipping"]
    return [
        ratio(
            "needle by ST_Contains: without skipping / with",
            without["without"],
            without["skipping"],
            WITHOUT_SKIPPING,
            conditions,
            at_least=True,
        ),
        ratio(
            "needle by ST_Contains: rewritten by hand to ranges, without skipping / with",
            by_hand["by hand"],
            fast,
            BY_HAND,
            conditions,
            at_least=True,
        ),
        ratio(
            "all times of one place by ST_Contains alone: without skipping / with",
            alone["without"],
            alone["skipping"],
            WITHOUT_SKIPPING,
            f"{generated}, 33 columns, indexed by geobox(lat, lng); {kept} objects kept; warm",
            at_least=True,
        ),
        Row("… with skipping", fast.median, "s", None, conditions, low=fast.low, high=fast.high),
    ]


def _parts(ranges: str) -> tuple[tuple[str, str], tuple[str, str], str]:
    """Take the needle's predicate apart: the bounds of both coordinates, and the span of time."""
    lat, _, rest = ranges.removeprefix("lat BETWEEN ").partition(" AND lng BETWEEN ")
    lng, _, when = rest.partition(" AND ts ")
    (south, north), (west, east) = lat.split(" AND "), lng.split(" AND ")
    return (south, north), (west, east), f"ts {when}"
