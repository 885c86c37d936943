"""The best plan of a tiny window with every rule of a site, found by trying everything.

First comes the greatest number of reservations that can be had, then the greatest number of planned jobs, then the
least value of the objective. Starts need not be tried at every second. Take a best plan whose starts add up to the
least, with the same nodes. No start in it can be one second earlier with all others as they are, for no term of the
objective falls when a start grows. So what forbids that second ends exactly at the start: the time of another job or of
a reservation, a time at which a rule holds (or one at which a limit of its own lets ``*`` rest), the wait for another
job, or the job's own earliest start. Jobs that are placed in order of their starts therefore start at one of
`Window.events`, all of which are known by then: another job that ends at the start began before it, for no job takes
0 seconds. A rule with a calendar never ends, but it repeats itself: no job starts more than one period after everything
else has ended, or else it could start one period earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import inf

from tests.oracle.literal_rules import Booked, Document, LiteralRules, held_by

__all__ = ["Best", "TooLargeError", "Window"]

#: Places for a job that are tried before the search gives up.
BUDGET = 20_000


class TooLargeError(Exception):
    """There was too much to try."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best plan: slices, and the jobs that are planned; how many jobs it has, and its value."""

    slices: tuple[Booked, ...]
    jobs: tuple[Booked, ...]
    value: float

    @property
    def ids(self) -> frozenset[str]:
        """The jobs that it plans."""
        return frozenset(booked.id for booked in self.jobs)


class Window(LiteralRules):
    """An instance whose best plan is looked for; mutable: it counts what it tries.

    Parameters
    ----------
    document
        The instance, as JSON gives it.
    budget
        How many places for a job may be tried.
    """

    def __init__(self, document: Document, budget: int = BUDGET) -> None:
        super().__init__(document)
        self.budget, self.tried = budget, 0

    def layouts(self, entry: Document) -> list[tuple[tuple[str, int, int], ...]]:
        """List every way to lay the chunks of a job or a reservation on nodes."""
        found = []
        for ways in product(*(list(_parted(list(self.nodes), chunk["count"])) for chunk in entry["request"])):
            found.append(tuple((node, kind, count) for kind, way in enumerate(ways) for node, count in way))
        return found

    def best(self) -> Best:
        """Return the best plan.

        Raises
        ------
        TooLargeError
            If more than `budget` places for a job had to be tried.
        """
        found: Best | None = None
        for slices in self.most_slices():
            best = self.best_beside(slices, found)
            if found is None or (len(best.jobs), -best.value) > (len(found.jobs), -found.value):
                found = best
        assert found is not None
        return found

    def most_slices(self) -> list[tuple[Booked, ...]]:
        """List all that reservations can have, of those with most reservations."""
        found: list[tuple[Booked, ...]] = []
        for names in _largest_first(list(self.reservations)):
            if found and len(found[0]) > len(names):
                break
            found += self._slices(names)
        return found

    def forgotten(self, slices: Sequence[Booked]) -> list[str]:
        """List the reservations that could be had beside running jobs and some slices."""
        fixed = [*self.running, *slices]
        left = [name for name in self.reservations if all(name != one.id for one in slices)]
        places = {name: [self.slice_of(name, one) for one in self.layouts(self.reservations[name])] for name in left}
        return [name for name in left if any(not [*self.objections(one, fixed)] for one in places[name])]

    def least(self, ids: frozenset[str]) -> float:
        """Return the least value of a plan of exactly these jobs, wherever its reservations are; else infinity.

        Raises
        ------
        TooLargeError
            If more than `budget` places for a job had to be tried.
        """
        return min(self.best_beside(slices, only=ids).value for slices in self.most_slices())

    def _slices(self, names: Sequence[str]) -> Iterator[tuple[Booked, ...]]:
        """Yield all that some reservations can have together, of like nodes only the first."""
        seen = set()
        choices = [[self.slice_of(name, layout) for layout in self.layouts(self.reservations[name])] for name in names]
        for slices in product(*choices):
            self._count()
            key = self._likeness(slices)
            if key not in seen and not self.faults(slices, ()):
                yield slices
            seen.add(key)

    def _likeness(self, booked: Sequence[Booked]) -> object:
        """Return a key that is the same for plans that differ only in which of like nodes they use."""
        on: dict[str, list[object]] = {name: [] for name in self.nodes}
        for one in (*self.running, *booked):
            for node, held in one.held.items():
                kinds = tuple(sorted((kind, count) for there, kind, count in one.chunks if there == node))
                on[node].append((one.id, one.start, kinds, tuple(sorted(held.items()))))
        pools = [pool["nodes"].split(",") for pool in self.pools if "nodes" in pool]
        return tuple(
            sorted(
                repr(
                    (
                        id(self.nodes[node]),
                        self.groups_of(node),
                        [node in pool for pool in pools],
                        sorted(map(repr, uses)),
                    )
                )
                for node, uses in on.items()
            )
        )

    def best_beside(
        self, slices: Sequence[Booked], known: Best | None = None, only: frozenset[str] | None = None
    ) -> Best:
        """Return the best plan beside given slices; `known` need not be found again, `only` are the jobs to be planned.

        With `only`, the plan has exactly these jobs; if they cannot all be planned the value is infinite.
        """
        fixed = [*self.running, *slices]
        least = dict[str, int]()
        for name in self.waiting if only is None else sorted(only):
            start = self._alone(name, fixed)
            if start is not None:
                least[name] = start
        best = Best(tuple(slices), (), 0.0 if not only else inf)
        if only is not None:
            subsets: list[tuple[str, ...]] = [tuple(sorted(only))] if only <= least.keys() else []
        else:
            subsets = [names for names in _largest_first(list(least)) if self._is_closed(names)]
        for names in subsets:
            if only is None and (len(names) < len(best.jobs) or (known is not None and len(names) < len(known.jobs))):
                break
            bar = best.value if len(best.jobs) == len(names) and (names or only is None) else inf
            if known is not None and len(known.jobs) == len(names):
                bar = min(bar, known.value)
            found = _Search(self, fixed, names, least, bar).run()
            if found is not None:
                best = Best(tuple(slices), found, self.value(found))
        return best

    def _is_closed(self, names: Sequence[str]) -> bool:
        """Return whether the jobs that these wait for are among them, or run."""
        awaited = {
            one for name in names for wait in self.jobs[name].get("after", []) for one in self.members[wait["job"]]
        }
        return awaited <= {*names, *(one.id for one in self.running)}

    def _alone(self, name: str, fixed: Sequence[Booked]) -> int | None:
        """Return the earliest start of a job if no other job waited, its dependencies apart; None if it has none."""
        job = {key: value for key, value in self.jobs[name].items() if key != "after"}
        for start in self.events(job, fixed):
            for layout in self.layouts(job):
                self._count()
                booked = Booked(name, job, start, start + job["walltime"], layout, held_by(job, layout))
                if next(self.objections(booked, fixed), None) is None:
                    return start
        return None

    def events(self, job: Document, others: Sequence[Booked], since: int | None = None) -> list[int]:
        """List the seconds at which a job can start in a best plan whose starts add up to the least, ascending."""
        first = self.earliest(job) if since is None else max(since, self.earliest(job))
        first = max(first, self.now) if (ready := self.ready(job, others)) == -inf else max(first, ready)  # type: ignore[assignment]  # -inf stands for no second
        if first == inf:
            return []
        times = {self.earliest(job), first, *self.borders, *(one.end for one in others)}
        return sorted(time for time in times if first <= time <= min(self.latest(job), self.horizon))

    def _count(self) -> None:
        self.tried += 1
        if self.tried > self.budget:
            raise TooLargeError


