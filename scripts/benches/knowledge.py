"""Simulate with knowledge that nobody has: true runtimes, the jobs that come in the next hour, and both.

The rule is Smith's list, made anew after each event: each job in turn gets a reservation on nodes. The jobs to come are
in the list too, where that makes all wait less than if they are behind it; they cannot start before they come. No job
is promised anything: limits would hide what is gained.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarking.measure import print_table, say
from benchmarking.windows import decision_workloads, known
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import Decision, News, Outlook, QueueRule, Scheduler, Site, Start, simulate, warm_up_simulation
from cpsched.lab.workloads import eurora_stream
from cpsched.rules import by_smith
from cpsched.rusv import NOWHERE, JobTable

HOUR = 3600
HEADER = ["workload", "jobs", "no knowledge, to WSPT+EASY", "true runtimes", "arrivals of the next hour", "both"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are")
    parser.add_argument("--only", default="", help="the workloads whose names begin so")
    parser.add_argument("--jobs", type=int, default=2000, help="so many jobs of each")


class _Listing:
    """Smith's list; mutable. `ahead`: how many seconds before they come it knows of jobs."""

    name = "list"

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead

    def begin(self, site: Site) -> None:
        """Make ready for a simulation."""
        self._table = JobTable([(demand, 0, site.latest(job), 1) for job, demand in enumerate(site.demand.tolist())])
        instance = site.instance
        place = {job.id: turn for turn, job in enumerate(by_smith(instance, site.jobs))}
        self._turn = np.array([place[job.id] for job in site.jobs], dtype=np.int64)
        self._weight = np.array([instance.weight(job) / instance.expected_wait(job) for job in site.jobs])

    def decide(self, site: Site, news: News) -> Decision:
        """Reserve for all jobs anew, and start those whose reservations begin now."""
        now, queue, table = news.now, site.queue, self._table
        coming = np.arange(*np.searchsorted(site.submit, [now, now + self._ahead], side="right"))
        apart = [part[np.argsort(self._turn[part])] for part in (queue, coming)]
        order = np.concatenate(apart)
        if len(coming):
            mixed = order[np.argsort(self._turn[order])]
            order = min(mixed, order, key=lambda listed: self._value(site, listed))
        self._reserve(site, order)
        starts = table.starts[queue]
        later = starts[starts > now]
        return Decision(
            starts=[Start(job, table.entries(job)) for job in queue[starts == now].tolist()],
            wake=int(later.min()) if len(later) else None,
        )

    def _value(self, site: Site, listed: NDArray[np.int64]) -> float:
        """Return the weighted sum of the starts of jobs that have reservations in this order."""
        self._reserve(site, listed)
        return float(self._weight[listed] @ self._table.starts[listed])

    def _reserve(self, site: Site, listed: NDArray[np.int64]) -> None:
        """Reserve for one job after the other."""
        table = self._table
        table.jobs[listed, 1] = np.maximum(site.now, site.submit[listed])
        table.jobs[listed, 3] = site.estimates(listed)
        table.starts[listed] = NOWHERE
        outlook = Outlook(site)
        outlook.follow(())
        outlook.timeline.plan(table, listed)


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warm_up_simulation()
    rows = [row_of(name, workload) for name, workload in workloads(options)]
    note = (
        "Weighted queue time / mean bounded slowdown / longest wait, relative to WSPT+EASY in the first column, and to "
        "the list without knowledge in the others."
    )
    print_table("Knowledge", HEADER, rows, note)


def workloads(options: argparse.Namespace) -> Iterator[tuple[str, Instance]]:
    """Yield the workloads of docs/decisions.md that are there."""
    if options.quick:
        yield "Eurora-like", eurora_stream(30, 1)
        return
    for name, (instance,) in decision_workloads(options.folder, (options.only,), (1,)):
        jobs = sorted(instance.jobs, key=lambda job: job.submit)
        yield name, replace(instance, jobs=tuple(jobs[: options.jobs]))


def row_of(name: str, workload: Instance) -> list[str]:
    """Return a row of the table."""
    usual = figures(workload, make_scheduler("wspt", {"backfill": "easy"}))
    listed, *others = (
        figures(known(workload) if knows_runtimes else workload, _Listing(ahead))
        for ahead in (0, HOUR)
        for knows_runtimes in (False, True)
    )
    ratios = (listed / usual, *(other / listed for other in others))
    return [name, f"{len(workload.jobs):,}", *("/".join(f"{figure:.2f}" for figure in ratio) for ratio in ratios)]


def figures(workload: Instance, scheduler: QueueRule | Scheduler) -> NDArray[np.float64]:
    """Return the weighted queue time, the mean bounded slowdown and the longest wait (s) of a simulation."""
    history = simulate(workload, scheduler)
    runs = history.runs
    wait = np.where(runs.over, runs.start - runs.submit, 0)
    slowdown = np.where(runs.over, runs.bounded_slowdown, 1)
    say(f"{workload.name}: {scheduler.name} in {history.elapsed:.0f} s, longest wait {wait.max() / HOUR:.1f} h")
    return np.maximum([(wait / runs.expected_wait).sum(), slowdown.mean(), wait.max()], 1e-9)
