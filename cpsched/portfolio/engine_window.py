"""A window as engines plan it: without rules, and with running jobs that fit on their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from cpsched.domain import Fitted, Instance, Plan, PlannedJob, ReservedSlice, fitted
from cpsched.engine import Outcome
from cpsched.planner import slices_of
from cpsched.problem import Reduced, reduced

__all__ = ["EngineWindow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWindow:
    """A window as engines plan it; plans are translated between it and the window as documents state it."""

    #: What reservations got.
    slices: tuple[ReservedSlice, ...]
    _reduced: Reduced
    _fitted: Fitted

    @classmethod
    def of(cls, instance: Instance, *, slices: tuple[ReservedSlice, ...] | None = None, soft: bool = True) -> Self:
        """Return the window for engines; with `soft`, they keep soft limits too.

        `slices` are what reservations got, None: it is chosen.
        """
        slices = slices_of(instance) if slices is None else slices
        without_rules = reduced(instance, slices, soft=soft)
        return cls(slices=slices, _reduced=without_rules, _fitted=fitted(without_rules.instance))

    @property
    def instance(self) -> Instance:
        """The window that engines get."""
        return self._fitted.instance

    def to_stated(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of an engine's plan as a plan of the stated window has them."""
        return self._reduced.to_stated(self._fitted.to_stated(jobs))

    def to_held(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of the stated window as engines have them."""
        return self._fitted.to_held(self._reduced.to_reduced(jobs))

    def held(self, plan: Plan) -> Plan:
        """Return a plan of a stated window, this one or an earlier one, as engines have it."""
        return replace(plan, jobs=self.to_held(plan.jobs))

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return the outcome of an engine, stated."""
        waiting_room = self._reduced.reasons(outcome.waiting_room)
        return replace(outcome, jobs=self.to_stated(outcome.jobs), waiting_room=waiting_room)
