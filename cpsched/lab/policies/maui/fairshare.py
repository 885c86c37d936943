"""Past usage over windows, for Maui's fairshare (MAUI-5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class UsageHistory:
    """The usage of each consumer, window by window; mutable.

    The usage of running jobs is kept as a rate, and added up over time; the last column is the total.

    `origin`: the begin of a window (s).
    `interval`, `depth`, `decay`: seconds of a window, the number of windows that count, and the weight of each relative
      to the next younger one.
    """

    def __init__(self, *, origin: int, interval: int, depth: int, decay: float, count: int) -> None:
        self._origin, self._interval, self._depth = origin, interval, depth
        self._factors = decay ** np.arange(depth, dtype=np.float64)
        #: The youngest window first.
        self._windows: NDArray[np.float64] = np.zeros((depth, count + 1), dtype=np.float64)
        self._rates: NDArray[np.float64] = np.zeros(count + 1, dtype=np.float64)
        self._now = origin

    def advance(self, now: int) -> None:
        """Add up usage until `now`, which is not before the last time."""
        while self._window_of(self._now) < self._window_of(now):
            border = self._origin + (self._window_of(self._now) + 1) * self._interval
            self._windows[0] += self._rates * (border - self._now)
            self._windows = np.roll(self._windows, 1, axis=0)
            self._windows[0] = 0
            self._now = border
        self._windows[0] += self._rates * (now - self._now)
        self._now = now

    def begin(self, who: NDArray[np.int64], rate: float, start: int) -> None:
        """Begin the usage of a job, which may count for several consumers; `start` is now or earlier."""
        columns = np.append(who, -1)
        self._rates[columns] += rate
        self._add(columns, rate, start)

    def end(self, who: NDArray[np.int64], rate: float, end: int) -> None:
        """End the usage of a job; `end` is now or earlier."""
        columns = np.append(who, -1)
        self._rates[columns] -= rate
        self._add(columns, -rate, end)

    def percentages(self) -> NDArray[np.float64]:
        """Return the share of each in all usage, in percent: the sum of decay^i own_i over that of decay^i total_i."""
        weighted = self._factors @ self._windows
        if weighted[-1] <= 0:
            return np.zeros(len(weighted) - 1)
        shares: NDArray[np.float64] = 100 * weighted[:-1] / weighted[-1]
        return shares

    def _window_of(self, time: int) -> int:
        return (time - self._origin) // self._interval

    def _add(self, columns: NDArray[np.int64], rate: float, since: int) -> None:
        """Add usage at some rate from `since` until the present."""
        youngest = self._window_of(self._now)
        for age in range(self._depth):
            border = self._origin + (youngest - age) * self._interval
            until = self._now if age == 0 else border + self._interval
            self._windows[age, columns] += rate * max(0, until - max(since, border))
            if since >= border:
                return
