"""The figures of a plan: objective, waits per queue, lateness and utilisation, recomputed from instance and plan.

Begin with `objective_value`, the number that engines compare, and `summarise`, the figures that people read. Sums are
kept in integers and fractions, and only results become floats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from statistics import median

from cpsched.arguments import at_the_door
from cpsched.domain import (
    AimScore,
    FrozenMap,
    Instance,
    Job,
    MaxWait,
    NodeState,
    Objective,
    ObjectiveTerm,
    Plan,
    PlannedJob,
    Score,
    resumable,
)

#: A job's runtime counts as at least this many seconds in its slowdown (``docs/formats.md``: bounded, tau 10 s).
SLOWDOWN_TAU = 10

#: Binary digits after the point of a sum of quotients: its error stays far below the precision of a float.
_FRACTION_BITS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWaits:
    """The waits of the planned jobs of one queue, in seconds from submission to start."""

    #: None: the jobs without queue.
    queue: str | None
    count: int
    mean: float
    median: float
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """The delays of jobs behind a second that was set for each of them."""

    #: Planned jobs that have such a second, and how many of them start later.
    count: int
    late: int
    #: The seconds of delay: their sum, and the largest.
    total: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one plan; running jobs count in `running`, `horizon` and `utilisation` only."""

    planned: int
    running: int
    waiting_room: int
    #: In the order of the instance's queues, queues without planned jobs left out; jobs without queue last.
    waits: tuple[QueueWaits, ...]
    #: Sum of wait / expected wait (WQT of BRIDI-19).
    wqt: float
    #: How many jobs wait longer than their expected wait (NL of BRIDI-19).
    late: int
    #: Seconds waited beyond the expected wait, summed (TR of BRIDI-19).
    tardiness: int
    #: Delays beyond the ``max_wait`` of the jobs' queues; None where no planned job has one.
    overdue: Delays | None
    #: Delays behind the promised starts; None where no planned job has one.
    postponed: Delays | None
    #: What these delays add to the objective.
    postponed_price: float
    #: Seconds from now to the end of the last planned waiting job.
    makespan: int
    #: Seconds from now to the end of the last job of all.
    horizon: int
    #: Mean share in use over the horizon, of each resource of the nodes that are up and of each licence.
    utilisation: FrozenMap[str, float]


#: The price of each expected wait of a job's delay, the delay (s), and the expected wait (s).
_PricedDelay = tuple[Fraction, int, int]


@dataclass(frozen=True, slots=True)
class _Run:
    """A planned waiting job: the figures that the objective's sums need."""

    job: Job
    expected_wait: int
    #: The factor of the job's terms.
    weight: Fraction
    start: int
    end: int
    #: The duration (s) that its slowdown divides by: that at full share, of a malleable job, and that which one with
    #: alternatives asks for itself.
    duration: int
    #: Of an evolving job: cores of each step x seconds for which it is held longer than it asks for.
    waste: int = 0
    #: The seconds that its slowdown reckons with in place of `duration`, where the job is expected to run so long.
    expected: int | None = None

    @property
    def wait(self) -> int:
        return self.start - self.job.submit

    @property
    def stretch(self) -> int:
        """The seconds that the job takes longer than at full share, or than by its own request."""
        return self.end - self.start - self.duration

    @property
    def tardiness(self) -> int:
        return max(0, self.wait - self.expected_wait)


def jobs_by_id(instance: Instance) -> dict[str, Job]:
    """Return the entry of each job by its id in a plan; all elements of an array share one entry."""
    return {element: job for job in instance.jobs for element in job.element_ids}


def objective_value(instance: Instance, jobs: Iterable[PlannedJob], *, is_record: bool = False) -> float:
    """Return the value of the instance's objective.

    `instance`: gives submission times, expected waits and the objective's weights. `jobs`: jobs of a plan. A running
    job counts only if its end differs from that in the instance. `is_record`: whether the jobs are those of a record: a
    malleable one does no more work than its runtime. Raises `ValueError` if a job is not in the instance.
    """
    listed = tuple(jobs)
    runs = _waiting_runs(instance, listed, is_record=is_record)
    return float(_value(instance, runs) + _cost_of_changes(instance, listed))


def of_aim(instance: Instance, aim: Objective) -> Instance:
    """Return the instance with one objective alone."""
    return instance if instance.objective is aim else replace(instance, objective=aim)


