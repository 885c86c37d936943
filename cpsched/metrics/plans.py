"""The figures of a plan: objective, waits per queue, lateness and utilisation, recomputed from instance and plan.

Begin with `objective_value`, the number that engines compare, and `summarise`, the figures that people read. Sums are
kept in integers and fractions, and only results become floats.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from statistics import median

from cpsched.arguments import at_the_door
from cpsched.domain import (
    AimScore,
    Cluster,
    FrozenMap,
    Instance,
    Job,
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
    #: The seconds of waiting that the alternative costs by which it runs.
    cost: int = 0
    #: Of an evolving job: cores of each step x seconds for which it is held longer than it asks for.
    waste: int = 0
    #: The seconds that its slowdown reckons with in place of `duration`, where the job is expected to run so long.
    expected: int | None = None

    @property
    def wait(self) -> int:
        return self.start - self.job.submit

    @property
    def stretch(self) -> int:
        """The seconds that the job takes longer than at full share, or than by its own request, and what that costs."""
        return self.end - self.start - self.duration + self.cost

    @property
    def tardiness(self) -> int:
        return max(0, self.wait - self.expected_wait)


def jobs_by_id(instance: Instance) -> dict[str, Job]:
    """Return the entry of each job by its id in a plan; all elements of an array share one entry."""
    return {element: job for job in instance.jobs for element in job.element_ids}


def objective_value(instance: Instance, jobs: Iterable[PlannedJob], *, is_record: bool = False) -> float:
    """Return the value of the instance's objective (BRIDI-8).

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
        runs.append(replace(run, start=start, end=end, duration=walltime, cost=0, waste=0))
    return _value(instance, runs)


def least_running_cost(instance: Instance) -> Fraction:
    """Return the least cost of the running jobs, at most 0: each that a plan may change has all cores from now on."""
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
    factor, rates = instance.weight(job), list[Fraction]()
    for term, weight in instance.objective.weights.items():
        match term:
            case ObjectiveTerm.WEIGHTED_WAIT:
                rates.append(_rate(weight, factor, instance.expected_wait(job)))
            case ObjectiveTerm.WAIT | ObjectiveTerm.COMPLETION:
                rates.append(_rate(weight, factor, 1))
            case ObjectiveTerm.SLOWDOWN:
                rates.append(_rate(weight, factor, max(SLOWDOWN_TAU, job.own_walltime)))
    return rates[0] if len(rates) == 1 else sum(rates, Fraction(0))


@lru_cache(maxsize=4096)
def _rate(weight: float, factor: Fraction, seconds: int) -> Fraction:
    """Return the cost of a second by a term of the objective: many jobs have the same."""
    return factor * Fraction(weight) / seconds


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
        match term:
            case ObjectiveTerm.WEIGHTED_WAIT:
                yield job.submit, _rate(weight, factor, expected)
            case ObjectiveTerm.WAIT | ObjectiveTerm.COMPLETION:
                yield job.submit, _rate(weight, factor, 1)
            case ObjectiveTerm.SLOWDOWN if runtime is not None:
                least = max(SLOWDOWN_TAU, runtime)
                yield job.submit + least - runtime, _rate(weight, factor, least)
            case ObjectiveTerm.TARDINESS:
                yield job.submit + expected, _rate(weight, factor, 1)
    for second, price in _priced_seconds(instance, job):
        yield second, factor * price / expected


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
    """Return the figures of a plan of `instance` (BRIDI-19, EVO-12, EVO-13).

    Raises
    ------
    ValueError
        If a job of the plan is not in the instance.
    """
    runs = _waiting_runs(instance, plan.jobs)
    horizon = max((job.end for job in plan.jobs), default=instance.now) - instance.now
    promised = [(run, run.job.told) for run in runs if run.job.told is not None]
    return Summary(
        planned=len(runs),
        running=len(plan.jobs) - len(runs),
        waiting_room=len(plan.waiting_room),
        waits=_waits_per_queue(instance, runs),
        wqt=float(_sum_of_quotients((run.wait, run.expected_wait) for run in runs)),
        late=sum(run.wait > run.expected_wait for run in runs),
        tardiness=sum(run.tardiness for run in runs),
        overdue=_delays((run, due) for run in runs if (due := instance.due(run.job)) is not None),
        postponed=_delays((run, told.start) for run, told in promised),
        postponed_price=float(
            _weighed(
                (run.weight * Fraction(told.price), max(0, run.start - told.start), run.expected_wait)
                for run, told in promised
            )
        ),
        makespan=_makespan(instance, runs),
        horizon=horizon,
        utilisation=_utilisation(instance, plan, horizon),
    )


