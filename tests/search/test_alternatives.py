"""Jobs with alternatives in tiny windows: each plan is one, none is better than the best of all, and few are worse."""

from __future__ import annotations

import pytest

from cpsched.engine import Outcome
from cpsched.metrics import least_value, objective_value
from tests.cp.trying_everything import best_plan
from tests.oracle.random_alternatives import window_with_alternatives
from tests.portfolio.judged import assert_judged
from tests.search.searched import planned, searched


def test_search_finds_the_best_of_all_plans_in_most_tiny_windows() -> None:
    """Planner and search keep every rule, and beat no plan that trying everything finds; most searches reach it."""
    reached, windows = 0, range(8)
    for seed in windows:
        instance = window_with_alternatives(seed, places=seed % 2 == 0)
        best = best_plan(instance)
        if not best:
            continue
        value = objective_value(instance, best)
        outcome = planned(instance)
        assert_judged(instance, outcome)
        board = searched(instance, max_steps=150)
        assert_judged(instance, Outcome(jobs=board.best.jobs, waiting_room=outcome.waiting_room))
        if len(board.best.jobs) == len(best):
            assert board.best.value >= value - 1e-9
            assert least_value(instance, best) <= value + 1e-9
            reached += board.best.value == pytest.approx(value)
    assert reached >= 0.9 * len(windows)
