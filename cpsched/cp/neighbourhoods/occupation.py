"""A plan as large-neighbourhood search changes it: where each task is, and what is free beside some of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.encoding import Alternative, Encoding, Part, Task
from cpsched.cp.neighbourhoods.positions import Positions, Use
from cpsched.cp.solution import Placed
from cpsched.problem import Column, Hold, by_job


class Free(NamedTuple):
    """The amounts of some sites that are free, as a step function of time."""

    #: Seconds from now at which an amount changes, ascending; the first is 0. Shape (T,).
    times: NDArray[np.int64]
    #: By column: the free amount of each site from each time on, shape (sites, T); -1 where a site has no such column.
    amounts: Mapping[Column, NDArray[np.int64]]

    def holds(
        self, column: Column, place: int, capacity: int, within: tuple[int, int], wanted: tuple[int, int]
    ) -> tuple[Hold, ...]:
        """Return the taken amounts of a column of a site as holds without overlap, as far as they matter.

        `within`: nothing can be there but in these seconds. `wanted`: the least that anything takes, and all that can
        be taken together: where less is free than the first, all is held; where the second is free, nothing is.
        """
        since, until = within
        first, last = int(np.searchsorted(self.times, since, side="right")) - 1, int(np.searchsorted(self.times, until))
        free = self.amounts[column][place, first:last]
        taken = np.minimum(capacity - free, capacity)
        taken = np.where(free < wanted[0], capacity, np.where(free >= wanted[1], 0, taken))
        changes = [0, *(np.flatnonzero(taken[1:] != taken[:-1]) + 1).tolist()]
        starts = [since, *self.times[first:last][changes[1:]].tolist(), until]
        return tuple(
            Hold(start, end, amount)
            for start, end, amount in zip(starts, starts[1:], taken[changes].tolist(), strict=False)
            if amount > 0
        )

    def units(
        self, alternatives: Sequence[Alternative], takes: Sequence[Mapping[Column, int]], within: tuple[int, int]
    ) -> NDArray[np.int64]:
        """Return how many units are possible on sites, never below 0: shape (alternatives, `within`).

        `alternatives`: the sites, each by its place among these sites. `takes`: the amounts that a unit takes on each.
        `within`: the first of `times` that is looked at, and that after the last one.
        """
        first, last = within
        found = np.empty((len(alternatives), last - first), np.int64)
        found[:] = np.array([alternative.most for alternative in alternatives], np.int64)[:, np.newaxis]
        rows: dict[tuple[Column, int], list[int]] = {}
        for row, amounts in enumerate(takes):
            for of_column in amounts.items():
                rows.setdefault(of_column, []).append(row)
        for (column, amount), of_rows in rows.items():
            sites = [alternatives[row].site for row in of_rows]
            possible = self.amounts[column][sites, first:last]
            if amount > 1:
                possible //= amount
            found[of_rows] = np.minimum(found[of_rows], possible)
        return np.maximum(found, 0, out=found)


class Occupation:
    """The present plan; mutable.

    `encoding`: the window; waiting tasks have one alternative for each class of nodes. `positions`: the tasks of the
    plan.
    """

    def __init__(self, encoding: Encoding, positions: Positions) -> None:
        self.encoding = encoding
        self.placed: list[Placed | None] = [None] * len(encoding.tasks)
        groups: dict[int, list[int]] = {}
        for number, site in enumerate(encoding.sites):
            groups.setdefault(site.group, []).append(number)
        #: The sites of each class.
        self.groups = {group: tuple(members) for group, members in groups.items()}
        #: The tasks on each site.
        self.on_site: list[set[int]] = [set() for _ in encoding.sites]
        count = len(encoding.tasks)
        #: Whether something of each task is on each site: shape (sites, tasks).
        self.is_on = np.zeros((len(encoding.sites), count), bool)
        #: By task: the cost of a second of delay in the long run.
        self.prices = np.array([float(sum(rate.weight for rate in rates)) for rates in encoding.costs.rates])
        #: By task: seconds from now (-1: no start), and the cost in whole numbers.
        self.starts = np.full(count, -1, np.int64)
        self.ends = np.full(count, -1, np.int64)
        self.costs = np.zeros(count, np.float64)
        self._is_running = np.array([task.is_running for task in encoding.tasks], bool)
        self._admitted: dict[int, tuple[int, ...]] = {}
        #: By milestone: (tasks, 2) of (task, seconds) and of (task, delay).
        self.before = [np.array(one.before, np.int64) for one in encoding.milestones]
        self.after = [np.array(one.after, np.int64) for one in encoding.milestones]
        self._waits = by_job(one.after for one in encoding.milestones)
        self._leads = by_job(one.before for one in encoding.milestones)
        self._uses: list[Mapping[int, tuple[Use, ...]]] = [{} for _ in encoding.tasks]
        self.begin(positions)

    def begin(self, positions: Positions) -> None:
        """Begin from a plan."""
        for number, one in enumerate(positions.placed):
            self.put(number, one)
        for number, alien in positions.aliens.items():
            self.starts[number], self.ends[number] = alien.start, alien.end
            self._uses[number] = alien.uses
            for site in alien.uses:
                self.on_site[site].add(number)
                self.is_on[site, number] = True

    def put(self, number: int, placed: Placed | None) -> None:
        """Give a task another place, or none."""
        for site in self._uses[number]:
            self.on_site[site].discard(number)
            self.is_on[site, number] = False
        self.placed[number] = placed
        if placed is None:
            self._uses[number], self.costs[number] = {}, 0.0
            self.starts[number] = self.ends[number] = -1
            return
        self._uses[number] = self._uses_of(number, placed)
        self.starts[number], self.ends[number] = placed.start, placed.end
        self.costs[number] = self.encoding.costs.cost_of(number, placed, self.encoding.tasks[number])
        for site in self._uses[number]:
            self.on_site[site].add(number)
            self.is_on[site, number] = True

    @property
    def num_lost(self) -> int:
        """The number of tasks without a start."""
        return int((self.starts < 0).sum())

    @property
    def cost(self) -> float:
        """What the plan costs, in whole numbers."""
        makespan = self.encoding.costs.makespan
        return float(self.costs.sum()) + (makespan * self.end_beside(()) if makespan else 0)

    def is_placed(self, number: int) -> bool:
        """Return whether a task has a start."""
        return bool(self.starts[number] >= 0)

    def waits_of(self, number: int) -> Sequence[tuple[int, int]]:
        """Return the milestones for which a task waits, each with the delay after it."""
        return self._waits.get(number, ())

    def leads_of(self, number: int) -> Sequence[tuple[int, int]]:
        """Return the milestones that wait for a task, each with the seconds after its start."""
        return self._leads.get(number, ())

    def awaited(self, number: int) -> list[int]:
        """Return the tasks for which a task waits."""
        return [task for milestone, _ in self.waits_of(number) for task in self.before[milestone][:, 0].tolist()]

    def sites_of(self, number: int) -> Iterable[int]:
        """Return the sites of a task."""
        return self._uses[number].keys()

    def alternatives(self, part: Part, number: int, site: int) -> Alternative | None:
        """Return a site as an alternative of a part; None if it is none."""
        group = self.encoding.sites[site].group
        is_bound = self.encoding.tasks[number].is_running
        for alternative in part.alternatives:
            if alternative.site == site or (not is_bound and self.encoding.sites[alternative.site].group == group):
                return alternative
        return None

    def admitted(self, number: int) -> tuple[int, ...]:
        """Return the sites on which something of a task can be."""
        if number not in self._admitted:
            self._admitted[number] = tuple(self._sites_for(self.encoding.tasks[number]))
        return self._admitted[number]

    def _sites_for(self, task: Task) -> Iterable[int]:
        """Return the sites on which something of a task can be, each once."""
        places = dict.fromkeys(alternative.site for part in task.parts for alternative in part.alternatives)
        if task.is_running:
            return places
        groups = dict.fromkeys(self.encoding.sites[site].group for site in places)
        return (site for group in groups for site in self.groups[group])

    def free_beside(self, sites: Sequence[int], tasks: Iterable[int]) -> Free:
        """Return the amounts of some sites that are free if some tasks have no place."""
        left_out = set(tasks)
        uses = [
            [use for number in self.on_site[site] if number not in left_out for use in self._uses[number][site]]
            for site in sites
        ]
        pools = [self.encoding.sites[site].pools for site in sites]
        borders = {0}
        for of_site, of_pools in zip(uses, pools, strict=True):
            borders.update(border for use in of_site for border in (use.start, use.end))
            borders.update(
                border for pool in of_pools.values() for hold in pool.holds for border in (hold.start, hold.end)
            )
        ordered = sorted(borders)
        place = {time: number for number, time in enumerate(ordered)}
        columns = dict.fromkeys(column for of_pools in pools for column in of_pools)
        changes = {column: np.zeros((len(sites), len(ordered)), np.int64) for column in columns}
        for column, of_column in changes.items():
            of_column[:, 0] = [of_pools[column].capacity if column in of_pools else -1 for of_pools in pools]
        for row, (of_site, of_pools) in enumerate(zip(uses, pools, strict=True)):
            for column, pool in of_pools.items():
                of_row = changes[column][row]
                for hold in pool.holds:
                    of_row[place[hold.start]] -= hold.amount
                    of_row[place[hold.end]] += hold.amount
            for start, end, takes in of_site:
                first, last = place[start], place[end]
                for column, amount in takes.items():
                    changes[column][row, first] -= amount
                    changes[column][row, last] += amount
        return Free(np.array(ordered, np.int64), {column: c.cumsum(axis=1) for column, c in changes.items()})

    def licences_beside(self, tasks: Iterable[int]) -> Iterator[tuple[str, Hold]]:
        """Yield the licences that all but some tasks take."""
        left_out = set(tasks)
        for number, (task, placed) in enumerate(zip(self.encoding.tasks, self.placed, strict=True)):
            if placed is not None and number not in left_out:
                for name, amount in task.job.licenses_of(placed.mode).items():
                    yield name, Hold(int(self.starts[number]), int(self.ends[number]), amount)

    def nodes_beside(self, tasks: Iterable[int]) -> Iterator[Hold]:
        """Yield the numbers of nodes that all but some tasks take, where only numbers of nodes count."""
        left_out = set(tasks)
        for number, (task, placed) in enumerate(zip(self.encoding.tasks, self.placed, strict=True)):
            if placed is not None and number not in left_out:
                requests = task.modes[placed.mode].requests
                for start, end, request in zip(placed.times, placed.times[1:], requests, strict=False):
                    yield Hold(start, end, sum(chunk.count for chunk in request.chunks))

    def end_beside(self, tasks: Iterable[int]) -> int:
        """Return the second by which all but some waiting tasks have ended."""
        ends = np.where(self._is_running, 0, self.ends)
        ends[list(tasks)] = 0
        return int(max(0, ends.max(initial=0)))

    def _uses_of(self, number: int, placed: Placed) -> dict[int, tuple[Use, ...]]:
        """Return the amounts that a task takes of each of its sites."""
        task = self.encoding.tasks[number]
        uses: dict[int, list[Use]] = {}
        for place, site, count in placed.counts:
            part = task.parts[place]
            alternative = self.alternatives(part, number, site)
            assert alternative is not None  # noqa: S101 - it is one of its places
            for first, last, takes in part.runs(alternative):
                start, end = placed.times[first], placed.times[last + 1]
                if task.is_exclusive:
                    whole = {column: pool.capacity for column, pool in self.encoding.sites[site].pools.items()}
                    if all((use.start, use.end) != (start, end) for use in uses.get(site, ())):
                        uses.setdefault(site, []).append(Use(start, end, whole))
                else:
                    together = {column: amount * count for column, amount in takes.items()}
                    uses.setdefault(site, []).append(Use(start, end, together))
        return {site: tuple(of_site) for site, of_site in uses.items()}
