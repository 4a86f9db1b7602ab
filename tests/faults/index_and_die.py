"""A user's process that indexes with Spark and is killed at a step of it: folder, what to do, which step."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import skipstone
from skipstone import Dataset, MinMaxIndex
from tests.faults.injectors import die_at


def main(folder: str, action: str, step: int) -> None:
    spark = (
        skipstone.configure(SparkSession.builder.master("local[1]")).config("spark.ui.enabled", "false").getOrCreate()
    )
    dataset = Dataset.for_path(spark, folder)
    die_at(step, Path(folder) / "_skipstone")
    if action == "create":
        dataset.create_indexes(MinMaxIndex("id"))
    elif action == "refresh":
        dataset.refresh()
    else:
        dataset.drop_indexes()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
