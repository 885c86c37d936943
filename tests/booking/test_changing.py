"""Evolving jobs on a ledger: where they find place, by trying everything; and what they book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import floor
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, example, given
from hypothesis import strategies as st

from cpsched.booking import Ledger, changing
from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    Place,
    Placement,
    PlannedJob,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.planner import Planner
from cpsched.problem import refusal
from cpsched.rusv import FOREVER, StepSequences, Timeline
from tests.booking.small_windows import (
    EXCLUSIVE,
    FREE,
    PACK,
    SCATTER,
    chunk,
    cores_for_gpus,
    nodes,
    running,
    waiting,
    window,
)
from tests.oracle.dense_evolving import best_schedule
from tests.oracle.dense_placing import first_start
from tests.oracle.literal_sequences import find_literally
from tests.oracle.random_evolving import evolving_instances, evolving_jobs
from tests.oracle.random_instances import instances
from tests.portfolio.judged import assert_judged
from tests.sizes import examples

pytestmark = pytest.mark.kernels

ALONE = Place(arrangement=Arrangement.SCATTER, exclusive=True)
SLOW = examples(100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def evolving(job_id: str, *steps: tuple[int, int], place: Place = FREE, cores: int = 2, **options: Any) -> Job:
    """Return a waiting job of (walltime, chunks)."""
    return Job(
        **{"id": job_id, "submit": 0, **options},
        steps=tuple(
            Step(walltime=walltime, request=Request(chunks=(chunk(count, cores=cores),), place=place))
            for walltime, count in steps
        ),
    )


def planned(instance: Instance, *, backfilled: bool = False) -> dict[str, PlannedJob]:
    """Plan an instance; the judge finds no fault with it."""
    planner = Planner(instance)
    planner.plan()
    if backfilled:
        planner.backfill()
    outcome = planner.outcome()
    assert_judged(instance, outcome)
    return {job.id: job for job in outcome.jobs}


def lengths(job: PlannedJob) -> list[int]:
    """Return how long each segment of a job is."""
    return [segment.end - segment.start for segment in job.segments]


def on_nodes(job: PlannedJob) -> list[str]:
    """Return the nodes of each segment of a job."""
    return [" ".join(sorted({part.node for part in segment.allocation})) for segment in job.segments]


# ---- everything tried ----


@SLOW
@given(st.data())
def test_start_is_the_first_of_all(data: st.DataObject) -> None:
    """Without holds, one job beside running ones starts when trying every start and every node lets it start first
    (EVO-4).

    With several kinds of chunks no way may be found where there is one: it then starts later, or not at all.
    """
    drawn = data.draw(instances(4, 1, 3))
    cluster = replace(drawn.cluster, classes=tuple(replace(c, keep_free=()) for c in drawn.cluster.classes))
    others = tuple(job for job in drawn.jobs if job.running is not None)
    (first,) = (job for job in drawn.jobs if job.running is None)
    job = data.draw(evolving_jobs(replace(first, array=None, after=()), most_steps=3))
    instance = replace(drawn, cluster=cluster, jobs=(*others, replace(job, expand_limit=1)))
    assume(refusal(instance, instance.jobs[-1]) is None)
    horizon = instance.now + 60
    expected = first_start(instance, instance.jobs[-1], horizon)
    found = planned(instance).get(job.id)
    if all(len(step.request.chunks) == 1 for step in job.steps):
        assert (found and found.start) == expected
    elif found is not None:
        assert expected is not None
        assert found.start >= expected


def fixed(busy: Sequence[int]) -> tuple[Job, ...]:
    """Return jobs with fixed starts that hold nodes of one core: node number n whenever more than n are busy."""
    jobs = []
    for node in range(max(busy, default=0)):
        second = 0
        for is_busy, group in groupby(level > node for level in busy):
            length = len(list(group))
            if is_busy:
                asked = Chunk(count=1, resources=Amounts({"cores": 2}), where=FrozenMap({"id": str(node)}))
                jobs.append(waiting(f"{node}-{second}", length, asked, start_at=second))
            second += length
    return tuple(jobs)


def numbered(count: int) -> list[Any]:
    """Return nodes that can be asked for by number."""
    return [nodes(f"n{number}", cores=2, properties=FrozenMap({"id": str(number)})) for number in range(count)]


@SLOW
@example([(1, 3), (2, 2), (1, 3), (2, 4)], [(4, 1, 6, 2), (2, 1, 5, 3), (4, 0, 6, 2)], None, FREE)
@example([(2, 2), (2, 1), (3, 2), (3, 4)], [(1, 1, 2, 3), (3, 0, 2, 3), (2, 0, 3, 2), (2, 0, 4, 3)], None, FREE)
@example([(2, 3), (3, 1), (2, 2)], [(3, 0, 6, 3), (1, 0, 5, 3), (2, 1, 6, 3), (3, 0, 2, 3)], None, ALONE)
@given(
    steps=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 2, 3, 4])), min_size=2, max_size=4),
    busy=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([0, 1]), st.integers(2, 6), st.sampled_from([3, 2, 3, 4])),
        max_size=4,
    ),
    limit=st.sampled_from([None, None, 2, 1.5, 1]),
    place=st.sampled_from([FREE, SCATTER, EXCLUSIVE, ALONE]),
)
def test_holds_let_it_complete_as_early_as_any_schedule(
    steps: list[tuple[int, int]], busy: list[tuple[int, int, int, int]], limit: float | None, place: Place
) -> None:
    """Where what is busy is never in pieces, numbers of nodes tell all: the completion is the earliest of any schedule,
    and the start the latest with that completion (EVO-8, EVO-9, EVO-6).
    """
    levels = [level for calm, few, rush, many in busy for level in [few] * calm + [many] * rush]
    job = evolving("e", *steps, place=place, expand_limit=limit)
    instance = window(numbered(4), *fixed(levels), job)
    longest = [FOREVER if limit is None else floor(limit * walltime) for walltime, _ in steps]
    with patch.object(changing, "MOST_HELD", 1):  # one try is enough where the conditions say all
        found = planned(instance)["e"]
    assert (found.end, found.start) == best_schedule(steps, [(1, level) for level in levels], 4, longest)


@SLOW
@given(evolving_instances())
def test_every_plan_is_valid(instance: Instance) -> None:
    """Whatever evolves on whatever nodes beside whatever runs: the judge finds no fault, before and after backfilling,
    which lets nobody start or end later.
    """
    planner = Planner(instance)
    planner.plan()
    before = planner.outcome()
    assert_judged(instance, before)
    planner.backfill()
    after = planner.outcome()
    assert_judged(instance, after)
    now_at = {job.id: job for job in after.jobs}
    for job in before.jobs:
        assert now_at[job.id].start <= job.start
        assert now_at[job.id].end <= job.end


@SLOW
@given(evolving_instances())
def test_kernels_find_what_their_twin_finds(instance: Instance) -> None:
    """Whatever evolves on whatever nodes beside whatever stands: begins and entries are those of plain Python."""
    find_sequence = Timeline.find_sequence

    def compared(timeline: Timeline, sequences: StepSequences, number: int, **limits: int) -> Any:
        found = find_sequence(timeline, sequences, number, **limits)
        rows = None if found is None else [(start, sorted(map(tuple, held.tolist()))) for start, held in found]
        assert rows == find_literally(timeline, sequences.sequences[number], **limits)
        return found

    planner = Planner(instance)
    with patch.object(Timeline, "find_sequence", compared):
        planner.plan()
        planner.backfill()


# ---- worked examples ----


@pytest.mark.parametrize(("limit", "start", "held"), [(1, 12, [2, 2, 3]), (2, 12, [2, 2, 3]), (None, 4, [2, 6, 3])])
def test_worked_example(limit: float | None, start: int, held: list[int]) -> None:
    """EVO-10: 5 nodes, 3 of them busy in [0, 2) and [6, 12); {(2,4), (2,2), (3,4)} starts at 12, or at 4 and holds its
    second step for 6 s.
    """
    job = evolving("e", (2, 4), (2, 2), (3, 4), place=ALONE, expand_limit=limit)
    found = planned(window(numbered(5), *fixed([3] * 2 + [0] * 4 + [3] * 6), job))["e"]
    assert (found.start, lengths(found)) == (start, held)
    if limit is None:
        first, second, third = (set(names.split()) for names in on_nodes(found))
        assert second == {"n3", "n4"}
        assert second < first
        assert second < third


@pytest.mark.parametrize("limit", [1, 2, None])
def test_nobody_blocks_another(limit: float | None) -> None:
    """EVO-18: two jobs {(5,2), (5,3)} on 4 nodes, which would block each other step by step, run one after another."""
    jobs = [evolving(name, (5, 2), (5, 3), place=ALONE, expand_limit=limit) for name in ("a", "b")]
    found = planned(window([nodes("n1 n2 n3 n4", cores=2)], *jobs))
    assert [(found[name].start, found[name].end) for name in ("a", "b")] == [(0, 10), (10, 20)]


def test_each_step_has_its_own_request() -> None:
    """A chunk that asks for a GPU in its second step stands on a node with one from the first step on."""
    steps = (
        Step(walltime=5, request=Request(chunks=(chunk(2, cores=4),))),
        Step(walltime=5, request=Request(chunks=(chunk(2, cores=2, gpus=1),))),
        Step(walltime=5, request=Request(chunks=(chunk(1, cores=2, gpus=1),))),
    )
    classes = [nodes("a b", cores=8), nodes("g h", cores=8, gpus=1)]
    job = Job(id="e", submit=0, steps=steps)
    found = planned(window(classes, running("r", 4, g={"cores": 5}), job))["e"]
    assert (found.start, on_nodes(found)) == (4, ["g h", "g h", "g"])


def test_packed_job_stays_on_one_node() -> None:
    """A packed job needs a node that holds the largest of its steps when that comes."""
    place = PACK
    steps = tuple(
        Step(walltime=5, request=Request(chunks=(chunk(count, cores=2), chunk(1, mem=count)), place=place))
        for count in (1, 3, 2)
    )
    classes = [nodes("a", cores=4, mem=4), nodes("b", cores=8, mem=4)]
    instance = window(classes, running("r", 8, b={"cores": 4}), Job(id="e", submit=0, steps=steps))
    assert (planned(instance)["e"].start, on_nodes(planned(instance)["e"])) == (3, ["b", "b", "b"])


def test_kinds_that_stand_in_each_others_way() -> None:
    """A chunk that could stand anywhere leaves the only node of another kind to that."""
    steps = tuple(
        Step(walltime=5, request=Request(chunks=(chunk(count, cores=2), chunk(1, cores=2, where={"id": "0"}))))
        for count in (1, 2)
    )
    found = planned(window(numbered(3), Job(id="e", submit=0, steps=steps)))["e"]
    assert (found.start, on_nodes(found)) == (0, ["n0 n1", "n0 n1 n2"])


# ---- times ----


def test_holds_end_with_the_deadline() -> None:
    """A held job ends by its deadline; one second less and it cannot."""
    job = evolving("e", (2, 4), (2, 2), (3, 4), expand_limit=None)
    busy = fixed([3] * 2 + [0] * 4 + [3] * 6)
    assert planned(window(numbered(5), *busy, replace(job, deadline=15)))["e"].end == 15
    assert "e" not in planned(window(numbered(5), *busy, replace(job, deadline=14)))


def test_first_step_is_held_where_the_start_is_fixed() -> None:
    """A job that may not begin later holds its first step; it would be delayed otherwise."""
    job = evolving("e", (2, 2), (3, 4), expand_limit=None)
    busy = fixed([0] * 3 + [3] * 6)
    assert planned(window(numbered(5), *busy, job))["e"].start == 7
    found = planned(window(numbered(5), *busy, replace(job, start_at=1)))["e"]
    assert (found.start, lengths(found)) == (1, [8, 3])


@pytest.mark.parametrize(("kind", "start", "follows"), [(DependencyType.AFTEROK, 12, 19), (DependencyType.AFTER, 4, 4)])
def test_who_is_awaited_is_not_held(kind: DependencyType, start: int, follows: int) -> None:
    """A job that another one waits for to end is as long as it says; one that is waited for to start may be held."""
    job = evolving("e", (2, 4), (2, 2), (3, 4), expand_limit=None)
    after = waiting("w", 1, chunk(cores=2), after=(Dependency(job="e", type=kind),))
    found = planned(window(numbered(5), *fixed([3] * 2 + [0] * 4 + [3] * 6), job, after))
    assert (found["e"].start, found["w"].start) == (start, follows)


def test_licences_are_held_all_life_long() -> None:
    """A job of several steps needs its licences in each of them."""
    jobs = [
        waiting("w", 3, chunk(cores=1), licenses=Amounts({"solver": 1}), start_at=4),
        evolving("e", (2, 1), (3, 2), licenses=Amounts({"solver": 1})),
    ]
    assert planned(window([nodes("a b", cores=8)], *jobs, licenses={"solver": 1}))["e"].start == 7


# ---- what is booked ----


def state(ledger: Ledger) -> list[tuple[int, list[int], list[int]]]:
    """Return all that is free on a ledger."""
    times = ledger.timeline.breakpoints().tolist()
    return [(time, *(amounts.tolist() for amounts in ledger.timeline.free_at(time))) for time in times]


@SLOW
@given(evolving_instances())
def test_release_is_the_inverse_and_restore_the_same(instance: Instance) -> None:
    """When all are released nothing is left of them; and each can be restored where it stood."""
    jobs = [job for job in instance.elements() if job.running is None and refusal(instance, job) is None]
    ledger = Ledger(instance, jobs)
    empty = state(ledger)
    ledger.plan([job.id for job in jobs])
    full = state(ledger)
    places = {job.id: place for job in jobs if (place := ledger.planned(job.id)) is not None}
    for job_id in places:
        ledger.release(job_id)
    assert state(ledger) == empty
    assert all(map(ledger.restore, sorted(places.values(), key=lambda place: place.start)))
    assert state(ledger) == full
    assert {job_id: ledger.planned(job_id) for job_id in places} == places


RESTORED = evolving("e", (2, 1), (3, 3), (4, 2), expand_limit=2)


def moved(plan: PlannedJob, step: int, start: int, end: int, names: str) -> PlannedJob:
    """Return the plan with another segment for a step."""
    allocation = tuple(
        Placement(node=name, resources=Amounts({"cores": 2}), chunk=0, count=1) for name in names.split()
    )
    segments = [*plan.segments]
    segments[step] = Segment(start=start, end=end, allocation=allocation)
    return replace(plan, start=segments[0].start, end=segments[-1].end, segments=tuple(segments))


def test_restore_refuses_what_may_not_stand() -> None:
    """Neither shorter steps nor longer holds, other amounts, migration, a missing step, nor what is not free."""
    instance = window([nodes("a b c d", cores=2)], running("r", 3, d={"cores": 2}), RESTORED)
    plan = planned(instance)["e"]
    assert (on_nodes(plan), lengths(plan)) == (["a", "a b c", "a b"], [2, 3, 4])

    def may_stand(other: PlannedJob) -> bool:
        return Ledger(instance, [RESTORED]).restore(other)

    assert may_stand(plan)
    assert may_stand(moved(moved(plan, 1, 2, 8, "a b c"), 2, 8, 12, "b c"))
    assert not may_stand(moved(moved(plan, 1, 2, 9, "a b c"), 2, 9, 13, "a b"))  # held too long
    assert not may_stand(moved(moved(plan, 1, 2, 4, "a b c"), 2, 4, 8, "a b"))  # not long enough
    assert not may_stand(moved(plan, 2, 5, 10, "a b"))  # the last step is never held
    assert not may_stand(moved(plan, 1, 2, 5, "a b"))  # asks for three
    assert not may_stand(moved(plan, 0, 0, 2, "d"))  # busy
    assert not may_stand(moved(plan, 1, 2, 5, "b c d"))  # leaves a, and d is busy
    assert not may_stand(moved(plan, 2, 5, 9, "a d"))  # shrinks, and takes a new one
    assert not may_stand(replace(plan, segments=plan.segments[:2], end=plan.segments[1].end))


def test_backfilling_lets_it_move_up() -> None:
    """When a job is cancelled, an evolving job moves to where it ends earlier."""
    before = waiting("w", 5, chunk(2, cores=2))
    planner = Planner(window([nodes("a b", cores=2)], before, evolving("e", (2, 1), (3, 2))))
    planner.plan()
    assert planner.ledger.planned("e") is not None
    assert planner.cancel("w") == 1
    found = planner.ledger.planned("e")
    assert found is not None
    assert (found.start, found.end) == (0, 5)
    assert planner.backfill() == 0


def test_progress_counts_every_job() -> None:
    """Progress is reported for rigid and evolving jobs alike, up to the last."""
    jobs = [waiting("1", 1, chunk(cores=1)), evolving("2", (1, 1), (1, 2)), waiting("3", 1, chunk(cores=1))]
    told: list[tuple[int, int]] = []
    planner = Planner(window([nodes("a b", cores=2)], *jobs))
    planner.plan(lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


# ---- running jobs that change ----


def grows(at: int, end: int, before: str, after: str, place: Place = FREE, cores: int = 2) -> Job:
    """Return a job that runs from 0 on some nodes and was promised others from a time on."""
    parts = [(0, at, before), (at, end, after)]
    segments = tuple(
        Segment(
            start=start,
            end=stop,
            allocation=tuple(Placement(node=name, resources=Amounts({"cores": cores})) for name in names.split()),
        )
        for start, stop, names in parts
    )
    job = evolving("r", *((stop - start, len(names.split())) for start, stop, names in parts), place=place, cores=cores)
    return replace(job, running=Running(start=0, segments=segments))


@pytest.mark.parametrize(
    ("job", "start"),
    [
        (grows(4, 9, "a", "a b"), 9),  # six seconds on b end too late
        (grows(6, 9, "a", "a b"), 0),
        (grows(4, 9, "a b", "a"), 4),
        (grows(4, 9, "a b", "a", place=EXCLUSIVE, cores=1), 4),
        (grows(6, 9, "a", "a b", place=EXCLUSIVE, cores=1), 0),
        (grows(4, 9, "a", "a b", place=EXCLUSIVE, cores=1), 9),
    ],
)
def test_promised_growth_is_kept(job: Job, start: int) -> None:
    """Others stay away from nodes that a running job will get, and may use those that it will give back."""
    instance = window([nodes("a b", cores=2)], job, waiting("w", 6, chunk(cores=1)))
    assert planned(instance)["w"].start == start


def test_running_jobs_may_break_rules_piece_by_piece() -> None:
    """Where running jobs together take more than a node may give to them, nothing is left there, and no longer."""
    classes = [nodes("a", cores=4, keep_free=cores_for_gpus(1))]
    facts = (running("s", 2, a={"cores": 2}), grows(1, 3, "a", "a"))
    for cores, start in ((1, 2), (2, 3)):
        assert planned(window(classes, *facts, waiting("w", 1, chunk(cores=cores))))["w"].start == start
