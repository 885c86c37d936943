"""Jobs that change while they run, as what a timeline understands: one demand for each step, and what has to fit
throughout several steps because nothing migrates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from cpsched.booking.columns import Columns, MappingOrder
from cpsched.domain import Amounts, Job, Life, Request, lives
from cpsched.rusv import FOREVER

__all__ = ["Condition", "Shape", "longest_holds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A demand that fits from the begin of one step to the end of another wherever the job does."""

    demand: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shape:
    """A job of several steps, compiled for one timeline."""

    #: What each step asks for, and the demand for it.
    requests: tuple[Request, ...]
    demands: tuple[int, ...]
    #: For how many seconds each step is needed, and may be held at the most.
    durations: tuple[int, ...]
    longest: tuple[int, ...]
    #: Who is there from when to when, the longest first.
    lives: tuple[Life, ...]
    #: What has to fit. For a job of one kind of equal chunks it is also enough (see `layers.py`).
    conditions: tuple[Condition, ...]
    #: The ways to map the lives, one after the other until one succeeds.
    orders: tuple[MappingOrder, ...]

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
        found = lives(job)
        conditions = dict.fromkeys(_conditions(requests, found, columns, job.licenses, job.walltime))
        demands = tuple(columns.compile(request, job.licenses, job.walltime) for request in requests)
        if not _has_equal_units(requests):
            singles = (Condition(demand=demand, first=step, last=step) for step, demand in enumerate(demands))
            conditions |= dict.fromkeys(singles)
        widest = max(requests, key=lambda request: len(request.chunks))
        return cls(
            requests=requests,
            demands=demands,
            durations=durations,
            longest=longest_holds(job) if is_held else durations,
            lives=found,
            conditions=tuple(conditions),
            orders=columns.mapping_orders(widest, job.walltime),
        )


def longest_holds(job: Job) -> tuple[int, ...]:
    """Return for how many seconds each step of a job may be held at the most (EVO-6); the last one is never held."""
    walltimes = [step.walltime for step in job.steps]
    if job.expand_limit is None:
        return (*([FOREVER] * (len(walltimes) - 1)), walltimes[-1])
    limit = Fraction(job.expand_limit)
    return (*(floor(limit * walltime) for walltime in walltimes[:-1]), walltimes[-1])


def _conditions(
    requests: Sequence[Request], found: Sequence[Life], columns: Columns, licenses: Amounts, walltime: int
) -> Iterator[Condition]:
    """Yield for each life what all units that are there as long as it are: it stands on those that came before."""
    for life in found:
        level = sum(
            other.count
            for other in found
            if other.kind == life.kind and other.first <= life.first and other.last >= life.last
        )
        asked = requests[life.first : life.last + 1]
        demand = columns.compile_common(asked, life.kind, level, licenses, walltime)
        if demand is not None:
            yield Condition(demand=demand, first=life.first, last=life.last)


def _has_equal_units(requests: Sequence[Request]) -> bool:
    """Tell whether all steps ask for the same single kind of chunks."""
    return all(len(request.chunks) == 1 for request in requests) and (
        len({(request.chunks[0].resources, request.chunks[0].where) for request in requests}) == 1
    )
