"""Workloads and windows in which some jobs are made malleable.

The choice of jobs is ours: no log of a real machine states which of its jobs could have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cpsched.domain import FrozenMap, Instance, Job, Malleability, RuntimeModel

#: Shares of their cores on which jobs can run, and the stretch of those that scale badly: less than in proportion.
_SHARES = (0.5, 0.25)
_HALF = (0.5,)
_STRETCH = FrozenMap({0.5: 1.8, 0.25: 3.2})


def with_malleable(
    instance: Instance, seed: int, *, share: float = 1 / 3, model: RuntimeModel | None = None
) -> Instance:
    """Return a window in which a share of the jobs, waiting and running ones, is malleable.

    Malleable are jobs whose chunks have two cores or more. Where fewer jobs have such chunks, all of these are
    malleable.

    `model`: the runtime model of jobs that can run on half of their cores, as in the experiments of SD-Policy (SD-3,
    SD-9). None: the jobs can run on a half or a quarter of their cores. Half of them then take twice (four times) as
    long, the others less, since the last cores of a job are its least useful ones.
    """
    draw = Random(seed)  # noqa: S311 - a workload, not a secret

    def malleable(job: Job) -> Job:
        if model is not None:
            return replace(job, malleability=Malleability(shares=_HALF, model=model))
        stretch = FrozenMap(_STRETCH) if draw.random() < 0.5 else FrozenMap[float, float]()
        return replace(job, malleability=Malleability(shares=_SHARES, stretch=stretch))

    return changed_share(instance, draw, share, _can_shrink, malleable)


def changed_share(
    instance: Instance, draw: Random, share: float, can_change: Callable[[Job], bool], change: Callable[[Job], Job]
) -> Instance:
    """Return an instance with a share of its jobs changed, drawn from those that can be."""
    able = [place for place, job in enumerate(instance.jobs) if can_change(job)]
    wanted = min(len(able), round(share * len(instance.jobs)))
    keys = {place: draw.random() for place in able}
    chosen = set(sorted(able, key=keys.__getitem__)[:wanted])
    jobs = tuple(change(job) if place in chosen else job for place, job in enumerate(instance.jobs))
    return replace(instance, jobs=jobs)


def _can_shrink(job: Job) -> bool:
    return not job.is_evolving and all(chunk.resources.get("cores", 0) > 1 for chunk in job.request.chunks)
