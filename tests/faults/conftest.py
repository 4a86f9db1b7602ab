"""Lakes without Spark, and one tally for the run."""

from __future__ import annotations

import os

import pytest

from skipstone.stores.absences import ABSENCES
from tests.faults.tally import Tally


@pytest.fixture(scope="session")
def tally():
    found = Tally()
    yield found
    found.write()


@pytest.fixture
def long(request):
    """Whether the run takes its time."""
    return request.config.getoption("--long")


@pytest.fixture
def lakes(monkeypatch, tmp_path):
    """A folder for lakes that are indexed without Spark, and without waiting for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    yield tmp_path
    for folder in tmp_path.iterdir():
        ABSENCES.forget(f"file:{folder}/_skipstone")
