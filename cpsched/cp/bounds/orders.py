"""`best_order`: the optimum of a relaxation of few jobs, found by trying the orders in which they can start.

*Proof* that orders are enough. Take any schedule of the relaxation, and place its jobs one after another in the order
of their starts, each as early as it fits beside those before it, and not before the last of these starts. By induction
no job starts later than in the schedule: those before it start no later, so from its old start on they take no more. No
start costs less than an earlier one, so some best schedule is among those that are placed so.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cpsched.cp.bounds.bound import Bound, fits, waiting_jobs
from cpsched.cp.bounds.costs import least_cost, round_down, sum_down
from cpsched.cp.bounds.tasks import Relaxation, earliest_starts, relax, with_least_running
from cpsched.domain import Instance, ObjectiveTerm
from cpsched.engine import Budget
from cpsched.metrics import least_running_cost

#: The most jobs of a window whose orders are tried, and the most of their beginnings: a second of processor time.
MOST_JOBS, _MOST_TRIED = 10, 3000
#: The most surrogates of the relaxation.
_MOST_VECTORS = 64
#: Seconds for the earliest starts of so few jobs, far more than they take.
_ENOUGH = 60.0


@dataclass(frozen=True, slots=True)
class Order:
    """An optimum of the relaxation."""

    bound: Bound
    #: The ids of the jobs, in the order of their starts.
    jobs: tuple[str, ...]


def best_order(instance: Instance, jobs: Collection[str]) -> Order | None:
    """Return what no plan of some rigid jobs can undercut, and in which order they start then.

    None where there are too many jobs or too many orders, where a job can change while it runs or has alternatives, or
    where the objective pays for delay. The answer does not depend on the clock.

    `jobs`: ids of waiting jobs, as `lower_bound` has them.
    """
    if not 0 < len(jobs) <= MOST_JOBS or any(weight < 0 for weight in instance.objective.weights.values()):
        return None
    chosen = waiting_jobs(instance, jobs)
    if any(job.changes or job.alternatives for job in chosen):
        return None
    eased = with_least_running(instance)
    starts = earliest_starts(eased, chosen, Budget(_ENOUGH))
    relaxation = relax(eased, chosen, starts, most_vectors=_MOST_VECTORS)
    if not fits(relaxation):
        return None
    search = _Search(relaxation, Fraction(instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0)))
    search.extend([], 0)
    if search.best is None or search.tried > _MOST_TRIED:
        return None
    base = sum_down(least_cost(instance, job, start).value for job, start in zip(chosen, starts, strict=True))
    value = round_down(base + Fraction(search.least, search.scale) + least_running_cost(instance))
    members = [list(places) for places in relaxation.members]
    order = tuple(chosen[members[group].pop(0)].id for group in search.best)
    return Order(Bound(value, f"all orders of {len(chosen)} jobs on aggregated resources"), order)


@dataclass(frozen=True, slots=True)
class _Group:
    """Equal jobs; times in seconds from now, costs in whole numbers."""

    earliest: int
    latest: int
    duration: int
    #: What one of them takes of each surrogate.
    usage: tuple[int, ...]
    #: (second, cost of each later second of start).
    rates: tuple[tuple[int, int], ...]

    def cost(self, start: int) -> int:
        """Return the cost of a start beyond that of the earliest one."""
        return sum(rate * max(0, start - max(kink, self.earliest)) for kink, rate in self.rates)


#: A placed job: its start, its end, and its group.
_Placed = tuple[int, int, int]


class _Search:
    """All orders, the most promising beginnings first; mutable."""

    def __init__(self, relaxation: Relaxation, makespan: Fraction) -> None:
        tasks = relaxation.tasks
        rates = [rate for of_group in tasks.rates for rate in of_group]
        #: Costs are whole numbers of this part of the objective's unit.
        self.scale = math.lcm(makespan.denominator, *(rate.denominator for rate in rates))
        self._makespan = int(makespan * self.scale)
        everyone = tasks.counts @ tasks.usage[tasks.kinds]
        # the others cannot be overloaded
        scarce = [row for row, one in enumerate(relaxation.profiles) if everyone[row] > one.amounts[0]]
        self._profiles = [
            (relaxation.profiles[row].times.tolist(), relaxation.profiles[row].amounts.tolist()) for row in scarce
        ]
        self._groups = [
            _Group(
                earliest=int(tasks.earliest[group]),
                latest=int(tasks.latest[group]),
                duration=int(tasks.durations[group]),
                usage=tuple(int(tasks.usage[tasks.kinds[group], row]) for row in scarce),
                rates=tuple(
                    (int(kink), int(rate * self.scale))
                    for kink, rate in zip(tasks.kinks[group], tasks.rates[group], strict=True)
                ),
            )
            for group in range(len(tasks.counts))
        ]
        self._left = [int(count) for count in tasks.counts]
        #: The least cost so far, the groups in the order of their starts, and the beginnings that were tried.
        self.least = 0
        self.best: tuple[int, ...] | None = None
        self.tried = 0

    def extend(self, placed: list[_Placed], cost: int) -> None:
        """Try all ways to place the jobs that are left after some that cost so much."""
        self.tried += 1
        if self.tried > _MOST_TRIED:
            return
        last = placed[-1][0] if placed else 0
        firsts: list[tuple[int, int, int]] = []
        bound, end = cost, max((end for _, end, _ in placed), default=0)
        for number, group in enumerate(self._groups):
            if not self._left[number]:
                continue
            start = self._fit(group, placed, max(group.earliest, last))
            if start is None:
                return
            own = group.cost(start)
            bound += own * self._left[number]
            end = max(end, start + group.duration)
            firsts.append((start, own, number))
        bound += self._makespan * end
        if self.best is not None and bound >= self.least:
            return
        if not firsts:
            self.least, self.best = bound, tuple(number for *_, number in placed)
            return
        for start, own, number in sorted(firsts):
            self._left[number] -= 1
            extended = [*placed, (start, start + self._groups[number].duration, number)]
            self.extend(extended, cost + own)
            self._left[number] += 1

    def _fit(self, group: _Group, placed: Sequence[_Placed], since: int) -> int | None:
        """Return the first start from a second on; None: there is none in time.

        What is taken shrinks only when a job ends, and capacities never do: nothing changes for the better in between.
        No placed job starts later, so a start at which there is room is one.
        """
        changes = {end for _, end, _ in placed}.union(*(times for times, _ in self._profiles))
        for start in (since, *sorted(one for one in changes if one > since)):
            if start > group.latest:
                return None
            if self._has_room(group, placed, start):
                return start
        return None

    def _has_room(self, group: _Group, placed: Sequence[_Placed], start: int) -> bool:
        """Return whether there is room for a job beside those that run at its start."""
        beside = [self._groups[number].usage for _, end, number in placed if end > start]
        for row, (times, amounts) in enumerate(self._profiles):
            if not (own := group.usage[row]):
                continue
            piece = max(place for place, time in enumerate(times) if time <= start)
            if own + sum(usage[row] for usage in beside) > amounts[piece]:
                return False
        return True
