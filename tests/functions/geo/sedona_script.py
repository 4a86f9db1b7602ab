"""Run by ``test_sedona.py`` under the Spark that Apache Sedona supports, with the real Sedona in the session.

``python sedona_script.py <repository> <jars, comma-separated> <extensions or ->``
"""

import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from pyspark.sql import SparkSession

import skipstone
from skipstone.engines.spark.attach import attach
from skipstone.functions.geo.envelopes import read_envelopes
from skipstone.functions.geo.implications import SEDONA_CLASSES
from skipstone.indexes.geo_box.index import GeoBoxIndex
from skipstone.indexes.minmax import MinMaxIndex

ROWS = """
SELECT id, cast(id % 20 * 9 - 90 AS double) + (id % 7) / 10 AS lat,
       cast(id DIV 20 * 18 - 180 AS double) + (id % 11) / 10 AS lng
FROM range(400)
"""
ODD = [
    (None, 5.0),
    (5.0, None),
    (float("nan"), 5.0),
    (5.0, float("inf")),
    (5.0, -float("inf")),
    (5.0, -1e308),
    (90.0, 180.0),
    (-90.0, -180.0),
]
RING = "POLYGON ((0 0, 40 0, 40 40, 0 40, 0 0), (10 10, 30 10, 30 30, 10 30, 10 10))"
WHERES = [
    "ST_Contains(ST_GeomFromWKT('{ring}'{srid}), {point})",
    "ST_Within({point}, ST_GeomFromWKT('{ring}'{srid}))",
    "ST_Intersects({point}, ST_GeomFromWKT('{ring}'{srid}))",
    "ST_Covers(ST_GeomFromWKT('{ring}'{srid}), {point})",
    "ST_CoveredBy({point}, ST_GeomFromWKT('{ring}'{srid}))",
    "ST_Touches(ST_GeomFromWKT('LINESTRING (0 0.1, 0.2 0.2)'{srid}), {point})",
    "ST_Equals({point}, ST_GeomFromWKT('POINT (-180 -90)'{srid}))",
    "ST_Distance({point}, ST_GeomFromWKT('POINT (175 85)'{srid})) < 9",
    "ST_Distance(ST_GeomFromWKT('POINT (175 85)'{srid}), {point}) <= 9.0",
    "3 >= ST_Distance({point}, ST_GeomFromWKT('POINT (-180 -90)'{srid}))",
    "ST_DWithin({point}, ST_GeomFromWKT('POINT (175 85)'{srid}), 9)",
    "NOT ST_Disjoint({point}, ST_GeomFromWKT('{ring}'{srid}))",
    "ST_Intersects(ST_GeomFromWKT('GEOMETRYCOLLECTION (POINT (0 0.1), LINESTRING (0 0, 5 5))'{srid}), {point})",
    "ST_Contains(ST_GeomFromWKT('POLYGON EMPTY'{srid}), {point})",
    "ST_Distance({point}, ST_GeomFromWKT('POLYGON EMPTY'{srid})) < 1",
]


def main() -> None:
    """Hold every predicate against the same without skipping, on points and on columns of geometries."""
    jars, extensions = sys.argv[2], sys.argv[3]
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", jars)
        .config("spark.driver.extraClassPath", jars.replace(",", ":"))
    )
    if extensions != "-":
        builder = builder.config("spark.sql.extensions", extensions)
    spark = skipstone.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    srid = ""
    if extensions == "-":
        register_classes(spark)
        srid = ", 0"
    check_points(spark, srid)
    check_geometries(spark, srid)
    spark.stop()
    print("ALL WELL")


def register_classes(spark: SparkSession) -> None:
    """Register Sedona's expressions one by one: its own extension does not load on this Spark."""
    attach(spark)  # starts the server through which the JVM calls back
    names = [
        "ST_Contains", "ST_Within", "ST_Intersects", "ST_Covers", "ST_CoveredBy", "ST_Touches", "ST_Equals",
        "ST_Distance", "ST_DWithin", "ST_Disjoint", "ST_Point", "ST_GeomFromWKT", "ST_GeomFromEWKB", "ST_AsEWKB",
    ]  # fmt: skip
    functions = spark._jsparkSession.sessionState().functionRegistry()
    for name in names:
        functions.createOrReplaceTempFunction(name, Builder(getattr(spark._jvm, SEDONA_CLASSES + name)), "scala_udf")


class Builder:
    """Makes an expression of a class from its arguments, as Spark's function registry asks for it."""

    def __init__(self, expression: object) -> None:
        self.expression = expression

    def apply(self, arguments: object) -> object:
        """Call the constructor."""
        return self.expression(arguments)

    class Java:
        """Py4J: the interface that this object implements for the JVM."""

        implements = ["scala.Function1"]  # noqa: RUF012  (Py4J reads a plain list)


