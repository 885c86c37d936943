"""A rule as an engine."""

from __future__ import annotations

from cpsched.booking import Ledger
from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.errors import UnsupportedError
from cpsched.planner import AdmissionResult, changing, unsupported, warmup
from cpsched.problem import bound_jobs
from cpsched.rules.policy import Policy, insert


class PolicyEngine:
    """Plans as a rule-based scheduler would start the jobs, if each ran for exactly its walltime. Deterministic.

    Jobs with a fixed start, a deadline or a latest start, and those for which they wait, are planned first, as the
    planner does, and no rule moves them (OCCS-35): served in their turn, they could find no start.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the rules' ledger cannot honour yet, and evolving jobs."""
        return (*unsupported(instance), *changing(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the rule. Raises `UnsupportedError` if it cannot honour something."""
        features = self.unsupported(instance)
        if features:
            raise UnsupportedError(self.name, features)
        admission = AdmissionResult.of(instance, engine=self.name, is_shrunk=False)
        ledger = Ledger(instance, admission.admitted)
        bound = {job.id: job for job in bound_jobs(instance, admission.admitted)}
        insert(ledger, list(bound.values()), None)
        queue = self.policy.order(instance, [job for job in admission.admitted if job.id not in bound])
        self.policy.serve(ledger, queue, progress)
        return admission.outcome(ledger)