def later_scores(instance: Instance, jobs: Sequence[PlannedJob], *, is_record: bool = False) -> tuple[AimScore, ...]:
    """Return the values of the aims after the first one, without bounds.

    Raises `ValueError` if a job is not in the instance.
    """
    return tuple(
        AimScore(name=aim.name, value=objective_value(of_aim(instance, aim), jobs, is_record=is_record))
        for aim in instance.objective.aims[1:]
    )


def score_of(instance: Instance, jobs: Iterable[PlannedJob], *, is_record: bool = False) -> Score:
    """Return the values of the objective and of all its aims, without bounds; that of the planner is the same.

    Raises `ValueError` if a job is not in the instance.
    """
    listed = tuple(jobs)
    value = objective_value(instance, listed, is_record=is_record)
    return Score(
        name=instance.objective.name,
        value=value,
        planner=value,
        suffered=suffered(instance, listed),
        then=later_scores(instance, listed, is_record=is_record),
    )


def suffered(instance: Instance, jobs: Iterable[PlannedJob]) -> float:
    """Return the value that the same jobs would have if each started at ``max(now, submit)`` and ran for its walltime.

    For ``weighted_wait`` this is the waiting already done, which no plan can change. It is no bound where a plan
    chooses how long a job takes: `least_value` is.

    Raises `ValueError` if a job is not in the instance.
    """
    return float(suffered_exactly(instance, jobs))


def suffered_exactly(instance: Instance, jobs: Iterable[PlannedJob], *, shortest: bool = False) -> Fraction:
    """Return the value of `suffered`, before it is rounded; `shortest`: if each job ran by its shortest alternative."""
    runs = []
    for run in _waiting_runs(instance, jobs):
        start = max(instance.now, run.job.submit)
        walltime = run.job.own_walltime
        end = start + (run.job.shortest if shortest else walltime)
        runs.append(replace(run, start=start, end=end, duration=walltime, waste=0))
    return _value(instance, runs)


def least_running_cost(instance: Instance) -> Fraction:
    """Return the least cost of the running jobs, 0 or less: that with all cores from now on for each job that a plan
    may change.
    """
    ends = []
    for job in instance.jobs:
        left = resumable(job, instance.now)
        if left is not None:
            ends.append((job, instance.now + left.modes[0].time_for(left.work)))
    return _cost_of_delays(instance, ends)


def end_rate(instance: Instance, job: Job) -> Fraction:
    """Return the cost of each second by which a plan ends a running job later than the instance states, and of each
    second by which a waiting malleable job takes longer than at full share, or one with alternatives than by its own
    request.

    A second less is worth the same. The job has waited, so that no more of its delay can
    make it tardy; the makespan is that of the waiting jobs, and counts beside this.
    """
    rate = Fraction(0)
    for term, weight in instance.objective.weights.items():
        match term:
            case ObjectiveTerm.WEIGHTED_WAIT:
                rate += Fraction(weight) / instance.expected_wait(job)
            case ObjectiveTerm.WAIT | ObjectiveTerm.COMPLETION:
                rate += Fraction(weight)
            case ObjectiveTerm.SLOWDOWN:
                rate += Fraction(weight) / max(SLOWDOWN_TAU, job.own_walltime)
    return instance.weight(job) * rate


def delay_rates(instance: Instance, job: Job, runtime: int | None = None) -> Iterator[tuple[int, Fraction]]:
    """Yield the costs of a later start of a job: (second on the instance's clock, cost of each second of start after
    it), for each term of the objective but the makespan, and for delays beyond ``max_wait`` or the promised start.

    The slowdown of an evolving job depends on its runtime (s), and is left out where that is not given; that of every
    other job divides by the runtime that is expected of it. Waste does not depend on the start.
    """
    if not job.is_evolving:
        runtime = job.own_walltime if job.expected is None else job.expected
    expected, factor = instance.expected_wait(job), instance.weight(job)
    for term, weight in instance.objective.weights.items():
        rate = factor * Fraction(weight)
        match term:
            case ObjectiveTerm.WEIGHTED_WAIT:
                yield job.submit, rate / expected
            case ObjectiveTerm.WAIT | ObjectiveTerm.COMPLETION:
                yield job.submit, rate
            case ObjectiveTerm.SLOWDOWN if runtime is not None:
                least = max(SLOWDOWN_TAU, runtime)
                yield job.submit + least - runtime, rate / least
            case ObjectiveTerm.TARDINESS:
                yield job.submit + expected, rate
    max_wait = _max_wait(instance, job)
    if max_wait is not None:
        yield job.submit + max_wait.seconds, factor * Fraction(max_wait.price) / expected
    if job.told is not None:
        yield job.told.start, factor * Fraction(job.told.price) / expected


