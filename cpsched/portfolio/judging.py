"""The verifier, as the recipe asks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cpsched.arguments import at_the_door
from cpsched.domain import Instance, Judgement, Plan, PlannedJob
from cpsched.formats import checked, instance_to_document, plan_to_document
from cpsched.portfolio.scoring import with_jobs
from cpsched.problem import is_compiled
from cpsched.verify import Judge, Violation


@dataclass(frozen=True, slots=True)
class Check:
    """Holds plans of one window to the rules."""

    instance: Instance
    #: None: no document says what the window has, as in a simulation that has made licences of the rules.
    _judge: Judge | None

    @classmethod
    def of(cls, instance: Instance, document: object | None = None) -> Check:
        """Return the check of a window: on the document that it was read from, or else on one written anew."""
        if is_compiled(instance):
            return cls(instance, None)
        return cls(instance, Judge(instance_to_document(instance) if document is None else document))

    @property
    def knows_rules(self) -> bool:
        """Whether a document says what the window has; if not, no fault is ever found."""
        return self._judge is not None

    def faults(self, plan: Plan, *, claims: bool = True) -> tuple[Violation, ...]:
        """Return everything that is wrong with a plan; with `claims`, false reasons of its waiting room too."""
        return self.judged(plan, claims=claims)[1]

    def judged(self, plan: Plan, *, claims: bool = True) -> tuple[Plan, tuple[Violation, ...]]:
        """Return a plan with its judgement, where there is a document to judge it by, and everything that is wrong."""
        if self._judge is None:
            return plan, ()
        faults, rules = self._judge.judge(plan_to_document(plan), claims=claims)
        return plan.judged(Judgement(violations=len(faults), rules=rules)), faults

    def of_jobs(self, first: Plan) -> Callable[[Sequence[PlannedJob]], Sequence[str]]:
        """Return the judge of a board: of plans that have other jobs than a first one, or other places for its jobs.

        Whether the other jobs still belong into the waiting room is asked of the last plan only.
        """

        def faults(jobs: Sequence[PlannedJob]) -> Sequence[str]:
            return [*map(str, self.faults(with_jobs(self.instance, first, jobs), claims=False))]

        return faults


@at_the_door
def verify_plan(instance: Instance, plan: Plan) -> tuple[Violation, ...]:
    """Hold a plan to every rule of ``docs/formats.md``, as the independent judge reads both documents.

    Returns
    -------
    tuple of Violation
        Everything that is wrong; empty if the plan is valid.

    Raises
    ------
    DocumentError
        If the instance was built in Python and is not in order.
    """
    return Judge(instance_to_document(checked(instance))).violations(plan_to_document(plan))
