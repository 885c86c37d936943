"""Reservations of numbers of units, where nodes are interchangeable: a job needs no nodes until it starts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import count_kernels
from cpsched.rusv.equal_nodes import EqualNodes
from cpsched.rusv.kernels.constants import NOWHERE


class Counts:
    """What is free of each pool of units from now on, and the reservations of jobs; mutable. Empty until `begin`.

    `units`: the pools. `demand`: int64 (jobs,), what each job asks for.
    """

    def __init__(self, units: EqualNodes, demand: NDArray[np.int64]) -> None:
        count, columns = len(demand), units.num_columns
        self._asks = units.asks
        self.reserved = count_kernels.Reservations(
            demand=demand,
            released=np.zeros(count, dtype=np.int64),
            seconds=np.zeros(count, dtype=np.int64),
            starts=np.full(count, NOWHERE, dtype=np.int64),
            takes=np.zeros((count, columns), dtype=np.int64),
        )
        self._profile = count_kernels.Profile(
            size=np.zeros(1, dtype=np.int64),
            times=np.zeros(2 * count + 4, dtype=np.int64),
            free=np.zeros((2 * count + 4, columns), dtype=np.int64),
        )
        self._scratch = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of what is free."""
        return not self._profile.size[0]

    def begin(self, now: int, free: NDArray[np.int64], running: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Begin with what is free now, and what running jobs give back at their ends; without any reservation.

        `ends`: int64 (jobs,), of which those of running jobs count; later than now.
        """
        self._profile.size[0], self._profile.times[0], self._profile.free[0] = 1, now, free
        count_kernels.give_back(running, ends, self.reserved.takes, self._profile)

    def clear(self, jobs: NDArray[np.int64]) -> None:
        """Forget what is free, and the reservations of these jobs, which must be all."""
        self.reserved.starts[jobs], self._profile.size[0] = NOWHERE, 0

    def forget(self, now: int) -> None:
        """Drop what was free before `now`."""
        count_kernels.forget(now, self._profile)

    def give_back(self, job: int, now: int, end: int) -> None:
        """Add what a job takes to what is free in ``[now, end)``."""
        count_kernels.shift(now, end, self.reserved.takes[job], 1, self._profile)

    def plan(self, jobs: NDArray[np.int64], seconds: Sequence[int]) -> None:
        """Reserve for each job, in turn, its earliest start, for so many seconds."""
        self.reserved.seconds[jobs] = seconds
        count_kernels.plan(jobs, self._profile, self._asks, self.reserved, *self._scratch)

    def compress(self, jobs: NDArray[np.int64]) -> int:
        """Move each reserved job, in turn, to an earlier start, where there is one; return how many jobs moved."""
        return count_kernels.compress(jobs, self._profile, self._asks, self.reserved, *self._scratch)
