"""The queue rules in one table: an order of the queue, and the jobs that may start ahead of a head that has to wait.

These are on-line forms (`QueueRule`), which the simulator plays; `rules` has those that plan windows.
"""

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


def always(rule: QueueRule) -> Callable[[], QueueRule]:
    """Return the factory of a rule without parameters."""
    return lambda: rule


def _by_order(name: str, order: Order) -> Callable[..., QueueRule]:

    def make(backfill: Backfill = "none", expect: Expect = "walltime") -> QueueRule:
        rule = BackfillRule.NOT_DELAYING if backfill == "easy" else BackfillRule.NOBODY
        return QueueRule(name=name, backfill=rule, order=order, expect=Expectation(expect))

    return make


#: A job is due when it has waited for so many times as long as the unluckiest under EASY: see `docs/decisions.md`.
DUE_AFTER = 2.5


def smith(gate: float | None = None, due_after: float | None = DUE_AFTER, expect: Expect = "classes") -> QueueRule:
    """Return the on-line rule that cpsched recommends where runtimes are not known.

    Jobs with deadlines or hard limits of waiting come first, then those that are due, in the order of submission: they
    have waited for `due_after` times the longest wait that EASY would have made so far (or the time that the machine
    needs for all others that wait, if longer); half as many times if they take the whole machine. All others are in the
    order of Smith's rule (1956) with the geometric mean of expected runtime and walltime, and come the nearer to the
    front the sooner they are due. While the rule has lost more than a twentieth of the weighted queue time of EASY,
    jobs start as under EASY (`compare_waits`). Nodes are reserved, by walltimes, for each blocked job; a job starts if
    it delays no reservation of one before it, and if its index is at most e^`gate` times that of the first blocked job
    that is not due.
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
    "fcfs": always(_FCFS),
    "first_fit": always(_FIRST_FIT),
    **{name: _by_order(name, order) for name, order in _ORDERS.items()},
    "easy": always(_EASY),
    "pbs_fifo_bf10": always(_PBS_FIFO),
    "pbs_walltime_bf400": always(_PBS_WALLTIME),
    "smith": smith,
}


_DAY = 24 * 3600
_PBS_ORDERS = {"none": Order.SUBMISSION, "short_walltime": Order.WALLTIME}


def pbs_fifo_starve(
    max_starve: int = _DAY, help_starving_jobs: bool = True, sort_by: Literal["none", "short_walltime"] = "none"
) -> QueueRule:
    """Return the FIFO scheduler of OpenPBS (Bode, Halstead, Kendall, Lei, Jackson, ALS 2000): each job that fits starts
    (PBS-1), until a job starves: then no other job starts before it (PBS-6).

    Of its options (PBS-3) three are built, with the defaults of its sample but for the order. Limits of running jobs
    are limits of the workload, and dedicated time is a reservation or a downtime of it: the simulator keeps them at
    each start, before any rule of the queue. Not built are: ``strict_fifo`` (`fcfs` is that); ``round_robin``,
    ``by_queue`` and ``sort_queues``, since all jobs are in one queue; ``load_balancing`` and ``sync_time``, which are
    about measured load; other orders in prime time, of which the paper tells nothing; and ``fair_share`` with
    ``half_life`` and ``unknown_shares``, which is off in the sample and in the paper's runs (PBS-4). Jobs that ask for
    more than the machine, which OpenPBS deletes (PBS-5), are refused by the simulator.

    `max_starve`: a job starves when it has been eligible for more than this many seconds: since its submission, its
      ``not_before`` or the last job that it waited for. Of several the one that has been eligible for longest counts.
    `help_starving_jobs`: whether the rule of starving jobs is used.
    `sort_by`: the order of the queue: ``none``, the order of submission, as the paper has it; or ``short_walltime``.
      (The sample's ``shortest_job_first`` is about requested CPU time.)
    """
    return QueueRule(
        name="pbs_fifo_starve",
        backfill=BackfillRule.ANYBODY,
        order=_PBS_ORDERS[sort_by],
        max_starve=max_starve if help_starving_jobs else None,
    )
