"""A rule as an engine."""

from __future__ import annotations

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job, Plan
from cpsched.engine import Budget, Outcome, Progress
from cpsched.planner import Roster, planning_order, unsupported, warmup
from cpsched.policies.policy import Policy

__all__ = ["PolicyEngine"]


class PolicyEngine:
    """Plans as a rule-based scheduler would start the jobs, if each ran for exactly its walltime. Deterministic.

    Jobs with a fixed start or a deadline are planned first, as the planner does it, and no rule moves them (OCCS-35):
    to serve them in their turn would be to lose them.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = f"policy:{policy.name}"

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return what the instance asks for and the ledger of all rules cannot honour yet."""
        return unsupported(instance)

    def plan(
        self, instance: Instance, budget: Budget, *, seed: int, hint: Plan | None, progress: Progress | None
    ) -> Outcome:
        """Plan all jobs by the rule; `budget`, `seed` and `hint` change nothing.

        Raises
        ------
        UnsupportedError
            If the instance asks for something that cannot be honoured yet.
        """
        roster = Roster.of(instance, engine=self.name)
        ledger = Ledger(instance, roster.admitted)
        bound = [job for job in planning_order(instance, roster.admitted) if _is_bound(job)]
        ledger.plan([job.id for job in bound])
        queue = self.policy.order(instance, [job for job in roster.admitted if not _is_bound(job)])
        self.policy.serve(ledger, queue, progress)
        return roster.outcome(ledger)


def _is_bound(job: Job) -> bool:
    """Tell whether a job may run at some times only."""
    return job.start_at is not None or job.deadline is not None
