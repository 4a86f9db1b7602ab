"""What indexes would cost, from a sample of objects: bytes of metadata, their share of the data, and seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skipstone.errors import DatasetError, IndexingError
from skipstone.indexing.create import create_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import Source
    from skipstone.indexing.target import Target

__all__ = ["Estimate", "IndexEstimate", "estimate_indexes", "spread"]


@dataclass(frozen=True)
class IndexEstimate:
    """What one index would take: bytes for an object of the sample, for all, and as a share of the data."""

    name: str
    bytes_per_object: float
    metadata_bytes: int
    share: float


@dataclass(frozen=True)
class Estimate:
    """What indexes would cost, were they built on every object.

    ``metadata_bytes`` has what belongs to no index too: the objects' names and states.  ``seconds`` is the time on this
    session and machine, with listing and commit.  It is exact where ``sampled`` is ``objects``, but for the time.
    """

    root: str
    objects: int
    bytes: int
    sampled: int
    indexes: tuple[IndexEstimate, ...]
    metadata_bytes: int
    share: float
    seconds: float

    def __str__(self) -> str:
        width = max(len(one.name) for one in self.indexes)
        lines = [
            f"  {one.name:<{width}}  {one.bytes_per_object:>12,.1f} bytes an object"
            f"  {one.metadata_bytes:>15,} bytes  {one.share:>9.3%} of the data"
            for one in self.indexes
        ]
        head = (
            f"{self.root}: {self.objects:,} objects, {self.bytes:,} bytes; from a sample of {self.sampled:,} objects:"
        )
        foot = (
            f"  in all, names of objects included: {self.metadata_bytes:,} bytes, {self.share:.3%} of the data, "
            f"in about {self.seconds:,.0f} s"
        )
        return "\n".join([head, *lines, foot])


def estimate_indexes(
    source: Source,
    indexes: Sequence[Index],
    sampled: int,
    trial: Callable[[Sequence[DataObject]], Target],
) -> Estimate:
    """Build indexes on a sample of objects, in a place of its own, and conclude what all objects would take.

    Sizes grow with the number of objects, time with their bytes: the time of two samples, the one within the other,
    gives what does not grow with either.

    Parameters
    ----------
    sampled
        How many objects to look at.
    trial
        Makes a target of some objects whose metadata is kept nowhere.

    Raises
    ------
    SkipstoneError
        As ``create_indexes`` does, and when there is nothing to sample.
    """
    if not indexes:
        msg = "an estimate needs at least one index, for example MinMaxIndex('ts')"
        raise IndexingError(msg)
    if sampled < 1:
        msg = f"a sample has at least one object, not {sampled}"
        raise IndexingError(msg)
    plain = [replace(index, key=None) for index in indexes]
    objects = source.list_objects()
    if not objects:
        msg = "the dataset holds no objects: it is empty, or all its files are"
        raise DatasetError(msg)
    sample = spread(objects, sampled)
    part = spread(sample, max(1, len(sample) // 4))
    create_indexes(trial(part[:1]), plain)  # whatever is started once is started
    few = create_indexes(trial(part), plain).seconds
    target = trial(sample)
    report = create_indexes(target, plain)
    snapshot = target.store.latest(target.root)
    if snapshot is None:
        msg = "the metadata of the sample is gone"
        raise DatasetError(msg)
    sizes = target.store.size(snapshot)
    size, count = sum(o.length for o in objects), len(objects)
    scale = count / len(sample)
    made = tuple(
        IndexEstimate(r.name, sizes[r.id] / len(sample), round(sizes[r.id] * scale), sizes[r.id] * scale / max(size, 1))
        for r in snapshot.indexes
    )
    whole = round(sum(sizes.values()) * scale)
    seconds = _seconds((_bytes(part), few), (_bytes(sample), report.seconds), size)
    return Estimate(target.root, count, size, len(sample), made, whole, whole / max(size, 1), seconds)


def spread(objects: Sequence[DataObject], count: int) -> list[DataObject]:
    """Return some objects of all sizes: every so many of them, by size."""
    ordered = sorted(objects, key=lambda o: (o.length, o.path))
    if count >= len(ordered):
        return ordered
    return [ordered[int((place + 0.5) * len(ordered) / count)] for place in range(count)]


def _bytes(objects: Sequence[DataObject]) -> int:
    return sum(o.length for o in objects)


def _seconds(few: tuple[int, float], many: tuple[int, float], size: int) -> float:
    """Return the time for all bytes by that for few and for many of them."""
    growth = (many[1] - few[1]) / (many[0] - few[0]) if many[0] > few[0] else 0.0
    return many[1] + max(0.0, growth) * max(0, size - many[0])
