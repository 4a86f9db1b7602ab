"""The index-time side: which DataFrames are plain scans, listing them, reading chosen objects, footers, ranges."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from pyspark.sql import DataFrame
from tests.engines.spark.bridge.fake import bridge_of, read_records, records_of


@pytest.fixture
def bridge(spark):
    return bridge_of(spark)


@pytest.fixture(scope="session")
def parts(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "a b%20#+é"
    rows = spark.range(60).selectExpr("id", "cast(id as string) s", "id % 3 as p", "concat('v=', id % 2, ' ü') as q")
    rows.repartition(1).write.partitionBy("p", "q").parquet(str(folder))
    return folder


def test_describe(spark, bridge, parts):
    df = spark.read.option("mergeSchema", "true").parquet(str(parts))
    described = json.loads(bridge.scan(df._jdf).describe())
    assert described["format"] == "parquet"
    assert described["options"]["mergeschema"] == "true"
    assert [f["name"] for f in json.loads(described["data_schema"])["fields"]] == ["id", "s"]
    assert [f["name"] for f in json.loads(described["partition_schema"])["fields"]] == ["p", "q"]
    assert [(c["n"], c["p"]) for c in described["columns"]] == [("id", False), ("s", False), ("p", True), ("q", True)]
    assert described["conf"]["sessionTimeZone"]


def test_views_and_aliases_are_peeled(spark, bridge, parts):
    df = spark.read.parquet(str(parts))
    df.createOrReplaceTempView("parts_view")
    for plain in (
        df.alias("x"),
        spark.table("parts_view"),
        spark.sql("select * from parts_view"),
        df.select("id", "p"),
    ):
        assert bridge.scan(plain._jdf).describe()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda df: df.where("id > 3"), "a filter"),
        (lambda df: df.selectExpr("id + 1 as id"), "computed or renamed"),
        (lambda df: df.withColumnRenamed("id", "other"), "computed or renamed"),
        (lambda df: df.join(df.select("s"), "s").select("*"), "not a scan|a join"),
        (lambda df: df.sparkSession.range(3), "Range"),
        (lambda df: df.union(df), "Union"),
    ],
)
def test_what_is_not_a_plain_scan_is_refused(spark, bridge, parts, change, found):
    with pytest.raises(Exception, match=found):
        bridge.scan(change(spark.read.parquet(str(parts)))._jdf)


def test_char_columns_are_indexed_as_stored(spark, bridge, tmp_path):
    spark.sql("create table char_t (c char(5), v int default 7) using json")
    try:
        spark.sql("insert into char_t values ('ab', 1)")
        scan = bridge.scan(spark.table("char_t")._jdf)
        described = json.loads(scan.describe())
        declared = {c["n"]: c.get("d", "") for c in described["columns"]}
        assert "char(5)" in declared["c"]
        assert "EXISTS_DEFAULT" in declared["v"]
        bridge.listing(scan, str(tmp_path / "l"))
        rows = DataFrame(bridge.scanObjects(scan, str(tmp_path / "l")), spark).collect()
        assert [r.v for r in rows] == [1]
    finally:
        spark.sql("drop table char_t")


def test_listing_is_fresh(spark, bridge, tmp_path):
    folder = tmp_path / "growing"
    spark.range(5).coalesce(1).write.parquet(str(folder))
    df = spark.read.parquet(str(folder))
    scan = bridge.scan(df._jdf)
    assert bridge.listing(scan, str(tmp_path / "l")) == 1
    spark.range(5).coalesce(1).write.mode("append").parquet(str(folder))
    assert bridge.listing(scan, str(tmp_path / "l")) == 2
    for path, length, modified, _ in read_records(tmp_path / "l"):
        stat = (folder / path.rsplit("/", 1)[1]).stat()
        assert (length, modified) == (stat.st_size, stat.st_mtime_ns // 1_000_000)
    assert len(df.inputFiles()) == 1


@pytest.mark.parametrize("partitioned", [False, True])
def test_listing_of_tables(spark, bridge, tmp_path, partitioned):
    name = f"list_t_{partitioned}"
    writer = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 as p").write
    (writer.partitionBy("p") if partitioned else writer).saveAsTable(name)
    try:
        scan = bridge.scan(spark.table(name)._jdf)
        assert bridge.listing(scan, str(tmp_path / "l")) == (4 if partitioned else 2)
        records = read_records(tmp_path / "l")
        assert bridge.listing(scan, [records[0][0]], str(tmp_path / "one")) == 1
        rows = DataFrame(bridge.scanObjects(scan, str(tmp_path / "one")), spark).collect()
        assert 0 < len(rows) <= 10
        assert all(r.p == r.id % 2 for r in rows)
        folder = records[0][0].rsplit("/", 1)[0]
        assert bridge.listing(scan, [folder], str(tmp_path / "two")) == 2
    finally:
        spark.sql(f"drop table {name}")


def test_listing_of_some_paths(spark, bridge, parts, tmp_path):
    scan = bridge.scan(spark.read.parquet(str(parts))._jdf)
    everything = records_of(spark, spark.read.parquet(str(parts)), tmp_path / "all")
    assert len(everything) == 6
    assert bridge.listing(scan, [str(parts / "p=1")], str(tmp_path / "l")) == 2
    assert set(read_records(tmp_path / "l")) < set(everything)
    rows = DataFrame(bridge.scanObjects(scan, str(tmp_path / "l")), spark).collect()
    assert {(r.p, r.q) for r in rows} == {(1, "v=0 ü"), (1, "v=1 ü")}
    assert len(rows) == 20
    assert bridge.listing(scan, [everything[0][0], str(parts / "p=9")], str(tmp_path / "l")) == 1
    with pytest.raises(Exception, match="is not in the dataset"):
        bridge.listing(scan, [str(tmp_path)], str(tmp_path / "l"))


def test_objects_are_read_with_their_numbers(spark, bridge, parts, tmp_path):
    df = spark.read.parquet(str(parts))
    scan = bridge.scan(df._jdf)
    file = tmp_path / "l"
    bridge.listing(scan, str(file))
    chosen = file.read_text().splitlines()[1:4]
    file.write_text("\n".join(chosen) + "\n")
    read = DataFrame(bridge.scanObjects(scan, str(file)), spark)
    assert read.columns == ["id", "s", "p", "q", "__skipstone_object"]
    paths = [json.loads(line)["p"] for line in chosen]
    expected = {
        (r.id, r.p, r.q): r.path
        for r in df.selectExpr("id", "p", "q", "replace(input_file_name(), 'file:///', 'file:/') path").collect()
    }
    rows = read.selectExpr("*", "_metadata.file_name").collect()
    assert len(rows) == 30
    for row in rows:
        assert paths[row["__skipstone_object"]].endswith(row.file_name)
        assert expected[(row.id, row.p, row.q)].endswith(row.file_name)
    assert bridge.maxSplitBytes(scan, str(file)) > 0
    file.write_text(json.dumps({"p": "file:/nowhere"}) + "\n")
    with pytest.raises(Exception, match="not in the last listing"):
        bridge.scanObjects(scan, str(file))


def test_footers(spark, bridge, tmp_path):
    folder = tmp_path / "f"
    rows = "id", "cast(id as string) s", "array(id) a", "struct(id as x, array(id) as y) st", "cast(null as int) n"
    spark.range(0, 20, 1, 2).selectExpr(*rows).write.parquet(str(folder))
    (folder / "broken.parquet").write_bytes(b"PAR1 not really PAR1")
    df = spark.read.schema("id long, s string").parquet(str(folder))
    scan = bridge.scan(df._jdf)
    assert bridge.listing(scan, str(tmp_path / "l")) == 3
    columns = [["id"], ["s"], ["a", "list", "element"], ["st", "x"], ["n"], ["none"], ["ID"], ["st"]]
    assert bridge.footers(scan, str(tmp_path / "l"), json.dumps(columns), str(tmp_path / "out")) == 3
    lines = sorted(map(json.loads, (tmp_path / "out").read_text().splitlines()), key=lambda x: x["o"])
    assert [line["o"] for line in lines] == [0, 1, 2]
    paths = [r[0] for r in read_records(tmp_path / "l")]
    good = [line for line, path in zip(lines, paths, strict=True) if "broken" not in path]
    (bad,) = [line for line, path in zip(lines, paths, strict=True) if "broken" in path]
    assert bad["error"]
    for line in good:
        assert line["rows"] == 10
        assert line["created_by"].startswith("parquet-mr")
        assert line["meta"]["org.apache.spark.version"] == spark.version
        number, text, in_array, nested, nulls, *absent = line["columns"]
        assert (number["physical"], number["logical"]) == ("INT64", None)
        (group,) = number["groups"]
        assert (group["rows"], group["values"], group["nulls"]) == (10, 10, 0)
        low, high = (struct.unpack("<q", base64.b64decode(group[k]))[0] for k in ("min", "max"))
        assert high - low == 9
        assert text["logical"] == "STRING"
        assert in_array == {"absent": "repeated"}
        assert nested["groups"][0]["min"] == group["min"]
        assert (nulls["groups"][0]["min"], nulls["groups"][0]["nulls"]) == (None, 10)
        assert absent == [{"absent": "missing"}, {"absent": "case"}, {"absent": "group"}]


def test_read_ranges(bridge, spark, tmp_path):
    source = tmp_path / "a b%.bin"
    source.write_bytes(bytes(range(256)) * 1000)
    whole, out = source.read_bytes(), tmp_path / "out"
    ranges = [(0, 10, 10), (100, 255900, 255900), (255990, 100, 10), (256000, 5, 0), (7, 0, 0)]
    spelled = ",".join(f"{offset}:{count}" for offset, count, _ in ranges)
    found = bridge.readRanges(spark._jsparkSession, str(source), len(whole), spelled, str(out))
    assert found == ",".join(str(expected) for *_, expected in ranges)
    assert out.read_bytes() == b"".join(whole[offset : offset + count] for offset, count, _ in ranges)
