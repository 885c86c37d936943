"""A solver for tests of who calls solvers."""

from __future__ import annotations

from collections.abc import Callable

from cpsched.domain import Instance
from cpsched.engine import Board

__all__ = ["Solver"]


class Solver:
    """A solver that does what a test tells it to."""

    def __init__(self, work: Callable[[Board], None], name: str = "cp", cannot: tuple[str, ...] = ()) -> None:
        self.name, self._work, self._cannot = name, work, cannot

    def prepare(self) -> None:
        """Need nothing."""

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Say what a test wants."""
        return self._cannot

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Do it."""
        self._work(board)
