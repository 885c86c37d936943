"""Conservative backfilling on-line: its naive twin, what was promised, and worked examples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import Instance
from cpsched.errors import EngineError
from cpsched.metrics import Ending
from cpsched.policies.online.conservative import Conservative
from cpsched.rusv import NOWHERE
from cpsched.sim import Decision, News, Site, simulate
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_workloads import BusyMachine
from tests.policies import ruled
from tests.policies.crowds import crowd
from tests.policies.maui_runs import judged
from tests.policies.naive_reservations import NaiveConservative
from tests.sim.played import starts, story_of

ALL = 1_000


class Promising(Conservative):
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


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("depth", [0, 3, ALL])
def test_jobs_start_as_by_the_naive_twin(seed: int, depth: int) -> None:
    """All start at the same seconds on the same nodes, though most jobs are never looked at in compressing."""
    instance = crowd(seed)
    history = judged(instance, Conservative(depth))
    assert (history.runs.start >= 0).all()
    naive = simulate(instance, NaiveConservative(depth))
    assert story_of(instance, history) == story_of(instance, naive)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("depth", [0, ALL])
def test_no_job_starts_later_than_was_promised(seed: int, depth: int) -> None:
    """Walltimes are upper bounds, and no node breaks: so every reservation holds, and some get better."""
    scheduler = Promising(depth)
    found = starts(judged(crowd(seed), scheduler))
    assert len(found) == len(scheduler.promised)
    assert all(found[name] <= promised for name, promised in scheduler.promised.items())


@pytest.mark.parametrize("seed", range(20))
def test_a_window_is_worked_off_as_it_is_planned(seed: int) -> None:
    """Where all wait at the beginning and run for their walltimes, the rule that plans a window has the same starts."""
    jobs = [replace(job, submit=0, runtime=None) for job in crowd(seed).jobs]
    instance = replace(crowd(seed), jobs=tuple(jobs))
    assert starts(judged(instance, Conservative())) == ruled.starts(instance, "conservative")


@pytest.mark.parametrize("predicts", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_all_who_can_run_do(seed: int, predicts: bool) -> None:
    """Nodes break and return, jobs wait for others and run longer than predicted: the judge is content, and whoever has
    nobody to wait for runs.
    """
    instance = BusyMachine(seed).workload()
    runs = judged(instance, Conservative(), predict=predicts).runs
    ends = dict(zip(runs.ids, runs.ending.tolist(), strict=True))
    assert [job.id for job in instance.jobs if not job.after and ends[job.id] == Ending.WAITING] == []


def test_a_third_job_must_not_delay_the_second_one() -> None:
    """Other than with EASY, where only the head is safe: d would fit beside b, but not beside c's reservation.

    a has three cores until 100, b all four until 110; c needs two until 210, d three of them.
    """
    machine = [nodes("n", cores=4)]
    a, b = waiting("a", 100, chunk(3, cores=1)), waiting("b", 10, chunk(4, cores=1))
    c, d = waiting("c", 100, chunk(2, cores=1)), waiting("d", 150, chunk(3, cores=1))
    e = waiting("e", 100, chunk(1, cores=1))
    assert starts(judged(window(machine, a, b, c, d, e), Conservative())) == {
        "a": 0,
        "b": 100,
        "c": 110,
        "d": 210,
        "e": 0,
    }


def test_who_ends_early_lets_others_move_up() -> None:
    """Two cores; a ends at 40 in place of 100: b, which was to start at 100, starts then, and c at 50 in place of 110."""
    a, b = waiting("a", 100, chunk(2, cores=1), runtime=40), waiting("b", 10, chunk(2, cores=1))
    instance = window([nodes("n", cores=2)], a, b, waiting("c", 10, chunk(2, cores=1)))
    assert starts(judged(instance, Conservative())) == {"a": 0, "b": 40, "c": 50}


@pytest.mark.parametrize(("depth", "start"), [(1, 100), (2, 60)])
def test_the_depth_is_how_far_down_the_queue_reservations_move_up(depth: int, start: int) -> None:
    """Two cores; a ends at 40 in place of 100, b starts then; c could do so at 60, when b is over.

    Only if c's reservation moves does it get there before d, which came last and is short: at 50, beside b, nothing is
    free; at 60 d starts if it has been promised so.
    """
    a = waiting("a", 100, chunk(2, cores=1), runtime=40)
    b, c = waiting("b", 20, chunk(2, cores=1), submit=1), waiting("c", 30, chunk(2, cores=1), submit=2)
    instance = window([nodes("n", cores=2)], a, b, c)
    scheduler = Conservative(depth)
    seen: list[int] = []

    class Watching(Conservative):
        def decide(self, site: Site, news: News) -> Decision:
            decision = super().decide(site, news)
            if news.now == 40:
                seen.append(int(self._table.starts[2]))
            return decision

    scheduler = Watching(depth)
    judged(instance, scheduler)
    assert seen == [120 if depth == 1 else start]


def test_priority_comes_before_submission() -> None:
    """Of those who come in the same second the one of higher priority is served first."""
    machine = [nodes("n", cores=1)]
    low, high = waiting("low", 10, chunk(cores=1)), waiting("high", 10, chunk(cores=1), priority=5)
    assert starts(judged(window(machine, low, high), Conservative())) == {"high": 0, "low": 10}


def test_a_broken_node_costs_reservations_and_its_return_brings_them_back() -> None:
    """The only node is out from 5 to 50: the job that ran there waits again, nobody has a place, then both run."""
    instance = window(
        [nodes("n", cores=1)],
        waiting("a", 10, chunk(cores=1)),
        waiting("b", 10, chunk(cores=1)),
        outages=(outage("n", 5, 50),),
    )
    assert starts(judged(instance, Conservative())) == {"a": 50, "b": 60}


def test_charged_decisions_break_no_rule() -> None:
    """A decision that takes effect later than its reservations begin is followed by new ones."""
    instance: Instance = crowd(3)
    history = simulate(instance, Slow(), charge_overhead=True)
    assert (history.runs.start >= 0).all()


def test_a_negative_depth_is_refused() -> None:
    """It is a mistake."""
    with pytest.raises(ValueError, match="Expected a depth of 0 or more, got -1"):
        Conservative(-1)
