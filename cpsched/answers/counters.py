"""Licences, limits and free pools: what is left of them over time, beside the jobs of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.answers.occupation import Occupation, Uses
from cpsched.problem import Rule
from cpsched.rusv import FOREVER

Ints = NDArray[np.int64]


class Counter:
    """What is left over time of something that belongs to no node; times are in seconds from `now`.

    `name`, `rule`: a licence, and the rule that it counts for; None: it is a licence of the cluster. `amount`: what the
    job in question takes. `total`: what there is when no job takes anything. `closed`: ``(start, end, amount)`` that
    nobody can have. `uses`: what the jobs of the plan take; the job in question may be among them.
    """

    def __init__(
        self, name: str, rule: Rule | None, amount: int, total: int, closed: Sequence[tuple[int, int, int]], uses: Uses
    ) -> None:
        self.name, self.rule, self.amount, self.total, self.uses = name, rule, amount, total, uses
        starts, ends, amounts = np.array(closed, dtype=np.int64).reshape(-1, 3).T
        nobody = np.full(len(starts), -1, dtype=np.int64)
        times = np.concatenate([uses.start, uses.end, starts, ends])
        order = np.argsort(times, kind="stable")
        self._times: Ints = times[order]
        self._deltas: Ints = np.concatenate([uses.used, -uses.used, amounts, -amounts])[order]
        self._jobs: Ints = np.concatenate([uses.job, uses.job, nobody, nobody])[order]
        # of some changes at the same second the last one
        self._last_ones: Ints = np.flatnonzero(np.diff(self._times, append=FOREVER + 1))
        self._borders: Ints = np.append(self._times[self._last_ones], FOREVER)
        self._users: Ints = np.unique(uses.job)
        most = int(np.cumsum(self._deltas)[self._last_ones].max(initial=0))
        #: Whether enough is left whichever jobs are away.
        self._is_ample = amount <= total - most
        #: The answers of `lacking`, by which of the users are away, and the last one with its occupation.
        self._known: dict[bytes, list[tuple[int, int]]] = {}
        self._found: tuple[Occupation | None, int, list[tuple[int, int]]] | None = None

    def lacking(self, occupation: Occupation | None) -> list[tuple[int, int]]:
        """Return the intervals in which less is left than the job takes; with None, if no other job took anything."""
        if self._is_ample:
            return []
        version = 0 if occupation is None else occupation.version
        if self._found is None or self._found[0] is not occupation or self._found[1] != version:
            key = b"" if occupation is None else occupation.is_away[self._users].tobytes()
            if key not in self._known:
                self._known[key] = self._lacking(occupation)
            self._found = occupation, version, self._known[key]
        return self._found[2]

    def _lacking(self, occupation: Occupation | None) -> list[tuple[int, int]]:
        if self.amount > self.total:
            return [(0, FOREVER)]
        is_there = self._jobs < 0 if occupation is None else ~occupation.is_away[self._jobs]
        used = np.cumsum(np.where(is_there, self._deltas, 0))
        is_short = np.zeros(len(self._last_ones) + 2, dtype=np.int8)
        is_short[1:-1] = self.total - used[self._last_ones] < self.amount
        spans: list[list[int]] = self._borders[np.flatnonzero(np.diff(is_short))].reshape(-1, 2).tolist()
        return [(first, last) for first, last in spans]

    def first(self, occupation: Occupation | None, earliest: int, duration: int) -> int:
        """Return the first start from a second on at which enough is left; `FOREVER` if there is none."""
        return _first_beside(self.lacking(occupation), earliest, duration)

    def last(self, occupation: Occupation, start: int, duration: int) -> int:
        """Return the last start up to which enough is left at each, from one on at which it is."""
        later = (short for short, _ in self.lacking(occupation) if short >= start + duration)
        return min(later, default=FOREVER) - duration


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gate:
    """All that a job has to pass that belongs to no node, beside the jobs that are there."""

    counters: tuple[Counter, ...] = ()
    #: None: as if no other job took anything.
    occupation: Occupation | None = None
    #: The same by each of the job's alternatives.
    others: "tuple[Gate, ...]" = ()

    def of_mode(self, number: int) -> "Gate":
        """Return what the job has to pass in one of its modes."""
        return self.others[number - 1] if number and self.others else self

    def first(self, earliest: int, duration: int) -> int:
        """Return the first start from a second on that all counters allow; `FOREVER` if there is none."""
        before, lacking = -1, [counter.lacking(self.occupation) for counter in self.counters]
        while before < earliest < FOREVER:
            before = earliest
            for times in lacking:
                earliest = _first_beside(times, earliest, duration)
        return earliest

    def last(self, start: int, duration: int) -> int:
        """Return the last start up to which all counters allow each, from one on that they allow."""
        if self.occupation is None:
            raise ValueError("asked of no occupation")
        return min((counter.last(self.occupation, start, duration) for counter in self.counters), default=FOREVER)


def _first_beside(times: Sequence[tuple[int, int]], earliest: int, duration: int) -> int:
    """Return the first start from a second on at which a job lies beside some times; `FOREVER` if there is none."""
    for start, end in times:
        if end > earliest and start < earliest + duration:
            earliest = end
    return min(earliest, FOREVER)
