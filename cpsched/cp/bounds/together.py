"""How long the plan must last at least: no more jobs run together than fit.

Give each job j any size y_j >= 0 as long as it runs. On a surrogate, the jobs that run at a second t are a set that
fits in its capacity there, of jobs that may have started: they measure together no more than the best such set, z(t).
So the sum of y_j d_j is no more than the integral of z up to the end of the last job. A surrogate itself is one such
measure, each job by what it takes. Others know that of jobs of more than a half of the machine no two run together,
of more than a third no three (`measured`), and that a job is there only once.

The best sizes are the dual of a linear program: the shortest time in which sets of jobs, each for some seconds, work
off all jobs, which may be interrupted (Mingozzi, Maniezzo, Ricciardelli and Bianco 1998). The sets are generated as
they are needed, by a knapsack. Whatever comes out, its proof is one more knapsack, in whole numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.bounds.surrogates import WHOLE, Ints, Profile
from cpsched.cp.bounds.tasks import Relaxation, Tasks

#: The most levels in which a capacity is counted; more are counted in parts of it, a job rounded down.
_MOST_LEVELS = 1000
#: The most intervals of the linear program, and of the proof.
_INTERVALS, _PROOF_INTERVALS = 12, 200
#: The surrogates, of which the jobs need most, on which that is done; the most groups of jobs, and of rounds.
_MOST_ROWS, _MOST_GROUPS, _MOST_ROUNDS = 2, 400, 500
#: What a set of jobs measures above what is known of all sets, so that it is new.
_MORE = 1e-7


def longest_together(relaxation: Relaxation, least: int, *, is_over: Callable[[int], bool]) -> int:
    """Return seconds from now before which not all tasks can have ended, by the sets of jobs that fit together.

    `least`: seconds before which they cannot have ended, as far as is known. `is_over`: called with the number of
    rounds so far; returns whether to stop.
    """
    tasks, rounds = relaxation.tasks, 0
    if len(tasks.counts) > _MOST_GROUPS:
        return least
    needed = (tasks.durations * tasks.counts).astype(np.float64) @ tasks.usage[tasks.kinds, : relaxation.num_plain]
    capacity = np.array([max(1, int(profile.amounts[-1])) for profile in relaxation.profiles[: relaxation.num_plain]])
    known = set[bytes]()
    for row in np.argsort(-needed / capacity, kind="stable")[:_MOST_ROWS].tolist():
        on_row = _OnRow.of(tasks, relaxation.profiles[row], row)
        if on_row is not None and not is_over(rounds) and on_row.usage.tobytes() not in known:
            known.add(on_row.usage.tobytes())
            sizes, rounds = _best_sizes(on_row, least, rounds, is_over)
            least = max(least, on_row.proven(sizes, least))
    return least


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Intervals of time, the last of which has no end."""

    #: When they begin, the first one at 0.
    begins: Ints
    #: The number of groups that can start in each, or before it; and its largest capacity.
    groups: Ints
    amounts: Ints


