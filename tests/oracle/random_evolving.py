"""Random tiny instances in which jobs evolve: those of `random_instances`, whose jobs get steps."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from cpsched.domain import Amounts, Chunk, Instance, Job, Request, Running, Segment, Step, needs_migration
from tests.oracle.random_instances import instances, rarely

__all__ = ["evolving_instances", "evolving_jobs"]


@st.composite
def _requests(draw: st.DrawFn, base: Request) -> Request:
    """Draw what a step asks for: more or fewer of the same chunks, sometimes other amounts in them."""
    more = draw(st.sampled_from([1, 0, -1]))
    kinds = []
    for chunk in base.chunks:
        amounts = {
            name: draw(st.sampled_from([amount, amount, amount + 1, max(1, amount - 1)])) if draw(rarely()) else amount
            for name, amount in chunk.resources.items()
        }
        kinds.append(Chunk(count=max(1, chunk.count + more), resources=Amounts(amounts), where=chunk.where))
    return Request(chunks=tuple(kinds), place=base.place)


@st.composite
def evolving_jobs(draw: st.DrawFn, job: Job, most_steps: int = 4) -> Job:
    """Draw steps for a waiting job, which may be held for longer; its first chunks say what they ask for."""
    base = job.steps[0].request
    few = tuple(replace(chunk, count=min(chunk.count, 2)) for chunk in base.chunks[: draw(st.sampled_from([1, 1, 2]))])
    base = replace(base, chunks=few)
    count = draw(st.integers(2, most_steps))
    steps = tuple(
        Step(walltime=draw(st.integers(1, 4)), request=draw(_requests(base)) if step else base) for step in range(count)
    )
    assume(needs_migration(steps) is None)
    limit = draw(st.sampled_from([1, 1.5, 2, None, None]))
    return replace(job, steps=steps, expand_limit=limit, queue=None if draw(st.booleans()) else job.queue)


@st.composite
def _grown_later(draw: st.DrawFn, job: Job) -> Job:
    """Draw for a running job a time at which it gets, or gives back, some of its nodes."""
    assert job.running is not None
    (segment,) = job.running.segments
    if len(segment.allocation) < 2 or segment.end - segment.start < 2:
        return job
    change = draw(st.integers(segment.start + 1, segment.end - 1))
    some = segment.allocation[: draw(st.integers(1, len(segment.allocation) - 1))]
    parts = [segment.allocation, some]
    if draw(st.booleans()):
        parts.reverse()
    before, after = parts
    running = Running(
        start=segment.start,
        segments=(
            Segment(start=segment.start, end=change, allocation=before),
            Segment(start=change, end=segment.end, allocation=after),
        ),
    )
    request = job.steps[0].request
    steps = tuple(Step(walltime=part.end - part.start, request=request) for part in running.segments)
    return replace(job, running=running, steps=steps)


@st.composite
def evolving_instances(draw: st.DrawFn, max_nodes: int = 5, max_jobs: int = 6, max_running: int = 3) -> Instance:
    """Draw an instance in which about half of the waiting jobs evolve, and running ones grow or shrink."""
    instance = draw(instances(max_nodes, max_jobs, max_running))
    jobs = []
    for job in instance.jobs:
        if job.running is not None:
            jobs.append(draw(_grown_later(job)))
        elif draw(st.booleans()):
            jobs.append(draw(evolving_jobs(job)))
        else:
            jobs.append(job)
    return replace(instance, jobs=tuple(jobs))
