"""Symmetries: equal nodes, equal jobs; and the one of several equal plans that a model keeps.

Any plan can be renamed into the one that is kept: first equal jobs change places until they start in document order,
which moves no start; then equal nodes change names until they are filled in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.solution import Placed

#: The most parts by which nodes are compared: their presences are the digits of one number.
_MOST_DIGITS = 30


def equal_sites(encoding: Encoding) -> list[list[int]]:
    """Return the groups of at least two sites that are equal for every task."""
    taken = {
        alternative.site
        for task in encoding.tasks
        if task.is_running
        for part in task.parts
        for alternative in part.alternatives
    }
    groups: defaultdict[object, list[int]] = defaultdict(list)
    for number, site in enumerate(encoding.sites):
        if number not in taken:
            groups[site.group, tuple(sorted(site.pools.items(), key=str))].append(number)
    return [group for group in groups.values() if len(group) > 1]


def equal_tasks(encoding: Encoding) -> list[list[int]]:
    """Return the groups of at least two tasks that ask for the same, and cost the same."""
    awaited = {number for one in encoding.milestones for number, _ in (*one.before, *one.after)}
    groups: defaultdict[object, list[int]] = defaultdict(list)
    for number, task in enumerate(encoding.tasks):
        if number not in awaited:
            costs = encoding.costs.rates[number], encoding.costs.modes[number]
            times = (task.earliest, task.latest, task.end_by, task.is_optional)
            costs_of_place = encoding.costs.places[number], encoding.costs.ends.get(number)
            licenses = tuple(map(task.job.licenses_of, range(len(task.modes))))
            key = (task.modes, licenses, times, costs, costs_of_place)
            groups[key].append(number)
    return [group for group in groups.values() if len(group) > 1]


def ranking_parts(encoding: Encoding) -> list[tuple[int, int]]:
    """Return the parts (task, part) by whose presence equal sites are ordered: those of the largest tasks first, no
    more than fit into a number.
    """
    areas = [_area(task) for task in encoding.tasks]
    largest = sorted(range(len(areas)), key=lambda number: (-areas[number], number))
    return [(number, part) for number in largest for part in range(len(encoding.tasks[number].parts))][:_MOST_DIGITS]


def _area(task: Task) -> int:
    """Return the least area of a task: its amounts of all resources times seconds, in its shortest form."""
    mode = task.modes[0]
    segments = zip(mode.spans, mode.requests, strict=True)
    return sum(span.least * sum(request.totals.values()) for span, request in segments)


def canonical(
    encoding: Encoding, placed: Sequence[Placed], *, sorts_jobs: bool, sorts_nodes: bool
) -> tuple[Placed, ...]:
    """Return the one of the plans equal to this one (one entry by task) that a model keeps."""
    chosen = list(placed)
    for group in equal_tasks(encoding) if sorts_jobs else ():
        by_start = sorted((placed[number] for number in group), key=lambda one: (one.is_absent, one.start))
        for number, one in zip(group, by_start, strict=True):
            chosen[number] = one
    new_name: dict[int, int] = {}
    present = [{s for p, s, _ in chosen[number].counts if p == part} for number, part in ranking_parts(encoding)]
    for group in equal_sites(encoding) if sorts_nodes else ():
        filled = sorted(group, key=lambda site: [site not in sites for sites in present])
        new_name.update(zip(filled, group, strict=True))
    return tuple(
        replace(one, counts=tuple((part, new_name.get(site, site), count) for part, site, count in one.counts))
        for one in chosen
    )
