"""From jobs to tasks: what the relaxation keeps of each job, equal ones together."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from graphlib import TopologicalSorter

import numpy as np

from cpsched.booking import Ledger
from cpsched.cp.bounds.costs import least_cost
from cpsched.cp.bounds.packing import Unit, units_of
from cpsched.cp.bounds.surrogates import Capacities, Ints, Profile, measures_of_jobs, size_vectors
from cpsched.domain import Chunk, Instance, Job, Remaining, Running, Segment, resumable
from cpsched.engine import Budget
from cpsched.problem import Precedences, by_job, own_start, refusal

#: No start is ever so late (s from now).
NEVER = 1 << 45

#: (second from now, cost of a second from then on), by ascending second.
Rates = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Groups of equal jobs, as rows; times in seconds from now."""

    counts: Ints
    earliest: Ints
    latest: Ints
    durations: Ints
    #: Row of `usage` of each group.
    kinds: Ints
    #: The amount of each surrogate that one job of each kind takes: shape (kinds, surrogates).
    usage: Ints
    #: Second from which on it costs, and what a second costs then: shape (groups, kinks); rates are exact.
    kinks: Ints
    rates: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Jobs on surrogates: every plan is possible here, and costs no more."""

    instance: Instance
    tasks: Tasks
    #: The capacity of each surrogate; and how many there are, the first ones, that are no measures of whole jobs.
    profiles: tuple[Profile, ...]
    num_plain: int
    units: tuple[Unit, ...]
    #: The number of each unit, and the number that a job of each kind holds: shape (kinds, units).
    counts: tuple[int, ...]
    held: Ints
    capacities: Capacities
    #: The places of the jobs of each group among those that were relaxed.
    members: tuple[tuple[int, ...], ...]

    def surrogates(self, sizes: Ints) -> tuple[Ints, list[Profile]]:
        """Return (usage of each kind of job, capacity over time) of more surrogates; `sizes` has a row for each."""
        return self.held @ sizes.T, self.capacities.profiles(sizes)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The holdings of jobs of one kind: (unit, number of it), and licences."""

    units: tuple[tuple[int, int], ...]
    licenses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A group of jobs without difference; times in seconds from now."""

    kind: int
    earliest: int
    latest: int
    duration: int
    rates: Rates


def relax(instance: Instance, jobs: Sequence[Job], starts: Sequence[int], *, most_vectors: int) -> Relaxation:
    """Return the relaxation of some rigid or evolving jobs with their earliest starts.

    An evolving job is its first step, which it holds for that step's walltime at least.
    """
    units: dict[Unit, int] = {}
    kinds: dict[_Kind, int] = {}
    rows: defaultdict[_Row, list[int]] = defaultdict(list)
    for place, (job, start) in enumerate(zip(jobs, starts, strict=True)):
        held: Counter[int] = Counter()
        for unit, count in units_of(instance.cluster, job):
            held[units.setdefault(unit, len(units))] += count
        licenses = tuple(job.licenses.get(name, 0) for name in instance.cluster.licenses)
        kind = kinds.setdefault(_Kind(tuple(sorted(held.items())), licenses), len(kinds))
        rows[_row(instance, job, start, kind)].append(place)
    counts = [0] * len(units)
    numbered = list(kinds)
    for row, members in rows.items():
        for place, count in numbered[row.kind].units:
            counts[place] += count * len(members)
    sizes = size_vectors(instance.cluster, list(units), most_vectors)
    held_units = np.zeros((len(numbered), len(units)), dtype=np.int64)
    for number, kind_of_job in enumerate(numbered):
        for place, count in kind_of_job.units:
            held_units[number, place] = count
    held_licenses = np.array([kind.licenses for kind in numbered], dtype=np.int64).reshape(len(numbered), -1)
    capacities = Capacities(instance, list(units), counts)
    profiles = [
        *capacities.profiles(sizes),
        *(_license_profile(instance, name, total) for name, total in instance.cluster.licenses.items()),
    ]
    usage = np.concatenate([held_units @ sizes.T, held_licenses], axis=1)
    seconds = np.zeros(len(numbered), dtype=np.int64)
    for row, members in rows.items():
        seconds[row.kind] += row.duration * len(members)
    measures, measured_profiles = measures_of_jobs(usage, seconds, profiles)
    tasks = _tasks(rows, np.concatenate([usage, measures], axis=1))
    return Relaxation(
        instance,
        tasks,
        (*profiles, *measured_profiles),
        len(profiles),
        tuple(units),
        tuple(counts),
        held_units,
        capacities,
        tuple(map(tuple, rows.values())),
    )


def _row(instance: Instance, job: Job, start: int, kind: int) -> _Row:
    now = instance.now
    bound = instance.latest_start(job)
    latest = NEVER if bound is None else max(start, bound) - now
    cost = least_cost(instance, job, start)
    rates = tuple((kink - now, rate) for kink, rate in cost.rates)
    return _Row(kind, start - now, latest, job.steps[0].walltime, rates)


def _tasks(rows: Mapping[_Row, Sequence[int]], usage: Ints) -> Tasks:
    """Turn groups into arrays; kinks that a group does not have cost nothing."""
    width = max((len(row.rates) for row in rows), default=0)
    padded = [row.rates + ((0, Fraction(0)),) * (width - len(row.rates)) for row in rows]

    def column(values: Sequence[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    return Tasks(
        counts=column([len(members) for members in rows.values()]),
        earliest=column([row.earliest for row in rows]),
        latest=column([row.latest for row in rows]),
        durations=column([row.duration for row in rows]),
        kinds=column([row.kind for row in rows]),
        usage=usage,
        kinks=column([kink for rates in padded for kink, _ in rates]).reshape(len(rows), width),
        rates=tuple(tuple(rate for _, rate in rates) for rates in padded),
    )


def _license_profile(instance: Instance, name: str, total: int) -> Profile:
    """Return how much of a license the running jobs leave."""
    ends: Counter[int] = Counter()
    for job in instance.jobs:
        if job.running is not None and job.licenses.get(name, 0):
            ends[job.running.segments[-1].end - instance.now] += job.licenses[name]
    times = [0, *sorted(ends)]
    amounts = [total - sum(amount for end, amount in ends.items() if end > time) for time in times]
    return Profile(np.array(times, dtype=np.int64), np.array(amounts, dtype=np.int64).clip(min=0))


def earliest_starts(instance: Instance, jobs: Sequence[Job], budget: Budget) -> list[int]:
    """Return for each job a second (on the instance's clock) before which no plan can start it.

    It is exact for one kind of chunks: nodes are filled completely, and running jobs only end. A request of
    several kinds is searched kind by kind, since its mapping to nodes is no exact search; the latest start counts.
    Evolving jobs count with their first step, those with alternatives by the one that starts first. Malleable jobs are
    left out. When the budget is spent, the remaining
    jobs get the earliest start of their own limits. No job starts before those that it waits for have started or ended.
    """
    starts = [own_start(instance, job) for job in jobs]
    if any(job.running is not None for job in instance.jobs):
        starts = _beside_running(instance, jobs, starts, budget)
    return _after_awaited(instance, jobs, starts)


def _after_awaited(instance: Instance, jobs: Sequence[Job], starts: Sequence[int]) -> list[int]:
    """Return earliest starts that dependencies allow, too: each job takes its shortest time."""
    links, found = Precedences(instance, jobs), list(starts)
    if instance.preemption is None:  # else jobs that run may end sooner
        found = [max(start, instance.now + (links.released(job) or 0)) for job, start in zip(jobs, starts, strict=True)]
    milestones = links.milestones()
    waits = by_job(one.after for one in milestones)
    earlier = {
        number: {other for job, _ in one.before for other, _ in waits.get(job, ())}
        for number, one in enumerate(milestones)
    }
    for number in TopologicalSorter(earlier).static_order():
        reached = max(found[job] + seconds for job, seconds in milestones[number].before)
        for job, delay in milestones[number].after:
            found[job] = max(found[job], reached + delay)
    return found


def _beside_running(instance: Instance, jobs: Sequence[Job], starts: Sequence[int], budget: Budget) -> list[int]:
    """Return the earliest starts, not before the given ones, beside what the running jobs hold."""
    probes: dict[Job, int] = {}
    asked: list[list[list[Job]]] = []
    for job, start in zip(jobs, starts, strict=True):
        asked.append([[]] if job.malleability is not None else [_probes(one, start) for one in job.choices])
        for of_choice in asked[-1]:
            for probe in of_choice:
                probes.setdefault(probe, len(probes))
    admitted = [replace(probe, id=str(number)) for probe, number in probes.items() if refusal(instance, probe) is None]
    ledger = Ledger(instance, admitted)
    found: dict[str, int] = {}
    for probe in admitted:
        if not budget.remaining:
            break
        ledger.plan([probe.id])
        planned = ledger.planned(probe.id)
        if planned is not None:
            found[probe.id] = planned.start
            ledger.release(probe.id)
    return [
        min(max([start, *(found.get(str(probes[probe]), start) for probe in of_choice)]) for of_choice in of_job)
        for of_job, start in zip(asked, starts, strict=True)
    ]


def _probes(job: Job, start: int) -> list[Job]:
    """Return jobs of which each must be able to start when `job` does; jobs that ask the same give equal probes."""
    step = job.steps[0]
    kinds: list[tuple[Chunk, ...]] = [(chunk,) for chunk in step.request.chunks]
    if step.request.place.is_packed:
        kinds = [step.request.chunks]
    return [
        Job(
            id="",
            submit=start,
            not_before=start,
            steps=(replace(step, request=replace(step.request, chunks=chunks)),),
            licenses=job.licenses,
        )
        for chunks in kinds
    ]


def with_least_running(instance: Instance) -> Instance:
    """Return the instance in which running jobs leave at every second all that a plan can make them leave.

    A malleable job holds the cores of its smallest share, and only until its end with all its cores: no plan can
    have both, so every plan remains possible beside it.
    """
    lefts = [resumable(job, instance.now) for job in instance.jobs]
    if not any(lefts):
        return instance
    jobs = tuple(
        job if left is None else _at_least(job, left, instance.now)
        for job, left in zip(instance.jobs, lefts, strict=True)
    )
    return replace(instance, jobs=jobs)


def _at_least(job: Job, left: Remaining, now: int) -> Job:
    """Return a job that holds what is held on the smallest share, for as long as on the full one."""
    end = now + left.modes[0].time_for(left.work)
    start = now if job.running is None else job.running.start
    segment = Segment(start=start, end=end, allocation=left.allocations[-1])
    return replace(job, malleability=None, running=Running(start=start, segments=(segment,)))
