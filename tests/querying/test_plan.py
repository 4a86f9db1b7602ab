"""The planner looks only at the indexes that are chosen, and those of other datasets are not concerned."""

from __future__ import annotations

import pytest
from tests.faults.lake import ID, INDEXES, NAME, Lake

from skipstone.engines.spark.choice import Choice
from skipstone.engines.spark.functions import FunctionIdentities
from skipstone.errors import SettingError
from skipstone.expressions.tree import And, EqualTo, Literal
from skipstone.querying.plan import plan_scan

BOTH = And((EqualTo(ID, Literal(11, "bigint")), EqualTo(NAME, Literal("name-1", "string"))))
BY_ID, BY_NAME = INDEXES[0].name, INDEXES[1].name


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    made = Lake(tmp_path_factory.mktemp("plan") / "d")
    made.create()
    return made


def used(lake, chosen):
    plan = plan_scan(lake.target.source.relation, BOTH, lake.store, FunctionIdentities({}, lambda _: None), chosen)
    assert plan.indexed
    return plan.used


def test_chosen_indexes(lake):
    assert used(lake, None) == (BY_ID, BY_NAME)
    assert used(lake, Choice(lake.root, (BY_ID,), alone=True)) == (BY_ID,)
    assert used(lake, Choice(lake.root, (BY_ID,), alone=False)) == (BY_NAME,)
    assert used(lake, Choice("file:/other", (BY_ID,), alone=True)) == (BY_ID, BY_NAME)
    assert used(lake, lambda root, _: root != lake.root) == ()


@pytest.mark.parametrize("text", ["", "minmax(id)", "[]", "3", "{}", '{"root": "", "index": ""}'])
def test_a_choice_that_no_report_has_written(text):
    with pytest.raises(SettingError, match="for reports alone"):
        Choice.read(text)
