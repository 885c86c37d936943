"""Evolving jobs on whole nodes, as engines: verified plans, nodes that stay, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Arrangement,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    KeepFree,
    Malleability,
    MaxWait,
    NodeState,
    Place,
    Placement,
    Queue,
    Request,
    Reservation,
    Running,
    Segment,
    SetAside,
    Step,
    WaitingReason,
)
from cpsched.engine import Outcome
from cpsched.errors import UnsupportedError
from cpsched.lab.workloads import evolving_window
from cpsched.problem import Application, Hold, map_to_nodes
from cpsched.rules import POLICIES, EvolvingEngine
from cpsched.rules.evolving import VARIANTS
from tests.booking.small_windows import PACK, SCATTER, chunk, nodes, running, waiting, window
from tests.oracle.dense_evolving import best_schedule
from tests.portfolio.judged import assert_judged
from tests.sizes import examples
from tests.workloads.changing import made_rigid

ENGINES = [POLICIES[variant.name] for variant in VARIANTS]
ALONE = Place(arrangement=Arrangement.SCATTER, exclusive=True)


def evolving(job_id: str, *steps: tuple[int, int], place: Place = ALONE, **options: Any) -> Job:
    """Return a waiting job of (walltime, nodes), with nodes of its own."""
    return Job(
        **{"id": job_id, "submit": 0, "expand_limit": None if len(steps) > 1 else 1, **options},
        steps=tuple(
            Step(walltime=walltime, request=Request(chunks=(chunk(count, cores=2),), place=place))
            for walltime, count in steps
        ),
    )


def shrinking(job_id: str, *held: tuple[int, str]) -> Job:
    """Return a job that runs from 0 on, and holds whole nodes until the given times."""
    segments, start = [], 0
    for end, names in held:
        allocation = tuple(Placement(node=name, resources=Amounts({"cores": 4})) for name in names.split())
        segments.append(Segment(start=start, end=end, allocation=allocation))
        start = end
    job = evolving(job_id, *((part.end - part.start, len(part.allocation)) for part in segments), expand_limit=1)
    return replace(job, running=Running(start=0, segments=tuple(segments)))


def planned(instance: Instance, engine: str = "ep_infx") -> Outcome:
    """Plan an instance; the judge finds no fault with it."""
    outcome = POLICIES[engine].plan(instance, None)
    assert_judged(instance, outcome)
    return outcome


def held_by(outcome: Outcome, job_id: str) -> list[tuple[int, int, str]]:
    """Return start, end and nodes of each segment of a job."""
    (found,) = (job for job in outcome.jobs if job.id == job_id)
    return [
        (segment.start, segment.end, " ".join(placement.node for placement in segment.allocation))
        for segment in found.segments
    ]


# ---- plans ----


def test_nodes_stay() -> None:
    """A growing job keeps its nodes while it waits, and a shrinking one keeps some: nothing migrates (EVO-4)."""
    busy = shrinking("r", (2, "a b"), (6, "b"), (9, "b"))
    instance = window([nodes("a b c d", cores=4)], busy, evolving("e", (1, 1), (2, 2), (3, 4), (4, 1)))
    assert held_by(planned(instance), "e") == [(0, 1, "c"), (1, 9, "c d"), (9, 12, "a b c d"), (12, 16, "a")]


def test_a_rigid_job_shows_what_its_steps_use() -> None:
    """Taken as rigid, a job keeps its widest nodes from others; its plan has those that each step asks for."""
    instance = window([nodes("a b c", cores=4)], evolving("e", (2, 1), (3, 3), (4, 2)), evolving("next", (1, 1)))
    outcome = planned(instance, "ep_rigid")
    assert held_by(outcome, "e") == [(0, 2, "a"), (2, 5, "a b c"), (5, 9, "a b")]
    assert held_by(outcome, "next") == [(9, 10, "a")]


def test_cheap_nodes_come_first() -> None:
    """Nodes are alike but for their priority, the cheaper ones are taken first, and those that are not up never."""
    classes = [nodes("a", cores=4, priority=1), nodes("b", cores=4), nodes("c", cores=4, state=NodeState.DRAIN)]
    outcome = planned(window(classes, evolving("e", (1, 1)), evolving("f", (1, 1)), evolving("g", (1, 1))))
    assert [held_by(outcome, name) for name in "efg"] == [[(0, 1, "b")], [(0, 1, "a")], [(1, 2, "b")]]


def test_queue_order() -> None:
    """Jobs are fitted by priority, and none begins before it may; an array is its elements."""
    jobs = [
        evolving("late", (2, 2), not_before=3),
        evolving("low", (2, 2), array=(1, 2)),
        evolving("high", (2, 2), priority=1),
    ]
    outcome = planned(window([nodes("a b", cores=4)], *jobs))
    starts = {job.id: job.start for job in outcome.jobs}
    assert starts == {"late": 3, "low[1]": 5, "low[2]": 7, "high": 0}


def test_clock_of_the_instance() -> None:
    """Times of a plan are those of the instance, whose now need not be 0."""
    instance = replace(window([nodes("a", cores=4)], shrinking("r", (70, "a")), evolving("e", (2, 1), (1, 1))), now=50)
    assert held_by(planned(instance), "e") == [(70, 72, "a"), (72, 73, "a")]


def test_who_can_never_start_is_told_why() -> None:
    """A step that is too wide, for the nodes there are or those that are up, and a walltime that no queue accepts."""
    queues = FrozenMap({"short": Queue(expected_wait=1, max_walltime=4)})
    jobs = [
        evolving("wide", (1, 1), (1, 4)),
        evolving("down", (1, 1), (1, 3)),
        evolving("long", (3, 1), (2, 1), queue="short"),
        evolving("fits", (1, 1)),
    ]
    instance = window([nodes("a b", cores=4), nodes("c", cores=4, state=NodeState.DOWN)], *jobs, queues=queues)
    room = {job.id: job.reason for job in planned(instance).waiting_room}
    assert room == {
        "wide": WaitingReason.UNSATISFIABLE,
        "down": WaitingReason.UNAVAILABLE,
        "long": WaitingReason.WALLTIME,
    }


STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4)
LIMITS = st.sampled_from([1, 1.5, 2, None])


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Draw a few jobs on up to four nodes, some of them held by jobs that run and shrink."""
    names = "abcd"[: draw(st.integers(3, 4))]
    runs = []
    for name in names[: draw(st.integers(0, 2))]:
        ends = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=2)))
        runs.append(shrinking(f"r{name}", *((end, name) for end in ends)))
    jobs = [
        evolving(f"j{number}", *steps, submit=draw(st.integers(-2, 4)), expand_limit=draw(LIMITS))
        for number, steps in enumerate(draw(st.lists(STEPS, min_size=1, max_size=5)))
    ]
    return window([nodes(" ".join(names), cores=4)], *runs, *jobs)


