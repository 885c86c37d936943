"""Queue rules: schedulers that need no more than the queue, what is free now, and the head's reservation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from cpsched.sim import arrays

__all__ = ["BackfillRule", "Order", "Prediction", "QueueRule"]


class Prediction(StrEnum):
    """The uses of predicted runtimes."""

    #: The order of the queue. Expected ends and reservations follow the walltimes: no job is delayed because another
    #: one runs longer than was predicted.
    ORDER = "order"
    #: The order, expected ends and reservations.
    ALL = "all"

    @property
    def number(self) -> int:
        """The number that the kernels know it by."""
        return arrays.PREDICTS_ORDER if self is Prediction.ORDER else arrays.PREDICTS_ALL


class Order(IntEnum):
    """The order of the queue; equal jobs are in the order of submission."""

    SUBMISSION = arrays.BY_SUBMISSION
    #: Shortest (estimated) walltime first.
    WALLTIME = arrays.BY_WALLTIME
    #: Smallest product of cores and (estimated) walltime first.
    AREA = arrays.BY_AREA
    #: F1 of Carastan-Santos and de Camargo (SC'17).
    F1 = arrays.BY_F1
    #: Weighted shortest processing time first (Smith, 1956): the smallest product of (estimated) walltime, largest
    #: share of the machine and expected wait / weight first.
    WSPT = arrays.BY_WSPT
    #: WFP3 and UNICEF of Tang et al. (IPDPS'10), as in the same paper: the waiting counts, anew in each pass.
    WFP3 = arrays.BY_WFP3
    UNICEF = arrays.BY_UNICEF


class BackfillRule(IntEnum):
    """Which jobs may start ahead of the first job that has to wait."""

    NOBODY = arrays.NOBODY
    #: Every job that fits now.
    ANYBODY = arrays.ANYBODY
    #: Every job that does not delay that job's reservation (EASY).
    NOT_DELAYING = arrays.NOT_DELAYING


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """A scheduler that the compiled event loop plays.

    Raises
    ------
    ValueError
        If a figure is negative.
    """

    #: In a few letters, without spaces.
    name: str
    backfill: BackfillRule
    order: Order = Order.SUBMISSION
    #: The number of jobs behind the first job that has to wait that are tried; None: all.
    depth: int | None = None
    #: A job that was eligible (submitted, its ``not_before`` over, its dependencies fulfilled) for this many seconds
    #: starves: no other job starts before it (PBS-2). None: no job starves.
    max_starve: int | None = None

    def __post_init__(self) -> None:
        if (self.depth or 0) < 0 or (self.max_starve or 0) < 0:
            raise ValueError(f"Expected depth and max_starve of 0 or more, got {self}")

    def in_numbers(self, *, predicts: Prediction | None) -> arrays.Rule:
        """Return the rule as the kernels take it."""
        return arrays.Rule(
            backfill=int(self.backfill),
            order=int(self.order),
            depth=1 << 40 if self.depth is None else self.depth,
            max_starve=-1 if self.max_starve is None else self.max_starve,
            predicts=arrays.PREDICTS_NOTHING if predicts is None else predicts.number,
        )
