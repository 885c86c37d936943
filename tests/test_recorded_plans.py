"""Plans of all deterministic engines, and simulations of all schedulers, are those that were recorded: code that only
moves changes no start and no node.

Record anew, after a change that is meant to change plans: ``python -m tests.test_recorded_plans``. The difference of
``recorded_plans.json`` then says whose plans have changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from cpsched.domain import FrozenMap, Instance, Malleability, PlannedJob, RuntimeModel, WaitingJob
from cpsched.errors import UnsupportedError
from cpsched.formats import read_instance
from cpsched.lab.policies import SCHEDULERS, make_scheduler
from cpsched.lab.sim import simulate
from cpsched.lab.workloads import evolving_window, with_malleable
from cpsched.portfolio import solve
from cpsched.rules import POLICIES
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.workloads.changing import with_evolving
from tests.workloads.eurora_windows import eurora_window

RECORDED = Path(__file__).with_name("recorded_plans.json")
INSTANCES = Path(__file__).parents[1] / "instances"
#: Seconds between two jobs of a stream: half of them wait.
PACE = 40


def digest(jobs: Iterable[PlannedJob], waiting_room: Iterable[WaitingJob] = ()) -> str:
    """Return a fingerprint of all starts, ends and nodes of a plan, and of its waiting room."""
    rows = [
        (
            job.id,
            [
                (part.start, part.end, [(one.node, one.chunk, one.count) for one in part.allocation])
                for part in job.segments
            ],
        )
        for job in sorted(jobs, key=lambda job: job.id)
    ]
    waiting = [(job.id, str(job.reason)) for job in waiting_room]
    return sha256(json.dumps([rows, waiting]).encode()).hexdigest()[:16]


def windows() -> dict[str, Instance]:
    """Return windows with rigid, malleable and evolving jobs, on machines that are partly busy."""
    busy = eurora_window(60, 3, busy=0.8, demand=40)
    return {
        "rigid": eurora_window(80, 1, demand=50),
        "busy": busy,
        "malleable": with_malleable(busy, 1),
        "evolving": with_evolving(busy, 2),
        "evolving applications": evolving_window(1),
    }


def stream(name: str) -> Instance:
    """Return the waiting jobs of a window as a stream, each of which takes two thirds of its walltime."""
    window = read_instance(INSTANCES / f"{name}.json.gz")
    waiting = [job for job in window.jobs if job.running is None]
    jobs = (
        replace(job, submit=window.now + PACE * number, told=None, runtime=max(1, 2 * job.walltime // 3))
        for number, job in enumerate(waiting)
    )
    return replace(window, jobs=tuple(jobs))


def whole_nodes() -> Instance:
    """Return a stream of malleable jobs that take whole nodes, short ones behind long ones: SD-Policy lends cores."""
    half = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
    jobs = (
        waiting(
            f"j{number:03}",
            walltime,
            chunk(1 + 3 * number % 5, cores=4),
            submit=11 * number,
            malleability=half,
            runtime=1 + 2 * walltime // 3,
        )
        for number, walltime in enumerate([20, 600, 45, 90, 1500, 30, 240, 15] * 12)
    )
    return window([nodes(" ".join(f"n{node}" for node in range(8)), cores=4)], *jobs)


def planned(engine: str) -> dict[str, str]:
    """Return the fingerprints of an engine's plans; of a window that it does not plan, the word ``unsupported``."""
    found = {}
    for name, instance in windows().items():
        try:
            plan = solve(instance, engine=engine, budget=0)
            found[name] = digest(plan.jobs, plan.waiting_room)
        except UnsupportedError:
            found[name] = "unsupported"
    return found


def planned_as_shipped() -> dict[str, str]:
    """Return the fingerprints of the planner's plans of the windows that are shipped."""
    names = [f"eurora-like-{number}" for number in ("0050", "0200", "0800")]
    plans = {name: solve(read_instance(INSTANCES / f"{name}.json.gz"), engine="planner", budget=0) for name in names}
    return {name: digest(plan.jobs, plan.waiting_room) for name, plan in plans.items()}


def simulated(scheduler: str) -> dict[str, str]:
    """Return the fingerprints of what a scheduler does with streams of jobs, rigid and malleable."""
    streams = {name: stream(name) for name in ("eurora-like-0200", "eurora-like-0200-malleable")}
    streams["whole nodes"] = whole_nodes()
    return {
        name: digest(simulate(workload, make_scheduler(scheduler)).record().jobs) for name, workload in streams.items()
    }


def records() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """Yield the name of each record, and what makes it."""
    yield "the planner's shipped windows", planned_as_shipped
    for engine in ("planner", *POLICIES):
        yield f"windows by {engine}", partial(planned, engine)
    for scheduler in sorted(SCHEDULERS):
        yield f"streams by {scheduler}", partial(simulated, scheduler)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), [pytest.param(name, make, id=name) for name, make in records()])
def test_plans_are_those_that_were_recorded(name: str, make: Callable[[], dict[str, str]]) -> None:
    """Each engine plans each window, and each scheduler each stream, as it did when the plans were recorded."""
    assert make() == json.loads(RECORDED.read_text())[name]


@pytest.mark.parametrize("engine", ["planner", "easy", "conservative"])
def test_a_topology_changes_no_plan_of_jobs_that_do_not_ask_for_it(engine: str) -> None:
    """Every node is under a switch, and all jobs are where they were recorded without."""
    window = windows()["busy"]
    names = window.cluster.node_names
    groups = FrozenMap({f"s{first}": names[first : first + 4] for first in range(0, len(names), 4)})
    cluster = replace(window.cluster, topology=FrozenMap({"switch": groups}))
    plan = solve(replace(window, cluster=cluster), engine=engine, budget=0)
    recorded = json.loads(RECORDED.read_text())[f"windows by {engine}"]
    assert digest(plan.jobs, plan.waiting_room) == recorded["busy"]


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: make() for name, make in records()}, indent=1) + "\n")
