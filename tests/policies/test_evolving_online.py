"""Evolving jobs in simulations: the rules of Klein and Pérez on-line, and planners of rolling windows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cpsched.domain import Instance, Job, Outage, Step
from cpsched.errors import UnsupportedError
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.lab.workloads import evolving_window
from cpsched.rules import VARIANTS
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sim.played import played, starts
from tests.sizes import seeds

NAMES = tuple(variant.name for variant in VARIANTS)

pytestmark = pytest.mark.kernels


def coming(seed: int) -> Instance:
    """Return evolving applications that come one after the other, most of which end before their walltimes."""
    draw, instance, submit = Random(seed), evolving_window(seed), 0
    jobs = []
    for job in instance.jobs:
        submit += draw.randrange(0, 3000)
        runtime = draw.choice([None, job.walltime, job.walltime + 1, draw.randrange(1, job.walltime)])
        limit = draw.choice([None, 1, 2.5])
        jobs.append(replace(job, submit=submit, runtime=runtime, expand_limit=limit))
    return replace(instance, jobs=tuple(jobs))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "planner"])
@pytest.mark.parametrize("seed", seeds(10))
def test_steps_are_had_as_promised(name: str, seed: int) -> None:
    """Every job runs through the steps that its runtime reaches, and the judge finds no fault with the record.

    The planner, which plans anew at each event, gets the first few jobs.
    """
    instance = coming(seed)
    if name == "planner":
        instance = replace(instance, jobs=instance.jobs[:4])
    history = played(instance, make_scheduler(name, {}))
    assert len(starts(history)) == len(instance.jobs)
    for job, planned in zip(instance.jobs, history.record().jobs, strict=True):
        work = sum(
            min(one.end - one.start, step.walltime) for one, step in zip(planned.segments, job.steps, strict=False)
        )
        assert work == min(job.runtime or job.walltime, job.walltime)


def growing(**other: object) -> Job:
    """Return a job of two steps of 10 s, on one node and on all three."""
    job = waiting("grows", 10, chunk(cores=4))
    (first,) = job.steps
    request = replace(first.request, chunks=(chunk(3, cores=4),))
    return replace(job, steps=(first, Step(walltime=10, request=request)), **other)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("name", NAMES)
def test_a_growing_job_keeps_its_node(name: str) -> None:
    """Two of three nodes are busy until 30: the job has all three from 30 on, and before that one of them for 10 s."""
    on = running("on", 30, a={"cores": 4}, b={"cores": 4})
    instance = window([nodes("a b c", cores=4)], on, growing(expand_limit=None))
    planned = next(job for job in played(instance, make_scheduler(name, {})).record().jobs if job.id == "grows")
    start = 30 if name == "ep_rigid" else 20
    assert (planned.start, planned.segments[1].start, planned.end) == (start, start + 10, start + 20)
    assert {one.node for one in planned.segments[0].allocation} <= {one.node for one in planned.segments[1].allocation}


@pytest.mark.slow
def test_use_is_what_steps_hold() -> None:
    """A job that has 4 of 12 cores for 10 s, and then all for 10 s, uses two thirds of them."""
    summary = played(window([nodes("a b c", cores=4)], growing()), make_scheduler("ep_nox", {})).summary()
    (of_cores,) = summary.by_resource
    assert summary.allocated == of_cores.allocated == pytest.approx(2 / 3)


def test_steps_are_held_where_that_helps() -> None:
    """Without a limit of holds, some steps of random jobs are longer than their walltimes; without holds, none is."""

    def held(name: str) -> int:
        records = [(coming(seed), played(coming(seed), make_scheduler(name, {})).record()) for seed in range(3)]
        return sum(
            one.end - one.start > step.walltime
            for instance, record in records
            for job, planned in zip(instance.jobs, record.jobs, strict=True)
            for one, step in zip(planned.segments, job.steps, strict=False)
        )

    assert held("ep_nox") == 0 < held("ep_infx")


def test_a_job_that_ends_in_a_step_does_not_begin_the_next_one() -> None:
    """Of 20 s it runs 7: one segment; the nodes of its second step are free for who comes then."""
    later = waiting("later", 5, chunk(3, cores=4), submit=8)
    history = played(window([nodes("a b c", cores=4)], growing(runtime=7), later), make_scheduler("ep_nox", {}))
    record = {job.id: job for job in history.record().jobs}
    assert [(one.start, one.end) for one in record["grows"].segments] == [(0, 7)]
    assert record["later"].start == 8


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("easy", {}, "under easy, which starts rigid jobs"),
        ("ep_nox", {"outages": (Outage(nodes=("a",), start=5, end=9),)}, "and its nodes may fail"),
    ],
)
def test_what_cannot_be_promised_is_refused(name: str, change: dict[str, object], reason: str) -> None:
    """Queue rules start rigid jobs only, and a node that fails takes a step with it."""
    instance = replace(window([nodes("a b c", cores=4)], growing()), **change)  # type: ignore[arg-type]  # fields by name
    scheduler = make_scheduler(name) if name == "easy" else make_scheduler(name, {})
    with pytest.raises(UnsupportedError, match=reason):
        simulate(instance, scheduler)
