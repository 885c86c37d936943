"""A workload played pick by pick: somebody says which waiting job is next, and time goes on when it does not fit.

It is the simulator for those who need many thousand decisions a second from Python: jobs are counted on interchangeable
units (`cpsched.rusv.EqualNodes`), so that an event is a few additions. What cannot be counted is refused.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.errors import UnsupportedError
from cpsched.formats import checked
from cpsched.lab.sim.load import Load
from cpsched.rusv import FOREVER, EqualNodes


class Picks:
    """A part of a workload while it is played; mutable. Jobs are numbers in the order of submission.

    A pick that fits starts at once, and the next one is asked for in the same second. One that does not fit lets time
    go on to the next second in which a job arrives or ends. So who picks the first job by an order each time does what
    the queue rule of this order does without backfilling.

    Parameters
    ----------
    instance
        The workload. Jobs that can never start are left out.

    Raises
    ------
    UnsupportedError
        If jobs cannot be counted, or anything beside requests, runtimes and walltimes decides when they may start.
    """

    def __init__(self, instance: Instance) -> None:
        load = Load(checked(instance))
        counted = EqualNodes.of(load.columns.demands)
        features = _uncountable(load, is_counted=counted is not None and counted.is_apart)
        if features or counted is None:
            raise UnsupportedError("picking jobs one by one", features)
        kept = np.flatnonzero(load.demand >= 0)
        #: By job: its id, and int64 arrays of seconds; the units that it asks for as a share of its pool.
        self.ids = tuple(load.jobs[job].id for job in kept.tolist())
        self.submit: NDArray[np.int64] = load.submit[kept]
        self.walltime: NDArray[np.int64] = load.walltime[kept]
        self.length: NDArray[np.int64] = load.lengths[kept]
        free, sums = load.timeline.free_at(0)
        self._whole: list[int] = counted.free(free, sums).tolist()
        asks = [_asked(counted, demand) for demand in range(len(counted.asks.need))]
        self._asks = [asks[demand] for demand in load.demand[kept].tolist()]
        self.share: NDArray[np.float64] = np.array(
            [max(amount / self._whole[column] for column, amount in one) for one in self._asks], dtype=np.float64
        )
        #: The cores that it asks for.
        self.cores: NDArray[np.int64] = load.cores[kept].astype(np.int64)
        self._needs = np.zeros((len(kept), len(self._whole)), dtype=np.int64)
        for job, one in enumerate(self._asks):
            for column, amount in one:
                self._needs[job, column] = amount
        # plain numbers: those of arrays are slow one by one
        self._submits: list[int] = self.submit.tolist()
        self._lengths: list[int] = self.length.tolist()
        self.begin()

    def __len__(self) -> int:
        return len(self.ids)

    def begin(self, first: int = 0, count: int | None = None) -> None:
        """Begin with an empty machine, at the arrival of the first job.

        Raises `ValueError` if there are no such jobs.

        `first`, `count`: which jobs arrive; None: all from the first one on.
        """
        last = len(self) if count is None else first + count
        if not 0 <= first < last <= len(self):
            raise ValueError(f"Expected jobs from 0 to {len(self)}, got {first} to {last}")
        #: The present second, the waiting jobs in the order of submission, and when each job that has started did so.
        self.now = self._submits[first]
        self.queue: list[int] = []
        self.starts: dict[int, int] = {}
        self._free, self._ends = list(self._whole), list[tuple[int, int]]()
        self._next, self._last = first, last
        self._go_on()

    @property
    def is_over(self) -> bool:
        """Whether all jobs have started."""
        return not self.queue

    @property
    def free_share(self) -> float:
        """The least share of any pool of units that is free."""
        return min(free / whole for free, whole in zip(self._free, self._whole, strict=True) if whole)

    def fitting(self, jobs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some jobs fit now."""
        found: NDArray[np.bool_] = self._needs[jobs, 0] <= self._free[0]
        for column in range(1, len(self._free)):
            found &= self._needs[jobs, column] <= self._free[column]
        return found

    def pick(self, place: int) -> int | None:
        """Start the job at a place of the queue; None if it does not fit: time has gone on.

        Raises `IndexError` if there is no such place.
        """
        job, free, now = self.queue[place], self._free, self.now
        asks = self._asks[job]
        for column, amount in asks:
            if free[column] < amount:
                self._go_on()
                return None
        del self.queue[place]
        for column, amount in asks:
            free[column] -= amount
        self.starts[job] = now
        heappush(self._ends, (now + max(1, self._lengths[job]), job))
        if not self.queue:
            self._go_on()
        return job

    def _go_on(self) -> None:
        """Advance to the next second in which something happens and a job waits; or until nothing happens."""
        ends, submits, queue, free = self._ends, self._submits, self.queue, self._free
        while True:
            following = submits[self._next] if self._next < self._last else FOREVER
            if ends and ends[0][0] < following:
                following = ends[0][0]
            elif self._next == self._last:
                return
            self.now = following
            while ends and ends[0][0] == following:
                _, job = heappop(ends)
                for column, amount in self._asks[job]:
                    free[column] += amount
            while self._next < self._last and submits[self._next] == following:
                queue.append(self._next)
                self._next += 1
            if queue:
                return


def _asked(counted: EqualNodes, demand: int) -> tuple[tuple[int, int], ...]:
    """Return the columns of which a demand takes units, with how many."""
    asks = counted.asks
    pool, need = int(asks.pools[asks.pools_of[demand]]), int(asks.need[demand])
    first, last = asks.licenses_of[demand : demand + 2].tolist()
    return ((pool, need), *(tuple(row) for row in asks.licenses[first:last].tolist()))


def _uncountable(load: Load, *, is_counted: bool) -> list[str]:
    """Return the parts of a workload that keep its jobs from being counted."""
    jobs = load.jobs
    found = {
        "jobs that ask for different parts of nodes": not is_counted,
        "running jobs": any(job.running is not None for job in jobs),
        "dependencies": any(job.after for job in jobs),
        "not_before": any(job.not_before is not None for job in jobs),
        "jobs that change": bool(load.evolving or load.job_modes),
        "jobs with alternatives": bool(load.choices),
        "deadlines or fixed starts": bool((load.latest < FOREVER).any() or (load.start_at >= 0).any()),
        "outages": bool(load.instance.outages),
        "slower jobs across groups of nodes": bool(load.stated.cluster.slowdown),
        "amounts that are set aside for a time": len(load.asides["aside_times"]) > 0,
    }
    return [f"the workload has {words}" for words, is_there in found.items() if is_there]
