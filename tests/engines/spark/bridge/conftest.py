"""A fake planner in place of the real one, for one test."""

from __future__ import annotations

import pytest
from tests.engines.spark.bridge.fake import FakePlanner, bridge_of


@pytest.fixture
def planner(spark, tmp_path):
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark.sparkContext._gateway)
    bridge = bridge_of(spark)
    former = bridge.registered()
    fake = FakePlanner(tmp_path)
    bridge.register(fake)
    yield fake
    bridge.register(former)


@pytest.fixture(scope="session")
def ten(spark, tmp_path_factory):
    """Ten files, the i-th called file-i and with the ids 10 i to 10 i + 9."""
    folder = tmp_path_factory.mktemp("ten") / "files"
    spark.range(0, 100, 1, 10).selectExpr("id", "cast(id as string) s").write.parquet(str(folder))
    for file in folder.iterdir():
        if file.name.startswith("part-"):
            file.rename(folder / f"file-{int(file.name[5:10])}.parquet")
        else:
            file.unlink()  # checksums would name files that are no longer there
    return str(folder)
