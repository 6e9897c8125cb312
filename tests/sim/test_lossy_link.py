"""Driver and engine over a link that breaks: nothing lost, nothing run twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.cuts import CutWorld
from tests.sim.world import World


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_every_task_runs_once_and_has_one_row_whatever_breaks(seed, count):
    world = World(seed, count)
    world.play()
    world.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_long_list_survives_drivers_that_die(seed):
    world = World(seed, 150)
    world.crashes_left = 6
    world.play()
    world.check()


@settings(max_examples=600, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_every_task_runs_once_and_has_one_row_however_often_links_are_cut(seed, count):
    world = CutWorld(seed, count)
    world.play()
    world.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_long_list_survives_cuts_and_drivers_that_die(seed):
    world = CutWorld(seed, 150)
    world.cuts_left, world.crashes_left = 12, 4
    world.play()
    world.check()
