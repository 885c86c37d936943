"""Evolving jobs in simulations: the rules of Klein and Pérez on-line, and planners of rolling windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from cpsched.domain import Instance, Job, Outage, Step
from cpsched.errors import UnsupportedError
from cpsched.lab.policies import make_scheduler
from cpsched.lab.policies.evolving_online import EvolvingOnline
from cpsched.lab.sim import Site, simulate
from cpsched.lab.workloads import evolving_window
from cpsched.problem import application_of
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
        ("planner", {"outages": (Outage(nodes=("a",), start=5, end=9),)}, "with nodes that fail"),
    ],
)
def test_what_cannot_be_promised_is_refused(name: str, change: dict[str, object], reason: str) -> None:
    """Queue rules start rigid jobs only, and plans do not move the steps of running jobs."""
    instance = replace(window([nodes("a b c", cores=4)], growing()), **change)  # type: ignore[arg-type]  # fields by name
    scheduler = make_scheduler(name) if name == "easy" else make_scheduler(name, {})
    with pytest.raises(UnsupportedError, match=reason):
        simulate(instance, scheduler)


def failing(*jobs: Job, outages: Sequence[tuple[str, int, int]], names: str = "a b c") -> Instance:
    """Return jobs on nodes of four cores, some of which fail from one second to another."""
    lost = tuple(Outage(nodes=tuple(which.split()), start=start, end=end) for which, start, end in outages)
    return replace(window([nodes(names, cores=4)], *jobs), outages=lost)


@pytest.mark.parametrize(
    ("name", "limit", "outage", "attempts", "steps"),
    [
        ("ep_nox", 1, ("a", 5, 8), [(0, 5)], [(8, 18), (18, 28)]),
        ("ep_nox", 1, ("b", 5, 8), [], [(0, 10), (10, 20)]),
        ("ep_nox", 1, ("b", 5, 14), [(0, 10)], [(14, 24), (24, 34)]),
        ("ep_2x", 2, ("b", 5, 14), [], [(0, 14), (14, 24)]),
        ("ep_2x", 2, ("b", 5, 30), [(0, 20)], [(30, 40), (40, 50)]),
        ("ep_infx", None, ("b", 5, 500), [], [(0, 500), (500, 510)]),
        ("ep_rigid", 1, ("b", 5, 14), [(0, 10)], [(14, 24), (24, 34)]),
    ],
)
def test_nodes_that_fail(
    name: str,
    limit: int | None,
    outage: tuple[str, int, int],
    attempts: list[tuple[int, int]],
    steps: list[tuple[int, int]],
) -> None:
    """A job on the node starts again. One that lacks it for its next step holds the one before as long as it may, and
    then is stopped.
    """
    history = played(failing(growing(expand_limit=limit), outages=[outage]), make_scheduler(name, {}))
    (planned,), record = history.record().jobs, history.record()
    assert [(one.start, one.end) for one in record.attempts] == attempts
    assert [(one.start, one.end) for one in planned.segments] == steps


def test_jobs_that_are_too_wide_for_what_is_up_wait() -> None:
    """A node fails before a job comes that needs all three in the end; one that fits on two goes first."""
    wide, narrow = growing(submit=5), waiting("narrow", 4, chunk(2, cores=4), submit=6)
    history = played(failing(wide, narrow, outages=[("a", 3, 50)]), make_scheduler("ep_infx", {}))
    assert starts(history) == {"grows": 50, "narrow": 6}


class Checked(EvolvingOnline):
    """Compares each fit of a running job with all its continuations."""

    fits = 0

    def _fits(self, site: Site, job: int) -> bool:
        application = application_of(site.instance, site.jobs[job])
        place, last = self._place(site, job), self._last(site.now, application, without=job)
        others = self._busy(site.now, without=job, until=last)
        free = [self._capacity - others.at(time) for time in range(last - site.now)]
        here, longest = self._steps[job][place], application.longest(self._variant.limit)[place:]
        # the seconds at which the steps so far can be over
        held, ends = site.now - here.start, {0}
        for number, (seconds, amount) in enumerate(application.steps[place:]):
            least, most = seconds, seconds if number == len(longest) - 1 else longest[number]
            if number == 0:
                least, most = max(0, least - held), max(0, most - held)
            reach = {(begin, end) for begin in ends for end in range(begin + least, min(begin + most, len(free)) + 1)}
            ends = {end for begin, end in reach if all(room >= amount for room in free[begin:end])}
        has_room = super()._fits(site, job)
        assert has_room == bool(ends)
        assert not ends or self._steps[job][-1].end == site.now + min(ends)
        type(self).fits += 1
        return has_room


@pytest.mark.slow
def test_any_nodes_fail_at_any_time() -> None:
    """No job is lost, and the judge agrees; running jobs are fitted wherever possible, and end as early as they can."""
    first = Checked.fits
    for seed in seeds(400):
        draw, count = Random(seed), Random(seed).randrange(2, 7)
        names, jobs = "abcdef"[:count], []
        for number in range(draw.randrange(1, 7)):
            job = waiting(f"job-{number}", 10, chunk(cores=4), submit=draw.randrange(0, 10))
            request, seconds = job.request, [draw.randrange(1, 9) for _ in range(draw.randrange(1, 6))]
            widths = [replace(request, chunks=(chunk(draw.randint(1, count), cores=4),)) for _ in seconds]
            steps = tuple(Step(walltime=one, request=wide) for one, wide in zip(seconds, widths, strict=True))
            runtime = draw.choice([None, 99, draw.randint(1, sum(seconds))])
            limit = draw.choice([None, 1, 1.5, 3])
            jobs.append(replace(job, steps=steps, runtime=runtime, expand_limit=limit))
        begins = [draw.randrange(1, 40) for _ in range(draw.randrange(1, 6))]
        lost = [(draw.choice(names), begin, begin + draw.randrange(1, 40)) for begin in begins]
        instance = failing(*jobs, outages=lost, names=" ".join(names))
        for variant in VARIANTS:
            record = played(instance, Checked(variant)).record()
            assert len(record.jobs) == len(jobs)
    assert Checked.fits > first
