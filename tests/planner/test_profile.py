"""Running jobs that change what they want: promises, refusals, and why nobody is ever blocked (EVO-18 on-line)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cpsched.booking import units_on
from cpsched.domain import (
    Amounts,
    Chunk,
    Instance,
    Job,
    NodeState,
    Place,
    Placement,
    Plan,
    ProfileChange,
    Queue,
    Request,
    Running,
    Segment,
    Step,
    WaitingReason,
)
from cpsched.errors import DocumentError, EngineError
from cpsched.formats import instance_to_document, parse_instance
from cpsched.planner import with_profile
from cpsched.portfolio import replan
from tests.booking.small_windows import FREE, PACK, SCATTER, chunk, nodes, waiting, window
from tests.oracle.random_evolving import evolving_instances
from tests.planner.checked import solved
from tests.sizes import examples

SLOW = examples(60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def steps(*asked: tuple[int, int], cores: int = 1, place: Place = FREE) -> tuple[Step, ...]:
    """Return steps of (walltime, chunks)."""
    return tuple(
        Step(walltime=walltime, request=Request(chunks=(chunk(count, cores=cores),), place=place))
        for walltime, count in asked
    )


def going(job_id: str, *held: tuple[int, int, str], place: Place = FREE, **options: Any) -> Job:
    """Return an evolving job that runs, with one core on each node of each of its segments: (start, end, nodes)."""
    segments = tuple(
        Segment(
            start=start,
            end=end,
            allocation=tuple(Placement(node=name, resources=Amounts({"cores": 1})) for name in names.split()),
        )
        for start, end, names in held
    )
    asked = tuple((end - start, len(names.split())) for start, end, names in held)
    return Job(
        **{"id": job_id, "submit": 0, **options},
        steps=steps(*asked, place=place),
        running=Running(start=held[0][0], segments=segments),
    )


def promised(instance: Instance, job_id: str) -> list[tuple[int, int, str]]:
    """Return what a running job had and is promised: (start, end, nodes)."""
    (job,) = (job for job in instance.jobs if job.id == job_id)
    assert job.running is not None
    return [
        (segment.start, segment.end, " ".join(sorted(held.node for held in segment.allocation)))
        for segment in job.running.segments
    ]


def changed(instance: Instance, job_id: str, *asked: tuple[int, int], **options: Any) -> Instance:
    """Return the window after a change, with a plan of it that the judge has passed."""
    found = with_profile(instance, ProfileChange(job=job_id, steps=steps(*asked, **options)))
    solved(found)
    return found


def four(*jobs: Job, **options: Any) -> Instance:
    """Return a window of four nodes of one core."""
    return window([nodes("n1 n2 n3 n4", cores=1)], *jobs, **options)


# ---- worked examples ----

#: The example of docs/evolving.md.
TWO_STEPS = going("A", (0, 10, "n1 n2"), (10, 20, "n1 n2 n3"))
EXAMPLE = four(TWO_STEPS, going("C", (0, 4, "n3 n4")), waiting("B", 8, chunk(2, cores=1)))


@pytest.mark.parametrize(
    ("asked", "new", "start"),
    [
        ([(8, 2), (10, 3)], [(0, 12, "n1 n2"), (12, 22, "n1 n2 n3")], 4),  # later: B fits before it
        ([(1, 2), (10, 3)], [(0, 5, "n1 n2"), (5, 15, "n1 n2 n3")], 15),  # sooner
        ([(6, 2)], [(0, 10, "n1 n2")], 4),  # not at all
        ([(6, 2), (10, 1)], [(0, 10, "n1 n2"), (10, 20, "n1")], 4),  # it needs less
        ([(6, 2), (10, 4)], [(0, 10, "n1 n2"), (10, 20, "n1 n2 n3 n4")], 20),  # it needs more
    ],
)
def test_a_job_changes_its_mind(asked: list[tuple[int, int]], new: list[tuple[int, int, str]], start: int) -> None:
    """A grows at 10, so that B, which finds two nodes from 4 on, has to wait until 20. At 4 A says otherwise."""
    before = solved(EXAMPLE)
    assert {job.id: job.start for job in before.jobs}["B"] == 20
    then, plan = replan(EXAMPLE, before, at=4, events=(ProfileChange(job="A", steps=steps(*asked)),))
    assert promised(then, "A") == new
    assert {job.id: job.start for job in plan.jobs} == {"A": 0, "B": start}


def test_history_is_kept() -> None:
    """Steps and segments that have passed stay, the one it is in counts from its begin; a second change finds them."""
    window_ = replace(four(going("A", (0, 10, "n1 n2"), (10, 20, "n1 n2 n3"), (20, 30, "n1"))), now=13)
    once = changed(window_, "A", (5, 3), (10, 2))
    assert promised(once, "A") == [(0, 10, "n1 n2"), (10, 18, "n1 n2 n3"), (18, 28, "n1 n2")]
    assert [step.walltime for step in once.jobs[0].steps] == [10, 8, 10]
    twice = changed(replace(once, now=20), "A", (8, 2), (1, 4))
    assert promised(twice, "A")[2:] == [(18, 28, "n1 n2"), (28, 29, "n1 n2 n3 n4")]
    assert [step.walltime for step in twice.jobs[0].steps] == [10, 8, 10, 1]


def test_a_job_whose_segments_are_not_its_steps() -> None:
    """Where a job has one allocation for all of its steps, all that has been counts as the first one."""
    job = replace(going("A", (0, 20, "n1 n2")), steps=steps((10, 2), (10, 3)))
    found = changed(replace(four(job), now=5), "A", (1, 2), (10, 3))
    assert promised(found, "A") == [(0, 6, "n1 n2"), (6, 16, "n1 n2 n3")]
    assert [step.walltime for step in found.jobs[0].steps] == [6, 10]


def test_it_holds_its_nodes_while_others_have_those_that_it_needs() -> None:
    """A growth waits for C's end at 50, though A's expand_limit is 1: what runs cannot be put off."""
    busy = going("C", (0, 50, "n3 n4"))
    found = changed(four(going("A", (0, 10, "n1 n2"), (10, 20, "n1")), busy), "A", (10, 2), (10, 3))
    assert promised(found, "A") == [(0, 50, "n1 n2"), (50, 60, "n1 n2 n3")]


def test_less_is_released_at_once() -> None:
    """It waits for a growth on as little as it asked for before it, not on what it had before that (EVO-4)."""
    busy = going("C", (0, 50, "n4"))
    found = changed(four(going("A", (0, 10, "n1 n2 n3"), (10, 20, "n1")), busy), "A", (10, 3), (5, 1), (5, 4))
    assert promised(found, "A") == [(0, 10, "n1 n2 n3"), (10, 50, "n1"), (50, 55, "n1 n2 n3 n4")]


def test_it_keeps_the_nodes_that_are_its_own_for_longest() -> None:
    """A shrinking job keeps nodes that no other job was promised: n1 is B's from 10 on, so that A keeps n2."""
    other = going("B", (0, 10, "n3"), (10, 30, "n1 n3"))
    found = changed(four(going("A", (0, 10, "n1 n2"), (10, 12, "n2")), other), "A", (5, 2), (20, 1))
    assert promised(found, "A") == [(0, 5, "n1 n2"), (5, 25, "n2")]


