"""One chain of the search for jobs that change while they run: ruin and recreate on the ledger's timeline, compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, Mode, ObjectiveTerm, PlannedJob, Step
from cpsched.domain import modes as modes_of
from cpsched.metrics import end_rate
from cpsched.planner import Values, end_price, start_costs
from cpsched.rusv import FOREVER, NOWHERE, Booking, part_kernels, step_kernels
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search import changing_kernels as kernels
from cpsched.search.costs import guided, node_shares, rates_of
from cpsched.search.kernels import cost_of
from cpsched.search.links import awaited_first, tails

__all__ = ["ChangingChain"]

Ints = NDArray[np.int64]
#: Start, end, step or mode, and entries of a part.
Piece = tuple[int, int, int, NDArray[np.int32]]
#: Work is counted in units of which a job does a whole number in each second, up to this number at full share.
_MOST_UNITS = 1 << 30


class ChangingChain:
    """A plan of some jobs that is changed step by step; mutable. Its kernels release the GIL.

    Evolving jobs may be held. Malleable ones, waiting or running, may change their share up to `MOST_PARTS` - 1 times.
    A job keeps its full share if its shares have no common unit of work.

    Parameters
    ----------
    instance
        The window.
    jobs
        The jobs to plan, one or more; each has a feasible start.
    seed
        The same jobs, calls and seed give the same plans.
    """

    def __init__(self, instance: Instance, jobs: Sequence[Job], seed: int) -> None:
        self._instance, self._jobs = instance, jobs
        self._ledger = Ledger(instance, jobs)
        #: The running jobs that may be changed: the rows behind the waiting ones.
        self._running = list(self._ledger.running.changeable)
        self._end_price = end_price(instance)
        self._work = _work_of(instance, self._ledger)
        self._costs = start_costs(instance, jobs)
        self._tails = tails(self._ledger.table)
        self._least_starts = self._ledger.table.jobs[:, 1]
        self._ranks = np.zeros(len(jobs))
        self._plan = self._empty_plan()
        self._draft = self._empty_draft(seed)
        self._set_guide(np.inf)
        #: The cost of the best plan so far.
        self.best_value = np.inf
        self._take_over_running()

    @property
    def has_lenders(self) -> bool:
        """Whether a waiting or running job may change its share."""
        return len(self._work.lenders) > 0

    def offset(self) -> float:
        """Return the constant to add to the chain's own figures to get values of the objective."""
        return Values(self._instance, self._ledger).offset()

    # --- arrays -------------------------------------------------------------------------------------------------

    def _empty_plan(self) -> kernels.Plan:
        """Return a plan without places, with space for those of all jobs."""
        rows, nodes, sequences = len(self._work.units), len(self._instance.cluster.node_names), self._ledger.sequences
        rooms = [
            sequences.most_entries[sequence]
            if sequence >= 0
            else sum(min(chunk.count, nodes) for chunk in job.request.chunks)
            for job, sequence in zip(self._jobs, self._work.sequence.tolist(), strict=False)
        ]
        firsts = np.cumsum([0, *rooms, *(0 for _ in self._running)])
        most_parts = max([kernels.MOST_PARTS, *sequences.num_steps])
        return kernels.Plan(
            starts=np.full(rows, NOWHERE, dtype=np.int64),
            ends=np.zeros(rows, dtype=np.int64),
            counts=np.zeros(rows, dtype=np.int64),
            parts=np.zeros((rows, most_parts, 5), dtype=np.int64),
            firsts=firsts.astype(np.int64),
            pool=np.zeros((int(firsts[-1]), 3), dtype=np.int32),
            paid=np.zeros(rows),
            nodes_of=np.zeros((rows, -(-nodes // 64)), dtype=np.uint64),
        )

    def _empty_draft(self, seed: int) -> kernels.Draft:
        """Return the arrays that a step writes."""
        count, nodes, sequences = len(self._jobs), len(self._instance.cluster.node_names), self._ledger.sequences
        state, _, scratch = self._ledger.timeline.kernel_arguments()
        room = max(int(np.diff(self._plan.firsts).max()), len(scratch.entries))
        most_parts, most_steps = self._plan.parts.shape[1], max(sequences.num_steps, default=1)
        most_modes = int(np.diff(self._work.first_mode).max())
        olds = kernels.MOST_REMOVED + 1

        def ints(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        def entries(*shape: int) -> NDArray[np.int32]:
            return np.zeros((*shape, 3), dtype=np.int32)

        return kernels.Draft(
            figures=np.zeros(4),
            random=np.array([(seed + 1) * 0x9E3779B97F4A7C15 % 2**64 or 1], dtype=np.uint64),
            marks=ints(count + 1),
            chosen=ints(kernels.MOST_REMOVED),
            keys=np.zeros(kernels.MOST_REMOVED),
            sequence=ints(kernels.MOST_REMOVED),
            fitting=ints(nodes, 2),
            old_figures=ints(olds, 3),
            old_paid=np.zeros(olds),
            old_parts=ints(olds, most_parts, 5),
            old_pool=entries(olds, int(np.diff(self._plan.firsts).max())),
            parts=ints(most_parts, 5),
            entries=entries(room),
            tried=ints(most_parts, 5),
            turned=entries(room),
            taken=part_kernels.Parts(
                sizes=ints(2),
                borders=ints(most_parts + 1),
                columns=ints(len(state.rows[0])),
                amounts=ints(most_parts, len(state.rows[0])),
                samounts=ints(most_parts, len(scratch.scolumns)),
                place_of=ints(len(state.rows[0])),
                part_of=ints(timeline_kernels.BLOCK),
            ),
            place=step_kernels.Place(begins=ints(most_steps), found=entries(room), spans=ints(most_steps + 1)),
            sizes=ints(most_modes, 2),
            columns=ints(most_modes, len(scratch.columns)),
            amounts=ints(most_modes, len(scratch.columns)),
            scolumns=ints(most_modes, len(scratch.scolumns)),
            samounts=ints(most_modes, len(scratch.scolumns)),
        )

    def _arguments(
        self,
    ) -> tuple[kernels.Work, kernels.Draft, kernels.Plan, step_kernels.Sequences, step_kernels.World]:
        """Return the arguments of most kernels."""
        tables, world, _ = self._ledger.timeline.sequence_arguments(self._ledger.sequences)
        return self._work, self._draft, self._plan, tables, world

    def _all_arguments(
        self,
    ) -> tuple[Any, ...]:
        """Return the arguments of the kernels that find places."""
        tables, world, trial = self._ledger.timeline.sequence_arguments(self._ledger.sequences)
        links = self._ledger.table.arrays()._replace(starts=self._plan.starts[: len(self._jobs)])
        ground = kernels.Ground(links, tables, trial)
        return self._guide, self._work, self._draft, self._plan, ground, world

    def _set_guide(self, end: float) -> None:
        """Set the costs that guide the steps; see `guided`."""
        costs = guided(self._costs, self._end_price, self._tails, end)
        least = np.array([cost_of(job, start, costs) for job, start in enumerate(self._least_starts.tolist())])
        self._guide = kernels.Costs(costs, least, self._ranks)

    # --- whole plans --------------------------------------------------------------------------------------------

    def list_keys(self) -> dict[str, NDArray[np.float64]]:
        """Return named keys for list schedules of the jobs, smallest first: work over cost, for several definitions of
        work.
        """
        instance = self._instance
        price = rates_of(self._costs)
        time = np.array([job.walltime for job in self._jobs], dtype=np.float64)
        keys = {
            "nodes": np.array([sum(s.walltime * _nodes(instance, s) for s in job.steps) for job in self._jobs]) / price,
            "widest": np.array([max(_nodes(instance, s) for s in job.steps) for job in self._jobs]) * time / price,
            "walltime": time / price,
        }
        return keys | {"tails": -self._tails.astype(np.float64)} if self._end_price > 0 else keys

    def plan_list(self, keys: NDArray[np.float64], limit: float = np.inf) -> float | None:
        """Plan the jobs anew as a list schedule in ascending order of `keys`, each after its dependencies.

        Returns
        -------
        float or None
            The cost of the list schedule; None if a job finds no place in it, or if it costs more than
            `limit`: the chain then has no plan.
        """
        self.clear()
        order = awaited_first(self._ledger.table, np.argsort(keys, kind="stable"))
        left, done, code = limit - self._value(self._costs), 0, timeline_kernels.GROW_STATE
        while code == timeline_kernels.GROW_STATE:
            code, done, left = kernels.settle(order, done, left, *self._all_arguments())
            if code == timeline_kernels.GROW_STATE:
                self._ledger.timeline.grow()
        if code != timeline_kernels.DONE:
            self.clear()
            return None
        return self._note_plan()

    def adopt(self, plan: Sequence[PlannedJob]) -> bool:
        """Begin from a plan of the same jobs; return whether each may keep its place."""
        ledger, ids = self._ledger, [job.id for job in self._jobs]
        self.clear()
        self._hand_over_running()
        planned_of = {planned.id: planned for planned in plan}
        pieces: dict[str, list[Piece]] = {}
        if ledger.running.restore(plan):
            starts = np.array([planned_of[name].start for name in ids])
            for row in awaited_first(ledger.table, np.argsort(starts, kind="stable")).tolist():
                if not ledger.restore(planned_of[ids[row]]):
                    break
                pieces[ids[row]] = ledger.pieces(ids[row])
        for name in pieces:
            ledger.release(name)
            ledger.take_mode(name, 0)
        self._take_over_running()
        most = self._plan.parts.shape[1]
        if len(pieces) < len(ids) or any(len(of_job) > most for of_job in pieces.values()):
            return False
        for row, name in enumerate(ids):
            self._write(row, pieces[name])
        self._hold(range(len(ids)))
        self._note_plan()
        return True

    def clear(self) -> None:
        """Remove all waiting jobs from the plan."""
        kernels.clear(len(self._jobs), *self._arguments())

    def _write(self, row: int, pieces: Sequence[Piece]) -> None:
        """Write the place of a job down; it is not booked by that."""
        plan, used, spans = self._plan, 0, list[tuple[int, int, int, int, int]]()
        is_evolving = self._work.sequence[row] >= 0
        for start, end, number, entries in pieces:
            if not is_evolving:
                used = 0  # all parts of a malleable job are on the same nodes
            first = int(plan.firsts[row]) + used
            plan.pool[first : first + len(entries)] = entries
            spans.append((start, end, number, used, len(entries)))
            used += len(entries)
        plan.parts[row, : len(spans)] = spans
        plan.starts[row], plan.ends[row], plan.counts[row] = spans[0][0], spans[-1][1], len(spans)

    def _hold(self, rows: Sequence[int]) -> None:
        """Book jobs at the places that are written down."""
        left: Ints = np.array(rows, dtype=np.int64)
        while len(left):
            code, done = kernels.hold_all(left, *self._arguments())
            left = left[done:]
            if code == timeline_kernels.GROW_STATE:
                self._ledger.timeline.grow()

    def _hand_over_running(self) -> None:
        """Give the running jobs back to the ledger, as it has recorded them."""
        for row, name in enumerate(self._running, start=len(self._jobs)):
            if self._plan.counts[row]:
                kernels.give_back(row, *self._arguments())
                self._plan.counts[row] = 0
                self._ledger.running.put_back(name)

    def _take_over_running(self) -> None:
        """Take the running jobs from the ledger, but those with another allocation than in one of their modes."""
        running, nowhere = self._ledger.running, np.zeros((0, 3), dtype=np.int32)
        numbers = self._ledger.node_number
        for row, name in enumerate(self._running, start=len(self._jobs)):
            shares = running.shares(name)
            is_plain = self._work.first_mode[row + 1] - self._work.first_mode[row] < 2
            if shares is None or is_plain or len(shares) > kernels.MOST_PARTS:
                continue
            running.lift(name)
            for held in running.changeable[name].allocations[0]:
                node = numbers[held.node]
                self._plan.nodes_of[row, node >> 6] |= np.uint64(1 << (node & 63))
            self._write(row, [(*share, nowhere) for share in shares])
            self._hold([row])

    def _note_plan(self) -> float:
        """Value a plan that was not made step by step; keep it if it is the best one."""
        value = self._value(self._costs)
        self._draft.figures[kernels.VALUE] = self._value(self._guide.costs)
        if value < self.best_value:
            self._note_best(value)
        return value

    def _value(self, costs: NDArray[np.float64]) -> float:
        """Return the cost of the plan by these costs of starts, to which what the jobs pay is set."""
        work, _, plan, tables, _ = self._arguments()
        value = float(kernels.cost_of_plan(costs, self._end_price, work, plan, tables))
        for row, name in enumerate(self._running, start=len(self._jobs)):
            if not plan.counts[row]:
                end = self._ledger.running.planned(name).end - self._instance.now
                value += float(work.late[row] * (end - work.durations[row]))
        return value

    # --- steps --------------------------------------------------------------------------------------------------

    def rank(self, keys: NDArray[np.float64]) -> None:
        """Set the ranks by which jobs removed together tend to be inserted again: smallest first."""
        self._ranks[:] = keys

    def run(self, steps: int, temperature: float) -> None:
        """Do `steps` steps at one temperature (in mean costs of a job)."""
        figures = self._draft.figures
        target = figures[kernels.STEPS] + steps
        while (left := int(target - figures[kernels.STEPS])) > 0:
            code = kernels.ruin_and_recreate(left, temperature, self._end_price, *self._all_arguments())
            if code == timeline_kernels.GROW_STATE:
                self._ledger.timeline.grow()
        self._note_plan()

    # --- the best plan ------------------------------------------------------------------------------------------

    def _note_best(self, value: float) -> None:
        """Keep a copy of the current plan as the best one."""
        plan, running = self._plan, self._ledger.running
        self.best_value = value
        self._best = kernels.Plan(*(array.copy() for array in plan))
        self._best_running = {
            name: running.planned(name)
            for row, name in enumerate(self._running, len(self._jobs))
            if not plan.counts[row]
        }
        if self._end_price > 0:
            self._set_guide(float(plan.ends[: len(self._jobs)].max()))
            self._draft.figures[kernels.VALUE] = self._value(self._guide.costs)

    def best(self) -> list[PlannedJob]:
        """Return the best plan so far, with the running jobs that the search may change."""
        ledger, now, plan = self._ledger, self._instance.now, self._best
        found = []
        for row, name in enumerate(self._running, start=len(self._jobs)):
            parts = plan.parts[row, : plan.counts[row]].tolist()
            changes = [(now + start, mode) for start, _, mode, _, _ in parts]
            found.append(ledger.running.resumed_plan(name, changes) if parts else self._best_running[name])
        return found + [ledger.planned_on(job.id, list(_pieces(plan, row))) for row, job in enumerate(self._jobs)]


def _pieces(plan: kernels.Plan, row: int) -> Iterator[Piece]:
    """Yield the parts of a job in a plan."""
    for start, end, number, first, count in plan.parts[row, : plan.counts[row]].tolist():
        begin = int(plan.firsts[row]) + first
        yield start, end, number, plan.pool[begin : begin + count]


def _nodes(instance: Instance, step: Step) -> float:
    """Return the nodes that a step takes, with each chunk counted as its dominant share of a node."""
    return sum(count * share for count, share in node_shares(instance, step.request))


# --- the jobs as arrays ---------------------------------------------------------------------------------------------


def _in_units(work: Fraction | int, modes: Sequence[Mode]) -> tuple[int, list[int]]:
    """Return work and rates as whole numbers in a common unit; without one, those of the first mode alone."""
    unit = lcm(Fraction(work).denominator, *(mode.rate.denominator for mode in modes))
    if unit >= _MOST_UNITS:
        unit, modes = Fraction(work).denominator, modes[:1]
    return int(work * unit), [int(mode.rate * unit) for mode in modes]


class _Rows:
    """The rows of `kernels.Work`, job by job; mutable."""

    def __init__(self) -> None:
        self.modes: list[tuple[int, int, int, int]] = []
        self.first_mode, self.by_speed = [0], list[int]()
        self.jobs: list[tuple[int, int, int, int]] = []
        self.prices: list[tuple[float, float, float, float]] = []
        self.taken: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(
        self,
        job: tuple[int, int, int, int],
        prices: tuple[float, float, float, float],
        modes: Sequence[tuple[int, int, int, int]],
        held: Sequence[Booking] = (),
    ) -> None:
        """Add a job: (sequence, units of work, seconds that cost nothing, last end); the prices of a second more, of a
        core second held in vain and of slowdown, and the second of submission; its modes; and, of a running one, what
        it takes in each.
        """
        self.jobs.append(job)
        self.prices.append(prices)
        self.by_speed.extend(sorted(range(len(modes)), key=lambda mode: (-modes[mode][kernels.M_RATE], mode)))
        self.modes.extend(modes)
        self.first_mode.append(len(self.modes))
        nothing = np.zeros(0, dtype=np.int64)
        self.taken.extend((one.columns, one.amounts, one.system_columns, one.system_amounts) for one in held)
        self.taken.extend([(nothing, nothing, nothing, nothing)] * (len(modes) - len(held)))


def _work_of(instance: Instance, ledger: Ledger) -> kernels.Work:
    """Return what the jobs of a ledger are, and its running jobs that may be changed."""
    rows, now = _Rows(), instance.now
    cores: dict[int, tuple[int, ...]] = {}
    for row, job in enumerate(ledger.jobs):
        sequence, of_steps = ledger.steps_of(row)
        if sequence >= 0:
            cores[sequence] = of_steps
        of_job = ledger.modes[row]
        units, rates = job.walltime, [1]
        if len(of_job) > 1:
            units, rates = _in_units(job.walltime, modes_of(job))
        late, slow = 0.0, 0.0
        if sequence >= 0:
            late = float(instance.term_weight(ObjectiveTerm.COMPLETION, job))
            slow = float(instance.term_weight(ObjectiveTerm.SLOWDOWN, job))
        elif len(rates) > 1:
            late = float(end_rate(instance, job))
        rows.add(
            (sequence, units, job.walltime, FOREVER if job.deadline is None else job.deadline - now),
            (late, float(instance.term_weight(ObjectiveTerm.WASTE, job)), slow, job.submit - now),
            [(one.demand, one.latest, rate, one.duration) for one, rate in zip(of_job, rates, strict=False)],
        )
    running = ledger.running
    for job in instance.jobs:
        if job.running is None or job.id not in running.changeable:
            continue
        remaining, end = running.changeable[job.id], job.running.segments[-1].end
        units, rates = _in_units(remaining.work, remaining.modes)
        rows.add(
            (-1, units, end - now, min(FOREVER, running.latest_end(job.id) - now)),
            (float(end_rate(instance, job)), 0.0, 0.0, 0.0),
            [(-1, FOREVER, rate, 0) for rate in rates],
            running.amounts(job.id)[: len(rates)],
        )
    return _arrays(rows, ledger, [of_step for sequence in sorted(cores) for of_step in cores[sequence]])


def _arrays(rows: _Rows, ledger: Ledger, cores: Sequence[int]) -> kernels.Work:
    """Return rows as arrays."""
    chunk_of = ledger.chunk_kinds()
    kinds_in: Ints = np.zeros((len(rows.modes), int(chunk_of.max(initial=0)) + 1), dtype=np.int64)
    for mode, (demand, *_) in enumerate(rows.modes):
        for kind in ledger.kinds_of(demand) if demand >= 0 else ():
            kinds_in[mode, chunk_of[kind]] = kind
    jobs: Ints = np.array(rows.jobs, dtype=np.int64)
    prices = np.array(rows.prices)
    first_mode: Ints = np.array(rows.first_mode, dtype=np.int64)
    sizes = np.array([(len(columns), len(scolumns)) for columns, _, scolumns, _ in rows.taken], dtype=np.int64)
    columns, amounts, scolumns, samounts = (np.concatenate(part) for part in zip(*rows.taken, strict=True))
    return kernels.Work(
        sequence=jobs[:, 0].copy(),
        first_mode=first_mode,
        modes=np.array(rows.modes, dtype=np.int64),
        by_speed=np.array(rows.by_speed, dtype=np.int64),
        units=jobs[:, 1].copy(),
        durations=jobs[:, 2].copy(),
        last_ends=jobs[:, 3].copy(),
        chunk_of=chunk_of,
        kinds_in=kinds_in,
        late=prices[:, 0].copy(),
        waste=prices[:, 1].copy(),
        slow=prices[:, 2:].copy(),
        cores=np.array(cores, dtype=np.int64),
        lenders=np.flatnonzero(np.diff(first_mode) > 1),
        firsts=np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(sizes, axis=0)]),
        columns=columns,
        amounts=amounts,
        scolumns=scolumns,
        samounts=samounts,
    )
