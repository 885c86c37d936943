"""The value of a plan, recomputed exactly from the two documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from cpsched.verify.case import Case, Violation
from cpsched.verify.model import Booking, Instance, Job

#: The relative tolerance of a stated number.
TOLERANCE = Fraction(1, 10**9)
#: And absolute, for numbers near 0.
NEAR_ZERO = Fraction(1, 10**12)
#: Bits behind the point to which quotients of many different denominators are added up: far below the tolerance.
FRACTION_BITS = 128
#: Shortest duration (s) that a slowdown divides by.
TAU = 10


class Run(NamedTuple):
    """A job with the times that the objective looks at."""

    job: Job
    start: int
    end: int
    #: Seconds by which a malleable job takes longer than its work takes at full share, and one with alternatives than
    #: the walltime that it asks for itself: less than 0 where it takes less.
    stretch: int = 0
    #: Cores of each step times the seconds for which it is held longer than it asks for.
    waste: int = 0
    #: The seconds of waiting that it costs to run by its alternative.
    cost: int = 0
    #: The seconds that a slowdown reckons with where they are not those of the job's booking: it is expected to run so
    #: long. None in a record.
    expected: int | None = None

    @property
    def waited(self) -> int:
        """The seconds of waiting that it counts with."""
        return self.start - self.job.submit + self.stretch + self.cost


def _weighted_wait(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``(start - submit + stretch + cost) / expected_wait``."""
    return _sum_of_quotients((run.waited, instance.expected_wait(run.job)) for run in runs)


