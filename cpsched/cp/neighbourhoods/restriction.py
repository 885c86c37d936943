"""Some tasks of a plan as a window of their own, in which all other tasks are amounts that are taken."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.costs import Rate, TaskCosts
from cpsched.cp.encoding import Alternative, Encoding, Part, Task
from cpsched.cp.neighbourhoods.occupation import Free, Occupation
from cpsched.cp.sites import Pool, Site, added_up, pool_of
from cpsched.cp.solution import Placed
from cpsched.problem import Column, Hold, Milestone


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A part of a window: its tasks and sites are those of the whole with these numbers, in this order."""

    encoding: Encoding
    tasks: tuple[int, ...]
    sites: tuple[int, ...]

    def to_whole(self, placed: Sequence[Placed]) -> dict[int, Placed]:
        """Return the tasks of a solution as the whole window has them."""
        return {
            number: replace(one, counts=tuple((part, self.sites[site], count) for part, site, count in one.counts))
            for number, one in zip(self.tasks, placed, strict=True)
        }

    def to_part(self, placed: Iterable[Placed]) -> tuple[Placed, ...]:
        """Return the tasks of a plan of the whole window as this part has them."""
        place = {site: number for number, site in enumerate(self.sites)}
        return tuple(
            replace(one, counts=tuple((part, place[site], count) for part, site, count in one.counts)) for one in placed
        )


def restricted(occupation: Occupation, tasks: Sequence[int], sites: Sequence[int]) -> Neighbourhood | None:
    """Return the window in which some tasks are planned anew on some sites, and all others stay.

    A plan of it costs less than these tasks do now; but where one of them has no start now, it may cost anything. None,
    if bounds show that there is no such plan.

    `tasks`: in ascending order; those that have a start are on these sites.
    """
    whole = occupation.encoding
    stays = np.ones(len(whole.tasks), np.bool_)
    stays[list(tasks)] = False
    bounded = [_bounded(occupation, number, stays) for number in tasks]
    if any(task.earliest > task.latest for task in bounded):
        return None
    ended = occupation.end_beside(tasks) if whole.costs.makespan else 0
    parts: list[Task] = bounded
    free = None
    if whole.machine is None:
        free = occupation.free_beside(sites, tasks)
        place = {site: number for number, site in enumerate(sites)}
        parts = [_on_sites(occupation, free, number, task, place) for number, task in zip(tasks, bounded, strict=True)]
    ceiling = None
    if all(occupation.is_placed(number) for number in tasks):
        last = max(occupation.end_beside(()), ended) if whole.costs.makespan else 0
        ceiling = int(sum(occupation.costs[number] for number in tasks)) + whole.costs.makespan * last - 1
        least = [_least(whole.costs, number, task.earliest) for number, task in zip(tasks, parts, strict=True)]
        spare = ceiling - sum(least) - whole.costs.makespan * ended
        if spare < 0:
            return None
        parts = [
            replace(task, latest=_latest(whole.costs.rates[number], task, of_task + spare))
            for number, task, of_task in zip(tasks, parts, least, strict=True)
        ]
    if any(task.earliest > task.latest for task in parts):
        return None
    since = min(task.earliest for task in parts)
    until = max(min(task.end_by, task.latest + max(mode.most for mode in task.modes)) for task in parts)
    if free is not None:
        parts = [_where_possible(free, task) for task in parts]
        if any(len(part.alternatives) == 0 for task in parts if len(task.modes) == 1 for part in task.parts):
            return None
    encoding = replace(
        whole,
        tasks=tuple(parts),
        sites=() if free is None else _sites(occupation, free, sites, parts, (since, until)),
        licenses=_licences(occupation, tasks, parts, until),
        milestones=_milestones_among(occupation, tasks),
        costs=_costs(whole.costs, tasks, parts),
        has_all_plans=False,
        has_other_jobs=False,
        held=() if whole.machine is None else tuple(added_up(occupation.nodes_beside(tasks))),
        ended=ended,
        ceiling=ceiling,
        tight_starts=None,
    )
    return Neighbourhood(encoding, tuple(tasks), tuple(sites) if free is not None else ())


