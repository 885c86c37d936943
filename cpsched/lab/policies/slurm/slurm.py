"""Slurm's scheduling of one partition: a quick pass at each event, and backfilling in cycles.

As its Scheduling Configuration Guide and slurm.conf(5) tell (release 24.05), with the defaults of ``sched/backfill``:
at each event jobs start in strict order of priority, up to the first one that cannot. Every ``bf_interval`` seconds at
the most, if something has changed, a cycle goes through the first ``bf_max_job_test`` jobs: one that can start without
touching a reservation starts, any other one gets a reservation, for this cycle only, unless it would start more than
``bf_window`` from now. "For performance reasons, the backfill scheduler reserves whole nodes for jobs, even if jobs
don't require whole nodes."

Priority is that of the job, else of its queue, else none: then the order of submission rules, as with
``priority/basic``, and with ``priority/multifactor``, whose weights are all 0 by default (`multifactor.py`). Queues are
not partitions here: all share the nodes, and one order. The seconds that a cycle takes are those of ``charge_overhead``
in a simulation (no ``bf_max_time``, no ``bf_yield_interval``); the quick pass has no ``default_queue_depth``, and
follows a submission at once (``batch_sched_delay`` 0). Whole nodes are reserved without licenses (no ``bf_licenses``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cpsched.lab.policies.ranking import ranks
from cpsched.lab.policies.slurm import multifactor, slurm_kernels
from cpsched.lab.sim import Decision, News, Outlook, Site, Start
from cpsched.rusv import Timeline, kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmParameters:
    """The ``SchedulerParameters`` of a slurm.conf, in their own units. Raises `ValueError` if one is less than 1, or a
    weight less than 0.
    """

    #: Seconds from one cycle to the next, at the least.
    bf_interval: int = 30
    #: The horizon of a cycle, in minutes.
    bf_window: int = 1440
    #: To how many seconds the times of reserved nodes are rounded, outwards.
    bf_resolution: int = 60
    #: The number of jobs that a cycle tries.
    bf_max_job_test: int = 500
    #: The reserved amounts: whole ``nodes``, as in Slurm; or only the ``chunks`` that a job asks for, without rounding.
    reserves: Literal["nodes", "chunks"] = "nodes"
    #: The weights and the periods of ``priority/multifactor``, in seconds.
    weight_age: int = 0
    weight_fair_share: int = 0
    weight_size: int = 0
    max_age: int = 604_800
    calc_period: int = 300

    def __post_init__(self) -> None:
        for name in ("bf_interval", "bf_window", "bf_resolution", "bf_max_job_test", "max_age", "calc_period"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expected {name} of 1 or more, got {getattr(self, name)}")
        for name in ("weight_age", "weight_fair_share", "weight_size"):
            if getattr(self, name) < 0:
                raise ValueError(f"Expected {name} of 0 or more, got {getattr(self, name)}")

    @property
    def has_factors(self) -> bool:
        """Whether priorities have several factors."""
        return bool(self.weight_age or self.weight_fair_share or self.weight_size)


class Slurm:
    """The scheduler, see the module."""

    name = "slurm"

    def __init__(self, parameters: SlurmParameters) -> None:
        self.parameters = parameters
        #: Whether usage changes the order.
        self.reads_shares = parameters.weight_fair_share > 0

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._outlook = Outlook(site)
        self._demands = site.demand.astype(np.int64)
        self._estimates = np.array([site.estimate(job) for job in range(len(site.jobs))], dtype=np.int64)
        self._rank = ranks(site)
        self._tiers = np.array([site.instance.priority(job) for job in site.jobs], dtype=np.int64)
        #: The priorities of ``priority/multifactor``, and the time at which all are calculated next.
        self._priority = np.zeros(len(site.jobs), dtype=np.int64)
        self._next_priorities = site.now
        #: The results of a cycle for each demand, see `slurm_kernels.reserve`.
        self._memory = np.zeros((len(site.columns.demands), 17, 3), dtype=np.int64)
        #: The earliest time of the next cycle.
        self._next_cycle = site.now

    def decide(self, site: Site, news: News) -> Decision:
        """Start jobs in order, and if it is time for that, others past them."""
        now = news.now
        for job in news.arrived:
            self._estimates[job] = site.estimate(job)
        self._outlook.follow(news.gone)
        queue = self._ordered(site, news)
        starts = list(self._in_order(queue, now))
        if now < self._next_cycle:
            return Decision(starts=starts, wake=self._next_cycle)
        backfilled = self._cycle(queue[len(starts) :][: self.parameters.bf_max_job_test], now)
        self._next_cycle = now + self.parameters.bf_interval
        return Decision(starts=starts + backfilled, wake=self._next_cycle if backfilled else None)

    def _ordered(self, site: Site, news: News) -> NDArray[np.int64]:
        """Return the waiting jobs in order; of jobs that have come, and now and then of all, after new priorities."""
        queue = site.queue
        if not self.parameters.has_factors:
            return queue[np.argsort(self._rank[queue])]
        is_due = news.now >= self._next_priorities
        new = queue if is_due else np.array(news.arrived, dtype=np.int64)
        if is_due:
            self._next_priorities = news.now + self.parameters.calc_period
        if len(new):
            self._priority[new] = multifactor.priorities(site, new, self.parameters)
        return queue[np.lexsort((queue, -self._priority[queue], -self._tiers[queue]))]

    def _in_order(self, queue: NDArray[np.int64], now: int) -> Iterator[Start]:
        """Start jobs from the front of the queue, up to the first one that does not fit."""
        for job in queue.tolist():
            fit = self._outlook.timeline.earliest_fit(
                int(self._demands[job]), earliest=now, latest=now, duration=int(self._estimates[job])
            )
            if fit is None:
                return
            start = Start(job, fit.entries)
            self._run(start, now)
            yield start

    def _run(self, start: Start, now: int) -> None:
        """Record that a job runs from now on."""
        timeline, end = self._outlook.timeline, now + int(self._estimates[start.job])
        booking = timeline.booking_of(int(self._demands[start.job]), start.entries, now, end)
        timeline.book(booking)
        self._outlook.adopt(start.job, booking)

    def _cycle(self, queue: NDArray[np.int64], now: int) -> list[Start]:
        """Start each job that fits beside the reservations of the jobs before it.

        No job starts behind the last one that fits without reservations, so reservations behind it are not made.
        """
        timeline = self._outlook.timeline
        last = slurm_kernels.last_that_fits(queue, now, self._demands, *timeline.kernel_arguments())
        if last < 0:
            return []
        mark = timeline.marked()
        starts = list(self._reserve(queue[: last + 1], now, timeline))
        timeline.back_to(mark)
        for start in starts:
            self._run(start, now)
        return starts

    def _reserve(self, queue: NDArray[np.int64], now: int, timeline: Timeline) -> Iterator[Start]:
        """Book reservations, and the jobs that start."""
        parameters = self.parameters
        by_nodes, latest = parameters.reserves == "nodes", now + 60 * parameters.bf_window
        self._memory[:, 0, 0] = 0
        requests = slurm_kernels.Requests(self._demands, self._estimates, self._memory)
        place = 0
        while place < len(queue):
            code, place, count = slurm_kernels.reserve(
                *(queue, place, now, latest, parameters.bf_resolution, by_nodes),
                *(requests, *timeline.kernel_arguments()),
            )
            if code == kernels.GROW_STATE:
                timeline.grow()
            elif code == slurm_kernels.STARTS:
                job = int(queue[place])
                start = Start(job, timeline.entries_found(count))
                end = now + int(self._estimates[job])
                timeline.book(timeline.booking_of(int(self._demands[job]), start.entries, now, end))
                yield start
                place += 1


def slurm(
    bf_interval: int = 30,
    bf_window: int = 1440,
    bf_resolution: int = 60,
    bf_max_job_test: int = 500,
    reserves: Literal["nodes", "chunks"] = "nodes",
    weight_age: int = 0,
    weight_fair_share: int = 0,
    weight_size: int = 0,
    max_age: int = 604_800,
    calc_period: int = 300,
) -> Slurm:
    """Return the scheduler, with the fields of `SlurmParameters`.

    Raises `ValueError` if one is less than 1, or a weight less than 0.
    """
    return Slurm(
        SlurmParameters(
            bf_interval=bf_interval,
            bf_window=bf_window,
            bf_resolution=bf_resolution,
            bf_max_job_test=bf_max_job_test,
            reserves=reserves,
            weight_age=weight_age,
            weight_fair_share=weight_fair_share,
            weight_size=weight_size,
            max_age=max_age,
            calc_period=calc_period,
        )
    )