def applied(instance: Instance, job: Job, variant: Any) -> tuple[Sequence[tuple[int, int]], tuple[int, ...]]:
    """Return the steps that a variant fits for a job, and for how long each may be held."""
    steps = tuple((step.walltime, step.request.chunks[0].count) for step in job.steps)
    if variant.is_rigid:
        steps = ((job.walltime, max(count for _, count in steps)),)
    longest = Application(steps=steps, limit=job.expand_limit).longest(variant.limit)
    return steps, tuple(min(most, 99) for most in longest)


@examples(60)
@given(instances(), st.sampled_from(ENGINES))
def test_every_plan_is_valid_and_every_job_as_early_as_it_can_be(instance: Instance, engine: EvolvingEngine) -> None:
    """In queue order each job completes as early as any schedule beside those before it, on real nodes (EVO-11)."""
    outcome = planned(instance, engine.variant.name)
    found = {job.id: job for job in outcome.jobs}
    busy = [0] * 200
    for job in instance.jobs:
        if job.running is not None:
            for second in range(job.running.segments[-1].end):
                busy[second] += 1
    for job in sorted((job for job in instance.jobs if job.running is None), key=lambda job: job.submit):
        steps, longest = applied(instance, job, engine.variant)
        capacity = len(instance.cluster.node_names)
        best, latest = best_schedule(steps, _cut(busy), capacity, longest, max(0, job.submit))
        assert found[job.id].end == best
        if engine.variant.is_compacted:
            assert found[job.id].start == latest
        for segment in found[job.id].segments:
            for second in range(segment.start, segment.end):
                busy[second] += max(count for _, count in steps) if engine.variant.is_rigid else len(segment.allocation)


