"""Heavy windows: 64 nodes with accelerators that are all busy, and jobs of up to 32 chunks behind them in three queues
whose users expect to wait half an hour, six hours, or a day.
"""

from __future__ import annotations

import random
from dataclasses import replace

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.planner import PlannerEngine

__all__ = ["HEAVY_SIZES", "heavy_window"]

#: How many jobs wait in the windows that are compared.
HEAVY_SIZES = (50, 150, 400, 700, 2000)

#: Jobs that run at the beginning, if so many fit.
_RUNNING = 60
_GIB = 1024
#: Seconds that users expect to wait, the share of the jobs, and the shortest and longest walltime (minutes), by queue.
_QUEUES = {
    "debug": (1800, 0.3, (2, 30)),
    "parallel": (21600, 0.5, (20, 360)),
    "longpar": (86400, 0.2, (120, 1440)),
}
#: Chunks of a job with weights, cores and GiB of a chunk with weights.
_CHUNKS = ((1, 45), (2, 15), (4, 15), (8, 12), (16, 8), (32, 5))
_CORES = ((1, 20), (2, 15), (4, 20), (8, 20), (12, 5), (16, 20))
_MEMORY = ((1, 40), (2, 25), (4, 20), (8, 10), (14, 5))
#: Of the jobs, how many want GPUs, and MICs; of a job with many chunks no more than so many have one.
_GPU_SHARE, _MIC_SHARE, _MOST_ACCELERATED = 0.25, 0.10, 16


def heavy_window(waiting: int, seed: int = 0) -> Instance:
    """Return a window in which so many jobs wait behind some 60 running ones; the same seed gives the same window."""
    dice = random.Random(f"heavy-{waiting}-{seed}")
    nodes = [
        NodeClass(
            names=tuple(f"{letter}{number:02}" for number in range(1, 33)),
            resources=Amounts({"cores": 16, "mem": 16 * _GIB, accelerator: 2}),
        )
        for letter, accelerator in (("g", "gpus"), ("m", "mics"))
    ]
    queues = {name: Queue(expected_wait=expected) for name, (expected, _, _) in _QUEUES.items()}
    empty = Instance(name="empty", cluster=Cluster(classes=tuple(nodes)), queues=FrozenMap(queues))
    narrow = [job for job in (_job(f"r{n}", dice) for n in range(6 * _RUNNING)) if job.request.chunks[0].count <= 4]
    running = _started(replace(empty, jobs=tuple(narrow)), dice)
    return replace(
        empty,
        name=f"heavy-{waiting:04}-{seed}",
        jobs=(*running, *(_job(f"w{n}", dice) for n in range(waiting))),
    )


def _job(name: str, dice: random.Random) -> Job:
    """Draw a job."""
    queue = dice.choices(list(_QUEUES), [share for _, share, _ in _QUEUES.values()])[0]
    expected, _, (shortest, longest) = _QUEUES[queue]
    count, cores, gib = (_one_of(weighted, dice) for weighted in (_CHUNKS, _CORES, _MEMORY))
    amounts = {"cores": cores, "mem": gib * _GIB}
    accelerator = dice.choices(("gpus", "mics", None), (_GPU_SHARE, _MIC_SHARE, 1 - _GPU_SHARE - _MIC_SHARE))[0]
    if accelerator is not None:
        amounts[accelerator] = dice.randint(1, 2)
        count = min(count, _MOST_ACCELERATED)
    return Job(
        id=name,
        queue=queue,
        submit=-dice.randrange(expected),
        steps=(
            Step(
                walltime=60 * round(shortest * (longest / shortest) ** dice.random()),
                request=Request(chunks=(Chunk(count=count, resources=Amounts(amounts)),)),
            ),
        ),
    )


def _one_of(weighted: tuple[tuple[int, int], ...], dice: random.Random) -> int:
    """Draw one of some values."""
    values, weights = zip(*weighted, strict=True)
    return int(dice.choices(values, weights)[0])


def _started(instance: Instance, dice: random.Random) -> list[Job]:
    """Return those jobs of a window that the planner starts at once, as if they had been running for a while."""
    at_once = {job.id: job for job in PlannerEngine().plan(instance, None).jobs if job.start == instance.now}
    running = []
    for job in instance.jobs:
        if job.id in at_once and len(running) < _RUNNING:
            start = instance.now - dice.randrange(job.walltime)
            planned = at_once[job.id].segments[0].allocation
            allocation = tuple(replace(part, chunk=None, count=None) for part in planned)
            segment = Segment(start=start, end=start + job.walltime, allocation=allocation)
            submit = min(job.submit, start)
            running.append(replace(job, submit=submit, running=Running(start=start, segments=(segment,))))
    return running
