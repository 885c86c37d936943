"""Conservative backfilling, on-line (OCCS-52): each arriving job gets a reservation, which never gets later.

Mu'alem and Feitelson, TPDS 2001: a job is reserved the earliest place beside all that is reserved already, and at each
event the reservations are compressed: one after the other, each moves up if it can.
"""

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.sim import Decision, News, Outlook, Scheduler, Site, Start
from cpsched.rusv import FOREVER, NOWHERE, Compression, EqualNodes, JobTable, count_kernels


class ConservativeOnNodes:
    """Every job has a reservation on concrete nodes from its submission on, which it keeps, or an earlier one.

    A job may wait here where enough nodes are free at each moment, but never the same ones for long enough.

    Jobs that arrive in the same second are served by priority, and reservations are compressed by priority, then by
    submission. Reservations assume estimates that are upper bounds, and nodes that do not fail. When an estimate is
    exceeded, a node fails, or a decision takes effect late, all are made anew, in the same order.

    `depth`: how many of the queue move up as far as they can at each event; those behind move only if they can start at
    once, for most of a long queue would move whenever a job ends early, again and again. 0: none but those; None: all.
    Raises `ValueError` if the depth is negative.
    """

    name = "conservative_on_nodes"

    def __init__(self, depth: int | None = None) -> None:
        if depth is not None and depth < 0:
            raise ValueError(f"Expected a depth of 0 or more, got {depth}")
        self._depth = 1 << 40 if depth is None else depth

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._site = site
        #: The reservations of waiting jobs: times and nodes.
        self._table = JobTable([(demand, 0, site.latest(job), 1) for job, demand in enumerate(site.demand.tolist())])
        #: The future free resources with the reservations booked, and the compression of these.
        self._plan: tuple[Outlook, Compression] | None = None

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        now, queue, table = news.now, site.by_priority, self._table
        table.jobs[queue, 1] = now
        outlook = self._follow(queue, news)
        starts = table.starts[queue]
        unplanned = queue[starts == NOWHERE]
        if len(unplanned):
            table.jobs[unplanned, 3] = [site.estimate(job) for job in unplanned.tolist()]
            outlook.timeline.plan(table, unplanned)
            starts = table.starts[queue]
        later = starts[starts > now]
        return Decision(
            starts=[self._start(job, now, outlook) for job in queue[starts == now].tolist()],
            wake=int(later.min()) if len(later) else None,
        )

    def _follow(self, queue: NDArray[np.int64], news: News) -> Outlook:
        """Return the future free resources; reservations are booked, and compressed if they still hold."""
        table = self._table
        table.starts[list(news.gone)] = NOWHERE
        is_void = bool((table.starts[list(news.expired)] != NOWHERE).any())
        table.starts[list(news.expired)] = NOWHERE
        if self._plan is not None and not is_void:
            outlook, compression = self._plan
            changes = outlook.follow(news.gone)
            starts = table.starts[queue]
            has_place = starts != NOWHERE
            is_missed = np.count_nonzero(starts >= news.now) < np.count_nonzero(has_place)
            if not changes.has_taken and not is_missed:
                compression.give_back(changes.freed_nodes)
                compression.compress(queue[has_place], self._depth)
                return outlook
        table.starts[queue] = NOWHERE
        outlook = Outlook(self._site)
        outlook.follow(())
        self._plan = outlook, Compression(outlook.timeline, table)
        return outlook

    def _start(self, job: int, now: int, outlook: Outlook) -> Start:
        """Return the start of a job whose reservation begins now; it holds the reserved amounts from now on."""
        demand, entries = int(self._table.jobs[job, 0]), self._table.entries(job)
        end = now + int(self._table.jobs[job, 3])
        outlook.adopt(job, outlook.timeline.booking_of(demand, entries, now, end))
        return Start(job, entries)


