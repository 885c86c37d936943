"""The planner against the literal one, and the specification's worked examples to the number."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import AdmitCondition, Amounts, FrozenMap, Instance, Job, NodeState, Place, Queue
from cpsched.formats import read_instance
from cpsched.planner import Planner, Values, latest_starts
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
    where_it_stands,
    window,
)
from tests.oracle.literal_planner import Mapped, awaited, plan_literally
from tests.oracle.random_instances import instances
from tests.planner.checked import assert_valid, places, solved, starts
from tests.sizes import examples

LONG = 10**9


@pytest.mark.kernels
@examples(150)
@given(instances())
def test_starts_and_nodes_are_the_literal_planners(instance: Instance) -> None:
    """Every job has the start and the nodes that the algebra's own planner gives it, unless a job is too late there;
    and the judge agrees (OCCS-21).
    """
    assert_literal_or_rescued(instance)


@examples(30)
@given(instances(max_nodes=9, max_jobs=16, max_running=6))
def test_larger_windows(instance: Instance) -> None:
    """The same with more of everything."""
    assert_literal_or_rescued(instance)


def test_a_rescue_takes_jobs_for_others_of_more_value(repository: Path) -> None:
    """Two elements of arrays lose their places to two other jobs, with which the plan has as many and a lower value."""
    instance = read_instance(repository / "tests" / "cases" / "rescue-swaps.json")
    assert_literal_or_rescued(instance)
    found, literal = places(instance, solved(instance)), plan_literally(instance)
    assert {name for name, place in literal.items() if place and not found[name]} == {"w0[5]", "w5[9]"}


def assert_literal_or_rescued(instance: Instance) -> None:
    """Check that the plan is the literal planner's; where that leaves out a job that must start by some time, that it
    has more jobs (each element of an array is one), or as many with a lower value.
    """
    found, literal = places(instance, solved(instance)), plan_literally(instance)
    if found == literal:
        return
    first, planner = Planner(instance), Planner(instance)
    first.ledger.plan(first._order)
    planner.plan()
    assert any(literal[name] is None for name in latest_starts(instance, first.ledger.jobs))
    ranks = []
    for one, planned in ((planner, found), (first, literal)):
        jobs = sum(place is not None for place in planned.values())
        ranks.append((-jobs, Values(instance, one.ledger).of_plan()))
    assert places(instance, first.outcome()) == literal
    assert ranks[0] < ranks[1]


@pytest.mark.kernels
@examples(80)
@given(instances(), st.randoms(use_true_random=False))
def test_nobody_is_delayed_by_a_cancellation(instance: Instance, pick: random.Random) -> None:
    """OCCS-34: when a job leaves, no start gets later, the new plan is one of the window without it, and nothing is
    left to move. Those that wait for it lose their places.
    """
    planner = Planner(instance)
    planner.plan()
    before = planner.outcome()
    waiting_ids = [job.id for job in before.jobs if planner_booked(planner, job.id)]
    if not waiting_ids:
        return
    gone = pick.choice(waiting_ids)
    planner.cancel(gone)
    after = planner.outcome()
    assert planner.backfill() == 0
    assert planner.outcome() == after
    first = {job.id: job.start for job in before.jobs}
    lost = followers(instance, gone)
    assert lost <= {job.id for job in after.waiting_room}
    assert {job.id for job in after.jobs} >= set(first) - {gone} - lost
    assert all(job.start <= first[job.id] for job in after.jobs if job.id in first)
    assert {*(job.id for job in after.jobs), *(job.id for job in after.waiting_room)} == {
        job.id for job in instance.elements() if job.id != gone
    }
    left = replace(instance, jobs=tuple(job for job in one_by_one(instance) if job.id not in {gone, *lost}))
    room = tuple(job for job in after.waiting_room if job.id not in lost)
    assert_valid(left, replace(solved(left), jobs=after.jobs, waiting_room=room))


def followers(instance: Instance, job_id: str) -> set[str]:
    """Return all that wait for a job, directly or not."""
    found = {job_id}
    for _ in instance.elements():
        for job in instance.elements():
            if job.running is None and any(other.id in found for _, other in awaited(instance, job)):
                found.add(job.id)
    return found - {job_id}


def one_by_one(instance: Instance) -> list[Job]:
    """Return all jobs, the elements of an array by themselves, also where somebody waits for them."""
    return [
        replace(job, after=tuple(replace(link, job=other.id) for link, other in awaited(instance, job)))
        for job in instance.elements()
    ]


def planner_booked(planner: Planner, job_id: str) -> bool:
    """Return whether a job of an outcome is a waiting one."""
    return any(job.id == job_id for job in planner.ledger.jobs)


# ---- worked examples ----


@pytest.mark.parametrize(("licenses", "start"), [({}, 0), ({"solver": 1}, 5400)])
def test_windows_of_the_system(licenses: dict[str, int], start: int) -> None:
    """OCCS-23: 80, 90 and 70 of 100 cores in use: 20 cores for 1800 s are free in [0, 3600) and from 5400 on.

    With a licence that is free from 5000 on, only the later window is left.
    """
    jobs = [
        running("r1", LONG, a={"cores": 70}),
        running("r2", 3600, a={"cores": 10}),
        running("r3", 5000, b={"cores": 1}, licenses={"solver": 2}),
        waiting("between", 1800, chunk(cores=20), start_at=3600),
        waiting("j", 1800, chunk(cores=20), licenses=Amounts(licenses)),
    ]
    classes = [nodes("a", cores=100), nodes("b", cores=1)]
    assert starts(window(classes, *jobs, licenses={"solver": 2})) == {"between": 3600, "j": start}


@pytest.mark.parametrize(
    ("not_before", "start", "node"),
    [(0, 0, "a"), (5, 5, "a"), (6, 12, "b"), (11, 12, "b"), (12, 12, "b"), (20, 20, "b")],
)
def test_exact_start_check(not_before: int, start: int, node: str) -> None:
    """OCCS-29: A is free in [0, 15), B in [12, 30): 10 s cannot start in 6…11, though a node is always free."""
    classes = [nodes(name, cores=1, properties=FrozenMap({"host": name})) for name in "ab"]
    jobs = [
        running("b1", 12, b={"cores": 1}),
        waiting("a1", LONG, chunk(where={"host": "a"}, cores=1), start_at=15),
        waiting("b2", LONG, chunk(where={"host": "b"}, cores=1), start_at=30),
        waiting("j", 10, chunk(cores=1), not_before=not_before),
    ]
    instance = window(classes, *jobs)
    assert places(instance, solved(instance))["j"] == (start, [(node, 0, 1)])


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (FREE, (0, [("B", 0, 2), ("C", 0, 1)])),
        (SCATTER, (1800, [("A", 0, 1), ("B", 0, 1), ("C", 0, 1)])),
        (PACK, (7200, [("C", 0, 3)])),
        (EXCLUSIVE, (1800, [("A", 0, 2), ("B", 0, 1)])),
    ],
)
def test_placements(place: Place, expected: tuple[int, Mapped]) -> None:
    """OCCS-30: 3:ncpus=8 for 3600 s, in four ways on A (12 of 16 used), B, and C (16 of 32 used, 4 kept for GPUs)
    (OCCS-18).
    """
    classes = [nodes("A B", cores=16), nodes("C", cores=32, gpus=2, keep_free=cores_for_gpus(4))]
    jobs = [
        running("r1", 1800, A={"cores": 12}),
        running("r2", 7200, C={"cores": 16}),
        waiting("j", 3600, chunk(3, cores=8), place=place),
    ]
    instance = window(classes, *jobs)
    assert places(instance, solved(instance))["j"] == expected


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, 0),
        ({"not_before": 7}, 7),
        ({"submit": 9, "not_before": 7}, 9),
        ({"deadline": 10}, 0),
        ({"deadline": 9}, None),
        ({"start_at": 5}, 5),
        ({"start_at": 5, "deadline": 15}, 5),
        ({"start_at": 5, "deadline": 14}, None),
        ({"start_at": -1}, None),
        ({"start_at": 5, "submit": 6}, None),
        ({"queue": "short"}, None),
    ],
)
def test_search_interval(options: dict[str, Any], start: int | None) -> None:
    """OCCS-20: a job of 10 s starts at its earliest start, exactly at a fixed one, ends by its deadline, or waits."""
    job = waiting("j", 10, chunk(cores=1), **options)
    queues = FrozenMap({"short": Queue(expected_wait=60, max_walltime=9)})
    instance = window([nodes("a", cores=4)], job, queues=queues)
    assert starts(instance)["j"] == start


def test_exclusive_jobs_are_alone() -> None:
    """OCCS-25: no job is let onto a node that another one has exclusively, running or planned; an exclusive job starts
    when its node is idle, not when enough cores are free.
    """
    jobs = [
        running("r", 5, EXCLUSIVE, a={"cores": 1}),
        waiting("first", 10, chunk(cores=1), priority=3),
        waiting("alone", 10, chunk(cores=1), place=EXCLUSIVE, priority=2),
        waiting("last", 10, chunk(cores=1), priority=1),
    ]
    found = starts(window([nodes("a", cores=4)], *jobs))
    assert {name: found[name] for name in ("first", "alone", "last")} == {"first": 5, "alone": 15, "last": 5}


def test_kinds_share_a_node() -> None:
    """BRIDI-9: all kinds of a request start together, and later kinds see what earlier kinds took of a node."""
    asked = (chunk(3, cores=1), chunk(1, cores=4))
    instance = window([nodes("a b", cores=6)], waiting("j", 10, *asked))
    assert places(instance, solved(instance))["j"] == (0, [("a", 0, 2), ("a", 1, 1), ("b", 0, 1)])
    busy = running("r", 7, a={"cores": 3}, b={"cores": 3})
    instance = window([nodes("a b", cores=6)], busy, waiting("j", 10, *asked))
    assert places(instance, solved(instance))["j"] == (7, [("a", 0, 2), ("a", 1, 1), ("b", 0, 1)])


def test_backfilling() -> None:
    """OCCS-34: one node of 4 cores, J1 in [0, 10) with all of them, J2 in [10, 20), J3 in [10, 15), J4 in [15, 20).

    At 4 J1 ends: J2 moves to [4, 14), J3 to [4, 9), J4 to [9, 14).
    """
    jobs = [
        waiting("J1", 6, chunk(cores=4)),
        waiting("J2", 10, chunk(cores=3)),
        waiting("J3", 5, chunk(cores=1)),
        waiting("J4", 5, chunk(cores=1)),
    ]
    instance = replace(window([nodes("n", cores=4)], *jobs), now=4)
    planner = Planner(instance)
    planner.plan()
    assert times(planner) == {"J1": (4, 10), "J2": (10, 20), "J3": (10, 15), "J4": (15, 20)}
    assert planner.cancel("J1") == 3
    assert times(planner) == {"J2": (4, 14), "J3": (4, 9), "J4": (9, 14)}
    assert planner.backfill() == 0


def times(planner: Planner) -> dict[str, tuple[int, int]]:
    """Return start and end of each job."""
    return {job.id: (job.start, job.end) for job in planner.outcome().jobs}


def test_backfilling_goes_on_to_a_fix_point() -> None:
    """Of 4 cores 2 run in [0, 4) and G has 1 in [0, 8): X (4 cores) stands at 8, Y (2 cores, 4 s) before it at 4.

    G leaves. In the first pass X, first in the order, is still kept at 8 by Y, but Y moves to 0; in the second X to 4.
    """
    jobs = [
        running("r", 4, n={"cores": 2}),
        waiting("G", 8, chunk(cores=1), start_at=0),
        waiting("X", 10, chunk(cores=4), priority=2),
        waiting("Y", 4, chunk(cores=2), priority=1),
    ]
    planner = Planner(window([nodes("n", cores=4)], *jobs))
    planner.plan()
    assert times(planner) == {"r": (0, 4), "G": (0, 8), "X": (8, 18), "Y": (4, 8)}
    assert planner.cancel("G") == 2
    assert times(planner) == {"r": (0, 4), "X": (4, 14), "Y": (0, 4)}


def test_cancelling_frees_a_place_for_those_without() -> None:
    """A job in the waiting room, whose deadline left no start, is planned when another one goes (OCCS-37)."""
    jobs = [waiting("a", 10, chunk(cores=4), start_at=0), waiting("b", 10, chunk(cores=4), deadline=15)]
    planner = Planner(window([nodes("n", cores=4)], *jobs))
    planner.plan()
    assert [job.id for job in planner.outcome().waiting_room] == ["b"]
    assert planner.cancel("a") == 1
    assert times(planner) == {"b": (0, 10)}


@pytest.mark.parametrize(
    ("held", "asked", "start"),
    [
        ({"cores": 10}, {"cores": 4}, 0),
        ({"cores": 10}, {"cores": 5}, 100),
        ({"cores": 10}, {"cores": 6, "gpus": 1}, 0),
        ({"cores": 10}, {"cores": 7, "gpus": 1}, 100),
        ({"cores": 10, "gpus": 1}, {"cores": 6}, 0),
        ({"cores": 15}, {"cores": 1}, 100),
        ({"cores": 15}, {"gpus": 1}, 0),
    ],
)
def test_cores_kept_for_gpu_jobs(held: dict[str, int], asked: dict[str, Any], start: int) -> None:
    """OCCS-40: of 16 cores, 2 kept and 10 used, others see 4 and GPU jobs 6; the use by GPU jobs is not counted."""
    node = nodes("g", cores=16, gpus=2, keep_free=cores_for_gpus(2))
    assert starts(window([node], running("r", 100, g=held), waiting("j", 10, chunk(**asked)))) == {"j": start}


def test_no_exclusive_use_of_kept_nodes() -> None:
    """OCCS-40: without a GPU no job has a node exclusively that keeps something for GPU jobs; with one it may."""
    node = nodes("g", cores=16, gpus=2, keep_free=cores_for_gpus(2))
    jobs = [
        waiting("plain", 10, chunk(cores=1), place=EXCLUSIVE),
        waiting("gpu", 10, chunk(cores=1, gpus=1), place=EXCLUSIVE),
    ]
    assert starts(window([node], *jobs)) == {"gpu": 0, "plain": None}


@pytest.mark.parametrize(
    ("asked", "hours", "is_let_in"),
    [
        ({"cores": 8, "mem": 20}, 72, False),
        ({"cores": 8, "mem": 20}, 10, True),
        ({"cores": 8, "mem": 20}, 12, True),
        ({"cores": 17, "mem": 20}, 72, True),
        ({"cores": 8, "mem": 66}, 72, True),
        ({"cores": 8, "vmem": 80}, 72, True),
        ({"cores": 8, "vmem": 79, "mem": 65}, 72, False),
    ],
)
def test_node_specific_limits(asked: dict[str, Any], hours: int, is_let_in: bool) -> None:
    """OCCS-41: an SMP node only for vmem >= 80g, mem >= 66g, ncpus >= 17 or up to 12 h; else the job waits for the
    plain node.
    """
    admits = (
        AdmitCondition(min=Amounts({"vmem": 80})),
        AdmitCondition(min=Amounts({"mem": 66})),
        AdmitCondition(min=Amounts({"cores": 17})),
        AdmitCondition(max_walltime=12 * 3600),
    )
    classes = [
        nodes("smp", cores=32, mem=1024, vmem=2048, admits=admits),
        nodes("plain", cores=32, mem=1024, vmem=2048),
    ]
    busy = running("r", 50, plain={"cores": 32})
    assert starts(window(classes, busy, waiting("j", hours * 3600, chunk(**asked)))) == {"j": 0 if is_let_in else 50}


def test_two_nodes_and_three_jobs() -> None:
    """BRIDI-8: c at 0 and a at 5 on node 1, b at 6 with both units on node 0; z = 5/30 + 6/360 + 3/30 = 0.28333."""
    queues = FrozenMap(
        {
            "first": Queue(expected_wait=30, priority=3),
            "second": Queue(expected_wait=30, priority=2),
            "last": Queue(expected_wait=360, priority=1),
        }
    )
    jobs = [
        running("r", 6, n0={"cores": 4}),
        waiting("a", 10, chunk(cores=4), queue="second"),
        waiting("b", 20, chunk(2, cores=2), queue="last"),
        waiting("c", 5, chunk(cores=4), queue="first", submit=-3),
    ]
    instance = window([nodes("n0 n1", cores=4)], *jobs, queues=queues)
    plan = solved(instance)
    assert places(instance, plan) == {
        "c": (0, [("n1", 0, 1)]),
        "a": (5, [("n1", 0, 1)]),
        "b": (6, [("n0", 0, 2)]),
    }
    assert plan.objective.value == pytest.approx(5 / 30 + 6 / 360 + 3 / 30)


def test_equal_jobs_of_other_times_are_judged_apart() -> None:
    """A fixed start at second 0 that has passed concerns that job alone, not those that ask for the same."""
    jobs = [waiting("late", 5, chunk(cores=1), start_at=0), waiting("j", 5, chunk(cores=1))]
    instance = replace(window([nodes("n", cores=1)], *jobs), now=10)
    assert starts(instance) == {"late": None, "j": 10}
    jobs = [waiting("late", 5, chunk(cores=1), deadline=0), waiting("j", 5, chunk(cores=1))]
    assert starts(replace(instance, jobs=tuple(jobs), now=-2)) == {"late": None, "j": 0}


def test_kinds_in_other_orders_hold_what_they_take() -> None:
    """Chunks that are placed against the filling order hold the nodes on which they stand.

    In the filling order a, b, c the three wide chunks would take all of a, the only node for the narrow one. So they go
    to c first (2 cores), the third one to a, and the narrow one beside it: nobody else is on a before 5. Node b,
    between the two, has another resource.
    """
    host_a = {"host": "a"}
    classes = [
        nodes("a", cores=2, properties=FrozenMap(host_a)),
        nodes("b", disks=3, priority=1),
        nodes("c", cores=2, mem=4, priority=2),
    ]
    jobs = [
        waiting("pair", 5, chunk(3, cores=1), chunk(cores=1, where=host_a)),
        waiting("next", 5, chunk(cores=1, where=host_a)),
    ]
    instance = window(classes, *jobs)
    found = places(instance, solved(instance))
    assert found == {"pair": (0, [("a", 0, 1), ("a", 1, 1), ("c", 0, 2)]), "next": (5, [("a", 0, 1)])}
    assert found == plan_literally(instance)


def test_where_an_outcome_stands() -> None:
    """Drained nodes get nothing new, what runs there goes on, and the job that needs them is told so."""
    classes = [nodes("a", cores=4, state=NodeState.DRAIN), nodes("b", cores=2)]
    jobs = [running("r", 50, a={"cores": 4}), waiting("j", 10, chunk(cores=2)), waiting("large", 10, chunk(cores=4))]
    instance = window(classes, *jobs)
    plan = solved(instance)
    assert [(job.id, job.start, job.end) for job in plan.jobs] == [("r", 0, 50), ("j", 0, 10)]
    assert where_it_stands(instance, plan.jobs[1]) == (0, [("b", 0, 1)])
    assert [(job.id, job.reason) for job in plan.waiting_room] == [("large", "unavailable")]
