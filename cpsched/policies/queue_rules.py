"""The queue rules in one table: an order of the queue, and the jobs that may start ahead of a head that has to wait.

Each has its on-line form (`QueueRule`), which the simulator plays, and some have an off-line form (`Policy`) made of
it, which plans a window as the rule would start its jobs if each ran for exactly its walltime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Literal

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.engine import Progress
from cpsched.policies.conservative import insert_by_counts
from cpsched.policies.event_loop import start_in_turn
from cpsched.policies.insertion import insert
from cpsched.policies.policy import Policy
from cpsched.problem import by_turn, dominant_share, planning_order
from cpsched.sim import BackfillRule, Expectation, Order, QueueRule

__all__ = ["QUEUE_RULES", "WINDOW_RULES", "by_smith"]

#: ``none``: no job starts ahead of the head (as the orders were first published). ``easy``: a job that does not delay
#: the head's reservation does (aggressive backfilling).
Backfill = Literal["none", "easy"]
#: The runtime that a job is expected to have, in the order of the queue (`Expectation`).
Expect = Literal["walltime", "user", "classes"]


def by_submission(_: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by submission."""
    return sorted(jobs, key=lambda job: job.submit)


def by_walltime(_: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by walltime, then by submission."""
    return sorted(jobs, key=lambda job: (job.walltime, job.submit))


def by_smith(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Order by expected wait x expected runtime x dominant share / weight, then by submission: Smith's rule (1956) for
    the sum of weight x wait / expected wait.

    On one machine the best order is by ascending processing time / weight. The weight is the job's over its expected
    wait; the processing time is the expected runtime times width, the largest share of all nodes' (or licences') total
    that the job takes of anything.
    """

    def key(job: Job) -> tuple[Fraction, int]:
        share = dominant_share(instance.cluster, job)
        return instance.expected_wait(job) * job.expected_runtime * share / instance.weight(job), job.submit

    return sorted(jobs, key=key)


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


def smith(
    reservations: int = 16,
    gate: float | None = None,
    patience: int | None = 14 * 86_400,
    expect: Expect = "classes",
) -> QueueRule:
    """Return the on-line rule that cpsched recommends where runtimes are not known.

    Jobs with deadlines or hard limits of waiting come first, then the oldest of the jobs that have waited for
    `patience` seconds, as far as old jobs have not had 5 % of the machine in this way, then all others by Smith's rule
    (1956) with the geometric mean of expected runtime and walltime. Nodes are reserved, by walltimes, for those of the
    first kind and the first `reservations` others; a job starts if it delays no reservation, and if its key is at most
    e^`gate` times that of the first of the others that is blocked.
    """
    return QueueRule(
        name="smith",
        backfill=BackfillRule.RESERVING,
        order=Order.SMITH,
        reservations=reservations,
        gate=gate,
        patience=patience,
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

_WINDOW_ORDERS = {Order.SUBMISSION: by_submission, Order.WALLTIME: by_walltime}


def _of_window(rule: QueueRule, order: Callable[[Instance, Sequence[Job]], list[Job]] | None = None) -> Policy:
    """Return the off-line form of a rule, in its own order unless another one is given."""
    depth = 0 if rule.backfill is BackfillRule.NOBODY else rule.depth
    order = _WINDOW_ORDERS[rule.order] if order is None else order
    return Policy(name=rule.name, order=order, serve=partial(start_in_turn, depth=depth))


def _reserve(ledger: Ledger, queue: Sequence[Job], progress: Progress | None) -> None:
    """Reserve for one job after the other: where nodes are interchangeable, counts of them, and else nodes."""
    if not insert_by_counts(ledger, queue, progress):
        insert(ledger, queue, progress)


#: The rules that plan windows. Lists are inserted job by job; ``easy`` serves by priority first; conservative
#: backfilling (OCCS-52) gives each job a reservation in its turn, in the order of the planner's queue.
WINDOW_RULES: tuple[Policy, ...] = (
    _of_window(_FCFS),
    Policy(name="sjf_list", order=by_walltime, serve=insert),
    Policy(name="wspt_list", order=by_smith, serve=insert),
    Policy(name="conservative", order=planning_order, serve=_reserve),
    Policy(name="conservative_on_nodes", order=planning_order, serve=insert),
    _of_window(_EASY, order=by_turn),
    _of_window(_PBS_FIFO),
    _of_window(_PBS_WALLTIME),
)
