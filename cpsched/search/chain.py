"""One chain of the search: a plan that ruin and recreate changes, and the best plan so far."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.metrics import end_rate
from cpsched.planner import LEVEL, Values, costs_at, end_price
from cpsched.rusv import FOREVER, NOWHERE, ahead, awaited_first, behind, heads, lasts
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import kernels
from cpsched.search.arrays import MOST_PARTS, NO_DEMAND, Places, Timeline
from cpsched.search.costs import left_out_fines, list_keys, share_of_nodes
from cpsched.search.place_kernels import release
from cpsched.search.plan import ListStyle, SearchedPlan, empty_places, empty_step
from cpsched.search.tables import changes_of, modes_in

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Start, end, step or mode, and entries of a part.
Piece = tuple[int, int, int, NDArray[np.int32]]

#: The most jobs that one step removes; and where jobs change, of which each may be several bookings.
_MOST_REMOVED, _MOST_CHANGED = 30, 16
#: What lists charge an alternative for the jobs behind it (`ListStyle`).
_CHARGE = 2.0


class Chain(SearchedPlan):
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
        self.ledger = ledger = Ledger(instance, jobs, has_parts=changing)
        changeable, price, count = ledger.running.changeable, float(end_price(instance)), len(jobs)
        #: The running jobs that may be changed: the rows behind the waiting ones.
        self._running = list(changeable) if changing else []
        #: The price of a second more of each running job, and when it ends in the instance (s after `now`).
        self._ends = {
            job.id: (float(end_rate(instance, job)), job.running.segments[-1].end - instance.now)
            for job in instance.jobs
            if job.running is not None and job.id in changeable
        }
        self._values = Values(instance, ledger)
        #: Whether plans may leave out each job, and the price of that.
        self._is_optional = np.array([job.id in optional for job in jobs])
        fines = self._own = np.zeros(count)
        if self.is_open:
            self._own = self._values.own_offsets()
            longest = np.array([max(mode.duration for mode in of_job) for of_job in ledger.modes], dtype=np.int64)
            out = left_out_fines(self._values, ledger.table, longest, price)
            fines = np.where(self._is_optional, out - self._own, 0.0)
        #: Seconds from the start of each job to the end of the last job that waits for it.
        self.tails = -lasts(ledger.table.links, -ledger.table.jobs[:, 3])
        modes = modes_in(ledger, self._is_optional.tolist(), self._running, changing=changing)
        first_mode: Ints = np.array(modes.first, dtype=np.int64)
        of_ledger, owners = np.array(modes.of_ledger), np.array(modes.owners)
        demands, latest, durations = np.array(modes.rows, dtype=np.int64).T.copy()
        is_waiting = owners < count
        is_leaving = is_waiting & (demands == NO_DEMAND)
        costs = np.where(of_ledger[:, None] >= 0, self._values.costs[of_ledger], 0.0)  # running jobs have started
        costs[is_leaving, LEVEL] = fines[owners[is_leaving]]
        of_modes = np.full(len(owners), -FOREVER)
        own = durations[first_mode[owners]]
        of_modes[is_waiting] = self.tails[owners[is_waiting]] + (durations - own)[is_waiting]
        nodes, sequences = len(instance.cluster.node_names), ledger.sequences
        spaces = [
            sequences.most_entries[sequence]
            if sequence >= 0
            else max(sum(min(one.count, nodes) for one in mode.request.chunks) for mode in of_job)
            for of_job, (sequence, _) in zip(ledger.modes, map(ledger.steps_of, range(count)), strict=True)
        ]
        room = max([*spaces, len(ledger.timeline.kernel_arguments()[2].entries)])
        most_parts = max([MOST_PARTS, *sequences.num_steps]) if changing else 1
        plan = empty_places([*spaces, *(0 for _ in self._running)], most_parts)
        super().__init__(
            first_mode=first_mode,
            modes=(demands, latest, durations),
            costs=costs,
            tails=of_modes,
            end_price=price,
            earliest=heads(ledger.table.links, ledger.table.jobs[:, 1]),
            table=ledger.table,
            plan=plan,
            step=empty_step(plan, count, nodes, seed, _MOST_CHANGED if changing else _MOST_REMOVED, room),
        )
        self._fines = fines
        self._areas = np.where(of_ledger >= 0, self._values.areas[of_ledger], 0.0)
        self.list_styles = self._styles(changing=changing)
        self.list_style = self.list_styles[0]
        if changing:
            self._changes = changes_of(instance, ledger, self._running, modes, room)
        self._take_over_running()

    def _styles(self, *, changing: bool) -> tuple[ListStyle, ...]:
        """Return how lists may choose modes: those of the jobs' own requests, and of alternatives the cheapest."""
        has_alternatives = np.array([bool(job.alternatives) for job in self._jobs])
        if changing:
            shares = np.array([len(of_job) > 1 for of_job in self.ledger.modes])
            return (ListStyle(np.where(shares & ~has_alternatives, -1, 0)),)
        own = ListStyle(np.zeros(len(self._jobs), dtype=np.int64))
        return (own, ListStyle(np.where(has_alternatives, -1, 0), _CHARGE)) if has_alternatives.any() else (own,)

    @property
    def is_elastic(self) -> bool:
        """Whether running jobs may be changed, or waiting ones shrunk."""
        modes = zip(self._jobs, self.ledger.modes, strict=True)
        has_shares = any(len(of_job) > 1 and not job.alternatives for job, of_job in modes)
        return bool(self.ledger.running.changeable) or has_shares

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
        """Whether the last end makes up most of the best plan's cost."""
        if self.best_value == np.inf:
            return False
        return 2 * self.end_price * float(self._best.ends[: len(self._jobs)].max()) > self.best_value

    # --- values -------------------------------------------------------------------------------------------------

    def offset(self) -> float:
        """Return the constant that makes the chain's figures values of the objective, with fines of jobs left out."""
        return self._values.offset()

    def fine(self, planned: Collection[str]) -> float:
        """Return the price of leaving out all jobs but those with these ids."""
        is_left_out = np.array([job.id not in planned for job in self._jobs])
        return float((self._fines + self._own)[is_left_out].sum()) if is_left_out.any() else 0.0

    def value_of(self, starts: Sequence[int] | Ints) -> float:
        """Return what starts (s after `now`) cost in the present modes of the jobs: what depends on them of a value."""
        starts, taken = np.asarray(starts, dtype=np.int64), self._taken(self._plan)
        last = int((starts + self._durations[taken]).max())
        return float(costs_at(self.costs, starts[:, None]).sum()) + self.end_price * last + self._of_running()

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

    # --- arrays -------------------------------------------------------------------------------------------------

    def _timeline(self) -> Timeline:
        """Return the timeline on which jobs are booked."""
        return Timeline(*self.ledger.timeline.kernel_arguments())

    def _grow(self) -> None:
        """Make space for more bookings."""
        self.ledger.timeline.grow()

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, Floats]:
        """Return named keys for list schedules of the jobs, smallest first."""
        is_changing = self._changes is not None
        nodes = [[share_of_nodes(self._instance, step.request) for step in job.steps] for job in self._jobs]
        return list_keys(self._instance, self._jobs, self.full_costs, self.tails, nodes, is_changing=is_changing)

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
            for row in awaited_first(table.links, np.argsort(starts, kind="stable")).tolist():
                planned = planned_of.get(ids[row])
                if planned is None and self._is_optional[row]:
                    table.starts[row] = start = table.window(row)[0]
                    number = int(self._first_mode[row + 1] - self._first_mode[row]) - 1
                    pieces[row] = [(start, start, number, np.zeros((0, 3), dtype=np.int32))]
                elif planned is not None and self._restored(row, planned):
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

    def _restored(self, row: int, planned: PlannedJob) -> bool:
        """Book a job at its place in another plan, if it is allowed and in one of the modes that the chain has of it;
        tell whether it is.
        """
        if planned.alternative >= self._first_mode[row + 1] - self._first_mode[row]:
            return False
        return self.ledger.restore(planned)

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
            if code == timeline_kernels.R.GROW_STATE:
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

    # --- the best plan ------------------------------------------------------------------------------------------

    def _note_best(self, value: float) -> None:
        """Keep a copy of the current plan as the best one."""
        super()._note_best(value)
        self._best_running = {one.id: one for one in self.ledger.running.plans()}

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
