"""How long wide jobs take at least, and in which order, on one sum.

The last end of most mixes is decided by the widest jobs. They are few enough for a search of all their schedules
(`skeleton_kernels.py`), which proves, second by second upwards, before which one not even they can have ended. The
schedule that has the least end leaves room for the others, which are added by lists. Where they do not fit, the search
takes in the next job: first there are jobs of which no three fit beside each other, at last there are all.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import FOREVER
from cpsched.search import skeleton_kernels as kernels

#: The most jobs of a search; the places for states without success, as a power of two; the most measures.
_MOST_JOBS, _SEEN, _MOST_MEASURES = 64 * kernels.WORDS, 18, 24
#: The most jobs that are taken in of which so many may fit beside each other.
_MOST_TOGETHER = 6
#: Moments of the first searches, and by how much those of the next round are longer.
_MOMENTS, _LONGER = 20_000, 3
#: How much the order in which jobs are tried differs from that of their durations.
_SPREAD = 0.3

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A schedule of the wide jobs."""

    #: Their rows; their starts (s from now); and which of them may change places with each other.
    jobs: Ints
    starts: Ints
    is_movable: NDArray[np.bool_]


class Skeletons:
    """Searches for the schedule of wide jobs that ends first; mutable.

    `needs`, `durations`, `earliest`: int64 (jobs,), of all jobs: what each takes of a sum, the seconds that it runs,
    its earliest start (s from now). `capacity`: what there is of the sum. `seed`: of the orders that are tried.
    """

    def __init__(self, needs: Ints, durations: Ints, earliest: Ints, capacity: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._all = needs, durations, earliest
        self._capacity = capacity
        self._widest = np.lexsort((-durations, -needs))[: min(_MOST_JOBS, np.count_nonzero(needs))]
        self._take(wide_jobs(needs, durations, capacity))
        #: Seconds from now before which the jobs cannot have ended; may be raised by other proofs.
        self.least = int(earliest.min(initial=0)) + self._least_by_measures()
        #: The end of the best plan of all jobs.
        self.before = FOREVER
        self._moments, self._work = 0, self._searches()

    def run(self, moments: int) -> Skeleton | None:
        """Look at so many moments more, or at fewer; return a schedule of the wide jobs that ends before the best plan,
        if one is found.
        """
        self._moments = moments
        return next(self._work, None)

    @property
    def is_over(self) -> bool:
        """Whether no schedule ends before the best plan, or one ends before all jobs can: others decide then."""
        return self.least >= self.before or (self.shortest is not None and self.shortest < self.least)

    @property
    def is_settled(self) -> bool:
        """Whether no schedule of the wide jobs is shorter than the best one."""
        return self.shortest is not None and self.shortest == self.least

    def _take(self, jobs: Ints) -> None:
        """Search for schedules of these jobs from now on."""
        needs, durations, earliest = (column[jobs] for column in self._all)
        capacity, count, seen = self._capacity, len(jobs), 1 << min(len(jobs) + 4, _SEEN)
        measures, most = measures_of(needs, durations, capacity)
        together = together_of(needs, capacity)
        self._jobs = jobs
        self._wide = kernels.Wide(
            needs=needs,
            durations=durations,
            earliest=earliest,
            alone=needs + needs.min(initial=capacity) > capacity,
            measures=measures,
            most=most,
            limits=np.array([capacity, earliest.max(initial=0)], dtype=np.int64),
        )
        moments = 3 * count + 4
        self._tree = kernels.Tree(
            state=np.zeros(5, dtype=np.int64),
            moments=np.zeros((moments, 6), dtype=np.int64),
            running=np.zeros((moments, together), dtype=np.int64),
            begun=np.zeros(count, dtype=np.bool_),
            bits=np.zeros(kernels.WORDS, dtype=np.uint64),
            paired=np.zeros(kernels.WORDS, dtype=np.uint64),
            rest=np.zeros(len(most), dtype=np.int64),
            starts=np.zeros(count, dtype=np.int64),
            seen=np.zeros((seen, kernels.JOBS + 2 * together), dtype=np.int64),
            seen_bits=np.zeros((seen, kernels.WORDS), dtype=np.uint64),
            sums=np.zeros(1 << kernels.FEW, dtype=np.int64),
        )
        #: The end of the best schedule of these jobs so far; None: there is none.
        self.shortest: int | None = None

    def _widen(self) -> None:
        """Take in the next job, unless there is none, or too many fit together."""
        jobs = self._widest[: len(self._jobs) + 1]
        if len(jobs) > len(self._jobs) and together_of(self._all[0][jobs], self._capacity) <= _MOST_TOGETHER:
            self._take(jobs)

    def _least_by_measures(self) -> int:
        """Return the seconds that the wide jobs take at least, by their measures."""
        return int((-(-(self._wide.measures @ self._wide.durations) // self._wide.most)).max(initial=0))

    def _searches(self) -> Iterator[Skeleton | None]:
        """Search for a schedule that ends as soon as is possible, then in steps twice as long; in the next round all
        searches are longer. Yield schedules, and None where the moments are used up.
        """
        most = float(_MOMENTS)
        while not self.is_over:
            target, step = self.least, 1
            while self.least < (end := self._upper()):
                target = min(max(target, self.least), end - 1)
                found = yield from self._search(target, int(most))
                if found == kernels.FOUND:
                    yield self._skeleton()
                    break
                if found == kernels.NONE:
                    self.least = max(self.least, target + 1)
                elif target + 1 == end:
                    break
                target, step = target + step, 2 * step
            most *= _LONGER
            if self.is_settled and not self.is_over:
                found = yield from self._search(self.least, int(most))
                if found == kernels.FOUND:
                    yield self._skeleton()
                self._widen()
                most = float(_MOMENTS)

    def _upper(self) -> int:
        """Return the least end that is known."""
        return self.before if self.shortest is None else min(self.before, self.shortest)

    def _search(self, target: int, most: int) -> Generator[None, None, int]:
        """Search for a schedule that has ended by `target`, for at most so many moments, in a new order of the jobs."""
        keys = np.log(self._wide.durations) + _SPREAD * self._random.standard_normal(len(self._jobs))
        order = np.argsort(-keys, kind="stable")
        jobs = {name: getattr(self._wide, name)[order] for name in ("needs", "durations", "earliest", "alone")}
        measures = np.ascontiguousarray(self._wide.measures[:, order])
        self._jobs, self._wide = self._jobs[order], self._wide._replace(**jobs, measures=measures)
        kernels.start_anew(target, self._wide, self._tree)
        while most > 0:
            portion = min(most, self._moments)
            found = kernels.explore(portion, self._wide, self._tree)
            if found != kernels.OPEN:
                return found
            most -= portion
            yield None
        return kernels.OPEN

    def _skeleton(self) -> Skeleton:
        """Return the schedule that was found."""
        wide, starts = self._wide, self._tree.starts.copy()
        end = int((starts + wide.durations).max())
        self.shortest = end if self.shortest is None else min(end, self.shortest)
        return Skeleton(self._jobs, starts, wide.alone & (starts >= wide.limits[1]))


def together_of(needs: Ints, capacity: int) -> int:
    """Return how many jobs fit beside each other at the most; 1 if none fits."""
    return max(1, int(np.searchsorted(np.cumsum(np.sort(needs)), capacity, side="right")))


def wide_jobs(needs: Ints, durations: Ints, capacity: int) -> Ints:
    """Return the rows of those jobs, from some width on, that take longest of all of which no three fit together."""
    order = np.lexsort((-durations, -needs))
    widths, best, longest = needs[order], 0, 0
    for count in range(1, len(order) + 1):
        if count > _MOST_JOBS or (count > 2 and widths[count - 3 : count].sum() <= capacity):
            break
        least = widths[count - 1]
        if least == 0:
            break
        took = int(((1 + (widths[:count] + least > capacity)) * durations[order[:count]]).sum())
        if took >= longest:
            best, longest = count, took
    return order[:best]


def measures_of(needs: Ints, durations: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Return sizes of the jobs, a row for each measure, and the most that jobs have which run together; those first by
    which all jobs take longest.

    In steps p a width counts 2 for each of them, rounded down, and one of more than a half of the capacity what the
    rest leaves (Carlier, Clautiaux and Moukrim 2007).
    """
    steps = np.unique(np.concatenate([needs, capacity - needs + 1, [1]]))
    steps = steps[(steps > 0) & (2 * steps <= capacity + 1), None]
    most = 2 * (capacity // steps)
    large = most - 2 * ((capacity - needs) // steps)
    rows = np.select([2 * needs > capacity, 2 * needs == capacity], [large, most // 2], 2 * (needs // steps))
    rows, first = np.unique(rows, axis=0, return_index=True)
    most = most[first, 0]
    order = np.argsort(-((rows @ durations) / most), kind="stable")[:_MOST_MEASURES]
    return rows[order], most[order]
