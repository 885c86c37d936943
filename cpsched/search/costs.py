"""Values derived from the costs of starts: guiding costs for the search, and orders of list schedules."""

from collections.abc import Sequence
from functools import cache, reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, Request
from cpsched.planner import FIRST_KINK, RATE, Values, costs_at, end_price
from cpsched.problem import is_optional
from cpsched.rusv import JobTable, awaited_first

#: The cost, relative to a second of makespan, of each second by which a job starts too late for an earlier makespan.
_LATE = 0.3


def guided(
    costs: NDArray[np.float64], price: float, tails: NDArray[np.int64], end: float = np.inf
) -> NDArray[np.float64]:
    """Return the guiding costs of starts where a second of makespan costs `price`.

    The end of the last job alone gives no guidance for all other jobs. So each job that starts too late for an end
    before `end` has a small cost. Its `tails` (s) count: the time from its start to the end of the last job that waits
    for it.
    """
    if price == 0:
        return costs
    late = np.zeros((len(costs), 2))
    if end < np.inf:
        late[:, 0], late[:, 1] = _LATE * price, np.maximum(0.0, end - 1 - tails)
    guide = np.concatenate([costs, late], axis=1)
    kinks = guide[:, FIRST_KINK:].reshape(len(guide), -1, 2)
    order = np.argsort(kinks[:, :, 1], axis=1, kind="stable")
    guide[:, FIRST_KINK:] = np.take_along_axis(kinks, order[:, :, None], axis=1).reshape(len(guide), -1)
    return guide


def left_out_fines(values: Values, table: JobTable, longest: NDArray[np.int64], price: float) -> NDArray[np.float64]:
    """Return what it costs to leave out each job: more than plans of as many jobs can differ by, once for it and once
    for each job that waits for it.

    `values`, `table`: of a ledger. `longest`: the seconds that each job takes in its longest mode. `price`: the cost of
    a second of makespan.
    """
    horizon = float((table.jobs[:, 1] + longest).max(initial=0) + longest.sum())
    dearest = costs_at(values.costs, np.array([[horizon]])).sum() + price * horizon
    fines = (1.0 + dearest) * np.array(_num_behind(table))
    return np.asarray(fines, dtype=np.float64)


def _num_behind(table: JobTable) -> list[int]:
    """Return how many jobs wait for each one, directly or not, the job itself among them."""
    links = table.links
    bits = [1 << job for job in range(len(table.jobs))]  # a bit for each of these jobs

    @cache
    def behind(milestone: int) -> int:
        after = links.after[links.after_of[milestone] : links.after_of[milestone + 1], 0].tolist()
        return reduce(or_, (bits[job] for job in after), 0)

    for job in awaited_first(links, np.arange(len(bits)))[::-1].tolist():
        for milestone in links.leads[links.leads_of[job] : links.leads_of[job + 1], 0].tolist():
            bits[job] |= behind(milestone)
    return [of_job.bit_count() for of_job in bits]


def rates_of(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cost of each further second for each job in the long run; small but positive where it is zero."""
    rates: NDArray[np.float64] = costs[:, RATE] + costs[:, FIRST_KINK::2].sum(axis=1)
    return np.where(rates > 0, rates, rates[rates > 0].min(initial=1.0) * 1e-3)


def share_of_nodes(instance: Instance, request: Request) -> float:
    """Return how many nodes a request takes: of each chunk its dominant share of the node on which that is smallest."""
    classes = [node_class for node_class in instance.cluster.classes if node_class.is_up]
    taken = 0.0
    for chunk in request.chunks:
        on_nodes = (
            max((n / node_class.resources[name] for name, n in chunk.resources.items()), default=0.0)
            for node_class in classes
            if all(node_class.resources.get(name, 0) >= n for name, n in chunk.resources.items() if n)
        )
        taken += chunk.count * min(on_nodes, default=1.0)
    return taken


def list_keys(
    instance: Instance,
    jobs: Sequence[Job],
    costs: NDArray[np.float64],
    tails: NDArray[np.int64],
    nodes: Sequence[Sequence[float]],
    *,
    is_changing: bool,
) -> dict[str, NDArray[np.float64]]:
    """Return named keys for list schedules of the jobs, smallest first: work over cost, for several definitions of
    work.

    On one machine this is Smith's rule. With many resources it depends on the scarce one, so several keys are tried.
    Where the end of the last job counts, one more key sorts by longest `tails` (s) first. `costs` has the costs of
    starts. `nodes`: the number of nodes that each step of each job takes. `is_changing`: whether some of the jobs
    change while they run.
    """
    price = rates_of(costs)
    totals = instance.cluster.totals
    time = np.array([job.walltime for job in jobs], dtype=np.float64)
    work = [
        sum(step.walltime * each for step, each in zip(job.steps, of_job, strict=True))
        for job, of_job in zip(jobs, nodes, strict=True)
    ]
    keys = {"nodes": np.array(work) / price}
    if is_changing:
        keys |= {"widest": np.array([max(of_job) for of_job in nodes]) * time / price, "walltime": time / price}
    else:
        asked = [{name: n for name, n in job.request.totals.items() if not is_optional(name)} for job in jobs]
        share = np.array([max((n / (totals.get(name) or 1) for name, n in one.items()), default=0.0) for one in asked])
        cores = np.array([job.request.totals.get("cores", 0) for job in jobs]) / max(1, totals.get("cores", 1))
        keys |= {
            "balanced": np.cbrt(keys["nodes"] ** 2 * np.maximum(cores, 1e-9) * time / price),
            "dominant": share * time / price,
            "cores": np.maximum(cores, 1e-9) * time / price,
            "walltime": time / price,
            "narrow": share * np.sqrt(time) / price,
            "short": np.sqrt(share) * time / price,
        }
    return keys | {"tails": -tails.astype(np.float64)} if end_price(instance) > 0 else keys
