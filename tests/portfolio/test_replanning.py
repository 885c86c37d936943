"""`replan` after events: nobody starts later without a cause, displaced is only what has less priority, and a second
call moves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    AllocationFailed,
    Amounts,
    CapacityChanged,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    JobAltered,
    JobCancelled,
    JobEnded,
    JobExtended,
    NodesChanged,
    NodeState,
    Place,
    Plan,
    PlannedJob,
    PromisedStart,
    Reservation,
    ReservationDropped,
    ReservationKind,
    ReservationMade,
    Step,
    WindowEvent,
)
from cpsched.errors import DocumentError, EngineError, UnverifiedError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import replan, solve
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.judges.ruled_windows import ruled_window
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples, seeds

ONE, FULL = chunk(cores=1), chunk(cores=4)


def drawn_events(random: Random, instance: Instance) -> list[WindowEvent]:
    """Draw one to three events of a window, some of which cannot happen."""
    return [_drawn_event(random, instance) for _ in range(random.choice([1, 1, 2, 3]))]


def _drawn_event(random: Random, instance: Instance) -> WindowEvent:
    names = instance.cluster.node_names
    some = tuple(random.sample(names, random.randint(1, min(2, len(names)))))
    jobs = [job.id for job in instance.elements()]
    job = random.choice(jobs)
    entry = random.choice(instance.jobs)
    changes: dict[str, Any] = random.choice(
        [
            {"steps": (replace(entry.steps[0], walltime=random.randint(1, 20)), *entry.steps[1:])},
            {"priority": random.randint(-2, 9)},
            {"not_before": instance.now + random.randint(0, 30)},
            {"deadline": instance.now + random.randint(10, 90)},
        ]
    )
    made = [replace(one, id="made") for one in instance.reservations]
    events: list[WindowEvent] = [
        JobEnded(job=job),
        JobCancelled(job=job),
        JobAltered(job=entry.id, changes=FrozenMap(changes)),
        JobExtended(job=job, seconds=random.randint(1, 3)),
        AllocationFailed(job=job, nodes=random.choice([(), some])),
        NodesChanged(nodes=some, state=random.choice(list(NodeState))),
        NodesChanged(nodes=some, state=NodeState.DOWN),
        CapacityChanged(nodes=some, resources=Amounts({"cores": random.randint(0, 4)})),
        *[ReservationMade(reservation=one) for one in made],
        *[ReservationDropped(reservation=one.id) for one in instance.reservations],
    ]
    return random.choice(events)


def starts(jobs: tuple[PlannedJob, ...]) -> dict[str, int]:
    """Return the starts of jobs."""
    return {job.id: job.start for job in jobs}


def check(seed: int) -> str:
    """Let some seconds pass in a random window with rules, and some events happen; return how it ended."""
    return check_window(parse_instance(ruled_window(seed)), Random(seed))


def check_window(instance: Instance, random: Random) -> str:
    """Let some seconds pass in a window, and some events happen; return how it ended."""
    plan = solve(instance, engine="planner", budget=0)
    events = drawn_events(random, instance)
    try:
        moved, new = replan(instance, plan, at=instance.now + random.choice([0, 0, 3, 9]), events=events)
    except UnverifiedError:
        raise
    except (DocumentError, EngineError):
        return "refused"
    check_step(plan, moved, new)
    still, again = replan(moved, new)
    assert verify(instance_to_document(still), plan_to_document(again)) == ()
    assert again.jobs == new.jobs, "a second pass moves something"
    return "planned"


def check_step(old: Plan, moved: Instance, new: Plan) -> None:
    """See that a plan keeps all rules, and that each later start has a cause."""
    assert verify(instance_to_document(moved), plan_to_document(new)) == ()
    known, after = {job.id for job in moved.elements()}, starts(new.jobs)
    said = [event.what for event in new.events]
    for name, start in starts(old.jobs).items():
        if name in known and after.get(name, 10**9) > start:
            causes = [what.partition(": ")[2] for what in said if what.startswith(f"job {name} ") and ": " in what]
            assert causes, f"{name} is later, at {after.get(name)} and not {start}; said is {said}"
            assert not causes[0].startswith("time has passed"), causes


@pytest.mark.kernels
@pytest.mark.parametrize("seed", seeds(60))
def test_whatever_happens(seed: int) -> None:
    """After random events in a random window with all rules the plan is sound, causes are named, and it stays
    (OCCS-51).
    """
    check(seed)


@pytest.mark.kernels
@examples(60)
@given(malleable_windows() | evolving_instances(), st.randoms(use_true_random=False))
def test_whatever_happens_to_jobs_that_change(instance: Instance, random: Random) -> None:
    """So it is where jobs are malleable or evolve, waiting and running ones."""
    check_window(instance, random)


def happened(instance: Instance, *events: WindowEvent, at: int | None = None) -> tuple[Instance, Plan, dict[str, int]]:
    """Plan a window, let events happen to it, and return the new window, its plan, and the starts."""
    plan = solve(instance, engine="planner", budget=0)
    moved, new = replan(instance, plan, at=at, events=events)
    check_step(plan, moved, new)
    return moved, new, starts(new.jobs)


def causes(plan: Plan) -> dict[str, str]:
    """Return the causes of later starts that a plan names, by job."""
    found = {}
    for event in plan.events:
        head, _, cause = event.what.partition(": ")
        if " planned was " in head:
            found[head.split()[1]] = cause
    return found


def node(*jobs: Any, cores: int = 4, **options: Any) -> Instance:
    """Return a window of one node."""
    return window([nodes("a", cores=cores)], *jobs, **options)


def test_the_paper_s_example_of_backfilling() -> None:
    """OCCS-34: J1 ends at 4 in place of 10: J2 moves to 4, J3 to 4, J4 to 9."""
    jobs = [waiting(f"J{n}", t, chunk(cores=c)) for n, t, c in ((2, 10, 3), (3, 5, 1), (4, 5, 1))]
    _, plan, found = happened(node(running("J1", 10, a={"cores": 4}), *jobs), JobEnded(job="J1"), at=4)
    assert found == {"J2": 4, "J3": 4, "J4": 9}
    assert [event.what for event in plan.events] == ["job J1 ended"]


def test_jobs_that_wait_for_a_cancelled_one() -> None:
    """Who waits for its success goes with it, and who waits for that; who waits for its end or failure is free."""
    links = {"ok": "afterok", "any": "afterany", "not": "afternotok"}
    jobs = [waiting(name, 5, ONE, after=(linked("x", kind, 3),)) for name, kind in links.items()]
    one = node(waiting("x", 5, ONE), *jobs, waiting("ok2", 5, ONE, after=(linked("ok", "after"),)))
    moved, plan, found = happened(one, JobCancelled(job="x"), at=0)
    assert found == {"any": 3, "not": 3}
    assert [job.id for job in moved.jobs] == ["any", "not"]
    said = [event.what for event in plan.events]
    assert said[0] == "job x was cancelled"
    assert "job ok: cancelled with job x, for which it waited" in said


@pytest.mark.parametrize(
    ("is_success", "left"),
    [(None, {"ok", "any", "not", "on_not"}), (True, {"ok", "any"}), (False, {"any", "not", "on_not"})],
)
def test_jobs_that_wait_for_another_outcome_are_revoked(is_success: bool | None, left: set[str]) -> None:
    """OCCS-49: a job whose dependency can be met no more goes, and with it the job that waits for its success."""
    links = {"ok": "afterok", "any": "afterany", "not": "afternotok"}
    jobs = [waiting(name, 5, ONE, after=(linked("r", kind),)) for name, kind in links.items()]
    one = node(running("r", 9, a={"cores": 4}), *jobs, waiting("on_not", 5, ONE, after=(linked("not", "afterok"),)))
    moved, plan, found = happened(one, JobEnded(job="r", is_success=is_success), at=4)
    assert {job.id for job in moved.jobs} == found.keys() == left
    said = [event.what for event in plan.events]
    assert ("job not: revoked, since it waited for another outcome of job r" in said) == bool(is_success)
    assert ("job on_not: cancelled with job not, for which it waited" in said) == bool(is_success)


def linked(job: str, kind: str, delay: int = 0) -> Dependency:
    """Return a dependency."""
    return Dependency(job=job, type=DependencyType(kind), delay=delay)


def test_elements_of_arrays_may_be_cancelled() -> None:
    """One element goes, the others stay as they are."""
    one = node(waiting("x", 5, FULL, array=(0, 1, 2)))
    assert happened(one, JobCancelled(job="x[1]"))[2] == {"x[0]": 0, "x[2]": 5}
    assert happened(one, JobCancelled(job="x"))[2] == {}


def test_a_shorter_job_keeps_its_start_and_lets_others_up() -> None:
    """X asks for 3 s in place of 10; y, behind it, starts earlier."""
    one = node(running("r", 7, a={"cores": 4}), waiting("x", 10, FULL), waiting("y", 5, FULL))
    shorter = JobAltered(job="x", changes=FrozenMap({"steps": (replace(one.jobs[1].steps[0], walltime=3),)}))
    assert happened(one, shorter)[2] == {"r": 0, "x": 7, "y": 10}


def test_a_request_that_leaves_no_start_is_refused() -> None:
    """What is asked for instead must be possible; the old request remains (OCCS-48)."""
    one = node(waiting("x", 10, FULL))
    step = Step(walltime=10, request=waiting("x", 10, chunk(cores=5)).request)
    with pytest.raises(EngineError, match=r"job x cannot be altered so: .*; the old request remains"):
        happened(one, JobAltered(job="x", changes=FrozenMap({"steps": (step,)})))


def test_an_altered_job_displaces_nobody() -> None:
    """A longer job that does not fit any more between others goes behind them, whatever its priority."""
    one = node(running("r", 10, a={"cores": 2}), waiting("x", 10, chunk(cores=2), priority=9), waiting("y", 5, FULL))
    longer = JobAltered(job="x", changes=FrozenMap({"steps": (replace(one.jobs[1].steps[0], walltime=11),)}))
    _, plan, found = happened(one, longer)
    assert found == {"r": 0, "y": 10, "x": 15}
    assert causes(plan) == {"x": "it was altered"}


def test_ten_hours_may_become_eleven() -> None:
    """OCCS-39: of 10 h, 30 and 20 minutes more are granted, a further 20 are not; the walltime remains 10 h."""
    one = node(running("r", 36_000, a={"cores": 4}), waiting("x", 10, FULL, priority=-1))
    moved, plan, found = happened(one, JobExtended(job="r", seconds=1800), JobExtended(job="r", seconds=1200))
    assert found["x"] == 39_000
    assert "job r has node a" in causes(plan)["x"]
    assert moved.jobs[0].walltime == 36_000
    with pytest.raises(EngineError, match=r"job r may end by 39600, a tenth of its walltime .*, got 40200"):
        replan(moved, plan, events=(JobExtended(job="r", seconds=1200),))
    assert starts(replan(moved, plan, events=(JobExtended(job="r", seconds=600),))[1].jobs)["x"] == 39_600


@pytest.mark.parametrize("more", [{}, {"priority": 3}, {"priority": -1, "start_at": 100}])
def test_an_extension_displaces_only_what_has_less_priority(more: dict[str, Any]) -> None:
    """A job of the same or a higher priority, or with a fixed start, keeps its nodes: the extension is refused."""
    one = node(running("r", 100, a={"cores": 4}), waiting("x", 10, FULL, **more))
    with pytest.raises(EngineError, match="job r cannot be extended by 5 s: job x, which is not of lower priority"):
        happened(one, JobExtended(job="r", seconds=5))


def test_an_extension_displaces_the_least() -> None:
    """Of two jobs that start on r's cores one must go: the one of lower priority, though it starts earlier."""
    one = window(
        [nodes("a b", cores=2)],
        running("r", 100, a={"cores": 1}),
        running("s", 100, a={"cores": 1}),
        running("t", 200, b={"cores": 2}),
        waiting("low", 10, ONE, priority=-2),
        waiting("high", 10, ONE, priority=-1, not_before=101),
    )
    _, plan, found = happened(one, JobExtended(job="r", seconds=5))
    assert (found["high"], found["low"]) == (101, 105)
    assert causes(plan).keys() == {"low"}


