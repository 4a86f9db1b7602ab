"""For authors of metadata stores: hold a store against the naive model, over random histories of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skipstone.errors import CommitConflictError
from skipstone.querying.clause import AndClause, Clause, OrClause
from skipstone.stores.metadata_store import Change
from skipstone.testing.store_model import (
    ROOT,
    HasRows,
    HasTag,
    HasValue,
    Model,
    Row,
    StoredRangeIndex,
    StoredTagsIndex,
    added,
    assert_same,
    commit,
    record,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from skipstone.stores.metadata_store import IndexRecord, MetadataStore

    Step = tuple[list[IndexRecord], list[Row], list[IndexRecord], list[str]]

__all__ = ["CLAUSES", "assert_store", "histories"]

_A, _B, _T = StoredRangeIndex("a"), StoredRangeIndex("b"), StoredTagsIndex("t")
_VALUES = st.integers(0, 3)
_RANGES: SearchStrategy[Any] = st.builds(
    lambda a, b: {"low": min(a, b), "high": max(a, b)}, _VALUES, _VALUES
) | st.just({})
_TAGS = st.builds(lambda t: {"tags": t}, st.none() | st.lists(st.sampled_from("xyz"), max_size=2))
_INDEXES: dict[str, tuple[StoredRangeIndex, SearchStrategy[Any]]] = {
    "a": (_A, _RANGES),
    "b": (_B, _RANGES),
    "t": (_T, _TAGS),
}

CLAUSES: tuple[Clause, ...] = (
    HasValue(_A, 1),
    HasValue(_B, 2),
    HasTag(_T, "x"),
    HasRows(),
    AndClause((HasValue(_A, 1), HasValue(_B, 2), HasTag(_T, "y"))),
    OrClause((HasValue(_A, 3), HasTag(_T, "z"))),
)
"""What is asked after a history."""


@st.composite
def histories(draw: DrawFn) -> list[Step]:
    """Draw a random history: what is collected, replaced, removed, added and dropped, commit by commit."""
    names = draw(st.lists(st.sampled_from("abt"), min_size=1, unique=True))
    ids = {name: name for name in names}
    history = []
    for number in range(draw(st.integers(1, 7))):
        for name in "abt":
            match draw(st.integers(0, 9)):
                case 0 if name in ids:
                    del ids[name]
                case 1 | 2 if name not in ids:
                    ids[name] = f"{name}{number}"
        collected = draw(st.lists(st.sampled_from(sorted(ids)), unique=True)) if ids else []
        paths = draw(st.lists(st.integers(0, 6), unique=True, max_size=5))
        rows = [
            Row(
                f"file:/{path}",
                length=draw(st.integers(0, 1)),
                modified=draw(st.integers(0, 1)),
                etag=draw(st.sampled_from(["", "", "e"])),
                row_count=draw(st.none() | st.integers(0, 2)),
                trusted=draw(st.integers(0, 4)) > 0,
                fields={ids[name]: draw(_INDEXES[name][1]) for name in collected},
            )
            for path in paths
        ]
        removed = [f"file:/{path}" for path in draw(st.lists(st.integers(0, 6), unique=True, max_size=2))]
        indexes = [record(_INDEXES[name][0], index_id) for name, index_id in sorted(ids.items())]
        history.append((indexes, rows, [r for r in indexes if r.id in {ids[name] for name in collected}], removed))
    return history


def assert_store(
    make_store: Callable[[], MetadataStore], *, examples: int = 50, clauses: Sequence[Clause] = CLAUSES
) -> int:
    """Attack a metadata store with random histories of commits, and with the cases that every store must decide.

    Parameters
    ----------
    make_store
        Makes an empty store; called once per history.
    examples
        How many histories to try.
    clauses
        What to ask after each history.

    Returns
    -------
    int
        How many objects were skipped in all: with none, nothing was proved.

    Raises
    ------
    AssertionError
        When the store differs from the model; Hypothesis has made the history as short as it could.

    Examples
    --------
    >>> from skipstone.stores.memory import InMemoryStore
    >>> assert_store(InMemoryStore, examples=5) > 0
    True
    """
    skipped = _decided_cases(make_store())

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(histories())
    def run(history: list[Step]) -> None:
        nonlocal skipped
        store, model, base = make_store(), Model(), None
        for indexes, rows, collected, removed in history:
            base = commit(store, base, model, indexes, rows, collected, removed)
            if store.latest(ROOT) != base:
                msg = "the latest snapshot is not the one that was committed last"
                raise AssertionError(msg)
        if base is not None:
            skipped += assert_same(store, base, model, clauses)

    run()
    return skipped


def _decided_cases(store: MetadataStore) -> int:
    """Conflicts, replacing, older snapshots, dropping: what random histories of one writer do not meet."""
    index = record(_A, "a")
    first_model, model = Model(), Model()
    first = commit(store, None, first_model, [index], rows_of(3))
    skipped = assert_same(store, first, first_model, [HasValue(_A, 5)])
    second = commit(store, first, None, [index], rows_of(1, start=3))
    for base in (None, first):
        try:
            commit(store, base, None, [index], rows_of(1, start=4))
        except CommitConflictError:
            continue
        msg = "a commit on anything but the latest snapshot must be a CommitConflictError"
        raise AssertionError(msg)
    if store.latest(ROOT) != second:
        msg = "a commit that conflicts must change nothing"
        raise AssertionError(msg)
    skipped += assert_same(store, first, first_model, [HasValue(_A, 5)])
    model.apply([index], rows_of(2), [index], ())
    replaced = store.commit(ROOT, None, Change((index,), added(rows_of(2), [index])), replace=True)
    skipped += assert_same(store, replaced, model, [HasValue(_A, 5)])
    fewer = commit(store, replaced, model, [index], removed=[rows_of(1)[0].path])
    skipped += assert_same(store, fewer, model, [HasValue(_A, 5)])
    store.drop(ROOT)
    store.drop(ROOT)
    if store.latest(ROOT) is not None:
        msg = "a dropped dataset has no snapshot"
        raise AssertionError(msg)
    return skipped
