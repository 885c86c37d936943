"""The parts of a workload that a scheduler does not keep: they are named before a simulation begins."""

from __future__ import annotations

from collections import Counter

from cpsched.domain import Instance, priority_classes
from cpsched.lab.sim.rule_choice import RuleChoice, is_plain
from cpsched.lab.sim.rules import Order, QueueRule
from cpsched.lab.sim.scheduler import Scheduler


def unkept(instance: Instance, scheduler: QueueRule | Scheduler) -> tuple[str, ...]:
    """Return the parts of a workload that a scheduler does not keep, each in words; empty: it keeps all.

    Planners of rolling windows (`Rolling`) keep a hard ``max_wait`` as long as a plan can, serve strict priorities
    class by class, and weigh promised starts. All others know none of these, but for the rules in Smith's order: there
    jobs with a hard ``max_wait`` come first, though they may be late. Shares count where weights do, and in Slurm's
    priorities where these have a weight for it.
    """
    if isinstance(scheduler, RuleChoice):
        scheduler = scheduler.rules[0] if is_plain(instance) else scheduler.otherwise
    if getattr(scheduler, "plans_windows", False):
        return ()
    found = []
    hard = Counter(job.queue for job in instance.jobs if _is_bound(instance, job.queue) and job.running is None)
    for queue, count in hard.items():
        is_first = isinstance(scheduler, QueueRule) and scheduler.order is Order.SMITH
        how = "whose jobs come first, but may start later" if is_first else "which is ignored"
        found.append(f"the hard max_wait of the queue {queue} ({_jobs(count)}), {how}")
    if instance.has_strict_priorities and len(set(priority_classes(instance).values())) > 1:
        found.append("strict priorities: jobs of lower classes may delay those of higher ones")
    is_smith = isinstance(scheduler, QueueRule) and scheduler.order in (Order.SMITH, Order.WSPT)
    if instance.fair_share is not None and not (is_smith or getattr(scheduler, "reads_shares", False)):
        found.append("fair_share, which it does not weigh")
    choosing = sum(len(job.element_ids) for job in instance.jobs if job.alternatives)
    if choosing and not isinstance(scheduler, QueueRule):
        found.append(f"alternatives ({_jobs(choosing)}): what it does not start by a draft runs by its own request")
    promised = sum(job.told is not None for job in instance.jobs)
    if promised:
        found.append(f"promised starts ({_jobs(promised)}), which it does not weigh")
    return tuple(found)


def _is_bound(instance: Instance, queue: str | None) -> bool:
    """Tell whether the jobs of a queue have a hard ``max_wait``."""
    max_wait = None if queue is None else instance.queues[queue].max_wait
    return max_wait is not None and max_wait.is_hard


def _jobs(count: int) -> str:
    return f"{count:,} job{'s' * (count != 1)}"
