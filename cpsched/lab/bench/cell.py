"""One cell: a scheduler runs a workload in the simulator, and the result becomes figures."""

from __future__ import annotations

from functools import cache
from typing import Any

from cpsched.domain import Instance
from cpsched.lab.bench.campaign import Cell, Contender
from cpsched.lab.bench.loading import load_workload
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import History, simulate
from cpsched.lab.workloads import eurora_stream


def play(cell: Cell) -> dict[str, Any]:
    """Simulate a cell and return its result as a document: figures, seconds taken, the scheduler's counters, and
    remarks on the workload.

    Raises `CpschedError`, `ValueError` if the workload cannot be made, or the scheduler cannot run it.
    """
    loaded = load_workload(cell.workload, cell.seed)
    if not loaded.instance.jobs:
        raise ValueError(f"the workload {cell.workload.label} has no jobs")
    _warm_up(cell.contender)
    history = _simulated(loaded.instance, cell.contender)
    summary = history.summary(warm_up=cell.warm_up, cool_down=cell.cool_down).as_document()
    return {
        "cell": cell.label,
        "jobs": len(loaded.instance.jobs),
        "seconds": history.elapsed,
        "remarks": dict(loaded.remarks),
        "counters": dict(history.counters),
        "summary": summary,
    }


@cache
def _warm_up(contender: Contender) -> None:
    """Run a scheduler once without a result: the compilation of kernels must not count as seconds of a cell."""
    _simulated(eurora_stream(3, 0), contender)


def _simulated(workload: Instance, contender: Contender) -> History:
    """Simulate a workload with a new scheduler."""
    return simulate(
        workload,
        make_scheduler(contender.scheduler, contender.parameters),
        predict=contender.predict,
        charge_overhead=contender.charge_overhead,
    )
