"""Jobs with alternatives in the model: exactly one is chosen, the best plan of all is found and proven, bounds hold."""

from __future__ import annotations

import pytest

from cpsched.cp import lower_bound
from cpsched.metrics import objective_value
from tests.cp.cp_here import CpHere
from tests.cp.trying_everything import best_plan
from tests.oracle.random_alternatives import window_with_alternatives
from tests.search.searched import board_of, planned


@pytest.mark.parametrize("seed", range(8))
def test_model_proves_the_best_of_all_plans(seed: int) -> None:
    """What the model proves to be optimal is the best plan that trying everything finds, and no bound is above it."""
    instance = window_with_alternatives(seed)
    best = best_plan(instance)
    if not best:
        pytest.skip("no plan has all jobs")
    value = objective_value(instance, best)
    board = board_of(instance, planned(instance))
    CpHere(2.0).improve(instance, board, seed=0)
    assert not board.events
    if len(board.best.jobs) == len(best):
        assert board.best.value == pytest.approx(value)
        assert board.is_optimal
    ids = [job.id for job in instance.jobs if job.running is None]
    bound = lower_bound(instance, ids, seconds=0, evaluations=20)
    assert bound is not None
    assert bound.value <= value + 1e-9
