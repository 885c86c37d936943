"""Stops on tiny windows, where every set of stops can be tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, combinations
from random import Random
from typing import Any

import pytest

from cpsched.domain import Instance, Job, Plan, StopKind
from cpsched.formats import parse_instance
from cpsched.portfolio import solve, verify_plan
from tests.sizes import seeds

NOW = 1000


def drawn(seed: int) -> Instance:
    """Return a window with running jobs of whole or half nodes, urgent ones for whole nodes, and others."""
    draw = Random(seed)
    draws, number = draw.choice, draw.randint(2, 4)
    jobs: list[dict[str, Any]] = []
    for node in range(1, number + 1):
        for _ in range(draw.randint(0, 2)):
            queue, start = draws(["long", "long", "best"]), NOW - draw.randint(0, 300)
            held = {"start": start, "allocation": [{"node": f"n{node}", "resources": {"cores": 2, "mem": 2}}]}
            saved = {"by": "checkpoint", "cost": draw.randint(0, 9), "interval": draw.randint(10, 60)}
            keys = {"preemptible": draws([{"by": "requeue"}, {"by": "suspend"}, saved])} if draw.random() < 0.8 else {}
            keys |= {"expected": draw.randint(600, 3000)} if draw.random() < 0.3 else {}
            asks = {
                "submit": 0,
                "walltime": 3600,
                "request": "ncpus=2:mem=2mb",
                "queue": queue,
                "weight": draw.randint(1, 3),
            }
            jobs.append({"id": f"r{len(jobs)}", **asks, **keys, "running": held})
    memory = draws([0, 4, 5, 7])
    for name in range(draw.randint(1, 2)):
        asks = {"walltime": draw.randint(60, 600), "request": f"{draw.randint(1, number)}:ncpus=4:mem={memory}mb"}
        keys = draws([{}, {"preemptible": {"by": "requeue"}}, {"told": {"start": NOW + 100}}])
        asks |= {"submit": draw.randint(900, NOW), "queue": draws(["urgent", "top"]), **keys}
        jobs.append({"id": f"u{name}", **asks})
    for name in range(draw.randint(0, 2)):
        asks = {"walltime": draw.randint(60, 900), "request": f"{draw.randint(1, 2)}:ncpus=2"}
        jobs.append({"id": f"w{name}", "submit": draw.randint(0, NOW), "queue": "best", **asks})
    above = {"top": ["urgent", "long", "best"], "urgent": ["long", "best"], "long": ["best"]}
    queues = {"top": (60, 20), "urgent": (60, 9), "long": (3600, 0), "best": (3600, -9)}
    document = {
        "format": "cpsched-instance/1",
        "name": "window",
        "now": NOW,
        "cluster": {"nodes": [{"names": f"n[1-{number}]", "resources": {"cores": 4, "mem": 8}}]},
        "queues": {name: {"expected_wait": wait, "priority": place} for name, (wait, place) in queues.items()},
        "jobs": jobs,
        "preemption": {"queues": draws([above, {}]), "notice": draws([0, 0, 20]), "exempt": draws([0, 0, 100])},
    }
    return parse_instance(document | ({"priorities": "strict"} if draw.random() < 0.6 else {}))


def subsets(of: Iterable[str]) -> list[frozenset[str]]:
    """Return all sets of these, the small ones first."""
    names = sorted(of)
    return [*map(frozenset, chain(*(combinations(names, size) for size in range(len(names) + 1))))]


def free_nodes(instance: Instance, stopped: frozenset[str]) -> int:
    """Return how many nodes have all cores and memory enough for urgent jobs once some jobs are stopped."""
    asked = next(job.request.totals.get("mem", 0) // nodes(job) for job in instance.jobs if job.id.startswith("u"))
    cores, memory = Counter[str](), Counter[str]()
    for job in instance.jobs:
        for held in job.running.segments[0].allocation if job.running is not None else ():
            cores[held.node] += job.id not in stopped
            stays = job.preemptible is not None and job.preemptible.by is StopKind.SUSPEND
            memory[held.node] += 2 if stays or job.id not in stopped else 0
    return sum(cores[name] == 0 and 8 - memory[name] >= asked for name in instance.cluster.node_names)


def nodes(job: Job) -> int:
    """Return for how many nodes a job asks."""
    return job.request.chunks[0].count


def stoppable(instance: Instance, job: Job) -> set[str]:
    """Return the running jobs that may be stopped for a job."""
    given = instance.preemption
    assert given is not None
    at = instance.now + given.notice
    return {
        other.id
        for other in instance.jobs
        if other.running is not None and instance.may_stop(job, other)
        if at - other.running.start >= max(1, given.exempt)
    }


def stopped_for(plan: Plan) -> dict[str, frozenset[str]]:
    """Return what was stopped for each job, as the events say."""
    said = [event.what for event in plan.events if "stopped for it" in event.what]
    return {one.split()[1]: frozenset(one.split("stopped for it: ")[1].split(", ")) for one in said}


@pytest.mark.parametrize("seed", [*seeds(200), 8000639, 8000886])
def test_every_set_of_stops_is_tried(seed: int) -> None:
    """A plan with stops is valid, and no worse than without; of what is stopped for a job all is needed; where
    priorities are strict, it is stopped for the first urgent job for which any set makes room, then for the next.
    """
    instance = drawn(seed)
    given = instance.preemption
    assert given is not None
    plan, without = (solve(one, engine="planner", budget=0) for one in (instance, replace(instance, preemption=None)))
    assert verify_plan(instance, plan) == ()
    starts = {job.id: job.start for job in plan.jobs}
    at, sets = instance.now + given.notice, stopped_for(plan)
    assert frozenset().union(*sets.values()) == {one.id for one in plan.attempts}
    urgent = [job for job in instance.jobs if job.id.startswith("u")]
    urgent.sort(key=lambda job: (-instance.stop_level(job), job.submit, job.id))
    taken, gone = 0, frozenset[str]()
    for job in urgent:
        chosen = sets.get(job.id, frozenset())
        assert chosen <= stoppable(instance, job)
        if chosen:
            assert starts[job.id] == at
            rooms = [one for one in subsets(chosen) if free_nodes(instance, gone | one) - taken >= nodes(job)]
            assert rooms == [chosen]
        if instance.has_strict_priorities:
            can_start = free_nodes(instance, gone | stoppable(instance, job)) - taken >= nodes(job)
            assert (starts[job.id] <= at) == can_start
        if starts[job.id] <= at:
            taken, gone = taken + nodes(job), gone | chosen
    if not instance.has_strict_priorities:
        key, old = (-len(plan.jobs), plan.objective.value), (-len(without.jobs), without.objective.value)
        assert key < old if sets else key == old
