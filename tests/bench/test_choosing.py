"""Which engine a site's own past speaks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.domain import Instance, Job
from cpsched.lab.bench import choose_engine, choosing
from cpsched.lab.sim import Figures
from tests.booking.small_windows import chunk, nodes, waiting, window

DAY = 86_400


def past(number: int = 5) -> Instance:
    """Return days on which a wide job waits for a long one, and short jobs that fit behind it."""
    jobs = list[Job]()
    for day in range(number):
        first, name = 2 * day * DAY, f"d{day}"
        jobs.append(waiting(f"{name}long", 40_000, chunk(3, cores=1), submit=first, runtime=40_000))
        jobs.append(waiting(f"{name}wide", 1_000, chunk(4, cores=1), submit=first + 700, runtime=1_000))
        jobs += [
            waiting(f"{name}s{n}", 300, chunk(1, cores=1), submit=first + 1_500 + 2_000 * n, runtime=300)
            for n in range(3)
        ]
    return window([nodes("n", cores=4)], *jobs)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few jobs enough."""
    monkeypatch.setattr(choosing, "LEAST_JOBS", 10)


def test_an_engine_that_wins_by_far_is_chosen() -> None:
    """Strict first come, first served has short jobs wait behind the wide one, and EASY has not."""
    found = choose_engine(past(), ("fcfs", "easy"))
    assert found.engine == "easy"
    assert (found.jobs, found.begin, found.end) == (25, 0, 8 * DAY + 5_500)
    assert found.trials["easy"].wins
    assert found.trials["easy"].ratio < 0.5


def test_the_usual_engine_stays_where_others_are_no_better() -> None:
    """EASY with a short list does the same here, and what is strict does worse."""
    found = choose_engine(past(), ("easy", "pbs_fifo_bf10", "fcfs"))
    assert found.engine == "easy"
    assert {name: one.replicas for name, one in found.trials.items()} == {"pbs_fifo_bf10": 1, "fcfs": 1}
    assert found.trials["pbs_fifo_bf10"].ratio == 1.0
    assert found.trials["fcfs"].ratio > 2


@pytest.mark.parametrize("few", [past(1), past(4), replace(past(), jobs=past().jobs[:9]), None])
def test_a_past_that_says_too_little_chooses_nothing(few: Instance | None) -> None:
    """Less than a week, too few jobs, and none at all."""
    found = choose_engine(few, ("fcfs", "easy"))
    assert (found.engine, found.trials) == ("fcfs", {})


def test_jobs_that_have_not_ended_are_not_played() -> None:
    """Nobody knows how long they take."""
    known = past()
    jobs = tuple(replace(job, runtime=None) if job.id == "d4wide" else job for job in known.jobs)
    found = choose_engine(replace(known, jobs=jobs), ("easy", "pbs_fifo_bf10"))
    assert found.jobs == 24


def test_a_long_past_is_played_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last jobs, the first ones, and some between them: an engine has to win in each."""
    seen = list[tuple[str, ...]]()

    def figures(replica: Instance, engine: str, _: int | None) -> Figures:
        seen.append(tuple(job.id for job in replica.jobs))
        share = 100.0 if engine == "fcfs" else 50.0
        return Figures((share, share), 1.0, 9.0)

    monkeypatch.setattr(choosing, "_figures", figures)
    known, ids = past(), [job.id for job in past().jobs]
    found = choose_engine(known, ("fcfs", "easy"), most=10)
    assert found.engine == "easy"
    assert found.jobs == 25
    assert seen[::2] == [tuple(ids[first : first + 10]) for first in (15, 10, 5, 0)]
