"""Jobs that change while they run, as what a timeline understands: one demand for each step, and what has to fit
throughout several steps because nothing migrates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cpsched.booking.columns import Columns, kind_of_units
from cpsched.domain import Amounts, Job, Life, Request, lives
from cpsched.rusv import FOREVER, Course, Turns

__all__ = ["Shape"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """A job of several steps, compiled for one timeline."""

    #: What each step asks for, and the demand for it.
    requests: tuple[Request, ...]
    demands: tuple[int, ...]
    #: For how many seconds each step is needed, and may be held at the most.
    durations: tuple[int, ...]
    longest: tuple[int, ...]
    #: How many cores each step asks for.
    cores: tuple[int, ...]
    #: The same for the timeline, with who is there from when to when, the longest first; with what has to fit, which
    #: for a job of one kind of equal chunks is also enough; and with the ways to map it.
    course: Course

    @classmethod
    def of(cls, job: Job, columns: Columns, *, is_held: bool = True) -> Shape:
        """Compile a job, which has passed `admission.refusal`.

        Parameters
        ----------
        job
            Has steps whose units come and go by layers.
        columns
            Gets the demands.
        is_held
            Whether a step may be held for longer than it is needed.
        """
        requests = tuple(step.request for step in job.steps)
        durations = tuple(step.walltime for step in job.steps)
        longest = tuple(FOREVER if most is None else most for most in job.longest_steps) if is_held else durations
        found = lives(job)
        conditions = dict.fromkeys(_conditions(requests, found, columns, job.licenses, job.walltime))
        demands = tuple(columns.compile(request, job.licenses, job.walltime) for request in requests)
        if not _has_equal_units(requests):
            conditions |= dict.fromkeys((demand, step, step) for step, demand in enumerate(demands))
        course = Course(
            steps=tuple(zip(demands, durations, longest, strict=True)),
            conditions=tuple(conditions),
            lives=tuple((life.first, life.last, life.count, _kinds(life, demands, columns)) for life in found),
            orders=_orders(max(requests, key=lambda request: len(request.chunks)), found, columns, job.walltime),
        )
        return cls(
            requests=requests,
            demands=demands,
            durations=durations,
            longest=longest,
            cores=tuple(request.totals.get("cores", 0) for request in requests),
            course=course,
        )


def _kinds(life: Life, demands: Sequence[int], columns: Columns) -> tuple[int, ...]:
    """Return which kind of each step's demand the units of a life are."""
    return tuple(
        next(kind for kind, _ in columns.demands.kinds_of(demand) if columns.kind_of(kind) == kind_of_units(life))
        for demand in demands[life.first : life.last + 1]
    )


def _orders(request: Request, found: Sequence[Life], columns: Columns, walltime: int) -> tuple[Turns, ...]:
    """Return the ways to map lives, those of each kind in their order; `request` has all kinds."""
    return tuple(
        Turns(
            lives=tuple(sorted(range(len(found)), key=lambda place: order.kinds.index(kind_of_units(found[place])))),
            nodes=order.nodes,
        )
        for order in columns.mapping_orders(request, walltime)
    )


def _conditions(
    requests: Sequence[Request], found: Sequence[Life], columns: Columns, licenses: Amounts, walltime: int
) -> Iterator[tuple[int, int, int]]:
    """Yield for each life (demand, first step, last step) of what all units that are there as long as it are: it stands
    on those that came before.
    """
    for life in found:
        level = sum(
            other.count
            for other in found
            if other.kind == life.kind and other.first <= life.first and other.last >= life.last
        )
        asked = requests[life.first : life.last + 1]
        demand = columns.compile_common(asked, life.kind, level, licenses, walltime)
        if demand is not None:
            yield demand, life.first, life.last


def _has_equal_units(requests: Sequence[Request]) -> bool:
    """Tell whether all steps ask for the same single kind of chunks."""
    return all(len(request.chunks) == 1 for request in requests) and (
        len({(request.chunks[0].resources, request.chunks[0].where) for request in requests}) == 1
    )
