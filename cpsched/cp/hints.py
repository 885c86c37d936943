"""Complete hints: a value for every variable of a model, from a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Encoding
from cpsched.cp.solution import Placed
from cpsched.cp.variables import Variables
from cpsched.problem import Milestone

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


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
    for (number, name), variable in variables.groups.items():
        has = {encoding.group_of(number, site) for _, site, _ in placed[number].counts}
        model.add_hint(variable, int(name in has))
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
