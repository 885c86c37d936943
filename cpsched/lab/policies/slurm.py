"""Slurm's scheduling of one partition: a quick pass at each event, and backfilling in cycles.

As its Scheduling Configuration Guide and slurm.conf(5) tell (release 24.05), with the defaults of ``sched/backfill``:
at each event jobs start in strict order of priority, up to the first one that cannot. Every ``bf_interval`` seconds at
the most, if something has changed, a cycle goes through the first ``bf_max_job_test`` jobs: one that can start without
touching a reservation starts, any other one gets a reservation, for this cycle only, unless it would start more than
``bf_window`` from now. "For performance reasons, the backfill scheduler reserves whole nodes for jobs, even if jobs
don't require whole nodes."

Priority is that of the job, else of its queue, else none: then the order of submission rules, as with
``priority/basic``, and with ``priority/multifactor``, whose weights are all 0 by default (`priorities`). Queues are
not partitions here: all share the nodes, and one order. The seconds that a cycle takes are those of ``charge_overhead``
in a simulation (no ``bf_max_time``, no ``bf_yield_interval``); the quick pass has no ``default_queue_depth``, and
follows a submission at once (``batch_sched_delay`` 0). Whole nodes are reserved without licenses (no ``bf_licenses``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, Preemptible, StopKind
from cpsched.lab.policies import slurm_kernels
from cpsched.lab.sim import Decision, News, Outlook, Site, Start
from cpsched.rusv import Timeline, kernels

#: What a user has who is not listed: as one that has had exactly its share.
_EVEN = 0.5


def priorities(site: Site, jobs: NDArray[np.int64], slurm: "Slurm") -> NDArray[np.int64]:
    """Return the priority of each of some jobs at this second, a whole number as in ``priority/multifactor``: age, fair
    share and size, each a factor between 0 and 1 with a weight (slurm.conf(5)).

    They are the age as a part of ``PriorityMaxAge``; the size as a part of the machine's cores
    (``PriorityFavorSmall=NO``); and 2^(-usage / share) of Slurm's classic fair share, with the usage that decays in the
    simulation, and 1/2 for users without a share. A priority of the job or its queue goes before: it is a partition's
    tier. Jobs have their priorities anew every ``PriorityCalcPeriod``, and when they come.
    """
    age = np.clip((site.now - site.submit[jobs]) / slurm.max_age, 0.0, 1.0)
    size = site.cores[jobs] / max(1, site.instance.cluster.totals.get("cores", 0))
    found = slurm.weight_age * age + slurm.weight_size * size
    if slurm.weight_fair_share:
        found += slurm.weight_fair_share * _fair_share(site, jobs)
    whole: NDArray[np.int64] = np.floor(found).astype(np.int64)
    return whole


def _fair_share(site: Site, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the fair-share factor of the user of each of some jobs, in its account."""
    shares = site.fair_share
    if shares is None:
        return np.full(len(jobs), _EVEN)
    factors = {key: 2.0 ** -float(one.usage / one.share) if one.share else 0.0 for key, one in shares.standings.items()}
    chosen = [site.jobs[job] for job in jobs.tolist()]
    return np.array([factors.get((job.user, job.project), _EVEN) for job in chosen])


@dataclass(kw_only=True, eq=False)
class Slurm:
    """The scheduler, see the module, with the ``SchedulerParameters`` of a slurm.conf in their own units; mutable.

    Raises `ValueError` if one is less than 1, or a weight less than 0.
    """

    name: str = field(default="slurm", init=False)
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
    #: ``PreemptMode``: how all jobs are stopped that others may stop, small ones first (``partition_prio`` by queues,
    #: ``qos`` by priorities). ``own``: each as it says itself, and those first that lose least.
    preempt_mode: Literal["own", "requeue", "suspend"] = "own"

    def __post_init__(self) -> None:
        for name in ("bf_interval", "bf_window", "bf_resolution", "bf_max_job_test", "max_age", "calc_period"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expected {name} of 1 or more, got {getattr(self, name)}")
        for name in ("weight_age", "weight_fair_share", "weight_size"):
            if getattr(self, name) < 0:
                raise ValueError(f"Expected {name} of 0 or more, got {getattr(self, name)}")
        #: Whether usage changes the order, and whether anything but the tiers does.
        self.reads_shares = self.weight_fair_share > 0
        self._has_factors = bool(self.weight_age or self.weight_fair_share or self.weight_size)

    def prepared(self, instance: Instance) -> Instance:
        """Return a workload in which all jobs that others may stop are stopped as by ``PreemptMode``."""
        if self.preempt_mode == "own":
            return instance
        way, jobs = Preemptible(by=StopKind(self.preempt_mode)), list[Job]()
        kinds = instance.kinds()
        for job in instance.jobs:
            marked = replace(job, preemptible=way)
            is_bound = job.deadline is not None or job.start_at is not None or job.reservation is not None
            is_stopped = any(instance.may_stop(other, marked) for other in kinds)
            can_be = not (is_bound or job.changes or job.alternatives)
            jobs.append(marked if is_stopped and can_be else replace(job, preemptible=None))
        return replace(instance, jobs=tuple(jobs))

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._outlook = Outlook(site)
        self._demands = site.demand.astype(np.int64)
        self._estimates = np.array([site.estimate(job) for job in range(len(site.jobs))], dtype=np.int64)
        self._tiers = site.priority
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
        for job in (*news.arrived, *news.gone):
            self._estimates[job] = site.estimate(job)
        self._outlook.follow(news.gone)
        queue = self._ordered(site, news)
        starts = list(self._in_order(queue, now))
        if now < self._next_cycle:
            return Decision(starts=starts, wake=self._next_cycle)
        backfilled = self._cycle(queue[len(starts) :][: self.bf_max_job_test], now)
        self._next_cycle = now + self.bf_interval
        return Decision(starts=starts + backfilled, wake=self._next_cycle if backfilled else None)

    def _ordered(self, site: Site, news: News) -> NDArray[np.int64]:
        """Return the waiting jobs in order; of jobs that have come, and now and then of all, after new priorities."""
        queue = site.queue
        if not self._has_factors:
            return site.by_priority
        is_due = news.now >= self._next_priorities
        new = queue if is_due else np.array(news.arrived, dtype=np.int64)
        if is_due:
            self._next_priorities = news.now + self.calc_period
        if len(new):
            self._priority[new] = priorities(site, new, self)
        return queue[np.lexsort((-self._priority[queue], -self._tiers[queue]))]

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
        by_nodes, latest = self.reserves == "nodes", now + 60 * self.bf_window
        self._memory[:, 0, 0] = 0
        requests = slurm_kernels.Requests(self._demands, self._estimates, self._memory)
        place = 0
        while place < len(queue):
            code, place, count = slurm_kernels.reserve(
                *(queue, place, now, latest, self.bf_resolution, by_nodes), *(requests, *timeline.kernel_arguments())
            )
            if code == kernels.R.GROW_STATE:
                timeline.grow()
            elif code == slurm_kernels.STARTS:
                job = int(queue[place])
                start = Start(job, timeline.entries_found(count))
                end = now + int(self._estimates[job])
                timeline.book(timeline.booking_of(int(self._demands[job]), start.entries, now, end))
                yield start
                place += 1
