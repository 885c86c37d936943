"""Conservative backfilling on-line: its naive twin, what was promised, and worked examples."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cpsched.domain import Outage
from cpsched.lab.policies import make_scheduler
from cpsched.lab.policies.conservative import Conservative, ConservativeOnNodes
from cpsched.lab.sim import Decision, News, Prediction, Site, simulate
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_workloads import BusyMachine
from tests.policies.crowds import crowd
from tests.policies.maui_runs import judged
from tests.policies.naive_reservations import NaiveConservative
from tests.rules import ruled
from tests.sim.played import starts, story_of
from tests.sizes import seeds

ALL = 1_000


class Promising(ConservativeOnNodes):
    """Notes the first reservation of each job."""

    def begin(self, site: Site) -> None:
        """Forget everything."""
        super().begin(site)
        self.promised: dict[str, int] = {}

    def decide(self, site: Site, news: News) -> Decision:
        """Decide as ever, and note what is reserved."""
        decision = super().decide(site, news)
        for job in site.queue.tolist():
            self.promised.setdefault(site.jobs[job].id, int(self._table.starts[job]))
        return decision


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("depth", [0, 3, ALL])
def test_jobs_start_as_by_the_naive_twin(seed: int, depth: int) -> None:
    """All start at the same seconds on the same nodes, though most jobs are never looked at in compressing."""
    instance = crowd(seed)
    history = judged(instance, ConservativeOnNodes(depth))
    assert (history.runs.start >= 0).all()
    naive = simulate(instance, NaiveConservative(depth))
    assert story_of(instance, history) == story_of(instance, naive)


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("depth", [0, ALL])
def test_no_job_starts_later_than_was_promised(seed: int, depth: int) -> None:
    """Walltimes are upper bounds, and no node breaks: so every reservation holds, and some get better (OCCS-52)."""
    scheduler = Promising(depth)
    found = starts(judged(crowd(seed), scheduler))
    assert len(found) == len(scheduler.promised)
    assert all(found[name] <= promised for name, promised in scheduler.promised.items())


@pytest.mark.parametrize("seed", seeds(20))
def test_a_window_is_worked_off_as_it_is_planned(seed: int) -> None:
    """Where all wait at the beginning and run for their walltimes, the rule that plans a window has the same starts."""
    jobs = [replace(job, submit=0, runtime=None) for job in crowd(seed).jobs]
    instance = replace(crowd(seed), jobs=tuple(jobs))
    assert starts(judged(instance, Conservative())) == ruled.starts(instance, "conservative")


@pytest.mark.parametrize("predicts", [None, *Prediction])
@pytest.mark.parametrize("seed", seeds(40))
def test_whatever_happens_all_end_as_by_first_fit(seed: int, predicts: Prediction | None) -> None:
    """Nodes break and return, jobs wait for others and run longer than predicted: the judge is content, and nobody is
    left behind who runs under a simpler rule.
    """
    instance = BusyMachine(seed).workload()
    found = judged(instance, Conservative(), predict=predicts).runs.ending
    assert np.array_equal(found, judged(instance, make_scheduler("first_fit"), predict=predicts).runs.ending)


def test_the_second_job_of_the_queue_is_not_delayed_either() -> None:
    """Other than with EASY: long fits beside a and b, but would delay c, the second in the queue.

    a has three of four cores until 100, b has three until 110, and then c wants all four until 120.
    """
    jobs = [waiting(name, length, chunk(cores, cores=1)) for name, length, cores in (("a", 100, 3), ("b", 10, 3))]
    jobs += [waiting("c", 10, chunk(4, cores=1)), waiting("long", 150, chunk(cores=1))]
    instance = window([nodes("n", cores=4)], *jobs)
    assert starts(judged(instance, Conservative())) == {"a": 0, "b": 100, "c": 110, "long": 120}
    assert starts(judged(instance, make_scheduler("easy"))) == {"a": 0, "b": 100, "c": 150, "long": 0}


def test_who_ends_early_lets_others_move_up() -> None:
    """Two cores; a ends at 40 in place of 100: b, which waits for both, starts then, and c after b."""
    a, b = waiting("a", 100, chunk(2, cores=1), runtime=40), waiting("b", 10, chunk(2, cores=1))
    instance = window([nodes("n", cores=2)], a, b, waiting("c", 10, chunk(2, cores=1)))
    assert starts(judged(instance, Conservative())) == {"a": 0, "b": 40, "c": 50}


@pytest.mark.parametrize(("depth", "reserved"), [(0, 120), (1, 120), (2, 60)])
def test_the_depth_is_how_far_down_the_queue_reservations_move_up(depth: int, reserved: int) -> None:
    """Two cores; a ends at 40 in place of 100, so that b starts; c has its reservation at 120 still, or when b ends.

    When b has ended c starts in any case, for then it can start at once.
    """

    class Watching(ConservativeOnNodes):
        def decide(self, site: Site, news: News) -> Decision:
            decision = super().decide(site, news)
            if news.now == 40:
                seen.append(int(self._table.starts[2]))
            return decision

    seen: list[int] = []
    a, b = waiting("a", 100, chunk(2, cores=1), runtime=40), waiting("b", 20, chunk(2, cores=1))
    instance = window([nodes("n", cores=2)], a, b, waiting("c", 30, chunk(2, cores=1)))
    assert starts(judged(instance, Watching(depth))) == {"a": 0, "b": 40, "c": 60}
    assert seen == [reserved]


def test_priority_comes_before_submission() -> None:
    """Of jobs that come in the same second the one of higher priority is served first."""
    machine = [nodes("n", cores=1)]
    low, high = waiting("low", 10, chunk(cores=1)), waiting("high", 10, chunk(cores=1), priority=5)
    assert starts(judged(window(machine, low, high), Conservative())) == {"high": 0, "low": 10}


def test_a_broken_node_costs_reservations_and_its_return_brings_them_back() -> None:
    """The only node is out from 5 to 50: the job that ran there waits again, nobody has a place, then both run."""
    instance = window(
        [nodes("n", cores=1)],
        waiting("a", 10, chunk(cores=1)),
        waiting("b", 10, chunk(cores=1)),
        outages=(Outage(nodes=("n",), start=5, end=50),),
    )
    assert starts(judged(instance, Conservative())) == {"a": 50, "b": 60}


def test_charged_decisions_break_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision takes 7 s: reservations that begin meanwhile are made anew, and all jobs run in the end."""
    clock = itertools.count(0, 7)
    monkeypatch.setattr("cpsched.lab.sim.scheduler_loop.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    history = simulate(crowd(3), Conservative(), charge_overhead=True)
    assert (history.runs.start >= 0).all()
    assert history.runs.start.min() >= 7


def test_a_negative_depth_is_refused() -> None:
    """It is a mistake."""
    with pytest.raises(ValueError, match="Expected a depth of 0 or more, got -1"):
        ConservativeOnNodes(-1)
