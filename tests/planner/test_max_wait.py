"""Nobody starves: what a queue's ``max_wait`` makes of the planner's order, and of every rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from cpsched.domain import FrozenMap, Instance, MaxWait, Queue, WaitingReason
from cpsched.planner import PlannerEngine
from cpsched.problem import bound_jobs, planning_order
from cpsched.rules import POLICIES
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.literal_planner import plan_literally
from tests.oracle.random_instances import instances, pressed
from tests.planner.checked import places, solved
from tests.planner.checked import starts as starts_of
from tests.portfolio.judged import assert_judged
from tests.rules.ruled import RULES
from tests.sizes import examples

FOUR = nodes("n", cores=4)
ENGINES = ["planner", *(rule for rule in RULES)]


def planned(instance: Instance, engine: str) -> dict[str, int | None]:
    """Return the start of each waiting job, None for those in the waiting room, of a plan that the judge has passed."""
    outcome = (PlannerEngine() if engine == "planner" else POLICIES[engine]).plan(instance, None)
    assert_judged(instance, outcome)
    found: dict[str, int | None] = {job.id: job.start for job in outcome.jobs}
    return found | {job.id: None for job in outcome.waiting_room}


def flood(max_wait: MaxWait | None) -> Instance:
    """Return a wide, long job that came last in a queue of its own, behind forty short ones of a better queue: these
    fill the node until 100.
    """
    queues = {
        "short": Queue(expected_wait=10, priority=9),
        "wide": Queue(expected_wait=1000, max_wait=max_wait),
    }
    jobs = [waiting(f"s{n}", 10, chunk(cores=1), queue="short") for n in range(40)]
    wide = waiting("wide", 500, chunk(cores=4), queue="wide", submit=1)
    return window([FOUR], *jobs, wide, queues=FrozenMap(queues))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_job_in_a_flood(engine: str) -> None:
    """Without a limit the wide job waits for all the short ones; with a hard one of 50 s it starts by then."""
    starving = planned(flood(None), engine)
    assert starving["wide"] == 100
    saved = planned(flood(MaxWait(seconds=50, is_hard=True)), engine)
    assert saved["wide"] is not None
    assert saved["wide"] <= 51
    assert None not in saved.values()


@pytest.mark.parametrize("is_hard", [False, True])
def test_an_overdue_job_goes_first(is_hard: bool) -> None:
    """At second 60 the wide job has waited for 59 s of 50: it is before the others now, and starts at once."""
    instance = replace(flood(MaxWait(seconds=50, is_hard=is_hard)), now=60)
    assert starts_of(instance)["wide"] == 60
    soft = replace(flood(MaxWait(seconds=50)), now=51)
    assert starts_of(soft)["wide"] == 151  # it is due in this very second, and not overdue


def test_the_order_of_limits() -> None:
    """Fixed starts, deadlines, hard limits by due time, overdue jobs by due time, the rest by priority."""
    queues = FrozenMap(
        {
            "hard": Queue(expected_wait=9, priority=3, max_wait=MaxWait(seconds=20, is_hard=True)),
            "soft": Queue(expected_wait=9, max_wait=MaxWait(seconds=5)),
            "none": Queue(expected_wait=9, priority=7),
        }
    )
    one = chunk(cores=1)
    jobs = (
        waiting("rest", 5, one, queue="none"),
        waiting("waits", 5, one, queue="soft", submit=-5),  # due now: not overdue
        waiting("late", 5, one, queue="soft", submit=-6),
        waiting("later", 5, one, queue="soft", submit=-8, priority=-9),
        waiting("lost", 5, one, queue="hard", submit=-21),
        waiting("tight", 5, one, queue="hard", submit=-20, priority=-9),
        waiting("loose", 5, one, queue="hard", submit=3, priority=9),
        waiting("twin", 5, one, queue="hard", submit=3),
        waiting("deadline", 5, one, queue="hard", submit=-19, deadline=50),
        waiting("fixed", 5, one, queue="soft", submit=-19, start_at=9),
    )
    instance = window([FOUR], *jobs, queues=queues)
    order = [job.id for job in planning_order(instance, jobs)]
    assert order == ["fixed", "deadline", "tight", "loose", "twin", "later", "lost", "late", "rest", "waits"]
    assert [job.id for job in bound_jobs(instance, jobs)] == ["fixed", "deadline", "tight", "loose", "twin"]


def hard(seconds: int) -> FrozenMap[str, Queue]:
    """Return a queue whose jobs have to start after so many seconds."""
    return FrozenMap({"q": Queue(expected_wait=10, max_wait=MaxWait(seconds=seconds, is_hard=True))})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("seconds", "start"), [(29, None), (30, 30)])
def test_what_fits_nowhere_in_time_is_too_late(engine: str, seconds: int, start: int | None) -> None:
    """The node is taken until 30: a job that has to start before is in the waiting room, and the reason is true."""
    job = waiting("j", 5, chunk(cores=2), queue="q")
    instance = window([FOUR], running("r", 30, n={"cores": 3}), job, queues=hard(seconds))
    assert planned(instance, engine)["j"] == start
    if start is None:
        (entry,) = PlannerEngine().plan(instance, None).waiting_room
        assert entry.reason is WaitingReason.TOO_LATE
        assert entry.detail == "finds no start by 29, when it has waited for the max_wait of its queue q"


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"not_before": 31}, "starts at 31 at the earliest; by the max_wait of its queue q it has to by 30"),
        ({"start_at": 40}, "starts at 40 at the earliest; by the max_wait of its queue q it has to by 30"),
    ],
)
def test_own_times_beyond_the_limit(options: dict[str, Any], detail: str) -> None:
    """A job that may start only after its limit never can."""
    job = waiting("j", 5, chunk(cores=1), queue="q", **options)
    twin = waiting("twin", 5, chunk(cores=1), queue="q")
    instance = window([FOUR], twin, job, queues=hard(30))
    assert starts_of(instance) == {"twin": 0, "j": None}
    (entry,) = solved(instance).waiting_room
    assert (entry.reason, entry.detail) == (WaitingReason.TOO_LATE, detail)


def test_the_earlier_of_limit_and_deadline_counts() -> None:
    """The node is full until 20. A job may start by 30 for its limit, but has to end by 24 and takes 5 s: too late."""
    full = running("r", 20, n={"cores": 4})
    job = waiting("j", 5, chunk(cores=1), queue="q", deadline=24)
    assert starts_of(window([FOUR], full, job, queues=hard(30))) == {"j": None}
    assert starts_of(window([FOUR], full, replace(job, deadline=25), queues=hard(30))) == {"j": 20}
    assert starts_of(window([FOUR], full, replace(job, deadline=25), queues=hard(19))) == {"j": None}


def test_tight_limits_are_met_before_loose_ones() -> None:
    """Three jobs take the node for 10 s each: in the order of their limits all are in time, in that of priority one."""
    queues = {f"q{n}": Queue(expected_wait=10, max_wait=MaxWait(seconds=n, is_hard=True)) for n in (1, 10, 20)}
    jobs = [
        waiting(f"j{n}", 10, chunk(cores=4), queue=f"q{n}", priority=priority)
        for n, priority in ((20, 9), (10, 5), (1, 1))
    ]
    instance = window([FOUR], *jobs, queues=FrozenMap(queues))
    assert starts_of(instance) == {"j1": 0, "j10": 10, "j20": 20}


@examples(80)
@given(instances().flatmap(pressed))
def test_starts_and_nodes_are_the_literal_planners(instance: Instance) -> None:
    """With limits of waiting, too, the planner does what the algebra's own planner does; and the judge agrees. Only if
    one that must start in time is too late then, the planner tries further orders, and has as many places at least.
    """
    ours, literal = places(instance, solved(instance)), plan_literally(instance)
    if ours != literal:
        waiting_jobs = [job for job in instance.elements() if job.running is None]
        assert any(literal[job.id] is None for job in bound_jobs(instance, waiting_jobs))
        assert sum(place is None for place in ours.values()) <= sum(place is None for place in literal.values())


@pytest.mark.parametrize("engine", ENGINES[1:])
@examples(15)
@given(instances().flatmap(pressed))
def test_rules_keep_the_limits(engine: str, instance: Instance) -> None:
    """Under each rule, jobs that must start in time have the planner's starts, and the judge agrees; if one of them is
    too late the planner tries further orders, and has places for as many jobs at least.
    """
    ours, planners = planned(instance, engine), planned(instance, "planner")
    waiting_jobs = tuple(job for job in instance.elements() if job.running is None)
    if not any(job.after for job in waiting_jobs):
        bound = [job.id for job in bound_jobs(instance, waiting_jobs)]
        if any(ours[name] is None for name in bound):
            assert sum(start is None for start in planners.values()) <= sum(start is None for start in ours.values())
        else:
            assert [ours[name] for name in bound] == [planners[name] for name in bound]
