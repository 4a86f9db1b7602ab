"""A dataset and predicates for the index types that serve functions: geometries, distances, agents, elements, features.

The predicates go both routes that a user's function can take: an index that holds its results, and what it implies of
the columns.  The functions are Python's, pandas' and Spark's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import skipstone
from skipstone import (
    BloomFilterIndex,
    FeatureIndex,
    FormattedIndex,
    GeoBoxIndex,
    HybridIndex,
    MetricDistanceIndex,
    MinMaxIndex,
    ValueListIndex,
)
from skipstone.expressions.ranges import at_least, at_most, between
from tests.soundness.datasets import Made, _age
from tests.soundness.predicates import Node

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from skipstone.indexing.index import Index
    from tests.soundness.datasets import Spec

FUNCTION_TYPES = ("geobox", "metricdistance", "formatted", "feature", "valuelist", "bloomfilter", "hybrid", "minmax")
AGENTS = ("Firefox/1.0", "Firefox/2.0", "Chrome/99", "curl", "", "/", "Hacker/0", "wget/é", None)
WORDS = ("stone", "stones", "skip", "skipp", "a", "", "ab", "abc", "zebra", "zebras", None)
TAGS = ("red", "green", "blue", "gold", "grey", "")
ODD = (math.nan, math.inf, -math.inf, -0.0)
FEATURES = {
    "old": "n > 70",
    "odd": "n % 2 = 1",
    "near": "lat BETWEEN 1 AND 3 AND lng > 2",
    "either": "word = 'skip' OR n < 5",
    "letters": "word LIKE 's%e'",
    "agent": "agent_of(ua) = 'Hacker'",
    "missing": "n IS NULL",
}
SCHEMA = pa.schema(
    [
        ("rid", pa.int32()),
        ("n", pa.int32()),
        ("lat", pa.float64()),
        ("lng", pa.float64()),
        ("shape", pa.string()),
        ("ua", pa.string()),
        ("word", pa.string()),
        ("v", pa.list_(pa.float64())),
        ("tags", pa.list_(pa.string())),
        ("numbers", pa.list_(pa.int32())),
        ("attrs", pa.map_(pa.string(), pa.int32())),
    ]
)


# As in a script of a user's.  Functions of this module would be known by all sources of these tests, and by what those
# import: every planning would look at them, which is what tests/functions/identity is about.
_SCRIPT = """
def agent_of(ua):
    return None if not ua or ua.startswith("/") else ua.split("/")[0]

def is_middle(n):
    return None if n is None else 40 <= n <= 60

def is_far_north(lat):
    return lat > 6