def test_a_chunk_grows_on_its_node() -> None:
    """One chunk that asks for more cores gets them on the node where it is, when the other job there has ended."""
    held = [Placement(node="a", resources=Amounts({"cores": 2}))]
    segments = tuple(Segment(start=start, end=start + 10, allocation=tuple(held)) for start in (0, 10))
    job = Job(id="A", submit=0, steps=steps((10, 1), (10, 1), cores=2), running=Running(start=0, segments=segments))
    other = replace(waiting("B", 30, chunk(cores=1)), id="B")
    other = replace(
        other,
        running=Running(
            start=0,
            segments=(Segment(start=0, end=30, allocation=(Placement(node="a", resources=Amounts({"cores": 1})),)),),
        ),
    )
    asked = (*steps((10, 1), cores=2), *steps((5, 1), cores=4), *steps((5, 1), cores=1))
    machine = window([nodes("a", cores=4), nodes("b", cores=8)], job, other)
    found = with_profile(machine, ProfileChange(job="A", steps=asked))
    solved(found)
    running = found.jobs[0].running
    assert running is not None
    assert [(s.start, s.end, s.allocation[0].node, s.allocation[0].resources["cores"]) for s in running.segments] == [
        (0, 30, "a", 2), (30, 35, "a", 4), (35, 40, "a", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("kept", ["x", "y"])
def test_the_chunks_that_leave_are_those_of_the_kind_that_shrinks(kept: str) -> None:
    """Two kinds of chunks of four cores: which of them is on which node is stated, and not guessed from the cores."""
    both = Request(chunks=(chunk(1, cores=4), chunk(1, cores=4)))
    stands = {kept: 0, "xy".replace(kept, ""): 1}
    allocation = tuple(
        Placement(node=node, resources=Amounts({"cores": 4}), chunk=kind, count=1) for node, kind in stands.items()
    )
    job = Job(
        id="e",
        submit=0,
        steps=(Step(walltime=5, request=both), Step(walltime=5, request=Request(chunks=both.chunks[:1]))),
        running=Running(start=0, segments=(Segment(start=0, end=10, allocation=allocation),)),
    )
    instance = window([nodes("x y", cores=4)], job)
    assert parse_instance(instance_to_document(instance)) == instance
    _, plan = replan(instance, solved(instance), events=(ProfileChange(job="e", steps=job.steps),))
    (planned,) = plan.jobs
    assert [{(one.node, one.chunk) for one in segment.allocation} for segment in planned.segments] == [
        set(stands.items()),
        {(kept, 0)},
    ]


def test_a_node_that_is_drained_is_kept_and_gets_no_more() -> None:
    """What runs on a drained node goes on there; what comes, comes elsewhere."""
    classes = [nodes("n1", cores=2, state=NodeState.DRAIN), nodes("n2 n3", cores=2)]
    found = changed(window(classes, going("A", (0, 10, "n1"), (10, 20, "n1"))), "A", (10, 1), (10, 3))
    assert promised(found, "A") == [(0, 10, "n1"), (10, 20, "n1 n2")]
    with pytest.raises(DocumentError, match="at most 4 fit"):
        changed(window(classes, going("A", (0, 10, "n1"), (10, 20, "n1"))), "A", (10, 1), (10, 6))


# ---- EVO-18, on-line ----


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_two_who_want_more_are_served_one_after_the_other(order: str) -> None:
    """Each has two of five nodes and wants a third: the first gets it at once, the second when the first has ended."""
    machine = window([nodes("n1 n2 n3 n4 n5", cores=1)], *pair())
    for name in order:
        machine = changed(machine, name, (5, 2), (5, 3))
    first, second = (promised(machine, name) for name in order)
    assert [(start, end) for start, end, _ in first] == [(0, 5), (5, 10)]
    assert [(start, end) for start, end, _ in second] == [(0, 10), (10, 15)]


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_two_who_would_block_each_other(order: str) -> None:
    """Each has two of four nodes and wants a third: granted step by step, both would hold theirs and wait for ever. The
    first is promised one of the other's, for when that ends; the second, which would have to hold it for longer, is
    refused, keeps what it was promised, and may ask for what ends in time.
    """
    machine = four(*pair())
    first, second = order[0], order[1]
    machine = changed(machine, first, (5, 2), (5, 3))
    assert [(start, end) for start, end, _ in promised(machine, first)] == [(0, 10), (10, 15)]
    with pytest.raises(EngineError, match=f"job {second} cannot have this profile: it would hold nodes"):
        changed(machine, second, (5, 2), (5, 3))
    assert promised(machine, second)[-1][1] == 10
    less = changed(machine, second, (10, 2), (20, 1))
    assert [(start, end) for start, end, _ in promised(less, second)] == [(0, 10), (10, 30)]


def pair() -> tuple[Job, Job]:
    """Return two jobs that hold two nodes each until 10."""
    return going("A", (0, 5, "n1 n2"), (5, 10, "n1 n2")), going("B", (0, 5, "n3 n4"), (5, 10, "n3 n4"))


# ---- refused ----


@pytest.mark.parametrize(
    ("job_id", "asked", "said"),
    [
        ("X", [(5, 2)], "runs at 0, got one that is not there"),
        ("W", [(5, 2)], "runs at 0, got one that waits"),
        ("R", [(5, 1)], "got one that does not evolve"),
        ("A", [(5, 1), (5, 2)], r"steps\[0\].request: Expected what the job holds at 0: 2 cores on 2 nodes"),
        ("A", [(5, 2), (5, 5)], "step 1: asks for 5 chunks of 1 cores; at most 4 fit at a time"),
        ("A", [(900, 2), (101, 3)], r"at most 1000 s in all \(queue q\), got 1001 s"),
    ],
)
def test_what_no_plan_could_grant(job_id: str, asked: list[tuple[int, int]], said: str) -> None:
    """A job that is not there, waits, or is rigid; a first step that it is not in; too much for machine or queue."""
    rigid = replace(going("R", (0, 10, "n3")), steps=steps((10, 1)))
    evolving = replace(going("A", (0, 10, "n1 n2"), (10, 20, "n1")), queue="q")
    queues = {"q": Queue(expected_wait=60, max_walltime=1000)}
    with pytest.raises(DocumentError, match=said):
        changed(four(evolving, rigid, waiting("W", 5, chunk(2, cores=1)), queues=queues), job_id, *asked)


def test_steps_that_move_about_are_refused() -> None:
    """More cores on fewer nodes would be a migration."""
    asked = (*steps((5, 2)), *steps((5, 1), cores=4))
    with pytest.raises(DocumentError, match="keeps its nodes; step 1 asks for more in fewer chunks"):
        with_profile(four(TWO_STEPS), ProfileChange(job="A", steps=asked))


def test_a_node_that_is_too_small_is_said() -> None:
    """A packed job cannot grow beyond its node, though another one would be large enough."""
    job = replace(going("A", (0, 10, "n1"), (10, 20, "n1")), steps=steps((10, 1), (10, 1), place=PACK))
    machine = window([nodes("n1", cores=2), nodes("n2", cores=8)], job)
    with pytest.raises(DocumentError, match="no room for all of its steps"):
        changed(machine, "A", (5, 1), (5, 4), place=PACK)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (chunk(3, cores=1, gpus=1), "asks for 1 gpus in one chunk; the largest node has 0"),
        (chunk(3, where={"rack": "8"}, cores=1), "asks for rack=8; no node has it"),
    ],
)
def test_what_no_node_has(step: Chunk, said: str) -> None:
    """A step may ask for what is nowhere, and is refused in words."""
    asked = (*steps((5, 2)), Step(walltime=5, request=Request(chunks=(step,))))
    with pytest.raises(DocumentError, match=said):
        with_profile(four(TWO_STEPS), ProfileChange(job="A", steps=asked))


