"""Redundant constraints: true of every plan, or of one of several plans that differ in names only.

They follow from the other constraints, but the solver would find them late or never. T_jkg is the number of units of
part k of task j on the nodes of class g.

Any plan can be renamed into the one of several equal plans that is kept: first equal jobs change places until they
start in document order, which moves no start; then equal nodes change names until they are filled in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from cpsched.cp.constraints import Use, cumulative
from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.sites import Pool, Site, added_up
from cpsched.cp.solution import Placed
from cpsched.cp.variables import Variables, groups_of
from cpsched.problem import Column, Hold, is_optional

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


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


#: k of the dual-feasible functions: units of more than 1/(k+1) of a node, of which k fit on it.
_FITTING = (1, 2)

#: Superadditive: what it makes of several amounts is together no more than what it makes of their sum.
_Measure = Callable[[int], int]


def chain(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Begin each segment when the one before ends (EVO-17): t_j,i+1 = t_ji + l_ji, and so for several in a row.

    An interval that is present implies this itself; the constraint holds before the nodes of a task are known.
    """
    for (number, mode, first, last), size in variables.sizes.items():
        times = variables.times[number, mode]
        model.add(times[last + 1] == times[first] + size)


def class_totals(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Count the units on all nodes of a class: T_jkg = sum of x_jkn over the nodes n of class g."""
    for number, place, group in variables.totals:
        alternatives = groups_of(encoding, number, place)[group]
        counts = [variables.counts[number, place, alternative.site] for alternative in alternatives]
        model.add(sum(counts) == variables.totals[number, place, group])


def energy(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """All jobs together take no more than all nodes have: cumulative over j of r_j <= sum_n cap_n, by resource."""
    names = sorted({name for site in encoding.sites for name, _ in site.pools if not is_optional(name)})
    for name in names:
        pools = [site.pools[name, None] for site in encoding.sites if (name, None) in site.pools]
        uses = [
            Use(variables.intervals[number, mode, segment, segment], amount, 1, 1)
            for number, task in enumerate(encoding.tasks)
            for mode, segment in task.segments
            if (amount := task.modes[mode].requests[segment].totals.get(name, 0))
        ]
        cumulative(model, _together(pools), uses)


def dual_feasible(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """At most k units of more than 1/(k+1) of a node stand on it: cumulative over j, k of f(r_jk) T_jkg <= k nodes.

    f(r) = floor((k + 1) r / (cap + 1)), which is superadditive (Fekete and Schepers 2001); what is held on one node
    is one item.
    """
    for sites in _classes(encoding):
        for column, pool in sites[0].pools.items():
            for k in _FITTING:
                if pool.capacity > k:
                    measure = partial(_threshold, k, pool.capacity)
                    _surrogate(model, encoding, variables, sites, column, measure)


def order_equal_sites(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Equal nodes n, n+1 are filled in order: the binary number of all y_jkn is not below that of y_jk,n+1."""
    ranking = list(reversed(ranking_parts(encoding)))
    for sites in equal_sites(encoding):
        for one, other in pairwise(sites):
            more = [
                (variables.presences[number, part, one] - variables.presences[number, part, other]) * 2**digit
                for digit, (number, part) in enumerate(ranking)
                if (number, part, one) in variables.presences
            ]
            if more:
                model.add(sum(more) >= 0)


def order_equal_tasks(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Equal jobs j, j+1 start in order, and the first ones have places: p_j+1 <= p_j, s_j <= s_j+1 if p_j+1."""
    for group in equal_tasks(encoding):
        for one, other in pairwise(group):
            sorted_ = model.add(variables.starts[one] <= variables.starts[other])
            if other in variables.places:
                sorted_.only_enforce_if(variables.places[other])
                model.add_implication(variables.places[other], variables.places[one])


def start_tight(model: CpModel, encoding: Encoding, variables: Variables) -> None:
    """Start jobs only when they may, or when something ends (`tight_starts`): s_j in S."""
    from ortools.sat.python.cp_model import Domain

    if encoding.tight_starts is not None:
        seconds = Domain.from_intervals(encoding.tight_starts)
        for start in variables.starts:
            model.add_linear_expression_in_domain(start, seconds)


def _threshold(times: int, capacity: int, amount: int) -> int:
    return (times + 1) * amount // (capacity + 1)


def _classes(encoding: Encoding) -> list[list[Site]]:
    groups: dict[int, list[Site]] = {}
    for site in encoding.sites:
        groups.setdefault(site.group, []).append(site)
    return list(groups.values())


def _together(pools: Iterable[Pool], measure: _Measure = int) -> Pool:
    """Return the pool that several pools are together, each amount on each of them measured, or as it is."""
    pools = tuple(pools)
    holds = [Hold(hold.start, hold.end, measure(hold.amount)) for pool in pools for hold in pool.holds]
    return Pool(sum(measure(pool.capacity) for pool in pools), tuple(added_up(holds)))


def _surrogate(
    model: CpModel,
    encoding: Encoding,
    variables: Variables,
    sites: Sequence[Site],
    column: Column,
    measure: _Measure,
) -> None:
    """Add the cumulative of all nodes of a class, with each amount measured."""
    uses = []
    for number, task in enumerate(encoding.tasks):
        for place, part in enumerate(task.parts):
            alternatives = groups_of(encoding, number, place).get(sites[0].group)
            for segment, takes in enumerate(alternatives[0].takes, start=part.first) if alternatives else ():
                if amount := measure(takes.get(column, 0)):
                    count = variables.totals.get((number, place, sites[0].group), part.need)
                    interval = variables.intervals[number, part.mode, segment, segment]
                    uses.append(Use(interval, amount, count, part.need))
    cumulative(model, _together([site.pools[column] for site in sites], measure), uses)
