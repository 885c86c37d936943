"""Schedulers whose thinking takes time: jobs come and end, and nodes fail, between a decision and its effect."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Outage, modes
from cpsched.lab.sim import Change, Decision, News, Site, Start
from cpsched.metrics import Ending
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.charged import Clock, charged
from tests.sim.test_shares import malleable_workloads
from tests.sizes import examples


class Slow:
    """Starts and changes whom the dice choose, where there is room when it is asked, and thinks as long as they say.

    Knows nodes with seven cores, and nothing of what became of its last decision but what it sees.
    """

    name = "slow"

    def __init__(self, seed: int, clock: Clock) -> None:
        self._seed, self._clock = seed, clock

    def begin(self, site: Site) -> None:
        """Throw new dice."""
        self._dice = Random(self._seed)

    def decide(self, site: Site, news: News) -> Decision:
        """Do anything that is possible at this second."""
        self._clock.seconds += self._dice.choice([0, 0.4, 1, 2, 5, 9])
        running = site.running.tolist()
        free = np.full(len(site.columns.node_names), 7)
        free[site.nodes_out] = 0
        for job in running:
            free -= _cores(site, job, site.entries_of(job), site.modes_of(job))
        changes, starts = [], []
        for job in running:
            entries, before = site.entries_of(job), site.modes_of(job)
            if site.jobs[job].malleability is None or self._dice.random() < 0.5:
                continue
            after = self._drawn(site, job, len(before))
            left = free + _cores(site, job, entries, before) - _cores(site, job, entries, after)
            if left.min() >= 0:
                free = left
                changes.append(Change(job, after))
        for job in site.queue.tolist():
            fit = site.fit_now(job)
            if fit is None:
                continue
            chosen = self._drawn(site, job, len(fit.entries))
            left = free - _cores(site, job, fit.entries, chosen)
            if left.min() >= 0:
                free = left
                starts.append(Start(job, fit.entries, chosen if site.jobs[job].malleability else None))
        return Decision(starts=starts, changes=changes, wake=site.now + self._dice.randint(1, 9))

    def _drawn(self, site: Site, job: int, count: int) -> np.ndarray:
        """Draw one of a job's modes for each of its entries."""
        return np.array([self._dice.randrange(len(modes(site.jobs[job]))) for _ in range(count)], dtype=np.int8)


def _cores(site: Site, job: int, entries: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return how many cores a job has on each node in some modes."""
    held = np.zeros(len(site.columns.node_names), dtype=np.int64)
    for (node, _, count), mode in zip(entries.tolist(), chosen.tolist(), strict=True):
        held[node] += count * modes(site.jobs[job])[mode].request.chunks[0].resources["cores"]
    return held


@examples(150)
@given(malleable_workloads(), st.integers(0, 10_000))
def test_what_has_happened_meanwhile_is_never_overbooked(instance: Instance, seed: int) -> None:
    """Whoever has ended, come, or lost a node while it was thought: nothing is taken twice, and all jobs run."""
    clock = Clock()
    history = charged(instance, Slow(seed, clock), clock)
    assert (history.runs.ending >= Ending.COMPLETED).all()


class Said:
    """Says what it was given, one decision after the other, and takes four seconds for each."""

    name = "said"

    def __init__(self, clock: Clock, *decisions: Decision) -> None:
        self._clock, self._decisions = clock, decisions

    def begin(self, site: Site) -> None:
        """Begin with the first decision."""
        self._left = list(self._decisions)

    def decide(self, site: Site, news: News) -> Decision:
        """Say the next one."""
        self._clock.seconds += 4
        return self._left.pop(0) if self._left else Decision()


def begins(job: int, *, node: int) -> Start:
    """Return the start of a job with its chunk on a node."""
    return Start(job, np.array([[node, 0, 1]], dtype=np.int32))


def one_core_each(count: int, **options: Any) -> Instance:
    """Return a machine of two nodes of a core, and jobs of 10 s on one core."""
    jobs = [waiting(f"j{number}", 10, chunk(cores=1)) for number in range(count)]
    return window([nodes("a b", cores=1)], *jobs, **options)


def test_two_who_are_sent_to_one_core_do_not_share_it() -> None:
    """A scheduler that means to start two jobs on one core, and one of them twice, starts one of them."""
    clock = Clock()
    first, second = begins(0, node=0), begins(1, node=0)
    history = charged(one_core_each(2), Said(clock, Decision(starts=(first, second, first))), clock)
    assert history.runs.start.tolist() == [4, -1]
    assert history.runs.attempts.tolist() == [1, 0]


def test_a_node_that_breaks_meanwhile_takes_no_job() -> None:
    """Decided at 0 to begin at 4, when a has been down since 2: the job on a waits on, the other one begins."""
    clock = Clock()
    decision = Decision(starts=[begins(0, node=0), begins(1, node=1)])
    again = Decision(starts=[begins(0, node=0)])
    instance = one_core_each(2, outages=(Outage(nodes=("a",), start=2, end=6),))
    history = charged(instance, Said(clock, decision, Decision(), again), clock)
    assert history.runs.start.tolist() == [12, 4]
