"""The test by which one rule wins over another one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cpsched.domain import Instance
from cpsched.lab.sim import REPLICAS, Figures, Trial, contest, figures_of, winner
from tests.booking.small_windows import chunk, nodes, waiting, window

USUAL = Figures((100.0, 100.0, 100.0, 300.0), 2.0, 1_000.0)


def held(*found: Figures) -> tuple[Trial, ...]:
    """Return the trials of rules with these figures in each replica, beside the usual one."""
    past = window([nodes("n", cores=1)], *(waiting(f"j{n}", 10, chunk(1, cores=1), submit=9 * n) for n in range(3)))
    return contest([past] * REPLICAS, USUAL, found, lambda _: lambda rule: rule, Random(1))


@pytest.mark.parametrize(
    ("found", "wins"),
    [
        (USUAL, False),
        (Figures((90.0, 90.0, 90.0, 270.0), 1.5, 900.0), True),
        (Figures((99.0, 98.0, 98.0, 295.0), 2.0, 1_000.0), False),  # too little
        (Figures((106.0, 20.0, 20.0, 146.0), 1.0, 500.0), False),  # a third lost too much
        (Figures((104.0, 20.0, 20.0, 144.0), 1.0, 500.0), True),
        (Figures((50.0, 50.0, 50.0, 150.0), 2.2, 500.0), False),  # slowdown
        (Figures((50.0, 50.0, 50.0, 150.0), 1.0, 1_060.0), False),  # the longest wait
    ],
)
def test_a_rule_wins_by_far_and_is_nowhere_much_worse(found: Figures, wins: bool) -> None:
    """It plays four replicas if it wins, and one if it loses; its figures are told in either case."""
    (trial,) = held(found)
    assert (trial.wins, trial.replicas) == ((True, 4) if wins else (False, 1))
    assert trial.ratio == pytest.approx(found.weighted_waits[-1] / 300)
    assert trial.slowdown == pytest.approx(found.slowdown / 2)
    assert trial.longest == pytest.approx(found.longest / 1_000)
    assert winner((trial,)) == (0 if wins else None)


def test_the_best_of_those_that_win_is_taken() -> None:
    """One that is better still, but lost, is not."""
    better, best = (Figures((share,) * 3 + (3 * share,), 1.0, 900.0) for share in (80.0, 60.0))
    lost = Figures((10.0, 10.0, 10.0, 30.0), 1.0, 2_000.0)
    assert winner(held(better, best, lost)) == 1
    assert winner(held(lost)) is None


def test_replicas_are_other_pasts() -> None:
    """Each moves submissions by some minutes, none before the first one; one lost replica is enough."""
    jobs = [waiting(f"j{n}", 10, chunk(1, cores=1), submit=900 * n) for n in range(20)]
    past, seen = window([nodes("n", cores=1)], *jobs), list[tuple[int, ...]]()

    def play(replica: Instance) -> object:
        seen.append(tuple(job.submit for job in replica.jobs))
        share = 50.0 if len(seen) < 3 else 200.0
        return lambda rule: USUAL if rule == "usual" else Figures((share,) * 3 + (3 * share,), 1.0, 900.0)

    (trial,) = contest([past] * REPLICAS, "usual", ["other"], play, Random(1))  # type: ignore[arg-type]  # a stand-in
    assert (trial.replicas, trial.wins, len(set(seen))) == (3, False, 3)
    assert all(abs(at - job.submit) <= 600 and at >= 0 for one in seen for at, job in zip(one, jobs, strict=True))


def test_the_figures_of_jobs_are_those_of_the_textbook() -> None:
    """Weighted waits in all, the mean bounded slowdown, and the longest wait; thirds only of many jobs."""
    submit, start, end = (np.array(times) for times in ([0, 0, 10], [0, 20, 40], [20, 40, 41]))
    found = figures_of(submit, start, end, np.array([1.0, 2.0, 0.5]))
    assert (found.weighted_waits, found.longest) == ((55.0, 55.0), 30.0)
    assert found.slowdown == pytest.approx((1 + 2 + 3.1) / 3)
    submit, start, end = (np.tile(times, 500) for times in (submit, start, end))
    many = figures_of(submit, start, end, np.ones(1_500))
    assert len(many.weighted_waits) == 4
