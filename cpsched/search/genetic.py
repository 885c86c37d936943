"""Projects: the end of the last job is what counts, and jobs may wait for each other. Their lists are bred by counts.

Insertion beside other jobs (`Chain`) rarely shortens a project, since many jobs must move at once. Whole lists are
decoded here, on sums over the nodes and on licences, which takes some microseconds for each job. On one node the sums
are all there is; elsewhere the starts found by them are only an order, which the chain decodes on the nodes. Where no
job waits for another, lists that begin with the shortest schedule of the widest jobs (`skeletons.py`) are bred, too.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import Links, count_kernels, mirrored
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import project_kernels as kernels
from cpsched.search.chain import Chain
from cpsched.search.skeletons import Skeleton, Skeletons

#: The number of lists of a generation, and how many of them are kept.
_LISTS, _ELITE = 100, 20
#: Where no job waits for another: so many times as many lists are polished as were bred until they were all alike.
_POLISHED = 4


class Breeding:
    """Lists of a project, which get better generation by generation; mutable. Its kernels release the GIL.

    When the best lists of a generation are all alike, others begin from new random keys. Where no job waits for another
    the best list is polished before: small changes close the last seconds, in which the loads of the machine's parts
    differ.

    `chain`: a chain of the jobs; it has no plan afterwards. `first`: keys of lists to begin with, smallest first.
    `seed`: the same chain, keys and seed give the same lists.
    """

    def __init__(self, chain: Chain, first: Iterable[NDArray[np.float64]], seed: int) -> None:
        table = chain.ledger.table
        count = len(table.jobs)
        self._random = np.random.default_rng(seed)
        self._ahead, self._back = table.links, mirrored(table.links, table.jobs[:, 3])
        self._project = project_of(chain)
        self._desk = desk_of(self._project, self._ahead)
        self._lists = lists_of(_LISTS, count, self._random)
        for row, keys in zip(range(_LISTS), first, strict=False):
            self._lists.next_keys[row] = keys
        self._row, self._is_first = 0, True
        #: The lists that were bred since the last beginning, and those that are still to be polished; and how many of
        #: these there are for each of the first.
        self._bred, self._polishing, self._polished = 0, 0, 0 if table.is_linked else _POLISHED
        #: The number of generations that are complete.
        self.generations = 0

    def skeletons(self) -> Skeletons | None:
        """Return a search for the schedule of the widest jobs on the scarcest sum; None where more than the last end
        has a price, where jobs wait for each other, and where nothing is scarce.
        """
        project, costs = self._project, self._project.costs
        has_costs = costs[:, [timeline_kernels.RATE, *range(timeline_kernels.FIRST_KINK, costs.shape[1], 2)]].any()
        if has_costs or self._ahead.waits_of[-1] or not project.needs.shape[1]:
            return None
        most, durations = project.free.max(axis=0), project.jobs[:, kernels.DURATION]
        scarcest = int(np.argmax(durations @ project.needs / most))
        needs, earliest = project.needs[:, scarcest].copy(), project.jobs[:, kernels.EARLIEST].copy()
        return Skeletons(needs, durations.copy(), earliest, int(most[scarcest]), int(self._random.integers(1 << 32)))

    def sow(self, skeleton: Skeleton) -> None:
        """Begin anew with lists that have a schedule of wide jobs before all others: those of it that may change places
        in any order, and then the others, most of them by their area.
        """
        jobs, fixed, movable = self._project.jobs, skeleton.jobs, skeleton.jobs[skeleton.is_movable]
        areas = np.log1p(self._project.needs.max(axis=1) * jobs[:, kernels.DURATION].astype(np.float64))
        keys = self._lists.next_keys
        spread, draws = np.linspace(0.0, 1.0, len(keys))[:, None], self._random.random((2, *keys.shape))
        keys[:] = 2.0 + areas.max() - areas + 2.0 * spread * draws[0]
        keys[:, fixed] = skeleton.starts / (1.0 + skeleton.starts.max())
        keys[:, movable] = 1.0 + draws[1][:, movable]
        self._row, self._is_first, self._polishing, self._bred = 0, True, 0, 0

    @property
    def best_value(self) -> float:
        """The value of the best list so far, if sums are all there is; infinite if there is none."""
        return float(self._lists.best_value[0])

    @property
    def best_starts(self) -> NDArray[np.int64]:
        """The starts of the best list so far (s after `now`)."""
        return self._lists.best

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
        """Select the best lists; if these are all alike, polish the first one, and begin with others."""
        kernels.select(self._lists)
        self.generations += 1
        self._bred += _LISTS
        self._is_first = self._lists.values[0] == self._lists.values[_ELITE - 1]
        if self._is_first:
            self._polishing, self._bred = self._polished * self._bred, 0
            if not self._polishing:
                self._begin_anew()

    def _begin_anew(self) -> None:
        """Give the next generation, the first of others, random keys."""
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


def project_of(chain: Chain) -> kernels.Project:
    """Return the jobs of a chain, and the sums that they share; the chain has no plan afterwards."""
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
    return kernels.Project(
        jobs=table.jobs[:, 1:].copy(),
        needs=np.ascontiguousarray(needs[:, is_scarce]),
        costs=chain.costs,
        price=np.array([chain.end_price]),
        times=np.asarray(times, dtype=np.int64),
        free=np.ascontiguousarray(free[:, is_scarce]),
    )


def desk_of(project: kernels.Project, links: Links) -> kernels.Desk:
    """Return room for decoding the lists of a project."""
    count, milestones, (slots, sums) = len(project.jobs), len(links.before_of) - 1, project.free.shape
    most = slots + 2 * count + 2
    return kernels.Desk(
        profile=count_kernels.Profile(
            size=np.zeros(1, dtype=np.int64),
            times=np.zeros(most, dtype=np.int64),
            free=np.zeros((most, sums), dtype=np.int64),
        ),
        missing=np.zeros(milestones, dtype=np.int64),
        passed=np.zeros(milestones, dtype=np.int64),
        closed=np.zeros(count, dtype=np.int64),
        ready=np.zeros(count, dtype=np.int64),
        keys=np.zeros(count),
        mirrored=np.zeros(count, dtype=np.int64),
        moved=np.zeros(count, dtype=np.int64),
        starts=np.zeros(count, dtype=np.int64),
    )
