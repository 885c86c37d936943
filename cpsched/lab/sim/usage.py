"""What users have had during a simulation: usage decays while it runs, and the weights of their jobs follow."""

from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import FairShare
from cpsched.lab.sim.arrays import R, SimState
from cpsched.lab.sim.load import Load


class DecayingUsage:
    """The usage of the listed users: that before the simulation, and the core-seconds of what has run in it.

    A job that a failing node cuts short counts with its last run only. `load`, `shares`: the workload, and its shares.
    """

    def __init__(self, load: Load, shares: FairShare) -> None:
        places: dict[tuple[str | None, str | None], int] = {
            (one.user, one.account): place for place, one in enumerate(shares.users)
        }
        self._shares, self._begin = shares, load.now
        self._before = np.array([one.usage for one in shares.users], dtype=np.float64)
        #: The user of each job, by the place in the list; -1: it is not there.
        self._user = np.array([places.get((job.user, job.project), -1) for job in load.jobs], dtype=np.int64)
        #: What Smith's index of each job would be without shares.
        own = np.array([float(load.instance.own_weight(job)) for job in load.jobs], dtype=np.float64)
        self._smith = load.shares * load.expected_wait / own

    def at(self, now: int, state: SimState) -> FairShare:
        """Return the shares with the usage until now, in whole core-seconds."""
        runs = state.runs
        rate = log(2) / self._shares.half_life
        start = np.maximum(runs[:, R.START], self._begin)
        end = np.minimum(runs[:, R.END], now)
        has_run = (self._user >= 0) & (runs[:, R.START] >= 0) & (end > start)
        # the integral of 2^(-(now - t) / half_life) over the run
        decayed = (np.exp(-rate * (now - end[has_run])) - np.exp(-rate * (now - start[has_run]))) / rate
        usage = self._before * np.exp(-rate * (now - self._begin))
        np.add.at(usage, self._user[has_run], state.cores[has_run] * decayed)
        users = [replace(one, usage=round(used)) for one, used in zip(self._shares.users, usage.tolist(), strict=True)]
        return replace(self._shares, users=tuple(users))

    def smith(self, shares: FairShare) -> NDArray[np.float64]:
        """Return the factor of each job's length in its key by Smith's rule, as `Load.smith`, with these shares."""
        factors = np.array([*(float(shares.weight(one.user, one.account)) for one in shares.users), 1.0])
        found: NDArray[np.float64] = self._smith / factors[self._user]
        return found
