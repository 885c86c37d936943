"""Jobs that change while they run, on a ledger: where they find place, and what they have booked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.booking.columns import Columns, kind_of_units
from cpsched.domain import Amounts, ChunkLayer, Job, PlannedJob, Request, Segment, chunk_layers
from cpsched.rusv import FOREVER, Booking, StepSequence, StepSequences, Timeline, Turns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """A job of several steps, compiled for one timeline."""

    #: The request of each step, and its cores.
    requests: tuple[Request, ...]
    cores: tuple[int, ...]
    #: The same for the timeline: its steps and layers, the longest first; necessary conditions, which for a job of
    #: one kind of equal chunks are also sufficient; and its mapping orders.
    sequence: StepSequence

    @classmethod
    def of(cls, job: Job, columns: Columns, *, is_held: bool = True) -> "Shape":
        """Compile a job, which has passed `admission.refusal`.

        `job`: a job whose steps need no migration. `columns`: the columns to which its demands are added. `is_held`:
        whether a step may be held for longer than it is needed.
        """
        requests = tuple(step.request for step in job.steps)
        durations = tuple(step.walltime for step in job.steps)
        longest = tuple(FOREVER if most is None else most for most in job.longest_steps) if is_held else durations
        found = chunk_layers(job)
        conditions = dict.fromkeys(_conditions(requests, found, columns, job.licenses, job.walltime))
        demands = tuple(columns.compile(request, job.licenses, job.walltime) for request in requests)
        if not _has_equal_units(requests):
            conditions |= dict.fromkeys((demand, step, step) for step, demand in enumerate(demands))
        sequence = StepSequence(
            steps=tuple(zip(demands, durations, longest, strict=True)),
            conditions=tuple(conditions),
            layers=tuple((layer.first, layer.last, layer.count, _kinds(layer, demands, columns)) for layer in found),
            orders=_orders(max(requests, key=lambda request: len(request.chunks)), found, columns, job.walltime),
        )
        cores = tuple(request.totals.get("cores", 0) for request in requests)
        return cls(requests=requests, cores=cores, sequence=sequence)


def _kinds(layer: ChunkLayer, demands: Sequence[int], columns: Columns) -> tuple[int, ...]:
    """Return which kind of each step's demand the units of a layer are."""
    return tuple(
        next(kind for kind, _ in columns.demands.kinds_of(demand) if columns.kind_of(kind) == kind_of_units(layer))
        for demand in demands[layer.first : layer.last + 1]
    )


def _orders(request: Request, found: Sequence[ChunkLayer], columns: Columns, walltime: int) -> tuple[Turns, ...]:
    """Return the mapping orders of layers, those of each kind in their order; `request` has all kinds."""
    return tuple(
        Turns(
            layers=tuple(sorted(range(len(found)), key=lambda place: order.kinds.index(kind_of_units(found[place])))),
            nodes=order.nodes,
        )
        for order in columns.mapping_orders(request, walltime)
    )


def _conditions(
    requests: Sequence[Request], found: Sequence[ChunkLayer], columns: Columns, licenses: Amounts, walltime: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (demand, first step, last step) of what all units ask for that are there as long as a layer is."""
    for layer in found:
        level = sum(
            other.count
            for other in found
            if other.kind == layer.kind and other.first <= layer.first and other.last >= layer.last
        )
        asked = requests[layer.first : layer.last + 1]
        demand = columns.compile_common(asked, layer.kind, level, licenses, walltime)
        if demand is not None:
            yield demand, layer.first, layer.last


def _has_equal_units(requests: Sequence[Request]) -> bool:
    """Return whether all steps ask for the same single kind of chunks."""
    return all(len(request.chunks) == 1 for request in requests) and (
        len({(request.chunks[0].resources, request.chunks[0].where) for request in requests}) == 1
    )


#: The number of schedules with held steps whose mapping is tried before a job is planned without held steps.
MOST_HELD = 3


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The allocation of a job between two changes: entries of a request's demand, in ``[start, end)``."""

    request: Request
    entries: NDArray[np.int32]
    start: int
    end: int
    #: The amounts of the timeline's columns that it takes.
    booking: Booking


class ChangingJobs:
    """Finds places for jobs of several steps on a timeline.

    Times are the timeline's. Only free amounts are booked: chunks of a job on one node are added up first.
    """

    def __init__(self, columns: Columns, timeline: Timeline, shapes: Mapping[int, Shape]) -> None:
        self._columns, self._timeline, self._shapes = columns, timeline, shapes
        #: All sequences for the kernels, and the place of each row's among them.
        self.sequences = StepSequences([shape.sequence for shape in shapes.values()], timeline.demands.layout.num_nodes)
        self.sequence_of = {row: place for place, row in enumerate(shapes)}

    def find(self, row: int, *, earliest: int, latest: int, end_by: int, is_held: bool = True) -> list[Part] | None:
        """Return the place of a job that completes as early as is found, and then starts as late; None if none is.

        `row`: the job. `earliest`, `latest`: when it may start. `end_by`: when it must have ended. `is_held`: whether
        its steps may be held; if not, each follows the one before at once.
        """
        found = self._timeline.find_sequence(
            self.sequences,
            self.sequence_of[row],
            earliest=earliest,
            latest=latest,
            end_by=end_by,
            tries=MOST_HELD if is_held else 0,
        )
        return None if found is None else self._parts_of(row, found)

    def _parts_of(self, row: int, steps: Sequence[tuple[int, NDArray[np.int32]]]) -> list[Part]:
        """Return the parts of a job whose steps begin at these times on these entries."""
        shape = self._shapes[row]
        begins, of_steps = [begin for begin, _ in steps], shape.sequence.steps
        ends = [*begins[1:], begins[-1] + of_steps[-1][1]]
        return [
            self.part(request, demand, entries, begin, end)
            for request, (demand, *_), (begin, entries), end in zip(shape.requests, of_steps, steps, ends, strict=True)
        ]

    def part(self, request: Request, demand: int, entries: NDArray[np.int32], start: int, end: int) -> Part:
        """Return a part of a job, with what it takes."""
        return Part(request, entries, start, end, self._timeline.booking_of(demand, entries, start, end))

    def restored(self, shape: Shape, planned: PlannedJob, now: int) -> list[Part] | None:
        """Return the place of a job in another plan if it is still allowed and free; else None."""
        if len(planned.segments) != len(shape.requests):
            return None
        parts = []
        for request, step, segment in zip(shape.requests, shape.sequence.steps, planned.segments, strict=True):
            demand, duration, longest = step
            if not duration <= segment.end - segment.start <= longest:
                return None
            entries = self._columns.entries_of(demand, request, segment.allocation)
            if entries is None:
                return None
            parts.append(self.part(request, demand, entries, segment.start - now, segment.end - now))
        if any(_migrates(before, after) for before, after in zip(planned.segments, planned.segments[1:], strict=False)):
            return None
        return parts if all(self._timeline.is_free(part.booking) for part in parts) else None


def _migrates(before: Segment, after: Segment) -> bool:
    """Return whether chunks of one kind come to some nodes while others leave some, which no layers do."""
    had, has = (
        {(part.node, part.chunk): part.count or 0 for part in segment.allocation} for segment in (before, after)
    )
    changes = [(kind, has.get((node, kind), 0) - had.get((node, kind), 0)) for node, kind in {*had, *has}]
    return any({one > 0 for kind, one in changes if kind == of_kind and one} == {True, False} for of_kind, _ in changes)
