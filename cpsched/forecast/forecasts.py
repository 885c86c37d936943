"""What users are told: when a job will most likely start, and within which times it does with a chance of 80 %."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

from cpsched.domain import FOR_EVER, Instance, Job
from cpsched.forecast.futures import by_priority, play_futures
from cpsched.forecast.runtimes import Kind, RuntimeLearner

#: The chances of a start up to each of the times that are told.
_SHARES = (0.1, 0.5, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a waiting job will start, on the instance's clock; None: never, in too many futures."""

    job: str
    #: The most likely start: as many are earlier as later.
    likely: int | None
    #: The second by which it starts with a chance of 80 %.
    by: int | None
    #: Between these it starts with a chance of 80 %: as many starts are earlier as later.
    earliest: int | None
    latest: int | None
    #: Within so many seconds, in whole minutes, 95 % of like jobs end; None: not before its walltime, or nobody knows.
    enough: int | None
    #: What the futures say, before calibration.
    played: "Quantiles"

    def as_document(self) -> dict[str, int | None]:
        """Return the figures that users are told."""
        return {name: getattr(self, name) for name in ("likely", "by", "earliest", "latest", "enough")}


def learnt_from(past: Iterable[Job], now: int) -> tuple[RuntimeLearner, list[Job]]:
    """Return what is learnt from the jobs of a log that had ended by a second, if each began when it was submitted; and
    those that were submitted by then, the others without runtimes.
    """
    learner = RuntimeLearner()
    came = [job for job in past if job.submit <= now and not job.changes and job.running is None]
    ended = [job for job in came if job.runtime is not None and job.submit + job.runtime <= now]
    for job in sorted(ended, key=lambda job: job.submit + (job.runtime or 0)):
        kind = Kind.of(job)
        if kind is not None and job.runtime is not None:
            learner.learn(kind, job.runtime)
    names = {job.id for job in ended}
    return learner, [job if job.id in names else replace(job, runtime=None) for job in came]


def forecast(
    instance: Instance,
    learner: RuntimeLearner,
    past: Sequence[Job] = (),
    *,
    calibration: "Calibration | None" = None,
    futures: int = 100,
    seed: int = 0,
    order: Callable[[Instance, Job], float] = by_priority,
    is_over: Callable[[int], bool] | None = None,
) -> tuple[Forecast, ...]:
    """Forecast the starts of the jobs that wait and can start, in document order.

    `instance`, `learner`, `past`, `futures`, `seed`, `order`, `is_over`: as `play_futures` has them. `calibration`:
    what became of forecasts so far; None: the shares of the futures are told as they are.
    """
    found = play_futures(instance, learner, past, futures=futures, seed=seed, order=order, is_over=is_over)
    now, never = instance.now, instance.now + FOR_EVER

    def seconds(second: int) -> int | None:
        return None if second >= never else second

    told, futures = [], len(found.starts)
    kinds = {name: Kind.of(job) for job in instance.jobs for name in job.element_ids}
    for place, job in enumerate(found.ids):
        starts = found.starts[:, place]
        low, median, by, high = (int(starts[min(futures - 1, int(share * futures))]) for share in _SHARES)
        played = Quantiles(low, median, high, int(found.waited[place]))
        if calibration is not None and high < never:
            low, by, high = calibration.levels(now, played, (_SHARES[0], *_SHARES[2:]))
        told.append(
            Forecast(
                job=job,
                likely=seconds(median),
                by=seconds(by),
                earliest=seconds(low),
                latest=seconds(high),
                enough=None if (kind := kinds[job]) is None else learner.enough(kind),
                played=played,
            )
        )
    return tuple(told)


def warm_up_forecasts() -> None:
    """Compile the kernels of futures, or load them: what is timed afterwards is the forecast alone."""
    from cpsched.planner import warmup_window

    forecast(warmup_window(), RuntimeLearner(), futures=1)


#: Seconds that a side of an interval counts for at least: a start within a minute is as good as any.
_UNIT = 60
#: The scores that count, of the last forecasts.
_MOST = 400
#: So many scores are taken to have been before the first one, as if futures were too narrow by this factor: those of
#: logs were, by 1.2 to 1.4.
_PRIOR, _WIDER = 20, 1.3
#: Jobs that have waited for so many seconds are judged apart from new ones: they are those that wait for long.
_NEW = 900

_NORMAL = NormalDist()
_UNKNOWN = tuple(_WIDER * _NORMAL.inv_cdf((place + 0.5) / _PRIOR) / _NORMAL.inv_cdf(0.9) for place in range(_PRIOR))


class Quantiles(NamedTuple):
    """The starts of a job in 10, 50 and 90 % of the futures, on the instance's clock; and how long it had waited."""

    low: int
    median: int
    high: int
    waited: int

    def score(self, start: int) -> float:
        """Return the distance of a start from the median."""
        return (start - self.median) / self._side(is_late=start > self.median)

    def at(self, score: float) -> int:
        """Return the start that has a score."""
        return self.median + round(score * self._side(is_late=score > 0))

    @property
    def group(self) -> int:
        """The number of the forecasts with which it is judged."""
        return int(self.waited >= _NEW)

    def _side(self, *, is_late: bool) -> int:
        return max(self.high - self.median if is_late else self.median - self.low, _UNIT)


def _quantile(share: float, known: Iterable[float], still: Iterable[float]) -> float:
    """Return a quantile of scores, `still` those of jobs that wait: theirs are more."""
    rows = sorted([*((score, True) for score in (*known, *_UNKNOWN)), *((score, False) for score in still)])
    left, survival = len(rows), 1.0
    for score, is_known in rows:
        if is_known:
            survival *= (left - 1) / left
            if survival <= 1.0 - share + 1e-9:
                return score
        left -= 1
    return rows[-1][0]


class Calibration:
    """The scores of past forecasts, and the forecasts whose jobs still wait. Mutable."""

    def __init__(self) -> None:
        self._scores = [deque[float](maxlen=_MOST), deque[float](maxlen=_MOST)]
        #: By job.
        self._open: dict[str, list[Quantiles]] = {}

    def told(self, job: str, quantiles: Quantiles) -> None:
        """Note a forecast."""
        self._open.setdefault(job, []).append(quantiles)

    def started(self, job: str, start: int | None) -> None:
        """Note when a job started; None: it never will."""
        for quantiles in self._open.pop(job, ()):
            if start is not None:
                self._scores[quantiles.group].append(quantiles.score(start))

    def levels(self, now: int, quantiles: Quantiles, shares: tuple[float, ...]) -> tuple[int, ...]:
        """Return the starts by which a job will have started with these chances: not before now, and on the same side
        of the median as the chance of a half. One that starts now in nine futures of ten is told now.
        """
        if quantiles.high <= now:
            return (now,) * len(shares)
        group, known = quantiles.group, self._scores[quantiles.group]
        still = [one.score(now) for of_job in self._open.values() for one in of_job if one.group == group]
        least = [(min if share < 0.5 else max)(_quantile(share, known, still), 0.0) for share in shares]
        return tuple(max(now, quantiles.at(score)) for score in least)