def honest_gap(score: Score) -> float | None:
    """Return ``(value - bound) / (value - suffered)``: the gap relative to the avoidable cost alone.

    None where there is no bound, and where the value is below `suffered`, because running jobs end earlier; 0 where
    the value equals the bound.
    """
    if score.bound is None:
        return None
    distance = score.value - score.bound
    changeable = score.value - score.suffered
    if distance <= 0:
        return 0.0
    return distance / changeable if changeable > 0 else None


@at_the_door
def summarise(instance: Instance, plan: Plan) -> Summary:
    """Return the figures of a plan of `instance`.

    Raises
    ------
    ValueError
        If a job of the plan is not in the instance.
    """
    runs = _waiting_runs(instance, plan.jobs)
    horizon = max((job.end for job in plan.jobs), default=instance.now) - instance.now
    return Summary(
        planned=len(runs),
        running=len(plan.jobs) - len(runs),
        waiting_room=len(plan.waiting_room),
        waits=_waits_per_queue(instance, runs),
        wqt=float(_sum_of_quotients((run.wait, run.expected_wait) for run in runs)),
        late=sum(run.wait > run.expected_wait for run in runs),
        tardiness=sum(run.tardiness for run in runs),
        overdue=_delays(_overdue(instance, run) for run in runs if instance.due(run.job) is not None),
        postponed=_delays(_postponed(run) for run in runs if run.job.told is not None),
        postponed_price=float(_sum_of_prices(_postponement_prices(runs))),
        makespan=int(_makespan(instance, runs)),
        horizon=horizon,
        utilisation=_utilisation(instance, plan, horizon),
    )


