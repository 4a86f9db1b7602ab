"""What a refresh or a repair collects: recorded indexes made again, and those that are restated."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skipstone import registry
from skipstone.errors import IndexingError, IndexNotFoundError, PluginError
from skipstone.indexing.profiles import profile_difference
from skipstone.indexing.target import as_read, function_difference, named, profile_of, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.source import BoundIndex
    from skipstone.indexing.target import Target

__all__ = ["Work", "as_kept", "rebound", "sorted_out"]


@dataclass(frozen=True)
class Work:
    """What a refresh collects: known indexes, restated ones to be made anew, and a line for each that is left out."""

    allowed: tuple[IndexRecord, ...]
    renewed: tuple[tuple[IndexRecord, BoundIndex], ...]
    left_out: tuple[str, ...]


def sorted_out(
    target: Target,
    records: Sequence[IndexRecord],
    restated: Sequence[Index],
    refusal: Callable[[IndexRecord], str | None],
) -> Work:
    """Sort out the indexes: left out are those that this user cannot read, and SQL that nobody restated.

    One that this user cannot read is made anew when it is restated: its key may be lost, or another's.
    """
    preparation = target.source.preparation
    prepared = {index.name: index.prepare(preparation) for index in restated}
    said = {name: as_kept(index.options()) for name, index in prepared.items()}
    unknown = sorted(said.keys() - {record.name for record in records})
    if unknown:
        msg = f"{target.root} has no index named {', '.join(unknown)} to restate; it has: {named(records)}"
        raise IndexNotFoundError(msg)
    allowed: list[IndexRecord] = []
    again: list[Index] = []
    left_out: list[str] = []
    for record in records:
        refused = refusal(record)
        if refused is not None and record.name in prepared:
            again.append(prepared[record.name])
            continue
        if refused is not None:
            left_out.append(
                f"{record.name}: {refused}; it learns of no new objects until someone who has its key refreshes it, or "
                "it is restated, which makes it anew: refresh(indexes=[…])"
            )
            continue
        index_type = registry.find_index(record.type_name)
        runs_sql = index_type is not None and made_again(record, index_type).runs_sql
        if record.name in said and said[record.name] != as_kept(record.options):
            msg = f"{record.name} is not as it was made; drop it and create it as it should be"
            raise IndexingError(msg)
        if runs_sql and record.name not in said:
            left_out.append(
                f"{record.name} keeps SQL, which is run again only when it is restated: refresh(indexes=[…])"
            )
        else:
            allowed.append(record)
    target.store.check_keys([index.key for index in again if index.key is not None])
    renewed = tuple((record_of(target, bound), bound) for bound in target.source.bind(again))
    return Work(tuple(allowed), renewed, tuple(left_out))


def rebound(target: Target, record: IndexRecord) -> BoundIndex:
    """Make a recorded index again for collecting, and check that the dataset is still read as it was."""
    index_type = registry.find_index(record.type_name)
    if index_type is None:
        msg = (
            f"{record.name} cannot be refreshed: its type {record.type_name!r} is not loaded; import the module that "
            "defines it or name that in spark.skipstone.plugins, or drop the index"
        )
        raise PluginError(msg)
    index = made_again(record, index_type)
    (bound,) = target.source.bind([index])
    difference = profile_difference(record.profile, profile_of(target, bound))
    if as_read(target, bound) != record.columns:
        difference = f"its columns are {_spelled(bound)} now"
    if difference is None:
        difference = _unidentified(record, index) or function_difference(
            record.functions, target.source.functions(bound, "collecting")
        )
    if difference is not None:
        msg = (
            f"{record.name} cannot be refreshed: {difference}; read the dataset as before, or drop and create the index"
        )
        raise IndexingError(msg)
    return replace(bound, id=record.id)


def made_again(record: IndexRecord, index_type: type[Index]) -> Index:
    """Make an index from what the metadata says of it, which may be anything."""
    try:
        return index_type.from_options(record.name, record.options)
    except Exception as error:
        msg = (
            f"{record.name[:200]} cannot be made from the options that the metadata has for it "
            f"({type(error).__name__}: {str(error)[:200]}); drop it and create it again"
        )
        raise IndexingError(msg) from error


def as_kept(options: Mapping[str, Any]) -> Any:
    """Return options as a manifest returns them: tuples are lists there."""
    return json.loads(json.dumps(dict(options)))


def _unidentified(record: IndexRecord, index: Index) -> str | None:
    """Return which function the metadata names without saying which one it was: it is not called on its name alone."""
    known = {_unqualified(name) for name in record.functions}
    missing = [name for name in index.functions or () if _unqualified(name) not in known]
    return f"the metadata does not say which function {missing[0]} was" if missing else None


def _unqualified(name: str) -> str:
    """Return a function's name without the schema it may be in, in one spelling."""
    return name.rpartition(".")[2].lower()


def _spelled(bound: BoundIndex) -> str:
    """Spell an index's columns with their types."""
    return ", ".join(f"{c.name} {c.type}" for c in bound.columns)
