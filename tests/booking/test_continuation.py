"""Running jobs that go on with other steps, by trying everything; and which of their chunks stand where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cpsched.booking import continuation, units_on
from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Arrangement,
    FrozenMap,
    Instance,
    Job,
    NodeState,
    Place,
    Placement,
    Request,
    Running,
    Segment,
    Step,
)
from tests.booking.small_windows import FREE, PACK, SCATTER, chunk, cores_for_gpus, nodes, window
from tests.sizes import examples

pytestmark = pytest.mark.kernels

SLOW = examples(150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ALONE = Place(arrangement=Arrangement.SCATTER, exclusive=True)
#: No schedule of these tests is longer.
HORIZON = 26


# ---- everything tried ----


def held(**cores: int) -> tuple[Placement, ...]:
    """Return cores by node."""
    return tuple(Placement(node=node, resources=Amounts({"cores": amount})) for node, amount in cores.items())


def running(job_id: str, *segments: tuple[int, int, dict[str, int]], place: Place = FREE) -> Job:
    """Return a running job of (start, end, cores by node)."""
    return Job(
        id=job_id,
        submit=0,
        steps=(Step(walltime=segments[-1][1], request=Request(chunks=(chunk(cores=1),), place=place)),),
        running=Running(
            start=0,
            segments=tuple(Segment(start=start, end=end, allocation=held(**cores)) for start, end, cores in segments),
        ),
    )


def schedules(
    free: dict[str, list[int]], asked: Sequence[tuple[int, int, int]], has: frozenset[str]
) -> Iterator[tuple[int, ...]]:
    """Yield the begins of the steps (walltime, chunks, cores in each) in all schedules that keep nodes, one chunk on
    each, give those back first that came last, and end before the horizon.
    """

    def is_free(step: int, on: frozenset[str], start: int, end: int) -> bool:
        return all(free[node][second] >= asked[step][2] for node in on for second in range(start, end))

    def go(step: int, came: tuple[frozenset[str], ...], begins: tuple[int, ...]) -> bool:
        on = frozenset[str]().union(*came)
        last = begins[step] + asked[step][0] if step + 1 == len(asked) else begins[step + 1]
        if not is_free(step, on, begins[step], last):
            return False
        if step + 1 == len(asked):
            return True
        more = asked[step + 1][1] - len(on)
        if more >= 0:
            others = sorted(free.keys() - on)
            return any(go(step + 1, (*came, frozenset(new)), begins) for new in combinations(others, more))
        while len(on) - len(came[-1]) >= asked[step + 1][1]:
            on, came = on - came[-1], came[:-1]
        stay = len(came[-1]) - (len(on) - asked[step + 1][1])
        return any(go(step + 1, (*came[:-1], frozenset(kept)), begins) for kept in combinations(sorted(came[-1]), stay))

    for later in product(range(HORIZON), repeat=len(asked) - 1):
        begins = (0, *later)
        ends = [begin + walltime for begin, (walltime, _, _) in zip(begins, asked, strict=True)]
        is_in_order = all(end <= begin for end, begin in zip(ends, later, strict=False))
        if is_in_order and ends[-1] < HORIZON and go(0, (has,), begins):
            yield begins


def test_who_came_last_goes_first() -> None:
    """J cannot leave a, which is promised to another one from 2 on, for a node that it gets in between."""
    other = running("o", (0, 2, {"b": 3}), (2, 5, {"b": 3, "a": 3}))
    machine = window([nodes("a b c", cores=3)], other, running("J", (0, 1, {"a": 1})))
    steps = [(1, (chunk(count, cores=1),)) for count in (1, 2, 1)]
    assert goes_on(machine, *steps, place=SCATTER) is None
    assert goes_on(machine, *steps[:2], place=SCATTER) == [{"a": 1}, {"a": 1, "c": 1}]


@SLOW
@given(st.data())
def test_every_step_begins_as_early_as_in_any_schedule(data: st.DataObject) -> None:
    """One chunk on each node, all steps with the same cores, or one chunk with any: beside jobs that have promises."""
    names = ["a", "b", "c", "d"]
    is_single = data.draw(st.booleans())
    has = frozenset(names[: 1 if is_single else data.draw(st.integers(1, 3))])
    cores = data.draw(st.integers(1, 2))
    counts = [len(has), *([1] * 2 if is_single else data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))]
    asked = [
        (data.draw(st.integers(1, 3)), count, data.draw(st.integers(1, 3)) if is_single and step else cores)
        for step, count in enumerate(counts)
    ]
    free = {name: [3] * HORIZON for name in names}
    others = []
    for number in range(data.draw(st.integers(0, 4))):
        home = data.draw(st.sampled_from(names[len(has) :]))
        amount = data.draw(st.integers(1, 3))
        change, end = data.draw(st.integers(1, 4)), data.draw(st.integers(5, 8))
        more = data.draw(st.sampled_from(names))
        parts = ((0, change, {home: amount}), (change, end, {home: amount} | {more: amount}))
        if all(min(free[node][start:last]) >= amount for start, last, on in parts for node in on):
            others.append(running(f"o{number}", *parts))
            for start, last, on in parts:
                for node, second in product(on, range(start, last)):
                    free[node][second] -= amount
    job = Job(
        id="J",
        submit=0,
        steps=tuple(
            Step(walltime=walltime, request=Request(chunks=(chunk(count, cores=amount),), place=SCATTER))
            for walltime, count, amount in asked
        ),
        running=Running(start=0, segments=(Segment(start=0, end=1, allocation=held(**dict.fromkeys(has, cores))),)),
    )
    machine = window([nodes("a b c d", cores=3)], *others, job)
    units = units_on(job.steps[0].request, held(**dict.fromkeys(has, cores)), machine.cluster)
    assert units is not None
    found = continuation(machine, job, units)
    every = list(schedules(free, asked, has))
    if found is None:
        assert every == []
    else:
        assert tuple(segment.start for segment in found) == tuple(map(min, zip(*every, strict=True)))
        check(found, asked, has, free)


def check(
    found: Sequence[Segment], asked: Sequence[tuple[int, int, int]], has: frozenset[str], free: dict[str, list[int]]
) -> None:
    """Check that segments have what is asked for on free nodes, follow each other, and keep nodes."""
    before = has
    for number, (segment, (walltime, count, cores)) in enumerate(zip(found, asked, strict=True)):
        on = frozenset(placement.node for placement in segment.allocation)
        assert [placement.resources for placement in segment.allocation] == [{"cores": cores}] * count
        assert on <= before or before <= on
        assert segment.end - segment.start >= walltime
        assert number + 1 == len(found) or found[number + 1].start == segment.end
        assert all(free[node][second] >= cores for node in on for second in range(segment.start, segment.end))
        before = on


# ---- special nodes and places ----


def goes_on(machine: Instance, *steps: tuple[int, tuple[Any, ...]], place: Place = FREE) -> list[dict[str, int]] | None:
    """Return the cores by node of each segment of the last job of a window, which gets steps of (walltime, chunks)."""
    job = machine.jobs[-1]
    assert job.running is not None
    asked = tuple(Step(walltime=walltime, request=Request(chunks=chunks, place=place)) for walltime, chunks in steps)
    units = units_on(asked[0].request, job.running.segments[0].allocation, machine.cluster)
    assert units is not None
    found = continuation(machine, Job(id=job.id, submit=0, steps=asked, running=job.running), units)
    if found is None:
        return None
    return [cores_by_node(segment.allocation) for segment in found]


def cores_by_node(allocation: Sequence[Placement]) -> dict[str, int]:
    """Return the sum of all chunks on each node."""
    cores: Counter[str] = Counter()
    for one in allocation:
        cores[one.node] += one.resources["cores"]
    return dict(cores)


def test_a_packed_job_grows_on_its_node() -> None:
    """All chunks stay together on the node where they are."""
    machine = window([nodes("a b", cores=4)], running("J", (0, 5, {"b": 2})))
    one, two = (5, (chunk(2, cores=1),)), (5, (chunk(2, cores=2),))
    assert goes_on(machine, one, two, one, place=PACK) == [{"b": 2}, {"b": 4}, {"b": 2}]


def test_an_exclusive_job_grows_onto_idle_nodes() -> None:
    """It takes no node on which another job has a core, and no other job has one of its nodes in the meantime."""
    machine = window([nodes("a b c", cores=4)], running("o", (0, 9, {"b": 1})), running("J", (0, 5, {"a": 1})))
    steps = [(5, (chunk(count, cores=1),)) for count in (1, 2)]
    assert goes_on(machine, *steps, place=ALONE) == [{"a": 1}, {"a": 1, "c": 1}]


def test_chunks_of_two_kinds() -> None:
    """Each kind keeps its nodes; what comes finds the only node that is left for it."""
    machine = window([nodes("a b", cores=3), nodes("c", cores=3, gpus=1)], running("J", (0, 5, {"a": 3})))
    steps = (5, (chunk(1, cores=2), chunk(1, cores=1))), (5, (chunk(2, cores=2), chunk(3, cores=1)))
    assert goes_on(machine, *steps) == [{"a": 3}, {"a": 3, "b": 3, "c": 1}]


@pytest.mark.parametrize(
    "rule",
    [
        {"admits": (AdmitCondition(max_walltime=6),)},
        {"keep_free": cores_for_gpus(2)},
        {"state": NodeState.DRAIN},
    ],
)
def test_what_is_on_a_node_against_its_rules_stays_there(rule: dict[str, Any]) -> None:
    """Running work is a fact: it keeps the node, where chunks that come do not come; without the rule they do."""
    job = running("J", (0, 5, {"a": 3}))
    steps = [(5, (chunk(count, cores=1),)) for count in (3, 4, 2)]
    for special, on in ((rule, {"a": 3, "b": 1}), ({}, {"a": 4})):
        machine = window([nodes("a", cores=4, **special), nodes("b", cores=4, priority=1)], job)
        assert goes_on(machine, *steps) == [{"a": 3}, on, {"a": 2}]


def test_a_guard_does_not_keep_out_who_is_in() -> None:
    """A chunk that asks for less than its node's guard wants goes on there."""
    guarded = nodes("a", cores=4, admits=(AdmitCondition(min=Amounts({"cores": 3})),))
    machine = window([guarded, nodes("b", cores=4)], running("J", (0, 5, {"a": 3})))
    assert goes_on(machine, (5, (chunk(cores=3),)), (5, (chunk(cores=2),))) == [{"a": 3}, {"a": 2}]


