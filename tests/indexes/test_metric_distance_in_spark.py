"""Metric distances through Spark: functions registered, objects indexed, queries pruned, no row lost."""

import math

import pytest
from pyspark.sql import functions as F
from tests.support import assert_sound, relevant, settings

from skipstone import Dataset, distances, skipping_stats
from skipstone.engines.spark.functions import state_version
from skipstone.errors import IndexingError, SettingError
from skipstone.functions.distances import own_metrics as _own_metrics
from skipstone.indexes.metric_distance.index import MetricDistanceIndex

OBJECTS = 12
COLUMNS = {
    "v": "array<double>",
    "f": "array<float>",
    "i": "array<int>",
    "p": "struct<lat: double, lng: double>",
    "s": "string",
    "n": "double",
}
WORDS = [
    "skip",
    "stone",
    "skipping stones",
    "été",
    "😀😀😀😀",
    "lake",
    "ripple",
    "",
    "pebble",
    "shore",
    "water",
    "splash",
]


def rows_of(number):
    """Rows near one place each, an odd one among some of them."""
    square, lat, lng = number * number, number * 5, number * 15
    near = [
        f"array({number}.0D, {square}.25D), array(float({number}), float({number})), array({number}, -{number}), "
        f"named_struct('lat', {lat}.5D, 'lng', {lng}.5D), '{WORDS[number]}', {number}.5D",
        f"array({number}.5D, {square}.0D), array(float({number}.5), float({number})), array({number}, {number}), "
        f"named_struct('lat', {lat}.0D, 'lng', {lng}.0D), '{WORDS[number]}s', {number}.0D",
    ]
    if number % 3 == 0:
        near.append("NULL, NULL, NULL, NULL, NULL, NULL")
    if number == 4:
        near.append("array(double('NaN'), 1.0D), array(float('NaN'), float('inf')), array(1), NULL, 'x', 4.25D")
    if number == 5:
        point = "named_struct('lat', 99.0D, 'lng', 1.0D)"
        near.append(f"array(1.0D, NULL), array(float(1), NULL), array(), {point}, 'y', 5.0D")
    return [f"({number}, {row})" for row in near]


@pytest.fixture(scope="module")
def places(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("distances") / "places")
    values = ", ".join(row for number in range(OBJECTS) for row in rows_of(number))
    casts = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in COLUMNS.items())
    frame = spark.sql(f"SELECT number, {casts} FROM VALUES {values} AS t(number, {', '.join(COLUMNS)})")
    frame.coalesce(1).write.partitionBy("number").parquet(folder)
    distances.register(spark)
    spark.udf.register("gap", gap())
    state_version(spark, "gap", "1")
    Dataset.for_path(spark, folder, format="parquet").create_indexes(
        MetricDistanceIndex("v"),
        MetricDistanceIndex("v", metric="manhattan"),
        MetricDistanceIndex("v", metric="angular"),
        MetricDistanceIndex("f"),
        MetricDistanceIndex("i", metric="manhattan", origins=[[0, 0], [5, 5]]),
        MetricDistanceIndex("p", metric="haversine"),
        MetricDistanceIndex("s", metric="levenshtein"),
        MetricDistanceIndex("n", metric="gap", origins=[0.0]),
    )
    return folder


def gap():
    return F.udf(lambda a, b: None if a is None or b is None else abs(a - b), "double")


SERVED = [
    "euclidean_distance(v, array(3.0D, 9.0D)) < 3",
    "euclidean_distance(array(3.0, 9.0), v) <= 1.5",
    "euclidean_distance(v, array(3, 9)) BETWEEN 4 AND 6",
    "NOT euclidean_distance(v, array(3, 9)) > 4",
    "euclidean_distance(v, array(0, 0)) > 50",
    "manhattan_distance(v, array(3.0D, 9.0D)) < 3",
    "manhattan_distance(i, array(3, 3)) = 0",
    "manhattan_distance(i, array(3, 3)) > 20",
    "angular_distance(v, array(1.0D, 0.0D)) < 0.3",
    "cosine_distance(v, array(1.0D, 0.0D)) < 0.05",
    "euclidean_distance(f, array(3.0F, 3.0F)) < 1",
    "haversine_distance(p, array(10.0D, 30.0D)) < 1000000",
    "levenshtein(s, 'stones') <= 1",
    "levenshtein('ripples', s) = 0",
    "levenshtein(s, 'shore') < 2.5",
    "gap(n, 0.0D) < 2",
    "gap(n, 0.0D) > 9 AND levenshtein(s, 'splash') < 3",
]


NOT_SERVED = [
    "levenshtein(s, 'stones', 1) < 1",
    "gap(n, 7.0D) < 1",
    "gap(0.0D, n) < 1",
    "euclidean_distance(v, array(1.0D)) < 5",
    "euclidean_distance(v, array(1.0D, NULL)) < 5",
    "euclidean_distance(v, v) < 1",
    "manhattan_distance(f, array(3.0F, 3.0F)) < 1",
]


def files(frame):
    return {path.replace("file:///", "file:/") for path in frame.inputFiles()}