def check_points(spark: SparkSession, srid: str) -> None:
    """Check points made of two columns, served by bounds and by boxes."""
    odd = spark.createDataFrame([(1000 + n, *row) for n, row in enumerate(ODD)], "id long, lat double, lng double")
    path = str(Path("points").resolve())
    spark.sql(ROWS).unionByName(odd).repartitionByRange(40, "lat", "lng").write.parquet(path)
    skipped = {}
    for kind in ("bounds", "boxes"):
        dataset = skipstone.Dataset.for_path(spark, path)
        indexes = [MinMaxIndex("lat"), MinMaxIndex("lng")] if kind == "bounds" else [GeoBoxIndex("lat", "lng")]
        dataset.create_indexes(*indexes)
        skipped[kind] = [
            checked(spark, spark.read.parquet(path), where.format(ring=RING, srid=srid, point="ST_Point(lng, lat)"))
            for where in WHERES
        ]
        dataset.drop_indexes()
    print(skipped)
    assert all(n > 20 for n in skipped["bounds"][:-2]), skipped
    assert all(n > 20 for n in skipped["boxes"][:-2]), skipped


def check_geometries(spark: SparkSession, srid: str) -> None:
    """Check columns of geometries: well-known binary and text, and Sedona's own type."""
    path = str(Path("geometries").resolve())
    spark.sql(ROWS).createOrReplaceTempView("places")
    shaped = spark.sql(f"""
        SELECT id, text, ST_GeomFromWKT(text{srid}) AS own, ST_AsEWKB(ST_GeomFromWKT(text{srid})) AS bytes,
               id DIV 10 AS part
        FROM (SELECT id, CASE
            WHEN id % 40 = 7 THEN 'POINT EMPTY'
            WHEN id % 40 = 8 THEN NULL
            WHEN id % 5 = 1 THEN concat('LINESTRING (', lng, ' ', lat, ', ', lng + 1, ' ', lat - 1, ')')
            WHEN id % 5 = 2 THEN concat('POLYGON ((', lng, ' ', lat, ', ', lng + 1, ' ', lat, ', ', lng, ' ', lat + 1,
                                        ', ', lng, ' ', lat, '))')
            WHEN id % 5 = 3 THEN concat('MULTIPOLYGON (((', lng, ' ', lat, ', ', lng + 1, ' ', lat, ', ', lng, ' ',
                                        lat + 1, ', ', lng, ' ', lat, ')))')
            WHEN id % 5 = 4 THEN concat('GEOMETRYCOLLECTION (POINT (', lng, ' ', lat, '), MULTILINESTRING ((', lng,
                                        ' ', lat, ', ', lng + 1, ' ', lat + 2, ')), POINT (', lng, ' ', lat, '))')
            ELSE concat('POINT (', lng, ' ', lat, ')') END AS text FROM places)""")
    shaped.repartitionByRange(40, "part").drop("part").write.parquet(path)
    compare_envelopes(spark, path)
    for column, subject in (
        ("text", f"ST_GeomFromWKT(text{srid})"),
        ("bytes", "ST_GeomFromEWKB(bytes)"),
        ("own", "own"),
    ):
        dataset = skipstone.Dataset.for_path(spark, path)
        dataset.create_indexes(GeoBoxIndex.of_geometry(column))
        found = [
            checked(spark, spark.read.parquet(path), where.format(ring=RING, srid=srid, point=subject))
            for where in WHERES
            if not any(word in where for word in ("GEOMETRYCOLLECTION", "ST_Touches", "ST_Equals"))
        ]
        print(column, found)
        assert all(n > 5 for n in found[:-2]), (column, found)
        dataset.drop_indexes()


def compare_envelopes(spark: SparkSession, path: str) -> None:
    """Read the bytes that Sedona writes, and compare with the same geometries as text."""
    import pyarrow as pa

    rows = spark.read.parquet(path).selectExpr("text", "bytes", "ST_AsEWKB(own) AS extended").collect()
    text, known, own = (read_envelopes(pa.array([row[c] for row in rows])) for c in ("text", "bytes", "extended"))
    assert sorted(map(tuple, own.boxes.T)) == sorted(map(tuple, text.boxes.T)) == sorted(map(tuple, known.boxes.T))
    assert own.empty == text.empty == known.empty > 5
    assert own.odd == text.odd == known.odd == 0


def checked(spark: SparkSession, df, where: str) -> int:
    """Fail unless skipping leaves the same rows; give how many objects were skipped."""
    with skipstone.skipping_stats(spark) as stats:
        found = sorted(row.id for row in df.where(where).select("id").collect())
    spark.conf.set("spark.skipstone.enabled", "false")
    wanted = sorted(row.id for row in df.where(where).select("id").collect())
    spark.conf.set("spark.skipstone.enabled", "true")
    assert found == wanted, (where, found, wanted)
    assert not any("raised" in reason for reason in stats[-1].not_used), stats[-1].not_used
    return stats[-1].objects.skipped


if __name__ == "__main__":
    main()
