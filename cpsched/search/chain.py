"""One chain of the search: a plan that ruin and recreate changes, and the best one that it has seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.rusv import NOWHERE
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import kernels
from cpsched.search.costs import end_price, start_costs

__all__ = ["Chain"]

#: Temperatures at the beginning and at the end, in units of the mean cost of a job.
HOT, COLD = 1.0, 0.02


class Chain:
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to be planned; each can be.
    seed
        Same jobs, same calls, same seed: same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._costs = start_costs(instance, jobs)
        self._end_price = end_price(instance)
        self._random = np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64)
        self._figures = np.zeros(3)
        nodes = len(instance.cluster.node_names)
        chunks = [sum(chunk.count for chunk in job.request.chunks) for job in jobs]
        kinds = [len(job.request.chunks) for job in jobs]
        #: How many entries the placement of each job may have.
        self._rooms = np.minimum(chunks, np.array(kinds, dtype=np.int64) * nodes).astype(np.int64)
        self.best_value = np.inf

    @property
    def most_placements(self) -> int:
        """How many (job, node) pairs a plan may have."""
        return int(self._rooms.sum())

    def begin(self, keys: NDArray[np.float64]) -> float | None:
        """Plan the jobs as a list in ascending order of `keys`.

        Returns
        -------
        float or None
            What the list costs, None if some job finds no place in it.
        """
        self.ledger = Ledger(self._instance, self._jobs)
        order = [self._jobs[row].id for row in np.argsort(keys, kind="stable")]
        self.ledger.plan(order)
        table = self.ledger.table
        if (table.starts == NOWHERE).any():
            return None
        table.reserve(self._rooms)
        count, nodes = len(self._jobs), len(self._instance.cluster.node_names)
        self._ranks = keys.astype(np.float64)
        self._nodes_of = np.zeros((count, -(-nodes // 64)), dtype=np.uint64)
        for job in range(count):
            kernels.note_nodes(job, table.spans, table.pool, self._nodes_of)
        self._marks = np.zeros(count + 1, dtype=np.int64)
        self._chosen = np.zeros(kernels.MOST_REMOVED, dtype=np.int64)
        self._keys = np.zeros(kernels.MOST_REMOVED)
        self._sequence = np.zeros(kernels.MOST_REMOVED, dtype=np.int64)
        self._old = np.zeros((kernels.MOST_REMOVED, 2), dtype=np.int64)
        self._old_pool = np.zeros((kernels.MOST_REMOVED, int(self._rooms.max()), 3), dtype=np.int32)
        value = self.value_of(table.starts)
        self._figures[kernels.VALUE] = value
        if value < self.best_value:
            self._note_best()
        return value

    def run(self, steps: int, begin: float, until: float) -> None:
        """Do so many steps, between the shares `begin` and `until` of one cooling."""
        table, timeline = self.ledger.table, self.ledger.timeline
        target = self._figures[kernels.STEPS] + steps
        while (left := int(target - self._figures[kernels.STEPS])) > 0:
            share = begin + (until - begin) * (1 - left / steps)
            code = kernels.ruin_and_recreate(
                left, self._random, HOT, COLD, share, until, self._end_price, self._figures,
                table.jobs, table.starts, table.spans, table.pool, self._costs, self._ranks, self._nodes_of,
                self._marks, self._chosen, self._keys, self._sequence, self._old, self._old_pool,
                *timeline.kernel_arguments(),
            )  # fmt: skip
            if code == timeline_kernels.GROW_STATE:
                timeline.grow()
        if self._figures[kernels.VALUE] < self.best_value:
            self._figures[kernels.VALUE] = self.value_of(table.starts)  # the sum of many differences drifts
            self._note_best()

    def value_of(self, starts: Sequence[int] | NDArray[np.int64]) -> float:
        """Return what starts (s after `now`, one for each job) cost as the kernels see it: what a plan can change."""
        costs, begins = self._costs, np.asarray(starts, dtype=np.int64)
        if not len(begins):
            return 0.0
        beyond = np.maximum(0.0, begins - costs[:, kernels.THRESHOLD])
        last = int((begins + [job.walltime for job in self._jobs]).max())
        total = (costs[:, kernels.RATE] * begins + costs[:, kernels.EXTRA_RATE] * beyond).sum()
        return float(total + self._end_price * last)

    @property
    def value(self) -> float:
        """What the present plan costs, as the kernels see it."""
        return float(self._figures[kernels.VALUE])

    def _note_best(self) -> None:
        """Keep a copy of the present plan as the best one."""
        table = self.ledger.table
        self.best_value = float(self._figures[kernels.VALUE])
        self._best = table.starts.copy(), table.spans.copy(), table.pool.copy()

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far."""
        table = self.ledger.table
        present = table.starts, table.spans, table.pool
        table.starts, table.spans, table.pool = self._best
        best = [planned for job in self._jobs if (planned := self.ledger.planned(job.id)) is not None]
        table.starts, table.spans, table.pool = present
        return best
