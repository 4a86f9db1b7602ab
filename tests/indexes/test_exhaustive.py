"""Every object of at most three values x every operator x every literal: kept ⊇ relevant, and much is skipped."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.indexes.universes import INDEXES, UNIVERSES, check, describe, predicates

from skipstone.testing import InMemoryMetadata, assert_monotone, kept_objects


@pytest.mark.parametrize("type_", UNIVERSES)
@pytest.mark.parametrize("name", INDEXES)
def test_kept_objects_are_all_that_are_relevant_and_skips_happen(name, type_):
    outcome = check(INDEXES[name], type_)
    assert outcome.relevant > 0
    irrelevant = outcome.pairs - outcome.relevant
    assert outcome.skipped > irrelevant * {"minmax": 0.3, "valuelist": 0.9, "bloomfilter": 0.15, "hybrid": 0.25}[name]


@pytest.mark.parametrize("type_", ["double", "int", "boolean"])
def test_a_value_list_skips_every_irrelevant_object(type_):
    outcome = check(INDEXES["valuelist"], type_)
    assert outcome.skipped == outcome.pairs - outcome.relevant


@pytest.mark.parametrize("type_", UNIVERSES)
@pytest.mark.parametrize("name", INDEXES)
def test_objects_in_parts_are_served_as_well(name, type_):
    assert check(INDEXES[name], type_, rows_per_part=1) == check(INDEXES[name], type_)


@pytest.mark.parametrize("type_", UNIVERSES)
@pytest.mark.parametrize("name", INDEXES)
def test_forgetting_only_keeps(name, type_):
    assert_monotone(INDEXES[name], predicates(type_), describe(INDEXES[name], type_))


@pytest.mark.parametrize("type_", ["double", "int"])
def test_widening_a_bound_only_keeps(type_):
    index, known = INDEXES["minmax"], describe(INDEXES["minmax"], type_)
    for predicate in predicates(type_):
        kept = kept_objects(index, predicate, known)
        for name, widen in (("lower", pc.subtract), ("upper", pc.add)):
            wider = widen(known.fields[name], pa.scalar(1, known.fields[name].type))
            wide = InMemoryMetadata({**known.fields, name: wider}, known.row_count)
            assert not (kept & ~kept_objects(index, predicate, wide)).any(), predicate


def test_text_bounds_may_be_widened_to_any_prefix():
    index, known = INDEXES["minmax"], describe(INDEXES["minmax"], "string")
    short = InMemoryMetadata({**known.fields, "lower": pc.binary_slice(known.fields["lower"], 0, 1)}, known.row_count)
    for predicate in predicates("string"):
        assert not (kept_objects(index, predicate, known) & ~kept_objects(index, predicate, short)).any(), predicate
