"""What no plan can be worth less than: tried against every start and every duration that a plan can choose."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cpsched.cp import lower_bound
from cpsched.cp.bounds.costs import least_cost
from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    NodeClass,
    Objective,
    ObjectiveTerm,
    PlannedJob,
    Request,
    RuntimeModel,
    Segment,
    Step,
    duration_range,
)
from cpsched.formats import parse_instance, parse_plan
from cpsched.metrics import least_value, objective_value, suffered
from cpsched.portfolio import solve
from cpsched.verify import verify
from tests.sizes import seeds

#: How long an evolving job without limit is held here at the most: beyond it, holding it longer changes little.
LONG = 400


def _request(cores: int) -> Request:
    return Request(chunks=(Chunk(count=1, resources=Amounts({"cores": cores})),))


def _window(rng: random.Random) -> Instance:
    """Return a window of one waiting job whose duration a plan chooses."""
    job = Job(id="j", submit=-rng.randint(0, 60), steps=(Step(walltime=rng.randint(1, 30), request=_request(8)),))
    if rng.random() < 0.5:
        known = FrozenMap({0.5: rng.choice([1.0, 1.3, 3.0])} if rng.random() < 0.5 else {})
        shares = rng.choice([(0.5,), (0.5, 0.25)])
        malleable = Malleability(shares=shares, model=rng.choice(list(RuntimeModel)), stretch=known)
        job = replace(job, malleability=malleable)
    else:
        steps = [
            Step(walltime=rng.randint(1, 12), request=_request(rng.randint(1, 8))) for _ in range(rng.randint(2, 3))
        ]
        job = replace(job, steps=tuple(steps), expand_limit=rng.choice([1, 1.5, 4, None]))
    if rng.random() < 0.3:
        job = replace(job, deadline=job.walltime + rng.randint(5, 60))
    terms = [ObjectiveTerm.SLOWDOWN, ObjectiveTerm.COMPLETION, ObjectiveTerm.WASTE, ObjectiveTerm.WAIT]
    weights = {term: rng.choice([1.0, 3.0, 0.05, 0.003]) for term in terms if rng.random() < 0.6}
    weights[ObjectiveTerm.SLOWDOWN] = rng.choice([1.0, 20.0])
    return Instance(
        name="one",
        cluster=Cluster(classes=(NodeClass(names=("n",), resources=Amounts({"cores": 8})),)),
        jobs=(job,),
        objective=Objective(weights=FrozenMap(weights)),
    )


def _plan(job: Job, start: int, duration: int) -> PlannedJob:
    """Return a job that takes so long; an evolving one is held in its narrowest steps, one that is malleable anyhow."""
    lengths = [step.walltime for step in job.steps]
    left = duration - sum(lengths)
    held = sorted(range(len(lengths) - 1), key=lambda step: job.steps[step].request.totals["cores"])
    for step in held:
        most = job.longest_steps[step]
        more = left if most is None else min(left, max(0, most - lengths[step]))
        lengths[step] += more
        left -= more
    ends = [start + sum(lengths[: place + 1]) for place in range(len(lengths))]
    if not job.is_evolving:
        ends = [start + duration]
    begins = [start, *ends[:-1]]
    segments = tuple(Segment(start=a, end=b, allocation=()) for a, b in zip(begins, ends, strict=True))
    return PlannedJob(id=job.id, start=start, end=ends[-1], segments=segments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(200))
def test_the_least_cost_is_that_of_trying_every_start_and_duration(seed: int) -> None:
    """At the first start the least cost is that of the cheapest duration; no later start undercuts it."""
    instance = _window(random.Random(seed))
    (job,) = instance.jobs
    least, most = duration_range(job)
    first = instance.earliest_start(job)
    cost = least_cost(instance, job, first)
    values = {}
    for start in range(first, first + 60):
        longest = LONG if most is None else most
        longest = longest if job.deadline is None else min(longest, job.deadline - start)
        for duration in range(least, longest + 1):
            values[start, duration] = objective_value(instance, [_plan(job, start, duration)])
    for (start, _), value in values.items():
        later = sum((rate * (max(start, kink) - max(first, kink)) for kink, rate in cost.rates), Fraction(0))
        assert float(cost.value + later) <= value + 1e-9
    bound = lower_bound(instance, ["j"], seconds=0.0)
    assert bound is not None
    assert bound.value == pytest.approx(float(cost.value), abs=1e-9)
    assert least_value(instance, [_plan(job, first, least)]) == pytest.approx(bound.value, abs=1e-9)
    if not job.is_evolving:  # of the seconds that an evolving job is held all count as if the narrowest step were held
        assert min(value for (start, _), value in values.items() if start == first) == pytest.approx(bound.value)


def test_how_long_jobs_take() -> None:
    """A rigid job takes its walltime, an evolving one up to its limits, a malleable one up to its slowest mode."""
    rigid = Job(id="j", submit=0, steps=(Step(walltime=10, request=_request(8)),))
    assert duration_range(rigid) == (10, 10)
    halves = replace(rigid, malleability=Malleability(shares=(0.5, 0.3), stretch=FrozenMap({0.5: 5.0})))
    assert duration_range(halves) == (10, 50)
    assert duration_range(replace(rigid, malleability=Malleability(shares=(0.3,)))) == (10, 40)
    steps = replace(rigid, steps=rigid.steps * 3)
    assert duration_range(steps) == (30, 30)
    assert duration_range(replace(steps, expand_limit=1.55)) == (30, 40)
    assert duration_range(replace(steps, expand_limit=None)) == (30, None)


@pytest.fixture
def cases(repository: Path) -> Path:
    """Return the folder of small cases."""
    return repository / "tests" / "cases"


def _read(path: Path) -> Instance:
    return parse_instance(json.loads(path.read_text()), source=path.name)


def test_a_stretched_job_is_worth_no_less_than_what_was_suffered(cases: Path) -> None:
    """A job of 10 s that has waited 100 s has a slowdown of 11, and of 12 on half of its cores: 11 is a bound."""
    instance = _read(cases / "false-bound.json")
    document = json.loads((cases / "false-bound.better.plan.json").read_text())
    assert verify(json.loads((cases / "false-bound.json").read_text()), document) == ()
    plan = parse_plan(document)
    assert objective_value(instance, plan.jobs) == 12
    assert suffered(instance, plan.jobs) == 11
    assert least_value(instance, plan.jobs) == 11
    bound = lower_bound(instance, ["m"], seconds=1.0)
    assert bound is not None
    assert bound.value == 11


def test_a_held_step_is_worth_less_than_what_was_suffered() -> None:
    """An evolving job of 5 and 5 s that has waited 100 s has a slowdown of 11, and of 6 if it holds the first for 15 s:
    11 is no bound, 6 is one.
    """
    steps = (Step(walltime=5, request=_request(2)), Step(walltime=5, request=_request(4)))
    job = Job(id="j", submit=-100, steps=steps, expand_limit=3)
    cluster = Cluster(classes=(NodeClass(names=("n",), resources=Amounts({"cores": 8})),))
    objective = Objective(weights=FrozenMap({ObjectiveTerm.SLOWDOWN: 1.0}))
    instance = Instance(name="one", cluster=cluster, jobs=(job,), objective=objective)
    assert objective_value(instance, [_plan(job, 0, 20)]) == 6
    assert suffered(instance, [_plan(job, 0, 20)]) == 11
    assert least_value(instance, [_plan(job, 0, 10)]) == 6


@pytest.mark.parametrize("name", ["false-bound", "false-bound-2"])
def test_a_bound_is_never_clipped_to_the_value(cases: Path, name: str) -> None:
    """With slowdown, malleable jobs and held steps, what the first plan is said to be worth at least holds for all
    plans found.
    """
    instance = _read(cases / f"{name}.json")
    plan = solve(instance, engine="search", budget=1.0, workers=1)
    assert not [event for event in plan.events if "bound" in event.what]
    assert plan.objective.bound is None or plan.objective.bound <= plan.objective.value
