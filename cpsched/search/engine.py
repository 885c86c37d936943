"""The search as an engine: the planner's plan, several lists, then ruin and recreate until the budget ends."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Chunk, Cluster, Incumbent, Instance, Job, NodeClass, Plan, Request, Step
from cpsched.engine import Budget, Outcome, Progress
from cpsched.metrics import objective_value
from cpsched.planner import PlannerEngine, unsupported, warmup
from cpsched.search.chain import Chain
from cpsched.search.costs import list_keys

__all__ = ["SearchEngine", "SearchParams"]

#: Seconds that compiling may take; it ends by itself.
_LONG = 3600.0
#: Seconds between two looks at the clock.
_LOOK = 0.02
#: So many placements (job and node) at the most are searched; each chain keeps them twice.
_MOST_PLACEMENTS = 3_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParams:
    """How the search works."""

    #: Chains side by side, each in a thread of its own.
    workers: int = 2
    #: Steps of each chain after which it ends, whatever is left of the budget; None: the budget alone ends it.
    max_steps: int | None = None
    #: Steps for each job in one cooling; a chain with time left begins anew from its best list.
    steps_per_job: int = 1000
    #: Steps between two looks at the clock, at the most; with a budget that alone ends it, as many as `_LOOK` allows.
    portion: int = 200

    def __post_init__(self) -> None:
        """Check the figures."""
        if min(self.workers, self.steps_per_job, self.portion) < 1 or (
            self.max_steps is not None and self.max_steps < 0
        ):
            raise ValueError(f"Expected positive figures, got {self}")


class SearchEngine:
    """Decoder search over the planner's insertion; never worse than the planner."""

    name = "search"

    def __init__(self, params: SearchParams | None = None) -> None:
        self.params = params or SearchParams()

    def prepare(self) -> None:
        """Compile or load the kernels of planner and search."""
        warmup()
        nodes = NodeClass(names=("a",), resources=Amounts({"cores": 1}))
        step = Step(walltime=10, request=Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),)))
        jobs = tuple(Job(id=str(number), submit=0, steps=(step,)) for number in range(3))
        instance = Instance(name="warm-up", cluster=Cluster(classes=(nodes,)), jobs=jobs)
        params = replace(self.params, max_steps=1)
        SearchEngine(params).plan(instance, Budget(_LONG), seed=0, hint=None, progress=None)

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the instance asks for and the search cannot honour: what the planner cannot."""
        return unsupported(instance)

    def plan(
        self, instance: Instance, budget: Budget, *, seed: int, hint: Plan | None, progress: Progress | None
    ) -> Outcome:
        """Improve the planner's plan until the budget ends."""
        fallback = PlannerEngine().plan(instance, budget, seed=seed, hint=hint, progress=progress)
        search = _Search(instance, fallback, budget, seed, self.params)
        search.try_lists()
        search.run_chains()
        return search.outcome()


class _Search:
    """One run of the engine; mutable."""

    def __init__(self, instance: Instance, fallback: Outcome, budget: Budget, seed: int, params: SearchParams) -> None:
        self._instance, self._fallback, self._budget, self._params = instance, fallback, budget, params
        starts = {planned.id: planned.start - instance.now for planned in fallback.jobs}
        self._jobs = [job for job in instance.elements() if job.running is None and job.id in starts]
        self._chains = [Chain(instance, self._jobs, seed * params.workers + place) for place in range(params.workers)]
        self._fallback_value = objective_value(instance, fallback.jobs)
        #: What the chains' own figures lack to be values of the objective.
        self._offset = self._fallback_value - self._chains[0].value_of([starts[job.id] for job in self._jobs])
        self._best_value = self._fallback_value
        self._incumbents = [Incumbent(at=round(budget.elapsed, 3), value=self._fallback_value, by="planner")]
        self._lock = threading.Lock()
        self._best_keys: NDArray[np.float64] | None = None
        #: What the planner took: so much is kept back at the end, for the plan to be written down.
        self._margin = 0.05 + budget.elapsed
        self._began = budget.elapsed

    def _is_over(self) -> bool:
        return self._budget.remaining <= self._margin

    def _note(self, value: float, finder: str) -> None:
        """Log a plan if it is the best so far."""
        with self._lock:
            if value + self._offset < self._best_value:
                self._best_value = value + self._offset
                at = round(self._budget.elapsed, 3)
                self._incumbents.append(Incumbent(at=at, value=self._best_value, by=finder))

    def try_lists(self) -> None:
        """Plan as a list in several orders, the best of which the chains begin from."""
        if not self._jobs or self._chains[0].most_placements > _MOST_PLACEMENTS:
            return
        lists = list_keys(self._instance, self._jobs)
        best_value = float("inf")
        for name, keys in lists.items():
            if self._is_over():
                return
            value = self._chains[0].begin(keys)
            if value is not None and value < best_value:
                best_value, self._best_keys = value, keys
                self._note(value, f"list:{name}")

    def run_chains(self) -> None:
        """Run all chains side by side until the budget or their steps end."""
        if len(self._jobs) < 2 or self._best_keys is None:
            return
        self._began = self._budget.elapsed
        threads = [threading.Thread(target=self._run_chain, args=(chain,), daemon=True) for chain in self._chains[1:]]
        for thread in threads:
            thread.start()
        self._run_chain(self._chains[0])
        for thread in threads:
            thread.join()

    def _run_chain(self, chain: Chain) -> None:
        """Cool a chain, as many times as there is time for, each time from the best list."""
        assert self._best_keys is not None  # noqa: S101 - `run_chains` has looked
        cooling, steps, coolings, is_judged = -1, 0, 1, False
        portion = self._params.portion if self._params.max_steps is not None else 1
        while (share := self._share(steps)) < 1.0:
            if int(share * coolings) > cooling:
                cooling = int(share * coolings)
                chain.begin(self._best_keys)
            within, began = share * coolings - cooling, self._budget.elapsed
            chain.run(portion, within, within)
            self._note(chain.best_value, "search")
            steps += portion
            if self._params.max_steps is None:
                took = max(self._budget.elapsed - began, 1e-6)
                portion = max(1, min(self._params.portion, 2 * portion, int(portion * _LOOK / took)))
            if portion == self._params.portion and not is_judged:
                coolings, is_judged = self._coolings(steps), True

    def _share(self, steps: int) -> float:
        """Return which share of its steps, or else of its time, a chain has used."""
        if self._is_over():
            return 1.0
        if self._params.max_steps is not None:
            return steps / self._params.max_steps if self._params.max_steps else 1.0
        whole = self._budget.seconds - self._margin - self._began
        return (self._budget.elapsed - self._began) / whole

    def _coolings(self, steps: int) -> int:
        """Return how many times a chain can be cooled, judged by what its first steps took."""
        taken = max(self._share(steps), 1e-9)
        return max(1, int(steps / taken / (self._params.steps_per_job * len(self._jobs))))

    def outcome(self) -> Outcome:
        """Return the best plan of all."""
        chain = min(self._chains, key=lambda chain: chain.best_value)
        jobs = self._fallback.jobs
        if chain.best_value + self._offset < self._fallback_value:
            better = {planned.id: planned for planned in chain.best()}
            found = tuple(better.get(planned.id, planned) for planned in jobs)
            if objective_value(self._instance, found) < self._fallback_value:
                jobs = found
        stopped = "budget" if self._is_over() else "done"
        return replace(self._fallback, jobs=jobs, stopped=stopped, incumbents=tuple(self._incumbents))