def test_a_running_job_is_in_the_way_of_an_extension() -> None:
    """A reservation, and what other running jobs were promised, are never displaced."""
    held = Reservation(id="s", start=100, end=300, request=waiting("s", 1, FULL).request, kind=ReservationKind.DOWNTIME)
    one = node(running("r", 100, a={"cores": 4}), reservations=(held,))
    with pytest.raises(EngineError, match="job r cannot be extended by 5 s: its nodes are those of reservation s then"):
        happened(one, JobExtended(job="r", seconds=5))


def test_a_job_that_fails_to_start_displaces_the_least_important() -> None:
    """OCCS-36: x cannot have a, and starts at its planned time on the nodes of the lowest priority that suffice
    (OCCS-38).
    """
    one = window(
        [nodes("a b c d", cores=4)],
        waiting("x", 10, FULL, priority=5),
        waiting("mid", 10, FULL, priority=2),
        waiting("low", 10, FULL, priority=1),
        waiting("peer", 10, FULL, priority=5),
    )
    plan = solve(one, engine="planner", budget=0)
    (own,) = {placement.node for job in plan.jobs if job.id == "x" for placement in job.segments[0].allocation}
    _, new, found = happened(one, AllocationFailed(job="x", nodes=(own,)))
    assert found == {"x": 0, "mid": 0, "peer": 0, "low": 10}
    assert list(causes(new)) == ["low"]