# ---- which chunks stand where ----


def asks(*chunks: Any, place: Place = FREE) -> Request:
    """Return a request."""
    return Request(chunks=chunks, place=place)


@pytest.mark.parametrize(
    ("request_", "cores", "expected"),
    [
        (asks(chunk(3, cores=2)), {"a": 4, "b": 2}, {0: {"a": 2, "b": 1}}),
        (asks(chunk(3, cores=2)), {"a": 4, "b": 3}, None),  # not whole chunks
        (asks(chunk(2, cores=2)), {"a": 4, "b": 2}, None),  # too many
        (asks(chunk(4, cores=2)), {"a": 4, "b": 2}, None),  # too few
        (asks(chunk(1, cores=2), chunk(2, cores=1)), {"a": 2, "b": 2}, {0: {"a": 1}, 1: {"b": 2}}),
        (asks(chunk(1, cores=2), chunk(3, cores=1)), {"a": 2, "b": 1, "c": 2}, {0: {"c": 1}, 1: {"a": 2, "b": 1}}),
        (asks(chunk(2, cores=1), place=SCATTER), {"a": 2}, None),  # one on each node
        (asks(chunk(2, cores=1), place=PACK), {"a": 2}, {-1: {"a": 1}}),
        (asks(chunk(2, cores=1), place=PACK), {"a": 1, "b": 1}, None),
    ],
)
def test_which_chunks_stand_where(
    request_: Request, cores: dict[str, int], expected: dict[int, dict[str, int]] | None
) -> None:
    """All of an allocation, and nothing else, is chunks of the request; where several ways lead there, one is taken."""
    cluster = window([nodes("a b c", cores=4)]).cluster
    found = units_on(request_, held(**cores), cluster)
    if expected is None or found is None or len(request_.chunks) == 1:
        assert found == expected
        return
    for node, amount in cores.items():
        assert sum(on.get(node, 0) * request_.chunks[kind].resources["cores"] for kind, on in found.items()) == amount
    assert [sum(on.values()) for on in found.values()] == [chunk.count for chunk in request_.chunks]


