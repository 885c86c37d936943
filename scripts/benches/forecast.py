"""Judge what is learnt of runtimes, and forecasts of starts, on replayed logs.

Runtimes: quantiles for each fifth job of the second half of a log, from what had ended when it was submitted, against
the walltime, the mean of the user's last two jobs, and the quantiles of the 16 nearest of its last 300 by walltime and
cores. For how many of the jobs less than the walltime was enough, and how many of these ended within that.

Starts: the log's last jobs are played by EASY backfilling. In the second half starts are forecast when a job is
submitted, and every hour for some of those that wait. A forecast knows what had happened by then; the
intervals are calibrated by the forecasts whose jobs had started. Beside it are three starts by walltimes: those of a
plan in the order of submission, which is what backfilling schedulers expect; those that the rule `slurm` comes to, if
each job takes its walltime and none arrives, as `squeue --start` does; and those that `solve --promise` tells users, of
the planner's plan.
"""

from __future__ import annotations

import argparse
import heapq
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarking.measure import print_table, say
from numpy.typing import NDArray

from cpsched.domain import Instance, Job, Running, Segment
from cpsched.forecast import Calibration, Forecast, Kind, RuntimeLearner, forecast
from cpsched.formats.logs import LogOptions, Selection, read_workload
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from cpsched.portfolio import solve
from cpsched.rules import POLICIES

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
DAY = 86_400
NEVER = 10**9
#: Whose starts by walltimes forecasts are held against.
RIVALS = {"conservative": "in order", "slurm": "of slurm", "promise": "promised"}
#: Jobs of an hour whose starts are forecast.
OF_AN_HOUR = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("logs", nargs="+", type=Path, help="logs in SWF")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of each log that are played, its last ones")
    parser.add_argument("--futures", type=int, default=100, help="futures of a forecast")
    parser.add_argument("--moments", type=int, default=400, help="submissions, and hours, at which starts are forecast")
    parser.add_argument("--keep", type=Path, help="folder for all forecasts, as pickles")


def run(options: argparse.Namespace) -> None:
    """Print a table of runtimes, and one of starts."""
    if options.quick:
        options.jobs, options.futures, options.moments = 400, 20, 5
    header = ["log", "quantiles", "pinball loss", *(f"below {level:.0%}" for level in LEVELS), "enough", "ended within"]
    runtimes = [row for log in options.logs for row in runtime_rows(log, options.jobs if options.quick else None)]
    print_table(
        "Runtimes", header, runtimes, "The loss is a mean over the five quantiles, in parts of the mean runtime."
    )
    told = {}
    for log in options.logs:
        told[log] = list(judged(Played(log, options.jobs), options.moments, options.futures))
        if options.keep is not None:
            (options.keep / f"{name_of(log)}.pickle").write_bytes(pickle.dumps(told[log]))
    header = ["log", "forecast", "number", "in the interval", "of the futures", "error", *RIVALS.values(),
              "ratio to slurm", "within an hour", "of these within a minute"]  # fmt: skip
    rows = [[name_of(log), *row] for log, rows in told.items() for row in start_rows(rows)]
    note = "Errors are medians of absolute ones, in seconds: of the most likely start, and of starts by walltimes."
    print_table("Starts", header, rows, note)


def name_of(log: Path) -> str:
    """Return the first part of the name of a log."""
    return "-".join(log.name.split("-")[:2])


# --- runtimes --------------------------------------------------------------------------------------------------------


