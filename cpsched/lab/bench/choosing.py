"""The engine that a daemon's own past speaks for: stretches of it planned again, window by window, by each engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random

import numpy as np

from cpsched.domain import Instance, Job
from cpsched.formats import trusted
from cpsched.lab.policies import make_engine_scheduler
from cpsched.lab.sim import (
    LEAST_JOBS,
    LEAST_SECONDS,
    REPLICAS,
    Figures,
    Trial,
    contest,
    figures_of,
    simulate,
    winner,
)

#: The most jobs of a replica: some 15 are planned in a second.
MOST = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An engine, and the evidence for it."""

    engine: str
    #: How many jobs the replicas have, at the most, and the seconds of the first and the last submission.
    jobs: int
    begin: int
    end: int
    #: By engine, relative to the usual one; empty where the past says too little.
    trials: Mapping[str, Trial]


def choose_engine(
    past: Instance | None,
    engines: Sequence[str],
    *,
    window: int | None = None,
    most: int = MOST,
    progress: Callable[[int, int], None] | None = None,
) -> EngineChoice:
    """Return the best engine of those that win over the first one on a past; the first one, if none does.

    The replicas of a long past are stretches of it, evenly spaced. One of less than a week, or of less than 100 jobs
    that have ended, says too little.

    Raises `CpschedError` if an engine cannot plan the jobs.

    `past`: the machine, and its jobs with their runtimes; None: there is none. `engines`: rules; the usual one
    first. `window`: the most waiting jobs that are planned at a time. `most`: the most jobs of a replica. `progress`:
    called with (simulations done, at the most).
    """
    usual, *others = engines
    known = () if past is None else past.jobs
    jobs = sorted((job for job in known if job.runtime is not None and job.running is None), key=_submission)
    begin, end = (jobs[0].submit, jobs[-1].submit) if jobs else (0, 0)
    trials: dict[str, Trial] = {}
    if past is not None and len(jobs) >= LEAST_JOBS and end - begin >= LEAST_SECONDS:
        spare = max(0, len(jobs) - most)
        firsts = [spare - spare * number // (REPLICAS - 1) for number in range(REPLICAS)]
        pasts = [_stretch(past, jobs[first : first + most]) for first in firsts]
        done = count(1)

        def played(replica: Instance) -> Callable[[str], Figures]:
            def play(engine: str) -> Figures:
                found = _figures(replica, engine, window)
                if progress is not None:
                    progress(next(done), REPLICAS * len(engines))
                return found

            return play

        found = contest(pasts, usual, others, played, Random(0))  # noqa: S311 - replicas, no secret
        trials = dict(zip(others, found, strict=True))
    best = winner(tuple(trials.values()))
    engine, number = usual if best is None else others[best], min(len(jobs), REPLICAS * most)
    return EngineChoice(engine=engine, jobs=number, begin=begin, end=end, trials=trials)


def _submission(job: Job) -> tuple[int, str]:
    return job.submit, job.id


def _stretch(past: Instance, jobs: Sequence[Job]) -> Instance:
    """Return a past of some jobs, which wait for none of the others, and are bound to no time that has passed."""
    here = {name for job in jobs for name in (job.id, *job.element_ids)}

    def unbound(job: Job) -> Job:
        after = tuple(one for one in job.after if one.job in here)
        return replace(job, after=after, not_before=None, start_at=None, deadline=None, reservation=None)

    return trusted(replace(past, now=jobs[0].submit, jobs=tuple(map(unbound, jobs))))


def _figures(replica: Instance, engine: str, window: int | None) -> Figures:
    """Return the figures of jobs under an engine."""
    runs = simulate(replica, make_engine_scheduler(engine, window=window)).as_run(engine).runs
    jobs = replica.elements()
    weights = np.array([float(replica.weight(job) / replica.expected_wait(job)) for job in jobs], dtype=np.float64)
    has_run = runs.start >= 0
    return figures_of(runs.submit[has_run], runs.start[has_run], runs.end[has_run], weights[has_run])
