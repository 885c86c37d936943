"""The workload model of Lublin and Feitelson (JPDC 63, 2003), complete: sizes, run times and arrivals.

The constants are those of the authors' program. Not in the model, and ours: walltimes, users, what
is expected of the queues, and the cores of a node, all of which a job takes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import FrozenMap, Instance, Queue
from cpsched.lab.workloads.assembly import (
    HALF_HOUR,
    daily_cycle,
    jobs_of,
    like_nodes,
    on_the_clock,
    random_numbers,
    random_users,
    whole_nodes,
)

#: Deciles (0, 10, …, 100 %) of run time / walltime over 5,930 jobs of Eurora in spring 2014, published with PA-HPC-SIM
#: (Apache-2.0): tiny or full. Jobs that ran a little longer than their walltime count as full.
ACCURACY = (0.0, 0.015, 0.028, 0.045, 0.099, 0.256, 0.497, 0.811, 0.997, 1.0, 1.0)


def estimated_walltimes(draw: np.random.Generator, runtimes: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Return a walltime for each run time: the one divided by an accuracy, in whole minutes.

    No walltime exceeds `longest` seconds, a multiple of 60 that no run time exceeds. So the estimates of long jobs are
    better than those of short ones, as in real logs.
    """
    accuracy = np.interp(draw.random(len(runtimes)) * 10, np.arange(11), ACCURACY)
    asked = np.ceil(runtimes / np.maximum(accuracy, runtimes / longest) / 60) * 60
    return np.asarray(np.minimum(asked, longest), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One column of the model's table: all jobs as one, or those of a kind."""

    #: Shares of the jobs of one node, and of those whose size is made a power of two.
    serial: float
    power_of_two: float
    #: Sizes (log2 of nodes, on a machine of 128) are even between the first two or, less often, the last two of these.
    sizes: tuple[float, float, float]
    #: The share of the former.
    small: float
    #: Logarithms of run times: gamma distributions (shape, scale) of short and of long jobs; the share of the short
    #: ones is linear in the size (slope, at 0).
    short: tuple[float, float]
    long: tuple[float, float]
    share: tuple[float, float]
    #: Logarithms of the seconds between arrivals in the rush hours, how far those of all hours are from it, and the
    #: daily cycle: gamma distributions, and a factor of the first one's shape.
    gap: tuple[float, float]
    rush: float
    cycle: tuple[float, float]


STREAMS = FrozenMap(
    {
        "whole": Stream(
            serial=0.244,
            power_of_two=0.576,
            sizes=(0.8, 4.5, 7.0),
            small=0.86,
            short=(4.2, 0.94),
            long=(312.0, 0.03),
            share=(-0.0054, 0.78),
            gap=(10.2303, 0.4871),
            rush=1.0225,
            cycle=(8.1737, 3.9631),
        ),
        "batch": Stream(
            serial=0.2927,
            power_of_two=0.6686,
            sizes=(1.2, 5.0, 7.0),
            small=0.875,
            short=(6.57, 0.823),
            long=(639.1, 0.0156),
            share=(-0.003, 0.6986),
            gap=(6.0415, 0.8531),
            rush=1.0519,
            cycle=(6.1271, 5.2740),
        ),
        "interactive": Stream(
            serial=0.1541,
            power_of_two=0.625,
            sizes=(1.0, 3.0, 5.5),
            small=0.705,
            short=(3.8351, 0.6605),
            long=(7.073, 0.6856),
            share=(-0.0118, 0.9156),
            gap=(6.5510, 0.6621),
            rush=0.9797,
            cycle=(8.9186, 3.6680),
        ),
    }
)

#: Expected waits (s).
QUEUES = {"whole": 21600, "batch": 21600, "interactive": 1800}

#: The smallest machine: on a smaller one the middle size of interactive jobs would be below their smallest.
FEWEST_NODES = 32
#: Logarithms beyond these are drawn again: of run times (about two days) and of gaps (about five).
_MOST_RUNTIME, _MOST_GAP = 12.0, 13.0
_LONGEST_WALLTIME = 2 * 86400
_MODEL_NODES = 128


def lublin(
    jobs: int, seed: int, *, nodes: int = _MODEL_NODES, cores: int = 16, streams: Sequence[str] = ("whole",)
) -> Instance:
    """Generate a workload after Lublin and Feitelson; its second 0 is a midnight.

    Raises `ValueError` if an argument is out of range.

    `jobs`: how many, at least 1. `seed`: of the random numbers. `nodes`: of the machine, at least 32. The largest and
    the middle size of jobs follow it. `cores`: of each node. `streams`: ``whole``, or ``batch``, ``interactive`` or
    both: these two arrive independently of each other. Each is a queue.
    """
    if jobs < 1 or nodes < FEWEST_NODES or cores < 1:
        raise ValueError(f"need jobs >= 1, nodes >= {FEWEST_NODES}, cores >= 1, got {jobs}, {nodes}, {cores}")
    if not streams or len(set(streams)) < len(streams) or not set(streams) <= set(STREAMS):
        raise ValueError(f"Expected some of {', '.join(STREAMS)}, each once, got {', '.join(streams) or 'none'}")
    draw = random_numbers(seed)
    submit = np.concatenate([_arrivals(draw, STREAMS[name], jobs) for name in streams])
    earliest = np.argsort(submit, kind="stable")[:jobs]
    kinds = earliest // jobs
    sizes, runtimes = np.empty((2, jobs), dtype=np.int64)
    for kind, name in enumerate(streams):
        of_kind = kinds == kind
        sizes[of_kind] = _sizes(draw, STREAMS[name], int(of_kind.sum()), nodes)
        runtimes[of_kind] = _runtimes(draw, STREAMS[name], sizes[of_kind])
    drawn = jobs_of(
        owners=random_users(draw, jobs),
        submit=submit[earliest],
        walltime=estimated_walltimes(draw, runtimes, _LONGEST_WALLTIME),
        runtime=runtimes,
        requests=whole_nodes(sizes.tolist(), cores),
        queues=[streams[kind] for kind in kinds],
    )
    return Instance(
        name=f"lublin-{'-'.join(streams)}-{jobs}-jobs-{nodes}-nodes-{seed}",
        cluster=like_nodes(nodes, cores),
        queues=FrozenMap({name: Queue(expected_wait=QUEUES[name]) for name in streams}),
        jobs=drawn,
    )


def _arrivals(draw: np.random.Generator, stream: Stream, count: int) -> NDArray[np.float64]:
    """Draw when jobs arrive, in seconds after midnight."""
    shape, scale = stream.gap
    logs = np.full(count, math.inf)
    while (left := np.flatnonzero(logs > _MOST_GAP)).size:
        logs[left] = draw.gamma(shape * stream.rush, scale, left.size)
    return on_the_clock(np.cumsum(np.exp(logs) / HALF_HOUR), daily_cycle(*stream.cycle))


def _sizes(draw: np.random.Generator, stream: Stream, count: int, nodes: int) -> NDArray[np.int64]:
    """Draw how many nodes jobs ask for."""
    lowest, middle, highest = stream.sizes
    larger = math.log2(nodes / _MODEL_NODES)
    is_small = draw.random(count) < stream.small
    low = np.where(is_small, lowest, middle + larger)
    high = np.where(is_small, middle + larger, highest + larger)
    logs = low + draw.random(count) * (high - low)
    kind = draw.random(count)
    logs = np.where(kind <= stream.serial + stream.power_of_two, np.rint(logs), logs)
    sizes = np.minimum(np.rint(2**logs), round(2 ** (highest + larger)))
    return np.where(kind <= stream.serial, 1, sizes).astype(np.int64)


def _runtimes(draw: np.random.Generator, stream: Stream, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw how long jobs of these sizes run (s)."""
    slope, at_zero = stream.share
    share = np.clip(slope * sizes + at_zero, 0, 1)
    logs = np.full(len(sizes), math.inf)
    while (left := np.flatnonzero(logs > _MOST_RUNTIME)).size:
        is_short = draw.random(left.size) < share[left]
        logs[left] = np.where(is_short, draw.gamma(*stream.short, left.size), draw.gamma(*stream.long, left.size))
    return np.asarray(np.maximum(1, np.exp(logs)), dtype=np.int64)
