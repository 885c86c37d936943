"""Making the workload of a cell: read from a file, taken from a log, or generated; then scaled and made malleable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from cpsched.domain import FrozenMap, Instance
from cpsched.formats.logs import read_workload
from cpsched.lab.bench.campaign import Generated, InstanceFile, LogFile, Workload
from cpsched.lab.workloads import (
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
    with_malleable,
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

    Raises `DocumentError` if a file is refused; `ValueError` if a generator refuses its parameters, or the load cannot
    be changed.
    """
    loaded = _from_source(workload.source, seed)
    instance = loaded.instance
    if workload.resampled is not None:
        instance = _RESAMPLED[workload.resampled](instance, seed or 0)
    if workload.load is not None:
        instance = scaled(instance, workload.load)
    if workload.moved is not None:
        instance = moved(instance, workload.moved, seed or 0)
    if workload.malleable is not None:
        instance = with_malleable(instance, seed or 0, share=workload.malleable, model=workload.model)
    return Loaded(instance=instance, remarks=loaded.remarks)


def _from_source(source: InstanceFile | LogFile | Generated, seed: int | None) -> Loaded:
    """Read or generate a workload, unchanged."""
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
