"""What an index keeps in its options is in no event log of Spark's when the index is protected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.security import event_log_application as application
from tests.stores.keys import key_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def events_of(folder, key):
    """Run the application, and give the events that Spark wrote."""
    for name in ("data", "log"):
        (folder / name).mkdir(parents=True)
    keys = key_file(folder / "keys.json", "medical")
    command = [sys.executable, "-m", application.__name__, str(folder / "data"), str(folder / "log"), str(keys), key]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with (folder / "output").open("w") as output:
        code = subprocess.call(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=output, stderr=subprocess.STDOUT
        )
    assert code == 0, (folder / "output").read_text()[-4000:]
    (log,) = (folder / "log").iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


SECRETS = {
    "predicate": application.PREDICATE,
    "origin": application.ORIGIN,
    "origin of an own metric": application.OWN_ORIGIN,
    "own metric": "zqmetriczq",
    "workload": str(application.WORKLOAD),
    "function": application.FUNCTION,
}


def test_options_of_protected_indexes_are_in_no_event_log(tmp_path):
    events = events_of(tmp_path / "protected", "medical")
    jobs = [event for event in events if event["Event"] == "SparkListenerJobStart"]
    assert len(jobs) > 10, "the log is not that of the application"
    for event in events:
        spelled = json.dumps(event, ensure_ascii=False)
        for what, secret in SECRETS.items():
            assert secret not in spelled, f"the {what} is in {spelled[:2000]}"


@pytest.mark.long
def test_the_search_would_find_them(tmp_path):
    """Without a key they are spelled in the plans, those that Spark's plan computes."""
    text = json.dumps(events_of(tmp_path / "plain", ""), ensure_ascii=False)
    found = {what for what, secret in SECRETS.items() if secret in text}
    assert found >= {"predicate", "origin of an own metric", "own metric", "function"}
