"""Users as agents, which Bode et al. (ALS 2000) wished for (MIX-5): a developer, a heavy and a greedy user.

The paper only names them; how they behave is ours, and simple. Agents of a kind have the same node hours to do, and
submit no more than that takes; so the time to reach a fixed amount of node hours, the paper's metric, is the time at
which an agent's last job ends. Agents do not see the machine: they believe that their jobs start at once.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cpsched.domain import FrozenMap, Instance, Queue
from cpsched.lab.workloads.assembly import jobs_of, like_nodes, random_numbers, whole_nodes

#: The total work of an agent of each kind.
NODE_HOURS = {"developer": 40, "heavy": 2000, "greedy": 400}
#: The expected wait of each kind (s).
QUEUES = {"developer": 600, "heavy": 86400, "greedy": 3600}

_HOUR, _DAY = 3600, 86400
_CORES = 16


class _Run(NamedTuple):
    """A job of an agent (seconds and whole nodes)."""

    submit: float
    walltime: int
    runtime: int
    nodes: int


def agent_workload(seed: int, *, nodes: int = 64, agents: int = 3) -> Instance:
    """Generate the jobs of `agents` users of each kind; second 0 is the midnight before a Monday.

    - The *developer* works on weekdays from 9 to 17 o'clock, tries something for 1 to 10 minutes on 1 to 4 nodes, asks
      for half an hour, and thinks for ten minutes (mean, exponential) before the next trial.
    - The *heavy* user submits five jobs at once, of a quarter to a half of the machine, which run for 4 to 12 hours,
      at least 70 % of what they asked for, and does so again three days later (mean, exponential).
    - The *greedy* user makes small pieces that fit into any hole: of 1 or 2 nodes for 10 to 60 minutes, with the exact
      walltime, one every 20 minutes (mean, exponential), day and night.

    Nodes and durations are even within their bounds. A job's queue and group are the agent's kind.

    Raises `ValueError` if there are fewer than 8 nodes, or no agents.
    """
    if nodes < 8 or agents < 1:
        raise ValueError(f"need nodes >= 8, agents >= 1, got {nodes}, {agents}")
    draw = random_numbers(seed)
    endless: dict[str, Callable[[], Iterator[_Run]]] = {
        "developer": lambda: _developer(draw),
        "heavy": lambda: _heavy(draw, nodes),
        "greedy": lambda: _greedy(draw),
    }
    runs = [
        (kind, f"{kind}{number}", run)
        for kind, begin in endless.items()
        for number in range(1, agents + 1)
        for run in _until(NODE_HOURS[kind], begin())
    ]
    kinds, users, jobs = zip(*runs, strict=True)
    drawn = jobs_of(
        submit=np.array([job.submit for job in jobs]),
        walltime=np.array([job.walltime for job in jobs]),
        runtime=np.array([job.runtime for job in jobs]),
        requests=whole_nodes((job.nodes for job in jobs), _CORES),
        queues=kinds,
        owners=(users, kinds),
    )
    return Instance(
        name=f"agents-{agents}-{nodes}-nodes-{seed}",
        cluster=like_nodes(nodes, _CORES),
        queues=FrozenMap({kind: Queue(expected_wait=wait) for kind, wait in QUEUES.items()}),
        jobs=drawn,
    )


def _until(node_hours: int, runs: Iterator[_Run]) -> Iterator[_Run]:
    """Yield jobs until they add up to the node hours of an agent."""
    left = node_hours * _HOUR
    while left > 0:
        run = next(runs)
        left -= run.nodes * run.runtime
        yield run


def _developer(draw: np.random.Generator) -> Iterator[_Run]:
    clock = 0.0
    while True:
        clock = _at_work(clock + draw.exponential(600))
        run = _Run(clock, 1800, _between(draw, 60, 600), _between(draw, 1, 4))
        yield run
        clock += run.runtime


def _at_work(clock: float) -> float:
    """Return the first second from `clock` on that is on a weekday between 9 and 17 o'clock."""
    day, second = divmod(clock, _DAY)
    if second >= 17 * _HOUR:
        day, second = day + 1, 0.0
    second = max(second, 9 * _HOUR)
    if day % 7 >= 5:
        day, second = math.ceil(day / 7) * 7, 9 * _HOUR
    return day * _DAY + second


def _heavy(draw: np.random.Generator, nodes: int) -> Iterator[_Run]:
    clock = 0.0
    while True:
        clock += draw.exponential(3 * _DAY)
        for _ in range(5):
            runtime = _between(draw, 4 * _HOUR, 12 * _HOUR)
            walltime = math.ceil(runtime / draw.uniform(0.7, 1))
            yield _Run(clock, walltime, runtime, _between(draw, nodes // 4, nodes // 2))


def _greedy(draw: np.random.Generator) -> Iterator[_Run]:
    clock = 0.0
    while True:
        clock += draw.exponential(1200)
        runtime = _between(draw, 600, 3600)
        yield _Run(clock, runtime, runtime, _between(draw, 1, 2))


def _between(draw: np.random.Generator, least: int, most: int) -> int:
    return int(draw.integers(least, most, endpoint=True))
