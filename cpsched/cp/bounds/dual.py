"""The Lagrangian dual: what prices on surrogates prove.

With a price ``pi_l(t) >= 0`` on each surrogate l, piecewise constant over time, and ``Pi_l`` its integral, no plan
costs less than

``sum_j min_s [c_j(s) + sum_l r_lj (Pi_l(s + d_j) - Pi_l(s))] - sum_l integral of cap_l pi_l``

where s is not before the job's earliest start. Each term in brackets is piecewise linear in s, with breakpoints where s
or s + d_j meets a breakpoint of the prices or s a kink of c_j: its minimum is found exactly there. All is arithmetic
of +, * and min on whole seconds, so that the same code on whole-number prices is exact.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.bounds.surrogates import Floats, Ints, Profile
from cpsched.cp.bounds.tasks import NEVER, Tasks

#: Exact evaluation: what one job costs and pays stays below 2 to this, in whole units.
_EXACT_BITS = 58
#: Multiplications in a matrix product that OpenBLAS still does in one thread.
_SMALL_PRODUCT = 200_000
#: The largest amount that is still counted in this unit.
_LEAST_WORTH = 2.0**-64


class Dual:
    """The dual function over one grid of times.

    `tasks`: the jobs. `profiles`: the capacity of each surrogate. `grid`: seconds from now, ascending, begins with 0:
    the breakpoints of the prices, which are 0 from the last one on.
    """

    def __init__(self, tasks: Tasks, profiles: Sequence[Profile], grid: Ints) -> None:
        self.tasks = tasks
        self.profiles = tuple(profiles)
        self.grid = grid
        self.widths = np.diff(grid)
        #: Capacity times time of each surrogate in each interval: shape (surrogates, intervals).
        self.areas = np.array([np.diff(profile.area(grid)) for profile in profiles], dtype=np.int64).reshape(
            len(profiles), len(grid) - 1
        )
        self._float_rates = np.array([[float(rate) for rate in rates] for rates in tasks.rates]).reshape(
            tasks.kinks.shape
        )
        #: The cost of each further second of delay in the long run, shape (groups,).
        self.last_rates: Floats = self._float_rates.sum(axis=1)
        self._starts = self._candidates()
        self._begin = self._places(self._starts)
        self._end = self._places(self._starts + tasks.durations[:, None])
        self._delay_cost = self._delays(self._float_rates)
        self._rows = np.arange(len(tasks.counts))
        self._usage = tasks.usage.T.astype(np.float64)

    def _candidates(self) -> Ints:
        """Return the starts at which a minimum can be, shape (groups, starts)."""
        tasks = self.tasks
        starts = np.concatenate(
            [
                np.broadcast_to(self.grid, (len(tasks.counts), len(self.grid))),
                self.grid[None, 1:] - tasks.durations[:, None],
                np.minimum(tasks.kinks, self.grid[-1]),
            ],
            axis=1,
        )
        if (tasks.latest < NEVER).any():
            starts = np.concatenate([starts, tasks.latest[:, None].clip(max=int(self.grid[-1]))], axis=1)
        return np.asarray(np.clip(starts, tasks.earliest[:, None], tasks.latest[:, None]))

    def _places(self, times: Ints) -> tuple[Ints, Ints]:
        """Return (index into the flattened integrals of prices, seconds since that breakpoint) of each time."""
        piece = np.searchsorted(self.grid, times, side="right") - 1
        return piece + self.tasks.kinds[:, None] * len(self.grid), times - self.grid[piece]

    def _delays(self, rates: NDArray[Any]) -> NDArray[Any]:
        """Return the cost of each candidate start above that of the earliest one."""
        cost = np.zeros(self._starts.shape, dtype=rates.dtype)
        for place in range(rates.shape[1]):
            kink = np.maximum(self.tasks.kinks[:, place], self.tasks.earliest)[:, None]
            cost = cost + rates[:, place, None] * np.maximum(0, self._starts - kink)
        return cost

    def _costs(self, prices: NDArray[Any], delay_cost: NDArray[Any]) -> NDArray[Any]:
        """Return cost of delay plus price paid for each candidate start."""
        rates = _product(self.tasks.usage.astype(prices.dtype), prices)
        rates = np.concatenate([rates, np.zeros((len(rates), 1), dtype=rates.dtype)], axis=1)
        integral = np.zeros_like(rates)
        np.cumsum(rates[:, :-1] * self.widths, axis=1, out=integral[:, 1:])
        rates, integral = rates.ravel(), integral.ravel()
        (begin, since_begin), (end, since_end) = self._begin, self._end
        cost = integral.take(end)
        cost += rates.take(end) * since_end
        cost -= integral.take(begin)
        cost -= rates.take(begin) * since_begin
        cost += delay_cost
        return cost

    def evaluate(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """Return the bound (without the cost of the earliest starts) that prices give, rounding errors not covered.

        `prices`: shape (surrogates, intervals). Returns the bound, its supergradient, and for how long jobs of each
        kind run in each interval at the cheapest starts: shape (kinds, intervals).
        """
        costs = self._costs(prices, self._delay_cost)
        best = costs.argmin(axis=1)
        value = float(self.tasks.counts @ costs[self._rows, best] - (prices * self.areas).sum())
        seconds = self._seconds(self._starts[self._rows, best])
        return value, _product(self._usage, seconds) - self.areas, seconds

    def _seconds(self, starts: Ints) -> Floats:
        """Return for how long jobs of each kind run in each interval, shape (kinds, intervals)."""
        tasks = self.tasks
        before = np.clip(self.grid[None, :] - starts[:, None], 0, tasks.durations[:, None])
        seconds = np.diff(before, axis=1).astype(np.float64) * tasks.counts[:, None]
        per_kind = np.zeros((len(tasks.usage), seconds.shape[1]))
        np.add.at(per_kind, tasks.kinds, seconds)
        return per_kind

    def proven(self, prices: Floats) -> Fraction:
        """Return the bound that prices give, without any rounding error: at most the dual function's true value.

        Prices are cut to whole multiples of a small unit, costs of delay rounded down to it.
        """
        longest = 1.0 + float(self.grid[-1] + self.tasks.durations.max(initial=0) + self.tasks.earliest.max(initial=0))
        paid = float((self.tasks.usage.astype(np.float64) @ prices @ self.widths).max(initial=0.0))
        owed = float(self._float_rates.sum(axis=1).max(initial=0.0)) * longest
        scale = Fraction(2) ** (_EXACT_BITS - math.frexp(2.0 * (paid + owed) + _LEAST_WORTH)[1])
        whole = np.floor(prices * float(scale)).astype(np.int64)
        rates = np.array([[math.floor(rate * scale) for rate in row] for row in self.tasks.rates], dtype=np.int64)
        rates = rates.reshape(self.tasks.kinks.shape)
        costs = self._costs(whole, self._delays(rates))
        gained = sum(
            count * least for count, least in zip(self.tasks.counts.tolist(), costs.min(axis=1).tolist(), strict=True)
        )
        spent = sum(
            price * area for price, area in zip(whole.ravel().tolist(), self.areas.ravel().tolist(), strict=True)
        )
        return Fraction(gained - spent) / scale


def _product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return ``left @ right``, in portions so small that the linear algebra library starts no threads for them.

    On a machine that is busy otherwise those threads wait for each other many times longer than they compute.
    """
    rows = max(1, _SMALL_PRODUCT // max(1, right.size))
    result = np.empty((len(left), right.shape[1]), dtype=np.result_type(left, right))
    for first in range(0, len(left), rows):
        np.matmul(left[first : first + rows], right, out=result[first : first + rows])
    return result
