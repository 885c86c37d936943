"""A plan that the search changes, and the best one so far: what chains on a ledger and on counted nodes share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.planner import FIRST_KINK, LEVEL, RATE, costs_at
from cpsched.rusv import NOWHERE, JobTable, awaited_first, raise_earliest, relaxed
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import kernels
from cpsched.search.arrays import FINES, NO_DEMAND, STEPS, VALUE, Changes, Counted, Jobs, Places, Step, Timeline
from cpsched.search.costs import guided
from cpsched.search.place_kernels import cost_of_plan

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: What the kernels take: what is planned, the plan, what a step writes down, the timeline, and how jobs change.
Arrays = tuple[Jobs, Places, Step, Timeline | None, Changes | None]

#: The number of starts of equal demands that a list schedule remembers; and how often one is planned anew until all
#: jobs start within their ``max_delay``.
_MEMORY, _MOST_ROUNDS = 16, 100


class ListStyle(NamedTuple):
    """How lists choose the modes of jobs."""

    #: int64 (waiting jobs,): the mode of each; -1: that which costs it least when its turn comes.
    modes: Ints
    #: What such a mode is charged for the jobs behind it in the list: that many times what these lose while it holds
    #: its part of the machine.
    charge: float = 0.0


class SearchedPlan:
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    `first_mode`, `modes`, `costs`, `tails`: where the modes of each job begin; their demands, last starts and
    durations; what starts in them cost; and the seconds from a start to the end of the last job that waits for the job.
    `end_price`: the cost of each second of makespan. `earliest`: the earliest starts that the waiting jobs and their
    dependencies allow (s after `now`). `table`: the links between the waiting jobs. `plan`, `step`: no places of all
    jobs, and what a step writes down. `counted`: where nodes are only counted: the jobs and the profile.
    """

    def __init__(
        self,
        *,
        first_mode: Ints,
        modes: tuple[Ints, Ints, Ints],
        costs: Floats,
        tails: Ints,
        end_price: float,
        earliest: Ints,
        table: JobTable,
        plan: Places,
        step: Step,
        counted: Counted | None = None,
    ) -> None:
        self._first_mode, self._costs, self._mode_tails = first_mode, costs, tails
        self._demands, self._latest, self._durations = modes
        self._plan, self._step, self._counted, self._table = plan, step, counted, table
        #: How jobs change while they run; None: none does.
        self._changes: Changes | None = None
        self.end_price, self.earliest = end_price, earliest
        self._ranks = self._fines = np.zeros(len(earliest))
        #: How lists choose modes; and all ways that are worth trying, that by own requests first.
        self.list_style = ListStyle(np.zeros(len(earliest), dtype=np.int64))
        self.list_styles: tuple[ListStyle, ...] = (self.list_style,)
        #: The share of the machine that a job takes in each mode, times its seconds, where it has alternatives.
        self._areas: Floats = np.zeros(len(costs))
        self._set_guide(np.inf)
        #: The cost of the best plan so far.
        self.best_value = np.inf

    # --- arrays -------------------------------------------------------------------------------------------------

    def _timeline(self) -> Timeline | None:
        """Return the timeline on which jobs are booked, unless nodes are only counted."""
        return None

    def _grow(self) -> None:
        """Make space for more bookings."""

    def _arrays(self, costs: Floats) -> Arrays:
        """Return what the kernels take, with these costs of starts."""
        jobs = Jobs(
            first_mode=self._first_mode,
            demands=self._demands,
            latest=self._latest,
            durations=self._durations,
            costs=costs,
            earliest=self.earliest,
            least=self._least,
            ranks=self._ranks,
            listed=self.list_style.modes,
            linked=self._table.arrays()._replace(starts=self._plan.starts),
            counted=self._counted,  # type: ignore[arg-type]  # only read where there is no timeline
        )
        return jobs, self._plan, self._step, self._timeline(), self._changes

    def _booking(self) -> tuple[Jobs, Places, Timeline | None, Changes | None]:
        """Return what the kernels that only book take."""
        jobs, plan, _, timeline, changes = self._arrays(self._guide)
        return jobs, plan, timeline, changes

    def _set_guide(self, end: float) -> None:
        """Set the costs that guide the steps.

        The end of the last job alone gives no guidance for all other jobs. Where it counts, each job that starts too
        late for an end before `end`, counting the jobs that wait for it, has a small cost.
        """
        count = len(self.earliest)
        self._guide = guided(self._costs, self.end_price, self._mode_tails, end)
        earliest = np.repeat(self.earliest, np.diff(self._first_mode[: count + 1]))
        costs = costs_at(self._guide[: len(earliest)], earliest[:, None])[:, 0]
        self._least = np.minimum.reduceat(costs, self._first_mode[:count])

    # --- values -------------------------------------------------------------------------------------------------

    def _value(self, costs: Floats) -> float:
        """Return the cost of the plan by these costs of starts, to which what the jobs pay is set."""
        jobs, plan, _, changes = self._booking()
        value = cost_of_plan(self.end_price, jobs._replace(costs=costs), plan, changes)
        return float(value) + self._of_running()

    def _of_running(self) -> float:
        """Return the cost of the changes of running jobs that are not in the plan."""
        return 0.0

    def _taken(self, plan: Places) -> Ints:
        """Return the mode of each waiting job in the first part of its place; without a place, its first one."""
        count = len(self.earliest)
        numbers = np.where(plan.starts[:count] == NOWHERE, 0, plan.numbers[:count, 0])
        taken: Ints = self._first_mode[:count] + numbers
        return taken

    def _left_out(self, plan: Places) -> list[int]:
        """Return the rows of the jobs that a plan leaves out."""
        rows: list[int] = np.flatnonzero(self._demands[self._taken(plan)] == NO_DEMAND).tolist()
        return rows

    # --- whole plans --------------------------------------------------------------------------------------------

    def plan_list(self, keys: Floats, limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`, each after its dependencies. Only where
        jobs change while they run are some shrunk.

        Jobs that may be left out are, where they find no place. Lists that charge for modes keep no `limit`.

        Returns the cost of the list schedule; None if a job finds no place in it and may not be left out, or if it
        costs more than `limit`: the chain then has no plan.

        Where a job follows another too late, the other starts later, and the list is planned anew; such a list keeps no
        `limit`. The same is None where that does not end.
        """
        order, links = awaited_first(self._table.links, np.argsort(keys, kind="stable")), self._table.links
        if not len(links.soon):
            return self._settle(order, self.earliest, limit)
        earliest = self.earliest.copy()
        for _ in range(_MOST_ROUNDS):
            self._table.link(relaxed(links))
            is_whole = self._insert_all(order, earliest, np.inf)
            self._table.link(links)
            if not is_whole:
                return None
            if not raise_earliest(links, self.starts, earliest):
                return self._note_plan()
        self.clear()
        return None

    def _settle(self, order: Ints, earliest: Ints, limit: float) -> float | None:
        """Insert all jobs in an order into the empty plan, none before its earliest start; return what that costs."""
        return self._note_plan() if self._insert_all(order, earliest, limit) else None

    def _insert_all(self, order: Ints, earliest: Ints, limit: float) -> bool:
        """Insert all jobs into the empty plan; see `kernels.settle`. Return whether each has a place."""
        self.clear()
        known = np.zeros((int(self._demands.max()) + 1, _MEMORY + 1, 3), dtype=np.int64)
        left, done, code = limit - self._value(self._costs), 0, timeline_kernels.R.GROW_STATE
        costs = self._costs
        if self.list_style.charge:
            left, costs = np.inf, self._charged(order)
        while code == timeline_kernels.R.GROW_STATE:
            jobs, plan, step, timeline, changes = self._arrays(costs)
            jobs = jobs._replace(earliest=earliest)
            code, done, left = kernels.settle(order, done, left, known, jobs, plan, step, timeline, changes)
            if code == timeline_kernels.R.GROW_STATE:
                self._grow()
        if code != timeline_kernels.R.DONE:
            self.clear()
        return bool(code == timeline_kernels.R.DONE)

    def _charged(self, order: Ints) -> Floats:
        """Return the costs of starts with what a list in this order charges each mode for the jobs behind it."""
        costs, count = self._costs.copy(), len(order)
        rates, behind = costs[self._first_mode[order], RATE], np.zeros(count)
        behind[order] = rates[::-1].cumsum()[::-1] - rates
        of_waiting = slice(int(self._first_mode[count]))
        charges = np.repeat(self.list_style.charge * behind, np.diff(self._first_mode[: count + 1]))
        costs[of_waiting, LEVEL] += charges * self._areas[of_waiting]
        return costs

    def clear(self) -> None:
        """Remove all waiting jobs from the plan."""
        kernels.clear(*self._booking())

    def _note_plan(self) -> float:
        """Value a plan, anew if it was made in steps: a sum of many differences drifts. Keep it if it is the best."""
        value = self._value(self._costs)
        self._step.figures[VALUE] = value if self._guide is self._costs else self._value(self._guide)
        if value < self.best_value:
            self._note_best(value)
        return value

    def _note_best(self, value: float) -> None:
        """Keep a copy of the current plan as the best one."""
        self.best_value = value
        self._best = Places(*(array.copy() for array in self._plan))
        if self.end_price > 0:
            self._set_guide(float(self._best.ends[: len(self.earliest)].max()))
            self._step.figures[VALUE] = self._value(self._guide)

    @property
    def starts(self) -> Ints:
        """The starts of the current plan (s after `now`)."""
        starts: Ints = self._plan.starts[: len(self.earliest)]
        return starts

    @property
    def best_starts(self) -> Ints:
        """The starts of the best plan so far (s after `now`)."""
        starts: Ints = self._best.starts[: len(self.earliest)]
        return starts

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: Floats) -> None:
        """Set the ranks by which jobs removed together tend to be inserted again: smallest first."""
        self._ranks = keys.astype(np.float64)

    @property
    def depth(self) -> float:
        """The cost of the plan, as a multiple of what it would be if each job waited as long as a mean job runs: it
        grows with the number of jobs that run one after the other. 0 where the last end counts, or where no wait costs.
        """
        first = self._first_mode[: len(self.earliest)]
        costs = self._costs[first]
        waits = float((costs[:, RATE].sum() + costs[:, FIRST_KINK::2].sum()) * self._durations[first].mean())
        if self.end_price > 0 or waits <= 0:
            return 0.0
        return max(0.0, float(self._step.figures[VALUE]) - self._fined()) / waits

    def _fined(self) -> float:
        """Return the part of the value that is paid for jobs that the plan leaves out."""
        return float(self._fines[self._left_out(self._plan)].sum()) if self._fines.any() else 0.0

    def run(self, steps: int, temperature: float) -> None:
        """Do `steps` steps at one temperature (in mean costs of a job)."""
        figures = self._step.figures
        figures[FINES] = self._fined()
        target = figures[STEPS] + steps
        while (left := int(target - figures[STEPS])) > 0:
            code = kernels.ruin_and_recreate(left, temperature, self.end_price, *self._arrays(self._guide))
            if code == timeline_kernels.R.GROW_STATE:
                self._grow()
        self._note_plan()


def empty_places(spaces: Sequence[int], most_parts: int) -> Places:
    """Return no places of jobs, with space for these numbers of entries, and for so many parts of each."""
    rows, firsts = len(spaces), np.cumsum([0, *spaces]).astype(np.int64)
    begins, until, numbers, first_entry, entries = np.zeros((5, rows, most_parts), dtype=np.int64)
    return Places(
        starts=np.full(rows, NOWHERE, dtype=np.int64),
        ends=np.zeros(rows, dtype=np.int64),
        counts=np.zeros(rows, dtype=np.int64),
        paid=np.zeros(rows),
        begins=begins,
        until=until,
        numbers=numbers,
        first_entry=first_entry,
        entries=entries,
        spaces=firsts,
        pool=np.zeros((int(firsts[-1]), 3), dtype=np.int32),
    )


def empty_step(plan: Places, jobs: int, nodes: int, seed: int, most: int, room: int) -> Step:
    """Return the arrays that a step writes: on a plan of so many waiting jobs, on so many nodes, if it removes `most`
    jobs at the most, with space for `room` entries of one job.
    """
    most_parts = plan.begins.shape[1]
    return Step(
        figures=np.zeros(4),
        random=np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64),
        marks=np.zeros(jobs + 1, dtype=np.int64),
        chosen=np.zeros(most, dtype=np.int64),
        keys=np.zeros(most),
        order=np.zeros(most, dtype=np.int64),
        nodes_of=np.zeros((len(plan.starts), -(-nodes // 64)), dtype=np.uint64),
        fits=np.zeros(nodes, dtype=np.int64),
        taken=np.zeros(nodes, dtype=np.int64),
        old=empty_places([room] * (most + 1), most_parts),
        trial=empty_places([room], most_parts),
    )
