"""Functions on geometries through Spark: the paper's query, both orders, a function registered anew."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import skipstone
from skipstone import Dataset, MinMaxIndex, SuffixIndex, ValueListIndex
from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.indexes.geo_box.index import GeoBoxIndex

INDIA = (
    "POLYGON ((68.1 23.7, 70.8 20.7, 72.8 21.1, 72.8 19.2, 73.5 15.9, 74.9 12.7, 76.6 8.9, 77.5 8.0, 78.3 8.9, "
    "79.9 10.4, 79.9 12.1, 80.3 15.9, 82.2 16.6, 85.1 19.5, 87.0 21.5, 88.9 21.7, 92.4 25.0, 97.3 28.3, 92.5 27.9, "
    "88.8 27.3, 88.1 26.4, 83.3 27.4, 81.1 30.2, 78.7 31.5, 78.9 34.3, 77.8 35.5, 74.0 34.3, 74.4 31.0, 69.5 26.9, "
    "68.1 23.7))"
)
CITIES = ("Chennai", "JaiPur", "KanPur", "Mumbai")  # by rows of cells, from the south


@pytest.fixture(scope="module")
def weather(spark, tmp_path_factory):
    """Sixty-four objects, each a cell of the world in which there is one kind of city; some rows are odd."""
    folder = tmp_path_factory.mktemp("weather")
    rng = np.random.default_rng(11)
    for number in range(64):
        south, west = -90 + number // 8 * 22.5, -180 + number % 8 * 45
        lat, lng = south + rng.random(40) * 22.5, west + rng.random(40) * 45
        columns = {
            "id": pa.array(number * 40 + np.arange(40)),
            "lat": pa.array([None if n == 3 else float(v) for n, v in enumerate(lat)], pa.float64()),
            "lng": pa.array([np.nan if n == 5 and number == 0 else float(v) for n, v in enumerate(lng)], pa.float64()),
            "place": pa.array(shapely.to_wkb(shapely.points(lng, lat))),
            "city": pa.array([CITIES[number // 8 % 4]] * 40),
            "temp": pa.array(rng.normal(20, 9, 40)),
        }
        pq.write_table(pa.table(columns), folder / f"part-{number:03d}.parquet")
    path = str(folder)
    spark.read.parquet(path).createOrReplaceTempView("weather")
    skipstone.geo.register(spark)
    return path


def run(spark, query):
    """Run with skipping and without; give the rows, which must be the same, and what was said of the first."""
    with skipstone.skipping_stats(spark) as stats:
        found = spark.sql(query).collect()
    spark.conf.set("spark.skipstone.enabled", "false")
    try:
        assert spark.sql(query).collect() == found
    finally:
        spark.conf.unset("spark.skipstone.enabled")
    return found, stats[-1]


@pytest.mark.parametrize("kind", ["boxes", "bounds"])
def test_the_query_of_the_paper_skips_by_both_conditions(spark, weather, kind):
    places = [GeoBoxIndex("lat", "lng")] if kind == "boxes" else [MinMaxIndex("lat"), MinMaxIndex("lng")]
    names = [SuffixIndex("city", length=3)] if kind == "boxes" else [ValueListIndex("city")]
    dataset = Dataset.for_path(spark, weather)
    dataset.create_indexes(*places, *names)
    try:
        inside, like = f"ST_Contains('{INDIA}', lat, lng)", "city LIKE '%Pur'"
        kept = {}
        for where in (inside, like, f"{inside} AND {like}"):
            rows, stats = run(spark, f"SELECT max(temp) FROM weather WHERE {where}")
            kept[where] = stats.objects.kept
            assert rows[0][0] is not None
        assert kept[inside] <= 8
        assert kept[like] == 32
        assert kept[f"{inside} AND {like}"] < min(kept[inside], kept[like])
    finally:
        dataset.drop_indexes()


def test_every_form_of_a_place_is_served(spark, weather):
    dataset = Dataset.for_path(spark, weather)
    dataset.create_indexes(GeoBoxIndex("lat", "lng"), GeoBoxIndex.of_geometry("place"))
    try:
        for where in (
            f"ST_Contains(ST_GeomFromWKT('{INDIA}'), ST_Point(lat, lng))",
            f"ST_Within(place, '{INDIA}')",
            f"ST_Intersects(ST_WKTToSQL('{INDIA}'), place)",
            "ST_Distance(ST_Point(lat, lng), ST_Point(20, 78)) < 5",
            "5 >= ST_Distance(place, ST_Point(20, 78))",
            "ST_DWithin(place, ST_Buffer(ST_Point(20, 78), 1), 4.0)",
            "lat BETWEEN 10 AND 20 AND lng > 70 AND lng <= 80",
        ):
            found, stats = run(spark, f"SELECT id FROM weather WHERE {where} ORDER BY id")
            assert found, where
            assert stats.objects.skipped > 50, where
            assert not stats.not_used, where
    finally:
        dataset.drop_indexes()


def test_the_order_is_what_the_set_says_and_other_functions_are_not_ours(spark, weather):
    dataset = Dataset.for_path(spark, weather)
    dataset.create_indexes(GeoBoxIndex("lat", "lng"))
    try:
        query = "SELECT id FROM weather WHERE ST_Contains('{}', ST_Point({})) ORDER BY id"
        first, stats = run(spark, query.format(INDIA, "lat, lng"))
        assert first
        assert stats.objects.skipped > 50
        skipstone.geo.register(spark, order="lng_lat")
        second, stats = run(spark, query.format(INDIA, "lng, lat"))
        assert second == first
        assert stats.objects.skipped > 50
        spark.udf.register("ST_Contains", lambda shape, point: True, "boolean")
        everything, stats = run(spark, query.format(INDIA, "lng, lat"))
        assert len(everything) == 64 * 40
        assert stats.objects.skipped == 0
        assert any("skipstone.geo.register" in reason for reason in stats.not_used)
    finally:
        dataset.drop_indexes()
        skipstone.geo.register(spark)
    _, stats = run(spark, "SELECT 1 FROM weather WHERE id = 1")
    assert stats.objects.skipped == 0


def test_damaged_geometries_leave_their_object_without_an_index(spark, tmp_path):
    skipstone.geo.register(spark)
    for number, text in enumerate(["POINT (1 1)", "POINT (5 5)", "CIRCULARSTRING (0 0, 1 1, 2 0)", "POINT (1 1)"]):
        pq.write_table(pa.table({"shape": [text]}), tmp_path / f"{number}.parquet")
    dataset = Dataset.for_path(spark, str(tmp_path))
    report = dataset.create_indexes(GeoBoxIndex.of_geometry("shape"))
    assert any("CIRCULARSTRING" in problem for problem in report.problems)
    where = "ST_Contains('POLYGON ((4 4, 6 4, 6 6, 4 6, 4 4))', shape)"
    with skipstone.skipping_stats(spark) as stats:
        spark.read.parquet(str(tmp_path)).where(where)._jdf.queryExecution().optimizedPlan()
    assert stats[-1].objects.skipped == 2


def test_errors_are_clear(spark, weather):
    dataset = Dataset.for_path(spark, weather)
    with pytest.raises(UnsupportedTypeError, match="city is string"):
        dataset.create_indexes(GeoBoxIndex("city", "lat"))
    with pytest.raises(UnsupportedTypeError, match="lat is double"):
        dataset.create_indexes(GeoBoxIndex.of_geometry("lat"))
    with pytest.raises(SettingError, match="lat_lng"):
        skipstone.geo.register(spark, order="north_first")
