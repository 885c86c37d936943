"""Malleable jobs while a simulation runs: they begin on shares, change them, and end when their work is done."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    AdmitCondition,
    Amounts,
    Instance,
    Job,
    Malleability,
    Outage,
    RuntimeModel,
    WaitingReason,
    modes,
    rate_on,
)
from cpsched.errors import EngineError
from cpsched.lab.sim import BackfillRule, Change, Decision, News, Outlook, Prediction, QueueRule, Site, Start
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.sim.played import played
from tests.sizes import examples

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

    def _take(self, site: Any, job: int, entries: Any, before: Any, after: Any, free: Any) -> bool:
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
        assert rate is not None
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


@examples(60)
@given(malleable_workloads(), st.integers(0, 1000), st.sampled_from([None, *Prediction]))
def test_jobs_end_when_their_work_is_done(instance: Instance, seed: int, predicts: Prediction | None) -> None:
    """However shares change, a job ends in the second in which its last attempt has done its work; the judge agrees."""
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


class Script:
    """Starts jobs where they fit, the first one in some modes, and changes them as it says: (second, job, modes)."""

    name = "script"

    def __init__(self, first: list[int], *changes: tuple[int, int, list[int]]) -> None:
        self._first, self._changes = np.array(first, np.int8), changes

    def begin(self, site: Site) -> None:
        """Make ready."""

    def decide(self, site: Site, news: News) -> Decision:
        """Do what the script says for this second."""
        fits = [found for job in site.queue.tolist() if (found := site.fit_now(job)) is not None]
        starts = [replace(found, modes=self._first) if found.job == 0 else found for found in fits]
        changes = [Change(job, np.array(chosen, np.int8)) for time, job, chosen in self._changes if time == news.now]
        later = [time for time, _, _ in self._changes if time > news.now]
        return Decision(starts=starts, changes=changes, wake=min(later, default=None))


HOUR = 3600


def scripted(model: RuntimeModel, runtime: int) -> Instance:
    """Return a job of 4 h on two nodes, another one that never fits beside it, and a small one."""
    malleability = Malleability(shares=(0.5,), model=model)
    job = waiting("a", 4 * HOUR, chunk(2, cores=48), malleability=malleability)
    waits = waiting("b", HOUR, chunk(2, cores=48), submit=1)
    return window([nodes("n m", cores=48)], replace(job, runtime=runtime), waits)


@pytest.mark.parametrize(
    ("model", "runtime", "end"),
    [
        (RuntimeModel.IDEAL, 4, 5),
        (RuntimeModel.WORST, 4, 5.5),
        (RuntimeModel.IDEAL, 3, 4),
        (RuntimeModel.WORST, 9, 5.5),
    ],
)
def test_worked_example_of_the_runtime_models(model: RuntimeModel, runtime: int, end: float) -> None:
    """24 and 48 of 48 cores for 2 h are 1.5 h of work, or 1 h; 24 and 24 for 1 h half an hour more: the increase is 1 h
    or 1.5 h (SD-3). Who is killed has done the work of its walltime.
    """
    script = Script([1, 0], (2 * HOUR, 0, [1, 1]), (3 * HOUR, 0, [0, 0]))
    assert played(scripted(model, runtime * HOUR), script).runs.end.tolist() == [end * HOUR, (end + 1) * HOUR]


@pytest.mark.parametrize(
    "change",
    [(9, 0, [1]), (9, 0, [0, 2]), (9, 0, [-1, 0]), (9, 1, [0, 0]), (9, 0, [])],
    ids=["one entry", "no such mode", "a negative mode", "who waits", "no entries"],
)
def test_what_cannot_change(change: tuple[int, int, list[int]]) -> None:
    """A scheduler that changes what cannot be changed so is told."""
    with pytest.raises(EngineError, match="script changes job"):
        played(scripted(RuntimeModel.IDEAL, HOUR), Script([0, 0], change))


def test_cores_that_others_have() -> None:
    """A job that has lent cores cannot have them back while another job has them."""
    instance = scripted(RuntimeModel.IDEAL, 4 * HOUR)
    guest = waiting("g", 3 * HOUR, chunk(1, cores=24))
    instance = replace(instance, jobs=(instance.jobs[0], guest))
    with pytest.raises(EngineError, match="script changes job a at 9"):
        played(instance, Script([1, 1], (9, 0, [0, 0])))


def test_a_guard_is_not_held_against_a_job_that_shrinks() -> None:
    """Long jobs are let in with eight cores only. Job a, which runs, gives four of them up: to g, not to h, too."""
    admits = (AdmitCondition(min=Amounts({"cores": 8})), AdmitCondition(max_walltime=100))
    long = waiting("a", 1000, chunk(cores=8), malleability=Malleability(shares=(0.5,)))
    g, h = (waiting(name, 100, chunk(cores=4), submit=submit) for name, submit in (("g", 5), ("h", 11)))
    whole = waiting("w", 100, chunk(cores=8), submit=10)
    instance = window([nodes("n", cores=8, admits=admits)], long, g, h, whole)
    runs = played(instance, Script([0], (9, 0, [1]))).runs
    assert runs.start.tolist() == [0, 10, 110, 1991]


def test_a_job_that_fits_on_a_share_only_is_not_called_impossible() -> None:
    """No node has the four cores that m asks for; on half of them it could run, so that it was just not started."""
    job = waiting("m", 10, chunk(cores=4), malleability=Malleability(shares=(0.5,)))
    record = played(window([nodes("n", cores=2)], job), QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)).record()
    assert [(one.id, one.reason) for one in record.waiting_room] == [("m", WaitingReason.NOT_STARTED)]