def runtime_rows(log: Path, most: int | None) -> Iterator[list[str]]:
    """Yield a row of each kind of quantiles."""
    jobs = read_workload(log)[0].jobs[:most]
    learner, of_user, ends = RuntimeLearner(), dict[str | None, list[tuple[int, int, int]]](), list[tuple[int, int]]()
    losses, below = dict[str, list[float]](), dict[str, list[NDArray[np.bool_]]]()
    lengths, enough = [min(job.runtime or job.walltime, job.walltime) for job in jobs], list[bool | None]()
    for number, job in enumerate(jobs):
        while ends and ends[0][0] <= job.submit:
            done = heapq.heappop(ends)[1]
            over = jobs[done]
            learner.learn(Kind(over.queue, over.user, over.walltime), lengths[done])
            of_user.setdefault(over.user, []).append((over.walltime, over.request.totals["cores"], lengths[done]))
        heapq.heappush(ends, (job.submit + lengths[number], number))
        if number < len(jobs) // 2 or number % 5:
            continue
        most_seconds = learner.enough(Kind(job.queue, job.user, job.walltime))
        enough.append(None if most_seconds is None else lengths[number] <= most_seconds)
        for name, found in quantiles_of(job, learner, of_user.get(job.user, [])).items():
            off = lengths[number] - found
            losses.setdefault(name, []).append(float(np.maximum(LEVELS * off, (LEVELS - 1.0) * off).mean()))
            below.setdefault(name, []).append(lengths[number] <= found)
    mean = float(np.mean(lengths[len(jobs) // 2 :]))
    told = [one for one in enough if one is not None]
    advice = f"{len(told) / len(enough):.0%}", f"{np.mean(told):.1%}" if told else ""
    for name, loss in losses.items():
        shares = np.mean(below[name], axis=0)
        yield [name_of(log), name, f"{np.mean(loss) / mean:.3f}", *(f"{share:.0%}" for share in shares), *advice]


def quantiles_of(
    job: Job, learner: RuntimeLearner, last: Sequence[tuple[int, int, int]]
) -> dict[str, NDArray[np.float64]]:
    """Return the quantiles of the learner and of its rivals."""
    walltime = np.full(len(LEVELS), float(job.walltime))
    found = {"learnt": learner.quantiles(Kind(job.queue, job.user, job.walltime), LEVELS).astype(np.float64)}
    found |= {"walltime": walltime, "last two of the user": walltime, "16 nearest of the user": walltime}
    if last:
        found["last two of the user"] = np.minimum(walltime, np.mean([runtime for *_, runtime in last[-2:]]))
        rows = np.array(last[-300:], dtype=np.float64)
        asked = np.array([job.walltime, job.request.totals["cores"]])
        far = np.abs(np.log(rows[:, :2] / asked)).sum(axis=1) + 0.005 * np.arange(len(rows))[::-1]
        nearest = rows[np.argsort(far, kind="stable")[:16], 2]
        found["16 nearest of the user"] = np.minimum(walltime, np.quantile(nearest, LEVELS, method="inverted_cdf"))
    return found


# --- starts ----------------------------------------------------------------------------------------------------------


class Played:
    """A log, played by EASY backfilling, and what was known of it at each second."""

    def __init__(self, log: Path, count: int) -> None:
        first = max(0, len(read_workload(log)[0].jobs) - count)
        self.instance, _ = read_workload(log, LogOptions(selection=Selection(first=first + 1, jobs=count)))
        self.name = name_of(log)
        history = simulate(self.instance, make_scheduler("easy"))
        runs, has_run = history.runs, history.runs.end >= 0
        by_id = {job.id: job for job in self.instance.jobs}
        names = [name for name, one in zip(runs.ids, has_run.tolist(), strict=True) if one]
        self.jobs = [by_id[name] for name in names]
        self.submit, self.start, self.end = runs.submit[has_run], runs.start[has_run], runs.end[has_run]
        held = {job.id: job.segments[0].allocation for job in history.record().jobs}
        self.allocations = [held[name] for name in names]

    def window(self, now: int) -> tuple[Instance, list[Job]]:
        """Return the window of a second, before any job starts in it, and the jobs that came before."""
        jobs, past = [], []
        came = self.submit <= now
        for place in np.flatnonzero(came & (self.end > now)).tolist():
            job, start = replace(self.jobs[place], runtime=None), int(self.start[place])
            if start < now:
                segment = Segment(start=start, end=start + job.walltime, allocation=self.allocations[place])
                job = replace(job, running=Running(start=start, segments=(segment,)))
            jobs.append(job)
        for place in np.flatnonzero(came & (self.submit > now - 15 * DAY)).tolist():
            job = self.jobs[place]
            past.append(job if self.end[place] <= now else replace(job, runtime=None))
        return replace(self.instance, now=now, jobs=tuple(jobs), outages=()), past

    def waiting(self, now: int) -> list[int]:
        """Return the jobs that wait at a second, and do not start in it."""
        found: list[int] = np.flatnonzero((self.submit <= now) & (self.start > now)).tolist()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A forecast, and what happened."""

    is_at_submission: bool
    waits: bool
    now: int
    start: int
    forecast: Forecast
    #: By rival; `NEVER`: it has none.
    by_walltimes: dict[str, int]


def judged(played: Played, most: int, futures: int) -> Iterator[Told]:
    """Yield forecasts of the second half of a log, in order of time."""
    middle, last = int(np.median(played.submit)), int(played.submit.max())
    late = np.flatnonzero(played.submit >= middle)
    hours = [hour for hour in range(middle, last, 3600) if played.waiting(hour)]
    moments = sorted(
        [(int(played.submit[job]), int(job)) for job in spread(late.tolist(), most)]
        + [(hour, -1) for hour in spread(hours, most)]
    )
    waits = (played.start > played.submit)[late]
    say(f"{played.name}: {waits.sum()} of {len(late)} jobs wait, {len(moments)} moments")
    learner, calibration, random = RuntimeLearner(), Calibration(), np.random.default_rng(0)
    ends, starts = np.argsort(played.end, kind="stable").tolist(), np.argsort(played.start, kind="stable").tolist()
    for number, (now, submitted) in enumerate(moments):
        while ends and played.end[ends[0]] <= now:
            job = ends.pop(0)
            kind = Kind.of(played.jobs[job])
            if kind is not None:
                learner.learn(kind, int(played.end[job] - played.start[job]))
        while starts and played.start[starts[0]] <= now:
            job = starts.pop(0)
            calibration.started(played.jobs[job].id, int(played.start[job]))
        window, past = played.window(now)
        found = forecast(window, learner, past, calibration=calibration, futures=futures, seed=number)
        by_id = {one.job: one for one in found}
        planned = rival_starts(window)
        chosen = [submitted] if submitted >= 0 else random.permutation(played.waiting(now))[:OF_AN_HOUR].tolist()
        for job in chosen:
            name, start = played.jobs[job].id, int(played.start[job])
            one = by_id[name]
            if one.played.high > now:  # certain: nothing to learn for the others
                calibration.told(name, one.played)
            yield Told(
                is_at_submission=submitted >= 0,
                waits=start > int(played.submit[job]),
                now=now,
                start=start,
                forecast=one,
                by_walltimes={rival: starts.get(name, NEVER) for rival, starts in planned.items()},
            )
        if number % 100 == 0:
            say(f"{played.name}: {number} of {len(moments)}")


def rival_starts(window: Instance) -> dict[str, dict[str, int]]:
    """Return the starts of jobs by rival."""
    history = simulate(window, make_scheduler("slurm")).runs
    has_run = history.start >= 0
    names = [name for name, one in zip(history.ids, has_run.tolist(), strict=True) if one]
    plans = {
        "conservative": POLICIES["conservative"].plan(window, None),
        "promise": solve(window, engine="planner", budget=0),
    }
    found = {rival: {job.id: job.start for job in plan.jobs} for rival, plan in plans.items()}
    return {**found, "slurm": dict(zip(names, history.start[has_run].tolist(), strict=True))}


def spread(values: Sequence[int], most: int) -> list[int]:
    """Return at most so many of some values, evenly."""
    return [values[place * len(values) // most] for place in range(most)] if len(values) > most else list(values)


def start_rows(told: Sequence[Told]) -> Iterator[list[str]]:
    """Yield the rows of a log: the forecasts at submission, and the hourly ones."""
    for name, some in (
        ("at submission", [one for one in told if one.is_at_submission]),
        ("at submission, of those that wait", [one for one in told if one.is_at_submission and one.waits]),
        ("each hour", [one for one in told if not one.is_at_submission]),
    ):
        inside = [is_between(one.start, one.forecast.earliest, one.forecast.latest) for one in some]
        raw = [one.forecast.played.low <= one.start <= one.forecast.played.high for one in some]
        errors = np.array([abs((one.forecast.likely or NEVER) - one.start) for one in some])
        others = {rival: np.median([abs(one.by_walltimes[rival] - one.start) for one in some]) for rival in RIVALS}
        soon = np.array([one.start - one.now <= 3600 for one in some])
        ratio = np.median(errors) / max(1.0, float(others["slurm"]))
        yield [
            name, str(len(some)), f"{np.mean(inside):.0%}", f"{np.mean(raw):.0%}", f"{np.median(errors):,.0f}",
            *(f"{error:,.0f}" for error in others.values()), f"{ratio:.2f}", f"{soon.mean():.0%}",
            f"{(errors[soon] <= 60).mean():.0%}" if soon.any() else "",
        ]  # fmt: skip


def is_between(start: int, earliest: int | None, latest: int | None) -> bool:
    """Tell whether a start is in an interval, whose missing end is never."""
    return earliest is not None and earliest <= start and (latest is None or start <= latest)
