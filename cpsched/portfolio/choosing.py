"""Solvers that know one choice of each job, where one was made for them (`problem.settling`): they begin from those of
the best plan, and begin anew from those of a better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpsched.domain import Instance, PlannedJob
from cpsched.engine import Board, Budget, Improver, Offer, Scope
from cpsched.problem import chosen_in, opened

#: Seconds that a solver has at least with the same choices.
_LEAST = 1.0


def improve_by_choice(solver: Improver, instance: Instance, board: Board, *, seed: int) -> None:
    """Improve plans with the choices of the best one, as long as others find better choices."""
    while True:
        chosen = _Chosen(board, instance)
        solver.improve(chosen.instance, chosen, seed=seed)
        if board.is_over or not chosen.is_outdated:
            return
        seed += 1


class _Chosen(Board):
    """A board for plans in which each job runs by the choice that the best plan has now: all else is the whole board's
    own. What is proven of such plans is not of all.

    `whole`: the board. `window`: the compiled instance, whose jobs have more choices.
    """

    __slots__ = ("_first", "_made", "_numbers", "_until", "_whole", "instance")

    def __init__(self, whole: Board, window: Instance) -> None:
        self.__dict__ = whole.__dict__
        self._whole = whole
        best = whole.best
        #: The instance without other choices than those.
        self.instance, self._numbers = chosen_in(window, {one.id: one.alternative for one in best.jobs})
        self._made = {name for job in window.jobs if opened(job) is not job for name in job.element_ids}
        self._first = self._seen(best)
        self._until = whole.budget.elapsed + _LEAST

    @property
    def budget(self) -> Budget:  # type: ignore[override]  # a board that is given a budget has it as an attribute
        """That of the whole board, which may be one for a turn."""
        return self._whole.budget

    @property
    def best(self) -> Offer:
        """The best plan so far with these choices; its value is that of the best of all."""
        best = self._whole.best
        if self._has_same(best):
            self._first = self._seen(best)
        return replace(self._first, value=best.value, version=best.version)

    @property
    def is_outdated(self) -> bool:
        """Whether the best plan has other choices, or other jobs."""
        return not self._has_same(self._whole.best)

    @property
    def is_over(self) -> bool:
        """Whether solvers shall stop: also when these choices were tried for a while, and others are better."""
        return self._whole.is_over or (self._whole.budget.elapsed > self._until and self.is_outdated)

    def offer(self, jobs: Sequence[PlannedJob], *, by: str) -> bool:
        """Offer a plan with these choices (`Board.offer`)."""
        numbers = self._numbers
        return self._whole.offer(
            [replace(one, alternative=numbers[one.id]) if one.id in numbers else one for one in jobs], by=by
        )

    def prove(self, value: float, *, over: Scope, how: str, by: str) -> None:  # type: ignore[override]
        """State nothing: other choices may be better."""

    def prove_most(self, most: int, *, by: str) -> None:
        """State nothing: other choices may leave room for more jobs."""

    def _has_same(self, offer: Offer) -> bool:
        """Return whether a plan has the same jobs, by the same choices."""
        found = {one.id: one.alternative for one in offer.jobs if one.alternative and one.id in self._made}
        mine = {name: number for name, number in self._numbers.items() if name in offer.ids}
        first = getattr(self, "_first", None)
        return found == mine and (first is None or first.ids == offer.ids)

    def _seen(self, offer: Offer) -> Offer:
        """Return a plan as the instance without choices has it."""
        jobs = tuple(replace(one, alternative=0) if one.id in self._numbers else one for one in offer.jobs)
        return replace(offer, jobs=jobs)
