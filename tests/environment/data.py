"""Random datasets of every format, whose values readers see differently in different environments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from tests.soundness.attack import age, parquet, text

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "orc", "avro", "csv", "json", "xml", "text")
OBJECTS = 4
_MOMENTS = (
    *(
        "2020-01-01 00:00:00",
        "2020-07-01 12:30:00",
        "2020-03-08 02:30:00",
        "1850-03-01 12:00:00",
        "1500-02-28 01:02:03",
    ),
    *(
        "1883-11-18 12:05:00",
        "2020-01-01T06:00:00Z",
        "2021-01-01",
        "2020-1-1 1:1:1",
        "2019-05-05 05:05:05",
        "0801-01-01 00:00:00",
    ),
)
_DAYS = ("2020-01-02", "02/01/2020", "1500-02-28", "2020-1-3", "2020-02-30", "1582-10-10", "0801-03-01", "03/04/2020")
_WORDS = ("içi", "ICI", "\u0131slak", "Istanbul", "x", "  lead", "NA", "", "a;b", "long " * 12)
# What every reader takes: XML that has anything else is not indexed, JSON but in part.
_SOUND_DAYS = ("2020-01-02", "1500-02-28", "1582-10-10", "0801-03-01", "2020-02-03")
_SOUND_NUMBERS = ("1", "2", "3", "40", "7")
_NUMBERS = ("1", "2", "3", "40", " 5", "6.0", "x", "7", "99999999999")


def schema(format_: str) -> str:
    """Return the schema that the files are read with."""
    if format_ == "text":
        return "value STRING"
    # In the files n comes first: a reader that goes by position gives the other one.
    numbers = "m INT, n INT" if format_ in ("orc", "avro") else "n INT, m INT"
    return f"{numbers}, ts TIMESTAMP, d DATE, s STRING"


def columns(format_: str) -> tuple[str, ...]:
    """Return the columns that are indexed and asked for."""
    return ("value",) if format_ == "text" else ("n", "m", "ts", "d", "s")


def write(spark: SparkSession, folder: Path, format_: str, random: Random) -> None:
    """Write the objects, an hour old."""
    sound = format_ == "xml" or (format_ == "json" and random.random() < 0.7)
    rows = [[_row(random, sound=sound) for _ in range(random.choice((2, 3, 4)))] for _ in range(OBJECTS)]
    match format_:
        case "csv":
            sep = random.choice((",", ",", ";"))
            text(folder, ".csv", *("".join(sep.join(row.values()) + "\n" for row in some) for some in rows))
        case "json":
            text(folder, ".json", *("".join(_json(row) + "\n" for row in some) for some in rows))
        case "xml":
            text(folder, ".xml", *(f"<rows>{''.join(map(_xml, some))}</rows>" for some in rows))
        case "text":
            text(folder, ".txt", *("".join(",".join(row.values()) + "\n" for row in some) for some in rows))
        case "parquet":
            int96 = random.random() < 0.5
            parquet(folder, *(_table(some, random) for some in rows), use_deprecated_int96_timestamps=int96)
        case _:
            parquet(folder.with_name(f"{folder.name}-source"), *(_table(some, random) for some in rows))
            _rewrite(spark, folder, format_)


def _row(random: Random, *, sound: bool) -> dict[str, str]:
    return {
        "n": random.choice(_SOUND_NUMBERS if sound else _NUMBERS),
        "m": str(random.randint(1, 9) * 100),
        "ts": random.choice(_MOMENTS),
        "d": random.choice(_SOUND_DAYS if sound else _DAYS),
        "s": random.choice(_WORDS),
    }


def _json(row: dict[str, str]) -> str:
    whole = {k: int(v) if v.isdigit() and k == "n" else v for k, v in row.items()}
    return json.dumps({**whole, "m": int(row["m"])}, ensure_ascii=False)


def _xml(row: dict[str, str]) -> str:
    return f"<row>{''.join(f'<{k}>{v}</{k}>' for k, v in row.items())}</row>"


_INSTANTS = (
    *(1577836800, 1593606600, 1583634600, -3781814400, -14825808000),
    *(-2717668800, 1577858400, 1609459200, 0, -36889689600),
)


def _table(rows: list[dict[str, str]], random: Random) -> pa.Table:
    """Make typed values: instants and days of the same kinds as the texts; one column's name in capitals."""
    size = len(rows)
    draw = random.choices
    return pa.table(
        {
            "n": pa.array(draw(range(9), k=size), pa.int32()),
            "m": pa.array(draw(range(100, 900, 100), k=size), pa.int32()),
            "ts": pa.array([s * 1_000_000 for s in draw(_INSTANTS, k=size)], pa.timestamp("us", "UTC")),
            "d": pa.array([s // 86400 for s in draw(_INSTANTS, k=size)], pa.date32()),
            "S": pa.array([row["s"] for row in rows]),
        }
    )


def _rewrite(spark: SparkSession, folder: Path, format_: str) -> None:
    """Let Spark write an object for each object."""
    source = spark.read.parquet(str(folder.with_name(f"{folder.name}-source")))
    names = F.col("_metadata.file_name")
    source.repartitionByRange(OBJECTS, names).write.format(format_).save(str(folder))
    age(folder)


def read(spark: SparkSession, folder: Path, format_: str, options: dict[str, str]) -> DataFrame:
    """Read a dataset with its declared schema."""
    reader = spark.read.format(format_).schema(schema(format_)).options(**options)
    return reader.options(**({"rowTag": "row"} if format_ == "xml" else {})).load(str(folder))


def shown(format_: str) -> list[str]:
    """Return the columns in a form that neither zones nor Python's limits change on the way."""
    turned = {"ts": "unix_micros(ts) AS ts", "d": "unix_date(d) AS d"}
    return [turned.get(name, name) for name in columns(format_)]


def literal(column: str, value: Any) -> str:
    """Spell a value that a row shows, so that it means the same in every environment."""
    match column:
        case "ts":
            return f"timestamp_micros({value})"
        case "d":
            return f"date_from_unix_date({value})"
        case "n" | "m":
            return str(value)
        case _:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
