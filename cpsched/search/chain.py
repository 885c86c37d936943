"""One chain of the search: a plan that ruin and recreate changes, and the best plan so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.metrics import end_rate
from cpsched.planner import LEVEL, Values, costs_at, end_price
from cpsched.rusv import FOREVER, NOWHERE, ahead, behind
from cpsched.rusv import kernels as timeline_kernels
from cpsched.rusv.step_kernels import TimelineArrays
from cpsched.search import kernels
from cpsched.search.arrays import FINES, MOST_PARTS, NO_DEMAND, STEPS, VALUE, Changes, Jobs, Places, Step
from cpsched.search.costs import changing_list_keys, guided, left_out_fines, list_keys
from cpsched.search.links import awaited_first, heads, tails
from cpsched.search.place_kernels import cost_of_plan, release
from cpsched.search.tables import changes_of, empty_places, modes_in

__all__ = ["Chain"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Start, end, step or mode, and entries of a part.
Piece = tuple[int, int, int, NDArray[np.int32]]
#: What the kernels take: what is planned, the plan, what a step writes down, the timeline, and how jobs change.
Arrays = tuple[Jobs, Places, Step, TimelineArrays, Changes | None]

#: The number of starts of equal demands that a list schedule remembers.
_MEMORY = 16
#: The most jobs that one step removes; and where jobs change, of which each may be several bookings.
_MOST_REMOVED, _MOST_CHANGED = 30, 16


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
    changing
        Whether jobs change while they run: evolving jobs, which may be held; and malleable ones, waiting or running,
        which may change their share up to `MOST_PARTS` - 1 times. If not, each keeps one share to its end.
    """

    def __init__(
        self,
        instance: Instance,
        jobs: Sequence[Job],
        seed: int,
        optional: Collection[str] = (),
        *,
        changing: bool = False,
    ) -> None:
        self._instance, self._jobs = instance, jobs
        self.ledger = Ledger(instance, jobs, has_parts=changing)
        table, changeable = self.ledger.table, self.ledger.running.changeable
        #: The running jobs that may be changed: the rows behind the waiting ones.
        self._running = list(changeable) if changing else []
        #: The price of a second more of each running job, and when it ends in the instance (s after `now`).
        self._ends = {
            job.id: (float(end_rate(instance, job)), job.running.segments[-1].end - instance.now)
            for job in instance.jobs
            if job.running is not None and job.id in changeable
        }
        #: The cost of each second of makespan.
        self.end_price = float(end_price(instance))
        self._values = Values(instance, self.ledger)
        #: Whether plans may leave out each job, and the price of that.
        self._is_optional = np.array([job.id in optional for job in jobs])
        self._fines = self._own = np.zeros(len(jobs))
        if self.is_open:
            self._own = self._values.own_offsets()
            fines = left_out_fines(self._values, table, self.end_price)
            self._fines = np.where(self._is_optional, fines - self._own, 0.0)
        #: Earliest starts that the jobs and their dependencies allow (s after `now`).
        self.earliest = heads(table)
        #: Seconds from the start of each job to the end of the last job that waits for it.
        self.tails = tails(table)
        modes = modes_in(self.ledger, self._is_optional.tolist(), self._running, changing=changing)
        self._first_mode: Ints = np.array(modes.first, dtype=np.int64)
        self._demands, self._latest, self._durations = np.array(modes.rows, dtype=np.int64).T.copy()
        of_ledger, owners = np.array(modes.of_ledger), np.array(modes.owners)
        #: The true costs of starts, in each mode; running jobs have started.
        self._costs = np.where(of_ledger[:, None] >= 0, self._values.costs[of_ledger], 0.0)
        leaving = self._demands == NO_DEMAND
        leaving[self._first_mode[len(jobs)] :] = False
        self._costs[leaving, LEVEL] = self._fines[owners[leaving]]
        own = self._durations[self._first_mode[owners]]
        waiting = owners < len(jobs)
        self._mode_tails = np.full(len(owners), -FOREVER)
        self._mode_tails[waiting] = self.tails[owners[waiting]] + (self._durations - own)[waiting]
        nodes, sequences = len(instance.cluster.node_names), self.ledger.sequences
        spaces = [
            sequences.most_entries[sequence]
            if sequence >= 0
            else sum(min(one.count, nodes) for one in job.request.chunks)
            for job, (sequence, _) in zip(jobs, map(self.ledger.steps_of, range(len(jobs))), strict=True)
        ]
        most_parts = max([MOST_PARTS, *sequences.num_steps]) if changing else 1
        self._plan = empty_places([*spaces, *(0 for _ in self._running)], most_parts)
        room = max([*spaces, len(self.ledger.timeline.kernel_arguments()[2].entries)])
        self._changes = changes_of(instance, self.ledger, self._running, modes, room) if changing else None
        self._step = _step(
            len(self._plan.starts),
            len(jobs),
            nodes,
            seed,
            _MOST_CHANGED if changing else _MOST_REMOVED,
            room,
            most_parts,
        )
        self._ranks = np.zeros(len(jobs))
        self._set_guide(np.inf)
        #: The cost of the best plan so far.
        self.best_value = np.inf
        self._take_over_running()

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed, or waiting ones shrunk."""
        return bool(self.ledger.running.changeable) or any(len(modes) > 1 for modes in self.ledger.modes)

    @property
    def has_lenders(self) -> bool:
        """Whether a waiting or running job may change its share while it runs."""
        return self._changes is not None and len(self._changes.lenders) > 0

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
        return 2 * self.end_price * float(self._best.ends[: len(self._jobs)].max()) > self.best_value

    # --- values -------------------------------------------------------------------------------------------------

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective, and the fines of the
        jobs that are left out.
        """
        return self._values.offset()

    def fine(self, planned: Collection[str]) -> float:
        """Return the price of leaving out all jobs but those with these ids."""
        is_left_out = np.array([job.id not in planned for job in self._jobs])
        return float((self._fines + self._own)[is_left_out].sum()) if is_left_out.any() else 0.0

    def value_of(self, starts: Sequence[int] | Ints) -> float:
        """Return the cost of starts (s after `now`, one for each job) in the present modes of the jobs: the part of a
        plan's value that depends on them.
        """
        starts, taken = np.asarray(starts, dtype=np.int64), self._taken(self._plan)
        last = int((starts + self._durations[taken]).max())
        return float(costs_at(self.costs, starts[:, None]).sum()) + self.end_price * last + self._of_running()

    def _value(self, costs: Floats) -> float:
        """Return the cost of the plan by these costs of starts, to which what the jobs pay is set."""
        jobs, plan, _, _, changes = self._arrays(costs)
        return float(cost_of_plan(self.end_price, jobs, plan, changes)) + self._of_running()

    def _of_running(self) -> float:
        """Return the cost of the changes of the running jobs that the ledger has."""
        now, running = self._instance.now, self.ledger.running
        held = {name for name, count in zip(self._running, self._plan.counts[len(self._jobs) :], strict=True) if count}
        changed = ((name, one.end - now) for name, one in running.changed.items() if name not in held)
        return sum(self._ends[name][0] * (end - self._ends[name][1]) for name, end in changed)

    @property
    def costs(self) -> Floats:
        """The true costs of starts in the current modes of the jobs (see `start_costs`)."""
        costs: Floats = self._costs[self._taken(self._plan)]
        return costs

    @property
    def full_costs(self) -> Floats:
        """The true costs of starts of each job in its first mode."""
        costs: Floats = self._costs[self._first_mode[: len(self._jobs)]]
        return costs

    def _taken(self, plan: Places) -> Ints:
        """Return the mode of each waiting job in the first part of its place; without a place, its first one."""
        count = len(self._jobs)
        numbers = np.where(plan.starts[:count] == NOWHERE, 0, plan.numbers[:count, 0])
        taken: Ints = self._first_mode[:count] + numbers
        return taken

    def _left_out(self, plan: Places) -> list[int]:
        """Return the rows of the jobs that a plan leaves out."""
        rows: list[int] = np.flatnonzero(self._demands[self._taken(plan)] == NO_DEMAND).tolist()
        return rows

    def _set_guide(self, end: float) -> None:
        """Set the costs that guide the steps.

        The end of the last job alone gives no guidance for all other jobs. Where it counts, each job that starts too
        late for an end before `end`, counting the jobs that wait for it, has a small cost.
        """
        self._guide = guided(self._costs, self.end_price, self._mode_tails, end)
        waiting = self._first_mode[len(self._jobs)]
        earliest = np.repeat(self.earliest, np.diff(self._first_mode[: len(self._jobs) + 1]))
        costs = costs_at(self._guide[:waiting], earliest[:, None])[:, 0]
        self._least = np.minimum.reduceat(costs, self._first_mode[: len(self._jobs)])

    # --- arrays -------------------------------------------------------------------------------------------------

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
            linked=self.ledger.table.arrays()._replace(starts=self._plan.starts),
        )
        return jobs, self._plan, self._step, TimelineArrays(*self.ledger.timeline.kernel_arguments()), self._changes

    def _booking(self) -> tuple[Jobs, Places, TimelineArrays, Changes | None]:
        """Return what the kernels that only book take."""
        jobs, plan, _, timeline, changes = self._arrays(self._guide)
        return jobs, plan, timeline, changes

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, Floats]:
        """Return named keys for list schedules of the jobs, smallest first."""
        keys = list_keys if self._changes is None else changing_list_keys
        return keys(self._instance, self._jobs, self.full_costs, self.tails)

    def plan_list(self, keys: Floats, limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`, each after its dependencies. Only where
        jobs change while they run are some shrunk.

        Jobs that may be left out are, where they find no place.

        Returns
        -------
        float or None
            The cost of the list schedule; None if a job finds no place in it and may not be left out, or if it costs
            more than `limit`: the chain then has no plan.
        """
        self.clear()
        order = awaited_first(self.ledger.table, np.argsort(keys, kind="stable"))
        known = np.zeros((int(self._demands.max()) + 1, _MEMORY + 1, 3), dtype=np.int64)
        left, done, code = limit - self._value(self._costs), 0, timeline_kernels.GROW_STATE
        while code == timeline_kernels.GROW_STATE:
            code, done, left = kernels.settle(order, done, left, known, *self._arrays(self._costs))
            if code == timeline_kernels.GROW_STATE:
                self.ledger.timeline.grow()
        if code != timeline_kernels.DONE:
            self.clear()
            return None
        return self._note_plan()

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs; return whether each may keep its place."""
        ledger, table, ids = self.ledger, self.ledger.table, [job.id for job in self._jobs]
        self.clear()
        self._hand_over_running()
        planned_of = {planned.id: planned for planned in plan}
        pieces: dict[int, list[Piece]] = {}
        if ledger.running.restore(plan):
            last = max((planned.start for planned in plan), default=0)
            starts: Ints = np.array([planned_of[name].start if name in planned_of else last for name in ids])
            for row in awaited_first(table, np.argsort(starts, kind="stable")).tolist():
                planned = planned_of.get(ids[row])
                if planned is None and self._is_optional[row]:
                    table.starts[row] = start = table.window(row)[0]
                    number = int(self._first_mode[row + 1] - self._first_mode[row]) - 1
                    pieces[row] = [(start, start, number, np.zeros((0, 3), dtype=np.int32))]
                elif planned is not None and ledger.restore(planned):
                    pieces[row] = ledger.pieces(ids[row])
                else:
                    break
        for row in pieces:
            if ids[row] in planned_of:
                ledger.release(ids[row])
                ledger.take_mode(ids[row], 0)
            table.starts[row] = NOWHERE
        self._take_over_running()
        most = self._plan.begins.shape[1]
        if len(pieces) < len(ids) or any(len(placed) > most for placed in pieces.values()):
            return False
        for row, placed in pieces.items():
            self._write(row, placed)
        self._book(range(len(ids)))
        self._note_plan()
        return True

    def clear(self) -> None:
        """Remove all waiting jobs from the plan."""
        kernels.clear(*self._booking())

    def late(self) -> Ints:
        """Return the rows of the jobs that the plan leaves out, and of those for which they wait."""
        return np.array(sorted(ahead(self.ledger.table.links, self._left_out(self._plan))), dtype=np.int64)

    def _write(self, row: int, pieces: Sequence[Piece]) -> None:
        """Write the place of a job down; it is not booked by that."""
        plan, used = self._plan, 0
        is_evolving = row < len(self._jobs) and self._jobs[row].is_evolving
        for part, (start, end, number, entries) in enumerate(pieces):
            if not is_evolving:
                used = 0  # all parts of a malleable job are on the same nodes
            plan.begins[row, part], plan.until[row, part], plan.numbers[row, part] = start, end, number
            plan.first_entry[row, part], plan.entries[row, part] = used, len(entries)
            first = int(plan.spaces[row]) + used
            plan.pool[first : first + len(entries)] = entries
            used += len(entries)
        plan.starts[row], plan.ends[row], plan.counts[row] = pieces[0][0], pieces[-1][1], len(pieces)

    def _book(self, rows: Sequence[int]) -> None:
        """Book jobs at the places that are written down."""
        left: Ints = np.array(rows, dtype=np.int64)
        while len(left):
            code, done = kernels.book_all(left, *self._booking())
            left = left[done:]
            if code == timeline_kernels.GROW_STATE:
                self.ledger.timeline.grow()

    def _hand_over_running(self) -> None:
        """Give the running jobs back to the ledger, as it has recorded them."""
        for row, name in enumerate(self._running, start=len(self._jobs)):
            if self._plan.counts[row]:
                release(row, *self._booking())
                self._plan.counts[row], self._plan.starts[row] = 0, NOWHERE
                self.ledger.running.put_back(name)

    def _take_over_running(self) -> None:
        """Take the running jobs from the ledger, but those with another allocation than in one of their modes."""
        running, numbers = self.ledger.running, self.ledger.node_number
        nowhere = np.zeros((0, 3), dtype=np.int32)
        for row, name in enumerate(self._running, start=len(self._jobs)):
            shares = running.shares(name)
            is_plain = self._first_mode[row + 1] - self._first_mode[row] < 2
            if shares is None or is_plain or len(shares) > MOST_PARTS:
                continue
            running.lift(name)
            for held in running.changeable[name].allocations[0]:
                node = numbers[held.node]
                self._step.nodes_of[row, node >> 6] |= np.uint64(1 << (node & 63))
            self._write(row, [(*share, nowhere) for share in shares])
            self._book([row])

    def _note_plan(self) -> float:
        """Value a plan, anew if it was made step by step: the sum of many differences drifts. Keep it if it is the best
        one.
        """
        value = self._value(self._costs)
        self._step.figures[VALUE] = self._value(self._guide)
        if value < self.best_value:
            self._note_best(value)
        return value

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: Floats) -> None:
        """Set the ranks by which jobs removed together tend to be inserted again: smallest first."""
        self._ranks = keys.astype(np.float64)

    def run(self, steps: int, temperature: float) -> None:
        """Do `steps` steps at one temperature (in mean costs of a job)."""
        figures = self._step.figures
        figures[FINES] = self._fines[self._left_out(self._plan)].sum()
        target = figures[STEPS] + steps
        while (left := int(target - figures[STEPS])) > 0:
            code = kernels.ruin_and_recreate(left, temperature, self.end_price, *self._arrays(self._guide))
            if code == timeline_kernels.GROW_STATE:
                self.ledger.timeline.grow()
        self._note_plan()

    # --- the best plan ------------------------------------------------------------------------------------------

    def _note_best(self, value: float) -> None:
        """Keep a copy of the current plan as the best one."""
        self.best_value = value
        self._best = Places(*(array.copy() for array in self._plan))
        self._best_running = {one.id: one for one in self.ledger.running.plans()}
        if self.end_price > 0:
            self._set_guide(float(self._best.ends[: len(self._jobs)].max()))
            self._step.figures[VALUE] = self._value(self._guide)

    @property
    def starts(self) -> Ints:
        """The starts of the current plan (s after `now`)."""
        starts: Ints = self._plan.starts[: len(self._jobs)]
        return starts

    @property
    def best_starts(self) -> Ints:
        """The starts of the best plan so far (s after `now`)."""
        starts: Ints = self._best.starts[: len(self._jobs)]
        return starts

    def pieces(self, row: int) -> list[Piece]:
        """Return the place of a job in the current plan as (start, end, step or mode, entries), one after the other."""
        return _pieces(self._plan, row)

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that the search may change."""
        ledger, now, best, found = self.ledger, self._instance.now, self._best, dict(self._best_running)
        for row, name in enumerate(self._running, start=len(self._jobs)):
            if best.counts[row]:
                changes = [(now + start, mode) for start, _, mode, _ in _pieces(best, row)]
                found[name] = ledger.running.resumed_plan(name, changes)
        lost = set(behind(ledger.table.links, self._left_out(best)))
        rows = [row for row in range(len(self._jobs)) if row not in lost]
        return [*found.values(), *(ledger.planned_on(self._jobs[row].id, _pieces(best, row)) for row in rows)]


def _pieces(plan: Places, row: int) -> list[Piece]:
    """Return the parts of a job in a plan."""
    pieces = []
    for part in range(int(plan.counts[row])):
        first = int(plan.spaces[row] + plan.first_entry[row, part])
        entries = plan.pool[first : first + int(plan.entries[row, part])]
        pieces.append((int(plan.begins[row, part]), int(plan.until[row, part]), int(plan.numbers[row, part]), entries))
    return pieces


def _step(rows: int, jobs: int, nodes: int, seed: int, most: int, room: int, most_parts: int) -> Step:
    """Return the arrays that a step writes."""
    return Step(
        figures=np.zeros(4),
        random=np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64),
        marks=np.zeros(jobs + 1, dtype=np.int64),
        chosen=np.zeros(most, dtype=np.int64),
        keys=np.zeros(most),
        order=np.zeros(most, dtype=np.int64),
        nodes_of=np.zeros((rows, -(-nodes // 64)), dtype=np.uint64),
        fits=np.zeros(nodes, dtype=np.int64),
        taken=np.zeros(nodes, dtype=np.int64),
        old=empty_places([room] * (most + 1), most_parts),
        found=empty_places([room], most_parts),
        trial=empty_places([room], most_parts),
    )
