"""Intervals that hold what they say: set by where starts were, so far, within what was forecast.

The score of a start is its distance from the median forecast, in parts of that of the outer quantile on its side: -1, 0
and 1 at the quantiles for 10, 50 and 90 %. The quantiles of past scores say how far the next forecast has to reach
(split conformal prediction, normalised; Vovk et al. 2005, Romano et al. 2019). Forecasts whose jobs still wait count as
well, as scores above that of now (Kaplan and Meier 1958): else what is known would be of short waits.
"""

from __future__ import annotations

from collections import deque
from statistics import NormalDist
from typing import NamedTuple

#: Seconds that a side of an interval counts for at least: a start within a minute is as good as any.
_UNIT = 60
#: The scores that count, of the last forecasts.
_MOST = 400
#: So many scores are taken to have been before the first one, as if futures were too narrow by this factor: those of
#: logs were, by 1.2 to 1.4.
_PRIOR, _WIDER = 20, 1.3
#: Jobs that have waited for so many seconds are judged apart from new ones: they are those that wait for long.
_NEW = 900

_NORMAL = NormalDist()
_UNKNOWN = tuple(_WIDER * _NORMAL.inv_cdf((place + 0.5) / _PRIOR) / _NORMAL.inv_cdf(0.9) for place in range(_PRIOR))


class Quantiles(NamedTuple):
    """The starts of a job in 10, 50 and 90 % of the futures, on the instance's clock; and how long it had waited."""

    low: int
    median: int
    high: int
    waited: int

    def score(self, start: int) -> float:
        """Return the distance of a start from the median."""
        return (start - self.median) / self._side(is_late=start > self.median)

    def at(self, score: float) -> int:
        """Return the start that has a score."""
        return self.median + round(score * self._side(is_late=score > 0))

    @property
    def group(self) -> int:
        """The number of the forecasts with which it is judged."""
        return int(self.waited >= _NEW)

    def _side(self, *, is_late: bool) -> int:
        return max(self.high - self.median if is_late else self.median - self.low, _UNIT)


class _Scores:
    """The scores of forecasts that are judged together. Mutable."""

    def __init__(self) -> None:
        self.known: deque[float] = deque(maxlen=_MOST)

    def at(self, share: float, still: list[float]) -> float:
        """Return a quantile of the scores, `still` those of jobs that wait: theirs are more."""
        rows = sorted([*((score, True) for score in (*self.known, *_UNKNOWN)), *((score, False) for score in still)])
        left, survival = len(rows), 1.0
        for score, is_known in rows:
            if is_known:
                survival *= (left - 1) / left
                if survival <= 1.0 - share + 1e-9:
                    return score
            left -= 1
        return rows[-1][0]


class Calibration:
    """The scores of past forecasts, and the forecasts whose jobs still wait. Mutable."""

    def __init__(self) -> None:
        self._scores = [_Scores(), _Scores()]
        #: By job.
        self._open: dict[str, list[Quantiles]] = {}

    def told(self, job: str, quantiles: Quantiles) -> None:
        """Note a forecast."""
        self._open.setdefault(job, []).append(quantiles)

    def started(self, job: str, start: int | None) -> None:
        """Note when a job started; None: it never will."""
        for quantiles in self._open.pop(job, ()):
            if start is not None:
                self._scores[quantiles.group].known.append(quantiles.score(start))

    def levels(self, now: int, quantiles: Quantiles, shares: tuple[float, ...]) -> tuple[int, ...]:
        """Return the starts by which a job will have started with these chances: not before now, and on the same side
        of the median as the chance of a half. One that starts now in nine futures of ten is told now.
        """
        if quantiles.high <= now:
            return (now,) * len(shares)
        group, scores = quantiles.group, self._scores[quantiles.group]
        still = [one.score(now) for of_job in self._open.values() for one in of_job if one.group == group]
        least = [(min if share < 0.5 else max)(scores.at(share, still), 0.0) for share in shares]
        return tuple(max(now, quantiles.at(score)) for score in least)
