"""The model: a table of contents, its objective, and complete hints, a value for every variable from a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from cpsched.cp import redundant
from cpsched.cp.constraints import CONSTRAINTS
from cpsched.cp.costs import ModeCost
from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.redundant import canonical
from cpsched.cp.solution import ModelParams, Placed
from cpsched.cp.variables import Variables
from cpsched.problem import Milestone

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, LinearExpr


def add_hints(model: CpModel, encoding: Encoding, variables: Variables, placed: Sequence[Placed]) -> None:
    """Hint at a plan, given by one entry for each task."""
    counts = {(number, part, site): count for number, one in enumerate(placed) for part, site, count in one.counts}
    for start, one in zip(variables.starts, placed, strict=True):
        model.add_hint(start, one.start)
    for number, variable in variables.places.items():
        model.add_hint(variable, int(not placed[number].is_absent))
    for (number, mode), variable in variables.modes.items():
        model.add_hint(variable, int(placed[number].mode == mode))
    for (number, mode, segment), variable in variables.borders.items():
        model.add_hint(variable, _times(encoding, placed, number, mode)[segment + 1])
    for (number, mode, first, last), variable in variables.sizes.items():
        times = _times(encoding, placed, number, mode)
        model.add_hint(variable, times[last + 1] - times[first])
    for number, variable in variables.ends.items():
        model.add_hint(variable, placed[number].end)
    for key, variable in variables.counts.items():
        model.add_hint(variable, counts.get(key, 0))
        if variables.presences[key] is not variable:
            model.add_hint(variables.presences[key], int(key in counts))
    for (number, mode, segment, site), variable in variables.hosts.items():
        parts = encoding.tasks[number].parts
        there = {at for part, at, _ in placed[number].counts if parts[part].is_there(mode, segment)}
        model.add_hint(variable, int(site in there))
    for (number, part, group), variable in variables.totals.items():
        units = [n for p, site, n in placed[number].counts if p == part and encoding.sites[site].group == group]
        model.add_hint(variable, sum(units))
    for (number, mode, name), variable in variables.groups.items():
        of_mode = [one for one in placed[number].counts if encoding.tasks[number].parts[one[0]].mode == mode]
        here = [one for one in of_mode if encoding.group_of(number, one[0], one[1]) == name]
        # of several kinds each has all of its chunks in the group
        first = sum(count for place, _, count in here if place == here[0][0])
        model.add_hint(variable, first // encoding.units_in_groups(number, here[0][0])[0] if here else 0)
    for (number, kink), variable in variables.delays.items():
        model.add_hint(variable, max(0, placed[number].start - kink))
    for (number, mode, kink), variable in variables.mode_delays.items():
        model.add_hint(variable, max(0, placed[number].start - kink) if placed[number].mode == mode else 0)
    for number, variable in variables.moments.items():
        milestone = encoding.milestones[number]
        model.add_hint(variable, max([0, *_passed(encoding, placed, milestone)]))
        if number in variables.reached:
            model.add_hint(
                variables.reached[number], int(not any(placed[one].is_absent for one, _ in milestone.before))
            )
    if variables.makespan is not None:
        model.add_hint(variables.makespan, encoding.costs.makespan_of(placed, encoding.tasks))


def _passed(encoding: Encoding, placed: Sequence[Placed], milestone: Milestone) -> Iterator[int]:
    """Yield when the tasks before a milestone pass it, those that have a place."""
    for number, seconds in milestone.before:
        task, one = encoding.tasks[number], placed[number]
        if not one.is_absent:
            may_take_longer = milestone.is_from_end and (task.is_elastic or task.job.alternatives)
            yield one.end + seconds - task.job.shortest if may_take_longer else one.start + seconds


def _times(encoding: Encoding, placed: Sequence[Placed], number: int, mode: int) -> Sequence[int]:
    """Return when a task's segments begin and end in a mode; if it is not run so, they are as short as they can be."""
    one = placed[number]
    return (
        one.times
        if one.mode == mode
        else tuple(accumulate((span.least for span in encoding.tasks[number].modes[mode].spans), initial=one.start))
    )


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


def build(encoding: Encoding, params: ModelParams, hint: Sequence[Placed] | None = None) -> tuple[CpModel, Variables]:
    """Return the model of a window, with a plan to begin from (one entry for each task)."""
    from ortools.sat.python.cp_model import CpModel

    class Model(CpModel):
        """A model without the old names of its methods: to make those takes longer than to solve a small model."""

        def _add_pre_pep8_methods(self) -> None:
            """Add none."""

    model = Model()
    variables = Variables.of(model, encoding)
    for constraint in CONSTRAINTS:
        constraint(model, encoding, variables)
    for constraint, is_wanted in (
        (redundant.chain, True),
        (redundant.class_totals, True),
        (redundant.energy, params.has_energy),
        (redundant.dual_feasible, params.has_dual_feasible),
        (redundant.order_equal_sites, params.breaks_nodes),
        (redundant.order_equal_tasks, params.breaks_jobs),
        (redundant.start_tight, params.has_tight_starts),
    ):
        if is_wanted:
            constraint(model, encoding, variables)
    add_objective(model, encoding, variables)
    if hint is not None:
        kept = canonical(encoding, hint, sorts_jobs=params.breaks_jobs, sorts_nodes=params.breaks_nodes)
        add_hints(model, encoding, variables, kept)
    return model, variables
