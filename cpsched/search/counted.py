"""One chain of the search for jobs on whole nodes of one kind, or with one kind of chunks: these are counted, and nodes
named at the end.
"""

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, PlannedJob, repeated
from cpsched.metrics import objective_value
from cpsched.planner import end_price, start_costs
from cpsched.problem import Hold, Machine, application_of, map_to_nodes, planned_on_nodes, planning_order
from cpsched.rusv import FOREVER, JobTable
from cpsched.search.arrays import Counted
from cpsched.search.costs import list_keys
from cpsched.search.plan import SearchedPlan, empty_places, empty_step

Ints = NDArray[np.int64]
#: The most jobs that one step removes.
_MOST_REMOVED = 30


class CountedChain(SearchedPlan):
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    No step of an evolving job is held longer than its walltime, so that nothing is wasted: every plan is one of the noX
    of Klein and Pérez (EVO-11) for its jobs in some order, or better, because later jobs keep their places when an
    earlier job moves.

    `machine`: the nodes, or places for chunks, of the instance (`places_of`). `jobs`: the jobs to plan, one or more;
    each has a feasible start. `seed`: the same jobs, calls and seed give the same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], machine: Machine, seed: int) -> None:
        self._instance, self._jobs, self._machine = instance, jobs, machine
        self._applications = [application_of(instance, job) for job in jobs]
        durations: Ints = np.array([job.walltime for job in jobs], dtype=np.int64)
        earliest: Ints = np.array([one.earliest for one in self._applications], dtype=np.int64)
        plan = empty_places([0] * len(jobs), 1)
        super().__init__(
            first_mode=np.arange(len(jobs) + 1),
            modes=(np.zeros(len(jobs), dtype=np.int64), np.full(len(jobs), FOREVER), durations),
            costs=start_costs(instance, jobs, durations),
            tails=durations,
            end_price=float(end_price(instance)),
            earliest=earliest,
            table=JobTable([(0, 0, FOREVER, 0)] * len(jobs)),
            plan=plan,
            step=empty_step(plan, len(jobs), 0, seed, _MOST_REMOVED, 0),
            counted=_counted(self._machine, [_pieces(application.steps) for application in self._applications]),
        )
        self.plan_list(self._queue())

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective."""
        return objective_value(self._instance, self.best()) - self.best_value

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys for list schedules of the jobs, smallest first; also by their places in the queue."""
        nodes = [[count for _, count in one.steps] for one in self._applications]
        is_changing = any(job.is_evolving for job in self._jobs)
        keys = list_keys(self._instance, self._jobs, self._costs, self._durations, nodes, is_changing=is_changing)
        return keys | {"queue": self._queue()}

    def _queue(self) -> NDArray[np.float64]:
        """Return the place of each job in the planner's order."""
        places = {job.id: place for place, job in enumerate(planning_order(self._instance, self._jobs))}
        return np.array([places[job.id] for job in self._jobs], dtype=np.float64)

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs: each keeps its start or, with held steps, starts as early as possible."""
        starts_of = {planned.id: planned.start - self._instance.now for planned in plan}
        starts: Ints = np.array([starts_of[job.id] for job in self._jobs], dtype=np.int64)
        return self._settle(np.argsort(starts, kind="stable"), starts, np.inf) is not None

    # --- the best plan ------------------------------------------------------------------------------------------

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs."""
        holds = [
            _holds(application.steps, start)
            for application, start in zip(self._applications, self.best_starts.tolist(), strict=True)
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


def _counted(machine: Machine, pieces: Sequence[Sequence[tuple[int, int, int]]]) -> Counted:
    """Return the pieces of the jobs, and the profile of the running jobs with space for further breakpoints."""
    since, until, amounts = np.array([piece for of_job in pieces for piece in of_job], dtype=np.int64).T.copy()
    ends, counts = np.unique([end for end in machine.free_from if end > 0], return_counts=True)
    times: Ints = np.zeros(1 + len(ends) + len(since) + len(pieces), dtype=np.int64)
    used = np.zeros_like(times)
    times[1 : 1 + len(ends)] = ends
    used[: len(ends)] = np.cumsum(counts[::-1])[::-1]
    return Counted(
        first_piece=np.cumsum([0, *map(len, pieces)]).astype(np.int64),
        since=since,
        until=until,
        amounts=amounts,
        capacity=np.array([len(machine.names)]),
        times=times,
        used=used,
        size=np.array([1 + len(ends)]),
        kept_times=np.zeros_like(times),
        kept_used=np.zeros_like(times),
        kept_size=np.zeros(1, dtype=np.int64),
    )