def test_a_victim_that_still_fits_comes_back() -> None:
    """X needs a whole node: tiny left first, in vain; so large left too, and tiny fits beside x again."""
    one = window(
        [nodes("a b", cores=4)],
        waiting("x", 10, chunk(cores=3), priority=5),
        waiting("large", 10, chunk(cores=3), priority=2),
        waiting("tiny", 10, ONE, priority=1),
        waiting("tiny2", 10, ONE, priority=1),
    )
    _, new, found = happened(one, AllocationFailed(job="x", nodes=(place_of(one, "x"),)))
    assert (found["x"], found["large"]) == (0, 10)
    assert min(found["tiny"], found["tiny2"]) == 0
    assert "large" in causes(new)


def place_of(instance: Instance, name: str) -> str:
    """Return the node of a job in the planner's plan."""
    plan = solve(instance, engine="planner", budget=0)
    (job,) = (job for job in plan.jobs if job.id == name)
    return job.segments[0].allocation[0].node


def test_running_and_fixed_jobs_are_never_displaced() -> None:
    """Where only these are in the way, the job waits."""
    one = window(
        [nodes("a b", cores=4)],
        running("r", 20, b={"cores": 2}),
        waiting("x", 10, chunk(cores=3), priority=5),
        waiting("fixed", 10, chunk(cores=2), priority=0, start_at=0),
    )
    _, _, found = happened(one, AllocationFailed(job="x", nodes=("a",)))
    assert (found["fixed"], found["x"]) == (0, 20)