def usage_over_time(instance: Instance, plan: Plan, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how much of a resource or licence the jobs of a plan hold, as a step function from now on.

    Returns ``times`` and ``amounts`` of equal length: ``amounts[i]`` is held in ``[times[i], times[i + 1])``. ``times``
    ascends and begins with now; neighbouring amounts differ; the last one, which holds for ever, is 0.
    """
    changes: defaultdict[int, int] = defaultdict(int, {instance.now: 0})
    for start, end, held in _holdings(instance, plan, resource, instance.cluster.class_of):
        changes[start] += held
        changes[end] -= held
    times = tuple(sorted(time for time, change in changes.items() if change or time == instance.now))
    return times, tuple(accumulate(changes[time] for time in times))


def _waiting_runs(instance: Instance, jobs: Iterable[PlannedJob], *, is_record: bool = False) -> list[_Run]:
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
            cost = job.step_of(min(planned.alternative, len(job.alternatives))).cost
            runs.append(_Run(job, expected, weight, planned.start, planned.end, duration, cost, waste, runtime))
    return runs


def _duration(job: Job, planned: PlannedJob, *, is_record: bool) -> int:
    """Return the seconds that a planned waiting job takes, if it is malleable at full share, and with alternatives by
    its own request.

    In a record the work of a malleable job is its runtime, if that is less than its walltime.
    """
    if job.alternatives or planned.alternative or job.own_walltime != job.walltime:
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
    if job.running is None:
        raise ValueError(f"job {job.id} does not run")
    return job.running.segments[-1].end


def _cost_of_delays(instance: Instance, ends: Iterable[tuple[Job, int]]) -> Fraction:
    """Return the cost of these ends of running jobs, relative to the ends that the instance states."""
    priced = ((end_rate(instance, job), end - _stated_end(job)) for job, end in ends)
    return _sum_of_quotients((rate.numerator * delay, rate.denominator) for rate, delay in priced)


def _value(instance: Instance, runs: list[_Run]) -> Fraction:
    """Add up the weighted terms, and the prices of overdue and postponed jobs."""
    terms = Fraction(0)
    for term, weight in instance.objective.weights.items():
        if term is ObjectiveTerm.MAKESPAN:
            terms += Fraction(weight) * _makespan(instance, runs)
        else:
            figures = zip(runs, map(_TERMS[term], runs), strict=True)
            terms += Fraction(weight) * _sum_of_quotients(
                (run.weight.numerator * above, run.weight.denominator * below) for run, (above, below) in figures
            )
    waited_for = {name for name, queue in instance.queues.items() if queue.max_wait is not None}
    priced = (run for run in runs if run.job.told is not None or run.job.queue in waited_for)  # mostly none
    return terms + _weighed(
        (run.weight * price, max(0, run.start - second), run.expected_wait)
        for run in priced
        for second, price in _priced_seconds(instance, run.job)
    )


def _weighed(quotients: Iterable[tuple[Fraction, int, int]]) -> Fraction:
    """Return the sum of weight * numerator / denominator."""
    return _sum_of_quotients(
        (weight.numerator * above, weight.denominator * below) for weight, above, below in quotients
    )


def _priced_seconds(instance: Instance, job: Job) -> Iterator[tuple[int, Fraction]]:
    """Yield the seconds after which a start has a price for each expected wait: by ``max_wait``, and as promised."""
    due = instance.due(job)
    if due is not None and job.queue is not None:
        max_wait = instance.queues[job.queue].max_wait
        yield due, Fraction(0 if max_wait is None else max_wait.price)
    if job.told is not None:
        yield job.told.start, Fraction(job.told.price)


def _slowdown(run: _Run) -> tuple[int, int]:
    """``max(1, (start + duration - submit) / max(10, duration)) + stretch / max(10, duration)``; the duration of a job
    that states how long it is expected to run is that.
    """
    duration = run.duration if run.expected is None else run.expected
    divisor = max(SLOWDOWN_TAU, duration)
    return max(divisor, run.wait + duration) + run.stretch, divisor


#: What a job adds to each term but the makespan, times its weight, as (numerator, denominator).
_TERMS: Mapping[ObjectiveTerm, Callable[[_Run], tuple[int, int]]] = {
    ObjectiveTerm.WEIGHTED_WAIT: lambda run: (run.wait + run.stretch, run.expected_wait),
    ObjectiveTerm.WAIT: lambda run: (run.wait + run.stretch, 1),
    ObjectiveTerm.SLOWDOWN: _slowdown,
    ObjectiveTerm.COMPLETION: lambda run: (run.end - run.job.submit + run.cost, 1),
    ObjectiveTerm.TARDINESS: lambda run: (run.tardiness, 1),
    ObjectiveTerm.WASTE: lambda run: (run.waste, 1),
}


def _makespan(instance: Instance, runs: list[_Run]) -> int:
    """Return the seconds from now to the latest end; 0 without jobs. It is no sum over jobs, and has no weights."""
    return max((run.end for run in runs), default=instance.now) - instance.now


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


def _delays(runs: Iterable[tuple[_Run, int]]) -> Delays | None:
    """Count the delays of jobs behind a second each; None where there are none."""
    listed = [max(0, run.start - second) for run, second in runs]
    if not listed:
        return None
    return Delays(count=len(listed), late=sum(behind > 0 for behind in listed), total=sum(listed), max=max(listed))


def _waits_per_queue(instance: Instance, runs: list[_Run]) -> tuple[QueueWaits, ...]:
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


def available(cluster: Cluster) -> dict[str, int]:
    """Return the total of each resource over the nodes that are up, and of each licence."""
    totals = dict.fromkeys(cluster.totals, 0)
    for node_class in cluster.classes:
        for name, amount in node_class.resources.items() if node_class.state is NodeState.UP else ():
            totals[name] += amount * len(node_class.names)
    return {**totals, **cluster.licenses}


def _utilisation(instance: Instance, plan: Plan, horizon: int) -> FrozenMap[str, float]:
    """Return used area / (capacity x horizon) of each resource of the up nodes, and of each licence."""
    class_of = instance.cluster.class_of
    is_up = {name for name, node_class in class_of.items() if node_class.state is NodeState.UP}
    shares = {}
    for name, amount in available(instance.cluster).items():
        area = sum(held * (end - start) for start, end, held in _holdings(instance, plan, name, is_up))
        if amount:
            shares[name] = area / (amount * horizon) if horizon else 0.0
    return FrozenMap(shares)


def _holdings(instance: Instance, plan: Plan, resource: str, nodes: Container[str]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, amount) of all uses of a resource on some nodes, or of a licence, from now on.

    A job holds its licences from its start to its end.
    """
    is_license = resource in instance.cluster.licenses
    entries = jobs_by_id(instance) if is_license else {}
    for job in plan.jobs:
        for part in (job,) if is_license else job.segments:
            if isinstance(part, PlannedJob):
                held = entries[job.id].licenses.get(resource, 0)
            else:
                held = sum(one.resources.get(resource, 0) for one in part.allocation if one.node in nodes)
            if held and part.end > instance.now:
                yield max(part.start, instance.now), part.end, held
