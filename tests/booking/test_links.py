"""Links: what the names in ``after`` mean for a ledger, and that all that it does keeps the distances."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.booking.links import Links
from cpsched.domain import Dependency, DependencyType, Instance
from cpsched.problem import refusal
from cpsched.rusv import FOREVER
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.oracle.literal_planner import awaited
from tests.oracle.random_instances import instances
from tests.rusv.linked_pairs import distances
from tests.sizes import examples

ONE = chunk(cores=1)
AFTER, OK = DependencyType.AFTER, DependencyType.AFTEROK


def after(name: str, kind: DependencyType = OK, delay: int = 0) -> Dependency:
    """Return the dependencies of a job."""
    return Dependency(job=name, type=kind, delay=delay)


def test_names_become_rows() -> None:
    """At second 4: a job, two elements of an array, an element alone; running jobs are a time, absent ones never."""
    jobs = (
        running("r", 9, n={"cores": 1}),
        waiting("array", 7, ONE, array=(2, 5), after=(after("r", AFTER, 5), after("r", OK, 2))),
        waiting("gone", 8, ONE),
        waiting("both", 8, ONE, after=(after("array", OK, 1), after("r", AFTER))),
        waiting("one", 8, ONE, after=(after("array[5]", AFTER, 3), after("both"))),
        waiting("never", 8, ONE, after=(after("one"), after("gone"))),
    )
    instance = replace(window([nodes("n", cores=4)], *jobs), now=4)
    there = [job for job in instance.elements() if job.id not in {"r", "gone"}]
    links = Links.of(instance, there)
    assert distances(links.between) == [(2, 0, 8), (2, 1, 8), (3, 1, 3), (3, 2, 8), (4, 3, 8)]
    assert links.released.tolist() == [7, 7, 0, 0, FOREVER]


def test_nobody_waits_for_anybody() -> None:
    """Without dependencies there are no links."""
    links = Links.of(window([nodes("n", cores=1)], waiting("a", 5, ONE)), [waiting("a", 5, ONE)])
    assert (distances(links.between), links.released.tolist()) == ([], [0])


def chain(now: int = 100) -> Ledger:
    """Return a ledger of one core: b waits for the end of a, and 3 s; c for the start of b; x for an absent one.

    What runs ends at 110.
    """
    jobs = (
        running("r", 110, n={"cores": 1}),
        waiting("a", 5, ONE),
        waiting("b", 4, ONE, after=(after("a", OK, 3), after("r"))),
        waiting("c", 2, ONE, after=(after("b", AFTER),)),
        waiting("x", 2, ONE, after=(after("gone"),)),
        waiting("gone", 2, ONE),
    )
    instance = replace(window([nodes("n", cores=1)], *jobs), now=now)
    return Ledger(instance, jobs[1:5])


def starts(ledger: Ledger) -> dict[str, int | None]:
    """Return the start of each job."""
    return {job.id: placed.start if (placed := ledger.planned(job.id)) else None for job in ledger.jobs}


def test_earliest_starts() -> None:
    """A job's earliest start is known when all that it waits for have a place; those behind it are named once each."""
    ledger = chain()
    assert [ledger.earliest_start(name) for name in "abcx"] == [100, None, None, None]
    ledger.plan(["c", "x", "a", "b"])
    assert starts(ledger) == {"a": 110, "b": 118, "c": None, "x": None}
    assert [ledger.earliest_start(name) for name in "abcx"] == [100, 118, 118, None]
    assert [ledger.behind(name) for name in "abcx"] == [("a", "b", "c"), ("b", "c"), ("c",), ("x",)]


def test_placing_within_bounds_keeps_the_distances() -> None:
    """Within bounds a job is placed if these and its distances leave a start."""
    ledger = chain()
    assert ledger.place(["c", "b", "a"], earliest=110, latest=117) == {"a": 110}
    assert ledger.place(["b"], earliest=110, latest=117) == {}
    assert ledger.place(["c", "b"], earliest=112, latest=118) == {"b": 118}
    assert ledger.place(["c"], earliest=112) == {"c": 122}


def test_who_is_planned_again_stays_before_those_that_wait_for_him() -> None:
    """When a leaves its place to another job, it finds one between that and b, or none."""
    ledger = chain()
    ledger.plan(["a", "b", "c"])
    ledger.release("a")
    assert ledger.place(["a"], earliest=111) == {}
    assert ledger.place(["a"], earliest=110) == {"a": 110}
    ledger.release("b")
    ledger.release("a")
    assert ledger.backfill(["c", "b", "a"]) == 1  # c stays where it is, though b has no place; a comes back
    assert starts(ledger) == {"a": 110, "b": None, "c": 122, "x": None}


def violations(instance: Instance, ledger: Ledger) -> list[str]:
    """Return those that have a place too near to one that they wait for."""
    places = {job.id: ledger.planned(job.id) for job in ledger.jobs}
    found = []
    for job in ledger.jobs:
        for dependency, other in awaited(instance, job):
            mine, its = places[job.id], places.get(other.id)
            if mine is not None and its is not None:
                moment = its.start if dependency.type is AFTER else its.end
                if mine.start < moment + dependency.delay:
                    found.append(job.id)
    return found


@pytest.mark.kernels
@examples(60)
@given(instances(), st.randoms(use_true_random=False))
def test_no_order_of_bookings_breaks_a_distance(instance: Instance, pick: random.Random) -> None:
    """Planning, releasing, placing within bounds and backfilling in any order: the distances are always kept."""
    ledger = Ledger(
        instance, [job for job in instance.elements() if job.running is None and refusal(instance, job) is None]
    )
    ids = [job.id for job in ledger.jobs]
    for _ in range(6):
        pick.shuffle(ids)
        some = [job_id for job_id in ids[: len(ids) // 2 + 1] if not ledger.is_booked(job_id)]
        if pick.random() < 0.5:
            ledger.plan(some)
        else:
            ledger.place(some, earliest=instance.now + pick.randrange(9), latest=instance.now + pick.randrange(9, 40))
        assert violations(instance, ledger) == []
        for job_id in ids[::3]:
            if ledger.is_booked(job_id):
                ledger.release(job_id)
        ledger.backfill(ids)
        assert violations(instance, ledger) == []
