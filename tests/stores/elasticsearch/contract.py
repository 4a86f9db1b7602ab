"""The contract of a metadata store, on real servers."""

from __future__ import annotations

import inspect

import pytest
from tests.stores import test_contract
from tests.stores.elasticsearch.support import make

from skipstone.testing.store_model import ROOT
from skipstone.testing.stores import assert_store


@pytest.fixture
def store(url, shared_prefix):
    store = make(url, shared_prefix)
    for root in (ROOT, "file:/data/x", "file:/data/y"):
        store.drop(root)
    return store


# Every test of the contract that asks for a store gets one in a server.
CONTRACT = {
    name: test
    for name, test in vars(test_contract).items()
    if name.startswith("test_") and "store" in inspect.signature(test).parameters
}
globals().update(CONTRACT)


def test_the_whole_contract_is_run():
    assert len(CONTRACT) >= 22


@pytest.mark.slow
@pytest.mark.parametrize("max_parts", [8, 1])
def test_any_history_leaves_what_the_model_says(url, shared_prefix, max_parts):
    def make_store():
        store = make(url, shared_prefix, max_parts=max_parts)
        store.drop(ROOT)
        return store

    assert assert_store(make_store, examples=5) > 5
