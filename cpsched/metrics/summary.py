"""The figures of a simulation: waits, slowdowns, lateness, utilisation, fairness; in all, per queue, size and user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.metrics.fairness import jain_index, overtaken
from cpsched.metrics.runs import Ending, Runs
from cpsched.metrics.series import load_over_time

#: Where classes of jobs end, by run time and by nodes, such that those of SD-14 are among them.
_CLASS_HOURS = (4, 12, 24)
_CLASS_NODES = (64, 512, 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Statistics of many values; the percentile is interpolated between the two nearest values."""

    mean: float
    median: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The scheduler's computing time per decision, in seconds; the mean is AO of BRIDI-19."""

    count: int
    mean: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a set of jobs. Times count only for jobs that are over: completed, or killed at their walltime."""

    #: completed + killed + refused + waiting.
    jobs: int
    completed: int
    killed: int
    refused: int
    #: Not over by the end. Their waits are not in the figures, which are too low where this is not 0.
    waiting: int
    #: Attempts beyond a job's first.
    restarts: int
    #: Cores x seconds that the jobs have held in their last attempts.
    core_seconds: int
    #: Cores x seconds of the runs that were cut short, without what checkpoints kept: work that is lost.
    lost_core_seconds: int
    #: From submission to start and to end, in seconds; None, as all of its kind, where no job is over.
    wait: Distribution | None
    response: Distribution | None
    #: Response / seconds that the job ran, at least 1.
    slowdown: Distribution | None
    #: max(1, response / max(10, seconds that the job ran)).
    bounded_slowdown: Distribution | None
    #: Response / seconds that the job takes on its full request, even if it was stretched (SD-12).
    static_slowdown: Distribution | None
    #: WQT of BRIDI-19: sum of wait / expected wait.
    wqt: float
    #: NL of BRIDI-19: how many wait longer than expected.
    late: int
    #: TR of BRIDI-19: seconds waited beyond what was expected, summed.
    tardiness: int
    #: The same seconds, each job's divided by its expected wait, summed.
    weighted_tardiness: float
    #: How many have waited for their first start longer than the ``max_wait`` of their queue, hard or not; those count
    #: that still wait at the end.
    overdue: int
    #: How many have waited for their start, or still wait, for longer than twice the longest wait in turn and the
    #: longest walltime. In turn, one server with all cores takes the jobs as they come, each for its work: first come,
    #: first served hardly makes anybody wait for so long.
    starved: int
    #: Share of the jobs, refused ones left out, that `overtaken` finds; None where there are none.
    unfairly_delayed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The jobs of one queue, one size class or one user."""

    #: None: the jobs without queue or user.
    key: str | None
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """The use of a resource by running jobs: their requests, for as long as they run."""

    name: str
    #: The amount that the machine has.
    capacity: int
    allocated: float
    effective: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsSummary:
    """The figures of a simulation."""

    #: The figures of all jobs that count.
    total: Figures
    #: Number of jobs that do not count, as warm-up and cool-down.
    cut: int
    #: From the first arrival to the last end of the jobs that count, in seconds (SD-12); 0 where none is over.
    makespan: int
    #: The interval of utilisation and queue: ``[begin, end)``, from the first arrival that counts to the first
    #: that is cut off at the end, or to the last event where none is.
    begin: int
    end: int
    #: Share of the cores that jobs hold, and share held by jobs that complete (EVO-12); over all jobs.
    allocated: float
    effective: float
    #: The same for all resources of the machine, licences too.
    by_resource: tuple[ResourceUse, ...]
    #: Number of waiting jobs over time, of all jobs.
    mean_queue_length: float
    max_queue_length: int
    #: Jain's index over the users' mean bounded slowdowns; None where no job with a user is over.
    jain: float | None
    #: None where the scheduler was not timed.
    decisions: Decisions | None
    #: By name, jobs without one last.
    by_queue: tuple[Group, ...]
    #: By cores, from small to large: 1, 2-8, 9-64, 65-512, ...
    by_size: tuple[Group, ...]
    #: By the seconds that a job takes on its full request, and by its nodes, from short to long (SD-14).
    by_class: tuple[Group, ...]
    #: By the days of 24 h since the first submission that counts: ``day 1``, ``day 2``.
    by_day: tuple[Group, ...]
    by_user: tuple[Group, ...]

    def as_document(self) -> dict[str, Any]:
        """Return the figures as numbers, texts, lists and objects of JSON."""
        return asdict(self)


