"""The offered load of a workload, and the same jobs coming faster or slower."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Cluster,
    Instance,
    Job,
    NodeClass,
    NodeState,
    Outage,
    Placement,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.lab.workloads import eurora_stream, lublin, offered_load, scaled
from tests.booking.small_windows import chunk
from tests.sizes import examples


def job(job_id: str, submit: int, cores: int, walltime: int, runtime: int | None) -> Job:
    """Return a rigid job of one chunk."""
    request = Request(chunks=(chunk(1, cores=cores),))
    return Job(id=job_id, submit=submit, steps=(Step(walltime=walltime, request=request),), runtime=runtime)


@pytest.fixture
def workload() -> Instance:
    """Return three jobs on two nodes of 4 cores and one that is down; they run 40 + 100 + 60 core seconds in 50 s."""
    up, down = (
        NodeClass(names=names, resources=Amounts({"cores": 4}), state=state)
        for names, state in ((("n1", "n2"), NodeState.UP), (("n3",), NodeState.DOWN))
    )
    jobs = (job("a", 10, 4, 20, 10), job("b", 30, 2, 50, 70), job("c", 60, 3, 20, None))
    return Instance(name="three", cluster=Cluster(classes=(up, down)), jobs=jobs)


def test_worked_example(workload: Instance) -> None:
    """Until the end of their runtimes or walltimes: 200 core seconds, of the 400 that 8 cores have in 50 s."""
    assert offered_load(workload) == 0.5


def test_arrays_and_steps_are_counted(workload: Instance) -> None:
    """A job of two elements counts twice; one of two steps that ends after half its time counts half of both."""
    first, *others = workload.jobs
    twice = replace(workload, jobs=(replace(first, array=(0, 1)), *others))
    assert offered_load(twice) == 240 / 400
    steps = (*first.steps, Step(walltime=20, request=Request(chunks=(chunk(2, cores=4),))))
    evolving = replace(workload, jobs=(replace(first, steps=steps, runtime=20), *others))
    assert offered_load(evolving) == (120 + 160) / 400


def test_twice_the_load_is_half_the_time(workload: Instance) -> None:
    """Submissions move towards the first one, and a job's own times with its submission."""
    late = replace(workload.jobs[2], not_before=80, deadline=150, start_at=90)
    made = scaled(replace(workload, jobs=(*workload.jobs[:2], late)), 1.0)
    assert [job.submit for job in made.jobs] == [10, 20, 35]
    assert (made.jobs[2].not_before, made.jobs[2].deadline, made.jobs[2].start_at) == (55, 125, 65)
    assert offered_load(made) == 1.0
    assert [job.submit for job in scaled(workload, 0.25).jobs] == [10, 50, 110]


@given(st.floats(0.05, 3), st.integers(0, 100))
@examples(30)
def test_the_load_is_as_asked(load: float, seed: int) -> None:
    """Up to whole seconds; nothing but the submissions changes, whose order stays."""
    for before in (lublin(60, seed), eurora_stream(60, seed)):
        made = scaled(before, load)
        span = made.jobs[-1].submit - made.jobs[0].submit
        assert offered_load(made) == pytest.approx(load, rel=2 / max(2, span - 1))
        assert [job.submit for job in made.jobs] == sorted(job.submit for job in made.jobs)
        back = [replace(new, submit=old.submit) for new, old in zip(made.jobs, before.jobs, strict=True)]
        assert replace(made, jobs=tuple(back)) == before


def test_what_has_no_load_is_refused(workload: Instance) -> None:
    """Jobs that come at once, no jobs, and machines without cores: a programmer's mistake."""
    together = tuple(replace(job, submit=0) for job in workload.jobs)
    no_cores = Cluster(classes=(NodeClass(names=("n1",), resources=Amounts({"gpus": 1})),))
    for lacking in ({"jobs": together}, {"jobs": ()}, {"cluster": no_cores}):
        with pytest.raises(ValueError, match="one after the other"):
            offered_load(replace(workload, **lacking))


@pytest.mark.parametrize("load", [0.0, -1.0, math.inf, math.nan])
def test_senseless_loads_are_refused(workload: Instance, load: float) -> None:
    """A load is a positive number."""
    with pytest.raises(ValueError, match="Expected a load > 0"):
        scaled(workload, load)


def test_what_is_fixed_in_time_is_refused(workload: Instance) -> None:
    """Running jobs, outages and a `now` after the first submission cannot move along."""
    placement = Placement(node="n1", resources=Amounts({"cores": 4}))
    running = Running(start=0, segments=(Segment(start=0, end=20, allocation=(placement,)),))
    fixed = (
        {"now": 11},
        {"jobs": (replace(workload.jobs[0], running=running), *workload.jobs[1:])},
        {"outages": (Outage(nodes=("n1",), start=0, end=5),)},
    )
    for change in fixed:
        with pytest.raises(ValueError, match="all arrive from now on"):
            scaled(replace(workload, **change), 1.0)
