"""The plan that lives, with rules and events: after each of them it is the plan made anew, and keeps all rules."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import FrozenMap, Instance, JobAltered, JobEnded, JobExtended, Plan, WindowEvent
from cpsched.errors import DocumentError, EngineError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import LivePlan, plan_of, solve
from cpsched.portfolio.leftovers import filled
from cpsched.portfolio.repair import verified
from cpsched.portfolio.scoring import Check
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.judges.ruled_windows import ruled_window
from tests.oracle.random_instances import instances, pressed
from tests.portfolio.test_replanning import drawn_events
from tests.sizes import examples, seeds


def document(live: LivePlan) -> Plan:
    """Return the plan as a document has it; the judge finds no fault with it."""
    made = plan_of(live.window, "planner", live.outcome(), slices=live.slices, budget=0, elapsed=0)
    check = Check.of(live.window)
    made = verified(check, filled(check, made, at=0), engine="planner", at=0)
    assert verify(instance_to_document(live.window), plan_to_document(made)) == ()
    return made


def happened(live: LivePlan, event: WindowEvent, at: int | None) -> bool:
    """Let an event happen to a plan, and to one that is made of its documents; both come to the same. Return whether
    the event can happen; if not, the plan is as it was.
    """
    other = LivePlan(live.window, live.plan())
    before = live.window, live.outcome().jobs
    try:
        what = live.happened(event, at=at)
    except (DocumentError, EngineError) as error:
        with pytest.raises(type(error)):
            other.happened(event, at=at)
        assert (live.window, live.outcome().jobs) == before
        return False
    assert other.happened(event, at=at) == what
    assert untold(other.window) == untold(live.window)
    assert places(other) == places(live)
    document(live)
    return True


def untold(instance: Instance) -> Instance:
    """Return a window without promised starts: only the plan that lives remembers them of jobs that ran meanwhile."""
    return replace(instance, jobs=tuple(replace(job, told=None) for job in instance.jobs))


def places(live: LivePlan) -> list[object]:
    """Return where all jobs stand, and why others wait; in which order a job has its nodes does not count."""
    outcome = live.outcome()
    held = [
        (job.id, [(one.start, one.end, sorted(map(repr, one.allocation))) for one in job.segments])
        for job in outcome.jobs
    ]
    return [held, outcome.waiting_room]


def check(instance: Instance, random: Random) -> None:
    """Let some events happen to a window, one after the other."""
    live = LivePlan(instance, solve(instance, engine="planner", budget=0))
    for _ in range(random.randint(2, 4)):
        for event in drawn_events(random, live.window)[:1] if live.window.jobs else []:
            happened(live, event, live.window.now + random.choice([0, 0, 1, 4]))
    live.follow(replace(live.window, now=live.window.now))
    document(live)


@pytest.mark.kernels
@examples(60)
@given(instances(max_jobs=10) | instances(max_jobs=10).flatmap(pressed), st.randoms(use_true_random=False))
def test_whatever_happens_it_is_the_plan_made_anew(instance: Instance, random: Random) -> None:
    """In random windows, after random events, some of which cannot happen."""
    check(instance, random)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", seeds(20))
def test_whatever_happens_it_keeps_the_rules(seed: int) -> None:
    """So it is in windows with limits, free pools, reservations and strict priorities."""
    check(parse_instance(ruled_window(seed)), Random(seed))


def test_a_refused_event_changes_nothing() -> None:
    """The job a cannot be extended, since b of higher priority has its core then; when c has ended, b moves up."""
    jobs = waiting("b", 50, chunk(cores=2), priority=9), waiting("d", 5, chunk(cores=1))
    instance = window(
        [nodes("n", cores=2)], running("a", 100, n={"cores": 1}), running("c", 100, n={"cores": 1}), *jobs
    )
    live = LivePlan(instance, solve(instance, engine="planner", budget=0))
    with pytest.raises(EngineError, match="cannot be extended"):
        live.happened(JobExtended(job="a", seconds=5))
    assert {job.id: job.start for job in live.outcome().jobs} == {"a": 0, "c": 0, "b": 100, "d": 150}
    assert live.window is instance
    live.happened(JobEnded(job="c"), at=40)
    assert {job.id: job.start for job in live.outcome().jobs} == {"a": 0, "b": 100, "d": 40}


def test_an_alteration_keeps_the_place() -> None:
    """The job b keeps its start when it asks for less time, and d, which came after it, moves up behind it."""
    jobs = waiting("b", 50, chunk(cores=1)), waiting("d", 5, chunk(cores=1))
    instance = window([nodes("n", cores=1)], running("a", 10, n={"cores": 1}), *jobs)
    live = LivePlan(instance, solve(instance, engine="planner", budget=0))
    (step,) = jobs[0].steps
    what = live.happened(JobAltered(job="b", changes=FrozenMap({"steps": (replace(step, walltime=20),)})))
    assert what.words == "job b was altered"
    assert {job.id: job.start for job in live.outcome().jobs} == {"a": 0, "b": 10, "d": 30}
