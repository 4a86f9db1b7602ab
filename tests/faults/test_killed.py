"""A process that is killed (SIGKILL) at any step of a commit costs time, never answers."""

from __future__ import annotations

import pytest

from tests.faults.actions import SCENES, act_and_die, make_scene
from tests.faults.aftermath import Scene, check_aftermath
from tests.faults.injectors import run_and_die

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SCENES)
def test_killed_at_every_step(lakes, tally, name):
    scene = Scene(make_scene(name, lakes / "lake"), lakes / "kept")
    count = tally.of("killed (SIGKILL)", name)
    step = 1
    while run_and_die(act_and_die, step, name, scene.again().folder):
        check_aftermath(scene.lake, tally, count)
        step += 1
    assert count.faults == step - 1 >= 10
    check_aftermath(scene.lake, tally, count)