def runs_summary(
    runs: Runs,
    capacity: int,
    *,
    resources: Mapping[str, int] | None = None,
    warm_up: float = 0.0,
    cool_down: float = 0.0,
    only: NDArray[np.bool_] | None = None,
    decision_seconds: Sequence[float] | NDArray[np.float64] = (),
) -> RunsSummary:
    """Return the figures of a simulation (SD-14).

    Raises `ValueError` if the capacity is not positive, or the shares are negative or leave nothing.

    `runs`: the outcome of each job.
    `capacity`: cores of the machine, > 0.
    `resources`: the machine's amount of each resource, > 0; none by default.
    `warm_up`, `cool_down`: shares of the jobs, first and last in the order of submission, that do not count: the
      machine fills and drains while they are there. They are shares of the jobs and not seconds, so that one setting
      fits logs of every length, and the same jobs count for each policy, whose figures can then be compared job by job.
      The jobs that are cut off still hold cores, wait in the queue and overtake.
    `only`: which jobs count, in place of these shares; at least one does. All others are as those that are cut off.
    `decision_seconds`: seconds that each decision of the scheduler took.
    """
    if capacity <= 0:
        raise ValueError(f"expected capacity > 0, got {capacity}")
    if warm_up < 0 or cool_down < 0 or warm_up + cool_down >= 1:
        raise ValueError(f"expected warm_up and cool_down >= 0 with a sum below 1, got {warm_up} and {cool_down}")
    counted, begin, end = _measured(runs, warm_up, cool_down, only)
    fates = _Fates(overtaken(runs), _is_overdue(runs), _is_starved(runs, capacity))
    mean_queue_length, max_queue_length = _queue_lengths(runs, begin, end)
    by_user, over = _groups(runs, fates, counted, *_by_name(counted, runs.users)), counted[runs.over[counted]]
    slowdowns = (group.figures.bounded_slowdown for group in by_user if group.key is not None)
    of_cores = _use(runs, runs.cores, begin, end, "cores", capacity)
    return RunsSummary(
        total=_figures(runs, fates, counted),
        cut=len(runs) - counted.size,
        makespan=int(runs.end[over].max() - runs.submit[counted].min()) if over.size else 0,
        begin=begin,
        end=end,
        allocated=of_cores.allocated,
        effective=of_cores.effective,
        by_resource=tuple(
            _use(runs, runs.asked[name], begin, end, name, amount) for name, amount in (resources or {}).items()
        ),
        mean_queue_length=mean_queue_length,
        max_queue_length=max_queue_length,
        jain=jain_index([slowdown.mean for slowdown in slowdowns if slowdown is not None]),
        decisions=_decisions(np.asarray(decision_seconds, dtype=np.float64)),
        by_queue=_groups(runs, fates, counted, *_by_name(counted, runs.queues)),
        by_size=_groups(runs, fates, counted, *_by_size(runs, counted)),
        by_class=_groups(runs, fates, over, *_by_class(runs, over)),
        by_day=_groups(runs, fates, counted, *_by_day(runs, counted)),
        by_user=by_user,
    )


def _measured(
    runs: Runs, warm_up: float, cool_down: float, only: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], int, int]:
    """Return the jobs that count, in document order, and the time over which the machine is measured."""
    in_order = np.argsort(runs.submit, kind="stable")
    first, last = int(len(runs) * warm_up), len(runs) - int(len(runs) * cool_down)
    if only is not None:
        places = np.flatnonzero(only[in_order])
        first, last = int(places[0]), int(places[-1]) + 1
    if first == last:
        return in_order[first:last], 0, 0
    begin = int(runs.submit[in_order[first]])
    end = int(runs.submit[in_order[last]]) if last < len(runs) else runs.horizon
    return np.sort(in_order[first:last]) if only is None else np.flatnonzero(only), begin, end


