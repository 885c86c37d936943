"""Jobs whose chunks are within one group of nodes: the group that they get, and what engines do with such jobs."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.mzn import MiniZinc
from cpsched.planner import PlannerEngine
from cpsched.portfolio import solve
from cpsched.problem import compiled
from cpsched.verify import verify

Document = dict[str, Any]

#: Two racks of four nodes; under three switches two, two and three of them; n8 is under none.
TREE = {"rack": {"r1": "n[1-4]", "r2": "n[5-8]"}, "switch": {"s1": "n[1-2]", "s2": "n[3-4]", "s3": "n[5-7]"}}


def job(name: str, request: str, walltime: int = 10, **more: Any) -> Document:
    """Return a job that waits."""
    return {"id": name, "submit": 0, "walltime": walltime, "request": request, **more}


def window(*jobs: Document, **more: Any) -> Instance:
    """Return a window of eight nodes of two cores."""
    cluster = {"nodes": [{"names": "n[1-8]", "resources": {"cores": 2}}], "topology": TREE}
    return parse_instance(
        {"format": "cpsched-instance/1", "name": "w", "now": 0, "cluster": cluster, "jobs": list(jobs)} | more
    )


def solved(instance: Instance, engine: str = "planner") -> Plan:
    """Return a plan that the verifier accepts."""
    plan = solve(instance, engine=engine, budget=0, workers=1)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()
    return plan


def nodes(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each job."""
    return {one.id: one.nodes for one in plan}


@pytest.mark.parametrize("engine", ["planner", "fcfs", "easy", "wspt_list"])
def test_the_group_with_the_least_room_left_is_taken(engine: str) -> None:
    """Two nodes under one switch: not of the three that a wider job needs, though these are as good."""
    plan = solved(
        window(
            job("a", "1:ncpus=2,place=within=switch"),
            job("b", "1:ncpus=2,place=within=switch"),
            job("c", "2:ncpus=2,place=within=switch"),
            job("d", "3:ncpus=2,place=within=switch"),
        ),
        engine,
    )
    assert nodes(plan) == {"a": ("n1",), "b": ("n2",), "c": ("n3", "n4"), "d": ("n5", "n6", "n7")}
    assert {one.start for one in plan} == {0}


def test_a_job_waits_for_a_group() -> None:
    """Six cores are free, and no two nodes under one switch: the job waits until its switch has them."""
    plan = solved(
        window(
            *(job(f"r{number}", "1:ncpus=2", start_at=0) for number in range(5)),
            job("a", "3:ncpus=2,place=scatter:within=rack"),
            job("b", "2:ncpus=2,place=scatter:excl:within=switch"),
        )
    )
    starts = {one.id: one.start for one in plan}
    assert nodes(plan)["a"] == ("n6", "n7", "n8")
    assert (starts["a"], starts["b"]) == (0, 10)


def test_several_kinds_of_chunks_are_in_one_group() -> None:
    """Chunks of two kinds are counted together, in another order where the first fails."""
    plan = solved(window(job("a", "2:ncpus=1+1:ncpus=2,place=within=switch"), job("b", "3:ncpus=2,place=within=rack")))
    assert nodes(plan) == {"a": ("n1", "n2"), "b": ("n5", "n6", "n7")}


def test_a_packed_job_is_in_a_group() -> None:
    """All on one node, which is under a switch."""
    jobs = [job(f"r{number}", "1:ncpus=2", start_at=0) for number in range(7)]
    assert {one.start for one in solved(window(*jobs, job("a", "2:ncpus=1,place=pack:within=switch")))} == {0, 10}


def test_what_no_group_holds_waits_with_the_largest_one_named() -> None:
    """The waiting room names the level, the largest group, and what fits there."""
    (waiting,) = solved(window(job("a", "4:ncpus=2,place=within=switch"))).waiting_room
    assert str(waiting.reason) == "unsatisfiable"
    assert all(part in waiting.detail for part in ("switch", "s3", "4 chunks", "at most 3"))


def test_a_choice_may_be_without_a_group() -> None:
    """An alternative has its own place: within a switch for 10 s, or anywhere for 15 s."""
    alternative = {"walltime": 15, "request": "5:ncpus=2,place=free"}
    (planned,) = solved(window(job("a", "5:ncpus=2,place=within=switch", alternatives=[alternative]))).jobs
    assert planned.alternative == 1


def test_engines_that_know_no_groups_refuse_them_by_name() -> None:
    """MiniZinc names the job and the level; the planner a level of an instance that was not made for engines."""
    instance = window(job("a", "1:ncpus=2,place=within=switch"))
    assert MiniZinc().unsupported(compiled(instance).instance) == ("job a: within one switch",)
    (refused,) = PlannerEngine().unsupported(instance)
    assert refused.startswith("cluster.topology.switch: ")
