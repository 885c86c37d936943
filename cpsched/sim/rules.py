"""Queue rules: schedulers that need no more than the queue, what is free now, and the head's reservation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from cpsched.sim import kernels

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
        return kernels.PREDICTS_ORDER if self is Prediction.ORDER else kernels.PREDICTS_ALL


class Order(IntEnum):
    """The order of the queue; equal jobs are in the order of submission."""

    SUBMISSION = kernels.BY_SUBMISSION
    #: Shortest (estimated) walltime first.
    WALLTIME = kernels.BY_WALLTIME
    #: Smallest product of cores and (estimated) walltime first.
    AREA = kernels.BY_AREA
    #: F1 of Carastan-Santos and de Camargo (SC'17).
    F1 = kernels.BY_F1
    #: Weighted shortest processing time first (Smith, 1956): the smallest product of (estimated) walltime, largest
    #: share of the machine and expected wait first.
    WSPT = kernels.BY_WSPT
    #: WFP3 and UNICEF of Tang et al. (IPDPS'10), as in the same paper: the waiting counts, anew in each pass.
    WFP3 = kernels.BY_WFP3
    UNICEF = kernels.BY_UNICEF


class BackfillRule(IntEnum):
    """Which jobs may start ahead of the first job that has to wait."""

    NOBODY = kernels.NOBODY
    #: Every job that fits now.
    ANYBODY = kernels.ANYBODY
    #: Every job that does not delay that job's reservation (EASY).
    NOT_DELAYING = kernels.NOT_DELAYING


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

    def in_numbers(self, *, predicts: Prediction | None) -> kernels.Rule:
        """Return the rule as the kernels take it."""
        return kernels.Rule(
            backfill=int(self.backfill),
            order=int(self.order),
            depth=1 << 40 if self.depth is None else self.depth,
            max_starve=-1 if self.max_starve is None else self.max_starve,
            predicts=kernels.PREDICTS_NOTHING if predicts is None else predicts.number,
        )