class _Fates(NamedTuple):
    """Which jobs are in a state that depends on other jobs."""

    is_overtaken: NDArray[np.bool_]
    is_overdue: NDArray[np.bool_]
    is_starved: NDArray[np.bool_]


def _is_overdue(runs: Runs) -> NDArray[np.bool_]:
    """Return which jobs waited for their first start, or still wait, for longer than their queue's ``max_wait``."""
    until = np.where(runs.first_start >= 0, runs.first_start, runs.horizon)
    found: NDArray[np.bool_] = (runs.max_wait >= 0) & (until - runs.submit > runs.max_wait)
    found &= runs.ending != Ending.REFUSED
    return found


def _is_starved(runs: Runs, capacity: int) -> NDArray[np.bool_]:
    """Return which jobs waited for longer than twice the longest wait in turn and the longest walltime."""
    if not len(runs):
        return np.zeros(0, dtype=np.bool_)
    order = np.argsort(runs.submit, kind="stable")
    work = np.where(runs.over, runs.cores * (runs.end - runs.start), 0)[order]
    ahead = np.cumsum(work) - work - capacity * runs.submit[order]
    in_turn = int((ahead - np.minimum.accumulate(ahead)).max())
    wait = np.where(runs.start >= 0, runs.start, runs.horizon) - runs.submit
    found: NDArray[np.bool_] = capacity * (wait - int(runs.walltime.max())) > 2 * in_turn
    found &= runs.ending != Ending.REFUSED
    return found


def _figures(runs: Runs, fates: _Fates, jobs: NDArray[np.int64]) -> Figures:
    of_ending = np.bincount(runs.ending[jobs], minlength=len(Ending))
    over = jobs[runs.over[jobs]]
    may_run = jobs[runs.ending[jobs] != Ending.REFUSED]
    held = np.maximum(0, runs.end[jobs] - runs.start[jobs])
    wait, response = runs.wait[over], runs.end[over] - runs.submit[over]
    expected = runs.expected_wait[over]
    behind = np.maximum(0, wait - expected)
    return Figures(
        jobs=jobs.size,
        completed=int(of_ending[Ending.COMPLETED]),
        killed=int(of_ending[Ending.KILLED]),
        refused=int(of_ending[Ending.REFUSED]),
        waiting=int(of_ending[Ending.WAITING]),
        restarts=int(np.maximum(0, runs.attempts[jobs] - 1).sum()),
        core_seconds=int((runs.cores[jobs] * held).sum()),
        lost_core_seconds=int((runs.cores[jobs] * runs.lost[jobs]).sum()),
        wait=_distribution(wait),
        response=_distribution(response),
        slowdown=_distribution(response / np.maximum(1, response - wait)),
        bounded_slowdown=_distribution(runs.bounded_slowdown[over]),
        static_slowdown=_distribution(response / np.maximum(1, runs.full_runtime[over])),
        wqt=float((wait / expected).sum()),
        late=int(np.count_nonzero(behind)),
        tardiness=int(behind.sum()),
        weighted_tardiness=float((behind / expected).sum()),
        overdue=int(np.count_nonzero(fates.is_overdue[jobs])),
        starved=int(np.count_nonzero(fates.is_starved[jobs])),
        unfairly_delayed=float(fates.is_overtaken[may_run].mean()) if may_run.size else None,
    )


def _distribution(values: NDArray[Any]) -> Distribution | None:
    if not values.size:
        return None
    median, p95 = np.percentile(values, (50, 95))
    return Distribution(mean=float(values.mean()), median=float(median), p95=float(p95), max=float(values.max()))


