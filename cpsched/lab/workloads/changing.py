"""A workload made into another one: at another rate, as replicas, with malleable or moldable jobs.

One run of a log proves little: submissions that are moved by some minutes change its weighted queue time by up to a
quarter. Policies are compared over replicas, each on the same ones. No log states which jobs can change.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random

from cpsched.domain import (
    FrozenMap,
    Instance,
    Job,
    Malleability,
    NodeState,
    Resizable,
    RuntimeModel,
    Step,
    downey,
    resized,
    with_fields,
)


def offered_load(workload: Instance) -> float:
    """Return the offered load: the jobs' core seconds over the machine's from first to last submission.

    A job runs for its `runtime`, but at most for its walltime, and for its walltime where no runtime is known. The
    steps of an evolving job that ends early are assumed to end early in proportion. Only nodes that are up count.

    Raises `ValueError` if all jobs come at once, or the machine has no cores.
    """
    submits = [job.submit for job in workload.jobs]
    span = max(submits, default=0) - min(submits, default=0)
    cores = sum(
        len(node_class.names) * node_class.resources.get("cores", 0)
        for node_class in workload.cluster.classes
        if node_class.state is NodeState.UP
    )
    if not span or not cores:
        raise ValueError(f"Expected jobs that come one after the other and cores, got {span} s and {cores} cores")
    return sum(map(_core_seconds, workload.jobs)) / (span * cores)


def scaled(workload: Instance, load: float) -> Instance:
    """Return a workload with another rate of arrival, so that its offered load is `load`, up to whole seconds.

    The distances to the first submission are multiplied by one factor; so days are longer or shorter than they were.
    A job's own times (`not_before`, `start_at`, `deadline`) move with it.

    Raises `ValueError` if `load` is not positive, if all jobs come at once or there are no cores, or if jobs run or
    something else than jobs has times on the same clock: a reservation, an outage, or `now` between the submissions.
    """
    if not 0 < load < math.inf:
        raise ValueError(f"Expected a load > 0, got {load}")
    factor = offered_load(workload) / load
    first = min(job.submit for job in workload.jobs)
    is_fixed = workload.now > first or any(job.running is not None for job in workload.jobs)
    if is_fixed or workload.reservations or workload.outages:
        raise ValueError("Expected jobs that all arrive from now on, and no reservations or outages")

    def moved(job: Job) -> Job:
        return later(job, first + math.floor((job.submit - first) * factor) - job.submit)

    return replace(workload, jobs=tuple(moved(job) for job in workload.jobs))


def later(job: Job, seconds: int) -> Job:
    """Return a job that comes so much later, or earlier if negative, with all of its own times."""
    times = {name: getattr(job, name) for name in ("not_before", "start_at", "deadline")}
    moved = {name: time + seconds for name, time in times.items() if time is not None}
    return with_fields(job, {"submit": job.submit + seconds, **moved})


def _core_seconds(job: Job) -> float:
    """Return the core seconds of a job, over all elements of an array."""
    full = sum(step.walltime * step.request.totals.get("cores", 0) for step in job.steps)
    part = 1.0 if job.runtime is None else min(1.0, job.runtime / job.walltime)
    return full * part * len(job.element_ids)


#: Seconds.
WEEK = 7 * 86_400


def moved(workload: Instance, seconds: int, seed: int) -> Instance:
    """Return a workload in which each submission is moved at random, by at most so many seconds.

    No job comes before the first one of the workload. A job's own times (`not_before`, `start_at`, `deadline`) move
    with it. Jobs that run stay as they are.

    Raises `ValueError` if `seconds` is negative.
    """
    if seconds < 0:
        raise ValueError(f"Expected 0 seconds or more, got {seconds}")
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    first = min((job.submit for job in workload.jobs), default=workload.now)

    def shifted(job: Job) -> Job:
        by = max(first - job.submit, draw.randint(-seconds, seconds))
        return job if job.running is not None else later(job, by)

    return replace(workload, jobs=tuple(map(shifted, workload.jobs)))


def resampled_users(workload: Instance, seed: int) -> Instance:
    """Return a workload of as many users, drawn with replacement: some are missing, others are there several times.

    Each copy of a user is another user with the same jobs at the same times; jobs without a user are kept once.

    Raises `ValueError` if jobs run, wait for each other, or are in reservations.
    """
    _check_independent(workload)
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    users = sorted({job.user for job in workload.jobs if job.user is not None})
    times = dict.fromkeys(users, 0)
    for _ in users:
        times[draw.choice(users)] += 1
    found = []
    for job in workload.jobs:
        found += [_copy(job, number) for number in range(1 if job.user is None else times[job.user])]
    return replace(workload, jobs=tuple(found))


def resampled_weeks(workload: Instance, seed: int) -> Instance:
    """Return a workload of as many weeks, drawn with replacement; each begins when the one before it ends.

    The first week begins with the first job. The last one, which may not be whole, stays the last.

    Raises `ValueError` if jobs run, wait for each other, or are in reservations.
    """
    _check_independent(workload)
    if not workload.jobs:
        return workload
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    first = min(job.submit for job in workload.jobs)
    weeks: dict[int, list[Job]] = {}
    for job in workload.jobs:
        weeks.setdefault((job.submit - first) // WEEK, []).append(job)
    last, drawn = max(weeks), list[Job]()
    times: dict[int, int] = {}
    for place in range(last + 1):
        week = draw.randrange(last) if place < last else last
        number = times[week] = times.get(week, -1) + 1
        drawn += [
            replace(later(_copy(job, number), (place - week) * WEEK), user=job.user) for job in weeks.get(week, ())
        ]
    return replace(workload, jobs=tuple(drawn))


def _copy(job: Job, number: int) -> Job:
    """Return the copy of a job and its user with a number; the first one is the job itself."""
    if number == 0:
        return job
    return replace(job, id=f"{job.id}-{number}", user=None if job.user is None else f"{job.user}-{number}")


def _check_independent(workload: Instance) -> None:
    """Refuse a workload whose jobs cannot be drawn one by one."""
    tied = next((job for job in workload.jobs if job.after or job.running is not None or job.reservation), None)
    if tied is not None:
        raise ValueError(f"Expected jobs that come by themselves, got {tied.id}: it runs, or depends on something else")


#: Shares of their cores on which jobs can run, and the stretch of those that scale badly: less than in proportion.
_SHARES = (0.5, 0.25)
_HALF = (0.5,)
_STRETCH = FrozenMap({0.5: 1.8, 0.25: 3.2})


def with_malleable(
    instance: Instance, seed: int, *, share: float = 1 / 3, model: RuntimeModel | None = None
) -> Instance:
    """Return a window in which a share of the jobs, waiting and running ones, is malleable.

    Malleable are jobs whose chunks have two cores or more. Where there are fewer, all are malleable.

    `model`: the runtime model of jobs that can run on half of their cores, as in the experiments of SD-Policy (SD-3,
    SD-9). None: the jobs can run on a half or a quarter of their cores. Half of them then take twice (four times) as
    long, the others less, since the last cores of a job are its least useful ones.
    """
    draw = Random(seed)  # noqa: S311 - a workload, not a secret

    def malleable(job: Job) -> Job:
        if model is not None:
            return replace(job, malleability=Malleability(shares=_HALF, model=model))
        stretch = FrozenMap(_STRETCH) if draw.random() < 0.5 else FrozenMap[float, float]()
        return replace(job, malleability=Malleability(shares=_SHARES, stretch=stretch))

    return changed_share(instance, draw, share, _can_shrink, malleable)


def with_moldable(instance: Instance, seed: int, *, share: float = 1.0, resizable: int | None = None) -> Instance:
    """Return a workload in which a share of the waiting jobs may run on other numbers of their chunks.

    Choices are a quarter, a half, twice and four times as many chunks as a job asks for, the fastest first, as far as
    the machine has them and they change how long it takes. Its speed-up is Downey's (1997) with an average parallelism
    that is log-uniform, as he found it, here from half to four times the chunks asked for, and a variance even between
    0 and 2, where Downey's curves go from an ideal speed-up to a poor one. No log states either of a job: Cirne and
    Berman (2001) asked users for them.

    `resizable`: what it costs (s) to change a size while the job runs; None: they cannot. Those that can have up to 16
    other sizes, a quarter of an octave from each other.

    A job can have choices if it is rigid, asks for chunks of one kind, and has no deadline and no start of its own. If
    fewer jobs can, all of these have choices.
    """
    draw = Random(seed)  # noqa: S311 - a workload, not a secret
    totals = instance.cluster.totals

    def moldable(job: Job) -> Job:
        (own,), (chunk,) = job.steps, job.request.chunks
        least, largest = max(1.0, chunk.count / 2), 4.0 * chunk.count
        parallelism = least * (largest / least) ** draw.random()
        speedup = downey(Fraction(parallelism).limit_denominator(1000), Fraction(round(draw.uniform(0, 2), 3)))
        powers = (-2, -1, 1, 2) if resizable is None else tuple(part / 4 for part in range(-8, 9))
        sizes = {max(1, int(chunk.count * 2.0**power)) for power in powers} - {chunk.count}
        most = min(totals.get(name, 0) // amount for name, amount in chunk.resources.items() if amount)
        found: dict[int, Step] = {}  # by walltime: of sizes that take as long the smallest
        for size in sorted(size for size in sizes if size <= most):
            step = resized(own, size, speedup)
            if step.walltime not in (own.walltime, *found):
                found[step.walltime] = step
        alternatives = tuple(found[walltime] for walltime in sorted(found))
        way = None if resizable is None or not alternatives else Resizable(cost=resizable)
        return replace(job, alternatives=alternatives, resizable=way)

    return changed_share(instance, draw, share, _can_be_moldable, moldable)


def _can_be_moldable(job: Job) -> bool:
    is_free = job.running is None and job.deadline is None and job.start_at is None and job.expected is None
    return is_free and not job.changes and len(job.request.chunks) == 1 and any(job.request.totals.values())


def changed_share(
    instance: Instance, draw: Random, share: float, can_change: Callable[[Job], bool], change: Callable[[Job], Job]
) -> Instance:
    """Return an instance with a share of its jobs changed, drawn from those that can be."""
    able = [place for place, job in enumerate(instance.jobs) if can_change(job)]
    wanted = min(len(able), round(share * len(instance.jobs)))
    keys = {place: draw.random() for place in able}
    chosen = set(sorted(able, key=keys.__getitem__)[:wanted])
    jobs = tuple(change(job) if place in chosen else job for place, job in enumerate(instance.jobs))
    return replace(instance, jobs=jobs)


def _can_shrink(job: Job) -> bool:
    return not job.is_evolving and all(chunk.resources.get("cores", 0) > 1 for chunk in job.request.chunks)