class Conservative:
    """Every job has a reservation from its submission on, which it keeps, or an earlier one.

    Where nodes are interchangeable (see `EqualNodes`), reservations are counts, and a job gets its nodes when it
    starts. Where they are not, or amounts are set aside, or jobs have deadlines, each is on concrete nodes, as by
    `ConservativeOnNodes`.
    """

    name = "conservative"

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        is_empty = all(job.running is None for job in site.jobs)
        is_plain = not site.has_asides and all(site.latest(job) == FOREVER for job in range(len(site.jobs)))
        units = EqualNodes.of(site.columns.demands) if is_empty and is_plain else None
        self._rule: Scheduler = ConservativeOnNodes()
        if units is not None:
            self._rule = _ConservativeByCounts(units)
        self._rule.begin(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        return self._rule.decide(site, news)


class _ConservativeByCounts:
    """Reservations of numbers of units; mutable.

    Jobs that come in the same second are served by priority, and reservations are compressed by priority, then by
    submission. Reservations rest on estimates that are upper bounds, and on nodes that stay: when an estimate is
    exceeded, a node breaks or returns, or a decision took effect late, all are made anew, in the same order.
    """

    name = "conservative"

    def __init__(self, units: EqualNodes) -> None:
        self._units = units

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        count, columns = len(site.jobs), self._units.num_columns
        self._reserved = count_kernels.Reservations(
            demand=site.demand,
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
        #: The expected end of each running job in the profile; `NOWHERE` for all others.
        self._ends = np.full(count, NOWHERE, dtype=np.int64)
        #: So often had nodes broken or returned when the profile was made; -1: there is none.
        self._num_outages = -1
        #: Whether no job can move up without a release.
        self._is_settled = True

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        queue, starts = site.by_priority, self._reserved.starts
        arguments = (self._profile, self._units.asks, self._reserved, *self._scratch)
        if self._follow(site, news, queue):
            if not self._is_settled:
                self._is_settled = not count_kernels.compress(queue[starts[queue] != NOWHERE], *arguments)
        else:
            self._begin_anew(site, queue)
        unplanned = queue[starts[queue] == NOWHERE]
        if len(unplanned):
            self._reserved.seconds[unplanned] = [site.estimate(job) for job in unplanned.tolist()]
            count_kernels.plan(unplanned, *arguments)
        begins = starts[queue]
        later = begins[begins > news.now]
        return Decision(
            starts=self._started(site, queue[begins == news.now].tolist()),
            wake=int(later.min()) if len(later) else None,
        )

    def _follow(self, site: Site, news: News, queue: NDArray[np.int64]) -> bool:
        """Release the units of ended jobs; return whether the reservations still hold."""
        now, reserved = news.now, self._reserved
        if site.num_outages != self._num_outages:
            return False
        count_kernels.forget(now, self._profile)
        for job in news.gone:
            end, self._ends[job], reserved.starts[job] = int(self._ends[job]), NOWHERE, NOWHERE
            if end > now:
                count_kernels.shift(now, end, reserved.takes[job], 1, self._profile)
                self._is_settled = False
        begins = reserved.starts[queue]
        is_missed = bool(((begins != NOWHERE) & (begins < now)).any())
        return not is_missed and bool((self._ends[site.running] == site.ends).all())

    def _begin_anew(self, site: Site, queue: NDArray[np.int64]) -> None:
        """Forget all reservations, and look at what is free from now on."""
        reserved, profile, running = self._reserved, self._profile, site.running
        reserved.starts[queue], self._ends[:] = NOWHERE, NOWHERE
        self._ends[running] = site.ends
        profile.size[0], profile.times[0] = 1, site.now
        profile.free[0] = self._units.free(site.free, site.free_sums)
        for job in running.tolist():
            reserved.takes[job] = self._units.takes(int(site.demand[job]), site.entries_of(job))
            count_kernels.shift(int(self._ends[job]), FOREVER, reserved.takes[job], 1, profile)
        self._num_outages, self._is_settled = site.num_outages, True

    def _started(self, site: Site, jobs: list[int]) -> list[Start]:
        """Return the starts of jobs whose reservations begin now, on nodes that are free."""
        if not jobs:
            return []
        free, starts = site.free, []
        for job in jobs:
            entries = self._units.place(int(site.demand[job]), self._reserved.takes[job], free)
            starts.append(Start(job, entries))
            self._ends[job] = site.now + self._reserved.seconds[job]
        return starts
