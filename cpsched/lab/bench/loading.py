"""One cell: its workload is read, taken from a log, or generated, then changed; a scheduler plays it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from cpsched.domain import FrozenMap, Instance
from cpsched.formats.logs import read_workload
from cpsched.lab.bench.campaign import Cell, Contender, Generated, InstanceFile, LogFile, Workload
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import History, simulate
from cpsched.lab.workloads import (
    Failures,
    agent_workload,
    cirne_like,
    eurora_stream,
    evolving_window,
    job_mix,
    lublin,
    moved,
    openccs_workload,
    resampled_users,
    resampled_weeks,
    scaled,
    with_failures,
    with_malleable,
    with_walltimes,
)

#: Generators by their names in ``cpsched generate``.
GENERATORS: MappingProxyType[str, Callable[..., Instance]] = MappingProxyType(
    {
        "lublin": lublin,
        "cirne-like": cirne_like,
        "job-mix": job_mix,
        "agents": agent_workload,
        "openccs": openccs_workload,
        "eurora": eurora_stream,
        "evolving": evolving_window,
    }
)

_RESAMPLED: MappingProxyType[str, Callable[[Instance, int], Instance]] = MappingProxyType(
    {"users": resampled_users, "weeks": resampled_weeks}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A workload, and what was left out or changed to make it."""

    instance: Instance
    #: Remarks in words, each with its number.
    remarks: FrozenMap[str, int]


@lru_cache(maxsize=1)
def load_workload(workload: Workload, seed: int | None) -> Loaded:
    """Make a workload; the last one is kept, since cells of one workload follow each other.

    Raises `DocumentError` if a file is refused, `ValueError` if a generator or the load is.
    """
    loaded = _from_source(workload.source, seed if isinstance(workload.source, Generated) else None)
    instance = loaded.instance
    if workload.resampled is not None:
        instance = _RESAMPLED[workload.resampled](instance, seed or 0)
    if workload.load is not None:
        instance = scaled(instance, workload.load)
    if workload.moved is not None:
        instance = moved(instance, workload.moved, seed or 0)
    if workload.malleable is not None:
        instance = with_malleable(instance, seed or 0, share=workload.malleable, model=workload.model)
    if workload.walltimes is not None:
        instance = with_walltimes(instance, seed or 0, workload.walltimes)
    if workload.failures is not None:
        instance = with_failures(instance, seed or 0, Failures.of(workload.failures))
    return Loaded(instance=instance, remarks=loaded.remarks)


@lru_cache(maxsize=1)
def _from_source(source: InstanceFile | LogFile | Generated, seed: int | None) -> Loaded:
    """Read or generate a workload, unchanged; seeds only move the jobs of a log, which is read once."""
    match source:
        case InstanceFile():
            instance, notes = read_workload(source.path)
        case LogFile():
            instance, notes = read_workload(source.path, source.options)
        case Generated():
            instance = GENERATORS[source.generator](seed=seed, **source.parameters)
            return Loaded(instance=instance, remarks=FrozenMap())
    remarks = dict.fromkeys((f"assumed: {words}" for words in notes.assumed), 1)
    remarks |= {"warnings": len(notes.warnings)} if notes.warnings else {}
    return Loaded(instance=instance, remarks=FrozenMap(remarks | dict(notes.counts)))


def play(cell: Cell) -> dict[str, Any]:
    """Simulate a cell and return its result as a document: figures, seconds, counters, remarks on the workload.

    Raises `CpschedError`, `ValueError` if the workload cannot be made, or the scheduler cannot run it.
    """
    loaded = load_workload(cell.workload, cell.seed)
    if not loaded.instance.jobs:
        raise ValueError(f"the workload {cell.workload.label} has no jobs")
    _warm_up(cell.contender)
    options = getattr(cell.workload.source, "options", None)
    history = _simulated(loaded.instance, cell.contender, feedback=options is not None and options.feedback)
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


def _simulated(workload: Instance, contender: Contender, *, feedback: bool = False) -> History:
    """Simulate a workload with a new scheduler."""
    return simulate(
        workload,
        make_scheduler(contender.scheduler, contender.parameters),
        predict=contender.predict,
        charge_overhead=contender.charge_overhead,
        feedback=feedback,
    )
