"""What the soundness suite says at the end of the run: how much it tried, and how much was skipped."""

from __future__ import annotations

import logging

import pytest

_REPORT: list[str] = []


@pytest.fixture(scope="session")
def soundness_report():
    return _REPORT


@pytest.fixture(scope="session")
def bench(spark, tmp_path_factory):
    """What mutations and ignorance are tried on: see ``tests/scheduling.py``."""
    from tests.soundness.bench import Bench

    return Bench(spark, tmp_path_factory.mktemp("bench") / "data")


@pytest.fixture(scope="session", autouse=True)
def _without_noise():
    """Predicates that do not analyse are part of the plan; PySpark would log each with its stack trace."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def pytest_terminal_summary(terminalreporter):
    if _REPORT:
        terminalreporter.section("soundness")
        for line in _REPORT:
            terminalreporter.write_line(line)
