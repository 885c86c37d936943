"""A plan that lives is, after each event, the plan that is made anew by the same rule."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, FrozenMap, Instance, Job, MaxWait, NodeState, Place, Plan
from cpsched.engine import Outcome
from cpsched.planner import Concern, LivePlanner, advanced
from cpsched.portfolio import plan_of
from tests.booking.small_windows import chunk, nodes, running, waiting, where_it_stands, window
from tests.oracle.random_instances import instances, pressed
from tests.portfolio.judged import assert_judged
from tests.sizes import examples


def as_plan(instance: Instance, outcome: Outcome) -> Plan:
    """Return an outcome as the plan of a window."""
    return plan_of(instance, "planner", outcome, budget=0, elapsed=0)


def followed(live: LivePlanner, later: Instance, concern: Concern | None = None) -> Outcome:
    """Follow a window; see that the plan is sound, and the one that is made anew.

    In which order a job of several kinds of chunks has its nodes is no part of the plan.
    """
    before = live.outcome().jobs
    anew = LivePlanner(later, before, live.instance.now, concern).outcome()
    live.follow(later, concern)
    outcome = live.outcome()
    assert_judged(later, outcome)
    assert [job.id for job in outcome.jobs] == [job.id for job in anew.jobs]
    for job, expected in zip(outcome.jobs, anew.jobs, strict=True):
        assert job.end == expected.end
        assert where_it_stands(later, job) == where_it_stands(later, expected)
    assert outcome.waiting_room == anew.waiting_room
    return outcome


def with_job(instance: Instance, changed: Job) -> Instance:
    """Return a window with one of its jobs changed."""
    return replace(instance, jobs=tuple(changed if job.id == changed.id else job for job in instance.jobs))


def without_job(instance: Instance, name: str) -> Instance:
    """Return a window in which a job is gone, and nobody waits for it."""
    members = {name, *next(job.element_ids for job in instance.jobs if job.id == name)}
    return replace(
        instance,
        jobs=tuple(
            replace(job, after=tuple(one for one in job.after if one.job not in members))
            for job in instance.jobs
            if job.id != name
        ),
    )


def happened(random: Random, instance: Instance, arriving: list[Job]) -> Instance:
    """Let one thing happen to a window."""
    jobs = list(instance.jobs)
    what = random.choice(
        ["arrives", "arrives", "ends", "ends", "overruns", "cancelled", "altered", "failed", "node", "rule"]
    )
    if what == "arrives" and arriving:
        return arrived(instance, arriving.pop())
    if not jobs:
        return instance
    job = random.choice(jobs)
    if what in ("ends", "cancelled"):
        return without_job(instance, job.id)
    if what == "overruns" and job.running is not None:
        *past, last = job.running.segments
        longer = replace(last, end=last.end + random.randint(1, 6))
        return with_job(instance, replace(job, running=replace(job.running, segments=(*past, longer))))
    if what == "failed" and job.running is not None:
        return with_job(instance, replace(job, running=None))
    if what == "altered" and job.running is None:
        return with_job(instance, altered(random, job, instance.now))
    if what == "node":
        classes = list(instance.cluster.classes)
        place = random.randrange(len(classes))
        classes[place] = replace(classes[place], state=random.choice([NodeState.UP, NodeState.UP, NodeState.DOWN]))
        return replace(instance, cluster=replace(instance.cluster, classes=tuple(classes)))
    if what == "rule":
        wait = MaxWait(seconds=random.randint(1, 20), price=1, is_hard=random.random() < 0.5)
        queues = {**instance.queues, "long": replace(instance.queues["long"], max_wait=random.choice([None, wait]))}
        return replace(instance, queues=FrozenMap(queues))
    return instance


def altered(random: Random, job: Job, now: int) -> Job:
    """Return a waiting job that asks for something else."""
    (step,) = job.steps
    return random.choice(
        [
            replace(job, steps=(replace(step, walltime=random.randint(1, 9)),)),
            replace(job, priority=random.randint(-1, 12)),
            replace(job, deadline=now + random.randint(5, 30)),
            replace(job, not_before=now + random.randint(0, 9)),
            replace(job, licenses=Amounts()),
            replace(job, user="eve"),
            replace(job, steps=(replace(step, request=replace(step.request, place=Place(exclusive=True))),)),
        ]
    )


def arrived(instance: Instance, job: Job) -> Instance:
    """Return a window with one more job, which waits for those of its like that are still there."""
    members = instance.members()
    after = tuple(one for one in job.after if one.job in members)
    return replace(instance, jobs=(*instance.jobs, replace(job, after=after, submit=min(job.submit, instance.now))))


def check(instance: Instance, random: Random, *, is_event: bool = False) -> None:
    """Let time pass in a window, and things happen."""
    arriving = [job for job in instance.jobs if job.running is None and random.random() < 0.5]
    for job in arriving:
        instance = without_job(instance, job.id)
    live = LivePlanner(instance)
    current = live.outcome()
    for _ in range(random.randint(3, 8)):
        plan = as_plan(live.instance, current)
        later = advanced(live.instance, plan, live.instance.now + random.choice([0, 0, 1, 2, 7]))
        for _ in range(random.choice([0, 1, 1, 2])):
            later = happened(random, later, arriving)
        current = followed(live, later, drawn_concern(random, live.instance, later) if is_event else None)


def drawn_concern(random: Random, before: Instance, later: Instance) -> Concern:
    """Draw what an event means: the jobs that ask for something else are altered, and some others urgent."""
    known = {job.id: job for job in before.elements()}
    jobs = [job for job in later.elements() if job.running is None]
    return Concern(
        altered=[job.id for job in jobs if job.id in known and job != known[job.id]],
        urgent=[job.id for job in jobs if random.random() < 0.2],
    )


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("depth", [1000, 3, 0])
@examples(100)
@given(
    instance=instances(max_jobs=12) | instances(max_jobs=12).flatmap(pressed), random=st.randoms(use_true_random=False)
)
def test_a_living_plan_is_the_plan_made_anew(depth: int, instance: Instance, random: Random) -> None:
    """After each of some random events, in a random window, and some seconds later: so it is where all jobs move up, or
    only the first few do and the others start now if they can.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cpsched.planner.live._DEPTH", depth)
        check(instance, random)


