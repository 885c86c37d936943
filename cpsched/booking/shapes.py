"""Jobs that change while they run, as what a timeline understands: one demand for each step, and what has to fit
throughout several steps because nothing migrates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cpsched.booking.columns import Columns, kind_of_units
from cpsched.domain import Amounts, ChunkLayer, Job, Request, chunk_layers
from cpsched.rusv import FOREVER, StepSequence, Turns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """A job of several steps, compiled for one timeline."""

    #: The request of each step, and its demand.
    requests: tuple[Request, ...]
    demands: tuple[int, ...]
    #: The seconds that each step is needed, and the most seconds that it may be held.
    durations: tuple[int, ...]
    longest: tuple[int, ...]
    #: The cores of each step.
    cores: tuple[int, ...]
    #: The same for the timeline, with its layers, the longest first; with necessary conditions, which for a job of
    #: one kind of equal chunks are also sufficient; and with its mapping orders.
    sequence: StepSequence

    @classmethod
    def of(cls, job: Job, columns: Columns, *, is_held: bool = True) -> Shape:
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
        return cls(
            requests=requests,
            demands=demands,
            durations=durations,
            longest=longest,
            cores=tuple(request.totals.get("cores", 0) for request in requests),
            sequence=sequence,
        )


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
