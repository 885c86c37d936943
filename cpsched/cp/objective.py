"""The objective of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpsched.cp.encoding import Encoding
from cpsched.cp.variables import Variables

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

__all__ = ["add_objective"]


def add_objective(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Minimize what starts cost: sum over j and kinks k of w_jk max(0, s_j - k), plus w makespan (BRIDI-8).

    A kink at the earliest start needs no variable; the others have ``delay >= s_j - k``.
    """
    terms = []
    for number, (task, rates) in enumerate(zip(encoding.tasks, encoding.costs.rates, strict=True)):
        for rate in rates:
            beyond = variables.starts[number] - rate.kink
            if rate.kink > task.earliest:
                delay = variables.delays[number, rate.kink]
                model.add(delay >= beyond)
                beyond = delay
            terms.append(rate.weight * beyond)
    if variables.makespan is not None:
        for start, task in zip(variables.starts, encoding.tasks, strict=True):
            model.add(variables.makespan >= start + task.duration)
        terms.append(encoding.costs.makespan * variables.makespan)
    model.minimize(sum(terms))