@dataclass(frozen=True, slots=True)
class _OnRow:
    """The groups of jobs that take some of one surrogate, in the order of their earliest starts."""

    usage: Ints
    counts: Ints
    durations: Ints
    earliest: Ints
    profile: Profile

    @classmethod
    def of(cls, tasks: Tasks, profile: Profile, row: int) -> "_OnRow | None":
        """Return the groups, and the profile, in a number of levels; None if no job takes any of the surrogate, or all
        of them fit together.
        """
        usage, most = tasks.usage[tasks.kinds, row], int(profile.amounts[-1])
        takes = np.flatnonzero((usage > 0) & (usage <= most))
        if int(usage[takes] @ tasks.counts[takes]) <= int(profile.amounts[0]):
            return None
        takes = takes[np.argsort(tasks.earliest[takes], kind="stable")]
        unit = gcd(*usage[takes].tolist(), *profile.amounts.tolist())
        levels = min(most // unit, _MOST_LEVELS)

        def counted(amounts: Ints) -> Ints:
            return amounts // unit if levels == most // unit else amounts * levels // most

        return cls(
            counted(usage[takes]),
            tasks.counts[takes],
            tasks.durations[takes],
            tasks.earliest[takes],
            Profile(profile.times, counted(profile.amounts)),
        )

    @property
    def seconds(self) -> Ints:
        """How long the jobs of each group run, added up."""
        return self.durations * self.counts

    def intervals(self, before: int, most: int) -> _Intervals:
        """Return intervals, at most so many, that begin when jobs can start or capacity grows, before a second."""
        points = np.unique(np.concatenate([[0], self.earliest, self.profile.times]))
        points = points[points < max(1, before)]
        if len(points) > most:
            points = np.unique(np.concatenate([[0], points[:: -(-len(points) // (most - 1))], points[-1:]]))
        groups = np.append(np.searchsorted(self.earliest, points[1:], side="left"), len(self.earliest))
        last = np.append(np.searchsorted(self.profile.times, points[1:], side="left"), len(self.profile.times)) - 1
        return _Intervals(points, groups, self.profile.amounts[last])

    def proven(self, sizes: Ints, least: int) -> int:
        """Return seconds before which not all jobs can have ended, by sizes in whole numbers.

        `least`: seconds before which they cannot have ended, as far as is known.
        """
        intervals = self.intervals(least, _PROOF_INTERVALS)
        most = self.knapsack(sizes).best_in(intervals)
        rest = sum(size * seconds for size, seconds in zip(sizes.tolist(), self.seconds.tolist(), strict=True))
        rest -= sum(best * width for best, width in zip(most[:-1], np.diff(intervals.begins).tolist(), strict=True))
        return int(intervals.begins[-1]) - (-rest // most[-1]) if most[-1] and rest > 0 else 0

    def knapsack(self, sizes: NDArray[np.generic]) -> "_Knapsack":
        """Return the best sets of jobs of such sizes."""
        return _Knapsack(self.usage, self.counts, sizes, int(self.profile.amounts[-1]))


class _Knapsack:
    """The best sets of the first groups of jobs, for each number of groups and each capacity."""

    def __init__(self, usage: Ints, counts: Ints, sizes: NDArray[np.generic], most: int) -> None:
        #: (group, how many of its jobs, whether they are taken at each capacity), in the order of the groups.
        self._taken: list[tuple[int, int, NDArray[np.bool_]]] = []
        self._usage = usage.tolist()
        best = np.zeros(most + 1, dtype=sizes.dtype)
        #: After so many groups: the best measure for each capacity.
        self._tables = [best]
        for group, (takes, count) in enumerate(zip(self._usage, counts.tolist(), strict=True)):
            portion = 1
            while count and sizes[group] > 0:
                jobs = min(portion, count)
                if jobs * takes > most:
                    break
                others = best[: most + 1 - jobs * takes] + sizes[group] * jobs
                is_better = others > best[jobs * takes :]
                best = best.copy()
                best[jobs * takes :][is_better] = others[is_better]
                self._taken.append((group, jobs, np.concatenate([np.zeros(jobs * takes, dtype=bool), is_better])))
                count, portion = count - jobs, 2 * portion
            self._tables.append(best)

    def best_in(self, intervals: _Intervals) -> list[Any]:
        """Return the measure of the best set in each interval: a whole number, if the sizes are whole."""
        return [
            self._tables[groups][amount].item()
            for groups, amount in zip(intervals.groups, intervals.amounts, strict=True)
        ]

    def best_set(self, groups: int, amount: int) -> dict[int, int]:
        """Return the set: how many jobs of which groups."""
        found: dict[int, int] = {}
        for group, jobs, is_taken in reversed(self._taken):
            if group < groups and is_taken[amount]:
                found[group] = found.get(group, 0) + jobs
                amount -= jobs * self._usage[group]
        return found


def _best_sizes(on_row: _OnRow, least: int, rounds: int, is_over: Callable[[int], bool]) -> tuple[Ints, int]:
    """Return the sizes of jobs that prove most, in parts of `WHOLE`, and the number of rounds with theirs."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver("sets", pywraplp.Solver.GLOP_LINEAR_PROGRAMMING)
    intervals = on_row.intervals(least, _INTERVALS)
    widths, last = np.diff(intervals.begins), len(intervals.begins) - 1
    sizes = [solver.NumVar(0.0, 1.0, "") for _ in on_row.usage]
    most = [solver.NumVar(0.0, solver.infinity(), "") for _ in widths]
    goal = solver.Objective()
    goal.SetMaximization()
    for size, seconds in zip(sizes, on_row.seconds.tolist(), strict=True):
        goal.SetCoefficient(size, float(seconds))
    for one, width in zip(most, widths.tolist(), strict=True):
        goal.SetCoefficient(one, -float(width))
    best, best_sizes, until = 0.0, np.zeros(len(sizes)), rounds + _MOST_ROUNDS
    while rounds < until and not is_over(rounds) and solver.Solve() == pywraplp.Solver.OPTIMAL:
        rounds += 1
        found = np.array([max(0.0, size.solution_value()) for size in sizes])
        known = [*(one.solution_value() for one in most), 1.0]
        knapsack = on_row.knapsack(found)
        claimed = knapsack.best_in(intervals)
        proven = (float(found @ on_row.seconds.astype(float)) - float(np.array(claimed[:-1]) @ widths)) / max(
            claimed[-1], 1e-9
        )
        if proven > best:
            best, best_sizes = proven, found / max(claimed[-1], 1e-9)
        new = [place for place in range(last + 1) if claimed[place] > known[place] + _MORE]
        for place in new:
            row = solver.Constraint(-solver.infinity(), 1.0 if place == last else 0.0)
            if place < last:
                row.SetCoefficient(most[place], -1.0)
            for group, jobs in knapsack.best_set(int(intervals.groups[place]), int(intervals.amounts[place])).items():
                row.SetCoefficient(sizes[group], float(jobs))
        if not new:
            break
    return np.rint(best_sizes * WHOLE).astype(np.int64), rounds
