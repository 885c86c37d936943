"""One chain of the search for jobs that evolve over whole nodes of one kind: nodes are counted, and named at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, PlannedJob, repeated
from cpsched.metrics import objective_value
from cpsched.planner import costs_at, end_price, start_costs
from cpsched.problem import Hold, Machine, application_of, map_to_nodes, planned_on_nodes, planning_order
from cpsched.search import evolving_kernels as kernels
from cpsched.search.costs import guided, rates_of

__all__ = ["EvolvingChain"]

Ints = NDArray[np.int64]


class EvolvingChain:
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    No step is held longer than its walltime, so that nothing is wasted: every plan is one of the noX of Klein and
    Pérez (EVO-11) for its jobs in some order, or better, because later jobs keep their places when an earlier job
    moves.

    Parameters
    ----------
    instance
        Of whole nodes of one kind (`beyond_whole_nodes`).
    jobs
        The jobs to plan, one or more; each has a feasible start.
    seed
        The same jobs, calls and seed give the same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._machine = Machine.of(instance)
        self._applications = [application_of(instance, job) for job in jobs]
        pieces = [_pieces(application.steps) for application in self._applications]
        ends = list(accumulate(map(len, pieces), initial=0))
        flat: Ints = np.array([piece for of_job in pieces for piece in of_job], dtype=np.int64)
        spans: Ints = np.array(list(pairwise(ends)), dtype=np.int64)
        self._earliest: Ints = np.array([one.earliest for one in self._applications], dtype=np.int64)
        self._durations: Ints = np.array([job.walltime for job in jobs], dtype=np.int64)
        self._costs = start_costs(instance, jobs, self._durations)
        self._end_price = float(end_price(instance))
        self._shapes = kernels.Shapes(spans, flat, len(self._machine.names))
        room = len(flat) + len(jobs)
        self._empty = kernels.Plan(_blank(len(jobs)), *_profile_of(self._machine.free_from, room=room))
        #: The current plan, and the same once more.
        self._plan, self._kept = _copied(self._empty), _copied(self._empty)
        self._best_starts = _blank(len(jobs))
        self._ranks = np.zeros(len(jobs))
        self._draft = kernels.Draft(
            random=np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64),
            marks=_blank(len(jobs) + 1),
            chosen=_blank(kernels.MOST_REMOVED),
            keys=np.zeros(kernels.MOST_REMOVED),
        )
        #: The cost of the best plan so far.
        self.best_value = np.inf
        self.plan_list(self._queue())

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective."""
        return objective_value(self._instance, self.best()) - self.best_value

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys for list schedules of the jobs, smallest first: the order of the queue, then work over
        cost for several definitions of work; where the end of the last job counts, also the longest jobs first.
        """
        price = rates_of(self._costs)
        areas = [sum(seconds * nodes for seconds, nodes in one.steps) for one in self._applications]
        widest = [max(nodes for _, nodes in one.steps) for one in self._applications]
        keys = {
            "queue": self._queue(),
            "area": np.array(areas) / price,
            "box": np.array(widest) * self._durations / price,
            "walltime": self._durations / price,
        }
        return keys | {"tails": -self._durations.astype(np.float64)} if self._end_price > 0 else keys

    def _queue(self) -> NDArray[np.float64]:
        """Return the place of each job in the planner's order."""
        places = {job.id: place for place, job in enumerate(planning_order(self._instance, self._jobs))}
        return np.array([places[job.id] for job in self._jobs], dtype=np.float64)

    def plan_list(self, keys: NDArray[np.float64], limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`.

        Returns
        -------
        float or None
            The cost of the list schedule; None if its starts cost more than `limit`: the chain then has no plan.
        """
        return self._settle(np.argsort(keys, kind="stable"), self._earliest, limit)

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs: each keeps its start or, if the plan holds steps, starts as early as
        possible.
        """
        starts_of = {planned.id: planned.start - self._instance.now for planned in plan}
        starts = np.array([starts_of[job.id] for job in self._jobs], dtype=np.int64)
        return self._settle(np.argsort(starts, kind="stable"), starts, np.inf) is not None

    def _settle(self, order: Ints, least: Ints, limit: float) -> float | None:
        """Insert jobs in this order into the empty plan; see `kernels.settle`."""
        self._plan = _copied(self._empty)
        if not kernels.settle(order, least, limit, self._costs, self._shapes, self._plan):
            return None
        self._kept = _copied(self._plan)
        value = self._value_of(self.starts)
        if value < self.best_value:
            self.best_value, self._best_starts = value, self.starts.copy()
        return value

    def _value_of(self, starts: Ints) -> float:
        """Return the cost of starts: the part of a plan's value that depends on them."""
        last = int((starts + self._durations).max())
        return float(costs_at(self._costs, starts[:, None]).sum()) + self._end_price * last

    @property
    def starts(self) -> Ints:
        """The starts of the current plan (s after `now`)."""
        starts: Ints = self._plan.starts
        return starts

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: NDArray[np.float64]) -> None:
        """Set the ranks by which jobs removed together tend to be inserted again: smallest first."""
        self._ranks = keys.astype(np.float64)

    def run(self, steps: int, temperature: float) -> None:
        """Do `steps` steps at one temperature (in mean costs of a job)."""
        end = float((self._best_starts + self._durations).max())
        guide = guided(self._costs, self._end_price, self._durations, end)
        costs = kernels.Costs(self._earliest, self._costs, guide, self._ranks, self._end_price)
        self.best_value = kernels.ruin_and_recreate(
            *(steps, temperature, self.best_value, self._best_starts),
            *(self._shapes, costs, self._draft, self._plan, self._kept),
        )

    # --- the best plan ------------------------------------------------------------------------------------------

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs."""
        holds = [
            _holds(application.steps, start)
            for application, start in zip(self._applications, self._best_starts.tolist(), strict=True)
        ]
        nodes = map_to_nodes(holds, self._machine.free_from)
        running = [repeated(job) for job in self._instance.jobs if job.running is not None]
        return running + [
            planned_on_nodes(self._instance, job, self._machine, steps, held)
            for job, steps, held in zip(self._jobs, holds, nodes, strict=True)
        ]


def _pieces(steps: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return (since, until, nodes) of the longest pieces in which a job has the same number of nodes."""
    lasting = [(sum(seconds for seconds, _ in same), nodes) for nodes, same in groupby(steps, key=itemgetter(1))]
    borders = pairwise(accumulate((seconds for seconds, _ in lasting), initial=0))
    return [(since, until, nodes) for (since, until), (_, nodes) in zip(borders, lasting, strict=True)]


def _holds(steps: Sequence[tuple[int, int]], start: int) -> list[Hold]:
    """Return the steps as segments, each directly after the one before."""
    borders = pairwise(accumulate((seconds for seconds, _ in steps), initial=start))
    return [Hold(begin, end, nodes) for (begin, end), (_, nodes) in zip(borders, steps, strict=True)]


def _blank(length: int) -> Ints:
    return np.zeros(length, dtype=np.int64)


def _copied(plan: kernels.Plan) -> kernels.Plan:
    return kernels.Plan(*(array.copy() for array in plan))


def _profile_of(free_from: Sequence[int], room: int) -> tuple[Ints, Ints, Ints]:
    """Return times, amounts and size of the profile of the running jobs, with space for this number of further
    breakpoints.
    """
    ends, counts = np.unique([end for end in free_from if end > 0], return_counts=True)
    times, used = _blank(1 + len(ends) + room), _blank(1 + len(ends) + room)
    times[1 : 1 + len(ends)] = ends
    used[: len(ends)] = np.cumsum(counts[::-1])[::-1]
    return times, used, np.array([1 + len(ends)], dtype=np.int64)
