"""Running the search in tests: every plan that it offers is held to the rules, and one that breaks any is a failure."""

from __future__ import annotations

from cpsched.domain import Instance
from cpsched.engine import Board, Outcome
from cpsched.planner import PlannerEngine
from cpsched.search import Search
from tests.portfolio.judged import board_of

__all__ = ["FEW", "board_of", "planned", "searched"]

FEW = 400


def planned(instance: Instance) -> Outcome:
    """Return the planner's plan."""
    return PlannerEngine().plan(instance, None)


def searched(instance: Instance, max_steps: int | None = FEW, *, seed: int = 0, seconds: float = 60.0) -> Board:
    """Return the board after a search that began from the planner's plan; no offer was refused."""
    board = board_of(instance, planned(instance), seconds=seconds)
    Search(max_steps).improve(instance, board, seed=seed)
    assert not board.events
    return board
