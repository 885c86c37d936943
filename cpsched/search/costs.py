"""What a start costs, by job: the objective as the kernels see it, and the orders that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.search import kernels

__all__ = ["SLOWDOWN_TAU", "end_price", "list_keys", "start_costs"]

#: A runtime counts as at least so many seconds in a slowdown (``docs/formats.md``).
SLOWDOWN_TAU = 10


def start_costs(instance: Instance, jobs: Sequence[Job]) -> NDArray[np.float64]:
    """Return how the cost of each job grows with its start, in seconds from `now`.

    Returns
    -------
    float64 (jobs, 3)
        Cost per second, more cost per second beyond a threshold, the threshold. Two terms with thresholds of their own
        (slowdown and tardiness) share the later one: the search is guided a little wrong, its plans are valued exactly.
    """
    costs = np.zeros((len(jobs), 3))
    weights = instance.objective.weights
    for row, job in zip(costs, jobs, strict=True):
        expected = instance.expected_wait(job)
        row[kernels.RATE] = (
            weights.get(ObjectiveTerm.WEIGHTED_WAIT, 0.0) / expected
            + weights.get(ObjectiveTerm.WAIT, 0.0)
            + weights.get(ObjectiveTerm.COMPLETION, 0.0)
        )
        bounded = max(SLOWDOWN_TAU, job.walltime)
        hinges = (
            (weights.get(ObjectiveTerm.SLOWDOWN, 0.0) / bounded, job.submit + bounded - job.walltime),
            (weights.get(ObjectiveTerm.TARDINESS, 0.0), job.submit + expected),
        )
        for rate, threshold in hinges:
            if threshold <= instance.earliest_start(job):
                row[kernels.RATE] += rate
            elif rate:
                row[kernels.EXTRA_RATE] += rate
                row[kernels.THRESHOLD] = max(row[kernels.THRESHOLD], threshold - instance.now)
    return costs


def end_price(instance: Instance) -> float:
    """Return what a second of makespan costs."""
    return instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0)


def list_keys(instance: Instance, jobs: Sequence[Job]) -> dict[str, NDArray[np.float64]]:
    """Return named keys by which a list of the jobs may be sorted, smallest first: work over cost, for several ideas
    of work.

    Smith's rule on one machine; on many resources it depends on what is scarce, so that several keys are tried.
    """
    costs = start_costs(instance, jobs)
    price = costs[:, kernels.RATE] + costs[:, kernels.EXTRA_RATE]
    price = np.where(price > 0, price, price[price > 0].min(initial=1.0) * 1e-3)
    totals = instance.cluster.totals
    time = np.array([job.walltime for job in jobs], dtype=np.float64)
    share = np.array([max(n / totals[name] for name, n in job.request.totals.items()) for job in jobs])
    cores = np.array([job.request.totals.get("cores", 0) for job in jobs]) / max(1, totals.get("cores", 1))
    return {
        "dominant": share * time / price,
        "cores": np.maximum(cores, 1e-9) * time / price,
        "walltime": time / price,
        "narrow": share * np.sqrt(time) / price,
        "short": np.sqrt(share) * time / price,
    }
