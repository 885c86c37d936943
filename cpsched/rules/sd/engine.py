"""SD-Policy as an engine."""

from __future__ import annotations

from dataclasses import replace

from cpsched.domain import Instance
from cpsched.engine import Outcome, Progress
from cpsched.planner import AdmissionResult, unsupported, warmup, with_alternatives
from cpsched.rules.sd.event_loop import EventLoop
from cpsched.rules.sd.rule import SdRule


class SdEngine:
    """Plans as SD-Policy would start the jobs, if each had exactly its walltime of work. Deterministic (SD-8).

    Jobs that are not malleable, or do not have their nodes as a whole, are planned as `Conservative` does it; where
    no job can share, the plan is the same.
    """

    def __init__(self, rule: SdRule) -> None:
        self.rule = rule
        self.name = rule.name

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the rules' ledger cannot honour yet."""
        return (*unsupported(_rigid(instance)), *with_alternatives(instance))

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the rule. Raises `UnsupportedError` if it cannot honour something."""
        rigid = _rigid(instance)
        admission = AdmissionResult.of(rigid, engine=self.name)
        loop = EventLoop(rigid, admission, {job.id: job for job in instance.elements()}, self.rule)
        loop.run(progress)
        # jobs are in the waiting room because of the machine, or because of reservations of others
        first = admission.outcome(loop.first.ledger)
        ledger = loop.view.ledger
        last = replace(admission, jobs=tuple(job for job in ledger.jobs if job.id in loop.waiting)).outcome(ledger)
        left = {job.id: job for job in (*last.waiting_room, *first.waiting_room)}
        return Outcome(
            jobs=tuple(loop.placed[job.id] for job in admission.jobs if job.id in loop.placed),
            waiting_room=tuple(left[job.id] for job in admission.jobs if job.id in left),
        )


def _rigid(instance: Instance) -> Instance:
    """Return the instance with all jobs at full share."""
    return replace(instance, jobs=tuple(replace(job, malleability=None) for job in instance.jobs))
