"""The costs of starts, by job: the objective in a form for comparing millions of plans."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.metrics import delay_rates, end_rate
from cpsched.rusv import kernels

#: Columns of costs, which kernels know too.
RATE, LEVEL, FIRST_KINK = kernels.RATE, kernels.LEVEL, kernels.FIRST_KINK


def start_costs(
    instance: Instance, jobs: Sequence[Job], durations: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return how the cost of each job grows with its start, in seconds from `now`: convex, never falling, with kinks.

    `durations`: how long each job takes (s), where that is not its walltime: it may be shrunk or held.

    Returns float64 (jobs, 2 + 2 * kinks): cost per second, cost at any start (of another duration than the walltime;
    less than 0 where that is worth more), then (more cost per second, second from which on) by ascending second, as
    many for each job as one of them has; without effect, at second 0, those that a job does not have.
    """
    rates: list[float] = []
    levels: list[float] = []
    kinks: list[list[tuple[int, float]]] = []
    for place, job in enumerate(jobs):
        earliest = instance.earliest_start(job)
        duration = job.walltime if durations is None else int(durations[place])
        levels.append(_level(instance, job, duration))
        terms = [(since, float(rate)) for since, rate in delay_rates(instance, job, duration)]
        rates.append(sum(rate for since, rate in terms if since <= earliest))
        later = sorted({since for since, rate in terms if since > earliest and rate > 0})
        kinks.append([(kink - instance.now, sum(rate for since, rate in terms if since == kink)) for kink in later])
    most = max((len(of_job) for of_job in kinks), default=0)
    costs = np.zeros((len(jobs), FIRST_KINK + 2 * most))
    costs[:, RATE] = rates
    costs[:, LEVEL] = levels
    for row, of_job in zip(costs, kinks, strict=True):
        for place, (kink, rate) in enumerate(of_job, start=most - len(of_job)):
            row[FIRST_KINK + 2 * place : FIRST_KINK + 2 * place + 2] = rate, kink
    return costs


def _level(instance: Instance, job: Job, duration: int) -> float:
    """Return the further cost at `now` of a job that takes `duration`, and not its walltime.

    A malleable job pays for each second of stretch. An evolving one ends later, with another slowdown so far.
    """
    if duration == job.walltime:
        return 0.0
    if not job.is_evolving:
        return float(end_rate(instance, job) * (duration - job.walltime))
    earliest = instance.earliest_start(job)
    suffered, usually = (
        sum(rate * (instance.now - since) for since, rate in delay_rates(instance, job, runtime) if since <= earliest)
        for runtime in (duration, job.walltime)
    )
    later = instance.term_weight(ObjectiveTerm.COMPLETION, job) * (duration - job.walltime)
    return float(suffered - usually + later)


def end_price(instance: Instance) -> float:
    """Return the cost of a second of makespan."""
    return instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0)


def costs_at(costs: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the costs of starts (s after `now`; (jobs or 1, any number)) for each job: (jobs, that number)."""
    total = costs[:, [LEVEL]] + costs[:, [RATE]] * starts
    for k in range(FIRST_KINK, costs.shape[1], 2):
        total = total + costs[:, [k]] * np.maximum(0.0, starts - costs[:, [k + 1]])
    return np.asarray(total, dtype=np.float64)
