"""How near a simulation comes to what really happened to the same jobs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.metrics.runs import Runs


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
    import pandas as pd

    both = only & real.over & simulated.over
    if not both.any():
        return None
    wait, replayed = (runs.wait[both] for runs in (real, simulated))
    ranks = [pd.Series(waits).rank() for waits in (wait, replayed)]
    is_constant = any(one.nunique() == 1 for one in ranks)
    apart = np.abs(real.start - simulated.start)[both]
    return Fidelity(
        jobs=int(both.sum()),
        wait=float(wait.mean()),
        simulated_wait=float(replayed.mean()),
        within_minute=float((apart <= 60).mean()),
        within_hour=float((apart <= 3600).mean()),
        correlation=None if is_constant else float(ranks[0].corr(ranks[1])),
    )
