"""Complete hints: a value for every variable of a model, from a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cpsched.cp.encoding import Encoding
from cpsched.cp.solution import Placed
from cpsched.cp.variables import Variables

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

__all__ = ["add_hints"]


def add_hints(model: CpModel, encoding: Encoding, variables: Variables, placed: Sequence[Placed]) -> None:
    """Hint at a plan, given by one entry for each task."""
    counts = {(number, part, site): count for number, one in enumerate(placed) for part, site, count in one.counts}
    for start, one in zip(variables.starts, placed, strict=True):
        model.add_hint(start, one.start)
    for key, variable in variables.counts.items():
        model.add_hint(variable, counts.get(key, 0))
        if variables.presences[key] is not variable:
            model.add_hint(variables.presences[key], int(key in counts))
    taken = {(number, site) for number, _, site in counts}
    for host, variable in variables.hosts.items():
        model.add_hint(variable, int(host in taken))
    for (number, part, group), variable in variables.totals.items():
        there = [n for p, site, n in placed[number].counts if p == part and encoding.sites[site].group == group]
        model.add_hint(variable, sum(there))
    for (number, kink), variable in variables.delays.items():
        model.add_hint(variable, max(0, placed[number].start - kink))
    if variables.makespan is not None:
        durations = [task.duration for task in encoding.tasks]
        starts = [one.start for one in placed]
        model.add_hint(variables.makespan, encoding.costs.makespan_of(starts, durations))