def _bounded(occupation: Occupation, number: int, stays: NDArray[np.bool_]) -> Task:
    """Return a task that keeps its distances from the tasks that stay."""
    task = occupation.encoding.tasks[number]
    earliest, latest, end_by = task.earliest, task.latest, task.end_by
    for milestone, delay in occupation.waits_of(number):
        before = occupation.before[milestone]
        before = before[stays[before[:, 0]]]
        if len(before):
            starts, ends = occupation.starts[before[:, 0]], occupation.ends[before[:, 0]]
            passed = ends if occupation.encoding.milestones[milestone].is_from_end else starts + before[:, 1]
            earliest = max(earliest, int(passed.max()) + delay) if (starts >= 0).all() else task.latest + 1
    for milestone, seconds in occupation.leads_of(number):
        after = occupation.after[milestone]
        after = after[stays[after[:, 0]] & (occupation.starts[after[:, 0]] >= 0)]
        if len(after):
            moment = int((occupation.starts[after[:, 0]] - after[:, 1]).min())
            latest = min(latest, moment - seconds)
            if occupation.encoding.milestones[milestone].is_from_end:
                end_by = min(end_by, moment)
    return replace(task, earliest=earliest, latest=latest, end_by=end_by, is_optional=False)


def _on_sites(occupation: Occupation, free: Free, number: int, task: Task, place: Mapping[int, int]) -> Task:
    """Return a task with these sites as alternatives, each by its place, and not before it fits beside what is taken.

    It fits no later than where it is now.
    """
    groups = {site: occupation.encoding.sites[site].group for site in place}
    parts = []
    for part in task.parts:
        if task.is_running:
            found = [Alternative(place[a.site], a.most, a.takes) for a in part.alternatives if a.site in place]
        else:
            by_group = {occupation.encoding.sites[a.site].group: a for a in part.alternatives}
            found = [
                Alternative(at, by_group[groups[site]].most, by_group[groups[site]].takes)
                for site, at in place.items()
                if groups[site] in by_group
            ]
        parts.append(Part(part.units, part.need, tuple(found), part.mode, part.first, part.last))
    latest = task.latest if occupation.placed[number] is None else min(task.latest, int(occupation.starts[number]))
    return replace(task, parts=tuple(parts), earliest=_earliest(free, task, parts, latest))


def _earliest(free: Free, task: Task, parts: Sequence[Part], latest: int) -> int:
    """Return a second before which a task cannot start beside what is taken: exact if it has one kind of chunks.

    Beyond `latest` if it fits nowhere before.
    """
    if task.is_running or any(len(mode.spans) > 1 for mode in task.modes):
        return task.earliest
    found = []
    for number, mode in enumerate(task.modes):
        first = task.earliest
        for part in parts:
            if part.mode == number and first <= latest:
                first = first_fit(free, part, first, latest, mode.least)
        found.append(first)
    return min(found)


def first_fit(free: Free, part: Part, earliest: int, latest: int, seconds: int) -> int:
    """Return the first second from which all units of a part fit for so long; after `latest` if there is none."""
    if not part.alternatives:
        return latest + 1
    times = free.times
    begin = int(np.searchsorted(times, earliest, side="right")) - 1
    until = int(np.searchsorted(times, latest + seconds))
    units = free.units(part.alternatives, [alternative.takes[0] for alternative in part.alternatives], (begin, until))
    starts = np.maximum(times[begin:until], earliest)
    lasts = np.searchsorted(times, starts + seconds) - begin
    for number in np.flatnonzero(units.sum(axis=0) >= part.need).tolist():
        start = int(starts[number])
        if start > latest:
            break
        if units[:, number : int(lasts[number])].min(axis=1).sum() >= part.need:
            return start
    return latest + 1


def _where_possible(free: Free, task: Task) -> Task:
    """Return a task without the sites on which it can never be."""
    if task.is_running:
        return task
    parts = []
    for part in task.parts:
        mode = task.modes[part.mode]
        until = min(task.end_by, task.latest + mode.most)
        first = int(np.searchsorted(free.times, task.earliest, side="right")) - 1
        last = int(np.searchsorted(free.times, until))
        possible = np.array([alternative.most for alternative in part.alternatives], np.int64)
        for segment in range(len(part.units)):
            takes = [alternative.takes[segment] for alternative in part.alternatives]
            units = free.units(part.alternatives, takes, (first, last))
            np.minimum(possible, units.max(axis=1, initial=0), out=possible)
        kept = tuple(
            Alternative(a.site, n, a.takes) for a, n in zip(part.alternatives, possible.tolist(), strict=True) if n > 0
        )
        parts.append(Part(part.units, part.need, kept, part.mode, part.first, part.last))
    return replace(task, parts=tuple(parts))


