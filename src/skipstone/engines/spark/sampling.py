"""A scan of which only some objects are looked at, for trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.engines.spark.source import SparkSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skipstone.engines.spark.client import Scan
    from skipstone.indexing.objects import DataObject

__all__ = ["SampledSource"]


class SampledSource(SparkSource):
    """Some objects of a scan, as if there were no others.

    Parameters
    ----------
    scan
        The scan.
    sample
        The objects.
    """

    def __init__(self, scan: Scan, sample: Sequence[DataObject]) -> None:
        super().__init__(scan)
        self._sample = tuple(o.path for o in sample)

    def list_objects(self, paths: Iterable[str] | None = None) -> list[DataObject]:
        """List the sample, or what paths there are of it."""
        return super().list_objects(self._sample if paths is None else paths)
