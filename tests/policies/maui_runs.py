"""Small workloads played by Maui, each record looked at by the judge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cpsched.domain import Amounts, Chunk, Cluster, FrozenMap, Instance, Job, NodeClass, Queue, Request, Step
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.lab.policies.maui.maui import Maui
from cpsched.lab.policies.maui.params import MauiParams
from cpsched.lab.sim import History, Prediction, QueueRule, Scheduler, simulate
from cpsched.verify import verify

HOUR = 3600
#: A Monday, at midnight.
MONDAY = datetime.fromisoformat("2024-01-01T00:00:00+00:00")


def machine(num_nodes: int, cores: int = 1, **options: Any) -> Instance:
    """Return a machine of equal nodes ``n0``, ``n1``, … whose clock begins at midnight."""
    names = tuple(f"n{number}" for number in range(num_nodes))
    cluster = Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": cores, "mem": 1024})),))
    queues = FrozenMap({"short": Queue(expected_wait=600), "long": Queue(expected_wait=6000)})
    return Instance(name="small", cluster=cluster, queues=queues, epoch=MONDAY, **options)


def job(name: str, chunks: int, walltime: int, *, submit: int = 0, runtime: int | None = None, **options: Any) -> Job:
    """Return a job of chunks of one core."""
    request = Request(chunks=(Chunk(count=chunks, resources=Amounts({"cores": 1})),))
    steps = (Step(walltime=walltime, request=request),)
    return Job(id=name, submit=submit, steps=steps, runtime=walltime if runtime is None else runtime, **options)


def judged(instance: Instance, scheduler: Scheduler | QueueRule, *, predict: Prediction | None = None) -> History:
    """Play a workload by a scheduler; the judge finds no fault with what happened."""
    history = simulate(instance, scheduler, predict=predict)
    violations = verify(instance_to_document(instance), plan_to_document(history.record()))
    assert not violations, "\n".join(map(str, violations))
    return history


def played(
    instance: Instance, jobs: Sequence[Job], *, predict: Prediction | None = None, **params: Any
) -> tuple[dict[str, int], Maui]:
    """Play jobs on a machine; return the start of each (-1: never), and the scheduler as it is then."""
    scheduler = Maui(MauiParams(**params))
    workload = Instance(
        name=instance.name,
        now=instance.now,
        epoch=instance.epoch,
        cluster=instance.cluster,
        queues=instance.queues,
        outages=instance.outages,
        jobs=tuple(jobs),
    )
    runs = judged(workload, scheduler, predict=predict).runs
    return dict(zip(runs.ids, runs.start.tolist(), strict=True)), scheduler


def nodes_of(history: History) -> dict[str, set[str]]:
    """Return the nodes of each job that has run."""
    return {
        planned.id: {placement.node for segment in planned.segments for placement in segment.allocation}
        for planned in history.record().jobs
    }
