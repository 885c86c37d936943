"""When waiting jobs will start, over sampled futures: how long jobs run, and which jobs arrive, as the past has it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import CheapFirst, Columns, amounts_aside
from cpsched.domain import FOR_EVER, DependencyType, Instance, Job
from cpsched.forecast.kernels import (
    BELIEVED,
    COUNT,
    COUNTERS,
    END,
    FIRST,
    JOB,
    LACKS,
    N_POOL,
    N_RUNNING,
    N_WATCHED,
    Crowd,
    Stage,
    Walls,
    play,
)
from cpsched.forecast.runtimes import Kind, RuntimeLearner
from cpsched.planner import slices_of
from cpsched.problem import compiled, own_start, refusals
from cpsched.rusv import FOREVER, Tables, Timeline, grouped, kernels

Ints = NDArray[np.int64]

_DAY = 86_400
#: A future repeats the last days, at most so many, from now on.
_MOST_DAYS = 14
#: Seconds of arrivals that are made at first; where jobs still wait at their end, ten times as many.
_HORIZONS = (_DAY, 10 * _DAY, 100 * _DAY)
#: The share of jobs whose runtime is as long, among those of their kind, as that of others of the same kind.
_ALIKE = 0.5


def by_priority(instance: Instance, job: Job) -> float:
    """Order by priority; jobs of the same one are in the order of submission."""
    return -float(instance.priority(job))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Futures:
    """The starts of waiting jobs in each future."""

    #: The waiting jobs that can start, in document order.
    ids: tuple[str, ...]
    #: int64 (futures, jobs): ascending by job, on the instance's clock; `FOR_EVER` seconds after now: never.
    starts: Ints
    #: int64 (jobs,): for how many seconds each has waited.
    waited: Ints


def play_futures(
    instance: Instance,
    learner: RuntimeLearner,
    past: Sequence[Job] = (),
    *,
    futures: int = 100,
    seed: int = 0,
    order: Callable[[Instance, Job], float] = by_priority,
    is_over: Callable[[int], bool] | None = None,
) -> Futures:
    """Play futures of a window: each job runs for as long as a sample of its distribution says, new ones arrive as they
    did in some of the last days, and the rule is EASY backfilling by walltimes.

    `instance`: the window: jobs that run and wait now. `learner`: what is known of runtimes. `past`: the jobs that were
    submitted before `now`, as they were then, with their runtimes if they have ended; an array has one. None: no job
    arrives. `futures`: how many are played, at least 1. `seed`: where samples begin: the same one gives the same
    starts. `order`: returns a number for a job, the smallest is served first; equal ones in the order of submission.
    `is_over`: called with the number of futures that have been played; returns whether that is enough.
    """
    if futures < 1:
        raise ValueError(f"Expected at least 1 future, got {futures}")
    scene = _Scene(instance, learner, past, order)
    played = list[Ints]()
    for found in scene.play(futures, np.random.default_rng(seed)):
        played.append(found)
        if is_over is not None and is_over(len(played)):
            break
    starts = np.sort(np.stack(played), axis=0)
    starts = np.where(starts < 0, FOR_EVER, starts) + instance.now
    return Futures(ids=scene.ids, starts=starts, waited=scene.waited)


class _Scene:
    """A window and its past as arrays: what all futures have in common."""

    def __init__(
        self, instance: Instance, learner: RuntimeLearner, past: Sequence[Job], order: Callable[[Instance, Job], float]
    ) -> None:
        now = self._now = instance.now
        known = [job for job in past if job.submit <= now and not job.changes for _ in job.element_ids]
        known.sort(key=lambda job: job.submit)
        known = known[int(np.searchsorted([job.submit for job in known], now - _MOST_DAYS * _DAY)) :]
        prefix = "past "
        while any(job.id.startswith(prefix) for job in instance.jobs):
            prefix += "past "
        come = tuple(_as_new(instance, job, f"{prefix}{number}") for number, job in enumerate(known))
        window = replace(instance, jobs=(*instance.jobs, *come), outages=())
        problem = compiled(window, slices_of(instance) if instance.reservations else (), record=True)
        window, stated = problem.instance, {job.id: job for job in window.elements()}
        jobs = window.elements()
        here = len(jobs) - len(come)
        self._columns = Columns(window.cluster, CheapFirst())
        self._running = [(job, job.running) for job in jobs[:here] if job.running is not None]
        self._waiting = _startable(window, [job for job in jobs[:here] if job.running is None])
        self._coming = _startable(window, jobs[here:])
        self.ids = tuple(job.id for job in self._waiting)
        crowd = [*self._waiting, *self._coming]
        self._demand = np.array([self._compile(job) for job in crowd], dtype=np.int32)
        self._walltime = _ints(job.walltime for job in crowd)
        self._order = np.array([order(instance, stated[job.id]) for job in crowd], dtype=np.float64)
        self._submit = _ints(job.submit - now for job in self._waiting)
        self._release = _ints(max(0, own_start(window, job) - now) for job in self._waiting)
        self._when = _ints(known[int(job.id.rpartition(" ")[2])].submit - now for job in self._coming)
        self._jobs, self._learner = [*(job for job, _ in self._running), *crowd], learner
        #: The runtimes that are known, of jobs of the past.
        unknown = len(self._running) + len(self._waiting)
        coming = enumerate(self._coming, start=unknown)
        self._known = {number: job.runtime for number, job in coming if job.runtime is not None}
        self._link(window)
        self._timeline = Timeline(self._columns.demands)
        self._tables, self._scratch = self._timeline.instant_views()
        self._least = _least_sums(self._tables, len(self._timeline.free_at(0)[1]))
        self._hold()
        self._walls = self._set_aside(window)

    def _compile(self, job: Job) -> int:
        request = max((step.request for step in job.steps), key=lambda one: one.totals.get("cores", 0))
        return self._columns.compile(request, job.licenses, job.walltime)

    def _link(self, window: Instance) -> None:
        """Note which jobs wait for others: for those that wait too, and for the ends of running ones."""
        place = {job.id: number for number, job in enumerate(self._waiting)}
        runs = {job.id: number for number, (job, _) in enumerate(self._running)}
        members = window.members() if any(job.after for job in self._waiting) else {}
        between, self._after_running = [], list[tuple[int, int, int]]()
        for number, job in enumerate(self._waiting):
            for link in job.after:
                is_end = link.type is not DependencyType.AFTER
                for name in members.get(link.job, ()):
                    if name in place:
                        between.append((place[name], number, int(is_end), link.delay))
                    elif name in runs and is_end:
                        self._after_running.append((number, runs[name], link.delay))
        self._between = np.array(between, dtype=np.int64).reshape(-1, 4)

    def _hold(self) -> None:
        """Note what is free beside the running jobs, and what each of these holds: never more than there is."""
        free, sums = self._timeline.free_at(0)
        self._free, self._sfree = free.astype(np.int32), sums.astype(np.int64)
        rows, self._held = list[tuple[int, int]](), np.zeros((len(self._running), len(sums)), dtype=np.int64)
        self._spans = np.zeros((len(self._running), 2), dtype=np.int64)
        for number, (job, run) in enumerate(self._running):
            segment = next(part for part in run.segments if part.end > self._now)
            asked = self._columns.amounts_of(segment.allocation, whole=job.steps[0].request.place.exclusive)
            loans = self._columns.licenses_of(job.licenses)
            held = self._timeline.booking(
                0,
                1,
                {column: least for column, some in asked.items() if (least := min(some, int(self._free[column]))) > 0},
                {column: min(some, int(self._sfree[column])) for column, some in loans.items()},
            )
            self._free[held.columns] -= held.amounts
            self._held[number, held.system_columns] = held.system_amounts
            self._sfree -= self._held[number]
            self._spans[number] = len(rows), len(held.columns)
            rows += zip(held.columns.tolist(), held.amounts.tolist(), strict=True)
        self._rows = np.array(rows, dtype=np.int64).reshape(-1, 2)

    def _set_aside(self, window: Instance) -> Walls:
        """Return what rules set aside from now on."""
        asides = [one for one in window.set_aside if one.end > max(self._now, one.start)]
        spans, taken = np.zeros((len(asides), 4), dtype=np.int64), list[tuple[int, int]]()
        sums = np.zeros((len(asides), len(self._sfree)), dtype=np.int64)
        for number, aside in enumerate(asides):
            of_nodes, of_licenses = amounts_aside(aside, self._columns)
            end = aside.end - self._now
            spans[number] = aside.start - self._now, end if end < FOR_EVER else FOREVER, len(taken), len(of_nodes)
            taken += of_nodes.items()
            for column, amount in of_licenses.items():
                sums[number, column] += amount
        return Walls(spans=spans, taken=np.array(taken, dtype=np.int64).reshape(-1, 2), sums=sums)

    @property
    def waited(self) -> Ints:
        """For how many seconds each job has waited."""
        return -self._submit

    # --- futures ---

    def play(self, futures: int, random: np.random.Generator) -> Iterator[Ints]:
        """Yield the starts of the waiting jobs in each future, in seconds from now on, -1: never."""
        lengths = self._samples(futures, random)
        days = random.integers(1, 1 + max(1, min(_MOST_DAYS, self._span // _DAY)), size=futures) * _DAY
        for number in range(futures):
            yield self._start_times(lengths[:, number], min(int(days[number]), self._span))

    @property
    def _span(self) -> int:
        """The seconds of the past."""
        return int(-self._when[0]) if len(self._when) else 0

    def _start_times(self, lengths: Ints, period: int) -> Ints:
        """Return the starts of the waiting jobs in a future; the last `period` seconds are repeated."""
        for horizon in _HORIZONS:
            starts = self._started(lengths, period, horizon)
            is_late = starts.max(initial=0) > horizon or (starts < 0).any()
            if not is_late or period == 0:
                break
        return starts

    def _started(self, lengths: Ints, period: int, horizon: int) -> Ints:
        """Return the starts of the waiting jobs, if no job arrives beyond the horizon."""
        num_waiting = len(self._waiting)
        first = int(np.searchsorted(self._when, -period))
        which, when = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if period > 0 and first < len(self._when):
            turns = np.arange(-(-horizon // period), dtype=np.int64)
            which = np.tile(np.arange(first, len(self._when), dtype=np.int64), len(turns))
            when = np.repeat((turns + 1) * period, len(self._when) - first) + self._when[which] + 1
            which, when = which[when <= horizon], when[when <= horizon]
        crowd = np.concatenate([np.arange(num_waiting, dtype=np.int64), num_waiting + which])
        release = np.concatenate([self._release, when])
        for number, runs, delay in self._after_running:
            release[number] = max(release[number], lengths[runs] + delay)
        order = np.lexsort((np.concatenate([self._submit, when]), self._order[crowd]))
        return self._played(lengths, crowd[order], release[order], order)

    def _played(self, lengths: Ints, crowd: Ints, release: Ints, order: Ints) -> Ints:
        """Play a future of these jobs, in the order of the queue."""
        num_running, num_waiting = len(self._running), len(self._waiting)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        between = self._between
        links_of, links = grouped(
            np.column_stack([rank[between[:, 0]], rank[between[:, 1]], between[:, 2:]]), len(order)
        )
        missing = np.bincount(rank[between[:, 1]], minlength=len(order)).astype(np.int64)
        arrivals = np.argsort(release, kind="stable")
        watched = np.zeros(len(order), dtype=np.int64)
        watched[rank[:num_waiting]] = 1
        size = 2 * len(self._rows) + 4 * len(self._free) + 64
        while True:
            jobs = Crowd(
                demand=self._demand[crowd],
                release=release.copy(),
                walltime=self._walltime[crowd],
                length=np.minimum(lengths[num_running + crowd], self._walltime[crowd]),
                arrivals=arrivals[missing[arrivals] == 0],
                links_of=links_of,
                links=links,
                missing=missing.copy(),
                start=np.full(len(order), -1, dtype=np.int64),
                watched=watched,
                least=self._least,
            )
            stage = self._stage(lengths, len(order), size)
            stage.counters[N_WATCHED] = num_waiting
            new = np.zeros(len(order) + 1, dtype=np.int64)
            play(jobs, self._walls, stage, new, self._tables, self._scratch)
            if not stage.counters[LACKS]:
                return jobs.start[rank[:num_waiting]]
            size *= 2

    def _stage(self, lengths: Ints, count: int, size: int) -> Stage:
        """Return the machine with the running jobs."""
        num_running, systems = len(self._running), len(self._sfree)
        believed = _ints(run.segments[-1].end - self._now for _, run in self._running)
        running = np.full((num_running + count + 1, 5), -1, dtype=np.int64)
        order = np.argsort(believed, kind="stable")
        running[:num_running, END] = lengths[:num_running][order]
        running[:num_running, BELIEVED] = believed[order]
        running[:num_running, FIRST : COUNT + 1] = self._spans[order]
        running[:, JOB] = -1
        held = np.zeros((num_running + count + 1, systems), dtype=np.int64)
        held[:num_running] = self._held[order]
        pool = np.zeros((size, 2), dtype=np.int64)
        pool[: len(self._rows)] = self._rows
        counters = np.zeros(COUNTERS, dtype=np.int64)
        counters[N_RUNNING], counters[N_POOL] = num_running, len(self._rows)
        free, sfree = self._free, self._sfree
        return Stage(
            counters=counters,
            free=free.copy(),
            sfree=sfree.copy(),
            later=free.copy(),
            slater=sfree.copy(),
            low=free.copy(),
            slow=sfree.copy(),
            room=free.copy(),
            sroom=sfree.copy(),
            running=running,
            held=held,
            pool=pool,
            queue=np.zeros(count + 1, dtype=np.int64),
            pending=np.zeros((count + 1, 2), dtype=np.int64),
            failed=np.full((len(self._columns.demands), 2), -1, dtype=np.int64),
        )

    # --- how long jobs run ---

    def _samples(self, futures: int, random: np.random.Generator) -> Ints:
        """Return samples of runtimes, (jobs, futures); those of running jobs are of their ends, in seconds from now."""
        found = np.empty((len(self._jobs), futures), dtype=np.int64)
        of_kind: dict[Kind | None, NDArray[np.float64]] = {}
        own, is_alike = random.random((len(self._jobs), futures)), random.random((len(self._jobs), futures)) < _ALIKE
        for number, job in enumerate(self._jobs):
            if number in self._known:
                found[number] = max(1, min(self._known[number], job.walltime))
                continue
            kind = Kind.of(job)
            if kind not in of_kind:
                of_kind[kind] = random.random(futures)
            found[number] = self._sampled(job, kind, np.where(is_alike[number], of_kind[kind], own[number]))
        return found

    def _sampled(self, job: Job, kind: Kind | None, levels: NDArray[Any]) -> Ints | int:
        if job.running is not None:
            end = job.running.segments[-1].end - self._now
            ran = self._now - job.running.start
            return max(1, end) if kind is None else self._learner.quantiles(kind, levels, ran=ran) - ran
        return job.walltime if kind is None else self._learner.quantiles(kind, levels)


def _startable(window: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Return the waiting jobs that can start on the empty machine, and wait for no job that cannot."""
    refused = refusals(window, jobs, is_shrunk=False)
    left = [job for job in jobs if job.id not in refused]
    if not any(job.after for job in left):
        return left
    members, running = window.members(), {job.id for job in window.elements() if job.running is not None}
    while True:
        here = running | {job.id for job in left}
        kept = [job for job in left if all(here.issuperset(members.get(one.job, ())) for one in job.after)]
        if len(kept) == len(left):
            return kept
        left = kept


def _as_new(instance: Instance, job: Job, name: str) -> Job:
    """Return a job of the past as one that may come again."""
    queue = job.queue if job.queue in instance.queues else None
    return replace(
        job,
        id=name,
        submit=instance.now,
        queue=queue,
        after=(),
        not_before=None,
        start_at=None,
        deadline=None,
        told=None,
        array=None,
        running=None,
        reservation=None,
    )


def _least_sums(tables: Tables, systems: int) -> Ints:
    """Return the least that any demand takes of each system column."""
    asked = np.zeros((len(tables.demands) - 1, systems), dtype=np.int64)
    for demand, (first, last) in enumerate(pairwise(tables.demands[:, kernels.D.SYS].tolist())):
        for column, amount in tables.sysreq[first:last].tolist():
            asked[demand, column] = amount
    return asked.min(axis=0) if len(asked) else np.zeros(systems, dtype=np.int64)


def _ints(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)
