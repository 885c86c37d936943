"""The jobs of a chain as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, Mode, ObjectiveTerm
from cpsched.domain import modes as modes_of
from cpsched.metrics import end_rate
from cpsched.rusv import FOREVER, Booking, step_kernels
from cpsched.rusv import kernels as timeline_kernels
from cpsched.search.arrays import MOST_PARTS, NO_DEMAND, Changes
from cpsched.search.plan import empty_places

Ints = NDArray[np.int64]
#: Work is counted in units of which a job does a whole number in each second, up to this number at full share.
_MOST_UNITS = 1 << 30


@dataclass(slots=True, kw_only=True)
class Modes:
    """The modes of all jobs, one job's after the other's; mutable while they are added."""

    #: Where those of each job begin; of each mode, the row of its job, and (demand, last start, duration).
    first: list[int] = field(default_factory=lambda: [0])
    owners: list[int] = field(default_factory=list)
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    #: Of each mode: its place among the modes that the ledger has of waiting jobs; -1 if it is none of these.
    of_ledger: list[int] = field(default_factory=list)
    #: Units of work of each job, and in a second of each mode.
    units: list[int] = field(default_factory=list)
    rates: list[int] = field(default_factory=list)

    def add(self, units: int, rates: Sequence[int], rows: Sequence[tuple[int, int, int]], of_ledger: int = -1) -> None:
        """Add a job with its modes."""
        self.owners.extend([len(self.first) - 1] * len(rows))
        self.of_ledger.extend(of_ledger + place if of_ledger >= 0 else -1 for place in range(len(rows)))
        self.rows.extend(rows)
        self.first.append(len(self.rows))
        self.units.append(units)
        self.rates.extend(rates)

    def leave_out(self) -> None:
        """Let plans leave out the last job: in a further mode."""
        self.owners.append(self.owners[-1])
        self.of_ledger.append(-1)
        self.rows.append((NO_DEMAND, FOREVER, 0))
        self.first[-1] += 1
        self.rates.append(1)


def modes_in(ledger: Ledger, is_optional: Sequence[bool], running: Sequence[str], *, changing: bool) -> Modes:
    """Return the modes of a ledger's waiting jobs, which may be left out or not, and of these running ones.

    Where jobs change while they run, one whose shares have no common unit of work has its full share alone, and one
    with alternatives its own request.
    """
    modes, at = Modes(), 0
    for job, of_job, may_go in zip(ledger.jobs, ledger.modes, is_optional, strict=True):
        units, rates = job.walltime, [1] * len(of_job)
        if changing and job.alternatives:
            rates = [1]
        elif changing and len(of_job) > 1:
            units, rates = _in_units(job.walltime, modes_of(job))
        rows = [(one.demand, one.latest, one.duration) for one, _ in zip(of_job, rates, strict=False)]
        modes.add(units, rates, rows, at)
        at += len(of_job)
        if may_go:
            modes.leave_out()
    for name in running:
        remaining = ledger.running.changeable[name]
        units, rates = _in_units(remaining.work, remaining.modes)
        modes.add(units, rates, [(-1, FOREVER, 0) for _ in rates])
    return modes


def _in_units(work: Fraction | int, modes: Sequence[Mode]) -> tuple[int, list[int]]:
    """Return work and rates as whole numbers in a common unit; without one, those of the first mode alone."""
    unit = lcm(Fraction(work).denominator, *(mode.rate.denominator for mode in modes))
    if unit >= _MOST_UNITS:
        unit, modes = Fraction(work).denominator, modes[:1]
    return int(work * unit), [int(mode.rate * unit) for mode in modes]


# --- jobs that change while they run ---------------------------------------------------------------------------------


def changes_of(instance: Instance, ledger: Ledger, running: Sequence[str], modes: Modes, room: int) -> Changes:
    """Return how waiting jobs, and these running ones, change; with space for `room` entries of one job."""
    now, by_id = instance.now, {job.id: job for job in instance.jobs}
    jobs = [*ledger.jobs, *(by_id[name] for name in running)]
    steps = [ledger.steps_of(row) for row in range(len(ledger.jobs))] + [(-1, ())] * len(running)
    durations = [job.walltime for job in ledger.jobs]
    ends = [FOREVER if job.deadline is None else job.deadline - now for job in ledger.jobs]
    amounts: list[Booking | None] = [None] * modes.first[len(ledger.jobs)]
    for row, name in enumerate(running, start=len(ledger.jobs)):
        allocated = by_id[name].running
        durations.append(allocated.segments[-1].end - now if allocated is not None else 0)
        ends.append(min(FOREVER, ledger.running.latest_end(name) - now))
        amounts.extend(ledger.running.amounts(name)[: modes.first[row + 1] - modes.first[row]])
    is_changing = [
        sequence < 0 and (count > 1 or row >= len(ledger.jobs))
        for row, ((sequence, _), count) in enumerate(zip(steps, np.diff(modes.first).tolist(), strict=True))
    ]
    late = [
        _price(instance, ObjectiveTerm.COMPLETION, job)
        if sequence >= 0
        else float(end_rate(instance, job) if changes else 0)
        for job, (sequence, _), changes in zip(jobs, steps, is_changing, strict=True)
    ]
    slow = [
        _price(instance, ObjectiveTerm.SLOWDOWN, job) if sequence >= 0 else 0.0
        for job, (sequence, _) in zip(jobs, steps, strict=True)
    ]
    rates = _ints(modes.rates)
    by_speed = [np.argsort(-rates[first:behind], kind="stable") for first, behind in pairwise(modes.first)]
    chunk_of = ledger.chunk_kinds()
    kinds_in: Ints = np.zeros((len(modes.rows), int(chunk_of.max(initial=0)) + 1), dtype=np.int64)
    for mode, (demand, _, _) in enumerate(modes.rows):
        for kind in ledger.kinds_of(demand) if demand >= 0 else ():
            kinds_in[mode, chunk_of[kind]] = kind
    sizes, taken = _taken(amounts)
    sequences, most_modes = ledger.sequences, int(np.diff(modes.first).max())
    _, _, scratch = ledger.timeline.kernel_arguments()
    tables, _, trial = ledger.timeline.sequence_arguments(sequences)
    most_parts, most_steps = max([MOST_PARTS, *sequences.num_steps]), max(sequences.num_steps, default=1)
    return Changes(
        sequence=_ints([sequence for sequence, _ in steps]),
        units=_ints(modes.units),
        durations=_ints(durations),
        last_ends=_ints(ends),
        rates=rates,
        by_speed=np.concatenate(by_speed),
        late=np.array(late),
        waste=np.array([_price(instance, ObjectiveTerm.WASTE, job) for job in jobs]),
        slow=np.array(slow),
        submits=_ints([job.submit - now for job in jobs]),
        cores=_ints([cores for _, of_steps in sorted(dict(steps).items()) for cores in of_steps]),
        lenders=np.flatnonzero(np.diff(modes.first) > 1),
        chunk_of=chunk_of,
        kinds_in=kinds_in,
        turned=np.zeros((room, 3), dtype=np.int32),
        first_column=sizes[0],
        first_system=sizes[1],
        running=taken,
        num_columns=_blank(most_modes),
        num_systems=_blank(most_modes),
        in_modes=timeline_kernels.Taken(
            *(_blank(most_modes, len(scratch.columns)) for _ in range(2)),
            *(_blank(most_modes, len(scratch.scolumns)) for _ in range(2)),
        ),
        faster=empty_places([0], most_parts),
        slower=empty_places([0], most_parts),
        sequences=tables,
        sequence_trial=trial,
        sequence_place=step_kernels.Place(
            begins=_blank(most_steps), found=np.zeros((room, 3), dtype=np.int32), spans=_blank(most_steps + 1)
        ),
    )


def _price(instance: Instance, term: ObjectiveTerm, job: Job) -> float:
    return float(instance.term_weight(term, job))


def _taken(amounts: Sequence[Booking | None]) -> tuple[tuple[Ints, Ints], timeline_kernels.Taken]:
    """Return what running jobs take in each mode, and where that of each mode begins; waiting jobs take nothing."""
    nothing: Ints = np.zeros(0, dtype=np.int64)
    rows = [
        (nothing,) * 4 if one is None else (one.columns, one.amounts, one.system_columns, one.system_amounts)
        for one in amounts
    ]
    firsts = [np.cumsum([0, *(len(row[place]) for row in rows)]).astype(np.int64) for place in (0, 2)]
    return (firsts[0], firsts[1]), timeline_kernels.Taken(*(np.concatenate(part) for part in zip(*rows, strict=True)))


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _blank(*shape: int) -> Ints:
    return np.zeros(shape, dtype=np.int64)
