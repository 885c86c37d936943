"""Conservative backfilling on concrete nodes: a reservation is for nodes that are free in all of its time.

A job may wait here where enough nodes are free at each moment, but never the same ones for long enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.policies.ranking import ranks
from cpsched.lab.sim import Decision, News, Outlook, Site, Start
from cpsched.rusv import NOWHERE, Compression, JobTable


class ConservativeOnNodes:
    """Every job has a reservation on concrete nodes from its submission on, which it keeps, or an earlier one.

    Jobs that arrive in the same second are served by priority, and reservations are compressed by priority, then
    by submission. Reservations assume estimates that are upper bounds, and nodes that do not fail. When an estimate is
    exceeded, a node fails, or a decision takes effect late, all are made anew, in the same order. A job whose nodes
    are down has none.

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
        self._rank = ranks(site)
        #: Whether any job precedes one that was submitted earlier: if not, the queue is in order already.
        self._has_priorities = bool((np.diff(self._rank) < 0).any())
        #: The reservations of waiting jobs: times and nodes.
        self._table = JobTable([(demand, 0, site.latest(job), 1) for job, demand in enumerate(site.demand.tolist())])
        #: The future free resources with the reservations booked, and the compression of these.
        self._plan: tuple[Outlook, Compression] | None = None

    def decide(self, site: Site, news: News) -> Decision:
        """Start the jobs whose reservations begin now."""
        now, queue, table = news.now, site.queue, self._table
        if self._has_priorities:
            queue = queue[np.argsort(self._rank[queue])]
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