def test_the_place_stays() -> None:
    """No step has another place than the job."""
    with pytest.raises(DocumentError, match="Expected the place of the job in all steps"):
        changed(four(TWO_STEPS), "A", (5, 2), (5, 3), place=SCATTER)


def test_a_deadline_holds() -> None:
    """A job with a deadline is promised nothing that ends later."""
    job = replace(TWO_STEPS, deadline=20)
    assert promised(changed(four(job), "A", (10, 2), (10, 3)), "A")[-1][1] == 20
    with pytest.raises(EngineError, match="would end at 21, after its deadline 20"):
        changed(four(job), "A", (11, 2), (10, 3))


def test_what_follows_does_not_put_off_a_promise() -> None:
    """A was promised n3 from 10 to 20, and E has it from then on. Who wants three nodes for longer has to wait for n4,
    until 15; but three nodes from 10 to 20 A has been promised: if it asks for them again, and for more behind them,
    nothing changes.
    """
    machine = window(
        [nodes("n1 n2 n3 n4 n5", cores=1)],
        going("A", (0, 10, "n1 n2"), (10, 20, "n1 n2 n3")),
        going("C", (0, 5, "n4"), (5, 15, "n4")),
        going("E", (0, 20, "n5"), (20, 60, "n3 n5")),
    )
    with pytest.raises(EngineError, match="was promised step 1 for 10; with this profile it would begin at 15"):
        changed(machine, "A", (10, 2), (10, 3), (10, 3))
    assert promised(changed(machine, "A", (10, 2), (20, 3)), "A") == [(0, 15, "n1 n2"), (15, 35, "n1 n2 n4")]


