"""Malleable jobs while a simulation runs: they begin on shares, change them, and end when their work is done."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Instance, Job, Malleability, Outage, RuntimeModel, modes, rate_on
from cpsched.errors import EngineError
from cpsched.sim import Change, Decision, News, Outlook, Site, Start
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.played import played

MODELS = st.builds(
    Malleability,
    shares=st.sampled_from([(0.5,), (0.5, 0.25), (0.7, 0.3)]),
    model=st.sampled_from(RuntimeModel),
)


class Whim:
    """Starts who fits, in any of its modes, and changes who runs as the dice fall; it asks to be asked again and again.

    Knows nodes with cores only.
    """

    name = "whim"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def begin(self, site: Site) -> None:
        """Throw new dice."""
        self._dice = Random(self._seed)
        #: Of each job that runs, and of each that has run: when it changed, and to which rate.
        self.rates: dict[int, list[tuple[int, Fraction]]] = {}
        self._modes: dict[int, np.ndarray] = {}
        self._outlook = Outlook(site)

    def decide(self, site: Site, news: News) -> Decision:
        """Do anything that is allowed."""
        self._outlook.follow(news.gone)
        for job in news.gone:
            self._modes.pop(job, None)
        free = self._outlook.timeline.free_at(site.now)[0].tolist()
        changes, starts = [], []
        for job, before in self._modes.items():
            if site.jobs[job].malleability is not None and self._dice.random() < 0.5:
                after = self._drawn(site.jobs[job], len(before))
                if self._take(site, job, site.entries_of(job), before, after, free):
                    changes.append(Change(job, after))
        for job in site.queue.tolist():
            fit = site.fit_now(job)
            if fit is None:
                continue
            is_malleable = site.jobs[job].malleability is not None and self._dice.random() < 0.7
            chosen = (
                self._drawn(site.jobs[job], len(fit.entries)) if is_malleable else np.zeros(len(fit.entries), np.int8)
            )
            if self._take(site, job, fit.entries, None, chosen, free):
                starts.append(Start(job, fit.entries, chosen if is_malleable else None))
        return Decision(starts=starts, changes=changes, wake=site.now + self._dice.randint(1, 9))

    def _drawn(self, job: Job, count: int) -> np.ndarray:
        return np.array([self._dice.randrange(len(modes(job))) for _ in range(count)], dtype=np.int8)

    def _take(self, site, job, entries, before, after, free) -> bool:
        """Take what a job has after a change, and give back what it had, if there is room; note its rate then."""
        rows = [(node, count) for node, _, count in entries.tolist()]
        left = list(free)
        for chosen, sign in ((before, 1), (after, -1)):
            for (node, count), mode in zip(rows, [] if chosen is None else chosen.tolist(), strict=False):
                left[node] += sign * count * modes(site.jobs[job])[mode].request.chunks[0].resources["cores"]
        if min(left) < 0:
            return False
        free[:] = left
        self._modes[job] = after
        of_job = site.jobs[job]
        placed = site.columns.allocation_of(of_job.request, entries)
        held = [
            replace(part, resources=modes(of_job)[mode].request.chunks[0].taken(part.count))
            for part, mode in zip(placed, after.tolist(), strict=True)
        ]
        rate = Fraction(1) if of_job.malleability is None else rate_on(of_job.request, of_job.malleability, held)
        if before is None:
            self.rates[job] = []
        self.rates[job].append((site.now, rate))
        return True


@st.composite
def malleable_workloads(draw: st.DrawFn) -> Instance:
    """Draw a workload of jobs of one kind of chunks, most of them malleable, on a few nodes that may fail."""
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        walltime = draw(st.integers(1, 20))
        shape = chunk(draw(st.integers(1, 3)), cores=draw(st.integers(1, 7)))
        job = waiting(
            f"j{number}", walltime, shape, submit=draw(st.integers(0, 30)), malleability=draw(st.none() | MODELS)
        )
        jobs.append(replace(job, runtime=draw(st.none() | st.integers(1, 25))))
    failing = draw(st.sampled_from([(), (), (Outage(nodes=("a",), start=draw(st.integers(1, 40)), end=60),)]))
    return replace(window([nodes("a b c", cores=7)], *jobs), outages=failing)


@given(malleable_workloads(), st.integers(0, 1000), st.booleans())
def test_jobs_end_when_their_work_is_done(instance: Instance, seed: int, predicts: bool) -> None:
    """However shares change, a job ends in the second in which its last attempt has done its work, as the judge says."""
    whim = Whim(seed)
    history = played(instance, whim, predicts=predicts)
    runs = history.runs
    order = sorted(range(len(runs.ids)), key=lambda place: (runs.submit[place], place))
    for index, place in enumerate(order):
        job, start = instance.jobs[place], int(runs.start[place])
        assert start >= 0
        seconds = job.walltime if job.runtime is None else min(job.runtime, job.walltime)
        rates, done, now = dict(whim.rates[index]), Fraction(0), start
        rate = rates[start]
        while done < seconds:
            rate = rates.get(now, rate)
            done += rate
            now += 1
        assert runs.end[place] == now
