"""Earliest starts: when each job could begin if it had the machine to itself, beside what runs now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpsched.booking import Ledger
from cpsched.domain import Arrangement, Chunk, Instance, Job
from cpsched.engine import Budget
from cpsched.problem import own_start, refusal


def earliest_starts(instance: Instance, jobs: Sequence[Job], budget: Budget) -> list[int]:
    """Return for each job a second (on the instance's clock) before which no plan can start it.

    It is exact for one kind of chunks: nodes are filled completely, and running jobs only end. A request of
    several kinds is searched kind by kind, since its mapping to nodes is no exact search; the latest start counts.
    Evolving jobs count with their first step, those with alternatives by the one that starts first. Malleable jobs are
    left out. When the budget is spent, the remaining
    jobs get the earliest start of their own limits.
    """
    starts = [own_start(instance, job) for job in jobs]
    if all(job.running is None for job in instance.jobs):
        return starts
    probes: dict[Job, int] = {}
    asked: list[list[list[Job]]] = []
    for job, start in zip(jobs, starts, strict=True):
        asked.append([[]] if job.malleability is not None else [_probes(one, start) for one in job.choices])
        for of_choice in asked[-1]:
            for probe in of_choice:
                probes.setdefault(probe, len(probes))
    admitted = [replace(probe, id=str(number)) for probe, number in probes.items() if refusal(instance, probe) is None]
    ledger = Ledger(instance, admitted)
    found: dict[str, int] = {}
    for probe in admitted:
        if not budget.remaining:
            break
        ledger.plan([probe.id])
        planned = ledger.planned(probe.id)
        if planned is not None:
            found[probe.id] = planned.start
            ledger.release(probe.id)
    return [
        min(max([start, *(found.get(str(probes[probe]), start) for probe in of_choice)]) for of_choice in of_job)
        for of_job, start in zip(asked, starts, strict=True)
    ]


def _probes(job: Job, start: int) -> list[Job]:
    """Return jobs of which each must be able to start when `job` does; jobs that ask the same give equal probes."""
    step = job.steps[0]
    kinds: list[tuple[Chunk, ...]] = [(chunk,) for chunk in step.request.chunks]
    if step.request.place.arrangement is Arrangement.PACK:
        kinds = [step.request.chunks]
    return [
        Job(
            id="",
            submit=start,
            not_before=start,
            steps=(replace(step, request=replace(step.request, chunks=chunks)),),
            licenses=job.licenses,
        )
        for chunks in kinds
    ]