def test_those_that_wait_for_a_victim_leave_with_it() -> None:
    """low2 waits for low and has less priority than x: both go; if it has more, low stays and x waits."""
    for priority, expected in ((0, {"x": 0, "low": 10, "low2": 20}), (9, {"x": 20, "low": 0, "low2": 10})):
        one = window(
            [nodes("a b", cores=4)],
            waiting("x", 10, FULL, priority=5),
            waiting("low", 10, FULL, priority=1),
            waiting("low2", 10, FULL, priority=priority, after=(linked("low", "afterok"),)),
        )
        assert happened(one, AllocationFailed(job="x", nodes=(place_of(one, "x"),)))[2] == expected


def test_what_runs_on_a_node_that_goes_down_begins_anew() -> None:
    """R ran on a, which is down: it waits, as promised before, and starts on b when that is free."""
    one = window(
        [nodes("a b", cores=4)],
        running("r", 50, a={"cores": 4}),
        running("s", 20, b={"cores": 4}),
    )
    moved, new, found = happened(one, NodesChanged(nodes=("a",), state=NodeState.DOWN), at=5)
    assert found == {"r": 20, "s": 0}
    assert causes(new) == {"r": "it ran on a, which is down, and begins anew"}
    back, plan = replan(moved, new, at=10, events=(NodesChanged(nodes=("a",), state=NodeState.UP),))
    assert starts(plan.jobs) == {"r": 10, "s": 0}
    assert len(back.cluster.classes) == 1