def _wait(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``start - submit + stretch + cost``."""
    return Fraction(sum(run.waited for run in runs))


def _slowdown(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``max(1, (end - submit) / max(10, end - start))``, both without the stretch, and of that and the cost
    over the same.

    A job that states how long it is expected to run ends by then.
    """
    pairs = []
    for run in runs:
        unstretched = run.end - run.stretch if run.expected is None else run.start + run.expected
        below = max(TAU, unstretched - run.start)
        pairs.append((max(unstretched - run.job.submit, below) + run.stretch + run.cost, below))
    return _sum_of_quotients(pairs)


def _completion(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``end - submit + cost``."""
    return Fraction(sum(run.end - run.job.submit + run.cost for run in runs))


def _makespan(instance: Instance, runs: list[Run]) -> Fraction:
    """Last end, from `now` on."""
    return Fraction(max((run.end - instance.now for run in runs), default=0))


def _tardiness(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``max(0, start - submit - expected_wait)``."""
    return Fraction(sum(max(0, run.start - run.job.submit - instance.expected_wait(run.job)) for run in runs))


def _waste(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``(seconds held - walltime) * cores`` over the steps of evolving jobs."""
    return Fraction(sum(run.waste for run in runs))


def _overdue(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``price * max(0, start - submit - seconds) / expected_wait`` over the queues with ``max_wait``."""
    late = []
    for run in runs:
        bound = instance.max_wait(run.job)
        if bound is not None:
            late.append((run.job, bound.price, run.start - run.job.submit - bound.seconds))
    return _priced(instance, late)


def _postponed(instance: Instance, runs: list[Run]) -> Fraction:
    """Sum of ``price * max(0, start - told.start) / expected_wait`` over the jobs with promised starts."""
    told = ((run.job, run.job.told, run.start) for run in runs)
    return _priced(instance, ((job, said.price, start - said.start) for job, said, start in told if said is not None))


def _priced(instance: Instance, late: Iterable[tuple[Job, Fraction, int]]) -> Fraction:
    """Add up what jobs pay for seconds of delay, for each expected wait of it their price."""
    return _sum_of_quotients(
        (price.numerator * max(0, seconds), price.denominator * instance.expected_wait(job))
        for job, price, seconds in late
    )


TERMS: Mapping[str, Callable[[Instance, list[Run]], Fraction]] = {
    "weighted_wait": _weighted_wait,
    "wait": _wait,
    "slowdown": _slowdown,
    "completion": _completion,
    "makespan": _makespan,
    "tardiness": _tardiness,
    "waste": _waste,
}


def _sum_of_quotients(pairs: Iterable[tuple[int, int]]) -> Fraction:
    """Add up quotients: exactly for each denominator, and these sums to 2^-128."""
    numerators: dict[int, int] = {}
    for above, below in pairs:
        numerators[below] = numerators.get(below, 0) + above
    total = sum((above << FRACTION_BITS) // below for below, above in numerators.items())
    return Fraction(total, 1 << FRACTION_BITS)


def value_of(instance: Instance, runs: Iterable[Run]) -> Fraction:
    """Return the objective of jobs with their starts and ends (s), and what overdue and postponed ones add to it.

    All that is a sum over jobs counts with their weights; the makespan is none.
    """
    listed = list(runs)
    by_weight: dict[Fraction, list[Run]] = {}
    for run in listed:
        by_weight.setdefault(instance.weight(run.job), []).append(run)
    sums = {name: weight for name, weight in instance.weights.items() if name != "makespan"}
    total = instance.weights.get("makespan", Fraction(0)) * _makespan(instance, listed)
    for factor, equal in by_weight.items():
        terms = sum((weight * TERMS[name](instance, equal) for name, weight in sums.items()), Fraction(0))
        total += factor * (terms + _overdue(instance, equal) + _postponed(instance, equal))
    return total


def _run_of(case: Case, booking: Booking) -> Run:
    """Return a planned job with its times, the stretch of a chosen duration, and the waste of an evolving one."""
    job, stretch = booking.job, 0
    if job.malleable is not None and not job.is_evolving:
        stretch = booking.end - booking.start - case.seconds_of(job)
    if job.usual is not None:
        stretch = booking.end - booking.start - job.usual
    steps = job.steps if job.is_evolving else ()
    waste = sum(
        max(0, segment.end - segment.start - step.walltime) * step.request.totals().get("cores", 0)
        for segment, step in zip(booking.segments, steps, strict=False)
    )
    expected = None if case.plan.is_record else job.expected
    cost = 0 if job.usual is None else job.steps[0].cost
    return Run(job, booking.start, booking.end, stretch, waste, cost, expected)


def _cost_of_changes(case: Case) -> Fraction:
    """Return the cost of each second by which running jobs end later than the instance states.

    Less than 0 where they end earlier: because a plan changes them, and in a record in any case.
    """
    instance = case.instance
    ends = [(instance.jobs[booking.id], booking.end) for booking in (*case.running, *case.planned)]
    delays = [(job, instance.weight(job), end - job.running[-1].end) for job, end in ends if job.running]
    seconds = sum((factor * delay for _, factor, delay in delays), Fraction(0))
    costs = {
        "weighted_wait": _weighed((factor, delay, instance.expected_wait(job)) for job, factor, delay in delays),
        "wait": seconds,
        "completion": seconds,
        "slowdown": _weighed((factor, delay, max(TAU, job.walltime)) for job, factor, delay in delays),
    }
    return sum((weight * costs.get(name, 0) for name, weight in instance.weights.items()), Fraction(0))


def _weighed(delays: Iterable[tuple[Fraction, int, int]]) -> Fraction:
    """Add up factor * delay / seconds."""
    return _sum_of_quotients(
        (factor.numerator * delay, factor.denominator * seconds) for factor, delay, seconds in delays
    )


def _differs(got: Fraction, expected: Fraction) -> bool:
    return abs(got - expected) > max(NEAR_ZERO, TOLERANCE * max(abs(got), abs(expected)))


def _decimal(number: Fraction) -> str:
    """Write a number with twelve digits, also where no float is as large."""
    try:
        return f"{float(number):.12g}"
    except OverflowError:
        return f"{Decimal(number.numerator) / Decimal(number.denominator):.11e}"


def check_objective(case: Case) -> Iterator[Violation]:
    """Check that the stated value, suffered part, bound and gap are those of the planned and the running jobs."""
    score, instance = case.plan.score, case.instance
    terms = list(instance.weights.items())
    if (
        not instance.later_aims
        and len(terms) == 1
        and terms[0][1] == 1
        and score.get("name", terms[0][0]) != terms[0][0]
    ):
        yield Violation("objective", "objective.name", f"expected {terms[0][0]}, got {score['name']}")
    waited = [booking for booking in case.planned if not instance.jobs[booking.id].running]
    value = value_of(instance, (_run_of(case, booking) for booking in waited)) + _cost_of_changes(case)
    earliest = ((run.job, max(instance.now, run.job.submit)) for run in waited)
    suffered = value_of(
        instance,
        (Run(job, start, start + (job.usual or job.walltime), expected=job.expected) for job, start in earliest),
    )
    yield from _check_figure(score, "objective", "value", value)
    yield from _check_figure(score, "objective", "suffered", suffered)
    yield from _check_bound(score, "objective")
    yield from _check_later_aims(case, waited)


def _check_later_aims(case: Case, waited: Sequence[Booking]) -> Iterator[Violation]:
    """Check the stated values of the aims after the first one, which are those of the same jobs, and their bounds."""
    stated, instance = case.plan.later_scores, case.instance
    if len(stated) != len(instance.later_aims):
        message = f"expected the values of {len(instance.later_aims)} later aims, got {len(stated)}"
        yield Violation("objective", "objective.then", message)
        return
    for number, (weights, score) in enumerate(zip(instance.later_aims, stated, strict=True)):
        subject, alone = f"objective.then[{number}]", replace(case, instance=replace(instance, weights=weights))
        exact = value_of(alone.instance, (_run_of(case, booking) for booking in waited)) + _cost_of_changes(alone)
        yield from _check_figure(score, subject, "value", exact)
        yield from _check_bound(score, subject)


def _check_figure(
    score: Mapping[str, Fraction | str | None], subject: str, key: str, exact: Fraction
) -> Iterator[Violation]:
    """Check a stated figure against what follows from the jobs."""
    got = score.get(key)
    if isinstance(got, Fraction) and _differs(got, exact):
        message = f"expected {_decimal(exact)}, recomputed from the jobs, got {_decimal(got)}"
        yield Violation("objective", f"{subject}.{key}", message)


def _check_bound(score: Mapping[str, Fraction | str | None], subject: str) -> Iterator[Violation]:
    """Check that the bound, if any, is at most the value, and the gap ``(value - bound) / abs(value)``."""
    value, bound, gap = score.get("value"), score.get("bound"), score.get("gap")
    if not isinstance(value, Fraction) or "bound" not in score or "gap" not in score:
        return
    if bound is None and gap is not None:
        yield Violation("objective", f"{subject}.gap", "expected null, for there is no bound")
    if bound is None and "proof" in score:
        yield Violation("objective", f"{subject}.proof", "expected none, for there is no bound")
    if not isinstance(bound, Fraction):
        return
    if bound > value and _differs(bound, value):
        message = f"expected at most the value {_decimal(value)}, got {_decimal(bound)}"
        yield Violation("objective", f"{subject}.bound", message)
    expected = (value - bound) / abs(value) if value else Fraction(0)
    if not isinstance(gap, Fraction) or abs(gap - expected) > TOLERANCE * max(Fraction(1), abs(expected)):
        got = _decimal(gap) if isinstance(gap, Fraction) else "null"
        yield Violation("objective", f"{subject}.gap", f"expected {_decimal(expected)}, got {got}")
