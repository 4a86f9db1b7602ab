"""A dataset in a folder, read as it was when it was indexed unless something else is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from skipstone.errors import DatasetError, SkipstoneError
from skipstone.indexing.reading import HowRead, how_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from skipstone.dataset import Dataset

__all__ = ["dataset_as_indexed"]

_USUAL = "parquet"


def dataset_as_indexed(
    spark: SparkSession, path: str, file_format: str | None, schema: str | None, options: Mapping[str, str]
) -> Dataset:
    """Return the dataset in a folder.

    Parameters
    ----------
    file_format, schema, options
        What is said of how to read it.  What is not said is as the metadata has it; where something is said that
        differs from it, a line on standard error tells how the dataset was indexed.

    Raises
    ------
    DatasetError
        When it cannot be read so.
    """
    from pyspark.sql.types import StructType

    from skipstone.dataset import Dataset

    indexed = _indexed(spark, path)
    chosen = file_format or (indexed.format if indexed is not None else _USUAL)
    read = {name.lower(): value for name, value in options.items()}
    wanted: StructType | str | None = schema
    differs = indexed is not None and (
        chosen != indexed.format or any(value != indexed.options.get(name) for name, value in read.items())
    )
    if indexed is not None and chosen == indexed.format:
        if schema is None and indexed.schema and "inferschema" not in read:
            wanted = StructType.fromJson(json.loads(indexed.schema))
        read = {**indexed.options, **read}
    try:
        dataset = Dataset.for_path(spark, path, format=chosen, schema=wanted, **read)
    except DatasetError as error:
        if not differs:
            raise
        msg = f"{error} (it was indexed as {indexed})"
        raise DatasetError(msg) from error
    if indexed is not None and differs:
        typer.echo(f"skipstone: {path} was indexed as {indexed}, and is read as {HowRead(chosen, read)} here", err=True)
    for name in indexed.hidden if indexed is not None else ():
        if name not in read:
            typer.echo(f"skipstone: {path} was indexed with the option {name}, a secret: give it again", err=True)
    return dataset


def _indexed(spark: SparkSession, path: str) -> HowRead | None:
    """Return how the dataset was read when it was indexed; ``None`` when it was not, or the metadata does not tell.

    What is wrong with the metadata is for the command itself to say: it looks at it next.
    """
    from skipstone.engines.spark.attach import attach
    from skipstone.engines.spark.hadoop import HadoopFileSystem
    from skipstone.engines.spark.session_store import store_for
    from skipstone.settings import own_settings

    attach(spark)
    try:
        root = HadoopFileSystem(spark).qualify(path)
        snapshot = store_for(spark, own_settings(spark)).latest(root)
    except (SkipstoneError, OSError):
        return None
    return how_read(snapshot.indexes) if snapshot is not None else None
