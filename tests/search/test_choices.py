"""Choices and orders searched together: the walk's sums are those of its choices, and its plans keep the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cpsched.domain import PlannedJob
from cpsched.engine import Board, Budget
from cpsched.metrics import objective_value
from cpsched.planner import PlannerEngine, problem_of
from cpsched.problem import Problem, opened
from cpsched.search.choices import ChoiceSearch, _Walk
from tests.oracle.random_modes import best_value, window_with_modes
from tests.portfolio.judged import board_of
from tests.sizes import seeds


class Ticks:
    """A clock that a step of the search moves on; mutable."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time, a little later than before."""
        self.now += 0.01
        return self.now


def searched(problem: Problem, judge: Callable[[Sequence[PlannedJob]], Sequence[str]]) -> Board:
    """Return the board after the search, in seconds that its looks at the clock make."""
    first = PlannerEngine().plan(problem.instance, None).jobs
    board = Board(
        first,
        by="planner",
        budget=Budget(10.0, clock=Ticks()),
        value_of=lambda jobs: objective_value(problem.instance, jobs),
        judge=judge,
    )
    ChoiceSearch().improve(problem.instance, board, seed=0)
    return board


@pytest.mark.parametrize("seed", seeds(60))
def test_a_small_project_is_as_short_as_by_all_choices(seed: int) -> None:
    """Where the last end alone counts it finds the best of all choices and orders, and each plan keeps the rules."""
    instance = window_with_modes(seed)
    problem = problem_of(instance)
    search = ChoiceSearch()
    search.prepare()
    if search.unsupported(problem.instance) or not problem.is_opened:
        return
    stated = board_of(instance, PlannerEngine().plan(instance, None))
    board = searched(problem, lambda jobs: stated._judge(problem.to_stated(jobs)))
    assert not board.events
    best = best_value(instance)
    assert best is not None
    assert board.best.value == pytest.approx(best)


def test_what_a_walk_keeps_up_to_date_is_what_its_choices_say() -> None:
    """After many steps its durations, needs, links and sums are those of a walk that begins with the same choices."""
    seed = next(
        seed
        for seed in range(100)
        if not ChoiceSearch().unsupported(problem_of(window_with_modes(seed)).instance)
        and sum(len(job.choices) for job in window_with_modes(seed).jobs) > 5
    )
    instance = problem_of(window_with_modes(seed)).instance
    jobs = [opened(job) for job in instance.elements() if job.running is None]
    walk = _Walk(instance, jobs, {}, 0)
    for _ in range(200):
        walk.step(0.1)
    numbers = {job.id: walk._rows[row].number for job, row in zip(jobs, walk._chosen, strict=True)}
    anew = _Walk(instance, jobs, numbers, 0)
    assert (walk._used == anew._used).all()
    assert (walk._used <= walk._left).all()
    for kept, fresh in zip(
        (walk._project.jobs, walk._project.needs, *walk._ahead, *walk._back),
        (anew._project.jobs, anew._project.needs, *anew._ahead, *anew._back),
        strict=True,
    ):
        assert np.array_equal(kept, fresh)
