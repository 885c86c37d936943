"""The graph of dependencies: distances, slack and the critical path, on examples and against all paths."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cpsched.domain import Instance, Plan
from cpsched.formats import parse_instance
from cpsched.metrics import dependency_graph, workflow_of
from cpsched.portfolio import solve


def window(*jobs: dict[str, Any]) -> Instance:
    """Return an instance of these jobs, each a core for 100 s unless it says more, on a node of four cores."""
    return parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": "workflow",
            "cluster": {"nodes": [{"names": "n1", "resources": {"cores": 4}}]},
            "jobs": [{"submit": 0, "walltime": 100, "request": "1:ncpus=1", **job} for job in jobs],
        }
    )


def planned(instance: Instance) -> Plan:
    """Return the planner's plan."""
    return solve(instance, engine="planner")


def test_slack_and_the_critical_path() -> None:
    """A diamond with a short and a long arm, and a delay; a job without dependencies is none of it."""
    instance = window(
        {"id": "a"},
        {"id": "short", "walltime": 10, "after": [{"job": "a", "type": "afterany"}]},
        {"id": "long", "after": [{"job": "a", "type": "afterany"}]},
        {
            "id": "end",
            "after": [{"job": "short", "type": "afterany"}, {"job": "long", "type": "afterany", "delay": 30}],
        },
        {"id": "alone"},
    )
    rows = {one.id: one for one in workflow_of(instance, planned(instance))}
    assert {name: (one.start, one.slack, one.is_critical) for name, one in rows.items()} == {
        "a": (0, 0, True),
        "short": (100, 120, False),
        "long": (100, 0, True),
        "end": (230, 0, True),
    }
    assert rows["end"].after == ("short", "long")


def test_an_array_after_an_array_has_one_event_between_them() -> None:
    """Edges are as many as elements, not as pairs of them."""
    instance = window(
        {"id": "many", "array": {"indices": "0-1999"}},
        {"id": "more", "array": {"indices": "0-1999"}, "after": [{"job": "many", "type": "afterany"}]},
    )
    graph = dependency_graph(instance)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (4001, 4000)


def test_jobs_without_a_start_have_no_slack() -> None:
    """A job that never fits, and one that waits for it."""
    instance = window(
        {"id": "wide", "request": "1:ncpus=9"}, {"id": "next", "after": [{"job": "wide", "type": "afterany"}]}
    )
    assert [(one.id, one.start, one.slack) for one in workflow_of(instance, planned(instance))] == [
        ("next", None, None),
        ("wide", None, None),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_slack_is_what_the_longest_path_leaves(seed: int) -> None:
    """Against all paths of small random graphs: the end of the workflow less the longest path from a job's start."""
    draw = random.Random(seed)
    jobs: list[dict[str, Any]] = []
    for number in range(draw.randint(2, 7)):
        awaited = draw.sample(range(number), min(number, draw.randint(0, 2)))
        kinds = draw.choices(["after", "afterany"], k=len(awaited))
        after = [
            {"job": str(other), "type": kind, "delay": draw.choice([0, 20])}
            for other, kind in zip(awaited, kinds, strict=True)
        ]
        jobs.append({"id": str(number), "walltime": draw.randint(1, 90), "after": after})
    instance = window(*jobs)
    plan = planned(instance)

    def longest(name: str) -> int:
        found = [walltimes[name]]
        for job in jobs:
            for one in job["after"]:
                if one["job"] == name:
                    own = walltimes[name] if one["type"] == "afterany" else 0
                    found.append(own + one["delay"] + longest(job["id"]))
        return max(found)

    def linked(name: str, known: set[str]) -> set[str]:
        for job in jobs:
            for one in job["after"]:
                pair = {job["id"], one["job"]}
                if name in pair and not pair <= known:
                    known |= pair
                    for other in pair - {name}:
                        linked(other, known)
        return known

    walltimes = {job["id"]: job["walltime"] for job in jobs}
    for one in workflow_of(instance, plan):
        end = max(plan[name].end for name in linked(one.id, {one.id}))
        assert one.start is not None
        assert one.slack == end - longest(one.id) - one.start >= 0
