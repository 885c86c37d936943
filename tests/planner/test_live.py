"""A plan that lives is, after each event, the plan that is made anew by the same rule."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, FrozenMap, Instance, Job, MaxWait, NodeState, Place, Plan
from cpsched.engine import Outcome
from cpsched.planner import LivePlanner, advanced, replanned
from cpsched.portfolio import plan_of
from tests.oracle.random_instances import instances, pressed
from tests.planner.checked import check_outcome
from tests.sizes import examples


def as_plan(instance: Instance, outcome: Outcome) -> Plan:
    """Return an outcome as the plan of a window."""
    return plan_of(instance, "planner", outcome, budget=0, elapsed=0)


def followed(live: LivePlanner, later: Instance) -> Outcome:
    """Follow a window; see that the plan is the one that is made anew, and the ledger is that of a new one."""
    before = as_plan(live.instance, live.outcome())
    anew = replanned(later, before)
    live.follow(later)
    outcome = live.outcome()
    check_outcome(later, outcome)
    assert outcome.jobs == anew.jobs
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


def check(instance: Instance, random: Random) -> None:
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
        current = followed(live, later)


@pytest.mark.kernels
@examples(150)
@given(instances(max_jobs=12) | instances(max_jobs=12).flatmap(pressed), st.randoms(use_true_random=False))
def test_a_living_plan_is_the_plan_made_anew(instance: Instance, random: Random) -> None:
    """After each of some random events, in a random window, and some seconds later."""
    check(instance, random)
