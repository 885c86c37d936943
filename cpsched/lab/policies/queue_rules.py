"""The queue rules in one table: an order of the queue, and the jobs that may start ahead of a head that has to wait.

These are on-line forms (`QueueRule`), which the simulator plays; `rules` has those that plan windows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cpsched.lab.sim import BackfillRule, Expectation, Order, QueueRule

#: ``none``: no job starts ahead of the head (as the orders were first published). ``easy``: a job that does not delay
#: the head's reservation does (aggressive backfilling).
Backfill = Literal["none", "easy"]
#: The runtime that a job is expected to have, in the order of the queue (`Expectation`).
Expect = Literal["walltime", "user", "classes"]

#: First come, first served, to the letter: no job starts before one that came before it.
_FCFS = QueueRule(name="fcfs", backfill=BackfillRule.NOBODY)
#: First come, first served among the jobs that fit now. Large jobs may wait without end.
_FIRST_FIT = QueueRule(name="first_fit", backfill=BackfillRule.ANYBODY)
#: EASY backfilling (OCCS-52; Lifka, JSSPP 1995): in the order of submission; a job that does not delay the head's
#: reservation starts ahead of it.
_EASY = QueueRule(name="easy", backfill=BackfillRule.NOT_DELAYING)
#: PBSFifo and PBSWalltime as they were compared with constraint programming on Eurora (BRIDI-20, BRIDI-21): EASY
#: backfilling by the first jobs behind a blocked head.
_PBS_FIFO = QueueRule(name="pbs_fifo_bf10", backfill=BackfillRule.NOT_DELAYING, depth=10)
_PBS_WALLTIME = QueueRule(
    name="pbs_walltime_bf400", backfill=BackfillRule.NOT_DELAYING, order=Order.WALLTIME, depth=400
)

#: The rules of order: the first job that does not fit blocks the queue, or is backfilled around.
_ORDERS = {
    "sjf": Order.WALLTIME,
    # smallest area first: by cores times walltime
    "saf": Order.AREA,
    # by walltime x largest share of the machine x expected wait / weight: Smith's rule (1956; BRIDI-8)
    "wspt": Order.WSPT,
    # by descending (wait / walltime)^3 x cores, and by descending wait / (log2(cores) x walltime), anew in each pass
    # (Tang, Desai, Buettner, Lan, IPDPS 2010)
    "wfp3": Order.WFP3,
    "unicef": Order.UNICEF,
    # by log10(walltime) x cores + 870 log10(submit), the best of the learnt orders of Carastan-Santos and de Camargo
    # (SC'17). Submission counts from the workload's second 0: what F1 does depends on where its clock begins.
    "f1": Order.F1,
}


def _always(rule: QueueRule) -> Callable[[], QueueRule]:
    """Return the factory of a rule without parameters."""
    return lambda: rule


def _by_order(name: str, order: Order) -> Callable[..., QueueRule]:
    """Return the factory of a rule of order."""

    def make(backfill: Backfill = "none", expect: Expect = "walltime") -> QueueRule:
        rule = BackfillRule.NOT_DELAYING if backfill == "easy" else BackfillRule.NOBODY
        return QueueRule(name=name, backfill=rule, order=order, expect=Expectation(expect))

    return make


#: A job is due when it has waited for so many times as long as the unluckiest under EASY: `docs/decisions.md` has what
#: it costs.
DUE_AFTER = 2.0


def smith(
    gate: float | None = None,
    due_after: float | None = DUE_AFTER,
    expect: Expect = "classes",
) -> QueueRule:
    """Return the on-line rule that cpsched recommends where runtimes are not known.

    Jobs with deadlines or hard limits of waiting come first, then those that are due, in the order of submission: they
    have waited for `due_after` times the longest wait that EASY would have made so far (or half of the time that the
    machine needs for the whole queue, if that is longer). All others are in the order of Smith's rule (1956) with the
    geometric mean of expected runtime and walltime, and come the nearer to the front the sooner they are due. Nodes are
    reserved, by walltimes, for each blocked job; a job starts if it delays no reservation of one before it, and if its
    index is at most e^`gate` times that of the first blocked job that is not due.
    """
    return QueueRule(
        name="smith",
        backfill=BackfillRule.RESERVING,
        order=Order.SMITH,
        gate=gate,
        due_after=due_after,
        expect=Expectation(expect),
    )


#: The factories of the on-line forms, by name.
QUEUE_RULES: dict[str, Callable[..., QueueRule]] = {
    "fcfs": _always(_FCFS),
    "first_fit": _always(_FIRST_FIT),
    **{name: _by_order(name, order) for name, order in _ORDERS.items()},
    "easy": _always(_EASY),
    "pbs_fifo_bf10": _always(_PBS_FIFO),
    "pbs_walltime_bf400": _always(_PBS_WALLTIME),
    "smith": smith,
}
