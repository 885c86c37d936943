"""The objective of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cpsched.cp.costs import ModeCost
from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.variables import Variables

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, LinearExpr


def add_objective(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Minimize what plans cost: sum over j and kinks k of w_jk max(0, s_j - k), plus w makespan (BRIDI-8), plus what
    the mode of a job costs, and each second that its segments are held; plus what a job that may be left out costs at
    its earliest and shortest, if it has a place.

    A kink at the earliest start needs no variable; the others have ``delay >= s_j - k``.
    """
    terms: list[LinearExpr | int] = []
    for number, (task, rates) in enumerate(zip(encoding.tasks, encoding.costs.rates, strict=True)):
        for rate in rates:
            beyond: LinearExpr = variables.starts[number] - rate.kink
            if rate.kink > task.earliest:
                delay = variables.delays[number, rate.kink]
                model.add(delay >= beyond)
                beyond = delay
            terms.append(rate.weight * beyond)
        if encoding.costs.places[number]:
            terms.append(encoding.costs.places[number] * variables.has_place(number))
        for mode, cost in enumerate(encoding.costs.modes[number]):
            terms.extend(_of_mode(model, task, variables, (number, mode), cost))
        if number in encoding.costs.ends:
            stretch = encoding.costs.ends[number]
            seconds = variables.end_of(number, task) - variables.starts[number]
            terms.append(stretch.weight * (seconds - stretch.kink * variables.has_place(number)))
    if variables.makespan is not None:
        for number, task in enumerate(encoding.tasks):
            if not task.is_running:
                last = model.add(variables.makespan >= variables.end_of(number, task))
                if number in variables.places:
                    last.only_enforce_if(variables.places[number])
        terms.append(encoding.costs.makespan * variables.makespan)
    total = sum(terms)
    if encoding.ceiling is not None:
        model.add(total <= encoding.ceiling)
    model.minimize(total)


def _of_mode(
    model: CpModel, task: Task, variables: Variables, key: tuple[int, int], cost: ModeCost
) -> Iterator[LinearExpr | int]:
    """Yield the cost terms of a task in a mode: ``delay >= s_j - k`` holds if it has that mode."""
    number, mode = key
    if cost.fixed:
        yield cost.fixed * variables.is_run_so(number, mode)
    for rate in cost.rates:
        delay = variables.mode_delays[number, mode, rate.kink]
        demand = model.add(delay >= variables.starts[number] - rate.kink)
        if key in variables.modes:
            demand.only_enforce_if(variables.modes[key])
        yield rate.weight * delay
    times = variables.times[key]
    for segment, (span, hold) in enumerate(zip(task.modes[mode].spans, cost.holds, strict=True)):
        if hold:
            yield hold * (times[segment + 1] - times[segment] - span.least)
