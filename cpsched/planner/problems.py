"""The problem of a window, with the nodes that its reservations get; and the outcome of an engine, stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpsched.domain import Instance, ReservedSlice
from cpsched.engine import Outcome
from cpsched.planner.reservations import slices_of
from cpsched.problem import Problem, compiled


def problem_of(instance: Instance, *, slices: Sequence[ReservedSlice] | None = None, soft: bool = True) -> Problem:
    """Return the problem of a window, with `soft` limits too, and its `slices` of reservations or chosen ones."""
    return compiled(instance, slices_of(instance) if slices is None else slices, soft=soft)


def stated_outcome(problem: Problem, outcome: Outcome) -> Outcome:
    """Return the outcome of an engine as one of the stated window, with the rules for which jobs wait as reasons."""
    waiting_room = problem.reasons(outcome.waiting_room)
    return replace(outcome, jobs=problem.to_stated(outcome.jobs), waiting_room=waiting_room)