"""


def _of_a_script() -> dict[str, Any]:
    """Make the functions: the name before the slash of an agent, and two places."""
    made: dict[str, Any] = {"__name__": "__main__"}
    exec(_SCRIPT, made)
    return made


def register(spark: SparkSession) -> None:
    """Register the functions that the predicates call, and what is known of them."""
    made = _of_a_script()
    skipstone.geo.register(spark)
    skipstone.distances.register(spark)
    spark.udf.register("agent_of", made["agent_of"], "string")
    skipstone.state_version(spark, "agent_of", "1")
    spark.udf.register("is_middle", made["is_middle"], "boolean")
    skipstone.udf_filter(
        spark,
        "is_middle",
        lambda n: between(n, 40, 60),
        when_false=lambda n: None if (low := at_most(n, 39)) is None else _either(low, at_least(n, 61)),
    )

    made["is_far_north"].__annotations__ = {"lat": pd.Series, "return": pd.Series}
    spark.udf.register("is_far_north", F.pandas_udf(made["is_far_north"], "boolean"))
    skipstone.udf_filter(spark, "is_far_north", lambda lat: at_least(lat, 6))


def _either(one: Any, other: Any) -> Any:
    from skipstone.expressions.tree import Or

    return Or((one, other))


def indexes(spec: Spec) -> list[Index]:
    """Every type of index that serves functions, on the columns that they are called with."""
    made: dict[str, list[Index]] = {
        "geobox": [GeoBoxIndex("lat", "lng", boxes=spec.gaps), GeoBoxIndex.of_geometry("shape", boxes=spec.gaps)],
        "metricdistance": [
            MetricDistanceIndex("v"),
            MetricDistanceIndex("v", metric="manhattan", origins=[[0.0, 0.0], [9.0, 1.0]]),
            MetricDistanceIndex("v", metric="angular"),
            MetricDistanceIndex("word", metric="levenshtein"),
        ],
        "formatted": [FormattedIndex("ua", extract="agent_of")],
        "feature": [FeatureIndex(FEATURES)],
        "valuelist": [ValueListIndex("tags"), ValueListIndex("numbers"), ValueListIndex("attrs", of="keys")],
        "bloomfilter": [BloomFilterIndex("tags"), BloomFilterIndex("attrs", of="keys")],
        "hybrid": [HybridIndex("tags", threshold=spec.threshold), HybridIndex("attrs", of="values", threshold=1)],
        "minmax": [MinMaxIndex("lat"), MinMaxIndex("lng"), MinMaxIndex("n")],
    }
    return [index for type_ in spec.types for index in made[type_]]


def make_function_dataset(spec: Spec, folder: Path, random: Random) -> Made:
    """Write objects whose rows lie near each other, as good layouts have them, with odd values strewn in."""
    data = folder / "data"
    data.mkdir(parents=True)
    rid = 0
    for number in range(spec.objects):
        centre = (random.uniform(0, 10), random.uniform(0, 10), random.randrange(100))
        rows = [_row(random, rid + k, *centre) for k in range(0 if number == 0 else random.choice((1, 2, 12)))]
        rid += len(rows)
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), data / f"object-{number:03d}.parquet")
    _age(data)
    ddl = (
        "rid INT, n INT, lat DOUBLE, lng DOUBLE, shape STRING, ua STRING, word STRING, v ARRAY<DOUBLE>, "
        "tags ARRAY<STRING>, numbers ARRAY<INT>, attrs MAP<STRING, INT>"
    )
    return Made(spec, str(data), ddl, [], {})


def _row(random: Random, rid: int, lat: float, lng: float, n: int) -> dict[str, Any]:
    def maybe(value: Any, share: float = 0.1) -> Any:
        return None if random.random() < share else value

    def around(place: float) -> float:
        return random.choice(ODD) if random.random() < 0.04 else round(place + random.uniform(-0.7, 0.7), 1)

    x, y = round(lng + random.uniform(-0.5, 0.5), 1), round(lat + random.uniform(-0.5, 0.5), 1)
    shapes = (f"POINT({x} {y})", f"LINESTRING({x} {y}, {x + 0.3} {y})", "POINT EMPTY", f"POINT({x} {y})")
    local = TAGS[n % 5 : n % 5 + 2]
    return {
        "rid": rid,
        "n": maybe(n + random.randrange(8)),
        "lat": maybe(around(lat)),
        "lng": maybe(around(lng)),
        "shape": maybe(random.choice(shapes)),
        "ua": random.choice(AGENTS[n % 6 : n % 6 + 3]),
        "word": random.choice(WORDS[n % 8 : n % 8 + 3]),
        "v": maybe([around(lat), around(lng)] if random.random() < 0.9 else [around(lat)] * random.choice((0, 1, 3))),
        "tags": maybe([maybe(random.choice(local)) for _ in range(random.randrange(3))]),
        "numbers": maybe([maybe(n + random.randrange(4)) for _ in range(random.randrange(3))]),
        "attrs": maybe({tag: maybe(n % 9) for tag in local[: random.randrange(3)]}),
    }


@dataclass
class FunctionPredicates:
    """Makes predicates with functions."""

    random: Random

    def predicate(self, depth: int = 2) -> Node:
        """Make a tree; most are one leaf."""
        random = self.random
        if depth == 0 or random.random() < 0.6:
            return Node(random.choice(_LEAVES)(self))
        children = tuple(self.predicate(depth - 1) for _ in range(2))
        return random.choice(
            (
                Node("{} AND {}", children),
                Node("{} AND {}", children),
                Node("{} OR {}", children),
                Node("NOT {}", children[:1]),
                Node("coalesce({}, false)", children[:1]),
            )
        )

    def number(self, low: float = 0, high: float = 10) -> float:
        """Return a coordinate."""
        return round(self.random.uniform(low, high), 1)

    def order(self) -> str:
        """Return a comparison."""
        return self.random.choice(("<", "<", "<=", "=", ">", ">=", "<>"))

    def area(self) -> str:
        """Return a constant geometry: a box, a triangle, a box with a hole, a point, a line, or nothing."""
        x, y, w = self.number(-1), self.number(-1), self.number(0.1, 4)
        hole = f", ({x + w / 4} {y + w / 4}, {x + w / 2} {y + w / 4}, {x + w / 2} {y + w / 2}, {x + w / 4} {y + w / 4})"
        box = f"({x} {y}, {x + w} {y}, {x + w} {y + w}, {x} {y + w}, {x} {y})"
        wkt = self.random.choice(
            (
                f"POLYGON({box})",
                f"POLYGON(({x} {y}, {x + w} {y}, {x} {y + w}, {x} {y}))",
                f"POLYGON({box}{hole})",
                f"POINT({x} {y})",
                f"LINESTRING({x} {y}, {x + w} {y + w})",
                "POLYGON EMPTY",
            )
        )
        return f"ST_GeomFromWKT('{wkt}')"

    def place(self) -> str:
        """Return a geometry of the row."""
        return self.random.choice(("ST_Point(lat, lng)", "ST_Point(lat, lng)", "ST_GeomFromWKT(shape)"))

    def relation(self) -> str:
        """Compare the row's geometry with a constant."""
        name = self.random.choice(("ST_Contains", "ST_Within", "ST_Intersects", "ST_Covers", "ST_Disjoint"))
        pair = [self.area(), self.place()]
        if self.random.random() < 0.5:
            pair.reverse()
        return f"{name}({', '.join(pair)})"

    def distance(self) -> str:
        """Compare a distance with a radius."""
        name = self.random.choice(("euclidean", "manhattan", "angular", "cosine"))
        radius = self.number(-0.5, 3 if name in ("euclidean", "manhattan") else 1.5)
        pair = ["v", f"array({self.number()}D, {self.number()}D)"]
        if self.random.random() < 0.3:
            pair.reverse()
        return f"{name}_distance({', '.join(pair)}) {self.order()} {radius}D"

    def agent(self) -> str:
        """Test the name of an agent."""
        names = ("Firefox", "Chrome", "curl", "Hacker", "wget", "nobody")
        name, other = self.random.choice(names), self.random.choice(names)
        return self.random.choice(
            (
                f"agent_of(ua) = '{name}'",
                f"agent_of(ua) <> '{name}'",
                f"agent_of(ua) IN ('{name}', '{other}')",
                f"agent_of(ua) LIKE '%{name[1:3]}%'",
                f"agent_of(ua) NOT IN ('{name}', '{other}')",
                "agent_of(ua) IS NULL",
                f"agent_of(ua) > '{name}'",
            )
        )

    def element(self) -> str:
        """Test elements of arrays and maps."""
        random = self.random
        tag, other, n = random.choice(TAGS), random.choice(TAGS), random.randrange(105)
        return random.choice(
            (
                f"array_contains(tags, '{tag}')",
                f"arrays_overlap(tags, array('{tag}', '{other}'))",
                f"arrays_overlap(array('{tag}'), tags)",
                f"exists(tags, x -> x = '{tag}')",
                f"exists(tags, x -> x LIKE '{tag[:1]}%' AND x > '{other}')",
                "exists(tags, x -> x IS NULL)",
                f"tags[0] = '{tag}'",
                f"array_contains(numbers, {n})",
                f"exists(numbers, x -> x {self.order()} {n})",
                f"exists(numbers, x -> x > {n} AND x < {n + 2})",
                f"map_contains_key(attrs, '{tag}')",
                f"attrs['{tag}'] = {n % 9}",
                f"attrs['{tag}'] {self.order()} {n % 9}",
                f"array_contains(map_values(attrs), {n % 9})",
                f"element_at(attrs, '{tag}') IS NOT NULL",
            )
        )

    def implied(self) -> str:
        """Call a function of which it is known what it implies."""
        return self.random.choice(("is_middle(n)", "NOT is_middle(n)", "is_far_north(lat)", "is_middle(n + 1)"))

    def feature(self) -> str:
        """Ask for a feature, or for something like it."""
        return self.random.choice((*FEATURES.values(), "n > 69", "word LIKE 's%'", "lat BETWEEN 1 AND 3"))

    def box(self) -> str:
        """Ask for a range of both coordinates."""
        x, y = self.number(), self.number()
        return self.random.choice(
            (
                f"lat BETWEEN {y}D AND {y + 1}D AND lng BETWEEN {x}D AND {x + 1}D",
                f"lng > {x}D AND n < 90 AND lat <= {y}D",
                f"lat < {y}D",
                f"lat = {y}D AND lng = {x}D",
            )
        )

    def reach(self) -> str:
        """Compare a distance between geometries with a radius."""
        radius = self.number(-0.2, 3)
        pair = [self.area(), self.place()]
        if self.random.random() < 0.5:
            pair.reverse()
        return self.random.choice(
            (
                f"ST_DWithin({pair[0]}, {pair[1]}, {radius}D)",
                f"ST_Distance({pair[0]}, {pair[1]}) {self.order()} {radius}D",
            )
        )

    def edits(self) -> str:
        """Compare an edit distance with a number."""
        word = self.random.choice([w for w in WORDS if w is not None])
        return f"levenshtein(word, '{word}') {self.order()} {self.random.randrange(5)}"


_LEAVES = (
    FunctionPredicates.relation,
    FunctionPredicates.relation,
    FunctionPredicates.reach,
    FunctionPredicates.box,
    FunctionPredicates.distance,
    FunctionPredicates.distance,
    FunctionPredicates.edits,
    FunctionPredicates.agent,
    FunctionPredicates.element,
    FunctionPredicates.element,
    FunctionPredicates.implied,
    FunctionPredicates.feature,
)