@pytest.mark.kernels
@examples(100)
@given(instances(max_jobs=12) | instances(max_jobs=12).flatmap(pressed), st.randoms(use_true_random=False))
def test_so_it_is_after_events(instance: Instance, random: Random) -> None:
    """Where some jobs are urgent, and others altered, and no job is to start later without a cause."""
    check(instance, random, is_event=True)


def one_core(*jobs: Job) -> Instance:
    """Return a window of one core, on which a job runs until 10."""
    return window([nodes("n", cores=1)], running("a", 10, n={"cores": 1}), *jobs)


def starts(outcome: Outcome) -> dict[str, int]:
    """Return the starts of jobs."""
    return {job.id: job.start for job in outcome.jobs}


def test_a_job_that_would_be_lost_is_rescued() -> None:
    """The new job c has to end by 25, b by 100, and d has no deadline: b and d make way for c, in that order."""
    first = one_core(waiting("b", 10, chunk(cores=1), deadline=100), waiting("d", 5, chunk(cores=1)))
    live = LivePlanner(first)
    assert starts(live.outcome()) == {"a": 0, "b": 10, "d": 20}
    later = replace(first, jobs=(*first.jobs, waiting("c", 10, chunk(cores=1), deadline=25)))
    assert starts(followed(live, later)) == {"a": 0, "c": 10, "b": 20, "d": 30}


def test_a_job_that_no_plan_has_moves_no_other_job() -> None:
    """The job c has to end by 15, and cannot: nobody makes way for it, at no second."""
    first = one_core(waiting("b", 10, chunk(cores=1), deadline=100))
    live = LivePlanner(first)
    later = replace(first, jobs=(*first.jobs, waiting("c", 10, chunk(cores=1), deadline=15)))
    for now in (0, 3):
        assert starts(followed(live, replace(later, now=now))) == {"a": 0, "b": 10}
