"""The engine that a daemon's own past speaks for: its last jobs planned again, window after window, by each engine."""

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

#: The most jobs that are planned again: a second for some 20 of them.
MOST = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An engine, and the evidence for it."""

    engine: str
    #: How many jobs were planned again, and the seconds of the first and the last submission.
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
    """Return the best engine of those that win over the first one on the last jobs of a past; the first, if none does.

    A past of less than a week, or of less than 100 jobs that have ended, says too little.

    Raises `CpschedError` if an engine cannot plan the jobs.

    `past`: the machine, and its jobs with their runtimes; None: there is none. `engines`: rules; the usual one
    first. `window`: the most waiting jobs that are planned at a time. `most`: the most jobs. `progress`: called
    with (simulations done, at the most).
    """
    usual, *others = engines
    known = () if past is None else past.jobs
    jobs = sorted((job for job in known if job.runtime is not None and job.running is None), key=_submission)
    last = jobs[-most:]
    begin, end = (last[0].submit, last[-1].submit) if last else (0, 0)
    is_enough = len(last) >= LEAST_JOBS and jobs[-1].submit - jobs[0].submit >= LEAST_SECONDS
    trials: dict[str, Trial] = {}
    if past is not None and is_enough:
        here = {name for job in last for name in (job.id, *job.element_ids)}
        again = trusted(replace(past, now=begin, jobs=tuple(_unbound(job, here) for job in last)))

        done = count(1)

        def played(replica: Instance) -> Callable[[str], Figures]:
            def play(engine: str) -> Figures:
                found = _figures(replica, engine, window)
                if progress is not None:
                    progress(next(done), REPLICAS * len(engines))
                return found

            return play

        found = contest(again, usual, others, played, Random(0))  # noqa: S311 - replicas, no secret
        trials = dict(zip(others, found, strict=True))
    best = winner(tuple(trials.values()))
    return EngineChoice(
        engine=usual if best is None else others[best], jobs=len(last), begin=begin, end=end, trials=trials
    )


def _submission(job: Job) -> tuple[int, str]:
    return job.submit, job.id


def _unbound(job: Job, here: set[str]) -> Job:
    """Return a job that waits for none of those that are not played, and is bound to no time that has passed."""
    after = tuple(one for one in job.after if one.job in here)
    return replace(job, after=after, not_before=None, start_at=None, deadline=None, reservation=None)


def _figures(replica: Instance, engine: str, window: int | None) -> Figures:
    """Return what an engine makes of jobs."""
    runs = simulate(replica, make_engine_scheduler(engine, window=window)).as_run(engine).runs
    jobs = replica.elements()
    weights = np.array([float(replica.weight(job) / replica.expected_wait(job)) for job in jobs], dtype=np.float64)
    has_run = runs.start >= 0
    return figures_of(runs.submit[has_run], runs.start[has_run], runs.end[has_run], weights[has_run])