def test_a_guess_honours_where() -> None:
    """Two kinds of chunks of 4 cores: the one that asks for rack 2 is on the node of rack 2."""
    of_rack = [chunk(1, {"rack": rack}, cores=4) for rack in "12"]
    racks = [FrozenMap({"rack": rack}) for rack in "12"]
    machine = window([nodes("y", properties=racks[0], cores=4), nodes("x", properties=racks[1], cores=4)])
    for order in ({"x": 4, "y": 4}, {"y": 4, "x": 4}):
        assert units_on(asks(*of_rack), held(**order), machine.cluster) == {0: {"y": 1}, 1: {"x": 1}}
    moved = window([nodes("y x", properties=racks[0], cores=4)])
    found = units_on(asks(*of_rack), held(x=4, y=4), moved.cluster)
    assert found is not None  # what runs is a fact, wherever its properties have gone
    assert {node for on in found.values() for node in on} == {"x", "y"}


def test_stated_chunks_are_not_guessed() -> None:
    """An allocation that states its chunks is believed; one that states those of another request is not."""
    request_ = asks(chunk(1, cores=4), chunk(1, cores=4))
    machine = window([nodes("x y", cores=4)])
    for kinds in ((0, 1), (1, 0)):
        stated = tuple(replace(one, chunk=kind, count=1) for one, kind in zip(held(x=4, y=4), kinds, strict=True))
        assert units_on(request_, stated, machine.cluster) == {kinds[0]: {"x": 1}, kinds[1]: {"y": 1}}
        others = units_on(asks(chunk(2, cores=4)), stated, machine.cluster)
        assert others == {0: {"x": 1, "y": 1}}