def test_objects_that_are_far_away_are_skipped_and_no_others(spark, places):
    frame = spark.read.parquet(places)
    everything = files(frame)
    assert len(everything) == OBJECTS
    needed = relevant(spark, frame, [*SERVED, *NOT_SERVED])
    for predicate, due in zip([*SERVED, *NOT_SERVED], needed, strict=True):
        kept = files(frame.where(predicate))
        assert due <= kept, predicate
        if predicate in SERVED:
            assert due, predicate
            assert len(kept) <= 2 * OBJECTS // 3, predicate
        else:
            assert kept == everything, predicate


def test_sparks_own_distance_of_vectors(spark, places):
    if not hasattr(F, "vector_l2_distance"):
        pytest.skip("this Spark has no vector functions")
    predicates = ["vector_l2_distance(f, array(3.0F, 3.0F)) < 1", "vector_l2_distance(f, array(9F, 9F)) >= 12.5"]
    assert assert_sound(spark, spark.read.parquet(places), predicates) >= OBJECTS


def test_a_function_that_was_vouched_for_serves_every_literal(spark, places):
    distances.vouch_for(spark, "gap", [0.0, 1.5, 7.0, -3.0])
    try:
        frame = spark.read.parquet(places)
        assert assert_sound(spark, frame, ["gap(n, 7.0D) < 1", "gap(7.0D, n) < 1"]) >= OBJECTS
        spark.udf.register("gap", F.udf(lambda a, b: 0.0, "double"))
        assert assert_sound(spark, frame, ["gap(n, 7.0D) < 1", "gap(n, 0.0D) < 2"]) == 0
    finally:
        _own_metrics.vouched.pop("gap", None)
        spark.udf.register("gap", gap())
        state_version(spark, "gap", "1")


def test_vouching_for_what_is_not_a_metric(spark):
    spark.udf.register("square_gap", F.udf(lambda a, b: (a - b) ** 2, "double"))
    with pytest.raises(SettingError, match="square_gap is not a metric: from .* it is 4.0, but less by 1.0"):
        distances.vouch_for(spark, "square_gap", [0.0, 1.0, 2.0])
    spark.udf.register("one_way", F.udf(lambda a, b: max(a - b, 0.0), "double"))
    with pytest.raises(SettingError, match="one_way is not a metric"):
        distances.vouch_for(spark, "one_way", [0.0, 1.0])
    with pytest.raises(IndexingError, match="no function is registered as 'not_there'"):
        distances.vouch_for(spark, "not_there")


def test_the_functions_give_null_nan_and_numbers(spark):
    distances.register(spark)
    row = spark.sql(
        """SELECT euclidean_distance(array(0, 0), array(3, 4)), euclidean_distance(array(0), array(3, 4)),
           euclidean_distance(NULL, array(3, 4)), manhattan_distance(array(1.5, NULL), array(3, 4)),
           manhattan_distance(array(double('NaN')), array(1)), angular_distance(array(0, 0), array(1, 1)),
           angular_distance(array(1, 0), array(0, 2)), cosine_distance(array(1, 0), array(-3, 0)),
           haversine_distance(named_struct('lng', 180, 'lat', 0), array(0, -180)),
           haversine_distance(array(91, 0), array(0, 0))"""
    ).first()
    assert tuple(row)[:4] == (5.0, None, None, None)
    assert math.isnan(row[4])
    assert row[5] is None
    assert row[6] == pytest.approx(math.pi / 2)
    assert row[7] == pytest.approx(2.0)
    assert row[8] < 1e-6
    assert row[9] is None


def test_another_session_knows_the_functions_again(spark, places):
    other = spark.newSession()
    with settings(other, spark__skipstone__enabled="true"):
        distances.register(other)
        frame = other.read.parquet(places)
        assert assert_sound(other, frame, ["euclidean_distance(v, array(3.0D, 9.0D)) < 3"]) > 0
        other.udf.register("euclidean_distance", F.udf(lambda a, b: 0.0, "double"))
        assert assert_sound(other, frame, ["euclidean_distance(v, array(3.0D, 9.0D)) < 3"]) == 0


def test_another_function_of_that_name_is_not_taken_for_ours(spark, tmp_path):
    """Registered before the index was made or after it: the index computes our distances and serves no others."""
    folder = str(tmp_path / "d")
    rows = "SELECT id, array(double(id), 0D) AS v FROM range(0, 40, 1, 4)"
    spark.sql(rows).write.parquet(folder)
    query = "euclidean_distance(v, array(0D, 0D)) < 3D"
    dataset = Dataset.for_path(spark, folder)

    def answered():
        with skipping_stats(spark) as stats:
            count = spark.read.parquet(folder).where(query).count()
        return count, stats[-1]

    spark.udf.register("euclidean_distance", lambda v, w: 0.1 * abs(v[0] - w[0]), "double")
    try:
        dataset.create_indexes(MetricDistanceIndex("v"))
        count, stats = answered()
        assert (count, stats.objects.skipped) == (30, 0)
        assert any("euclidean_distance is not known to be" in reason for reason in stats.not_used)
    finally:
        distances.register(spark)
    count, stats = answered()
    assert (count, stats.objects.skipped) == (3, 3)