# ---- random windows ----


def continuing_at(data: st.DataObject) -> tuple[Instance, Plan, Job]:
    """Draw a window in which some time has passed, with its plan, and an evolving job that runs in it by now."""
    instance = data.draw(evolving_instances())
    plan = solved(instance)
    waiting_ones = {job.id for job in instance.elements() if job.is_evolving and job.running is None}
    started = [job for job in plan.jobs if job.id in waiting_ones and job.end - job.start > 1]
    assume(started)
    chosen = data.draw(st.sampled_from(started))
    later, plan = replan(instance, plan, at=data.draw(st.integers(chosen.start + 1, chosen.end - 1)))
    (job,) = (job for job in later.jobs if job.id == chosen.id)
    return later, plan, job


def left_of(job: Job, now: int) -> tuple[Step, ...]:
    """Return the steps that are left of a running job as they were promised, holds and all."""
    assert job.running is not None
    return tuple(
        Step(walltime=segment.end - max(segment.start, now), request=step.request)
        for step, segment in zip(job.steps, job.running.segments, strict=True)
        if segment.end > now
    )


@SLOW
@given(st.data())
def test_what_was_promised_can_be_had_again(data: st.DataObject) -> None:
    """A job that asks for its promised steps gets each step then, or sooner; so does a job that asks for less time.

    Where it is sooner, others may come too late for times of their own.
    """
    instance, plan, job = continuing_at(data)
    assert job.running is not None
    asked = left_of(job, instance.now)
    shorter = tuple(replace(step, walltime=data.draw(st.integers(1, step.walltime))) for step in asked)
    old = [max(instance.now, segment.start) for segment in job.running.segments if segment.end > instance.now]
    for wanted in (asked, shorter):
        then, new = replan(instance, plan, events=(ProfileChange(job=job.id, steps=wanted),))
        (after,) = (one.running for one in then.jobs if one.id == job.id)
        assert after is not None
        starts = [max(instance.now, segment.start) for segment in after.segments if segment.end > instance.now]
        assert all(start <= before for start, before in zip(starts, old, strict=True))
        waited = {one.id for one in plan.waiting_room}
        late = {one.reason for one in new.waiting_room if one.id not in waited}
        assert late <= {WaitingReason.TOO_LATE, WaitingReason.DEPENDENCY}