def _cut(busy: list[int]) -> tuple[tuple[int, int], ...]:
    """Return seconds as steps, without the nothing at the end."""
    end = max((second + 1 for second, held in enumerate(busy) if held), default=0)
    return tuple((1, held) for held in busy[:end])


@examples(30)
@given(instances())
def test_rigid_is_the_same_as_made_rigid(instance: Instance) -> None:
    """Jobs that are taken as rigid start when jobs that were made rigid do, by any variant."""
    mine = {job.id: (job.start, job.end) for job in planned(instance, "ep_rigid").jobs}
    for engine in ("ep_rigid", "ep_nox", "ep_infxc"):
        assert {job.id: (job.start, job.end) for job in planned(made_rigid(instance), engine).jobs} == mine


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_window_of_the_experiment(engine: EvolvingEngine) -> None:
    """A test case of the paper's size is planned, every job of it, and the progress is told."""
    calls: list[tuple[int, int]] = []
    instance = evolving_window(7)
    engine.prepare()
    outcome = engine.plan(instance, lambda done, total: calls.append((done, total)))
    assert_judged(instance, outcome)
    assert [job.id for job in outcome.jobs] == [job.id for job in instance.jobs]
    assert calls == [(done, len(instance.jobs)) for done in range(1, len(instance.jobs) + 1)]


def test_mapping_gives_before_it_takes() -> None:
    """At second 3 the first one shrinks and the second one grows by what it gave; the third one takes what is left."""
    holds = [
        [Hold(0, 3, 3), Hold(3, 8, 1)],
        [Hold(0, 3, 1), Hold(3, 5, 3)],
        [Hold(5, 6, 3)],
    ]
    assert map_to_nodes(holds, [0, 0, 0, 0]) == [[(0, 1, 2), (0,)], [(3,), (1, 2, 3)], [(1, 2, 3)]]


# ---- what is refused ----

REFUSED: dict[str, dict[str, Any]] = {
    "job e: malleable": {"malleability": Malleability(shares=(0.5,))},
    "job e: depends on other jobs": {"after": (Dependency(job="o", type=DependencyType.AFTEROK),)},
    "job e: asks for licences": {"licenses": Amounts({"x": 1})},
    "job e: has a start that is fixed": {"start_at": 5},
    "job e: has a deadline": {"deadline": 50},
    "job e: has to start by the hard max_wait of its queue": {"queue": "hard"},
}


def refused(*jobs: Job, **options: Any) -> tuple[str, ...]:
    """Return what the engines refuse; they refuse it when they are asked to plan, too."""
    classes = options.pop("classes", [nodes("a b", cores=4)])
    queues = FrozenMap({"hard": Queue(expected_wait=1, max_wait=MaxWait(seconds=9, is_hard=True))})
    instance = window(classes, *jobs, queues=queues, **options)
    features = {engine.unsupported(instance) for engine in ENGINES}
    assert len(features) == 1
    if any(features):
        with pytest.raises(UnsupportedError, match="ep_nox"):
            POLICIES["ep_nox"].plan(instance, None)
    return features.pop()


