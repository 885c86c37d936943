"""Whether a rule is better than the usual one on replicas of a past: by far, and nowhere much worse.

The portfolio on-line asks it of queue rules, and a site of the engines that it may plan with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance

T = TypeVar("T")

#: Seconds and jobs of a past that say enough: a few hours say nothing about the months to come.
LEAST_SECONDS, LEAST_JOBS = 7 * 86_400, 100
#: Replicas of a past, and by how many seconds a submission is moved there at the most.
REPLICAS, _MOVED = 4, 600
#: Another rule has to win in each replica: weighted queue time by this share, on all jobs. On each third of them, if it
#: has so many jobs, and in the mean bounded slowdown and the longest wait, it may lose by that share.
_LEAST_GAIN, _THIRD, _MOST_LOSS = 0.02, 500, 0.05
#: A runtime counts as at least so many seconds in a slowdown.
_TAU = 10


class Figures(NamedTuple):
    """What a rule makes of jobs: weighted queue time of each part and of all, mean bounded slowdown, longest wait."""

    weighted_waits: tuple[float, ...]
    slowdown: float
    longest: float

    def wins_over(self, usual: "Figures") -> bool:
        """Tell whether this is better than the usual rule's, and nowhere much worse."""
        if not self.weighted_waits[-1] < (1 - _LEAST_GAIN) * usual.weighted_waits[-1]:
            return False
        pairs = [*zip(self.weighted_waits, usual.weighted_waits, strict=True),
            (self.slowdown, usual.slowdown), (self.longest, usual.longest)]  # fmt: skip
        return all(one <= (1 + _MOST_LOSS) * other for one, other in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of a rule: relative to the usual one, in the geometric mean of the replicas that it played."""

    #: It plays until it has lost once.
    replicas: int
    wins: bool
    #: Weighted queue time, mean bounded slowdown, longest wait.
    ratio: float
    slowdown: float
    longest: float


def figures_of(
    submit: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], weights: NDArray[np.float64]
) -> Figures:
    """Return the figures of jobs that have run. `weights`: of each second that a job waits."""
    weighted = weights * (start - submit)
    slowdowns = np.maximum(1.0, (end - submit) / np.maximum(end - start, _TAU))
    parts = np.array_split(weighted, 3 if len(weighted) >= 3 * _THIRD else 1)
    return Figures(
        weighted_waits=(*(float(part.sum()) for part in parts), float(weighted.sum())),
        slowdown=float(slowdowns.mean()) if len(slowdowns) else 1.0,
        longest=float((start - submit).max(initial=0)),
    )


def contest(
    pasts: Sequence[Instance],
    usual: T,
    others: Sequence[T],
    play: Callable[[Instance], Callable[[T], Figures]],
    random: Random,
) -> tuple[Trial, ...]:
    """Return the trial of each of the other rules.

    `pasts`: of each replica the jobs that came, the latest first. `play`: plays a replica, under one rule at a time.
    """
    logs: list[list[tuple[float, ...]]] = [[] for _ in others]
    left = list(range(len(others)))
    for past in pasts:
        if not left:
            break
        # a job comes up to some minutes earlier or later, but not before the first one
        times = [max(past.now, job.submit + random.randint(-_MOVED, _MOVED)) for job in past.jobs]
        jobs = (replace(job, submit=time) for job, time in zip(past.jobs, times, strict=True))
        played = play(replace(past, jobs=tuple(jobs)))
        base = played(usual)
        for place in tuple(left):
            found = played(others[place])
            logs[place].append(tuple(map(_log_ratio, _main(found), _main(base))))
            if not found.wins_over(base):
                left.remove(place)
    means = ([exp(sum(of_one) / len(rows)) for of_one in zip(*rows, strict=True)] for rows in logs)
    return tuple(
        Trial(replicas=len(rows), wins=place in left, ratio=ratio, slowdown=slowdown, longest=longest)
        for place, (rows, (ratio, slowdown, longest)) in enumerate(zip(logs, means, strict=True))
    )


def winner(trials: Sequence[Trial]) -> int | None:
    """Return the place of the best rule of those that win; None: the usual one stays."""
    won = [place for place, trial in enumerate(trials) if trial.wins]
    return min(won, key=lambda place: trials[place].ratio, default=None)


def _main(figures: Figures) -> tuple[float, float, float]:
    return figures.weighted_waits[-1], figures.slowdown, figures.longest


def _log_ratio(one: float, other: float) -> float:
    return log(max(one, 1e-9) / max(other, 1e-9))
