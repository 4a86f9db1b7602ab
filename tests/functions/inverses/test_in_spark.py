"""Functions of times and texts in Spark itself: what is skipped, what is said, and which settings matter."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import conf, skipping_off, write_objects

from skipstone import Dataset, HybridIndex, MinMaxIndex, ValueListIndex, last_query
from skipstone.engines.spark.attach import planner_of
from skipstone.engines.spark.client import Client
from skipstone.functions.inverses.zones import read_rules

pytestmark = pytest.mark.slow

NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}


@pytest.fixture(scope="module")
def times(spark, tmp_path_factory):
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}), skipping_off(spark):
        path = write_objects(
            spark,
            tmp_path_factory.mktemp("times") / "data",
            "ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE, s STRING, id BIGINT",
            [
                "('2025-12-31 12:00:00', '2025-12-31 12:00:00', '2025-12-31', 'Ab', 7), (NULL, NULL, NULL, NULL, NULL)",
                "('2026-01-01 02:00:00', '2026-01-01 02:00:00', '2026-01-01', 'zz', 70)",
                "('2026-03-08 06:59:59', '2026-03-08 06:59:59', '2026-03-08', '\u212a', 71)",
                "('2027-01-01 12:00:00', '2027-01-01 12:00:00', '2027-01-01', 'aB', 8)",
            ],
        )
    Dataset(spark.read.parquet(path)).create_indexes(
        *(MinMaxIndex(column) for column in ("ts", "n", "d", "id")), ValueListIndex("s"), HybridIndex("s", threshold=1)
    )
    return spark.read.parquet(path)


def objects_read(times, predicate: str) -> int:
    """Run a query both ways; give how many objects were read."""
    spark = times.sparkSession
    with skipping_off(spark):
        expected = len(times.where(predicate).collect())
    assert len(times.where(predicate).collect()) == expected
    return last_query(spark)[-1].objects.kept


@pytest.mark.parametrize(
    ("predicate", "read"),
    [
        ("year(ts) = 2026", 1),  # in New York the second object is of 2025
        ("year(ts) < 2026", 2),
        ("year(ts) <> 2026", 3),
        ("NOT year(ts) IN (2026, 2027)", 2),
        ("year(n) = 2026", 2),
        ("year(d) BETWEEN 2025 AND 2026", 3),
        ("year(ts) = 2026 AND month(ts) = 3", 1),
        ("year(ts) = 2026 AND month(ts) = 4", 0),
        ("year(ts) IN (2025, 2026) AND quarter(ts) = 4", 2),
        ("to_date(ts) = '2026-03-08' AND hour(ts) = 1", 1),
        ("to_date(ts) = '2026-03-08' AND hour(ts) = 3", 0),
        ("date_trunc('MONTH', ts) = TIMESTAMP'2026-03-01'", 1),
        ("trunc(d, 'YEAR') >= DATE'2026-01-01'", 3),
        ("date_format(ts, 'yyyy-MM') = '2025-12'", 2),
        ("extract(YEAR FROM ts) = 2027", 1),
        ("ts LIKE '2025-12-31%'", 2),
        ("left(string(d), 7) = '2026-01'", 1),
        ("unix_timestamp(ts) >= 1798761600", 1),
        ("cast(id AS string) = '7'", 1),
        ("id LIKE '7%'", 3),
        ("lower(s) = 'ab'", 3),  # the Kelvin sign may be anything
        ("upper(s) = 'ZZ'", 2),
    ],
)
def test_objects_are_skipped(times, predicate, read):
    with conf(times.sparkSession, NEW_YORK):
        assert objects_read(times, predicate) == read


def test_the_kelvin_sign_is_not_lost(times):
    assert times.where("lower(s) = 'k'").count() == 1


def test_dates_that_the_old_formatter_writes_are_not_known(times):
    spark = times.sparkSession
    for predicate in ("date_format(ts, 'yyyy') = '2027'", "d LIKE '2027%'"):
        assert objects_read(times, predicate) == 1
        with conf(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
            assert objects_read(times, predicate) == 4


def test_explain_says_what_to_add(times):
    said = str(Dataset(times).explain(times.where("month(ts) = 3")))
    assert "no index serves month(cast(ts as date)) = 3: say which years: add AND year(ts) = …" in said
    assert "no index serves" not in str(Dataset(times).explain(times.where("year(ts) <> 2026")))


def test_a_plan_rests_on_the_rules_of_zones_that_it_looked_at(times):
    spark = times.sparkSession

    def environment(predicate: str) -> tuple[str, ...]:
        times.where(predicate)._jdf.inputFiles()
        return [*planner_of(spark)._plans.values()][-1].environment

    with conf(spark, NEW_YORK):
        assert "zones" in environment("year(ts) = 2026")
        assert "session" not in environment("year(ts) = 2026")
        assert "session" in environment("date_format(ts, 'yyyy') = '2026'")
        assert "zones" not in environment("ts > TIMESTAMP'2026-01-01'")


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Apia", "Europe/Amsterdam", "Asia/Kolkata", "Etc/GMT+5"])
def test_rules_are_those_of_the_jvm(spark, zone):
    said = json.loads(Client(spark).zone_rules(zone))
    rules = read_rules([tuple(pair) for pair in said["transitions"]], said["first"], said["until"])
    seconds = [t + step for t, _ in said["transitions"] for step in (-1, 0, 1)] + [-10_000_000_000, 1_800_000_000]
    with conf(spark, {"spark.sql.session.timeZone": zone}), skipping_off(spark):
        frame = spark.createDataFrame([(second,) for second in seconds], "second BIGINT")
        shown = frame.selectExpr("second", "cast(timestamp_seconds(second) AS timestamp_ntz) AS shown").collect()
    for second, there in shown:
        wall = int((there.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
        assert rules.earliest(wall) <= second * 1_000_000 < rules.latest(wall + 1)


_LEAST = -(1 << 31)
_DATES = [_LEAST + k for k in (0, 1, 3, 6, 7, 22, 40, 200)] + [0, 20_000, (1 << 31) - 1]
_SECONDS = [1_770_000_000, 1_770_889_201_076_117, 1_700_000_000, 1 << 58, -(1 << 62), 0]


@pytest.mark.parametrize(
    ("values", "predicate"),
    [
        (pa.array(_DATES, pa.int32()).cast(pa.date32()), "trunc(c, 'year') >= DATE'2026-01-01'"),
        (pa.array(_DATES, pa.int32()).cast(pa.date32()), "trunc(c, 'month') >= DATE'2026-01-01'"),
        (pa.array(_DATES, pa.int32()).cast(pa.date32()), "trunc(c, 'week') > DATE'2026-01-01'"),
        (pa.array(_DATES, pa.int32()).cast(pa.date32()), "trunc(c, 'month') = date_from_unix_date(2147483626)"),
        (pa.array(_DATES, pa.int32()).cast(pa.date32()), "trunc(c, 'year') = date_from_unix_date(2147483475)"),
        (pa.array(_SECONDS), "from_unixtime(c, 'yyyy') = '2026'"),
        (pa.array(_SECONDS), "from_unixtime(c) >= '2026-01-01'"),
        (pa.array(_SECONDS), "from_unixtime(c) LIKE '2026-02%'"),
        (pa.array(_SECONDS), "from_unixtime(c, 'yyyy-MM-dd') = '1970-01-01'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_overflows_and_wraps_round_is_kept(spark, tmp_path, values, predicate):
    """Microseconds that are taken for seconds, and dates at the end of their type: Spark wraps them round."""
    for number in range(len(values)):
        pq.write_table(pa.table({"c": values.slice(number, 1)}), tmp_path / f"{number}.parquet")
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        df = spark.read.parquet(str(tmp_path))
        with skipping_off(spark):
            named = df.where(predicate).selectExpr("_metadata.file_name").collect()
        relevant = {row[0] for row in named}
        Dataset(df).create_indexes(MinMaxIndex("c"), ValueListIndex("c"))
        kept = {path.rpartition("/")[2] for path in df.where(predicate).inputFiles()}
        assert relevant
        assert relevant <= kept
        assert len(kept) < len(values)