class _Search:
    """Adds jobs in order of their starts, in all ways; a branch ends where it cannot be below the bar. Mutable."""

    def __init__(
        self, window: Window, fixed: Sequence[Booked], names: Sequence[str], least: dict[str, int], bar: float
    ) -> None:
        self.window, self.fixed, self.least, self.bar = window, list(fixed), least, bar
        order: list[str] = []
        while len(order) < len(names):  # those that are waited for first: at equal starts they are placed first
            for name in names:
                waits = window.jobs[name].get("after", [])
                awaited = {one for wait in waits for one in window.members[wait["job"]]} & set(names)
                if name not in order and awaited <= set(order):
                    order.append(name)
        self.rank = {name: place for place, name in enumerate(order)}
        self.layouts = {name: window.layouts(window.jobs[name]) for name in names}
        self.found: tuple[Booked, ...] | None = None

    def run(self) -> tuple[Booked, ...] | None:
        """Return the best plan of all of the jobs that is below the bar, or None."""
        self._extend([], 0.0, (-(10**18), -1))
        return self.found

    def _extend(self, placed: list[Booked], cost: float, last: tuple[int, int]) -> None:
        window = self.window
        left = [name for name in self.rank if all(name != one.id for one in placed)]
        if not left:
            value = window.value(placed)
            if value < self.bar - 1e-9 * max(1.0, abs(value)):
                self.bar, self.found = value, tuple(placed)
            return
        since = max(window.now, last[0])
        if any(since > window.latest(window.jobs[name]) for name in left):
            return
        others = [*self.fixed, *placed]
        events = sorted(
            (start, self.rank[name], name) for name in left for start in window.events(window.jobs[name], others, since)
        )
        for start, rank, name in events:
            if (start, rank) <= last:
                continue
            rest = {one: max(start, self.least[one]) for one in left}
            bound = cost + sum(window.cost(window.jobs[one], time) for one, time in rest.items())
            ends = [one.end for one in placed] + [time + window.jobs[one]["walltime"] for one, time in rest.items()]
            if bound + window.makespan(ends) >= self.bar - 1e-9 * max(1.0, abs(self.bar)):
                return  # later ones cost no less
            if start < self.least[name]:
                continue
            seen = set()
            for layout in self.layouts[name]:
                window._count()
                booked = window.booked(name, start, layout)
                if next(window.objections(booked, others), None) is not None:
                    continue
                key = window._likeness([*self.fixed[len(window.running) :], *placed, booked])
                if key in seen:
                    continue
                seen.add(key)
                # to what the new job breaks it takes part in, so that it objects itself
                self._extend([*placed, booked], cost + window.cost(booked.job, start), (start, rank))


def _largest_first(names: Sequence[str]) -> list[tuple[str, ...]]:
    """List all subsets, those of most first."""
    return [subset for size in range(len(names), -1, -1) for subset in combinations(names, size)]


def _parted(nodes: Sequence[str], count: int) -> Iterator[list[tuple[str, int]]]:
    """Yield every way to part some chunks among nodes."""
    for counts in product(range(count + 1), repeat=len(nodes)):
        if sum(counts) == count:
            yield [(node, here) for node, here in zip(nodes, counts, strict=True) if here]