def _decisions(seconds: NDArray[np.float64]) -> Decisions | None:
    if not seconds.size:
        return None
    p50, p99 = np.percentile(seconds, (50, 99))
    return Decisions(count=seconds.size, mean=float(seconds.mean()), p50=float(p50), p99=float(p99))


def _use(runs: Runs, amounts: NDArray[np.int64], begin: int, end: int, name: str, capacity: int) -> ResourceUse:
    """Return the shares of capacity x ``[begin, end)`` that jobs hold, and that jobs which complete hold."""
    seconds = np.clip(runs.end, begin, end) - np.clip(runs.start, begin, end)
    allocated, effective = (
        int((amounts * seconds)[holders].sum()) / (capacity * (end - begin)) if begin < end else 0.0
        for holders in (runs.end > runs.start, runs.ending == Ending.COMPLETED)
    )
    return ResourceUse(name=name, capacity=capacity, allocated=allocated, effective=effective)


def _queue_lengths(runs: Runs, begin: int, end: int) -> tuple[float, int]:
    """Return mean and maximum of the queue's length over ``[begin, end)``; 0 where it is empty."""
    if begin == end:
        return 0.0, 0
    steps = load_over_time(runs)
    seconds = np.diff(np.clip(np.append(steps.time, end), begin, end))
    lengths = steps.queue_length[seconds > 0]
    return int((steps.queue_length * seconds).sum()) / (end - begin), int(lengths.max(initial=0))


#: The names of groups, and of each job the place of its group among them.
_Codes = tuple[NDArray[np.int64], Sequence[str | None]]


def _by_name(jobs: NDArray[np.int64], names: tuple[str | None, ...]) -> _Codes:
    """Return the jobs by queue or user, in the order of the names, None last."""
    ordered = sorted({names[job] for job in jobs}, key=lambda name: (name is None, name or ""))
    place = {name: index for index, name in enumerate(ordered)}
    return np.fromiter((place[names[job]] for job in jobs), dtype=np.int64, count=jobs.size), ordered


def _by_size(runs: Runs, jobs: NDArray[np.int64]) -> _Codes:
    """Return the jobs by how many cores they ask for, in classes that end at the powers of eight."""
    ends = 8 ** np.arange(21)  # to 2^60
    names = ["1", *(f"{before + 1}-{end}" for before, end in pairwise(ends))]
    return np.searchsorted(ends, runs.cores[jobs]), names


def _by_class(runs: Runs, jobs: NDArray[np.int64]) -> _Codes:
    """Return jobs that are over by how long they run and by how many nodes they had."""
    length = np.searchsorted([hours * 3600 for hours in _CLASS_HOURS], runs.full_runtime[jobs])
    width = np.searchsorted(_CLASS_NODES, runs.nodes[jobs])
    names = [f"{time}, {nodes}" for time in _spans(_CLASS_HOURS, "h") for nodes in _spans(_CLASS_NODES, "nodes")]
    return length * (len(_CLASS_NODES) + 1) + width, names


def _by_day(runs: Runs, jobs: NDArray[np.int64]) -> _Codes:
    """Return the jobs by the day on which they were submitted."""
    first = runs.submit[jobs].min(initial=runs.horizon)
    days, codes = np.unique((runs.submit[jobs] - first) // 86400, return_inverse=True)
    return codes, [f"day {day + 1}" for day in days.tolist()]


def _groups(
    runs: Runs, fates: _Fates, jobs: NDArray[np.int64], codes: NDArray[np.int64], names: Sequence[str | None]
) -> tuple[Group, ...]:
    """Return the figures of the jobs of each code, the place of a name; of those that have any, in document order."""
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return tuple(
        Group(key=name, figures=_figures(runs, fates, jobs[order[first:last]]))
        for name, (first, last) in zip(names, pairwise(cuts), strict=True)
        if first < last
    )


def _spans(ends: Sequence[int], unit: str) -> list[str]:
    """Return names for the spans up to each of these ends, and beyond the last."""
    return [*(f"up to {end} {unit}" for end in ends), f"more than {ends[-1]} {unit}"]