def usage_over_time(instance: Instance, plan: Plan, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how much of a resource or licence the jobs of a plan hold, as a step function from now on.

    Returns ``times`` and ``amounts`` of equal length: ``amounts[i]`` is held in ``[times[i], times[i + 1])``. ``times``
    ascends and begins with now; neighbouring amounts differ; the last one, which holds for ever, is 0.
    """
    changes: defaultdict[int, int] = defaultdict(int, {instance.now: 0})
    for start, end, held in _holdings(instance, plan, resource):
        changes[start] += held
        changes[end] -= held
    times = tuple(sorted(time for time, change in changes.items() if change or time == instance.now))
    return times, tuple(accumulate(changes[time] for time in times))


def _waiting_runs(instance: Instance, jobs: Iterable[PlannedJob], *, is_record: bool = False) -> list[_Run]:
    """Pair the planned waiting jobs with their entries."""
    entries = jobs_by_id(instance)
    runs = []
    for planned in jobs:
        job = entries.get(planned.id)
        if job is None:
            raise ValueError(f"job {planned.id!r} is not in the instance {instance.name!r}")
        if job.running is None:
            expected, weight = instance.expected_wait(job), instance.weight(job)
            duration = _duration(job, planned, is_record=is_record)
            waste, runtime = _wasted(job, planned), None if is_record else job.expected
            runs.append(_Run(job, expected, weight, planned.start, planned.end, duration, waste, runtime))
    return runs


def _duration(job: Job, planned: PlannedJob, *, is_record: bool) -> int:
    """Return the seconds that a planned waiting job takes, if it is malleable at full share, and with alternatives by
    its own request.

    In a record the work of a malleable job is its runtime, if that is less than its walltime.
    """
    if job.alternatives or job.own_walltime != job.walltime:
        return job.own_walltime
    if job.malleability is None:
        return planned.end - planned.start
    return min(job.runtime, job.walltime) if is_record and job.runtime is not None else job.walltime


def _wasted(job: Job, planned: PlannedJob) -> int:
    """Return cores x seconds by which the steps of an evolving job are held longer than they ask for."""
    if not job.is_evolving:
        return 0
    return sum(
        max(0, segment.end - segment.start - step.walltime) * step.request.totals.get("cores", 0)
        # the verifier checks that there is one for each
        for segment, step in zip(planned.segments, job.steps, strict=False)
    )


def _cost_of_changes(instance: Instance, jobs: Iterable[PlannedJob]) -> Fraction:
    """Return the cost of the ends of running jobs that a plan changes; below 0 where they end earlier."""
    ends = {planned.id: planned.end for planned in jobs}
    running = (job for job in instance.jobs if job.running is not None and job.id in ends)
    return _cost_of_delays(instance, [(job, ends[job.id]) for job in running if ends[job.id] != _stated_end(job)])


def _stated_end(job: Job) -> int:
    """Return the end of a running job as the instance states it."""
    if job.running is None:
        raise ValueError(f"job {job.id} does not run")
    return job.running.segments[-1].end


def _cost_of_delays(instance: Instance, ends: Iterable[tuple[Job, int]]) -> Fraction:
    """Return the cost of these ends of running jobs, relative to the ends that the instance states."""
    priced = ((end_rate(instance, job), end - _stated_end(job)) for job, end in ends)
    return _sum_of_quotients((rate.numerator * delay, rate.denominator) for rate, delay in priced)


def _value(instance: Instance, runs: list[_Run]) -> Fraction:
    """Add up the weighted terms, and the prices of overdue and postponed jobs."""
    weights = instance.objective.weights
    terms = sum((Fraction(weight) * _TERMS[term](instance, runs) for term, weight in weights.items()), Fraction(0))
    return terms + _surcharges(instance, runs)


def _surcharges(instance: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * price * delay / expected_wait: of delays beyond ``max_wait``, and behind promised starts."""
    late: list[_PricedDelay] = []
    for run in runs:
        max_wait = _max_wait(instance, run.job)
        if max_wait is not None:
            late.append((run.weight * Fraction(max_wait.price), _overdue(instance, run), run.expected_wait))
    return _sum_of_prices([*late, *_postponement_prices(runs)])


def _postponement_prices(runs: list[_Run]) -> list[_PricedDelay]:
    """Return the delays of jobs behind their promised starts."""
    return [
        (run.weight * Fraction(run.job.told.price), _postponed(run), run.expected_wait)
        for run in runs
        if run.job.told is not None
    ]


def _sum_of_prices(delays: Iterable[_PricedDelay]) -> Fraction:
    """Return the sum of price * seconds / expected wait."""
    return _sum_of_quotients(
        (price.numerator * seconds, price.denominator * expected) for price, seconds, expected in delays
    )


def _max_wait(instance: Instance, job: Job) -> MaxWait | None:
    return None if job.queue is None else instance.queues[job.queue].max_wait


def _overdue(instance: Instance, run: _Run) -> int:
    """Return the seconds that a job waits beyond its queue's ``max_wait``."""
    due = instance.due(run.job)
    return 0 if due is None else max(0, run.start - due)


def _postponed(run: _Run) -> int:
    """Return the seconds by which a job starts later than its promised start."""
    return 0 if run.job.told is None else max(0, run.start - run.job.told.start)


def _weighted_wait(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * (start - submit + stretch) / expected_wait."""
    return _weighed((run, run.wait + run.stretch, run.expected_wait) for run in runs)


def _wait(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * (start - submit + stretch)."""
    return _weighed((run, run.wait + run.stretch, 1) for run in runs)


def _slowdown(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * (max(1, (start + duration - submit) / max(10, duration)) + stretch / max(10, duration)); the
    duration of a job that states how long it is expected to run is that.
    """
    quotients = []
    for run in runs:
        duration = run.duration if run.expected is None else run.expected
        divisor = max(SLOWDOWN_TAU, duration)
        quotients.append((run, max(divisor, run.wait + duration) + run.stretch, divisor))
    return _weighed(quotients)


def _completion(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * (end - submit)."""
    return _weighed((run, run.end - run.job.submit, 1) for run in runs)


def _makespan(instance: Instance, runs: list[_Run]) -> Fraction:
    """Latest end - now; 0 without jobs. It is no sum over jobs, and has no weights."""
    return Fraction(max((run.end for run in runs), default=instance.now) - instance.now)


def _tardiness(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * max(0, start - submit - expected_wait)."""
    return _weighed((run, run.tardiness, 1) for run in runs)


def _waste(_: Instance, runs: list[_Run]) -> Fraction:
    """Sum of weight * (seconds held - walltime) x cores over the steps of evolving jobs."""
    return _weighed((run, run.waste, 1) for run in runs)


_TERMS = {
    ObjectiveTerm.WEIGHTED_WAIT: _weighted_wait,
    ObjectiveTerm.WAIT: _wait,
    ObjectiveTerm.SLOWDOWN: _slowdown,
    ObjectiveTerm.COMPLETION: _completion,
    ObjectiveTerm.MAKESPAN: _makespan,
    ObjectiveTerm.TARDINESS: _tardiness,
    ObjectiveTerm.WASTE: _waste,
}


def _weighed(quotients: Iterable[tuple[_Run, int, int]]) -> Fraction:
    """Add up (numerator, denominator) of jobs, times the jobs' weights."""
    return _sum_of_quotients(
        (run.weight.numerator * above, run.weight.denominator * below) for run, above, below in quotients
    )


def _sum_of_quotients(quotients: Iterable[tuple[int, int]]) -> Fraction:
    """Add up (numerator, denominator) pairs.

    Numerators over the same denominator are added first. The exact sum over thousands of different denominators would
    have a denominator of many thousand digits, so each quotient is cut off at `_FRACTION_BITS` binary digits: the order
    of the pairs does not matter, and what is cut off is far less than a float can show.
    """
    numerators: defaultdict[int, int] = defaultdict(int)
    for numerator, denominator in quotients:
        numerators[denominator] += numerator
    scaled = sum((numerator << _FRACTION_BITS) // denominator for denominator, numerator in numerators.items())
    return Fraction(scaled, 1 << _FRACTION_BITS)


def _delays(seconds: Iterable[int]) -> Delays | None:
    """Count the delays, of which those in time are 0; None where there are none."""
    listed = list(seconds)
    if not listed:
        return None
    return Delays(count=len(listed), late=sum(behind > 0 for behind in listed), total=sum(listed), max=max(listed))


def _waits_per_queue(instance: Instance, runs: list[_Run]) -> tuple[QueueWaits, ...]:
    """Group the waits by queue."""
    waits: defaultdict[str | None, list[int]] = defaultdict(list)
    for run in runs:
        waits[run.job.queue].append(run.wait)
    return tuple(
        QueueWaits(
            queue=queue,
            count=len(waits[queue]),
            mean=sum(waits[queue]) / len(waits[queue]),
            median=float(median(waits[queue])),
            max=max(waits[queue]),
        )
        for queue in (*instance.queues, None)
        if queue in waits
    )


def _utilisation(instance: Instance, plan: Plan, horizon: int) -> FrozenMap[str, float]:
    """Return used area / (capacity x horizon) of each resource of the up nodes, and of each licence."""
    available: defaultdict[str, int] = defaultdict(int)
    up_nodes: set[str] = set()
    for node_class in instance.cluster.classes:
        if node_class.state is NodeState.UP:
            up_nodes.update(node_class.names)
            for name, amount in node_class.resources.items():
                available[name] += amount * len(node_class.names)
    areas: defaultdict[str, int] = defaultdict(int)
    for job in plan.jobs:
        for segment in job.segments:
            seconds = max(0, segment.end - max(segment.start, instance.now))
            for placement in segment.allocation:
                if placement.node in up_nodes:
                    for name, amount in placement.resources.items():
                        areas[name] += amount * seconds
    for name, total in instance.cluster.licenses.items():
        available[name] = total
        areas[name] = sum(held * (end - start) for start, end, held in _license_holdings(instance, plan, name))
    return _shares(areas, available, horizon)


def _shares(areas: Mapping[str, int], available: Mapping[str, int], horizon: int) -> FrozenMap[str, float]:
    """Divide areas by the capacities over the horizon; resources without capacity are left out."""
    return FrozenMap(
        {
            name: areas.get(name, 0) / (amount * horizon) if horizon else 0.0
            for name, amount in available.items()
            if amount
        }
    )


def _holdings(instance: Instance, plan: Plan, resource: str) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, amount) of all uses of a resource or licence, from now on."""
    if resource in instance.cluster.licenses:
        yield from _license_holdings(instance, plan, resource)
        return
    for job in plan.jobs:
        for segment in job.segments:
            held = sum(placement.resources.get(resource, 0) for placement in segment.allocation)
            if held and segment.end > instance.now:
                yield max(segment.start, instance.now), segment.end, held


def _license_holdings(instance: Instance, plan: Plan, name: str) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, amount) of a licence; a job holds its licences from its start to its end."""
    entries = jobs_by_id(instance)
    for job in plan.jobs:
        held = entries[job.id].licenses.get(name, 0)
        if held and job.end > instance.now:
            yield max(job.start, instance.now), job.end, held
