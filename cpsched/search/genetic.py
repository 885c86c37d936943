"""Projects: the end of the last job is what counts, and jobs may wait for each other. Their lists are bred by counts.

Insertion beside other jobs (`Chain`) rarely shortens a project, since many jobs must move at once. Whole lists are
decoded here, on sums over the nodes and on licences, which takes some microseconds for each job. On one node the sums
are all there is; elsewhere the starts found by them are only an order, which the chain decodes on the nodes. Where no
job waits for another, lists that begin with the shortest schedule of the widest jobs (`skeletons.py`) are bred, too.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import Links, count_kernels, grouped
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import project_kernels as kernels
from cpsched.search.chain import Chain
from cpsched.search.skeletons import Skeleton, Skeletons

Ints = NDArray[np.int64]

#: The number of lists of a generation, and how many of them are kept.
_LISTS, _ELITE = 100, 20
#: Where jobs wait for each other: after so many generations without a better list others begin.
_IDLE = 30
#: Where no job waits for another: so many times as many lists are polished as were bred until they were all alike.
_POLISHED = 4
#: A shorter plan is not to be expected once so many beginnings, and such a part of all, have ended with the best value.
_ALIKE, _ALIKE_PART = 10, 0.5
#: The bits of a word for amounts; and the most units of time for each job, of projects in which each has a slot.
_BITS, _UNITS = 63, 50


class Breeding:
    """Lists of a project, which get better generation by generation; mutable. Its kernels release the GIL.

    Where jobs wait for each other the best lists are kept different, and when none gets better others begin from new
    random keys. Where no job waits for another that is when they are all alike, and the best list is polished before:
    small changes close the last seconds, in which the loads of the machine's parts differ.

    `chain`: a chain of the jobs; it has no plan afterwards. `first`: keys of lists to begin with, smallest first.
    `seed`: the same chain, keys and seed give the same lists.
    """

    def __init__(self, chain: Chain, first: Iterable[NDArray[np.float64]], seed: int) -> None:
        table = chain.ledger.table
        count = len(table.jobs)
        self._random = np.random.default_rng(seed)
        self._needs, self._most, project = project_of(chain)
        self._project, self._ahead = in_units(project, followers_of(table.links))
        self._back = turned(self._ahead, self._project.jobs[:, kernels.DURATION])
        self._desk = desk_of(self._project)
        self._lists = lists_of(_LISTS, count, self._random)
        for row, keys in zip(range(_LISTS), first, strict=False):
            self._lists.next_keys[row] = keys
        self._row, self._is_first = 0, True
        self._is_linked = table.is_linked
        #: The generations since the best list of the last beginning was found.
        self._idle = 0
        #: The lists that were bred since the last beginning, and those that are still to be polished; and how many of
        #: these there are for each of the first.
        self._bred, self._polishing, self._polished = 0, 0, 0 if self._is_linked else _POLISHED
        #: The number of generations that are complete.
        self.generations = 0
        #: The number of beginnings that are over; of those that ended with the best value; and this value.
        self._over, self._alike, self._best = 0, 0, np.inf

    def skeletons(self) -> Skeletons | None:
        """Return a search for the schedule of the widest jobs on the scarcest sum; None where more than the last end
        has a price, where jobs wait for each other, and where nothing is scarce.
        """
        project, costs = self._project, self._project.costs
        has_costs = costs[:, [timeline_kernels.RATE, *range(timeline_kernels.FIRST_KINK, costs.shape[1], 2)]].any()
        if has_costs or len(self._ahead.pairs) or not len(self._most):
            return None
        earliest, durations = project.jobs[:, kernels.EARLIEST].copy(), project.jobs[:, kernels.DURATION].copy()
        scarcest = int(np.argmax(durations @ self._needs / self._most))
        needs, most = self._needs[:, scarcest].copy(), int(self._most[scarcest])
        return Skeletons(needs, durations, earliest, most, int(self._random.integers(1 << 32)))

    def sow(self, skeleton: Skeleton) -> None:
        """Begin anew with lists that have a schedule of wide jobs before all others: those of it that may change places
        in any order, and then the others, most of them by their area.
        """
        jobs, fixed, movable = self._project.jobs, skeleton.jobs, skeleton.jobs[skeleton.is_movable]
        areas = np.log1p(self._needs.max(axis=1) * jobs[:, kernels.DURATION].astype(np.float64))
        keys = self._lists.next_keys
        spread, draws = np.linspace(0.0, 1.0, len(keys))[:, None], self._random.random((2, *keys.shape))
        keys[:] = 2.0 + areas.max() - areas + 2.0 * spread * draws[0]
        keys[:, fixed] = skeleton.starts / (1.0 + skeleton.starts.max())
        keys[:, movable] = 1.0 + draws[1][:, movable]
        self._row, self._is_first, self._polishing, self._bred = 0, True, 0, 0

    @property
    def is_exhausted(self) -> bool:
        """Whether most beginnings have ended with the best value, where jobs wait for each other."""
        return self._is_linked and self._alike >= max(_ALIKE, _ALIKE_PART * self._over)

    @property
    def best_value(self) -> float:
        """The value of the best list so far, if sums are all there is; infinite if there is none."""
        return float(self._lists.best_value[0])

    @property
    def best_starts(self) -> NDArray[np.int64]:
        """The starts of the best list so far (s after `now`)."""
        return self._lists.best * self._project.unit

    def run(self, lists: int) -> None:
        """Make the next `lists` lists."""
        of_all = self._ahead, self._back, self._project, self._desk, self._lists
        while lists > 0:
            if self._polishing:
                count = min(lists, self._polishing)
                kernels.polish(count, *of_all)
                self._polishing -= count
                lists -= count
                if not self._polishing:
                    self._begin_anew()
                continue
            last = min(self._row + lists, _LISTS)
            if self._is_first:
                kernels.begin(self._row, last, *of_all)
            else:
                kernels.breed(self._row, last, _ELITE, *of_all)
            lists -= last - self._row
            self._row = last % _LISTS
            if self._row == 0:
                self._next_generation()

    def _next_generation(self) -> None:
        """Select the best lists; if these will not get better, polish the first one, and begin with others."""
        before, values = self._lists.values[0], self._lists.values
        kernels.select(self._is_linked, self._lists)
        self.generations += 1
        self._bred += _LISTS
        self._idle = 0 if self._is_first or values[0] < before else self._idle + 1
        self._is_first = self._idle == _IDLE if self._is_linked else values[0] == values[_ELITE - 1]
        if self._is_first:
            self._polishing, self._bred = self._polished * self._bred, 0
            if not self._polishing:
                self._begin_anew()

    def _begin_anew(self) -> None:
        """Give the next generation, the first of others, random keys."""
        if self.best_value < self._best:
            self._best, self._alike = self.best_value, 0
        self._over += 1
        self._alike += int(self._lists.values[0] < self._best + self._project.price[0] * self._project.unit[0])
        self._lists.next_keys[:] = self._random.random(self._lists.next_keys.shape)


def lists_of(size: int, count: int, random: np.random.Generator) -> kernels.Lists:
    """Return a generation of random lists of so many jobs."""
    return kernels.Lists(
        keys=np.zeros((size, count)),
        values=np.zeros(size),
        next_keys=random.random((size, count)),
        next_values=np.zeros(size),
        order=np.zeros(size, dtype=np.int64),
        best=np.zeros(count, dtype=np.int64),
        best_value=np.full(1, np.inf),
        random=random.integers(1, 2**63, size=1, dtype=np.uint64),
    )


def project_of(chain: Chain) -> tuple[Ints, Ints, kernels.Project]:
    """Return the jobs of a chain, and the sums that they share; the chain has no plan afterwards.

    The first are int64 (jobs, sums) and (sums,): what each job takes of each sum, and the most that is free of it.
    """
    chain.clear()
    table, timeline = chain.ledger.table, chain.ledger.timeline
    times = timeline.breakpoints()
    free = np.array([timeline.free_at(time)[1] for time in times.tolist()], dtype=np.int64)
    _, tables, _ = timeline.kernel_arguments()
    needs = np.zeros((len(table.jobs), free.shape[1]), dtype=np.int64)
    for job, demand in enumerate(table.jobs[:, 0].tolist()):
        first, last = tables.demands[demand : demand + 2, timeline_kernels.D.SYS]
        np.maximum.at(needs[job], tables.sysreq[first:last, 0], tables.sysreq[first:last, 1])
    is_scarce = needs.sum(axis=0) > free.min(axis=0)
    needs, free = needs[:, is_scarce], free[:, is_scarce]
    (packed_needs, packed_free), guards = _packed(needs, free.clip(min=0))
    project = kernels.Project(
        jobs=table.jobs[:, 1:].copy(),
        needs=packed_needs,
        guards=guards,
        costs=chain.costs,
        price=np.array([chain.end_price]),
        unit=np.ones(1, dtype=np.int64),
        times=np.asarray(times, dtype=np.int64),
        free=packed_free | guards,
    )
    return needs, free.max(axis=0), project


def _packed(*amounts: Ints) -> tuple[list[Ints], Ints]:
    """Pack the columns of some amounts into as few words as hold them in this order; return them, and the guards.

    A column has the bits of its largest amount in any of them, and a guard; the sign of a word is not used.
    """
    steps = np.gcd.reduce(np.concatenate(amounts), axis=0).clip(min=1)
    most = np.max([(rows // steps).max(axis=0) for rows in amounts], axis=0)
    guards, places, used = list[int](), list[tuple[int, int]](), _BITS
    for bits in (one.bit_length() + 1 for one in most.tolist()):
        if used + bits > _BITS:
            guards, used = [*guards, 0], 0
        places.append((len(guards) - 1, used))
        used += bits
        guards[-1] |= 1 << (used - 1)
    packed = [np.zeros((len(rows), len(guards)), dtype=np.int64) for rows in amounts]
    for rows, words in zip(amounts, packed, strict=True):
        for (word, shift), column in zip(places, (rows // steps).T, strict=True):
            words[:, word] |= column << shift
    return packed, np.array(guards, dtype=np.int64)


def followers_of(links: Links) -> kernels.Followers:
    """Return who follows whom with time running forwards; longest delays are left out."""
    counts = np.diff(links.after_of)[links.leads[:, 0]]
    first = links.after_of[links.leads[:, 0]] - np.cumsum(counts) + counts
    jobs = np.repeat(np.repeat(np.arange(len(links.leads_of) - 1), np.diff(links.leads_of)), counts)
    after = links.after[np.arange(counts.sum()) + np.repeat(first, counts)]
    return _followers(len(links.leads_of) - 1, jobs, after[:, 0], after[:, 1] + np.repeat(links.leads[:, 1], counts))


def turned(ahead: kernels.Followers, durations: Ints) -> kernels.Followers:
    """Return who follows whom with time running backwards: each job those that follow it, until they end."""
    jobs, others = np.repeat(np.arange(len(durations)), np.diff(ahead.of)), ahead.pairs[:, 0]
    return _followers(len(durations), others, jobs, ahead.pairs[:, 1] + durations[others] - durations[jobs])


def _followers(count: int, jobs: Ints, others: Ints, seconds: Ints) -> kernels.Followers:
    first, pairs = grouped(np.stack([jobs, others, seconds], axis=1), count)
    return kernels.Followers(first, pairs, np.bincount(others, minlength=count))


def in_units(project: kernels.Project, ahead: kernels.Followers) -> tuple[kernels.Project, kernels.Followers]:
    """Return a project, and who follows whom, in the largest unit of time that all its seconds are whole numbers of,
    with a slot for each unit; both as they are, where jobs run for many of these.
    """
    jobs, times, pairs = project.jobs, project.times, ahead.pairs
    earliest, durations = jobs[:, kernels.EARLIEST], jobs[:, kernels.DURATION]
    unit = int(np.gcd.reduce(np.concatenate([earliest, durations, times, pairs[:, 1]])))
    runs = durations.copy()
    np.maximum.at(runs, np.repeat(np.arange(len(jobs)), np.diff(ahead.of)), pairs[:, 1])
    slots = 1 + float(times[-1] + earliest.max() + runs.sum(dtype=np.float64)) / unit
    if slots > _UNITS * len(jobs):
        return project, ahead
    free = np.repeat(project.free, np.diff(times // unit, append=int(slots)), axis=0)
    one = project._replace(jobs=jobs // unit, unit=np.full(1, unit), times=times[:0], free=free)
    return one, ahead._replace(pairs=pairs // (1, unit))


def desk_of(project: kernels.Project) -> kernels.Desk:
    """Return room for decoding the lists of a project."""
    count, (slots, words) = len(project.jobs), project.free.shape
    most = slots + (2 * count + 2 if len(project.times) else 0)
    return kernels.Desk(
        profile=count_kernels.Profile(
            size=np.zeros(1, dtype=np.int64),
            times=np.zeros(most, dtype=np.int64),
            free=np.zeros((most, words), dtype=np.int64),
        ),
        awaited=np.zeros(count, dtype=np.int64),
        earliest=np.zeros(count, dtype=np.int64),
        ready=np.zeros(count, dtype=np.int64),
        ready_keys=np.zeros(count),
        keys=np.zeros(count),
        mirrored=np.zeros(count, dtype=np.int64),
        moved=np.zeros(count, dtype=np.int64),
        starts=np.zeros(count, dtype=np.int64),
    )
