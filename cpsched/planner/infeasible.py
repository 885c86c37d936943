"""Jobs that no plan has: not even beside the running jobs alone do they start in time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache

from cpsched.booking import Ledger
from cpsched.domain import Instance, Job
from cpsched.problem import Precedences, awaited_first, by_job, placeable, refusals


def placeable_beside(instance: Instance, planned: Collection[str]) -> frozenset[str]:
    """Return the ids of all jobs that a plan could have, running ones included, given those of one plan."""
    found = placeable(instance)
    left_out = found.difference(planned)
    return found - hopeless(instance, left_out) if left_out else found


def hopeless(instance: Instance, names: Collection[str], bare: Ledger | None = None) -> frozenset[str]:
    """Return those of some waiting jobs that are proven to be in no plan.

    *Proof.* What runs and does not change is in every plan, and other jobs only take more. A rigid job of one kind of
    chunks that finds no start on a ledger with the running jobs alone has none in any plan; the start that it finds
    is its earliest in any plan. So no job starts before the earliest ends of those for which it waits.

    `instance`, `names`: the window, and the jobs that are asked about. `bare`: a ledger of all jobs on which none is
    booked; None: one is made. Where jobs wait for others it does not serve.
    """
    waiting = {job.id: job for job in instance.elements() if job.running is None}
    chosen = _and_awaited(instance, waiting, [name for name in waiting if name in names])
    jobs = awaited_first(instance, [waiting[name] for name in chosen])
    lost = set(refusals(instance, jobs))
    if bare is None or any(job.after for job in jobs):
        ledger = Ledger(instance, [replace(job, after=()) for job in jobs if job.id not in lost])
    else:
        ledger = bare
    if ledger.running.changeable:
        return frozenset()
    precedences, earliest = Precedences(instance, jobs), dict[str, int]()
    milestones = precedences.milestones()
    waits = {jobs[index].id: waited for index, waited in by_job(one.after for one in milestones).items()}

    @cache
    def moment(number: int) -> int | None:
        """Return the earliest second of a milestone in any plan; None: in no plan it is reached."""
        before = [(jobs[index].id, seconds) for index, seconds in milestones[number].before]
        is_reached = all(name in earliest for name, _ in before)
        return max(earliest[name] + seconds for name, seconds in before) if is_reached else None

    alike: dict[object, int | None] = {}  # the starts of jobs that ask alike
    for job in jobs:
        if job.id in lost:
            continue
        begin = max(instance.earliest_start(job), instance.now + (precedences.released(job) or 0))
        last = instance.latest_start(job)
        passed = [(moment(number), delay) for number, delay in waits.get(job.id, ())]
        times = [time + delay for time, delay in passed if time is not None]
        if len(times) < len(passed):
            lost.add(job.id)
            continue
        begin = max([begin, *times])
        start: int | None = begin
        if not (job.changes or job.alternatives) and len(job.request.chunks) == 1:
            key = job.steps, job.licenses, job.start_at, begin, last
            if key not in alike:
                alike[key] = ledger.place([job.id], earliest=begin).get(job.id)
            start = alike[key]
        if start is None or (last is not None and start > last):
            lost.add(job.id)
        else:
            earliest[job.id] = start
        if ledger.is_booked(job.id):
            ledger.release(job.id)
    return frozenset(lost.intersection(names))


def _and_awaited(instance: Instance, waiting: Mapping[str, Job], names: Sequence[str]) -> list[str]:
    """Return waiting jobs and all waiting ones for which they wait, directly or not."""
    members, found, asked = instance.members(), dict.fromkeys(names), set[str]()
    pending = list(found)
    for name in pending:
        for dependency in waiting[name].after:
            if dependency.job not in asked:
                asked.add(dependency.job)
                more = [one for one in members[dependency.job] if one in waiting and one not in found]
                found |= dict.fromkeys(more)
                pending += more
    return pending
