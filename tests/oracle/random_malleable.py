"""Random tiny windows in which waiting and running jobs are malleable; running ones may be shrunk already."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    Mode,
    Placement,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
    modes,
)
from tests.oracle.random_instances import instances, rarely

__all__ = ["malleabilities", "malleable_windows"]


@st.composite
def malleabilities(draw: st.DrawFn) -> Malleability:
    """Draw one to three shares, a model, and sometimes a stretch for some of the shares."""
    shares = draw(st.sampled_from([(0.5,), (0.5, 0.25), (0.7,), (0.75, 0.5, 0.3)]))
    known = draw(st.sets(st.sampled_from(shares))) if draw(st.booleans()) else set()
    return Malleability(
        shares=shares,
        model=draw(st.sampled_from(RuntimeModel)),
        stretch=FrozenMap({share: draw(st.sampled_from([1.0, 1.3, 2.0, 4.5])) for share in sorted(known)}),
    )


@st.composite
def malleable_windows(draw: st.DrawFn, max_nodes: int = 4, max_jobs: int = 5, max_running: int = 3) -> Instance:
    """Draw a window of which most jobs are malleable."""
    base = draw(instances(max_nodes=max_nodes, max_jobs=max_jobs, max_running=0))
    left = {name: dict(base.cluster.class_of[name].resources) for name in base.cluster.node_names}
    licenses = dict(base.cluster.licenses)
    running: list[Job] = []
    for number in range(draw(st.integers(0, max_running))):
        job = draw(_running_jobs(f"r{number}", base.cluster, left, licenses, base.now))
        if job is not None:
            running.append(job)
    waiting = []
    for job in base.jobs:
        after = job.after
        if draw(rarely()) and running:
            awaited = draw(st.sampled_from(running)).id
            after = (*after, Dependency(job=awaited, type=draw(st.sampled_from(DependencyType))))
        waiting.append(replace(job, after=after, malleability=draw(malleabilities()) if draw(st.booleans()) else None))
    return replace(base, jobs=tuple(draw(st.permutations([*running, *waiting]))))


@st.composite
def _running_jobs(
    draw: st.DrawFn, job_id: str, cluster: Cluster, left: dict[str, dict[str, int]], licenses: dict[str, int], now: int
) -> Job | None:
    """Draw a malleable job that runs on what is `left` of the nodes and `licenses` (both are lowered), or None.

    Its chunks are of one or two kinds, each kind on nodes of its own. It runs on all its cores, on a share of them
    since some time, or on a share until some time.
    """
    names = list(draw(st.permutations(cluster.node_names)))
    chunks: list[Chunk] = []
    stands: list[tuple[str, int, int]] = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        asked = {"cores": draw(st.sampled_from([2, 1, 4, 3]))}
        asked |= {name: 1 for name in ("mem", "gpus") if cluster.totals.get(name, 0) and draw(rarely())}
        fits = [name for name in names if all(left[name].get(what, 0) >= n for what, n in asked.items())]
        on = fits[: draw(st.sampled_from([1, 2]))]
        if not on:
            break
        names = [name for name in names if name not in on]
        for name in on:
            most = min(left[name][what] // n for what, n in asked.items())
            stands.append((name, len(chunks), draw(st.integers(1, min(2, most)))))
        count = sum(of_node for _, kind, of_node in stands if kind == len(chunks))
        chunks.append(Chunk(count=count, resources=Amounts(asked)))
    if not chunks:
        return None
    for name, kind, count in stands:
        for what, amount in chunks[kind].taken(count).items():
            left[name][what] -= amount
    taken = {name: draw(st.integers(0, amount)) for name, amount in licenses.items()}
    for name, amount in taken.items():
        licenses[name] -= amount
    walltime = draw(st.integers(1, 12))
    job = Job(
        id=job_id,
        submit=now - 20,
        steps=(Step(walltime=walltime, request=Request(chunks=tuple(chunks))),),
        licenses=Amounts({name: amount for name, amount in taken.items() if amount}),
        deadline=now + draw(st.integers(1, 30)) if draw(rarely()) else None,
        malleability=draw(malleabilities()),
        weight=draw(st.sampled_from([None, None, 2, 0.25])),
    )
    job_modes = modes(job)
    first, then = draw(st.sampled_from(job_modes)), draw(st.sampled_from(job_modes))
    start = now - draw(st.integers(0, first.time_for(walltime) - 1))
    change = start + draw(st.integers(1, first.time_for(walltime)))
    rest = walltime - first.rate * (change - start)
    pieces = [(start, start + first.time_for(walltime), first)]
    if then is not first and rest > 0 and change + then.time_for(rest) > now:
        pieces = [(start, change, first), (change, change + then.time_for(rest), then)]
    segments = tuple(Segment(start=begin, end=end, allocation=_allocation(stands, mode)) for begin, end, mode in pieces)
    return replace(job, running=Running(start=start, segments=segments))


def _allocation(stands: list[tuple[str, int, int]], mode: Mode) -> tuple[Placement, ...]:
    """Return chunks of a mode on their nodes."""
    return tuple(
        Placement(node=name, chunk=kind, count=count, resources=mode.request.chunks[kind].taken(count))
        for name, kind, count in stands
    )
