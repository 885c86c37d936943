"""Windows like those of Eurora at one second: jobs that wait, and jobs that run."""

from __future__ import annotations

import math
from dataclasses import replace

from cpsched.domain import Amounts, Cluster, Instance, Job, Placement, Running, Segment
from cpsched.lab.workloads import eurora_cluster
from cpsched.lab.workloads.eurora import (
    LONGEST_CAMPAIGN,
    WALLTIMES,
    Draw,
    Kind,
    amounts_of,
    arrivals_of,
    drafts,
    job_of,
    queues,
)

__all__ = ["eurora_window"]

#: No campaign has more than this part of the jobs of a window.
CAMPAIGN_SHARE = 8
#: Filling the machine ends after this many jobs in a row that found no place.
_MISFITS = 100


def eurora_window(jobs: int, seed: int, *, busy: float = 0.0, demand: float = 1.0) -> Instance:
    """Generate a window: `jobs` waiting jobs, the last of which arrives at ``now``, and perhaps running ones.

    The same arguments give the same window, on any Python: only `Random.random` is used, whose sequence is documented
    as stable.

    Parameters
    ----------
    jobs
        How many jobs wait, at least 1.
    seed
        Of the random numbers.
    busy
        Share in [0, 1) of the machine's cores that running jobs hold at ``now``. They are placed by first fit; where
        the rest of a node's memory or accelerators is too small for all that comes, it becomes less.
    demand
        Rate of arrival as a multiple of the trace's, positive.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if jobs < 1 or not 0 <= busy < 1 or not 0 < demand < math.inf:
        raise ValueError(f"need jobs >= 1, 0 <= busy < 1, demand > 0, got {jobs}, {busy}, {demand}")
    draw = Draw(seed)
    cluster = eurora_cluster()
    longest = max(1, min(LONGEST_CAMPAIGN, jobs // CAMPAIGN_SHARE))
    arrivals = arrivals_of(draw, jobs, demand, longest)
    now = arrivals[-1][0]
    running = _running(draw, cluster, round(busy * cluster.totals["cores"]), now)
    waiting = [
        job_of(draft, str(number), submit) for number, (submit, draft) in enumerate(arrivals, start=len(running) + 1)
    ]
    return Instance(
        name=f"eurora-like-{jobs:04d}",
        now=now,
        cluster=cluster,
        queues=queues(),
        jobs=(*running, *waiting),
    )


def _running(draw: Draw, cluster: Cluster, cores: int, now: int) -> list[Job]:
    """Return running jobs that hold `cores` cores or a little more and started at their submission.

    A job that runs at a given moment is the likelier the longer it runs, so drafts are taken with a chance in
    proportion to their run time; the moment is then anywhere in it.
    """
    free = {name: dict(node_class.resources) for name, node_class in cluster.class_of.items()}
    longest = max(max(walltimes) for walltimes in WALLTIMES.values())
    running: list[Job] = []
    held = misfits = 0
    drawn = drafts(draw, longest=1)
    while held < cores and misfits < _MISFITS:
        _, draft = next(drawn)
        if draw.uniform() * longest >= draft.runtime:
            continue
        allocation = _first_fit(draft.kind, free)
        if allocation is None:
            misfits += 1
            continue
        misfits = 0
        held += draft.kind.units * draft.kind.cores
        start = now - math.floor(draw.uniform() * draft.runtime)
        segment = Segment(start=start, end=start + draft.walltime, allocation=allocation)
        job = job_of(draft, str(len(running) + 1), start)
        running.append(replace(job, running=Running(start=start, segments=(segment,))))
    return running


def _first_fit(kind: Kind, free: dict[str, dict[str, int]]) -> tuple[Placement, ...] | None:
    """Take the units of a job from the first nodes with room, in place; None, and nothing taken, where they do not fit.

    Jobs without GPUs begin at the end of the cluster, so as to leave the GPU nodes to others.
    """
    asked = amounts_of(kind)
    placed: dict[str, int] = {}
    left = kind.units
    for name in free if kind.gpus else reversed(free):
        fits = min(left, *(free[name].get(resource, 0) // amount for resource, amount in asked.items()))
        if fits:
            placed[name] = fits
            left -= fits
    if left:
        return None
    for name, units in placed.items():
        for resource, amount in asked.items():
            free[name][resource] -= units * amount
    return tuple(
        Placement(node=name, resources=Amounts({resource: units * amount for resource, amount in asked.items()}))
        for name, units in sorted(placed.items())
    )
