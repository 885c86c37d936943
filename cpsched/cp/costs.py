"""The objective in whole numbers: exact where they stay small, else rounded down, so that bounds stay bounds.

The bounds are imported where they are needed: the worker, which needs none of this, loads them only to prove some.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cpsched.cp.solution import Placed
from cpsched.cp.task_modes import TaskMode
from cpsched.domain import Instance, Job, ObjectiveTerm
from cpsched.metrics import delay_rates, end_rate

if TYPE_CHECKING:
    from cpsched.cp.encoding import Task


#: The largest value of an objective in whole numbers; CP-SAT has 64 bits, and is slow with the last of them.
_MOST = 1 << 50
#: A rate becomes the simplest quotient that differs from it by less than this part of it: a weight of 0.001 in a
#: document is meant as 1/1000, and not as the double next to it.
_TOLERANCE = Fraction(1, 1 << 48)
_MOST_DENOMINATOR = 1 << 24


@dataclass(frozen=True, slots=True)
class Rate:
    """The cost of each second of delay beyond `kink` (s from now), in whole numbers."""

    kink: int
    weight: int


@dataclass(frozen=True, slots=True)
class ModeCost:
    """The cost of running a job in a mode, beside that of its start, in whole numbers."""

    fixed: int
    #: The further cost of the start in this mode.
    rates: tuple[Rate, ...]
    #: The cost of each second that a segment takes beyond its least duration.
    holds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskCosts:
    """The objective, without what each job that is in all plans costs at its earliest start and its shortest, times
    `scale`.
    """

    #: By task: rates that hold in every mode.
    rates: tuple[tuple[Rate, ...], ...]
    #: By task and mode.
    modes: tuple[tuple[ModeCost, ...], ...]
    #: By task: what it costs at its earliest start and its shortest; only of those that a plan may leave out.
    places: tuple[int, ...]
    #: By task of several modes: what each second costs by which it takes longer than at its shortest.
    ends: Mapping[int, Rate]
    #: The cost of a second of makespan.
    makespan: int
    #: The cost at their earliest starts of all tasks that are in all plans, rounded down.
    base: Fraction
    #: Whole numbers for one unit of the objective.
    scale: Fraction
    #: Such a part of a bound in whole numbers is given up, since rates were simplified.
    slack: Fraction

    @property
    def is_makespan_alone(self) -> bool:
        """Whether nothing counts but the end of the last job."""
        modes = [mode for of_task in self.modes for mode in of_task]
        is_else = any(self.rates) or self.ends or any(mode.fixed or mode.rates or any(mode.holds) for mode in modes)
        return self.makespan > 0 and not is_else

    def cost_of(self, number: int, placed: Placed, task: Task) -> int:
        """Return the cost of a placed task by itself, in whole numbers: all but the makespan and `places`."""
        mode = self.modes[number][placed.mode]
        total = mode.fixed
        total += sum(rate.weight * max(0, placed.start - rate.kink) for rate in (*self.rates[number], *mode.rates))
        lengths = zip(placed.lengths, task.modes[placed.mode].spans, mode.holds, strict=True)
        total += sum(weight * (length - span.least) for length, span, weight in lengths)
        if number in self.ends:
            total += self.ends[number].weight * (placed.end - placed.start - self.ends[number].kink)
        return total

    def makespan_of(self, solution: Sequence[Placed], tasks: Sequence[Task]) -> int:
        """Return the second by which all jobs have ended that do not run yet."""
        found = zip(solution, tasks, strict=True)
        ends = (placed.end for placed, task in found if not task.is_running and not placed.is_absent)
        return max(ends, default=0)

    def bound(self, least: float) -> float:
        """Return the bound on the objective that follows from one in whole numbers; rounded down.

        It speaks of these tasks alone, and of the makespan.
        """
        from cpsched.cp.bounds.costs import round_down

        whole = math.ceil(least - 1e-6)
        return round_down(self.base + Fraction(whole) / self.scale * (1 - self.slack))


@dataclass(frozen=True, slots=True)
class _MeantMode:
    """A mode's costs as they are meant, with quotients for whole numbers."""

    fixed: Fraction
    rates: tuple[tuple[int, Fraction], ...]
    holds: tuple[Fraction, ...]

    def simplest(self) -> _MeantMode:
        """Return the quotients that are meant."""
        return _MeantMode(_simplest(self.fixed), _all_simplest(self.rates), tuple(map(_simplest, self.holds)))

    def whole(self, scale: Fraction) -> ModeCost:
        """Return the costs in whole numbers, rounded down."""
        holds = tuple(math.floor(hold * scale) for hold in self.holds)
        return ModeCost(math.floor(self.fixed * scale), tuple(_rates(self.rates, scale)), holds)


@dataclass(frozen=True, slots=True)
class _Meant:
    """A task's costs as they are meant."""

    #: At its earliest and shortest, of a task that is in all plans.
    value: Fraction
    rates: tuple[tuple[int, Fraction], ...]
    modes: tuple[_MeantMode, ...]
    #: Each second by which a task of several modes takes longer than at its shortest.
    end: Fraction
    #: At its earliest and shortest, of a task that may be left out.
    place: Fraction = Fraction(0)

    @property
    def quotients(self) -> Iterator[Fraction]:
        """All that must become whole numbers."""
        yield self.end
        yield self.place
        yield from (rate for _, rate in self.rates)
        for mode in self.modes:
            yield mode.fixed
            yield from (rate for _, rate in mode.rates)
            yield from mode.holds

    def simplest(self) -> _Meant:
        """Return the quotients that are meant."""
        modes = tuple(mode.simplest() for mode in self.modes)
        return _Meant(self.value, _all_simplest(self.rates), modes, _simplest(self.end), _simplest(self.place))

    def largest(self, task: Task) -> Fraction:
        """Return the most that is added to the value."""
        of_modes = []
        for mode, cost in zip(task.modes, self.modes, strict=True):
            held = zip(cost.holds, mode.spans, strict=True)
            delayed = sum((rate * (task.latest - kink) for kink, rate in (*self.rates, *cost.rates)), cost.fixed)
            of_modes.append(sum((hold * (span.most - span.least) for hold, span in held), delayed))
        return max(of_modes) + self.place + self.end * max(mode.most for mode in task.modes)


