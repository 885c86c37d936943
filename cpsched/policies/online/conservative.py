"""Conservative backfilling, on-line (OCCS-52): whoever comes gets a reservation, which never gets later.

Mu'alem and Feitelson, TPDS 2001: a job is reserved the earliest place beside all that is reserved already, and when
somebody ends early, all are compressed: in the order of submission, each moves up if it can.
"""

from __future__ import annotations

from cpsched.rusv import FOREVER, NOWHERE, JobTable
from cpsched.sim import Decision, News, Outlook, Site, Start

__all__ = ["Conservative"]


class Conservative:
    """Every job has a reservation on concrete nodes from its submission on, which it keeps, or an earlier one.

    Reservations rest on estimates that are upper bounds, and on nodes that stay. When an estimate is exceeded, a node
    breaks, or a decision took effect late, all are made anew, in the order of submission. A job whose nodes are out has
    none.
    """

    name = "conservative"

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._site = site
        rows = [(demand, 0, FOREVER, 1) for demand in site.demand.tolist()]
        #: The reservations of those who wait: when, and where.
        self._table = JobTable(rows)
        self._outlook: Outlook | None = None
        #: Before which second something may be free that somebody has not seen.
        self._freed_until = 0

    def decide(self, site: Site, news: News) -> Decision:
        """Start those whose reservations begin now."""
        now, queue, table = news.now, site.queue, self._table
        table.jobs[queue, 1] = now
        outlook = self._follow(news)
        if self._freed_until > now:
            planned = queue[table.starts[queue] != NOWHERE]
            self._freed_until = outlook.timeline.compress(table, planned, self._freed_until)
        unplanned = queue[table.starts[queue] == NOWHERE]
        table.jobs[unplanned, 3] = [site.estimate(job) for job in unplanned.tolist()]
        outlook.timeline.plan(table, unplanned)
        starts = table.starts[queue]
        later = starts[starts > now]
        return Decision(
            starts=[self._start(job, now, outlook) for job in queue[starts == now].tolist()],
            wake=int(later.min()) if len(later) else None,
        )

    def _follow(self, news: News) -> Outlook:
        """Return what will be free, with the reservations booked, as far as they hold."""
        queue, table = self._site.queue, self._table
        table.starts[list(news.gone)] = NOWHERE
        if self._outlook is not None:
            changes = self._outlook.follow(news.gone)
            self._freed_until = max(self._freed_until, changes.freed_until)
            starts = table.starts[queue]
            if not changes.has_taken and not ((starts >= 0) & (starts < news.now)).any():
                return self._outlook
        table.starts[queue], self._freed_until = NOWHERE, 0
        self._outlook = Outlook(self._site)
        self._outlook.follow(())
        return self._outlook

    def _start(self, job: int, now: int, outlook: Outlook) -> Start:
        """Return the start of a job whose reservation begins now, which is what it holds from now on."""
        demand, entries = int(self._table.jobs[job, 0]), self._table.entries(job)
        end = now + int(self._table.jobs[job, 3])
        outlook.adopt(job, outlook.timeline.booking_of(demand, entries, now, end))
        return Start(job, entries)
