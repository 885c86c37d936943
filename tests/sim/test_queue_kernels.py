"""Expected runtimes: learnt from the jobs of a class that are over, widest class first."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Job
from cpsched.lab.sim.load import Load
from cpsched.lab.sim.queue_kernels import expected_by_classes, learn
from cpsched.lab.sim.world import SimWorld
from tests.booking.small_windows import chunk, nodes, waiting, window

pytestmark = pytest.mark.kernels


def job(name: str, cores: int, walltime: int, **options: Any) -> Job:
    """Return a job of chunks of one core."""
    return waiting(name, walltime, chunk(cores, cores=1), **options)


def of_classes(*jobs: Job) -> SimWorld:
    """Return a world in which nothing has happened yet."""
    return SimWorld(Load(window([nodes("n", cores=8)], *jobs)))


def test_expected_runtimes_by_hand() -> None:
    """What a narrow class does not know it has from the wider one; the last runtimes count most."""
    instance = of_classes(
        job("a", 1, 100, user="ann"), job("b", 1, 100, user="ann"), job("c", 2, 100, user="ben"), job("d", 1, 999)
    )
    state = instance.state
    assert [expected_by_classes(row, state) for row in range(4)] == [100, 100, 100, 999]
    learn(0, 20, state)
    # of all (.2 + 4) / 5 = .84, of its walltimes (.2 + 3.36) / 5 = .712, of ann's .6096, .52768, .462144
    assert expected_by_classes(1, state) == 47
    assert expected_by_classes(2, state) == 72  # ben's classes know nothing: as all with such walltimes
    assert expected_by_classes(3, state) == 840
    learn(1, 100, state)
    ratio = 1.0
    for decay in (0.995, 0.995, 0.9, 0.9, 0.9):
        ratio = (0.2 * decay + 1.0 + 4 * ratio) / (decay + 1.0 + 4)
    assert expected_by_classes(0, state) == int(-(-ratio * 100 // 1))
