"""How near a simulation comes to what really happened to the same jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cpsched.metrics.runs import Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """A simulation beside what happened, over the jobs that are over in both; times in seconds."""

    jobs: int
    #: The mean waits.
    wait: float
    simulated_wait: float
    #: The shares of the jobs that start within a minute, and within an hour, of their real starts.
    within_minute: float
    within_hour: float
    #: Spearman's rank correlation of the waits: 1 where the same jobs wait long, 0 where nothing is alike; None where
    #: all waits are equal in one of them.
    correlation: float | None


def fidelity(real: Runs, simulated: Runs, only: NDArray[np.bool_]) -> Fidelity | None:
    """Compare a simulation with what happened; None where no job is over in both.

    `real`, `simulated`: the same jobs in the same order. `only`: those that count.
    """
    both = only & real.over & simulated.over
    if not both.any():
        return None
    wait, replayed = (runs.wait[both] for runs in (real, simulated))
    apart = np.abs(real.start - simulated.start)[both]
    return Fidelity(
        jobs=int(both.sum()),
        wait=float(wait.mean()),
        simulated_wait=float(replayed.mean()),
        within_minute=float((apart <= 60).mean()),
        within_hour=float((apart <= 3600).mean()),
        correlation=_correlation(_ranks(wait), _ranks(replayed)),
    )


def _ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rank of each value; equal values have the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    found: NDArray[np.float64] = (last - (count - 1) / 2)[place]
    return found


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Return Pearson's correlation; None where one is constant."""
    one, other = one - one.mean(), other - other.mean()
    size: Any = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / size) if size else None
