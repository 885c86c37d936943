"""One chain of the search: a plan that ruin and recreate changes, and the best plan so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.planner import LEVEL, Values, costs_at, end_price
from cpsched.rusv import FOREVER, ahead, behind
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import kernels
from cpsched.search.costs import guided, left_out_fines
from cpsched.search.links import awaited_first, heads, tails

__all__ = ["Chain"]

#: The number of starts of equal demands that a list schedule remembers.
_MEMORY = 16


class Chain:
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to plan, one or more; each has a feasible start.
    seed
        The same jobs, calls and seed give the same plans.
    optional
        The ids of those that a plan may leave out, at a price above all that plans can differ by otherwise.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int, optional: Collection[str] = ()) -> None:
        self._jobs = jobs
        self.ledger = Ledger(instance, jobs, has_parts=False)
        table = self.ledger.table
        #: The cost of each second of makespan.
        self.end_price = end_price(instance)
        self._values = Values(instance, self.ledger)
        #: Whether plans may leave out each job, and the price of that.
        self._is_optional = np.array([job.id in optional for job in jobs])
        self._fines = self._own = np.zeros(len(jobs))
        if self.is_open:
            self._own = self._values.own_offsets()
            fines = left_out_fines(self._values, table, self.end_price)
            self._fines = np.where(self._is_optional, fines - self._own, 0.0)
        #: The modes of all jobs, one after the other, where those of each job begin, and which of them it has now. The
        #: last one of a job that may be left out is to be left out.
        numbers = np.array([len(modes) for modes in self.ledger.modes])
        self._first_mode = np.cumsum([0, *(numbers + self._is_optional)])
        modes = np.array([(one.demand, one.latest, one.duration) for modes in self.ledger.modes for one in modes])
        leaving = np.cumsum(numbers)[self._is_optional]
        self._modes = np.insert(modes, leaving, (kernels.NO_DEMAND, FOREVER, 0), axis=0)
        self._taken = self._first_mode[:-1].copy()
        self._owners = np.repeat(np.arange(len(jobs)), np.diff(self._first_mode))
        #: The true costs of starts, in each mode.
        self._mode_costs = np.insert(self._values.costs, leaving, 0.0, axis=0)
        self._mode_costs[self._modes[:, kernels.F_DEMAND] == kernels.NO_DEMAND, LEVEL] = self._fines[self._is_optional]
        #: Earliest starts that the jobs and their dependencies allow (s after `now`).
        self.earliest = heads(table)
        #: Seconds from the start of each job to the end of the last job that waits for it.
        self.tails = tails(table)
        self._set_guide(np.inf)
        self._figures = np.zeros(4)
        count, nodes = len(jobs), len(instance.cluster.node_names)
        #: The most entries that the placement of each job may have.
        rooms = np.array([sum(min(chunk.count, nodes) for chunk in job.request.chunks) for job in jobs], dtype=np.int64)
        table.reserve(rooms)
        self._ranks = np.zeros(count)
        self._nodes_of = np.zeros((count, -(-nodes // 64)), dtype=np.uint64)
        self._draft = kernels.Draft(
            figures=self._figures,
            random=np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64),
            marks=np.zeros(count + 1, dtype=np.int64),
            chosen=np.zeros(kernels.MOST_REMOVED, dtype=np.int64),
            keys=np.zeros(kernels.MOST_REMOVED),
            sequence=np.zeros(kernels.MOST_REMOVED, dtype=np.int64),
            old=np.zeros((kernels.MOST_REMOVED, 3), dtype=np.int64),
            old_pool=np.zeros((kernels.MOST_REMOVED, int(rooms.max()), 3), dtype=np.int32),
            best_entries=np.zeros((int(rooms.max()), 3), dtype=np.int32),
            fitting=np.zeros((nodes, 2), dtype=np.int64),
        )
        self.best_value = np.inf

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed, or waiting ones shrunk."""
        return bool(self.ledger.running.changeable) or any(len(modes) > 1 for modes in self.ledger.modes)

    @property
    def optional(self) -> frozenset[str]:
        """The ids of the jobs that plans may leave out."""
        return frozenset(job.id for job, may_go in zip(self._jobs, self._is_optional.tolist(), strict=True) if may_go)

    @property
    def is_open(self) -> bool:
        """Whether plans may leave out some jobs."""
        return bool(self._is_optional.any())

    @property
    def is_project(self) -> bool:
        """Whether jobs wait for each other, and the last end makes up most of the best plan's cost."""
        if self.best_value == np.inf or not self.ledger.table.is_linked:
            return False
        starts, _, _, modes = self._best
        return 2 * self.end_price * float((starts + self._modes[modes, kernels.F_DURATION]).max()) > self.best_value

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective, and the fines of the
        jobs that are left out.
        """
        return self._values.offset()

    def fine(self, planned: Collection[str]) -> float:
        """Return the price of leaving out all jobs but those with these ids."""
        is_left_out = np.array([job.id not in planned for job in self._jobs])
        return float((self._fines + self._own)[is_left_out].sum()) if is_left_out.any() else 0.0

    # --- whole plans --------------------------------------------------------------------------------------------

    def plan_list(self, keys: NDArray[np.float64], limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`, each after its dependencies, none shrunk.

        Jobs that may be left out are, where they find no place.

        Returns
        -------
        float or None
            The cost of the list schedule; None if a job finds no place in it and may not be left out, or if it costs
            more than `limit`: the chain then has no plan.
        """
        self.clear()
        bounds = np.zeros((int(self.ledger.table.jobs[:, 0].max()) + 1, _MEMORY + 1, 3), dtype=np.int64)
        order = awaited_first(self.ledger.table, np.argsort(keys, kind="stable"))
        return self._note_plan() if self._settle(order, limit - self._values.of_running(), bounds) else None

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs; return whether each may keep its place."""
        self.clear()
        if not self.ledger.running.restore(plan):
            return False
        planned_of = {planned.id: planned for planned in plan}
        last = max((planned.start for planned in plan), default=0)
        starts = np.array(
            [planned_of[job.id].start if job.id in planned_of else last for job in self._jobs], dtype=np.int64
        )
        order = awaited_first(self.ledger.table, np.argsort(starts, kind="stable"))
        if not all(self._restore(row, planned_of.get(self._jobs[row].id)) for row in order.tolist()):
            self.clear()
            return False
        self._note_modes()
        self._note_plan()
        return True

    def _restore(self, row: int, planned: PlannedJob | None) -> bool:
        """Book a job as a plan has it, or leave it out; return whether that is allowed."""
        if planned is not None:
            return self.ledger.restore(planned)
        table = self.ledger.table
        if self._is_optional[row]:
            table.jobs[row, [0, 2, 3]] = self._modes[self._first_mode[row + 1] - 1]
            table.starts[row], table.spans[row, 1] = table.window(row)[0], 0
        return bool(self._is_optional[row])

    def _note_modes(self) -> None:
        """Copy the modes of the jobs from the ledger."""
        is_left_out = self.ledger.table.jobs[:, 0] == kernels.NO_DEMAND
        modes = [
            last - first - 1 if is_out else self.ledger.mode(job.id)
            for job, is_out, first, last in zip(
                self._jobs, is_left_out.tolist(), self._first_mode.tolist(), self._first_mode[1:].tolist(), strict=False
            )
        ]
        self._take_modes(self._first_mode[:-1] + np.array(modes, dtype=np.int64))

    def _settle(self, order: NDArray[np.int64], limit: float, bounds: NDArray[np.int64]) -> bool:
        """Insert jobs in this order; see `kernels.settle`."""
        table, timeline = self.ledger.table, self.ledger.timeline
        code, done, costs = timeline_kernels.GROW_STATE, 0, self._costs()
        while code == timeline_kernels.GROW_STATE:
            code, done, limit = kernels.settle(
                order, done, limit, bounds, self._mode_costs, costs, table.arrays(), *timeline.kernel_arguments()
            )
            if code == timeline_kernels.GROW_STATE:
                timeline.grow()
        return bool(code == timeline_kernels.DONE)

    @property
    def _is_left_out(self) -> NDArray[np.bool_]:
        """Which jobs the plan leaves out."""
        is_left_out: NDArray[np.bool_] = self._modes[self._taken, kernels.F_DEMAND] == kernels.NO_DEMAND
        return is_left_out

    def late(self) -> NDArray[np.int64]:
        """Return the rows of the jobs that the plan leaves out, and of those for which they wait."""
        left_out = np.flatnonzero(self._is_left_out).tolist()
        return np.array(sorted(ahead(self.ledger.table.links, left_out)), dtype=np.int64)

    def _planned_rows(self) -> list[int]:
        """Return the rows of the jobs that the plan has: not those that wait for one that is left out."""
        lost = set(behind(self.ledger.table.links, np.flatnonzero(self._is_left_out).tolist()))
        return [row for row in range(len(self._jobs)) if row not in lost]

    def clear(self) -> None:
        """Remove all jobs, and set each to its full mode."""
        table = self.ledger.table
        kernels.clear(table.arrays(), *self.ledger.timeline.kernel_arguments())
        self._take_modes(self._first_mode[:-1])

    def _take_modes(self, modes: NDArray[np.int64]) -> None:
        """Set the mode of each job."""
        self._taken[:] = modes
        taken = self._modes[self._taken]
        self.ledger.table.jobs[:, 0] = taken[:, kernels.F_DEMAND]
        self.ledger.table.jobs[:, 2] = taken[:, kernels.F_LATEST]
        self.ledger.table.jobs[:, 3] = taken[:, kernels.F_DURATION]
        self._guide = self._mode_guide[self._taken]

    def _note_plan(self) -> float:
        """Value a plan that was not made step by step; keep it if it is the best one."""
        table = self.ledger.table
        for job in range(len(self._jobs)):
            kernels.note_nodes(job, table.spans, table.pool, self._nodes_of)
        value = self.value_of(table.starts)
        self._figures[kernels.VALUE] = self._guide_value(table.starts)
        if value < self.best_value:
            self._note_best(value)
        return value

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: NDArray[np.float64]) -> None:
        """Set the ranks by which jobs removed together tend to be inserted again: smallest first."""
        self._ranks = keys.astype(np.float64)

    def _costs(self) -> kernels.Costs:
        """Return what guides the kernels, as these take it."""
        return kernels.Costs(
            costs=self._guide,
            least_starts=self.earliest,
            ranks=self._ranks,
            nodes_of=self._nodes_of,
            first_mode=self._first_mode,
            modes=self._modes,
            mode_costs=self._mode_guide,
            taken=self._taken,
        )

    def run(self, steps: int, temperature: float) -> None:
        """Do `steps` steps at one temperature (in mean costs of a job)."""
        table, timeline = self.ledger.table, self.ledger.timeline
        costs = self._costs()
        self._figures[kernels.FINES] = self._fines[self._is_left_out].sum()
        target = self._figures[kernels.STEPS] + steps
        while (left := int(target - self._figures[kernels.STEPS])) > 0:
            code = kernels.ruin_and_recreate(
                left, temperature, self.end_price, costs, self._draft, table.arrays(), *timeline.kernel_arguments()
            )
            if code == timeline_kernels.GROW_STATE:
                timeline.grow()
        value = self.value_of(table.starts)
        self._figures[kernels.VALUE] = self._guide_value(table.starts)  # the sum of many differences drifts
        if value < self.best_value:
            self._note_best(value)

    # --- values -------------------------------------------------------------------------------------------------

    def value_of(self, starts: Sequence[int] | NDArray[np.int64]) -> float:
        """Return the cost of starts (s after `now`, one for each job): the part of a plan's value that depends on
        them.
        """
        return self._value(self.costs, np.asarray(starts, dtype=np.int64)) + self._values.of_running()

    def _guide_value(self, starts: NDArray[np.int64]) -> float:
        return self._value(self._guide, starts) + self._values.of_running()

    @property
    def costs(self) -> NDArray[np.float64]:
        """The true costs of starts in the current modes of the jobs (see `start_costs`)."""
        costs: NDArray[np.float64] = self._mode_costs[self._taken]
        return costs

    @property
    def full_costs(self) -> NDArray[np.float64]:
        """The true costs of starts of each job in its first mode."""
        costs: NDArray[np.float64] = self._mode_costs[self._first_mode[:-1]]
        return costs

    def _value(self, costs: NDArray[np.float64], starts: NDArray[np.int64]) -> float:
        last = int((starts + self.ledger.table.jobs[:, 3]).max())
        return float(costs_at(costs, starts[:, None]).sum()) + self.end_price * last

    def _set_guide(self, end: float) -> None:
        """Set the costs that guide the kernels.

        The end of the last job alone gives no guidance for all other jobs. Where it counts, each job that starts too
        late for an end before `end`, counting the jobs that wait for it, has a small cost.
        """
        own = self._modes[self._first_mode[self._owners], kernels.F_DURATION]
        tails = self.tails[self._owners] + self._modes[:, kernels.F_DURATION] - own
        self._mode_guide = guided(self._mode_costs, self.end_price, tails, end)
        self._guide = self._mode_guide[self._taken]

    @property
    def value(self) -> float:
        """The cost of the current plan by the guiding costs."""
        return float(self._figures[kernels.VALUE])

    # --- the best plan ------------------------------------------------------------------------------------------

    def _note_best(self, value: float) -> None:
        """Keep a copy of the current plan as the best one."""
        table = self.ledger.table
        self.best_value = value
        self._best = table.starts.copy(), table.spans.copy(), table.pool.copy(), self._taken.copy()
        self._best_running = self.ledger.running.plans()
        if self.end_price > 0:
            self._set_guide(float((table.starts + table.jobs[:, 3]).max()))
            self._figures[kernels.VALUE] = self._guide_value(table.starts)

    @property
    def best_starts(self) -> NDArray[np.int64]:
        """The starts of the best plan so far (s after `now`)."""
        return self._best[0]

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that the search may change."""
        table = self.ledger.table
        present = table.starts, table.spans, table.pool
        taken = self._taken.copy()
        table.starts, table.spans, table.pool = self._best[:3]
        self._take_modes(self._best[3])
        rows = self._planned_rows()
        best = [planned for row in rows if (planned := self.ledger.planned(self._jobs[row].id)) is not None]
        table.starts, table.spans, table.pool = present
        self._take_modes(taken)
        return self._best_running + best
