"""The Maui scheduler (MAUI-1 to MAUI-10; Bode, Halstead, Kendall, Lei and Jackson, ALS 2000, and Maui's manual).

Begin with `Maui`. The parameters are in `params.py`, a cycle in `cycle.py`, the priorities in
`priority.py`; `short_pool.py` and `allocation_bank.py` are policies of their own.

Of what else the paper names (MAUI-10): weak nodes are filled first and the most powerful last by the mapping, which
goes by node weights; licenses are allocated together with nodes. Pre-staging, queries of meta-schedulers and job
efficiencies are not built.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cpsched.errors import EngineError
from cpsched.lab.policies.maui.allocation_bank import AllocationBank
from cpsched.lab.policies.maui.cycle import Cycle, Parts, Reservation
from cpsched.lab.policies.maui.params import Downtime, Exemption, MauiParams, made
from cpsched.lab.policies.maui.priority import Priorities
from cpsched.lab.policies.maui.short_pool import Closures, KeptNodes
from cpsched.lab.sim import Decision, News, Outlook, Site


class Maui:
    """The scheduler; mutable.

    It decides whenever a job has come or gone, a reservation begins, a downtime is over or working hours end. Maui
    itself looks every few seconds: priorities that change are seen at the next event. `params`: what the site has set.
    """

    name = "maui"

    def __init__(self, params: MauiParams = MauiParams()) -> None:  # noqa: B008 - frozen
        self.params = params

    def begin(self, site: Site) -> None:
        """Make ready for a simulation.

        Raises `EngineError` if a downtime is of nodes that are not there, or working hours have no date.
        """
        params = self.params
        outlook = Outlook(site)
        self._parts = Parts(
            params=params,
            outlook=outlook,
            priorities=Priorities(params, site.jobs, site.submit, site.walltime, site.cores, site.now),
            bank=None if params.bank is None else AllocationBank(params.bank),
            pool=None if params.shortpool is None else KeptNodes(params.shortpool, site, outlook),
        )
        self._closures = Closures(
            outlook, [(site.capacity_of(_nodes_of(site, one)), one.start, one.end) for one in params.downtimes]
        )
        #: The starts of the running jobs.
        self._running: dict[int, int] = {}
        #: The jobs that the last decision started.
        self._started: tuple[int, ...] = ()
        self._reservations: tuple[Reservation, ...] = ()
        #: Whether one of them has lapsed in the last cycle, so that there may be room where there was none.
        self._has_lapsed = False
        #: The first start that was ever reserved for a job; if walltimes hold, it does not start later.
        self.promised: dict[int, int] = {}
        for job in site.running.tolist():
            self._note_start(site, job, site.start_of(job))

    @property
    def bank(self) -> AllocationBank | None:
        """The accounts of the simulation, if there are any."""
        return self._parts.bank

    def decide(self, site: Site, news: News) -> Decision:
        """Go through one cycle."""
        self._catch_up(site, news)
        now, parts = news.now, self._parts
        changes = parts.outlook.follow(news.gone)
        self._closures.follow(now, changes)
        if parts.pool is not None:
            parts.pool.open(now)
        queue = site.queue
        order = queue[np.argsort(-parts.priorities.of(queue, now), kind="stable")]
        has_freed = self._has_lapsed or changes.freed_until > now
        before = [one for one in self._reservations if one.job not in news.expired]
        cycle = Cycle(site, parts, before, has_freed=has_freed, has_taken=changes.has_taken)
        cycle.run(order.tolist())
        self._has_lapsed = cycle.close()
        self._reservations = tuple(cycle.reservations)
        self._started = tuple(start.job for start in cycle.starts)
        for job in self._started:
            self._note_start(site, job, now)
        for reservation in self._reservations:
            self.promised.setdefault(reservation.job, reservation.start)
        return Decision(starts=tuple(cycle.starts), wake=self._next_look(site, now))

    def _next_look(self, site: Site, now: int) -> int | None:
        """Return the next time at which a job may start without an arrival or an end."""
        times = [reservation.start for reservation in self._reservations]
        times += [downtime.end for downtime in self.params.downtimes if downtime.end > now]
        if self._parts.pool is not None:
            ends = [now + site.estimate(job) for job in self._started]
            times += self._parts.pool.changes(now, [*site.ends.tolist(), *ends])
        return min(times, default=None)

    def _catch_up(self, site: Site, news: News) -> None:
        """Count what has been used, and settle what it has cost."""
        self._parts.priorities.advance(news.now)
        # jobs with one start begin by themselves
        for job in (*site.running.tolist(), *(job for job in news.gone if site.start_of(job) >= 0)):
            if job not in self._running:
                self._note_start(site, job, site.start_of(job))
        for job in news.gone:
            if job not in self._running:
                continue  # it has begun by itself, and its node broke, since the last call
            has_ended = site.start_of(job) >= 0  # or its node broke
            self._note_end(job, site.end_of(job) if has_ended else news.now)
        for job in self._started:
            if job in self._running and self._running[job] != site.start_of(job):
                # it could begin only when the decision had been charged for, or not at all
                self._note_end(job, self._running[job])
                if site.is_running(job):
                    self._note_start(site, job, site.start_of(job))
        self._started = ()

    def _note_start(self, site: Site, job: int, start: int) -> None:
        """Record the start of a job. The cost of a job that ran before the beginning is held from then on."""
        self._running[job] = start
        self._parts.priorities.begin(job, start)
        bank, qos = self._parts.bank, self._parts.priorities.qos[job]
        if bank is not None and not bank.holds(job) and Exemption.BANK not in qos.exempt:
            bank.hold(job, site.jobs[job].user, int(site.cores[job]), int(site.walltime[job]), qos.billing_rate)

    def _note_end(self, job: int, end: int) -> None:
        """Note that a job has ended, or was cut short."""
        start = self._running.pop(job)
        self._parts.priorities.end(job, end)
        if self._parts.bank is not None:
            self._parts.bank.settle(job, end - start)


def _nodes_of(site: Site, downtime: Downtime) -> list[int]:
    number = site.columns.node_number
    missing = [name for name in downtime.nodes or () if name not in number]
    if missing:
        raise EngineError(f"maui has a downtime of nodes that are not there: {', '.join(missing)}")
    return [number[name] for name in (number if downtime.nodes is None else downtime.nodes)]


def maui(
    reservation_depth: int = 1,
    backfill: bool = True,
    weights: Mapping[str, Any] | None = None,
    priorities: Mapping[str, Any] | None = None,
    fairshare: Mapping[str, Any] | None = None,
    qos: Mapping[str, Any] | None = None,
    downtimes: Sequence[Mapping[str, Any]] | None = None,
    shortpool: Mapping[str, Any] | None = None,
    bank: Mapping[str, Any] | None = None,
) -> Maui:
    """Return the scheduler, its parameters given as tables: those of `MauiParams`, and each a dataclass of its own.

    Raises `ValueError` if a table has an unknown name, or something is out of range.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    return Maui(made(MauiParams, given, "maui"))
