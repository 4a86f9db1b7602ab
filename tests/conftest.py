"""What the tests share: one Spark session for the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hypothesis
import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.session import configure
from tests.every_run import is_long
from tests.processor_time import ProcessorTime
from tests.scheduling import DEAREST, files_together
from tests.shared_classes import OPTIONS, archive_options

if TYPE_CHECKING:
    from collections.abc import Iterator


# Tests say what is skipped. A planner, or a worker that is asked for its packages, may be starved of a processor for
# longer than a query waits for it, and then nothing is: see test_rule.py for what that is like.
PATIENCE = "-Dspark.skipstone.plannerTimeoutMs=300000"

# How long an example takes says nothing about it.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Let every JVM of the run start fast; whoever runs the tests may choose the options."""
    config.pluginmanager.register(ProcessorTime())
    if "workerinput" not in vars(config) and not config.option.collectonly:
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{OPTIONS} {PATIENCE} {archive_options()}")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let Hypothesis draw by the run's seed too, so that ``--randomly-seed`` repeats all of a run."""
    hypothesis.core.global_force_seed = session.config.getoption("randomly_seed", None)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Leave a word on how the run ended: ``.ci/run`` repeats what failed, but not what was broken off."""
    cache = getattr(session.config, "cache", None)
    if "workerinput" not in vars(session.config) and cache is not None:
        cache.set("skipstone/ended", int(exitstatus))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run what takes long: more pairs, every Spark version")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    return files_together(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(DEAREST)}
    items.sort(key=lambda i: (places.get(i.nodeid.partition("::")[0], len(places)), "slow" not in i.keywords))
    if not config.getoption("--long"):
        skipped = pytest.mark.skip(reason="only with --long")
        for item in items:
            if "long" in item.keywords or "spark_versions" in item.keywords or is_long(item.nodeid):
                item.add_marker(skipped)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = (
        configure(SparkSession.builder)
        .master("local[2]")
        .appName("skipstone-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.codegen.cache.maxEntries", "2000")  # what one test had compiled serves the next
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the run's session be the active one again: a test before may have left another, and listings see that."""
    shared = SparkSession._instantiatedSession
    if "spark" in getattr(item, "fixturenames", ()) and shared is not None and shared._sc._jsc is not None:
        SparkSession._get_j_spark_session_class(shared._jvm).setActiveSession(shared._jsparkSession)
