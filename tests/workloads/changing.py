"""Windows in which some jobs change while they run, or have a choice: made malleable or evolving, and rigid again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from cpsched.domain import (
    Amounts,
    Chunk,
    FrozenMap,
    Instance,
    Job,
    Objective,
    ObjectiveTerm,
    Request,
    Step,
    amdahl,
    resized,
)
from cpsched.lab.workloads import evolving_window, with_malleable
from cpsched.lab.workloads.changing import changed_share
from tests.workloads.eurora_windows import eurora_window

__all__ = ["changing_windows", "made_rigid", "with_alternatives", "with_evolving"]

_CORES = "cores"
#: The parts of a job's walltime that its steps take, in percent, and the part of its largest request that each asks
#: for.
_STEPS = ((20, 0.25), (30, 1.0), (20, 0.5), (30, 0.75))
#: The part of a moldable job that is serial (Amdahl); other sizes, as multiples of a job's own number of chunks.
_SERIAL = Fraction(2, 100)
_SIZES = (0.25, 0.5, 0.75, 1.5, 2, 3, 4, 5, 6, 8, 12, 16)


def changing_windows() -> Iterator[Instance]:
    """Yield windows with jobs that change: a third of Eurora's malleable, a third of them evolving, and evolving ones
    on whole nodes as in the experiment of Klein and Pérez.

    Their objective is the sum of completion times: a job that is shrunk or held pays for every second.
    """
    completion = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0}))
    malleable = with_malleable(eurora_window(200, 1, busy=0.9, demand=100), 1)
    evolving = with_evolving(eurora_window(100, 1, busy=0.5, demand=100), 1)
    yield replace(malleable, name="eurora-like-0200-malleable", objective=completion)
    yield replace(evolving, name="eurora-like-0100-evolving", objective=completion)
    yield evolving_window(1)


def with_evolving(instance: Instance, seed: int, *, share: float = 1 / 3) -> Instance:
    """Return a window in which a share of the jobs evolves: waiting ones of two cores or more in all.

    Such a job takes its walltime in four steps, of which the second has its whole request; in the others jobs of
    several chunks have fewer of them, and jobs of one chunk fewer cores in it, and no GPUs or MICs in the first and
    the last one. A step may be held for twice its time.
    """
    draw = Random(seed)

    def evolving(job: Job) -> Job:
        ends = [job.walltime * sum(part for part, _ in _STEPS[:last]) // 100 for last in range(len(_STEPS) + 1)]
        steps = tuple(
            Step(walltime=end - start, request=_part_of(job.request, part, is_outer=number in (0, len(_STEPS) - 1)))
            for number, (start, end, (_, part)) in enumerate(zip(ends, ends[1:], _STEPS, strict=False))
        )
        return replace(job, steps=steps, expand_limit=2)

    return changed_share(instance, draw, share, _can_evolve, evolving)


def with_alternatives(instance: Instance, seed: int, *, share: float = 1.0, count: int = 8) -> Instance:
    """Return a window in which a share of the waiting jobs has up to so many alternatives: other numbers of its chunks,
    up to half of the nodes, as fast as Amdahl says.
    """
    most = len(instance.cluster.node_names) // 2

    def moldable(job: Job) -> Job:
        own = job.request.chunks[0].count
        sizes = dict.fromkeys(max(1, round(own * factor)) for factor in _SIZES)
        others = [size for size in sizes if size != own and size <= max(own, most)][:count]
        return replace(job, alternatives=tuple(resized(job.steps[0], size, amdahl(_SERIAL)) for size in others))

    return changed_share(instance, Random(seed), share, _can_be_resized, moldable)


def made_rigid(instance: Instance) -> Instance:
    """Return an instance whose waiting jobs are rigid, and whose running jobs are not malleable.

    A job with alternatives has its own request. One that was evolving asks, for its whole walltime, for the most that
    any of its steps asks for: the largest number of chunks of each kind, each with the largest amount of each resource.

    Raises
    ------
    ValueError
        If chunks of one kind ask for different properties in different steps.
    """
    return replace(instance, jobs=tuple(_rigid(job) for job in instance.jobs))


def _can_evolve(job: Job) -> bool:
    """Return whether a job can be made evolving: its request can be had in parts, and its walltime too."""
    is_rigid = not job.is_evolving and job.malleability is None and job.running is None
    return is_rigid and job.request.totals.get(_CORES, 0) > 1 and job.walltime >= 10


def _can_be_resized(job: Job) -> bool:
    """Return whether a job can be given other numbers of its chunks."""
    is_rigid = not (job.changes or job.after) and job.running is None
    return is_rigid and len(job.request.chunks) == 1


def _part_of(request: Request, part: float, *, is_outer: bool) -> Request:
    """Return a part of a request: fewer chunks, or one chunk with fewer cores and, in the outer steps, no others."""
    chunks = []
    for chunk in request.chunks:
        if chunk.count > 1:
            chunks.append(replace(chunk, count=max(1, int(part * chunk.count))))
            continue
        asked = {
            name: max(1, int(part * amount)) if name == _CORES else amount
            for name, amount in chunk.resources.items()
            if not (is_outer and name in ("gpus", "mics"))
        }
        chunks.append(replace(chunk, resources=Amounts(asked)))
    return replace(request, chunks=tuple(chunks))


def _rigid(job: Job) -> Job:
    """Return a job as a rigid one."""
    if job.running is not None or not job.is_evolving:
        limit = job.expand_limit if job.is_evolving else 1
        return replace(job, malleability=None, alternatives=(), expand_limit=limit)
    kinds = max(len(step.request.chunks) for step in job.steps)
    chunks = tuple(
        _envelope(job.id, [step.request.chunks[kind] for step in job.steps if kind < len(step.request.chunks)])
        for kind in range(kinds)
    )
    widest = replace(job.steps[0].request, chunks=chunks)
    return replace(job, steps=(Step(walltime=job.walltime, request=widest),), expand_limit=1)


def _envelope(job_id: str, chunks: Sequence[Chunk]) -> Chunk:
    """Return the chunks of one kind with the largest count and amounts of all steps."""
    if len({chunk.where for chunk in chunks}) != 1:
        raise ValueError(f"Expected the same properties in all steps, got different ones (job {job_id})")
    names = dict.fromkeys(name for chunk in chunks for name in chunk.resources)
    most = {name: max(chunk.resources.get(name, 0) for chunk in chunks) for name in names}
    return replace(chunks[0], count=max(chunk.count for chunk in chunks), resources=Amounts(most))
