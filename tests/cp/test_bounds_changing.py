"""Lower bounds where jobs change: no plan that shrinks, expands or holds jobs is below them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpsched.cp import lower_bound
from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    Mode,
    NodeClass,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Queue,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
    modes,
    resumable,
)
from cpsched.engine import Outcome
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import least_running_cost, least_value, objective_value
from cpsched.portfolio import plan_of
from cpsched.verify import verify
from tests.sizes import seeds

CORES = 8
HORIZON = 600
Free = NDArray[np.int64]
HALF = Malleability(shares=(0.5, 0.25))


def _request(cores: int) -> Request:
    return Request(chunks=(Chunk(count=1, resources=Amounts({"cores": cores})),))


def _on(cores: int, *, counted: bool) -> tuple[Placement, ...]:
    kind = {"chunk": 0, "count": 1} if counted else {}
    return (Placement(node="n", resources=Amounts({"cores": cores}), **kind),)


def _job(name: str, cores: int, walltime: int, **more: Any) -> Job:
    job = Job(id=name, submit=0, steps=(Step(walltime=walltime, request=_request(cores)),))
    return replace(job, **more)


def _started(name: str, cores: int, walltime: int, mode: int, since: int, **more: Any) -> Job:
    """Return a malleable job that has run on one of its modes for some seconds."""
    job = _job(name, cores, walltime, malleability=HALF, **more)
    on = modes(job)[mode]
    held = _on(on.request.totals["cores"], counted=True)
    segment = Segment(start=-since, end=on.time_for(walltime) - since, allocation=held)
    return replace(job, submit=-since, running=Running(start=-since, segments=(segment,)))


def _window(rng: random.Random) -> Instance:
    """Return a node of 8 cores: running malleable jobs, and waiting ones of every kind."""
    jobs = []
    free = CORES
    for number in range(rng.randint(1, 3)):
        job = _started(f"r{number}", rng.randint(2, 6), rng.randint(10, 60), rng.randint(0, 1), rng.randint(0, 9))
        held = job.running.segments[0].allocation[0].resources["cores"] if job.running else 0
        if held <= free:
            free -= held
            jobs.append(replace(job, queue=rng.choice(["hasty", "patient"])))
    for number in range(rng.randint(1, 4)):
        kind = rng.choice(["rigid", "malleable", "evolving"])
        job = _job(f"w{number}", rng.randint(1, CORES), rng.randint(1, 40), queue=rng.choice(["hasty", "patient"]))
        if kind == "malleable":
            model = rng.choice(list(RuntimeModel))
            job = replace(job, malleability=Malleability(shares=(0.5,), model=model))
        if kind == "evolving":
            steps = [Step(walltime=rng.randint(1, 20), request=_request(rng.randint(1, CORES))) for _ in range(3)]
            job = replace(job, steps=tuple(steps), expand_limit=rng.choice([1, 2.5, None]))
        jobs.append(job)
    weights = {term: rng.choice([1.0, 0.25]) for term in ObjectiveTerm if rng.random() < 0.4}
    return Instance(
        name="changing",
        cluster=Cluster(classes=(NodeClass(names=("n",), resources=Amounts({"cores": CORES})),)),
        queues=FrozenMap({"hasty": Queue(expected_wait=10), "patient": Queue(expected_wait=100)}),
        jobs=tuple(jobs),
        objective=Objective(weights=FrozenMap(weights or {ObjectiveTerm.WAIT: 1.0})),
    )


def _pieces(rng: random.Random, modes: tuple[Mode, ...], work: Fraction) -> Iterator[tuple[int, Mode]]:
    """Yield (seconds, mode) that do the work, on up to three modes in turn."""
    last = None
    for _ in range(rng.randint(0, 2)):
        mode = rng.choice([mode for mode in modes if mode is not last])
        seconds = rng.randint(1, max(1, int(work / mode.rate) - 1))
        if mode.rate * seconds >= work:
            break
        work -= mode.rate * seconds
        yield seconds, mode
        last = mode
    mode = rng.choice([mode for mode in modes if mode is not last])
    yield mode.time_for(work), mode


def _go_on(rng: random.Random, job: Job) -> PlannedJob:
    """Return how a running job goes on, at random."""
    assert job.running is not None
    left = resumable(job, 0)
    assert left is not None
    past = [Segment(start=job.running.start, end=0, allocation=_bare(job.running.segments[0].allocation))]
    segments = past if job.running.start < 0 else []
    time = 0
    for seconds, mode in _pieces(rng, left.modes, left.work):
        held = _bare(left.allocations[left.modes.index(mode)])
        if segments and segments[-1].allocation == held:
            segments[-1] = replace(segments[-1], end=time + seconds)
        else:
            segments.append(Segment(start=time, end=time + seconds, allocation=held))
        time += seconds
    return PlannedJob(id=job.id, start=segments[0].start, end=time, segments=tuple(segments))


def _bare(allocation: Sequence[Placement]) -> tuple[Placement, ...]:
    return tuple(replace(held, chunk=None, count=None) for held in allocation)


def _shapes(rng: random.Random, job: Job) -> list[tuple[int, int]]:
    """Return the (seconds, cores) of the segments of a waiting job, at random."""
    if job.is_evolving:
        held = [
            rng.randint(step.walltime, int(step.walltime * (3 if job.expand_limit is None else job.expand_limit)))
            for step in job.steps[:-1]
        ]
        cores = [step.request.totals["cores"] for step in job.steps]
        return list(zip([*held, job.steps[-1].walltime], cores, strict=True))
    pieces = (
        _pieces(rng, modes(job), Fraction(job.walltime)) if len(modes(job)) > 1 else [(job.walltime, modes(job)[0])]
    )
    return [(seconds, mode.request.totals["cores"]) for seconds, mode in pieces]


def _plan(rng: random.Random, instance: Instance) -> list[PlannedJob] | None:
    """Return a plan in which everything changes at random; None where the running jobs do not fit."""
    free: Free = np.full(HORIZON, CORES, dtype=np.int64)
    planned = []
    for job in instance.jobs:
        if job.running is not None:
            planned.append(_go_on(rng, job))
            for segment in planned[-1].segments:
                free[max(0, segment.start) : segment.end] -= segment.allocation[0].resources["cores"]
    if free.min() < 0:
        return None
    waiting = [job for job in instance.jobs if job.running is None]
    for job in rng.sample(waiting, len(waiting)):
        shapes = _shapes(rng, job)
        need = np.concatenate([np.full(seconds, cores) for seconds, cores in shapes])
        start = next(time for time in range(HORIZON) if (free[time : time + len(need)] >= need).all())
        free[start : start + len(need)] -= need
        cuts = np.cumsum([start, *(seconds for seconds, _ in shapes)]).tolist()
        segments = tuple(
            Segment(start=first, end=last, allocation=_on(cores, counted=True))
            for first, last, (_, cores) in zip(cuts, cuts[1:], shapes, strict=False)
        )
        planned.append(PlannedJob(id=job.id, start=cuts[0], end=cuts[-1], segments=segments))
    order = {job.id: place for place, job in enumerate(instance.jobs)}
    return sorted(planned, key=lambda one: order[one.id])


def _assert_valid(instance: Instance, jobs: list[PlannedJob]) -> None:
    outcome = Outcome(jobs=tuple(jobs), waiting_room=())
    document = plan_to_document(plan_of(instance, "hand", outcome, budget=0, elapsed=0))
    assert verify(instance_to_document(instance), document) == ()


@pytest.mark.parametrize("seed", seeds(60))
def test_no_plan_in_which_jobs_change_is_below_the_bound(seed: int) -> None:
    """Whatever running and waiting jobs give up, take back or hold, the bounds stay below; the verifier passes all."""
    rng = random.Random(seed)
    instance = _window(rng)
    waiting = [job.id for job in instance.jobs if job.running is None]
    bound = lower_bound(instance, waiting, seconds=4.0, evaluations=10)
    assert bound is not None
    found = [plan for _ in range(60) if (plan := _plan(rng, instance)) is not None]
    for jobs in found[:3]:
        _assert_valid(instance, jobs)
    values = [objective_value(instance, jobs) for jobs in found]
    assert all(bound.value <= value + 1e-9 for value in values)
    simple = [least_value(instance, jobs) for jobs in found]
    assert all(least <= value + 1e-9 for least, value in zip(simple, values, strict=True))


@pytest.mark.slow
def test_plans_of_these_windows_gain_and_lose() -> None:
    """The windows have what the property is about: running jobs that end earlier, and that end later."""
    gains = losses = 0
    for seed in range(60):
        rng = random.Random(seed)
        instance = _window(rng)
        ends = {job.id: job.running.segments[-1].end for job in instance.jobs if job.running is not None}
        for jobs in (plan for _ in range(60) if (plan := _plan(rng, instance)) is not None):
            gains += any(job.end < ends.get(job.id, 0) for job in jobs)
            losses += any(job.end > ends.get(job.id, job.end) for job in jobs)
    assert gains > 100
    assert losses > 100


def test_cores_that_running_jobs_can_give_up_hold_nobody_back() -> None:
    """Behind a rigid job of 8 cores a job of 4 waits 30 s for certain; behind a malleable one it may start now."""
    waits = _job("w", 4, 10, submit=0)
    for malleable, least in ((True, 0.0), (False, 30.0)):
        runs = _started("r", 8, 30, 0, 0)
        runs = runs if malleable else replace(runs, malleability=None)
        weights = FrozenMap({ObjectiveTerm.WAIT: 1.0})
        instance = replace(_window(random.Random(0)), jobs=(runs, waits), objective=Objective(weights=weights))
        bound = lower_bound(instance, ["w"], seconds=4.0, evaluations=5)
        assert bound is not None
        assert bound.value == least


def test_most_that_running_jobs_can_gain() -> None:
    """A job at half share for 10 s, with 50 s of walltime, ends at 90; with all its cores it would end at 45 (SD-3)."""
    runs = _started("r", 8, 50, 1, 10)
    weights = FrozenMap({ObjectiveTerm.COMPLETION: 2.0, ObjectiveTerm.MAKESPAN: 1.0})
    instance = replace(_window(random.Random(0)), jobs=(runs,), objective=Objective(weights=weights))
    assert least_running_cost(instance) == -90
    bound = lower_bound(instance, [], seconds=1.0)
    assert bound is not None
    assert bound.value == -90
