"""One chain of the search where jobs change while they run: ruin and recreate on the planner's ledger itself.

A step costs what the ledger takes for a few jobs, a hundred times as much as one of compiled kernels; in return any job
that can be planned can be searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from random import Random

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger, Place
from cpsched.domain import Instance, Job, PlannedJob, Step
from cpsched.engine import Offer
from cpsched.planner import Values, end_price, go_on_shrunk, place_cheaply, start_costs
from cpsched.search.costs import node_shares, rates_of
from cpsched.search.links import awaited_first

__all__ = ["LedgerChain"]

#: The most jobs that one step removes.
_MOST_REMOVED = 6


class LedgerChain:
    """A plan of some jobs that is changed step by step; mutable.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to be planned, one or more; each can be.
    seed
        Same jobs, same calls, same seed: same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._ledger = Ledger(instance, jobs)
        self._durations = [job.walltime for job in jobs]
        self._end_price = end_price(instance)
        self._values = Values(instance, self._ledger)
        self._random = Random(seed)  # noqa: S311 - a search, not a secret
        self._ranks = [0.0] * len(jobs)
        #: Where each job stands; where it stood last, and what that cost.
        self._places: list[Place | None] = [None] * len(jobs)
        self._begins = [0] * len(jobs)
        self._paid = [0.0] * len(jobs)
        #: What the plan costs, and the best one so far.
        self.value = self.best_value = np.inf
        self._best: list[Place] = []

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed."""
        return bool(self._ledger.running.changeable)

    def offset(self, _: Offer) -> float:
        """Return what the chain's own figures lack to be values of the objective."""
        return self._values.offset()

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys by which a list of the jobs may be sorted, smallest first: work over cost, for several
        ideas of work.
        """
        instance = self._instance
        price = rates_of(start_costs(instance, self._jobs))
        time = np.array(self._durations, dtype=np.float64)
        keys = {
            "nodes": np.array([sum(s.walltime * _nodes(instance, s) for s in job.steps) for job in self._jobs]) / price,
            "widest": np.array([max(_nodes(instance, s) for s in job.steps) for job in self._jobs]) * time / price,
            "walltime": time / price,
        }
        return keys | {"tails": -time} if self._end_price > 0 else keys

    def plan_list(self, keys: NDArray[np.float64], limit: float = np.inf) -> float | None:
        """Plan the jobs afresh as a list in ascending order of `keys`, each after all that it waits for.

        Returns
        -------
        float or None
            What the list costs; None if a job finds no place in it, or if it costs more than `limit`: the chain has no
            plan then.
        """
        self._clear()
        cost = self._values.of_running()
        for job in awaited_first(self._ledger.table, np.argsort(keys, kind="stable")).tolist():
            if not self._insert(job):
                return None
            cost += self._paid[job]
            if cost > limit:
                return None
        return self._note_plan()

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs; tell whether each may stand where it stands there."""
        self._clear()
        if not self._ledger.running.restore(plan):
            return False
        planned_of = {planned.id: planned for planned in plan}
        starts = np.array([planned_of[job.id].start for job in self._jobs])
        for job in awaited_first(self._ledger.table, np.argsort(starts, kind="stable")).tolist():
            if not self._ledger.restore(planned_of[self._jobs[job].id]):
                return False
            self._note(job)
        self._note_plan()
        return True

    def shrink_running(self, is_over: Callable[[], bool]) -> None:
        """Let running jobs go on with less where the plan is worth more for it."""
        order = [self._jobs[job].id for job in sorted(range(len(self._jobs)), key=self._begins.__getitem__)]
        if go_on_shrunk(self._ledger, order, self._values, is_over=is_over):
            for job in range(len(self._jobs)):
                self._note(job)
            self._note_plan()

    def _clear(self) -> None:
        """Take all jobs out."""
        for job, place in enumerate(self._places):
            if place is not None:
                self._lift(job)

    def _note_plan(self) -> float:
        """Value a plan that was not made step by step; keep it if it is the best one."""
        self.value = sum(self._paid) + self._end_price * self._last_end() + self._values.of_running()
        self._note_best()
        return self.value

    def _note_best(self) -> None:
        """Keep the present plan if it is the best one so far."""
        if self.value < self.best_value:
            self.best_value, self._best = self.value, [place for place in self._places if place is not None]
            self._best_running = self._ledger.running.plans()

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that it may change."""
        # what stands there is read, and not asked whether it is free beside the running jobs of the present plan
        present = [place for place in self._places if place is not None]
        self._stand(self._best)
        best = [planned for job in self._jobs if (planned := self._ledger.planned(job.id)) is not None]
        self._stand(present)
        return self._best_running + best

    def _stand(self, places: Sequence[Place]) -> None:
        """Let all jobs stand at places of theirs."""
        self._clear()
        for job, place in enumerate(places):
            self._put_back(job, place)

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: NDArray[np.float64]) -> None:
        """Set the order in which jobs that were removed together tend to come back: smallest first."""
        self._ranks = keys.tolist()

    def run(self, steps: int, warmth: float) -> None:
        """Do so many steps at one temperature (in mean costs of a job)."""
        for _ in range(steps):
            self._step(warmth)

    def _step(self, warmth: float) -> None:
        """Take some jobs out and insert them again in another order; keep what is better, and sometimes what is not."""
        chosen = self._chosen()
        room = -warmth * self.value / len(self._jobs) * log(max(self._random.random(), 1e-300))
        before, end_before = sum(self._paid[job] for job in chosen), self._last_end()
        paid, places = [self._paid[job] for job in chosen], [self._lift(job) for job in chosen]
        limit, after = before + room, 0.0
        for job in self._sequence(chosen):
            if not self._insert(job):
                break
            after += self._paid[job]
            if after > limit:
                break
        else:
            after += self._end_price * (self._last_end() - end_before)
            if after <= limit:
                self.value += after - before
                self._note_best()
                return
        for job in chosen:
            if self._places[job] is not None:
                self._lift(job)
        for job, cost, place in zip(chosen, paid, places, strict=True):
            self._put_back(job, place)
            self._paid[job] = cost

    def _chosen(self) -> list[int]:
        """Choose a job that waits dearly and some that run when it could; or jobs that start at about the same time."""
        random, count = self._random, len(self._jobs)
        wanted = min(count, 2 + random.randrange(_MOST_REMOVED - 1))
        first = max((random.randrange(count) for _ in range(3)), key=self._paid.__getitem__)
        start = self._begins[first]
        moment = random.randint(int(self._ledger.table.jobs[first, 1]), start)
        end = moment + self._durations[first]
        beside = [
            job
            for job, place in enumerate(self._places)
            if place is not None and job != first and place.start < end and place.end > moment
        ]
        if random.random() < 0.3 or len(beside) < wanted - 1:
            beside = sorted(
                (job for job in range(count) if job != first), key=lambda job: abs(self._begins[job] - start)
            )
            beside = beside[: 4 * wanted]
        return [first, *random.sample(beside, min(wanted - 1, len(beside)))]

    def _sequence(self, chosen: Sequence[int]) -> list[int]:
        """Return in which order jobs that were taken out come back: that of their ranks or old starts, with noise."""
        random, style = self._random, self._random.random()
        if style < 0.2:
            keys = {job: random.random() for job in chosen}
        elif style < 0.6:
            keys = {job: self._ranks[job] * (0.5 + random.random()) for job in chosen}
        else:
            keys = {job: self._begins[job] + 0.3 * random.random() * self._durations[job] for job in chosen}
        if random.random() < 0.5:
            keys[chosen[0]] = -np.inf
        return sorted(chosen, key=keys.__getitem__)

    # --- single jobs --------------------------------------------------------------------------------------------

    def _insert(self, job: int) -> bool:
        """Let a job stand where it ends earliest beside all that stand, one that can be shrunk where it costs least;
        tell whether it found a place.
        """
        if place_cheaply(self._ledger, job, self._values) is None:
            return False
        self._note(job)
        return True

    def _note(self, job: int) -> None:
        """Note where a job stands, and what that costs."""
        place = self._ledger.place_of(self._jobs[job].id)
        self._places[job], self._begins[job] = place, place.start
        self._paid[job] = self._values.cost_of(job, place)

    def _put_back(self, job: int, place: Place) -> None:
        """Let a job stand where it stood."""
        self._ledger.put_back(self._jobs[job].id, place)
        self._places[job], self._begins[job] = place, place.start

    def _last_end(self) -> int:
        """Return when the last one of those that stand ends."""
        return max((place.end for place in self._places if place is not None), default=0)

    def _lift(self, job: int) -> Place:
        """Take a job out; return where it stood."""
        place = self._places[job]
        assert place is not None  # noqa: S101 - callers take out who stands
        self._ledger.release(self._jobs[job].id)
        self._places[job] = None
        return place


def _nodes(instance: Instance, step: Step) -> float:
    """Return how many nodes a step takes, each chunk as much of one as its dominant share."""
    return sum(count * share for count, share in node_shares(instance, step.request))
