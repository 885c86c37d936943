"""History played again: the days of a site's own past under its own rules and under others, beside what happened."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import FrozenMap, Instance, Job
from cpsched.errors import DocumentError, Fault
from cpsched.formats import trusted
from cpsched.lab.bench.figures import rows_of
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.lab.workloads import moved
from cpsched.metrics import Ending, Runs, RunsSummary, SimulatedRun, fidelity
from cpsched.report import CampaignCell, Replay

_DAY = 86_400
#: Seconds after the last day from which jobs are still played: those of the last day wait beside them.
_AFTER = 7 * _DAY
#: By how many seconds at most a replica moves each submission.
MOVED = 600
#: What happened, and the replay without a change.
REAL, UNCHANGED = "as it was", "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Some days of a past."""

    #: The jobs that run or wait when the first day begins, those of the days, and those that come while these wait.
    instance: Instance
    #: When jobs really started, by their ids; empty where nobody knows.
    starts: Mapping[str, int]
    #: The seconds between which the jobs that count are submitted.
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A scheduler and a machine with its rules."""

    label: str
    scheduler: str
    parameters: Mapping[str, object] = FrozenMap()
    #: Whose jobs do not matter.
    machine: Instance


def days_of(past: Instance, starts: Mapping[str, int], first: str | None, last: str | None) -> Days:
    """Return the days of a past from the beginning of one to the beginning of another.

    When the first day begins, the machine is as it was: jobs that ran then come at their real starts, and jobs that
    waited then may not start before. Raises `DocumentError` if a day is none, or none of the past, or without jobs.

    `past`: what a site has seen, its machine, and its jobs with their runtimes. `starts`: as `Days` has them. `first`,
    `last`: each a date of the site's calendar, ``2026-11-03``, or a number of days since the first submission;
    None: its beginning, and its end.
    """
    jobs = past.jobs
    if not jobs:
        raise DocumentError(past.name, [Fault("jobs", "Expected jobs that ran, got a history without any")])
    submits = [job.submit for job in jobs]
    origin, horizon = max(past.now, min(submits)), max(submits) + 1
    begin = origin if first is None else _second("--from", first, past, origin, horizon)
    end = horizon if last is None else _second("--to", last, past, origin, horizon + _DAY)
    if begin <= origin:
        begin = min(submits)  # what runs and waits by then is in the instance
    if not any(begin <= submit < end for submit in submits):
        raise DocumentError("--from", [Fault("", f"Expected days on which jobs came, got none from {first} to {last}")])
    real = [starts[job.id] for job in jobs if begin <= job.submit < end and job.id in starts]
    until = min(max(real, default=0), end + _AFTER)
    taken = [again for job in jobs if (again := _taken(job, starts, begin, max(end, until))) is not None]
    here = {name for job in taken for name in (job.id, *job.element_ids)}
    # it waits for none of the jobs that are not played
    taken = [replace(job, after=tuple(one for one in job.after if one.job in here)) for job in taken]
    now = past.now if any(job.running for job in taken) else min(job.submit for job in taken)
    instance = trusted(replace(past, jobs=tuple(taken), now=now))
    return Days(instance=instance, starts=starts, begin=begin, end=end)


def _second(option: str, day: str, instance: Instance, origin: int, horizon: int) -> int:
    fault = f"Expected a number of days since the first submission, as the history has no calendar, got {day!r}"
    found = None
    if re.fullmatch("[0-9]{1,6}", day):
        found = origin + int(day) * _DAY
    elif instance.epoch is not None:
        fault = f"Expected a date as 2026-11-03, or a number of days, got {day!r}"
        with suppress(ValueError, OverflowError):
            local = instance.local_time(0) or instance.epoch
            midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), tzinfo=local.tzinfo)
            found = int((midnight - instance.epoch).total_seconds())
    if found is not None and origin - _DAY < found < horizon:
        return found
    if found is not None:
        first, last = (_day_of(instance, second, origin) for second in (origin, horizon - 1))
        fault = f"Expected a day of the history, which goes from {first} to {last}, got {day}"
    raise DocumentError(option, [Fault("", fault)])


def _day_of(instance: Instance, second: int, origin: int) -> str:
    local = instance.local_time(second)
    return str((second - origin) // _DAY) if local is None else f"{local:%Y-%m-%d}"


def _taken(job: Job, starts: Mapping[str, int], begin: int, end: int) -> Job | None:
    """Return a job as it is played: as it was, or what of it is left when the first day begins; None: it is not."""
    if job.submit >= end:
        return None
    start = starts.get(job.id)
    if job.submit >= begin:
        return job
    if start is None:
        return None
    if start >= begin:
        return replace(job, not_before=max(begin, job.not_before or 0))
    lasts = min(job.walltime, job.runtime or job.walltime)
    return replace(job, submit=start, not_before=None, running=None, after=()) if start + lasts > begin else None


def replay(
    days: Days, rules: Sequence[Rules], *, replicas: int, progress: Callable[[int, int], None] | None = None
) -> Replay:
    """Play days of a past under several rules, and compare: with what happened, and with each other.

    Raises `CpschedError` if a scheduler cannot run the jobs. Raises `ValueError` if there are no replicas.

    `rules`: those of the site first. `replicas`: how often each is played: once with the jobs as they came, and then
    with each submission moved at random by some minutes. `progress`: called with (simulations done, in all).
    """
    if replicas < 1:
        raise ValueError(f"Expected 1 replica or more, got {replicas}")
    played: list[SimulatedRun] = []
    summaries: dict[str, RunsSummary] = {}
    cells: list[CampaignCell] = []
    counted: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
    real: SimulatedRun | None = None
    jobs = days.instance
    for number in range(replicas):
        again = moved(jobs, MOVED, number).jobs if number else jobs.jobs
        for one in rules:
            workload = trusted(replace(one.machine, jobs=again, now=jobs.now))
            history = simulate(workload, make_scheduler(one.scheduler, one.parameters))
            run = history.as_run(one.label)
            if not counted.size:
                counted = _counted(run.runs, days)
                if not counted.any():
                    raise DocumentError(jobs.name, [Fault("jobs", "Expected jobs that came and waited, got none")])
                real = _as_it_was(run, days.starts)
                if real is not None:
                    summaries[real.policy] = real.summary(only=counted)
            summary = run.summary(only=counted)
            if not number:
                played.append(run)
                summaries[run.policy] = summary
            result = {"summary": summary.as_document(), "seconds": history.elapsed, "counters": history.counters}
            replica, (total, *_) = f"replica {number}", rows_of(result)
            cells.append(CampaignCell(workload=run.workload, policy=run.policy, replica=replica, figures=total.figures))
            if progress is not None:
                progress(len(cells), replicas * len(rules))
    return Replay(
        name=days.instance.name,
        real=real,
        runs=tuple(played),
        summaries=summaries,
        only=counted,
        fidelity=None if real is None else fidelity(real.runs, played[0].runs, counted),
        cells=tuple(cells),
        replicas=replicas,
    )


def _counted(runs: Runs, days: Days) -> NDArray[np.bool_]:
    """Return which jobs count: those of the days, and where real starts are known, those that really started."""
    found: NDArray[np.bool_] = (days.begin <= runs.submit) & (runs.submit < days.end)
    found &= ~np.array([job.running is not None for job in days.instance.elements()], dtype=np.bool_)
    has_started = np.array([id in days.starts for id in runs.ids], dtype=np.bool_)
    return found & has_started if (found & has_started).any() else found


def _as_it_was(run: SimulatedRun, starts: Mapping[str, int]) -> SimulatedRun | None:
    """Return the real history of the jobs of a simulation; None where nobody knows it."""
    runs = run.runs
    start = np.array([starts.get(id, -1) for id in runs.ids], dtype=np.int64)
    is_known = start >= runs.submit
    if not is_known.any():
        return None
    start = np.where(is_known, start, -1)
    lasts = np.where(runs.runtime >= 0, runs.runtime, runs.walltime)
    happened = replace(
        runs,
        start=start,
        end=np.where(is_known, start + lasts, -1),
        first_start=start,
        attempts=is_known.astype(np.int64),
        lost=np.zeros_like(start),
        ending=np.where(is_known, Ending.COMPLETED, Ending.WAITING).astype(np.int8),
    )
    return replace(run, policy=REAL, runs=happened, decision_seconds=np.empty(0), elapsed=0.0)