def test_a_promised_start_outlives_a_failure() -> None:
    """A job that began since, and whose node failed, waits again, and was told what it had been told."""
    one = window([nodes("a b", cores=4)], waiting("x", 10, FULL, told=PromisedStart(start=0, price=7)))
    moved, _, found = happened(one, NodesChanged(nodes=(place_of(one, "x"),), state=NodeState.DOWN), at=5)
    assert found == {"x": 5}
    assert moved.jobs[0].told == PromisedStart(start=0, price=7)


def test_the_waiting_room_empties_when_nodes_return() -> None:
    """OCCS-37: a job without a start is planned as soon as a node is up again."""
    one = window([nodes("a", cores=4, state=NodeState.DRAIN)], waiting("x", 10, FULL))
    assert happened(one)[2] == {}
    assert happened(one, NodesChanged(nodes=("a",), state=NodeState.UP), at=3)[2] == {"x": 3}


def test_capacities_change() -> None:
    """OCCS-45: with three of four cores left the job of lower priority waits; with fewer licences, too."""
    jobs = [waiting("x", 5, chunk(cores=2), priority=1), waiting("y", 5, chunk(cores=2), priority=2)]
    _, new, found = happened(node(*jobs), CapacityChanged(nodes=("a",), resources=Amounts({"cores": 3})))
    assert found == {"x": 5, "y": 0}
    assert causes(new) == {"x": "the capacity of node a changed"}
    licensed = [replace(job, licenses=Amounts({"lic": 1})) for job in jobs]
    one = node(*licensed, licenses={"lic": 2})
    assert happened(one, CapacityChanged(licenses=Amounts({"lic": 1})))[2] == {"x": 5, "y": 0}


def test_an_exclusive_job_leaves_a_node_that_has_become_too_small() -> None:
    """The verifier has nothing to refuse: two kinds of chunks that take 5 cores together do not stay on 4."""
    one = window([nodes("a b", cores=6)], waiting("x", 5, ONE, chunk(2, cores=2), place=Place(exclusive=True)))
    _, plan, found = happened(one, CapacityChanged(nodes=(place_of(one, "x"),), resources=Amounts({"cores": 4})))
    assert found == {"x": 0}
    assert [event.by for event in plan.events] == ["replan"]


def test_reservations_come_and_go() -> None:
    """A slice takes the place of a planned job, which comes back when it is dropped; the slice keeps its nodes."""
    held = Reservation(id="s", start=5, end=50, request=waiting("s", 1, FULL).request, kind=ReservationKind.DOWNTIME)
    one = window([nodes("a b", cores=4)], running("r", 9, a={"cores": 4}), waiting("x", 10, FULL, not_before=5))
    moved, new, found = happened(one, ReservationMade(reservation=held))
    assert found == {"r": 0, "x": 9}
    assert causes(new) == {"x": "reservation s has its nodes from 5 to 50"}
    later, kept = replan(moved, new, at=4, events=(JobEnded(job="r"),))
    assert kept.reservations == new.reservations
    _, back = replan(later, kept, events=(ReservationDropped(reservation="s"),))
    assert starts(back.jobs) == {"x": 5}


def test_nothing_happens_to_what_is_not_there() -> None:
    """An event of an unknown job, or of one in another state, is refused with its place."""
    one = node(running("r", 20, a={"cores": 1}), waiting("x", 10, ONE))
    for event, said in (
        (JobEnded(job="x"), "job: Expected a job that is running at 0, got one that is allocating"),
        (JobAltered(job="r", changes=FrozenMap({"priority": 1})), "got one that is running"),
        (JobCancelled(job="y"), "job: Expected a job of the window at 0, got y"),
        (ReservationDropped(reservation="s"), "reservation: Expected a reservation of the window at 0, got s"),
    ):
        with pytest.raises(DocumentError, match=said):
            happened(one, event)


def test_an_alteration_is_checked_as_a_document() -> None:
    """A queue that is not declared is a fault of the window after the event."""
    with pytest.raises(DocumentError, match="queue"):
        happened(node(waiting("x", 10, ONE)), JobAltered(job="x", changes=FrozenMap({"queue": "none"})))