def test_a_guess_scatters_chunks_if_it_can() -> None:
    """A node with 2 cores may have one chunk of 2 or two of 1: with scatter it is one."""
    request_ = asks(chunk(1, cores=2), chunk(1, cores=1), place=SCATTER)
    machine = window([nodes("a b", cores=4)])
    assert units_on(request_, held(a=1, b=2), machine.cluster) == {0: {"b": 1}, 1: {"a": 1}}
    assert units_on(asks(chunk(1, cores=2), chunk(2, cores=1), place=SCATTER), held(a=2, b=2), machine.cluster) is None


def test_a_continuation_states_its_chunks() -> None:
    """What a running job is promised states which chunks stand where, a packed one all kinds on its node."""
    machine = window([nodes("a b", cores=4)], running("J", (0, 5, {"b": 3})))
    job = machine.jobs[-1]
    assert job.running is not None
    for place in (FREE, PACK):
        step = Step(walltime=5, request=asks(chunk(1, cores=2), chunk(1, cores=1), place=place))
        units = units_on(step.request, job.running.segments[0].allocation, machine.cluster)
        assert units is not None
        (segment,) = continuation(machine, replace(job, steps=(step,)), units) or ()
        assert {(one.node, one.chunk, one.count) for one in segment.allocation} == {("b", 0, 1), ("b", 1, 1)}
