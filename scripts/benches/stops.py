"""Simulate a log in which one job of a hundred is urgent and may stop the others, in each way in which these can be.

Which jobs are urgent is drawn several times: a few wide ones make most of what is lost. Each job has memory for as many
cores as it asks for, of which the nodes have twice as much: a suspended job keeps it. Checkpoints take a minute each
hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
from benches.sim import whole_logs
from benchmarking.measure import print_table, say

from cpsched.domain import Amounts, FrozenMap, Instance, Job, Preemptible, Preemption, Queue, StopKind
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import lublin
from cpsched.metrics import Ending

WAYS = {
    "not stopped": None,
    "requeued": Preemptible(by=StopKind.REQUEUE),
    "with checkpoints": Preemptible(by=StopKind.CHECKPOINT, cost=60, interval=3600),
    "suspended": Preemptible(by=StopKind.SUSPEND),
}
HEADER = ("policy", "others are", "resume", "urgent", "within 60 s", "work lost", "at most", "work of killed jobs",
          "stops", "turnaround of others, h")  # fmt: skip
SHARE, DRAWS = 0.01, 8


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--log", default="KTH-SP2", help="the log whose name begins so (default: KTH-SP2)")


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    workload = lublin(200, 1, nodes=32) if options.quick else next(whole_logs(options.folder, [options.log]))[0]
    draws = 1 if options.quick else DRAWS
    note = (
        f"Means of {draws} draws of the urgent jobs, and the largest loss of one. Losses as shares of all work; those "
        "of killed jobs are lost, too. Slurm stops in its own order."
    )
    print_table(f"Urgent jobs on {workload.name}", HEADER, list(rows_of(workload, draws)), note)


def rows_of(workload: Instance, draws: int) -> Iterator[list[str]]:
    """Yield a row for each policy and way."""
    tries = [("easy", way, False) for way in WAYS]
    tries += [("easy", "with checkpoints", True)]
    tries += [("slurm", "not stopped", False), *((f"slurm {mode}", mode, False) for mode in ("requeue", "suspend"))]
    for policy, way, resume in tries:
        figures = np.array(
            [figures_of(workload, policy, way, resume=resume, draw=draw) for draw in range(1, 1 + draws)]
        )
        urgent, in_time, lost, killed, stops, taken = figures.mean(axis=0)
        row = [policy.split()[0], way, str(resume).lower(), f"{urgent:.0f}", f"{in_time:.1%}", f"{lost:.2%}"]
        row += [f"{figures[:, 2].max():.2%}", f"{killed:.2%}", f"{stops:.0f}", f"{taken:.2f}"]
        say(" | ".join(row))
        yield row


def figures_of(workload: Instance, policy: str, way: str, *, resume: bool, draw: int) -> tuple[float, ...]:
    """Return the figures of a simulation: how many jobs are urgent, the share that starts in time, work lost and of
    killed jobs as shares of all work, stops, and the turnaround of the others in hours.
    """
    name, *mode = policy.split()
    scheduler = make_scheduler(name, {"preempt_mode": mode[0]} if mode else {})
    runs = simulate(with_urgent(workload, WAYS.get(way), resume=resume, draw=draw), scheduler).runs
    is_urgent, over = np.array(runs.queues) == "urgent", runs.over
    waits, cores = runs.first_start - runs.submit, runs.cores.astype(float)
    work, lost = cores * (runs.end - runs.start), float((cores * runs.lost).sum())
    killed, total = float(work[runs.ending == Ending.KILLED].sum()), float(work[over].sum()) + lost
    in_time, stops = float(np.mean(waits[is_urgent & over] <= 60)), float(np.maximum(runs.attempts - 1, 0).sum())
    taken = float((runs.end - runs.submit)[over & ~is_urgent].mean()) / 3600
    return float(is_urgent.sum()), in_time, lost / total, killed / total, stops, taken


def with_urgent(workload: Instance, way: Preemptible | None, *, resume: bool, draw: int) -> Instance:
    """Return a workload in which some jobs are urgent, and the others can be stopped."""
    random = Random(draw)

    def changed(job: Job) -> Job:
        """Return a job with its queue and memory."""
        chunks = [
            replace(chunk, resources=Amounts({**chunk.resources, "mem": chunk.resources["cores"]}))
            for chunk in job.request.chunks
        ]
        steps = (replace(job.steps[0], request=replace(job.request, chunks=tuple(chunks))),)
        if random.random() < SHARE:
            return replace(job, steps=steps, queue="urgent")
        return replace(job, steps=steps, queue="normal", preemptible=way)

    classes = [
        replace(one, resources=Amounts({**one.resources, "mem": 2 * one.resources["cores"]}))
        for one in workload.cluster.classes
    ]
    queues = {"urgent": Queue(expected_wait=60, priority=10), "normal": Queue(expected_wait=3600)}
    preemption = Preemption(queues=FrozenMap({"urgent": ("normal",)}), resume=resume)
    cluster, jobs = replace(workload.cluster, classes=tuple(classes)), tuple(map(changed, workload.jobs))
    return replace(workload, cluster=cluster, jobs=jobs, queues=FrozenMap(queues), preemption=preemption)
