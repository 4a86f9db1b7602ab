"""Two indexes of one dataset that were made by two ways of reading it, which count its rows differently."""

import pyarrow as pa
import pytest

from skipstone import Dataset, MinMaxIndex, last_query
from skipstone.indexing.row_counts import known_counts
from tests.support import conf

OBJECTS = 10


@pytest.fixture(params=["parquet", "memory"])
def folder(request, spark, tmp_path):
    """Each object has three rows, and seven more for a reader that takes comments for rows."""
    for n in range(OBJECTS):
        lines = [f"{10 * n + i},{i}" for i in range(3)] + [f"#{10 * n + i},{i}" for i in range(7)]
        (tmp_path / f"{n}.csv").write_text("\n".join(lines) + "\n")
    with conf(spark, {"spark.skipstone.store": request.param}):
        yield str(tmp_path)


def plain(spark, folder):
    return spark.read.schema("a int, b int").csv(folder)


def commented(spark, folder):
    return spark.read.schema("a int, b int").option("comment", "#").csv(folder)


@pytest.mark.parametrize("first", [plain, commented])
def test_neither_index_rests_on_the_rows_of_the_other_reading(spark, folder, first):
    second = commented if first is plain else plain
    Dataset(first(spark, folder)).create_indexes(MinMaxIndex("a"))
    Dataset(second(spark, folder)).create_indexes(MinMaxIndex("b"))
    expected = [10 * n + i for n in range(OBJECTS) for i in range(3)]

    assert [row["a"] for row in first(spark, folder).where("a = 11").collect()] == [11]
    assert last_query(spark)[0].objects.kept == 1
    rows = first(spark, folder).where("a IS NOT NULL").orderBy("a").limit(8).collect()
    assert [row["a"] for row in rows] == expected[:8]
    assert first(spark, folder).where("a >= 20").limit(9).count() == 9
    nulls = first(spark, folder).orderBy("a").limit(8).collect()
    assert [row["a"] for row in nulls] == ([None] * 8 if first is plain else expected[:8])
    assert [row["b"] for row in second(spark, folder).where("b = 2").collect()] == [2] * (
        OBJECTS * (2 if second is plain else 1)
    )


def test_a_count_stays_unknown_while_the_object_is_the_same(spark, folder):
    dataset = Dataset(commented(spark, folder))
    dataset.create_indexes(MinMaxIndex("a"))
    Dataset(plain(spark, folder)).create_indexes(MinMaxIndex("b"))
    dataset.create_indexes(MinMaxIndex("b", name="again"))
    rows = commented(spark, folder).orderBy("b").limit(12).collect()
    assert [row["b"] for row in rows] == [0] * 10 + [1] * 2
    assert last_query(spark)[0].skipped_by_top == 0


def test_readings_that_agree_leave_the_count_as_it_is(spark, tmp_path):
    for n in range(OBJECTS):
        (tmp_path / f"{n}.csv").write_text("".join(f"{10 * n + i},{i}\n" for i in range(3)))
    Dataset(commented(spark, str(tmp_path))).create_indexes(MinMaxIndex("a"))
    Dataset(plain(spark, str(tmp_path))).create_indexes(MinMaxIndex("b"))
    rows = commented(spark, str(tmp_path)).orderBy("a").limit(4).collect()
    assert [row["a"] for row in rows] == [0, 1, 2, 10]
    assert last_query(spark)[0].skipped_by_top == OBJECTS - 2


def test_disagreed_counts_are_null_to_clauses():
    assert known_counts(pa.array([3, -1, None, 0])).to_pylist() == [3, None, None, 0]
    same = pa.array([3, None])
    assert known_counts(same) is same
