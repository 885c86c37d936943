"""A plan of a large machine that costs no solving: each job has neighbouring nodes that are free early."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    EngineReport,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Plan,
    PlannedJob,
    Queue,
    Request,
    Score,
    Step,
)
from cpsched.metrics import objective_value, suffered
from tests.placed_job import placed_job

__all__ = ["wide_plan"]

#: Of each kind of nodes: the share of the machine, and what one of them has.
_KINDS = (
    ("cpu", 0.8, Amounts({"cores": 128, "mem": 262144})),
    ("fat", 0.08, Amounts({"cores": 128, "mem": 2097152})),
    ("gpu", 0.12, Amounts({"cores": 64, "mem": 524288, "ngpus": 4})),
)
_QUEUES = ("batch", "debug", "express", "long", "gpu")
#: Nodes of a job: most have one, few have many; and seconds.
_SIZES = (1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64)
_DURATIONS = (600, 1800, 3600, 7200, 14400, 43200, 86400)
_HOUR = 3600
#: Places that are tried for a job; it gets the one that is free first.
_TRIES = 12


def wide_plan(nodes: int = 5000, jobs: int = 10_000, seed: int = 0) -> tuple[Instance, Plan]:
    """Make an instance and a plan of it in which every job has whole nodes, or a quarter of one.

    Parameters
    ----------
    nodes
        Nodes of the machine, 20 at least.
    jobs
        Jobs of the plan; about one in ten runs.
    seed
        Of the random sizes and durations.
    """
    draw = random.Random(seed)
    classes = _classes(nodes)
    free_at = {name: 0 for kind in classes for name in kind.names}
    entries: list[Job] = []
    planned: list[PlannedJob] = []
    for number in range(jobs):
        place = draw.choices(range(len(classes)), [len(kind.names) for kind in classes])[0]
        kind = classes[place]
        count = min(draw.choice(_SIZES), len(kind.names))
        hosts = min(
            (kind.names[k : k + count] for k in draw.choices(range(len(kind.names) - count + 1), k=_TRIES)),
            key=lambda names: max(free_at[name] for name in names),
        )
        duration = draw.choice(_DURATIONS)
        begin = max(free_at[host] for host in hosts)
        is_running = begin == 0 and draw.random() < 0.9
        start = -draw.randrange(0, duration) if is_running else begin
        for host in hosts:
            free_at[host] = start + duration
        job, its_plan = _job(number, draw, kind, hosts, start, duration, is_running=is_running)
        entries.append(job)
        planned.append(its_plan)
    instance = _instance(classes, entries, nodes)
    return instance, _plan(instance, planned)


def _classes(nodes: int) -> tuple[NodeClass, ...]:
    counts = [max(1, round(nodes * share)) for _, share, _ in _KINDS[1:]]
    counts.insert(0, nodes - sum(counts))
    return tuple(
        NodeClass(names=tuple(f"{name}{k:04}" for k in range(1, count + 1)), resources=amounts)
        for (name, _, amounts), count in zip(_KINDS, counts, strict=True)
    )


def _job(
    number: int,
    draw: random.Random,
    kind: NodeClass,
    hosts: tuple[str, ...],
    start: int,
    duration: int,
    *,
    is_running: bool,
) -> tuple[Job, PlannedJob]:
    divisor = draw.choice((1, 4)) if len(hosts) == 1 else 1
    held = Amounts({name: amount // divisor for name, amount in kind.resources.items()})
    user = f"user{draw.randrange(200):03}"
    job = Job(
        id=str(100_000 + number),
        user=user,
        group=f"group{draw.randrange(20):02}",
        queue=draw.choice(_QUEUES),
        submit=start - draw.randrange(_HOUR) if is_running else -draw.randrange(_HOUR),
        steps=(Step(walltime=duration, request=Request(chunks=(Chunk(count=len(hosts), resources=held),))),),
    )
    return placed_job(job, hosts, start, is_running=is_running)


def _instance(classes: tuple[NodeClass, ...], jobs: list[Job], nodes: int) -> Instance:
    return Instance(
        name=f"wide-{nodes}",
        epoch=datetime(2026, 3, 2, 8, tzinfo=UTC),
        cluster=Cluster(classes=classes),
        queues=FrozenMap({name: Queue(expected_wait=1800) for name in _QUEUES}),
        jobs=tuple(jobs),
    )


def _plan(instance: Instance, planned: list[PlannedJob]) -> Plan:
    value = objective_value(instance, planned)
    return Plan(
        instance=instance.name,
        now=0,
        objective=Score(name="weighted_wait", value=value, planner=value, suffered=suffered(instance, planned)),
        engine=EngineReport(name="planner", version="0.1.0", budget=0, elapsed=0, stopped="done"),
        jobs=tuple(planned),
    )
