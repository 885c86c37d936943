"""Malleable jobs on a ledger: modes of waiting ones, other ways on for running ones, and the way back from both."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.domain import (
    Amounts,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    Placement,
    PlannedJob,
    Running,
    Segment,
    repeated,
)
from tests.booking.small_windows import EXCLUSIVE, chunk, nodes, running, waiting, window
from tests.booking.test_ledger import ledger_of, state
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples

pytestmark = pytest.mark.kernels

HALF = Malleability(shares=(0.5,))


def resumed(ledger: Ledger, name: str, mode: int, until: int | None) -> PlannedJob:
    """Return the plan of a running job in a mode, and at full share from a second on, if one is given."""
    changes = [(ledger.instance.now, mode), *([] if until is None else [(until, 0)])]
    return ledger.running.resumed_plan(name, changes)


def mate(job_id: str, walltime: int, node: str, cores: int = 4, **options: Any) -> Job:
    """Return a malleable job that runs on cores of a node from 0 on."""
    held = Placement(node=node, chunk=0, count=1, resources=Amounts({"cores": cores}))
    job = waiting(job_id, walltime, chunk(cores=cores), malleability=HALF)
    segments = (Segment(start=0, end=walltime, allocation=(held,)),)
    job = replace(job, running=Running(start=0, segments=segments))
    return replace(job, **options)


def change_at_random(ledger: Ledger, order: random.Random) -> None:
    """Release and place jobs in other modes, and let running jobs go on otherwise, as far as that is free."""
    for job in order.sample(ledger.jobs, len(ledger.jobs)):
        if ledger.is_booked(job.id):
            ledger.release(job.id)
    for name in order.sample(list(ledger.running.changeable), len(ledger.running.changeable)):
        left = ledger.running.changeable[name]
        until = ledger.instance.now + order.randint(1, 9)
        ledger.running.change(resumed(ledger, name, order.randrange(len(left.modes)), until))
    for row in order.sample(range(len(ledger.jobs)), len(ledger.jobs)):
        name = ledger.jobs[row].id
        ledger.take_mode(name, order.randrange(len(ledger.modes[row])))
        ledger.plan([name])


def all_of(ledger: Ledger) -> tuple[object, ...]:
    """Return the free amounts, and the place of each job, in any order of its kinds of chunks."""
    placed = [ledger.planned(job.id) for job in ledger.jobs]
    stand = [one and (one.id, [(s.start, s.end, frozenset(s.allocation)) for s in one.segments]) for one in placed]
    return state(ledger), stand, ledger.running.plans()


@examples(60)
@given(malleable_windows(), st.randoms(use_true_random=False))
def test_back_to_a_mark_is_exact(instance: Instance, order: random.Random) -> None:
    """After any changes all is as it was when the mark was made, also a second time, and later plans are equal."""
    ledger = ledger_of(instance)
    change_at_random(ledger, order)
    before, mark = all_of(ledger), ledger.marked()
    later = []
    for _ in range(2):
        change_at_random(ledger, order)
        ledger.back_to(mark)
        assert all_of(ledger) == before
        ledger.backfill([job.id for job in ledger.jobs])
        later.append(all_of(ledger))
        ledger.back_to(mark)
    assert later[0] == later[1]


@examples(60)
@given(malleable_windows(), st.randoms(use_true_random=False))
def test_who_is_put_back_stands_where_it_stood(instance: Instance, order: random.Random) -> None:
    """Release and `put_back` are inverse, whatever modes were tried in between."""
    ledger = ledger_of(instance)
    change_at_random(ledger, order)
    before = all_of(ledger)
    for row, job in enumerate(ledger.jobs):
        if ledger.is_booked(job.id):
            place = ledger.place_of(job.id)
            ledger.release(job.id)
            ledger.take_mode(job.id, order.randrange(len(ledger.modes[row])))
            ledger.put_back(job.id, place)
    assert all_of(ledger) == before


@examples(60)
@given(malleable_windows(), st.randoms(use_true_random=False))
def test_a_plan_is_restored_with_its_shares(instance: Instance, order: random.Random) -> None:
    """What one ledger has, running jobs on other shares and waiting ones in their modes, another one can have."""
    first, second = ledger_of(instance), ledger_of(instance)
    change_at_random(first, order)
    assert second.running.restore(first.running.plans())
    starts = {job.id: first.planned(job.id) for job in first.jobs}
    known = {name: planned for name, planned in starts.items() if planned is not None}
    left = list(known)
    while left:  # each after all that it waits for
        done = [name for name in left if second.restore(known[name])]
        assert done
        left = [name for name in left if name not in done]
    assert all_of(second) == all_of(first)


@examples(40)
@given(malleable_windows(max_running=4), st.randoms(use_true_random=False))
def test_what_cannot_be_restored_changes_nothing(instance: Instance, order: random.Random) -> None:
    """Plans of running jobs for which there is no room all at once leave all of them as they are."""
    ledger, other = ledger_of(instance), ledger_of(instance)
    other.running.restore([resumed(other, name, 0, None) for name in other.running.changeable])
    change_at_random(ledger, order)
    before = all_of(ledger)
    if not ledger.running.restore(other.running.plans()):
        assert all_of(ledger) == before


def test_restoring_the_first_fails_with_the_second() -> None:
    """Two mates get 2 cores each from 4 on; the first one's is free, the second one's is not: both stay."""
    instance = window(
        [nodes("a b", cores=4)], mate("m", 8, "a"), mate("n", 8, "b"), waiting("w", 9, chunk(cores=4), not_before=8)
    )
    ledger = ledger_of(instance)
    ledger.plan(["w"])
    before = all_of(ledger)
    on_node = ledger.planned("w")
    assert on_node is not None
    free, taken = ("n", "m") if on_node.segments[0].allocation[0].node == "a" else ("m", "n")
    assert not ledger.running.restore([resumed(ledger, name, 1, None) for name in (free, taken)])
    assert all_of(ledger) == before
    assert ledger.running.change(resumed(ledger, free, 1, None))


def test_restoring_asks_for_length_and_cores() -> None:
    """A job of 10 s on half its cores takes 20 s: not 10, not 21, and not with three cores of four; a job that was
    refused has all its cores again.
    """
    instance = window([nodes("a", cores=4)], waiting("w", 10, chunk(cores=4), malleability=HALF))
    first = ledger_of(instance)
    first.take_mode("w", 1)
    first.plan(["w"])
    shrunk = first.planned("w")
    assert shrunk is not None
    (segment,) = shrunk.segments
    assert (shrunk.end, segment.allocation[0].resources) == (20, {"cores": 2})
    three = replace(segment.allocation[0], resources=Amounts({"cores": 3}))
    second = ledger_of(instance)
    for wrong in (
        replace(segment, end=10),
        replace(segment, end=21),
        replace(segment, allocation=(three,)),
    ):
        assert not second.restore(replace(shrunk, end=wrong.end, segments=(wrong,)))
    busy = ledger_of(window([nodes("a", cores=4)], *instance.jobs, running("r", 5, a={"cores": 4})))
    assert not busy.restore(shrunk)
    assert busy.mode("w") == 0
    assert second.restore(shrunk)
    assert (second.mode("w"), second.planned("w")) == (1, shrunk)


def test_who_is_a_fact() -> None:
    """Exclusive jobs, and those that are not malleable or whose chunks nobody knows, go on as they do."""
    unknown = replace(mate("u", 8, "b"), running=Running(start=0, segments=(Segment(
        start=0, end=8, allocation=(Placement(node="b", resources=Amounts({"cores": 3})),)),)))  # fmt: skip
    alone = mate("x", 8, "c")
    alone = replace(alone, steps=(replace(alone.steps[0], request=replace(alone.request, place=EXCLUSIVE)),))
    rigid = running("r", 8, d={"cores": 1})
    instance = window([nodes("a b c d", cores=4)], mate("m", 8, "a"), unknown, alone, rigid)
    ledger = ledger_of(instance)
    assert set(ledger.running.changeable) == {"m"}
    longer = repeated(unknown)
    assert not ledger.running.restore([replace(longer, end=9)])
    assert ledger.running.restore([longer, repeated(rigid)])


def test_one_that_is_late_already_may_go_on_as_it_does() -> None:
    """A deadline that the instance itself breaks holds only against more delay, also beside another that changes."""
    late = mate("l", 8, "a", deadline=5)
    ledger = ledger_of(window([nodes("a b", cores=4)], late, mate("m", 8, "b")))
    assert ledger.running.restore([repeated(late), resumed(ledger, "m", 1, None)])
    assert not ledger.running.change(resumed(ledger, "l", 1, 2))
    assert ledger.running.slowest("l", 1) is None


@pytest.mark.parametrize(("deadline", "end", "until"), [(16, 16, None), (12, 12, 8), (9, 9, 2), (8, None, None)])
def test_the_slowest_way_that_is_in_time(deadline: int, end: int | None, until: int | None) -> None:
    """Of 8 s of work half a second is lost in each second on half the cores: there is time for 2 of them for each
    second that is left.
    """
    ledger = ledger_of(window([nodes("a", cores=4)], mate("m", 8, "a", deadline=deadline)))
    slowest = ledger.running.slowest("m", 1)
    if end is None:
        assert slowest is None
    else:
        assert slowest is not None
        assert slowest == resumed(ledger, "m", 1, until)
        assert slowest.end == end


def test_how_jobs_go_on_from_an_earlier_plan() -> None:
    """What was planned at 0 is known at 4, when the job runs on half its cores: until 6, then on all of them."""
    early = ledger_of(window([nodes("a", cores=4)], mate("m", 8, "a")))
    plan = resumed(early, "m", 1, 6)
    held = Placement(node="a", chunk=0, count=1, resources=Amounts({"cores": 2}))
    segments = Segment(start=0, end=4, allocation=(held,)), Segment(start=4, end=16, allocation=(held,))
    now = ledger_of(
        window([nodes("a", cores=4)], mate("m", 8, "a", running=Running(start=0, segments=segments)), now=4)
    )
    (found,) = now.running.resumed([plan, replace(plan, id="gone")])
    assert [(one.end, one.allocation[0].resources["cores"]) for one in found.segments[-2:]] == [(6, 2), (11, 4)]


def test_equal_forms_are_told_apart() -> None:
    """Alone on its node a job takes as much on half its cores; where that costs no time either, it is one mode."""
    able = Malleability(shares=(0.5,), stretch=FrozenMap({0.5: 1.0}))
    job = waiting("w", 10, chunk(cores=4), malleability=able, place=EXCLUSIVE)
    ledger = ledger_of(window([nodes("a", cores=4)], job))
    for number in (1, 0):
        ledger.take_mode("w", number)
        ledger.plan(["w"])
        assert ledger.mode("w") == number
        ledger.release("w")


def test_exclusive_jobs_book_their_nodes_after_the_way_back() -> None:
    """Bookings of whole nodes count them with a counter that a mark brings back: none of them is taken for counted."""
    job = waiting("w", 5, chunk(cores=1), place=EXCLUSIVE)
    ledger = ledger_of(window([nodes("a", cores=4)], job))
    mark = ledger.marked()
    for _ in range(2):
        ledger.plan(["w"])
        assert ledger.timeline.free_at(0)[0].tolist() == [0]
        ledger.back_to(mark)
