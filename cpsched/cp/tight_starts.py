"""The starts that an optimal plan needs: a job begins when it may, or when something ends.

Take an optimal plan of rigid jobs in which no job can be moved to the left alone or together with others (a semi-active
plan, Sprecher, Kolisch and Drexl 1995). Draw an arrow from each start to each end of a job that is the same second, and
to each job on which it waits for exactly as long as it must. Jobs from which no arrows lead to a job that begins at its
earliest start, or when something else leaves its nodes (a running job, a time that is set aside), could all begin one
second earlier: at that second the nodes hold no more than they did in that second or in the next one. So each start is
the second of such a beginning, and the durations (or waiting times) of some other jobs after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING

from cpsched.cp.costs import TaskCosts
from cpsched.cp.sites import Pool, Site
from cpsched.problem import Milestone, union

if TYPE_CHECKING:
    from cpsched.cp.encoding import Task


#: Seconds, as intervals ``[first, last]`` in time order.
Pieces = tuple[tuple[int, int], ...]

#: From so many pieces on all later seconds are allowed: with dependencies CP-SAT's presolve takes their square.
_MOST_PIECES = 300
#: A horizon of more steps of the grid than this is not looked at.
_LONGEST = 1 << 25


def tight_starts(
    tasks: Sequence[Task],
    sites: Iterable[Site],
    licenses: Mapping[str, Pool],
    milestones: Sequence[Milestone],
    costs: TaskCosts,
    *,
    horizon: int,
    known: Iterable[int],
) -> Pieces | None:
    """Return seconds from now among which some optimal plan has all its starts; None if all may be needed.

    That is so where jobs can be held or change while they run, or where a later start could be cheaper.

    `known`: the starts of a plan that the model is to have as well.
    """
    if not all(_has_fixed_durations(task) for task in tasks) or not _is_regular(costs):
        return None
    steps: list[set[int]] = [{mode.least for mode in task.modes} for task in tasks]
    for milestone in milestones:
        delays = {delay for _, delay in milestone.after}
        for number, seconds in milestone.before:
            steps[number] |= {seconds + delay for delay in delays}
    if any(second < 0 for of_task in steps for second in of_task):
        return None
    pools = [pool for site in sites for pool in site.pools.values()]
    bases = {task.earliest for task in tasks}
    bases |= {hold.end for pool in (*pools, *licenses.values()) for hold in pool.holds}
    unit = gcd(*bases, *(seconds for of_task in steps for seconds in of_task)) or 1
    if horizon // unit > _LONGEST:
        return None
    sums = _sums({base // unit for base in bases}, [{s // unit for s in of_task} for of_task in steps], horizon // unit)
    pieces = [*((second, second) for second in known), *_pieces(sums, unit, horizon)]
    return tuple((first, end - 1) for first, end in union((first, last + 1) for first, last in pieces))


def _has_fixed_durations(task: Task) -> bool:
    """Return whether a task waits, and is one piece of a known duration in each of its modes."""
    return not task.is_running and all(len(mode.spans) == 1 and mode.is_fixed(0, 0) for mode in task.modes)


def _is_regular(costs: TaskCosts) -> bool:
    """Return whether no plan gets cheaper by a later start."""
    rates = [rate for of_task in costs.rates for rate in of_task]
    rates += [rate for of_task in costs.modes for mode in of_task for rate in mode.rates]
    return costs.makespan >= 0 and all(rate.weight >= 0 for rate in rates)


def _sums(bases: Iterable[int], steps: Sequence[set[int]], last: int) -> int:
    """Return as bits the numbers up to `last` that are a base and at most one number of each set added up."""
    found = 0
    for base in bases:
        if base <= last:
            found |= 1 << base
    within = (1 << (last + 1)) - 1
    for of_task in steps:
        before = found
        for step in of_task:
            found |= (before << step) & within
    return found


def _pieces(sums: int, unit: int, horizon: int) -> list[tuple[int, int]]:
    """Return the seconds of the bits; the last piece that there may be has all that are left."""
    found = re.finditer("1+" if unit == 1 else "1", format(sums, "b")[::-1])
    pieces = [(run.start() * unit, (run.end() - 1) * unit) for run in islice(found, _MOST_PIECES)]
    if len(pieces) == _MOST_PIECES:
        pieces[-1] = pieces[-1][0], horizon
    return pieces
