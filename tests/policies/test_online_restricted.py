"""Schedulers that are not compiled, where amounts are set aside, and jobs have deadlines or may start at one second."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import Amounts, Instance, Outage, Placement, SetAside, WaitingReason
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Prediction, simulate
from cpsched.metrics import Ending
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.random_workloads import BusyMachine
from tests.sim.played import keeps_aside, played, starts
from tests.sizes import seeds

SCHEDULERS = ("conservative", "conservative_on_nodes", "maui", "slurm", "static_backfill", "sd_10")
ALL = ("fcfs", "first_fit", "easy", *SCHEDULERS)


@pytest.mark.kernels
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("seed", seeds(20))
def test_no_scheduler_starts_a_job_that_would_have_what_is_set_aside(name: str, seed: int) -> None:
    """Nobody has what is set aside, every job is in time or refused, and all that can start do in the end."""
    instance = BusyMachine(seed).restricted()
    history = played(instance, make_scheduler(name), predicts=(None, *Prediction)[seed % 3])
    assert keeps_aside(instance, history)
    bound = {job.id for job in instance.jobs if job.deadline is not None or job.start_at is not None}
    endings = dict(zip(history.runs.ids, history.runs.ending.tolist(), strict=True))
    by_rule = simulate(instance, make_scheduler("first_fit")).runs
    for job_id, ending in zip(by_rule.ids, by_rule.ending.tolist(), strict=True):
        if job_id not in bound and ending == Ending.COMPLETED and not any(job.after for job in instance.jobs):
            assert endings[job_id] != Ending.WAITING, job_id


def aside(start: int, end: int, node: str = "a", cores: int = 4) -> SetAside:
    """Return cores of a node that are set aside."""
    return SetAside(start=start, end=end, allocation=(Placement(node=node, resources=Amounts({"cores": cores})),))


def maintained() -> Instance:
    """Return a node of four cores that is set aside from 100 to 200, and jobs of 100, 101 and 10 s."""
    jobs = [
        waiting("fits", 100, chunk(cores=1)),
        waiting("long", 101, chunk(cores=1)),
        waiting("later", 10, chunk(cores=1), submit=95),
        waiting("short", 5, chunk(cores=1), submit=95),
    ]
    return window([nodes("a", cores=4)], *jobs, set_aside=(aside(100, 200),))


@pytest.mark.kernels
@pytest.mark.parametrize("name", ALL)
def test_no_job_runs_into_a_time_in_which_its_node_is_set_aside(name: str) -> None:
    """A job starts if it ends by then to the second, else it waits until the node is to be had again; with strict order
    all others wait for it.
    """
    found = starts(played(maintained(), make_scheduler(name)))
    assert (found["fits"], found["long"], found["later"]) == (0, 200, 200)
    assert found["short"] == (200 if name == "fcfs" else 95)


@pytest.mark.kernels
@pytest.mark.parametrize("name", ALL)
def test_a_running_job_stays_where_others_may_not_go(name: str) -> None:
    """It has two of four cores until 150; from 100 on all four are set aside. When it ends, nothing gets free."""
    jobs = running("on", 150, a={"cores": 2}), waiting("next", 20, chunk(cores=2), submit=90)
    instance = window([nodes("a", cores=4)], *jobs, set_aside=(aside(100, 200),))
    assert starts(played(instance, make_scheduler(name)))["next"] == 200


@pytest.mark.kernels
@pytest.mark.parametrize("name", ALL)
def test_what_is_left_beside_a_part_of_a_node_is_used(name: str) -> None:
    """One of four cores is set aside from 50 to 500: three jobs of 100 s start at once, the fourth when one ends."""
    jobs = [waiting(f"j{number}", 100, chunk(cores=1)) for number in range(4)]
    instance = window([nodes("a", cores=4)], *jobs, set_aside=(aside(50, 500, cores=1),))
    assert sorted(starts(played(instance, make_scheduler(name))).values()) == [0, 0, 0, 100]


@pytest.mark.kernels
@pytest.mark.parametrize("name", ALL)
def test_a_job_that_can_no_longer_be_in_time_leaves_the_queue(name: str) -> None:
    """The node is busy until 100; a job of 10 s has to end by 109, another one by 110. The first one blocks nobody."""
    jobs = [
        running("on", 100, a={"cores": 4}),
        waiting("late", 10, chunk(cores=4), deadline=109),
        waiting("just", 10, chunk(cores=4), deadline=110),
        waiting("last", 10, chunk(cores=4)),
    ]
    history = played(window([nodes("a", cores=4)], *jobs), make_scheduler(name))
    assert starts(history) == {"on": 0, "just": 100, "last": 110}
    (refused,) = history.record().waiting_room
    assert (refused.id, refused.reason) == ("late", WaitingReason.TOO_LATE)
    assert "by 99" in refused.detail


@pytest.mark.kernels
@pytest.mark.parametrize("name", ALL)
def test_a_job_with_one_start_has_its_nodes_booked(name: str) -> None:
    """It comes at 5 and may start at 50 only: nobody runs into that on both nodes, and a second one finds no room."""
    jobs = [
        waiting("on", 40, chunk(2, cores=4)),
        waiting("fixed", 20, chunk(cores=4), submit=5, start_at=50),
        waiting("other", 20, chunk(2, cores=4), submit=6, start_at=60),
        waiting("wide", 20, chunk(2, cores=4), submit=7),
        waiting("small", 10, chunk(2, cores=4), submit=8),
    ]
    history = played(window([nodes("a b", cores=4)], *jobs), make_scheduler(name))
    found = starts(history)
    assert (found["on"], found["fixed"], found["wide"]) == (0, 50, 70)
    # Slurm reserves whole minutes
    assert found["small"] == (90 if name in ("fcfs", "slurm") else 40)
    assert [(one.id, one.reason) for one in history.record().waiting_room] == [("other", WaitingReason.TOO_LATE)]


@pytest.mark.kernels
def test_where_a_booked_node_fails_the_job_starts_on_another_one() -> None:
    """Its node breaks before its start, and the other one is free; where that is busy, it is refused."""
    fixed = waiting("fixed", 20, chunk(cores=4), start_at=50)
    instance = window([nodes("a b", cores=4)], fixed, outages=(Outage(nodes=("a",), start=40, end=90),))
    assert starts(played(instance, make_scheduler("easy"))) == {"fixed": 50}
    busy = replace(instance, jobs=(running("on", 60, b={"cores": 4}), fixed))
    history = played(busy, make_scheduler("easy"))
    assert starts(history) == {"on": 0}
