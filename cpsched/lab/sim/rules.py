"""Queue rules: schedulers that need no more than the queue, what is free now, and the head's reservation."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import exp

from cpsched.domain import Job
from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import BY

#: Before so many jobs have started in the replay of EASY its waits are compared with none; where nodes interchange, so
#: that it has them right, few are enough.
_TRUSTED, _FEW = 5000, 500


class Prediction(StrEnum):
    """The uses of predicted runtimes."""

    #: The order of the queue. Expected ends and reservations follow the walltimes: predictions delay no job.
    ORDER = "order"
    #: The order, expected ends and reservations.
    ALL = "all"

    @property
    def number(self) -> int:
        """The number that the kernels know it by."""
        return arrays.PREDICTS_ORDER if self is Prediction.ORDER else arrays.PREDICTS_ALL


class Expectation(StrEnum):
    """The runtime that a job is expected to have in the order of the queue."""

    #: Its walltime.
    WALLTIME = "walltime"
    #: The mean of the last two jobs of its user (Tsafrir, Etsion and Feitelson, TPDS 2007).
    USER = "user"
    #: Its walltime times the share that jobs of its classes have used so far, of the last ones most: all jobs, those of
    #: its queue with such walltimes, of its user, with its exact walltime, with its cores. What a class does not know
    #: yet it has from the wider one.
    CLASSES = "classes"


class Order(IntEnum):
    """The order of the queue; equal jobs are in the order of submission."""

    SUBMISSION = BY.SUBMISSION
    #: Shortest (estimated) walltime first.
    WALLTIME = BY.WALLTIME
    #: Smallest product of cores and (estimated) walltime first.
    AREA = BY.AREA
    #: F1 of Carastan-Santos and de Camargo (SC'17).
    F1 = BY.F1
    #: Weighted shortest processing time first (Smith, 1956): the smallest product of (estimated) walltime, largest
    #: share of the machine and expected wait / weight first.
    WSPT = BY.WSPT
    #: The same, after jobs with deadlines or hard limits of waiting, and jobs that are due.
    SMITH = BY.SMITH
    #: WFP3 and UNICEF of Tang et al. (IPDPS'10), as in the same paper: the waiting counts, anew in each pass.
    WFP3 = BY.WFP3
    UNICEF = BY.UNICEF


class BackfillRule(IntEnum):
    """Which jobs may start ahead of the first job that has to wait."""

    NOBODY = arrays.NOBODY
    #: Every job that fits now.
    ANYBODY = arrays.ANYBODY
    #: Every job that does not delay that job's reservation (EASY).
    NOT_DELAYING = arrays.NOT_DELAYING
    #: Every job that does not delay the reservations of the blocked jobs before it.
    RESERVING = arrays.RESERVING


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """A scheduler that the compiled event loop plays.

    Raises `ValueError` if a figure is negative or too large, or does not belong to this kind of rule.
    """

    #: In a few letters, without spaces.
    name: str
    backfill: BackfillRule
    order: Order = Order.SUBMISSION
    #: An order of one's own, in place of `order`: returns a number for a job, whose ``runtime`` is hidden; the smallest
    #: is served first, equal ones in the order of submission. It is asked once for each job. Not of rules with
    #: reservations.
    key: Callable[[Job], float] | None = None
    #: The number of jobs behind the first job that has to wait that are tried; None: all.
    depth: int | None = None
    #: A job that was eligible (submitted, its ``not_before`` over, its dependencies fulfilled) for this many seconds
    #: starves: no other job starts before it (PBS-2). None: no job starves.
    max_starve: int | None = None
    #: A job starts only if its index is at most e^gate times that of the first blocked job; None: any may.
    gate: float | None = None
    #: A job is due when it has waited for so many times the longest wait under EASY so far, half if it takes the whole
    #: machine, see `queue_kernels` (rules with reservations only); None: no job is, and some may starve.
    due_after: float | None = None
    #: The runtimes that are expected in the order of the queue.
    expect: Expectation = Expectation.WALLTIME

    def __post_init__(self) -> None:
        least = min(self.depth or 0, self.max_starve or 0, self.gate or 0, self.due_after or 0)
        if not least >= 0:
            raise ValueError(f"Expected figures of 0 or more, got {self}")
        if self.key is not None and (
            self.order is not Order.SUBMISSION
            or self.expect is not Expectation.WALLTIME
            or self.backfill is BackfillRule.RESERVING
        ):
            raise ValueError(f"Expected a rule with a key without order, expect and reservations, got {self}")
        if self.backfill is BackfillRule.RESERVING:
            if self.depth is not None or self.max_starve is not None or self.order in (Order.WFP3, Order.UNICEF):
                raise ValueError(
                    f"Expected a rule with reservations without depth, max_starve, WFP3, UNICEF, got {self}"
                )
        elif self.gate is not None or self.order is Order.SMITH:
            raise ValueError(f"Expected gate and SMITH of a rule with reservations, got {self}")
        has_lengths = self.order in (Order.WALLTIME, Order.AREA, Order.WSPT, Order.SMITH)
        if self.due_after is not None and not (has_lengths and self.backfill is BackfillRule.RESERVING):
            raise ValueError(f"Expected due_after of a rule with reservations by length, area or index, got {self}")

    @property
    def is_exact(self) -> bool:
        """Whether Python and compiled kernels compute the same keys to the last bit: those without logarithms."""
        return self.order not in (Order.F1, Order.UNICEF) and self.due_after is None

    def in_numbers(self, *, predicts: Prediction | None, is_counted: bool = False) -> arrays.RuleNumbers:
        """Return the rule as the kernels take it.

        `predicts`: what the runtimes are used for that the rule expects, or, if it expects walltimes, those of the
        users' last jobs. None: for the order, where the rule expects other runtimes than walltimes. `is_counted`:
        whether jobs are counted on interchangeable nodes.
        """
        if predicts is None and self.expect is not Expectation.WALLTIME:
            predicts = Prediction.ORDER
        return arrays.RuleNumbers(
            backfill=int(self.backfill),
            order=int(self.order) if self.key is None else BY.KEY,
            depth=1 << 40 if self.depth is None else self.depth,
            max_starve=-1 if self.max_starve is None else self.max_starve,
            predicts=arrays.PREDICTS_NOTHING if predicts is None else predicts.number,
            expects=arrays.EXPECTS_CLASSES if self.expect is Expectation.CLASSES else arrays.EXPECTS_USER,
            gate=-1.0 if self.gate is None else exp(self.gate),
            due_after=-1.0 if self.due_after is None else float(self.due_after),
            trusted=_TRUSTED,
            few=_FEW if is_counted else _TRUSTED,
            is_counted=is_counted,
        )
