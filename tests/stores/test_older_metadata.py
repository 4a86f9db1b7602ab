"""Metadata that an older release wrote is used as it is: its format is older than the modules that read it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.sql import functions as F
from tests.fixtures import older_metadata
from tests.support import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


pytestmark = pytest.mark.skipif(
    not pyspark.__version__.startswith(f"{older_metadata.SPARK}."), reason="another Spark may read other values"
)


@pytest.fixture(scope="module")
def older(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the older release's folder, mounted under the name that its metadata knows."""
    folder = tmp_path_factory.mktemp("older") / "data"
    shutil.copytree(older_metadata.METADATA, folder)
    with older_metadata.mounted(spark, folder):
        yield folder


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        pytest.param("id BETWEEN 9 AND 14", 2, id="MinMax"),
        pytest.param("country IN ('be', 'fr')", 2, id="ValueList"),
        pytest.param("user = 'user-514'", 1, id="BloomFilter"),
        pytest.param("amount > 103 AND amount < 200", 2, id="GapList"),
        pytest.param("url LIKE 'https://c%'", 1, id="Prefix"),
    ],
)
def test_every_index_of_an_older_release_skips(spark: SparkSession, older: Path, predicate: str, kept: int) -> None:
    before = _files(older)
    found = spark.read.parquet(older_metadata.ROOT).where(predicate)
    assert assert_same_rows(spark, found) == older_metadata.OBJECTS - kept
    assert _objects(found) == kept  # none is kept for want of knowledge
    assert _files(older) == before


def _objects(df: DataFrame) -> int:
    """Count the objects that rows come from."""
    return df.select(F.input_file_name()).distinct().count()


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
