"""Forecasts of starts as the daemon makes them: now and then, of what waits, calibrated by what became of them."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import FOR_EVER, Instance, Job
from cpsched.forecast import Calibration, Forecast, Kind, Quantiles, RuntimeLearner, forecast
from cpsched.site.daemon.state import PlannedStart

#: The futures of a forecast, and the most jobs whose starts are forecast: those that are planned first.
_FUTURES, _MOST = 40, 1_000
#: Seconds after which no other future is played, if there are so many: a cycle waits for them.
_LONGEST, _FEWEST = 2.0, 10
#: Forecasts of a job that are kept are so many seconds apart, as they are told.
_KEPT_EVERY = 3_600
#: Jobs may come again that came in so many seconds before now, and no more than so many.
_PAST, _MOST_PAST = 14 * 86_400, 20_000
#: The last starts, and ends, by which forecasts are judged.
_JUDGED = 1_000
#: Of its time a daemon spends one part in so many on forecasts.
_SPARED = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredForecast:
    """A forecast that was told, and when its job started."""

    job: str
    at: int
    #: As `cpsched.forecast.Forecast` has them; None: never.
    likely: int | None
    earliest: int | None
    latest: int | None
    #: The quantiles of the futures.
    low: int
    median: int
    high: int
    #: For how many seconds the job had waited.
    waited: int
    #: None: it waits.
    start: int | None = None

    def holds(self, start: int) -> bool:
        """Tell whether a start is within the interval."""
        return self.earliest is not None and self.earliest <= start and (self.latest is None or start <= self.latest)


class Forecaster:
    """Forecasts starts, and learns from what becomes of them. Mutable.

    `learner`: how long jobs run. `clock`: returns seconds; replaced in tests.
    """

    def __init__(self, learner: RuntimeLearner, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._learner, self._clock = learner, clock
        self._calibration = Calibration()
        #: The jobs that came, by id, in the order of their coming; with their runtimes if they have ended.
        self._past: dict[str, Job] = {}
        #: The last forecast of each waiting job.
        self.told: Mapping[str, Forecast] = {}
        #: The forecasts that wait for a start, by job; and whether the last ones were within their intervals.
        self._open: dict[str, list[StoredForecast]] = {}
        self._within: deque[bool] = deque(maxlen=_JUDGED)
        #: Of the last jobs for which less than the walltime was enough, whether they ended within that.
        self._enough: deque[bool] = deque(maxlen=_JUDGED)
        self._next = -math.inf

    def begin(self, stored: Iterable[StoredForecast]) -> None:
        """Learn from the forecasts of the daemon before, in the order in which they were told."""
        for one in sorted(stored, key=lambda one: (one.at, one.job)):
            self._keep(one)
            if one.start is not None:
                self.started(one.job, one.start)

    @property
    def held(self) -> dict[str, int]:
        """Of the last forecasts, how many jobs started, and how many of these within the interval of 80 %; how many
        jobs ended for which less than their walltime was enough, and how many of these within that.
        """
        starts, ends = self._within, self._enough
        return {"starts": len(starts), "within": sum(starts), "ends": len(ends), "in_time": sum(ends)}

    def _keep(self, one: StoredForecast) -> None:
        self._calibration.told(one.job, Quantiles(one.low, one.median, one.high, one.waited))
        self._open.setdefault(one.job, []).append(one)

    def came(self, jobs: Iterable[Job]) -> None:
        """Note jobs that were seen for the first time."""
        for job in jobs:
            for element in job.element_ids:
                self._past[element] = replace(job, id=element, array=None, running=None, told=None, runtime=None)
        while len(self._past) > _MOST_PAST:
            del self._past[next(iter(self._past))]

    def started(self, job: str, start: int | None) -> None:
        """Note that a job started, or, with None, that it never will."""
        self._calibration.started(job, start)
        for one in self._open.pop(job, ()):
            if start is not None:
                self._within.append(one.holds(start))

    def learn(self, ended: Sequence[tuple[Kind, int]]) -> None:
        """Learn how long jobs ran (s), in the order of their ends; the last ones judge what was known before."""
        for place, (kind, runtime) in enumerate(ended, start=_JUDGED - len(ended)):
            if place >= 0 and (enough := self._learner.enough(kind)) is not None:
                self._enough.append(runtime <= enough)
            self._learner.learn(kind, runtime)

    def ended(self, job: str, runtime: int) -> None:
        """Note how long a job ran."""
        if job in self._past:
            self._past[job] = replace(self._past[job], runtime=max(1, runtime))

    def renew(
        self, instance: Instance, plan: Mapping[str, PlannedStart], *, every: float
    ) -> tuple[StoredForecast, ...] | None:
        """Make forecasts if it is time to, and return those that are to be kept; None: it is not time.

        Jobs are taken in the order of the plan, and new ones after them. `every`: seconds between two times, at least.
        """
        began = self._clock()
        if began < self._next:
            return None
        last = instance.now + FOR_EVER
        starts = {job: one.start for job, one in plan.items()}
        found = forecast(
            _first_of(instance, starts),
            self._learner,
            [job for job in self._past.values() if job.submit > instance.now - _PAST],
            calibration=self._calibration,
            futures=_FUTURES,
            seed=instance.now,
            order=lambda _, job: float(starts.get(job.id, last)),
            is_over=lambda played: played >= _FEWEST and self._clock() - began > _LONGEST,
        )
        self.told = {one.job: one for one in found}
        kept = tuple(
            StoredForecast(
                job=one.job,
                at=instance.now,
                likely=one.likely,
                earliest=one.earliest,
                latest=one.latest,
                **one.played._asdict(),
            )
            for one in found
            if one.job not in self._open or instance.now - self._open[one.job][-1].at >= _KEPT_EVERY
        )
        for one in kept:
            self._keep(one)
        self._next = began + max(every, _SPARED * (self._clock() - began))
        return kept


def _first_of(instance: Instance, starts: Mapping[str, int]) -> Instance:
    """Return a window with the waiting jobs that start first, as many as are forecast, and an array as a whole."""

    def start(job: Job) -> int:
        return min(starts.get(element, instance.now + FOR_EVER) for element in job.element_ids)

    names, count = set[str](), 0
    for job in sorted((job for job in instance.jobs if job.running is None), key=start):
        if count and count + len(job.element_ids) > _MOST:
            break
        names.add(job.id)
        count += len(job.element_ids)
    jobs = tuple(job for job in instance.jobs if job.running is not None or job.id in names)
    if len(jobs) < len(instance.jobs):
        known = {name for job in jobs for name in (job.id, *job.element_ids)}
        jobs = tuple(replace(job, after=tuple(one for one in job.after if one.job in known)) for job in jobs)
    return replace(instance, jobs=jobs)
