"""Fairness: how evenly waiting is spread (Jain's index), which jobs were overtaken, and which were not served.

Jobs that were not served rank before every other figure: who leaves jobs unstarted never wins.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.metrics.runs import Ending, Runs


def jain_index(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Return (Σ x)² / (n Σ x²): 1 where all values are equal, 1/n where one is positive; None without values.

    Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984. The index is 1 where all
    values are 0.
    """
    shares = np.asarray(values, dtype=np.float64)
    if not shares.size:
        return None
    squares = float((shares**2).sum())
    return float(shares.sum()) ** 2 / (shares.size * squares) if squares else 1.0


def overtaken(runs: Runs) -> NDArray[np.bool_]:
    """Return which jobs were unfairly delayed: while such a job waited, a job started that was submitted later and
    asks for at least as many cores.

    A deviation from the order of arrival (Sabin, Sadayappan: Unfairness Metrics for Space-Sharing Parallel Job
    Schedulers, JSSPP 2005). A smaller job that is backfilled into a gap does not count, since the overtaken job could
    not have used the gap; a job at least as large used cores that the overtaken job could have used. The measure
    ignores that nodes differ, and that the later job may be short enough for a gap before a reservation. The exact fair
    start (Sabin, Kochhar, Sadayappan, ICPP 2004) asks for another simulation per job. A job that still waits at the end
    counts as one that starts after all others; a refused job is neither overtaken nor overtakes.
    """
    judged = np.flatnonzero(runs.ending != Ending.REFUSED)
    waiting = runs.ending[judged] == Ending.WAITING
    starts = np.where(waiting, judged.size, _ranks(runs.start[judged]))
    found = np.zeros(len(runs), dtype=np.bool_)
    found[judged] = _has_later_rival(_ranks(runs.submit[judged]), _ranks(-runs.cores[judged]), starts)
    return found


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of each value among the distinct values, in ascending order."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _has_later_rival(
    arrival: NDArray[np.int64], size: NDArray[np.int64], start: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for which i there is a j with arrival[j] > arrival[i], size[j] <= size[i] and start[j] < start[i].

    All are ranks in 0 ... n. Two different arrivals are equal above some highest bit in which they differ: for each
    bit, jobs that are equal above it form a block, and those with the bit set are rivals of those without. Inside a
    block, by rising size, a running minimum of the rivals' starts answers for all jobs at once: n log² n in all.
    """
    found = np.zeros(len(arrival), dtype=np.bool_)
    if not found.size:
        return found
    stride = len(start) + 1  # above every start rank
    sizes = int(size.max()) + 1
    for bit in range(int(arrival.max()).bit_length()):
        block, earlier = arrival >> (bit + 1), 1 - (arrival >> bit & 1)
        order = np.argsort((block * sizes + size) * 2 + earlier)
        # each block lies below the one before it, so that the minimum forgets what was in that one
        floor = (block[order[-1]] - block[order]) * stride
        is_earlier = earlier[order] == 1
        first = np.minimum.accumulate(np.where(is_earlier, stride - 1, start[order]) + floor) - floor
        found[order] |= is_earlier & (first < start[order])
    return found


#: What `unserved_text` counts, as headings have it.
UNSERVED = "unfinished / killed / lost / starved"
#: The figures of each: a job without an end never ran or waits again, one that is lost ran on a node that failed.
_PARTS = (("waiting", "refused"), ("killed",), ("restarts",), ("starved",))


def unserved_counts(cells: Iterable[Mapping[str, float | None]]) -> tuple[float, float, float, float]:
    """Return how many jobs are unfinished, killed, lost to a failing node and starved, over all cells.

    `cells`: the figures of each, by name; a figure that is missing, as in old files, counts as 0.
    """
    found = list(cells)
    first, second, third, fourth = (sum(one.get(name) or 0 for one in found for name in part) for part in _PARTS)
    return first, second, third, fourth


def unserved_rank(cells: Sequence[Mapping[str, float | None]]) -> tuple[float, float]:
    """Return the key by which policies rank before any figure: means of jobs not completed, then of starving ones.

    Lost runs are shown and do not rank: a job that lost its node runs again, and a node fails under any policy.
    """
    unfinished, killed, _, starved = unserved_counts(cells)
    count = max(1, len(cells))
    return (unfinished + killed) / count, starved / count


def unserved_text(cells: Iterable[Mapping[str, float | None]]) -> str:
    """Return the counts of `UNSERVED` in its order: ``12 / 0 / 0 / 3``."""
    return " / ".join(f"{count:,.0f}" for count in unserved_counts(cells))
