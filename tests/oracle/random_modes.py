"""Random tiny windows in which jobs wait for each other, have alternatives, and take licences that do not come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations, product
from random import Random
from typing import Any

from cpsched.domain import Instance, Job, PlannedJob, Segment
from cpsched.formats import parse_instance
from cpsched.metrics import objective_value

__all__ = ["best_value", "window_with_modes"]


def window_with_modes(seed: int) -> Instance:
    """Return a window of one or two nodes and three jobs; of two licences one or both do not come back."""
    random = Random(f"modes {seed}")
    consumed = random.choice([["gold"], ["gold", "time"]])

    def choice() -> dict[str, Any]:
        licenses = {name: random.randint(0, 3) for name in ("gold", "time") if random.random() < 0.8}
        return {"walltime": random.randint(1, 4), "request": f"{random.randint(1, 2)}:ncpus=1", "licenses": licenses}

    jobs: list[dict[str, Any]] = []
    for number in range(3):
        own, *others = [choice() for _ in range(random.randint(1, 3))]
        told = [own]
        for one in others:
            if one not in told and not any(one == {**other, "licenses": one["licenses"]} for other in told):
                told.append(one)
        job = {"id": f"j{number}", "submit": 0, **own} | ({"alternatives": told[1:]} if told[1:] else {})
        after = [{"job": f"j{other}", "type": "afterok"} for other in range(number) if random.random() < 0.5]
        jobs.append(job | ({"after": after} if after else {}))
    if random.random() < 0.3:
        jobs[0] |= {"running": {"start": 0, "allocation": _held(jobs[0])}}
        jobs[0].pop("alternatives", None)
    nodes = {"names": "n[1-2]", "resources": {"cores": random.choice([1, 1, 2])}}
    licenses = {"gold": random.randint(3, 6), "time": random.randint(3, 5)}
    return parse_instance(
        {
            "format": "cpsched-instance/1",
            "name": f"modes-{seed}",
            "now": 0,
            "cluster": {"nodes": [nodes], "licenses": licenses, "consumed": consumed},
            "objective": random.choice([{"makespan": 1}, {"wait": 1}, {"makespan": 3, "completion": 1}]),
            "jobs": jobs,
        }
    )


def _held(job: dict[str, Any]) -> list[dict[str, Any]]:
    count = int(job["request"][0])
    return [{"node": f"n{1 + place}", "chunk": 0, "count": 1, "resources": {"cores": 1}} for place in range(count)]


def best_value(instance: Instance) -> float | None:
    """Return the least value of a plan of all jobs, by all choices and orders; None if there is none.

    The chunks of these jobs are single cores, so that the cores of all nodes count together; the objective has an
    optimum in which each job of some order starts as soon as it can.
    """
    best: float | None = None
    cores, has = instance.cluster.totals["cores"], instance.cluster.licenses
    for numbers in product(*(range(len(job.choices)) for job in instance.jobs)):
        jobs = [job.choices[number] for job, number in zip(instance.jobs, numbers, strict=True)]
        if any(sum(job.licenses.get(name, 0) for job in jobs) > has[name] for name in instance.cluster.consumed):
            continue
        held = {name: amount for name, amount in has.items() if name not in instance.cluster.consumed}
        if any(job.licenses.get(name, 0) > amount for job in jobs for name, amount in held.items()):
            continue
        for order in permutations(range(len(jobs))):
            plan = _in_order(jobs, numbers, order, {"cores": cores, **held})
            if plan is not None:
                value = objective_value(instance, plan)
                best = value if best is None else min(best, value)
    return best


def _in_order(
    jobs: Sequence[Job], numbers: Sequence[int], order: Sequence[int], has: Mapping[str, int]
) -> list[PlannedJob] | None:
    """Return the plan in which each job starts as soon as it can beside those before it; None where one is awaited that
    comes later.
    """
    found: dict[str, PlannedJob] = {}
    for place in sorted(order, key=lambda place: jobs[place].running is None):
        job, start = jobs[place], 0
        if any(link.job not in found for link in job.after):
            return None
        start = max((found[link.job].end for link in job.after), default=0)
        while job.running is None and not _fits(job, start, jobs, found, has):
            start += 1
        end = start + job.walltime
        segment = Segment(start=start, end=end, allocation=())
        found[job.id] = PlannedJob(id=job.id, start=start, end=end, segments=(segment,), alternative=numbers[place])
    return [found[job.id] for job in jobs]


def _fits(job: Job, start: int, jobs: Sequence[Job], found: Mapping[str, PlannedJob], has: Mapping[str, int]) -> bool:
    """Return whether a job fits beside others."""

    def takes(one: Job, name: str) -> int:
        return one.request.totals["cores"] if name == "cores" else one.licenses.get(name, 0)

    return all(
        takes(job, name)
        + sum(takes(one, name) for one in jobs if one.id in found and found[one.id].start <= second < found[one.id].end)
        <= amount
        for second in range(start, start + job.walltime)
        for name, amount in has.items()
    )
