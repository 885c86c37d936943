"""The FIFO scheduler of OpenPBS, with starving jobs (PBS-1 to PBS-6; Bode, Halstead, Kendall, Lei, Jackson, ALS 2000).

Of its options (PBS-3) three are built, with the defaults of its sample but for the order: ``max_starve``,
``help_starving_jobs`` and ``sort_by``. Limits of running jobs are limits of the workload, and dedicated time is a
reservation or a downtime of it: the simulator keeps them at each start, before any rule of the queue. Not built are:
``strict_fifo`` (`fcfs` is that); ``round_robin``, ``by_queue`` and ``sort_queues``, since all jobs are in one queue;
``load_balancing`` and ``sync_time``, which are about measured load; other orders in prime time, of which the paper
tells nothing; and ``fair_share`` with ``half_life`` and ``unknown_shares``, which is off in the sample and in the
paper's runs (PBS-4). Jobs that ask for more than the machine, which OpenPBS deletes (PBS-5), are refused by the
simulator.
"""

from __future__ import annotations

from typing import Literal

from cpsched.lab.sim import BackfillRule, Order, QueueRule

_DAY = 24 * 3600
_ORDERS = {"none": Order.SUBMISSION, "short_walltime": Order.WALLTIME}


def pbs_fifo_starve(
    max_starve: int = _DAY, help_starving_jobs: bool = True, sort_by: Literal["none", "short_walltime"] = "none"
) -> QueueRule:
    """Return the rule: each job that fits starts, until a job starves: then no other job starts before it (PBS-1).

    `max_starve`: a job starves when it has been eligible for more than this many seconds: since its submission, its
      ``not_before`` or the last job that it waited for. Of several the one that has been eligible for longest counts.
    `help_starving_jobs`: whether the rule of starving jobs is used (PBS-6).
    `sort_by`: the order of the queue: ``none``, the order of submission, as the paper has it; or ``short_walltime``.
      (The sample's ``shortest_job_first`` is about requested CPU time.)
    """
    return QueueRule(
        name="pbs_fifo_starve",
        backfill=BackfillRule.ANYBODY,
        order=_ORDERS[sort_by],
        max_starve=max_starve if help_starving_jobs else None,
    )
