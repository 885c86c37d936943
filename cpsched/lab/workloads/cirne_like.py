"""A workload like that of Cirne and Berman (A comprehensive model of the supercomputer workload, WWC 2001).

The coefficients of the model are not available, so this is no port of it, and is called *like*. The published
properties determine the shape: a daily cycle, walltimes over several magnitudes, many sizes that are powers of two,
users who ask for much more than they need. The figures are ours. SD-Policy was tried on such workloads (SD-13).
"""

import math

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.lab.workloads.assembly import (
    WALLTIME_QUEUES,
    arrivals_within,
    daily_cycle,
    jobs_of,
    like_nodes,
    random_numbers,
    random_users,
    walltime_queues,
    whole_nodes,
)
from cpsched.lab.workloads.lublin import STREAMS

#: Walltimes (s), log-uniform.
WALLTIMES = (60, 4 * 86400)
#: The share of sizes that are powers of two; all sizes are log-uniform.
POWERS_OF_TWO = 0.75
#: Run time / walltime: gamma (shape, scale), at most 1, which makes its mean 0.45; and the offered load. The shape,
#: tiny or full, and the load give EASY the order of magnitude of what was published for static backfilling of 5,000
#: jobs (SD-13): a mean response of 1.0 to 1.3 * 10^5 s (1.2 * 10^5), a mean slowdown of 2,200 to 3,000 (3,340).
ACCURACY = (0.5, 1.44872)
LOAD = 1.5


def cirne_like(
    jobs: int,
    seed: int,
    *,
    nodes: int = 1024,
    cores: int = 48,
    widest: int = 128,
    load: float = LOAD,
    ideal: bool = False,
) -> Instance:
    """Generate a workload of jobs that take whole nodes; its second 0 is a midnight.

    By default the machine is that of SD-Policy's first two workloads.

    Raises `ValueError` if an argument is out of range.

    `jobs`: how many, at least 2. `seed`: of the random numbers. `nodes`, `cores`: of the machine, and of each node.
    `widest`: nodes of the largest job, at most all. `load`: offered, up to whole seconds: see `offered_load`. It is had
    by more or fewer jobs a day. `ideal`: users know how long their jobs run, and ask for that.
    """
    if jobs < 2 or not 1 <= widest <= nodes or cores < 1 or not 0 < load < math.inf:
        raise ValueError(
            "need jobs >= 2, nodes >= widest >= 1, cores >= 1, load > 0,"
            f" got {jobs}, {nodes}, {widest}, {cores}, {load}"
        )
    draw = random_numbers(seed)
    walltimes, runtimes = _times(draw, jobs)
    sizes = _sizes(draw, jobs, widest)
    span = float((runtimes * sizes).sum() / (nodes * load))
    asked = runtimes if ideal else walltimes
    drawn = jobs_of(
        owners=random_users(draw, jobs),
        submit=arrivals_within(draw, jobs, span, daily_cycle(*STREAMS["whole"].cycle)),
        walltime=asked,
        runtime=runtimes,
        requests=whole_nodes(sizes.tolist(), cores),
        queues=walltime_queues(asked),
    )
    return Instance(
        name=f"cirne-like{'-ideal' if ideal else ''}-{jobs}-jobs-{nodes}-nodes-{seed}",
        cluster=like_nodes(nodes, cores),
        queues=WALLTIME_QUEUES,
        jobs=drawn,
    )


def _times(draw: np.random.Generator, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw walltimes, in whole minutes, and run times (s)."""
    shortest, longest = WALLTIMES
    asked = shortest * (longest / shortest) ** draw.random(count)
    walltimes = (np.rint(asked / 60) * 60).astype(np.int64)
    accuracy = np.minimum(draw.gamma(*ACCURACY, count), 1)
    return walltimes, np.maximum(1, np.rint(walltimes * accuracy)).astype(np.int64)


def _sizes(draw: np.random.Generator, count: int, widest: int) -> NDArray[np.int64]:
    """Draw how many nodes jobs ask for."""
    logs = draw.random(count) * math.log2(widest)
    logs = np.where(draw.random(count) < POWERS_OF_TWO, np.rint(logs), logs)
    return np.minimum(np.rint(2**logs), widest).astype(np.int64)
