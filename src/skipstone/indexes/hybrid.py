"""The Hybrid index (paper, section IV): a value list for objects with few distinct values, else a Bloom filter."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError
from skipstone.indexes.bloom_filter import BloomFilterFilter, BloomFilterMetadata, check_fpp, make_filter
from skipstone.indexes.value_list import ValueListFilter, ValueListMetadata
from skipstone.indexing.metadata_type import MetadataType
from skipstone.toolkit.elements import PartIndex, elements_of
from skipstone.toolkit.values import Distinct, is_binary_like

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.indexing.objects import DataObject
    from skipstone.querying.filter import Filter

__all__ = ["HybridIndex", "HybridMetadata", "list_is_preferable"]

AUTO = "auto"
AUTO_VALUES = 1_000_000
"""While the limit is not known (``auto``), a list of more values than this is given up for a Bloom filter."""


def list_is_preferable(count: float, bits: float, *, size: float, fpp: float, scanning_factor: float) -> bool:
    """Whether a list of ``count`` values of ``bits`` each scans less than a Bloom filter (paper, section IV).

    ``v (b̄ + ln f / ln² 2) < f |o| (1 - scanning factor)``, all in bits; ``size`` is the object's, in bytes.

    Examples
    --------
    >>> paper = {"size": 64e6, "fpp": 0.01, "scanning_factor": 0.01}
    >>> list_is_preferable(10_088, 512, **paper), list_is_preferable(10_089, 512, **paper)
    (True, False)
    """
    return count * (bits + math.log(fpp) / math.log(2) ** 2) < fpp * size * 8 * (1 - scanning_factor)


@dataclass(frozen=True, slots=True)
class HybridMetadata(MetadataType):
    """The distinct hashes of some rows' values and, while they are few, the values themselves.

    More distinct hashes than the limit prove more distinct values (NaN has a hash but is not listed, hence one more for
    floats), so that the form does not depend on the parts in which an object came.  The values are never told apart by
    their hashes: a collision would lose one.
    """

    lookups: ClassVar[Mapping[str, str]] = {**BloomFilterMetadata.lookups, **ValueListMetadata.lookups}

    listed: ValueListMetadata
    hashes: Distinct
    index: HybridIndex

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        return {**BloomFilterMetadata.fields(inputs[1:]), **ValueListMetadata.fields(inputs[:1])}

    def merge(self, other: Self) -> Self:
        hashes = self.hashes.merge(other.hashes)
        listed = self.listed.merge(other.listed)
        if hashes.settled > self.index.limit + listed.floating:
            listed = dataclasses.replace(listed, values=None)
        return type(self)(listed, hashes, self.index)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:
        stored = self.listed.finish(data_object)
        values = stored["values"]
        if values is not None and self.index.prefers_list(values, data_object):
            return {**stored, "bits": None, "hashes": None}
        filter_ = make_filter(self.hashes.array, self.index.fpp, blocked=not self.listed.elements)
        return {**stored, "values": None, **filter_}


@dataclass(frozen=True)
class HybridIndex(PartIndex):
    """A value list for each object with few distinct values, a Bloom filter for each other.

    Parameters
    ----------
    column
        The column; of an array column the elements.
    threshold
        The most values that are listed, or ``"auto"``: whichever form makes the fewest bytes to scan for this object.
    fpp
        The false-positive probability of the Bloom filters.
    scanning_factor
        For ``"auto"``: the share of the objects that a query is expected to read with value lists.
    of
        For a map column, and only for that: which part of it, ``"keys"`` or ``"values"``.

    Examples
    --------
    >>> HybridIndex("db_name", threshold="auto").name
    "hybrid(db_name, threshold='auto')"
    """

    metadata_type = HybridMetadata

    column: str
    threshold: int | str = field(default=10_000, kw_only=True)
    fpp: float = field(default=0.01, kw_only=True)
    scanning_factor: float = field(default=0.01, kw_only=True)
    of: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_fpp(self.fpp)
        whole = isinstance(self.threshold, int) and not isinstance(self.threshold, bool)
        if self.threshold != AUTO and not (whole and int(self.threshold) > 0):
            msg = f'threshold={self.threshold!r} is not a number of values: give a positive whole number or "auto"'
            raise SettingError(msg)
        if not 0 <= self.scanning_factor <= 1:
            msg = f"scanning_factor={self.scanning_factor!r} is not a share: give a number from 0 to 1"
            raise SettingError(msg)
        super().__post_init__()

    @property
    def limit(self) -> int:
        """The number of distinct values above which a list is out of the question."""
        return AUTO_VALUES if self.threshold == AUTO else int(self.threshold)

    def prefers_list(self, values: pa.Array, data_object: DataObject) -> bool:
        """Whether an object with these distinct values gets them listed."""
        if self.threshold != AUTO or not len(values):
            return len(values) <= self.limit
        width = _bits(values) / len(values)
        return len(values) <= self.limit and list_is_preferable(
            len(values), width, size=data_object.length, fpp=self.fpp, scanning_factor=self.scanning_factor
        )

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:
        return (self.values_input, self.hashes_input(types))

    def collect_metadata(self, rows: pa.RecordBatch) -> HybridMetadata:
        column, hashes = rows.columns
        once = elements_of(hashes).unique().drop_null()
        counts = ValueListMetadata.counts_of(column)
        listed = counts if len(once) > self.limit + counts.floating else ValueListMetadata.of(column)
        return HybridMetadata(listed, Distinct((once,), len(once)), self)

    def filters(self) -> tuple[Filter, ...]:
        """Use both forms' filters: each knows nothing (null) of the objects in the other form."""
        return (ValueListFilter(self), BloomFilterFilter(self))


def _bits(values: pa.Array) -> int:
    """Return the bits that the values take, offsets left out."""
    if is_binary_like(values.type):
        return 8 * pc.sum(pc.binary_length(values)).as_py()
    return values.type.bit_width * len(values)
