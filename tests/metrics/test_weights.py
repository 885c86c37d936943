"""The weight of a job multiplies what it adds to the objective; it changes no figure that people read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import FrozenMap, Instance, Job, Objective, ObjectiveTerm, PlannedJob
from cpsched.metrics import (
    delay_rates,
    end_rate,
    least_running_cost,
    least_value,
    objective_value,
    suffered,
    summarise,
)
from cpsched.planner import PlannerEngine
from tests.metrics.test_plans import a_job, a_plan, an_instance, bridi_19, planned, running_shrunk
from tests.oracle.random_evolving import evolving_instances
from tests.oracle.random_instances import instances, pressed
from tests.oracle.random_malleable import malleable_windows
from tests.sizes import examples

SUMS: list[ObjectiveTerm] = [term for term in ObjectiveTerm if term is not ObjectiveTerm.MAKESPAN]


def _twice(instance: Instance, job_id: str) -> Instance:
    """Return an instance with a second job that is like the given entry."""
    job = next(job for job in instance.jobs if job.id == job_id)
    return replace(instance, jobs=(*instance.jobs, replace(job, id="twin")))


def _with_twin(jobs: list[PlannedJob], job: Job) -> list[PlannedJob]:
    """Return planned jobs with those of an entry a second time, under the names of its twin."""
    twins = dict(zip(job.element_ids, replace(job, id="twin").element_ids, strict=True))
    return [*jobs, *(replace(one, id=twins[one.id]) for one in jobs if one.id in twins)]


@examples(30, deadline=None)
@given(data=st.data(), windows=st.sampled_from([instances, malleable_windows, evolving_instances]))
def test_a_job_of_weight_two_counts_as_two(data: st.DataObject, windows: object) -> None:
    """A plan in which a job has the weight 2 is worth as much as one with that job twice, whatever is summed up."""
    drawn = data.draw(pressed(data.draw(windows())))  # type: ignore[operator]  # one of three strategies
    weights = data.draw(st.dictionaries(st.sampled_from(SUMS), st.sampled_from([1.0, 0.1, 3.0]), min_size=1))
    plain = replace(
        drawn,
        objective=Objective(weights=FrozenMap(weights)),
        jobs=tuple(replace(job, weight=None) for job in drawn.jobs),
        queues=FrozenMap({name: replace(queue, weight=1) for name, queue in drawn.queues.items()}),
    )
    job = data.draw(st.sampled_from(plain.jobs))
    heavy = replace(plain, jobs=tuple(replace(one, weight=2) if one is job else one for one in plain.jobs))
    jobs = list(PlannerEngine().plan(plain, None).jobs)
    double, twins = _twice(plain, job.id), _with_twin(jobs, job)
    for figure in (objective_value, suffered, least_value):
        assert abs(figure(heavy, jobs) - figure(double, twins)) <= 1e-9 * max(1.0, abs(figure(heavy, jobs)))


def test_the_makespan_has_no_weights() -> None:
    """The end of the last job is no sum over jobs."""
    plan = [planned("a", 0, 60), planned("b", 60, 90)]
    jobs = a_job("a", 0, 60, weight=5), a_job("b", 0, 30, weight=0.01)
    assert objective_value(an_instance(*jobs, objective={"makespan": 2}), plan) == 180


def test_a_job_has_its_own_weight_or_its_queues() -> None:
    """A queue's weight is that of its jobs, unless a job has its own; without both it is 1, and decimals are exact."""
    instance = an_instance(a_job("a", 0, 1, "debug"), a_job("b", 0, 1, "debug", weight=0.1), a_job("c", 0, 1))
    queues = FrozenMap({**instance.queues, "debug": replace(instance.queues["debug"], weight=7)})
    weights = [replace(instance, queues=queues).weight(job) for job in instance.jobs]
    assert weights == [7, Fraction(1, 10), 1]


def test_figures_of_a_plan_have_no_weights() -> None:
    """WQT, NL and TR (BRIDI-19) are those of the jobs as they are; the objective is not."""
    instance, plan = bridi_19()
    heavy = replace(instance, jobs=tuple(replace(job, weight=3) for job in instance.jobs))
    assert summarise(heavy, plan) == summarise(instance, plan)
    assert abs(objective_value(heavy, plan.jobs) - 3 * objective_value(instance, plan.jobs)) < 1e-9


def test_a_running_job_has_a_weight_too() -> None:
    """Each second by which a plan makes a running job longer costs as many times as much as its weight says."""
    job = running_shrunk()
    for objective in ({"weighted_wait": 1.0}, {"wait": 0.5, "slowdown": 3.0}, {"completion": 2.0}):
        plain = an_instance(job, objective=objective)
        heavy = an_instance(replace(job, weight=2.5), objective=objective)
        assert end_rate(heavy, heavy.jobs[0]) == end_rate(plain, job) * Fraction(5, 2)
        assert float(least_running_cost(heavy)) == pytest.approx(2.5 * float(least_running_cost(plain)))


def test_prices_of_delays_have_the_weight() -> None:
    """Being overdue or later than told costs as many times as much as the weight says."""
    instance, _ = bridi_19()
    for job in instance.jobs:
        heavy = replace(job, weight=4)
        assert [(kink, 4 * rate) for kink, rate in delay_rates(instance, job)] == list(delay_rates(instance, heavy))
    assert summarise(instance, a_plan()).planned == 0