@SLOW
@given(st.data())
def test_whatever_is_asked_for(data: st.DataObject) -> None:
    """Any change is granted as a whole, beside all that others were promised, or refused; the new plan is valid."""
    instance, plan, job = continuing_at(data)
    assert job.running is not None
    first, *rest = left_of(job, instance.now)
    asked = [replace(first, walltime=data.draw(st.integers(1, 9)))]
    for _ in range(data.draw(st.integers(0, 3))):
        base = data.draw(st.sampled_from([first, *rest])).request
        more = data.draw(st.integers(-1, 2))
        chunks = tuple(replace(one, count=max(1, one.count + more)) for one in base.chunks)
        asked.append(Step(walltime=data.draw(st.integers(1, 5)), request=replace(base, chunks=chunks)))
    change = ProfileChange(job=job.id, steps=tuple(asked))
    try:
        then, _ = replan(instance, plan, events=(change,))
    except (DocumentError, EngineError):
        return
    (after,) = (one for one in then.jobs if one.id == job.id)
    assert after.running is not None
    assert [one for one in then.jobs if one is not after] == [one for one in instance.jobs if one.id != job.id]
    past = [segment for segment in job.running.segments if segment.end <= instance.now]
    assert list(after.running.segments[: len(past)]) == past
    coming = after.running.segments[len(past) :]
    for number, (step, segment) in enumerate(zip(asked, coming, strict=True)):
        assert units_on(step.request, segment.allocation, then.cluster) is not None
        assert segment.end - max(segment.start, instance.now) >= step.walltime
        assert number == 0 or segment.start == coming[number - 1].end
    for before, behind in pairwise(coming):
        had, has = ({held.node for held in segment.allocation} for segment in (before, behind))
        assert had <= has or has <= had