def _least(costs: TaskCosts, number: int, earliest: int) -> int:
    """Return the least cost of a task that starts no earlier than a second."""
    of_mode = min(
        mode.fixed + sum(rate.weight * max(0, earliest - rate.kink) for rate in mode.rates)
        for mode in costs.modes[number]
    )
    return of_mode + sum(rate.weight * max(0, earliest - rate.kink) for rate in costs.rates[number])


def _latest(rates: Sequence[Rate], task: Task, most: int) -> int:
    """Return the last start of a task at which its start alone costs no more than a number."""
    last, cost, slope, kink = task.latest, 0, 0, 0
    for rate in sorted(rates, key=lambda rate: rate.kink):
        if slope and cost + slope * (rate.kink - kink) > most:
            break
        cost, slope, kink = cost + slope * (rate.kink - kink), slope + rate.weight, rate.kink
    return last if not slope else min(last, kink + (most - cost) // slope)


def _sites(
    occupation: Occupation, free: Free, sites: Sequence[int], parts: Sequence[Task], within: tuple[int, int]
) -> tuple[Site, ...]:
    """Return the sites, with what is taken of them in an interval as far as it matters to these tasks."""
    wanted = _wanted(occupation, sites, parts)
    found = []
    for row, site in enumerate(sites):
        known = occupation.encoding.sites[site]
        pools = {
            column: Pool(
                pool.capacity,
                free.holds(column, row, pool.capacity, within, wanted[row, column]) if (row, column) in wanted else (),
            )
            for column, pool in known.pools.items()
        }
        found.append(replace(known, pools=pools))
    return tuple(found)


def _wanted(
    occupation: Occupation, sites: Sequence[int], parts: Sequence[Task]
) -> Mapping[tuple[int, Column], tuple[int, int]]:
    """Return by site (its place) and column the least amount that something takes there, and the most that all tasks
    together can take.
    """
    found: dict[tuple[int, Column], tuple[int, int]] = {}
    for task in parts:
        for part in task.parts:
            for alternative in part.alternatives:
                pools = occupation.encoding.sites[sites[alternative.site]].pools
                amounts: dict[Column, list[int]] = {}
                for takes in alternative.takes:
                    for column, amount in takes.items():
                        amounts.setdefault(column, []).append(amount)
                if task.is_exclusive:
                    amounts = {column: [pool.capacity] for column, pool in pools.items()}
                for column, of_column in amounts.items():
                    least, most = found.get((alternative.site, column), (of_column[0], 0))
                    most += alternative.most * max(of_column)
                    found[alternative.site, column] = min(least, *of_column), most
    return found


def _licences(occupation: Occupation, tasks: Sequence[int], parts: Sequence[Task], until: int) -> dict[str, Pool]:
    """Return the licences that these tasks use, with what the others take."""
    used = {name for task in parts for mode in range(len(task.modes)) for name in task.job.licenses_of(mode)}
    if not used:
        return {}
    holds: defaultdict[str, list[Hold]] = defaultdict(list)
    for name, hold in occupation.licences_beside(tasks):
        holds[name].append(hold)
    found = {}
    for name, pool in occupation.encoding.licenses.items():
        if name in used:
            found[name] = pool_of(pool.capacity, [*pool.holds, *holds[name]], until)
    return found


def _milestones_among(occupation: Occupation, tasks: Sequence[int]) -> tuple[Milestone, ...]:
    """Return the milestones between these tasks."""
    place = {number: at for at, number in enumerate(tasks)}
    known = dict.fromkeys(milestone for number in tasks for milestone, _ in occupation.waits_of(number))
    found = (occupation.encoding.milestones[milestone].among(place) for milestone in known)
    return tuple(milestone for milestone in found if milestone.before)


def _costs(costs: TaskCosts, tasks: Sequence[int], parts: Sequence[Task]) -> TaskCosts:
    """Return the costs of these tasks: rates that no start reaches are left out."""

    def reached(rates: Iterable[Rate], task: Task) -> tuple[Rate, ...]:
        return tuple(rate for rate in rates if rate.kink < task.latest)

    return replace(
        costs,
        rates=tuple(reached(costs.rates[number], task) for number, task in zip(tasks, parts, strict=True)),
        modes=tuple(
            tuple(replace(one, rates=reached(one.rates, task)) if one.rates else one for one in costs.modes[number])
            for number, task in zip(tasks, parts, strict=True)
        ),
        places=(0,) * len(tasks),
        ends={at: costs.ends[number] for at, number in enumerate(tasks) if number in costs.ends},
    )