@pytest.mark.parametrize("feature", REFUSED)
def test_features_of_jobs(feature: str) -> None:
    """What lists of whole nodes cannot honour is named with its job."""
    assert refused(evolving("e", (1, 1)), evolving("o", (1, 1))) == ()
    assert refused(evolving("e", (1, 1), **REFUSED[feature]), evolving("o", (1, 1))) == (feature,)


@pytest.mark.parametrize(
    ("job", "feature"),
    [
        (waiting("e", 1, chunk(2, cores=2), place=SCATTER), "its chunks do not each take a whole node"),
        (waiting("e", 1, chunk(2, cores=2), place=Place(exclusive=True)), "its chunks do not each take a whole node"),
        (waiting("e", 1, chunk(2, cores=4), place=PACK), "its chunks do not each take a whole node"),
        (waiting("e", 1, chunk(cores=4), chunk(cores=2)), "its chunks do not each take a whole node"),
        (waiting("e", 1, chunk(2, cores=4), place=SCATTER), None),
        (waiting("e", 1, chunk(2, cores=4)), None),
        (waiting("e", 1, chunk(cores=4), place=PACK), None),
        (waiting("e", 1, chunk(2, mem=1), place=ALONE), None),
    ],
)
def test_whole_nodes(job: Job, feature: str | None) -> None:
    """A chunk has a node to itself if it takes all of its cores, or if chunks are scattered over nodes of their own."""
    found = refused(job, classes=[nodes("a b", cores=4, mem=8)])
    assert found == (() if feature is None else (f"job e: {feature}",))


def test_steps_differ_in_numbers_only() -> None:
    """Steps that ask for different chunks may grow in one resource and shrink in another one."""
    steps = tuple(Step(walltime=1, request=Request(chunks=(chunk(1, cores=4, mem=mem),))) for mem in (1, 2))
    job = replace(evolving("e", (1, 1)), steps=steps)
    assert refused(job, classes=[nodes("a", cores=4, mem=8)]) == ("job e: its steps ask for different chunks",)


@pytest.mark.parametrize(
    ("classes", "feature"),
    [
        ([nodes("a", cores=4), nodes("b", cores=8)], "nodes of several kinds"),
        ([nodes("a", cores=4), nodes("b", cores=4, properties=FrozenMap({"rack": "1"}))], "nodes of several kinds"),
        ([nodes("a", cores=4, admits=(AdmitCondition(max_walltime=5),))], "nodes with guards"),
        (
            [nodes("a", cores=4, keep_free=(KeepFree(resource="cores", items=1, beneficiary="gpus"),))],
            "nodes that keep resources free",
        ),
    ],
)
def test_features_of_the_cluster(classes: list[Any], feature: str) -> None:
    """Nodes are equal, and admit every job."""
    assert refused(classes=classes) == (f"cluster: {feature}",)


def test_reservations() -> None:
    """Amounts that are set aside are refused, and so are reservations that were not made such amounts."""
    downtime = Reservation(id="r", start=1, end=2, request=Request(chunks=(chunk(cores=1),)))
    (feature,) = refused(reservations=(downtime,))
    assert feature.startswith("reservations: reservations and downtimes, which engines know only as")
    aside = SetAside(start=1, end=2, allocation=(Placement(node="a", resources=Amounts({"cores": 1})),))
    assert refused(set_aside=(aside,)) == ("reservations: nodes or licences that are set aside for a time",)


def test_a_running_job_that_will_grow() -> None:
    """A running job that grows later may find its nodes taken: it is refused. What is past does not count."""
    grows = shrinking("r", (2, "a"), (6, "a b"))
    assert refused(grows) == ("job r: it runs, and will take more nodes",)
    instance = replace(window([nodes("a b", cores=4)], grows, evolving("e", (1, 1))), now=3)
    assert held_by(planned(instance), "e") == [(6, 7, "a")]
    assert refused(running("r", 5, a={"cores": 1})) == ()
