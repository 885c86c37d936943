"""Jobs whose chunks are within one group of nodes: the group that they get, and what engines do with such jobs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.mzn import MiniZinc
from cpsched.planner import PlannerEngine, advanced
from cpsched.portfolio import solve
from cpsched.problem import compiled
from cpsched.verify import Judge, verify
from tests.cp.cp_here import CpHere
from tests.search.searched import board_of
from tests.search.searched import planned as planned_first

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


@pytest.mark.parametrize("engine", ["planner", "fcfs", "easy", "wspt_list"])
@pytest.mark.parametrize(
    ("place", "groups"),
    [
        ("segment=2:within=switch", [2, 2]),
        ("segment=1:within=switch", [1, 3]),
        ("spread=2:within=rack", [2, 2]),
        ("spread=4:within=rack", [4]),
    ],
)
def test_chunks_are_in_several_groups(engine: str, place: str, groups: list[int]) -> None:
    """Four nodes: segments as large as a group holds, or no more than may be in one; as few groups as that allows."""
    level = place.partition("within=")[2]
    plan = solved(window(job("a", f"4:ncpus=2,place=scatter:{place}")), engine)
    of_node = {node: name for name, of_group in window().cluster.topology[level].items() for node in of_group}
    assert sorted(Counter(of_node[node] for node in nodes(plan)["a"]).values()) == groups


def test_segments_wait_for_whole_groups() -> None:
    """One node is busy under each of two switches: three of the other four are in no segment of two until 10."""
    held = [{"node": node, "resources": {"cores": 2}} for node in ("n1", "n3")]
    busy = job("r", "2:ncpus=2", 10, running={"start": 0, "allocation": held})
    instance = window(busy, job("a", "4:ncpus=2,place=scatter:segment=2:within=switch"))
    for engine in ("planner", "conservative"):
        assert {one.start for one in solved(instance, engine) if one.id == "a"} == {10}
    board = board_of(compiled(instance).instance, planned_first(compiled(instance).instance))
    CpHere(2.0).improve(compiled(instance).instance, board, seed=0)
    assert board.is_optimal


@pytest.mark.parametrize(
    ("place", "nodes", "is_right"),
    [
        ("segment=2:within=switch", "n1 n2 n6 n7", True),
        ("segment=2:within=switch", "n1 n2 n4 n7", False),
        ("segment=2:within=switch", "n1 n2 n7 n8", False),
        ("spread=2:within=switch", "n1 n2 n4 n7", True),
        ("spread=2:within=switch", "n1 n5 n6 n7", False),
        ("spread=2:within=switch", "n1 n3 n5 n8", False),
        ("within=rack", "n5 n6 n7 n8", True),
        ("within=rack", "n4 n5 n6 n7", False),
    ],
)
def test_the_judge_counts_chunks_in_groups(place: str, nodes: str, *, is_right: bool) -> None:
    """A segment is split, a group has too many, or a node is in none: all of these break the place and nothing else."""
    instance = window(job("a", f"4:ncpus=2,place=scatter:{place}"))
    plan = plan_to_document(solved(instance))
    ((segment,),) = (one["segments"] for one in plan["jobs"])
    for placement, node in zip(segment["allocation"], nodes.split(), strict=True):
        placement["node"] = node
    assert {one.rule for one in verify(instance_to_document(instance), plan)} == (set() if is_right else {"place"})


def test_what_several_groups_cannot_hold_waits() -> None:
    """Segments fit whole or not at all, and of a spread job each group has its number at most."""
    jobs = [job("a", "8:ncpus=2,place=segment=2:within=switch"), job("b", "4:ncpus=1,place=spread=1:within=switch")]
    waiting = solved(window(*jobs)).waiting_room
    assert [str(one.reason) for one in waiting] == ["unsatisfiable"] * 2
    assert ["at most 6" in waiting[0].detail, "at most 3" in waiting[1].detail] == [True, True]


@pytest.mark.parametrize(
    ("asked", "more", "path"),
    [
        ("3:ncpus=2,place=segment=2:within=switch", {}, "jobs[0].request"),
        ("2:ncpus=2+2:ncpus=1,place=segment=2:within=switch", {}, "jobs[0].request"),
        ("2:ncpus=1,place=pack:spread=2:within=switch", {}, "jobs[0].request"),
        ("2:ncpus=1", {"place": "segment=0:within=switch"}, "jobs[0].place"),
        ("2:ncpus=1", {"place": "scatter:segment=2"}, "jobs[0].place"),
        ("2:ncpus=1", {"place": "segment=2:spread=2:within=switch"}, "jobs[0].place"),
        ("2:ncpus=1", {"place": "segment=2:within=isle"}, "jobs[0].place"),
        (
            "4:ncpus=1",
            {"place": "segment=2:within=rack", "moldable": {"min": 3, "max": 4, "model": "none"}},
            "jobs[0].moldable",
        ),
    ],
)
def test_bad_segments_are_refused(asked: str, more: Document, path: str) -> None:
    """Both readers refuse them, the planner's with the path."""
    document = instance_to_document(window())
    document["jobs"] = [job("a", asked, **more)]
    with pytest.raises(DocumentError) as refused:
        parse_instance(document)
    assert path in {fault.path.partition(" (")[0] for fault in refused.value.faults}
    with pytest.raises(DocumentError, match="jobs"):
        Judge(document)


def test_a_preferred_block_may_be_left_in_segments() -> None:
    """All in one switch, or at a cost two segments: the preference is about the level, the place about what is left."""
    own: Document = {"place": "scatter:segment=2:within=switch", "prefer": {"level": "switch", "cost": 5}}
    plan = solved(window(job("a", "4:ncpus=2", **own)))
    (planned,) = plan.jobs
    assert (planned.start, planned.alternative, planned.nodes) == (0, 1, ("n1", "n2", "n3", "n4"))


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


