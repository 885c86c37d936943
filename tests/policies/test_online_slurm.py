"""Slurm's scheduling: its naive twin, and worked examples of cycle, window, resolution and whole nodes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from cpsched.domain import Job
from cpsched.lab.policies import make_scheduler
from cpsched.lab.policies.slurm import Slurm
from cpsched.lab.sim import Prediction, simulate
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_workloads import BusyMachine
from tests.policies.crowds import crowd
from tests.policies.maui_runs import judged
from tests.policies.naive_reservations import NaiveSlurm
from tests.sim.played import starts, story_of
from tests.sizes import seeds


def job(name: str, cores: int, walltime: int, submit: int = 0, **options: Any) -> Job:
    """Return a job of chunks of one core."""
    return waiting(name, walltime, chunk(cores, cores=1), submit=submit, **options)


def played(cores: int, *jobs: Job, **parameters: Any) -> dict[str, int]:
    """Return the start of each job on one node."""
    return starts(judged(window([nodes("n", cores=cores)], *jobs), Slurm(**parameters)))


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("reserves", ["nodes", "chunks"])
def test_jobs_start_as_by_the_naive_twin(seed: int, reserves: Literal["nodes", "chunks"]) -> None:
    """All start at the same seconds on the same nodes, whatever the parameters, though few reservations are made."""
    interval, minutes, resolution, most = ((30, 1440, 60, 500), (7, 2, 50, 5), (1, 4, 1, 2))[seed % 3]
    scheduler = Slurm(
        bf_interval=interval, bf_window=minutes, bf_resolution=resolution, bf_max_job_test=most, reserves=reserves
    )
    instance = crowd(seed)
    history = judged(instance, scheduler)
    assert (history.runs.start >= 0).all()
    naive = NaiveSlurm(interval, 60 * minutes, resolution, most, by_nodes=reserves == "nodes")
    assert story_of(instance, history) == story_of(instance, simulate(instance, naive))


@pytest.mark.parametrize("predicts", [None, *Prediction])
@pytest.mark.parametrize("seed", seeds(40))
def test_whatever_happens_all_end_as_by_first_fit(seed: int, predicts: Prediction | None) -> None:
    """Nodes break and return, jobs wait for others and run longer than predicted: the judge is content, and nobody is
    left behind who runs under a simpler rule.
    """
    instance = BusyMachine(seed).workload()
    found = judged(instance, Slurm(), predict=predicts).runs.ending
    assert np.array_equal(found, judged(instance, make_scheduler("first_fit"), predict=predicts).runs.ending)


def test_backfilling_waits_for_its_cycle() -> None:
    """The first cycle is at 0, when nobody has to wait; small comes at 5, and starts in the next cycle, at 30.

    An end at 20 starts nobody, for the head comes first, and needs all.
    """
    jobs = [job("a", 2, 120), job("b", 1, 20), job("head", 4, 10, submit=1), job("small", 1, 40, submit=5)]
    assert played(4, *jobs) == {"a": 0, "b": 0, "head": 120, "small": 30}
    assert played(4, *jobs, bf_interval=5)["small"] == 5


def test_a_cycle_delays_nobody_before() -> None:
    """Both b and c have reservations: long would delay c, the second in the queue, and waits."""
    jobs = [job("a", 3, 120), job("b", 3, 60), job("c", 4, 60), job("long", 1, 240), job("short", 1, 120)]
    assert played(4, *jobs) == {"a": 0, "b": 120, "c": 180, "long": 240, "short": 0}


def test_who_starts_beyond_the_window_has_no_reservation() -> None:
    """With a window of 2 min the head, which starts in 3, is delayed by a job that ends in 4."""
    jobs = [job("a", 3, 180), job("head", 4, 60), job("long", 1, 240)]
    assert played(4, *jobs) == {"a": 0, "head": 180, "long": 240}
    assert played(4, *jobs, bf_window=2) == {"a": 0, "head": 240, "long": 0}


def test_only_the_first_of_the_queue_are_tried() -> None:
    """With one job per cycle nobody is backfilled but the head, which cannot start."""
    jobs = [job("a", 3, 180), job("head", 4, 60), job("small", 1, 60)]
    assert played(4, *jobs) == {"a": 0, "head": 180, "small": 0}
    assert played(4, *jobs, bf_max_job_test=1) == {"a": 0, "head": 180, "small": 240}


@pytest.mark.parametrize(("reserves", "start"), [("nodes", 120), ("chunks", 0)])
def test_whole_nodes_are_reserved(reserves: str, start: int) -> None:
    """The head takes two of four cores from 120 on: long would fit beside it, but the node is all reserved until then.

    When the head runs, it has its cores only.
    """
    jobs = [job("a", 3, 120), job("head", 2, 60), job("long", 1, 300)]
    assert played(4, *jobs, reserves=reserves) == {"a": 0, "head": 120, "long": start}


@pytest.mark.parametrize(("resolution", "start"), [(60, 200), (1, 30)])
def test_reserved_times_are_rounded_outwards(resolution: int, start: int) -> None:
    """The head's nodes are reserved from 100 on, or from the minute before on."""
    jobs = [job("a", 3, 100), job("head", 4, 100), job("small", 1, 60, submit=5)]
    assert played(4, *jobs, bf_resolution=resolution)["small"] == start


def test_priority_comes_before_submission() -> None:
    """The job of higher priority is the first of the queue."""
    assert played(1, job("a", 1, 10), job("b", 1, 10), job("c", 1, 10, priority=3)) == {"c": 0, "a": 10, "b": 20}
