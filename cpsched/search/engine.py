"""The search as an improver: lists in several orders, then ruin and recreate until the budget ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.engine import Board
from cpsched.planner import unsupported, warmup
from cpsched.search.chain import Chain
from cpsched.search.costs import list_keys
from cpsched.search.warmup import warm_up_search

__all__ = ["Search", "SearchParams"]

#: Seconds between two looks at the clock.
_LOOK = 0.02
#: Seconds between two plans that a chain offers.
_PAUSE = 0.25
#: So many placements (job and node) at the most are searched; each chain keeps them twice.
_MOST_PLACEMENTS = 3_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """How the search works."""

    #: Steps after which it ends, whatever is left of the budget; None: the budget alone ends it.
    max_steps: int | None = None
    #: Steps for each job in one cooling; with time left it begins anew.
    steps_per_job: int = 1000
    #: Steps between two looks at the clock, at the most; with a budget that alone ends it, as many as `_LOOK` allows.
    portion: int = 200

    def __post_init__(self) -> None:
        """Check the figures."""
        if min(self.steps_per_job, self.portion) < 1 or (self.max_steps is not None and self.max_steps < 0):
            raise ValueError(f"Expected positive figures, got {self}")


class Search:
    """Decoder search over the planner's insertion."""

    name = "search"

    def __init__(self, params: SearchParams | None = None) -> None:
        self.params = params or SearchParams()

    def prepare(self) -> None:
        """Compile or load the kernels of planner and search."""
        warmup()
        warm_up_search()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the instance asks for and the search cannot honour: what the planner cannot."""
        return unsupported(instance)

    def improve(self, instance: Instance, board: Board, *, seed: int) -> None:
        """Search until the board's budget or the steps end."""
        search = _Search(instance, board, seed, self.params)
        search.try_lists()
        search.run_chain()


class _Search:
    """One run of the search; mutable."""

    def __init__(self, instance: Instance, board: Board, seed: int, params: SearchParams) -> None:
        self._instance, self._board, self._params = instance, board, params
        self._first = board.best
        starts = {planned.id: planned.start - instance.now for planned in self._first.jobs}
        self._jobs = [job for job in instance.elements() if job.running is None and job.id in starts]
        self._chain = Chain(instance, self._jobs, seed)
        #: What the chain's own figures lack to be values of the objective.
        self._offset = self._first.value - self._chain.value_of([starts[job.id] for job in self._jobs])
        self._best_keys: NDArray[np.float64] | None = None
        self._began = 0.0

    def _offer(self, by: str) -> float:
        """Offer the chain's best plan, if it is better than all that is known; return the seconds that this took."""
        began = self._board.budget.elapsed
        if self._chain.best_value + self._offset < self._board.best.value:
            found = {planned.id: planned for planned in self._chain.best()}
            self._board.offer([found.get(planned.id, planned) for planned in self._first.jobs], by=by)
        return self._board.budget.elapsed - began

    def try_lists(self) -> None:
        """Plan as a list in several orders, the best of which the chain begins from."""
        if not self._jobs or self._chain.most_placements > _MOST_PLACEMENTS:
            return
        best_value, best_name = float("inf"), ""
        for name, keys in list_keys(self._instance, self._jobs).items():
            if self._board.is_over:
                break
            value = self._chain.begin(keys)
            if value is not None and value < best_value:
                best_value, best_name, self._best_keys = value, name, keys
        if best_name:
            self._offer(f"list:{best_name}")

    def run_chain(self) -> None:
        """Cool the chain, as many times as there is time for, each time from the best list."""
        if len(self._jobs) < 2 or self._best_keys is None:
            return
        budget = self._board.budget
        self._began = budget.elapsed
        cooling, steps, coolings, is_judged = -1, 0, 1, False
        portion = self._params.portion if self._params.max_steps is not None else 1
        next_offer = budget.elapsed + _PAUSE
        while (share := self._share(steps)) < 1.0:
            if int(share * coolings) > cooling:
                cooling = int(share * coolings)
                self._chain.begin(self._best_keys)
            within, began = share * coolings - cooling, budget.elapsed
            self._chain.run(portion, within, within)
            steps += portion
            took = max(budget.elapsed - began, 1e-6)
            if budget.elapsed >= next_offer:
                next_offer = budget.elapsed + max(_PAUSE, 20 * self._offer("search"))
            if self._params.max_steps is None:
                portion = max(1, min(self._params.portion, 2 * portion, int(portion * _LOOK / took)))
            if portion == self._params.portion and not is_judged:
                coolings, is_judged = self._coolings(steps), True
        self._offer("search")

    def _share(self, steps: int) -> float:
        """Return which share of its steps, or else of its time, the chain has used."""
        if self._board.is_over:
            return 1.0
        if self._params.max_steps is not None:
            return steps / self._params.max_steps if self._params.max_steps else 1.0
        return (self._board.budget.elapsed - self._began) / (self._board.budget.seconds - self._began)

    def _coolings(self, steps: int) -> int:
        """Return how many times the chain can be cooled, judged by what its first steps took."""
        taken = max(self._share(steps), 1e-9)
        return max(1, int(steps / taken / (self._params.steps_per_job * len(self._jobs))))