def split(cost: int, **more: Any) -> Instance:
    """Return a window in which two nodes are free, and two under one switch are so at 100."""
    held = [{"node": f"n{number}", "resources": {"cores": 2}} for number in range(1, 7)]
    busy = [job("r", "6:ncpus=2", 100, running={"start": 0, "allocation": held})]
    near = {"level": "switch", "cost": cost}
    return window(*busy, job("a", "2:ncpus=2", place="scatter", prefer=near, **more), objective="wait")


@pytest.mark.parametrize("engine", ["planner", "fcfs", "easy", "conservative"])
@pytest.mark.parametrize(("cost", "starts"), [(0, (0, 0)), (99, (0, 99)), (101, (100, 100))])
def test_a_preference_is_worth_its_seconds(engine: str, cost: int, starts: tuple[int, int]) -> None:
    """n7 and n8 are free, not under one switch. The planner runs a there at once, for `cost` s, if the switch is worth
    no more; rules do so once it has waited for as long, as Slurm does.
    """
    plan = solved(split(cost), engine)
    (planned,) = (one for one in plan if one.id == "a")
    assert (planned.start, planned.alternative) == (starts[engine != "planner"], int(cost < 100))
    value = planned.start + cost * planned.alternative
    assert plan.objective.value == value
    document = plan_to_document(plan)
    document["objective"]["value"] = value - 1 if planned.alternative else value + 1
    assert "objective" in {one.rule for one in verify(instance_to_document(split(cost)), document)}


@pytest.mark.parametrize("engine", ["easy", "pbs_fifo_bf10", "conservative"])
def test_the_head_is_reserved_for_the_choice_that_starts_first(engine: str) -> None:
    """It may go anywhere at 50, its switch is free at 100: at 0 no longer job takes one of its two nodes."""
    behind = job("b", "1:ncpus=2", 200)
    instance = split(50)
    longer = parse_instance(
        instance_to_document(instance) | {"jobs": [*instance_to_document(instance)["jobs"], behind]}
    )
    assert {one.id: one.start for one in solved(longer, engine)} == {"r": 0, "a": 50, "b": 60}


def test_cp_proves_what_a_preference_is_worth() -> None:
    """Both choices are in the model, of which only one is in a group."""
    for cost, value in ((99, 99), (101, 100)):
        instance = compiled(split(cost)).instance
        board = board_of(instance, planned_first(instance))
        CpHere(2.0).improve(instance, board, seed=0)
        assert board.is_optimal
        assert board.best.value == value


def test_a_preference_is_two_alternatives() -> None:
    """It is written so; a job that has started has neither."""
    instance = split(60)
    (entry,) = (one for one in instance_to_document(instance)["jobs"] if one["id"] == "a")
    anywhere = {"walltime": 10, "request": "2:cores=2", "place": "scatter", "cost": 60}
    assert (entry["place"], entry["alternatives"]) == (
        "scatter:within=switch",
        [anywhere | {"request": entry["request"]}],
    )
    assert parse_instance(instance_to_document(instance)) == instance
    started = advanced(instance, solved(instance), 5)
    assert parse_instance(instance_to_document(started)) == started
    assert not any(one.levels or one.steps[0].cost for one in started.jobs)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"prefer": {"level": "isle", "cost": 1}}, "jobs[0].prefer.level"),
        ({"prefer": {"level": "rack"}}, "jobs[0].prefer.cost"),
        ({"prefer": {"level": "rack", "cost": -1}}, "jobs[0].prefer.cost"),
        ({"prefer": {"level": "rack", "cost": 1}, "place": "within=rack"}, "jobs[0].prefer.level"),
        ({"prefer": {"level": "rack", "cost": 1}, "malleable": {"shares": [0.5]}}, "jobs[0]"),
        ({"prefer": {"level": "rack", "cost": 1}, "preemptible": {"by": "requeue"}}, "jobs[0]"),
        ({"prefer": {"level": "rack", "cost": 1}, "resizable": {}}, "jobs[0]"),
        ({"alternatives": [{"walltime": 10, "request": "2:ncpus=2", "cost": 5}]}, "jobs[0].alternatives[0]"),
        ({"alternatives": [{"walltime": 9, "request": "2:ncpus=2", "cost": -5}]}, "jobs[0].alternatives[0].cost"),
        ({"steps": [{"walltime": 9, "request": "ncpus=2", "cost": 5}]}, "jobs[0].steps[0].cost"),
    ],
)
def test_bad_preferences_are_refused(keys: Document, path: str) -> None:
    """Both readers say where the fault is; the judge at least of which job it is."""
    own = {} if "steps" in keys else {"walltime": 10, "request": "2:ncpus=2"}
    document = instance_to_document(window(job("a", "1:ncpus=1")))
    document["jobs"] = [{"id": "a", "submit": 0} | own | keys]
    with pytest.raises(DocumentError) as refused:
        parse_instance(document)
    assert path in {fault.path.partition(" (")[0] for fault in refused.value.faults}
    with pytest.raises(DocumentError, match="jobs"):
        Judge(document)


def test_engines_that_know_no_groups_refuse_them_by_name() -> None:
    """MiniZinc names the job and the level; the planner a level of an instance that was not made for engines."""
    instance = window(job("a", "1:ncpus=2,place=within=switch"))
    assert MiniZinc().unsupported(compiled(instance).instance) == ("job a: within one switch",)
    (refused,) = PlannerEngine().unsupported(instance)
    assert refused.startswith("cluster.topology.switch: ")
