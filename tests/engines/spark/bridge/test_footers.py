"""Footers of which only some columns are taken apart say of these what whole footers say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.indexing.helpers import source_and_objects
from tests.support import conf

FIXTURES = Path(__file__).parents[3] / "fixtures"
# With keys, of which these files need none, Parquet's own reader opens each and takes all of its footer apart.
WHOLE = {"parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"}

TYPES = {
    "n": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "s": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    "g": (pa.float64(), st.floats()),
    "b": (pa.bool_(), st.booleans()),
    "x": (pa.struct([("y", pa.int64()), ("Y", pa.int64())]), st.just({"y": 1, "Y": None})),
    "l": (pa.list_(pa.int32()), st.lists(st.integers(0, 9), max_size=2)),
    "a.b": (pa.date32(), st.dates()),
}
ASKED = [["n"], ["g"], ["s"], ["x", "y"], ["l", "list", "element"], ["a.b"], ["N"], ["none"], ["x"], ["w300"], ["id"]]


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True, min_size=1))
    rows = draw(st.integers(0, 5))
    columns = {n: draw(st.lists(st.none() | TYPES[n][1], min_size=rows, max_size=rows)) for n in names}
    return pa.table({n: pa.array(values, TYPES[n][0]) for n, values in columns.items()})


def footers_of(spark, folder, columns):
    source, objects = source_and_objects(spark.read.schema("n INT").parquet(str(folder)))
    found = sorted(source.footers(objects, columns), key=lambda footer: footer["o"])
    assert [footer["o"] for footer in found] == list(range(len(objects)))
    return {objects[footer["o"]].path.rpartition("/")[2]: footer for footer in found}


def both(spark, folder, columns):
    pruned = footers_of(spark, folder, columns)
    with conf(spark, WHOLE):
        return pruned, footers_of(spark, folder, columns)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_some_columns_of_footers_are_as_in_whole_ones(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("d")
    for number in range(data.draw(st.sampled_from([3, 12]))):  # the driver reads a few, executors as many as these
        pq.write_table(
            data.draw(tables()),
            folder / f"{number}.parquet",
            row_group_size=2,
            write_statistics=data.draw(st.sampled_from([True, False, ["n", "g"]])),
            compression=data.draw(st.sampled_from(["snappy", "zstd"])),
        )
    pruned, whole = both(spark, folder, data.draw(st.lists(st.sampled_from(ASKED), unique_by=tuple, min_size=1)))
    assert pruned == whole
    errors = [footer["error"] for footer in whole.values() if "error" in footer]
    assert all("not all row groups are read" in error for error in errors)  # of numbers in row groups without rows


def test_footers_of_odd_files_are_as_whole_ones(spark, tmp_path):
    for number, file in enumerate(sorted(FIXTURES.rglob("*.parquet"))):
        shutil.copy(file, tmp_path / f"old-{number}.parquet")
    spark.range(9).selectExpr("id", "string(id) s", "id / 0.5D g").coalesce(1).write.parquet(str(tmp_path / "spark"))
    for number, file in enumerate((tmp_path / "spark").glob("part-*")):
        file.rename(tmp_path / f"spark-{number}.parquet")
    shutil.rmtree(tmp_path / "spark")
    wide = pa.table({"n": [1, 2], **{f"w{i}": [str(i), "z" * 40] for i in range(600)}})
    pq.write_table(wide, tmp_path / "wide.parquet", row_group_size=1)
    content = (tmp_path / "wide.parquet").read_bytes()
    assert int.from_bytes(content[-8:-4], "little") > 32 << 10  # longer than what is read at first
    damaged = {
        "short": b"PAR1",
        "magic": content[:-4] + b"PAR2",
        "other": content[:-4] + b"PARE",  # says that its footer is encrypted
        "long": content[:-8] + (1 << 30).to_bytes(4, "little") + b"PAR1",
        "negative": content[:-8] + b"\xff\xff\xff\xff" + b"PAR1",
        "none": content[:-8] + bytes(4) + b"PAR1",
        "cut": content[:2000] + content[-3000:],
    }
    for name, data in damaged.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
    pruned, whole = both(spark, tmp_path, ASKED)
    assert "error" in pruned["other.parquet"]
    assert pruned == {**whole, "other.parquet": pruned["other.parquet"]}  # no key is another error than no such key
    assert {name for name, footer in whole.items() if "error" in footer} == {f"{name}.parquet" for name in damaged}
    assert len(whole) > len(damaged) + 5


def test_other_columns_are_not_taken_apart(spark, tmp_path):
    """Which tells that they are not; nothing that is said of a column, or counted, hangs on another column."""
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2], "zzz": [3, 4]}), file)
    content = file.read_bytes()
    broken = content.replace(b"\x19\x18\x03zzz", b"\x19\x18\x03zzq")  # the name of a chunk's column
    assert broken != content
    file.write_bytes(broken)
    pruned, whole = both(spark, tmp_path, [["n"]])
    assert pruned["a.parquet"]["columns"][0]["groups"][0]["values"] == 2
    assert "error" in whole["a.parquet"]