def costs_of(instance: Instance, tasks: Sequence[Task], *, horizon: int) -> TaskCosts:
    """Return the objective over some tasks. `horizon`: No makespan is larger."""
    from cpsched.cp.bounds.costs import sum_down

    meant = [_meant_of(instance, task) for task in tasks]
    meant_factor = Fraction(instance.objective.weights.get(ObjectiveTerm.MAKESPAN, 0.0))
    factor, simple = _simplest(meant_factor), [of_task.simplest() for of_task in meant]
    exact = math.lcm(factor.denominator, *{q.denominator for of_task in simple for q in of_task.quotients})
    largest = factor * horizon
    largest += sum((of.largest(task) for of, task in zip(simple, tasks, strict=True)), Fraction(0))
    scale = Fraction(exact) if exact * largest <= _MOST else _MOST / largest
    return TaskCosts(
        rates=tuple(tuple(_rates(of_task.rates, scale)) for of_task in simple),
        modes=tuple(tuple(mode.whole(scale) for mode in of_task.modes) for of_task in simple),
        places=tuple(math.floor(of_task.place * scale) for of_task in simple),
        ends={
            number: Rate(task.shortest, math.floor(of_task.end * scale))
            for number, (task, of_task) in enumerate(zip(tasks, simple, strict=True))
            if of_task.end
        },
        makespan=math.floor(factor * scale),
        base=sum_down(of_task.value for of_task in meant),
        scale=scale,
        slack=Fraction(0) if (factor, simple) == (meant_factor, meant) else 2 * _TOLERANCE,
    )


def _meant_of(instance: Instance, task: Task) -> _Meant:
    from cpsched.cp.bounds.costs import job_cost, least_cost

    if task.job.running is not None:
        rate = end_rate(instance, task.job)
        gain = instance.now + task.shortest - task.job.running.segments[-1].end
        return _Meant(rate * gain, (), tuple(_meant_mode(instance, task, mode) for mode in task.modes), rate)
    cost = job_cost(instance, task.job, instance.now + task.earliest, task.shortest)
    if task.job.alternatives:
        cost = least_cost(instance, task.job, instance.now + task.earliest)
    rates = tuple((kink - instance.now, rate) for kink, rate in cost.rates if kink - instance.now < task.latest)
    modes = tuple(_meant_mode(instance, task, mode) for mode in task.modes)
    end = end_rate(instance, task.job) if len(task.modes) > 1 else Fraction(0)
    if task.is_optional:
        return _Meant(Fraction(0), rates, modes, end, place=cost.value)
    return _Meant(cost.value, rates, modes, end)


def _meant_mode(instance: Instance, task: Task, mode: TaskMode) -> _MeantMode:
    """Return the cost of a mode of an evolving job beside that of the start: of completion, slowdown, and waste.

    The slowdown of an evolving job that can be held is taken as that of the longest runtime, which is never more: a
    runtime in a denominator has no place here.
    """
    job = task.job
    if not job.is_evolving:
        return _MeantMode(end_rate(instance, job) * mode.cost, (), (Fraction(0),) * len(mode.spans))
    second = instance.term_weight(ObjectiveTerm.COMPLETION, job)
    waste = instance.term_weight(ObjectiveTerm.WASTE, job)
    fixed = second * (mode.least - task.shortest)
    rates = []
    for since, rate in _slowdown_rates(instance, job, mode):
        kink = since - instance.now
        fixed += rate * max(0, task.earliest - kink)
        if kink < task.latest:
            rates.append((max(kink, task.earliest), rate))
    held = zip(mode.spans, mode.cores, strict=True)
    holds = (second + waste * cores if span.least < span.most else Fraction(0) for span, cores in held)
    return _MeantMode(fixed, tuple(rates), tuple(holds))


def _slowdown_rates(instance: Instance, job: Job, mode: TaskMode) -> list[tuple[int, Fraction]]:
    """Return the rates of slowdown for a later start of an evolving job in a mode; those of others depend on no mode.

    Nothing, for one that may be held for ever: its slowdown comes as near to 1 as one likes.
    """
    if job.expand_limit is None and mode.least < mode.most:
        return []
    known = Counter(delay_rates(instance, job))
    shortest = Counter(delay_rates(instance, job, mode.least)) - known
    longest = Counter(delay_rates(instance, job, mode.most)) - known
    return [(kink, rate) for (kink, _), (_, rate) in zip(shortest, longest, strict=True)]


def _rates(rates: Iterable[tuple[int, Fraction]], scale: Fraction) -> Iterable[Rate]:
    return (Rate(kink, weight) for kink, rate in rates if (weight := math.floor(rate * scale)))


def _all_simplest(rates: Iterable[tuple[int, Fraction]]) -> tuple[tuple[int, Fraction], ...]:
    return tuple((kink, _simplest(rate)) for kink, rate in rates)


def _simplest(rate: Fraction) -> Fraction:
    """Return the quotient that is meant by a rate that was computed from doubles."""
    simple = rate.limit_denominator(_MOST_DENOMINATOR)
    return simple if abs(simple - rate) <= rate * _TOLERANCE else rate
