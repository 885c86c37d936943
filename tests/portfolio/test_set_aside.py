"""Amounts that are set aside: no engine gives them to a job, and each uses the time before and after."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cpsched.domain import FOR_EVER, Amounts, Instance, Job, Placement, SetAside
from cpsched.formats import instance_to_document
from cpsched.portfolio import solve
from tests.booking.small_windows import EXCLUSIVE, chunk, nodes, running, waiting, window

ENGINES = ("planner", "search", "cp", "minizinc", "portfolio", "easy", "conservative", "fcfs", "wspt_list")


def starts(instance: Instance, engine: str) -> dict[str, int]:
    """Return the starts of a plan, none of whose jobs has anything that is set aside."""
    plan = solve(instance, engine=engine, budget=1, document=instance_to_document(instance))
    jobs = {job.id: job for job in instance.jobs}
    for aside in instance.set_aside:
        for held in aside.allocation:
            has = instance.cluster.class_of[held.node].resources
            for name, amount in held.resources.items():
                for time in {aside.start, *(job.start for job in plan.jobs if aside.start <= job.start < aside.end)}:
                    taken = sum(
                        one.resources.get(name, 0)
                        for job in plan.jobs
                        for segment in job.segments
                        if segment.start <= time < segment.end
                        for one in segment.allocation
                        if one.node == held.node
                    )
                    assert taken + amount <= has[name]
        for name, amount in aside.licenses.items():
            for time in {aside.start, *(job.start for job in plan.jobs if aside.start <= job.start < aside.end)}:
                taken = sum(jobs[job.id].licenses.get(name, 0) for job in plan.jobs if job.start <= time < job.end)
                assert taken + amount <= instance.cluster.licenses[name]
    return {job.id: job.start for job in plan.jobs if jobs[job.id].running is None}


def aside(start: int, end: int, *held: Placement, **licenses: int) -> SetAside:
    """Return amounts that are set aside."""
    return SetAside(start=start, end=end, allocation=held, licenses=Amounts(licenses))


def on(node: str, **amounts: int) -> Placement:
    """Return amounts on a node."""
    return Placement(node=node, resources=Amounts(amounts))


def two_nodes(jobs: Sequence[Job], *asides: SetAside, **licenses: int) -> Instance:
    """Return a window with two nodes of four cores."""
    return window([nodes("n1 n2", cores=4)], *jobs, licenses=licenses, set_aside=asides)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_ends_before_a_node_is_set_aside_or_waits(engine: str) -> None:
    """A job of 50 s runs before both nodes are set aside from 60 to 100; one of 70 s waits for their return."""
    jobs = waiting("short", 50, chunk(2, cores=4)), waiting("long", 70, chunk(2, cores=4))
    found = starts(two_nodes(jobs, aside(60, 100, on("n1", cores=4), on("n2", cores=4))), engine)
    assert found == {"short": 0, "long": 100}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_a_node_is_set_aside(engine: str) -> None:
    """Two cores of one node are set aside: a job of four cores takes the other node, one with both nodes waits."""
    jobs = waiting("one", 30, chunk(cores=4)), waiting("both", 30, chunk(2, cores=4))
    found = starts(two_nodes(jobs, aside(0, 90, on("n1", cores=2))), engine)
    assert found == {"one": 0, "both": 90}


@pytest.mark.parametrize("engine", ENGINES)
def test_exclusive_jobs_avoid_nodes_of_which_something_is_set_aside(engine: str) -> None:
    """An exclusive job does not share a node with what is set aside there."""
    jobs = [waiting("alone", 30, chunk(2, cores=1), place=EXCLUSIVE)]
    asides = aside(20, 90, on("n1", cores=1)), aside(20, 80, on("n2", cores=1))
    assert starts(two_nodes(jobs, *asides), engine)["alone"] in (80, 90)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_licences_are_set_aside(engine: str) -> None:
    """Of three licences two are set aside from 10 to 50: a job of two and one of one follow each other around that."""
    jobs = (
        waiting("two", 20, chunk(cores=1), licenses=Amounts({"lic": 2})),
        waiting("one", 40, chunk(cores=1), licenses=Amounts({"lic": 1})),
    )
    found = starts(two_nodes(jobs, aside(10, 50, lic=2), lic=3), engine)
    assert found == {"two": 50, "one": 50 if engine == "fcfs" else 0}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_set_aside_for_ever_never_returns(engine: str) -> None:
    """A node that is set aside for ever from 40 on is used until then."""
    jobs = waiting("both", 40, chunk(2, cores=4)), waiting("one", 500, chunk(cores=4), not_before=30)
    found = starts(two_nodes(jobs, aside(40, FOR_EVER, on("n1", cores=4))), engine)
    assert found == {"both": 0, "one": 40}


@pytest.mark.parametrize("engine", ENGINES)
def test_running_jobs_keep_what_is_set_aside(engine: str) -> None:
    """Where a running job has what is set aside, only the rest is: the other node is free."""
    jobs = running("runs", 100, n1={"cores": 3}), waiting("new", 30, chunk(cores=4))
    assert starts(two_nodes(jobs, aside(0, 50, on("n1", cores=1))), engine) == {"new": 0}
