"""Starts of jobs if resources had prices per second (Lagrangian relaxation): a guide for list schedules of many jobs.

The capacities are relaxed with prices per second: each job then starts where the sum of its own cost and its payments
is least. A subgradient method searches for the prices at which demand meets supply. The mean of the starts over its
last rounds is a good order for a list schedule, better than any fixed key from some hundred jobs on (BRIDI-8 leaves
the order open). The capacities are sums over all nodes: the result is neither a plan nor a bound that is claimed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job
from cpsched.planner import costs_at
from cpsched.search import kernels
from cpsched.search.costs import node_shares

Floats = NDArray[np.float64]

#: Pieces of the time axis on which prices are constant.
_PIECES = 96
#: The part of its dominant share of a node with which a chunk counts: other chunks use some of the rest.
_LOOSE = 0.9
#: The weight of the earlier mean starts in each round.
_MEMORY = 0.95
#: Rounds without a better bound after which the steps are halved.
_PATIENCE = 8


class Prices:
    """Prices of all scarce resources, by time; mutable: each round improves them.

    `instance`, `jobs`, `costs`: the window, the jobs to be planned, and their `start_costs`. `earliest`, `starts`:
    int64 (jobs,): earliest starts, and the starts in some plan (s after `now`), from which the time axis is made.
    """

    def __init__(
        self,
        instance: Instance,
        jobs: Sequence[Job],
        costs: Floats,
        earliest: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> None:
        running = [job for job in instance.jobs if job.running is not None]
        needs = _needs(instance, [*jobs, *running])
        self._needs = needs[: len(jobs)]
        self._durations = np.array([job.walltime for job in jobs], dtype=np.float64)
        self._times = _time_axis(starts, float((starts + self._durations).max()))
        lengths = np.diff(self._times)
        ends_running = np.array([job.running.segments[-1].end - instance.now for job in running if job.running])
        held = np.clip(ends_running[:, None] - self._times[None, :-1], 0.0, lengths[None, :])
        #: The capacity of each sum in each piece, in seconds of the whole.
        self._supply = np.maximum(0.0, lengths - needs[len(jobs) :].T @ held)
        ends = np.minimum(self._times[None, :] + self._durations[:, None], self._times[-1])
        self._place = np.clip(np.searchsorted(self._times, ends, side="right") - 1, 0, len(lengths) - 1)
        self._share = (ends - self._times[self._place]) / lengths[self._place]
        self._costs = costs_at(costs, self._times[None, :])
        self._costs[self._times[None, :] < earliest[:, None]] = np.inf
        self._costs[:, -1] = np.minimum(self._costs[:, -1], costs_at(costs, self._times[None, -1:])[:, 0])
        self._value = float(costs_at(costs, starts[:, None]).sum())
        self._prices = np.zeros((self._needs.shape[1], len(self._times) - 1))
        self._best, self._since, self._step = -np.inf, 0, 1.0
        self._direction = np.zeros_like(self._prices)
        #: Mean starts (s after `now`) over the last rounds.
        self.starts: Floats = starts.astype(np.float64)
        self._rounds = 0

    def improve(self) -> None:
        """Compute each job's cheapest start at these prices; raise the prices where demand exceeds the capacity."""
        lengths = np.diff(self._times)
        paid = np.concatenate([np.zeros((len(self._prices), 1)), np.cumsum(self._prices * lengths, axis=1)], axis=1)
        starts, used = np.empty_like(self.starts), np.empty_like(self._prices)
        total = kernels.best_starts_at_prices(
            self._needs, self._durations, self._costs, self._place, self._share, self._times, paid, starts, used
        )
        bound = total - float((self._prices * self._supply).sum())
        if bound > self._best:
            self._best, self._since = bound, 0
        else:
            self._since += 1
            if self._since >= _PATIENCE:
                self._since, self._step = 0, self._step / 2
        self._rounds += 1
        weight = max(1 - _MEMORY, 1 / self._rounds)
        self.starts = (1 - weight) * self.starts + weight * starts
        excess = (used - self._supply) / lengths
        self._direction = excess + 0.7 * self._direction
        self._direction[(self._prices <= 0) & (self._direction < 0)] = 0.0
        norm = float((self._direction**2 * lengths).sum())
        if norm > 0:
            stride = self._step * max(1.02 * self._value - bound, 0.0) / norm
            self._prices = np.maximum(0.0, self._prices + stride * self._direction)


def _time_axis(starts: NDArray[np.int64], end: float) -> Floats:
    """Return ascending times from 0 to beyond `end`: half of them where jobs start, half at equal distances."""
    crowded = np.quantile(starts, np.linspace(0, 1, _PIECES // 2)).round()
    return np.unique(np.concatenate([[0.0], crowded, np.linspace(0, 1.1 * end + 1, _PIECES // 2)]))


def _needs(instance: Instance, jobs: Sequence[Job]) -> Floats:
    """Return the share of each sum that each job takes: (jobs, sums).

    The sums: each resource, each licence, the dominant shares of the nodes, and the nodes that chunks of more than
    half a node need for themselves (the simplest dual-feasible function).
    """
    cluster = instance.cluster
    num_nodes = max(1, sum(len(node_class.names) for node_class in cluster.classes if node_class.is_up))
    columns = []
    for name, total in cluster.up_totals.items():
        columns.append([job.request.totals.get(name, 0) / max(1, total) for job in jobs])
    for name, total in cluster.licenses.items():
        columns.append([job.licenses.get(name, 0) / max(1, total) for job in jobs])
    shares = [node_shares(instance, job.request) for job in jobs]
    columns.append([_LOOSE * sum(count * each for count, each in of_job) / num_nodes for of_job in shares])
    columns.append(
        [
            sum(count * (1.0 if each > 0.5 else 0.5 * (each == 0.5)) for count, each in of_job) / num_nodes
            for of_job in shares
        ]
    )
    needs = np.array(columns).T.copy()
    return needs[:, needs.any(axis=0)]
