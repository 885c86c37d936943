"""Choices that are made before engines plan: of awaited jobs, and of jobs that consume licences.

Engines then know one choice of each of these jobs, and no licences that are consumed. CP-SAT and the bounds ask for all
of them (`opened`), and other solvers plan again by what the best plan has chosen (`chosen_in`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cpsched.domain import Amounts, Instance, Job, priority_classes
from cpsched.problem.admission import refusal
from cpsched.problem.choices import CompiledJob, given, with_choices
from cpsched.problem.precedences import awaited_ends

#: Rounds in which licences that are short get dearer.
_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An instance in which some jobs have no choice, and none consumes a licence."""

    instance: Instance
    #: The alternatives by which jobs run that have no choice here, by their ids in a plan.
    alternatives: Mapping[str, int]
    #: Whether `opened` has all plans.
    is_whole: bool = True


@dataclass(slots=True)
class _Unit:
    """A job whose choice is made; mutable: its choice is."""

    job: Job
    priority: int
    #: The numbers of the choices with which it could start, or 0; the seconds of each, and what it consumes.
    numbers: list[int]
    walltimes: list[int]
    takes: list[dict[str, int]]
    #: Which of these it has; None: it is left out.
    place: int | None = 0


def settled(instance: Instance, *, of_all: bool, is_final: bool, are_played: bool) -> Settled:
    """Return an instance in which the jobs have no choice for whose end others wait, or that consume something.

    Each runs by the first choice with which it could start. If that is more than there is, others are looked for that
    consume less; as a last resort jobs are left out, those of the least priority and the last ones first.

    Parameters
    ----------
    of_all
        Whether no job has a choice.
    is_final
        Whether nobody may choose again: rules count what is chosen.
    are_played
        Whether the jobs are played: their ends are then not known from their starts, and nothing is consumed.
    """
    consumed = () if are_played else instance.cluster.consumed
    if not consumed and not any(job.alternatives for job in instance.jobs):
        return Settled(instance=instance, alternatives={})
    awaited = frozenset[str]() if are_played else awaited_ends(instance)

    def is_settled(job: Job) -> bool:
        takes = any(_takes(job, number, consumed) for number in range(1 + len(job.alternatives)))
        return takes or (bool(job.alternatives) and (of_all or not awaited.isdisjoint(job.element_ids)))

    if not of_all and any(job.array and is_settled(job) for job in instance.jobs):
        instance = expanded(instance)
    left = {name: instance.cluster.licenses[name] for name in consumed}
    units: dict[str, _Unit] = {}
    for job in instance.jobs:
        if job.running is not None:
            for name, amount in _takes(job, 0, consumed).items():
                left[name] = max(0, left[name] - amount)
        elif is_settled(job):
            choices = job.choices
            possible = [place for place, one in enumerate(choices) if refusal(instance, one) is None] or [0]
            walltimes = [choices[number].walltime for number in possible]
            takes = [_takes(job, number, consumed) for number in possible]
            units[job.id] = _Unit(job, instance.priority(job), possible, walltimes, takes)
    _feed(list(units.values()), left)
    for name, amount in _used(units.values()).items():
        left[name] -= amount
    jobs, alternatives = list[Job](), dict[str, int]()
    for job in instance.jobs:
        if job.id in units:
            unit = units[job.id]
            number = unit.numbers[unit.place or 0]
            if job.alternatives:
                alternatives |= dict.fromkeys(job.element_ids, number)
            rigid = without(given(job, number), () if unit.place is None else consumed)
            jobs.append(rigid if is_final or (rigid is job) else with_choices(rigid, job, number))
        else:
            jobs.append(without(job, consumed))
    licenses = Amounts({**instance.cluster.licenses, **left})
    return Settled(
        instance=replace(instance, jobs=tuple(jobs), cluster=replace(instance.cluster, licenses=licenses)),
        alternatives=alternatives,
        is_whole=not is_final and all(unit.place is not None for unit in units.values()),
    )


def opened(job: Job) -> Job:
    """Return a job with all its choices, the one that it runs by first, and with what it consumes."""
    return job.whole if isinstance(job, CompiledJob) and job.whole is not None else job


def has_choices_made(instance: Instance) -> bool:
    """Tell whether jobs of a compiled instance have other choices than the one that was made for them."""
    return any(isinstance(job, CompiledJob) and job.whole is not None for job in instance.jobs)


def consumable(instance: Instance) -> dict[str, int]:
    """Return what there is for waiting jobs of each licence that does not come back, in a compiled instance: what is
    left, and what the jobs take by the choices that they have.
    """
    found = {name: instance.cluster.licenses[name] for name in instance.cluster.consumed}
    for job in instance.elements():
        for name, amount in opened(job).licenses.items() if job.running is None else ():
            if name in found and name not in job.licenses:
                found[name] += amount
    return found


def chosen_in(instance: Instance, numbers: Mapping[str, int]) -> tuple[Instance, dict[str, int]]:
    """Return a compiled instance in which each job whose choice is made runs by one that a plan of it has, and has no
    others; and those choices that are not the job's first, by id.

    `numbers`: the choices of a plan, by the ids of its jobs.
    """
    consumed = instance.cluster.consumed
    jobs = tuple(_rechosen(job, numbers, consumed) for job in instance.jobs)
    made = {job.id for job in instance.jobs if isinstance(job, CompiledJob) and job.whole is not None}
    return replace(instance, jobs=jobs), {name: n for name, n in numbers.items() if n and name in made}


def held_choices(instance: Instance, jobs: Sequence[Job]) -> list[Job]:
    """Return the choices of jobs one after the other, each as a job that waits for none, and consumes nothing."""
    consumed = instance.cluster.consumed
    return [
        replace(without(one, consumed), id=f"{job.id} {number}", after=())
        for job in jobs
        for number, one in enumerate(job.choices)
    ]


def _rechosen(job: Job, numbers: Mapping[str, int], consumed: Sequence[str]) -> Job:
    """Return a job by one of its choices, if it has some of which one was made."""
    if not isinstance(job, CompiledJob) or job.whole is None:
        return job
    number = numbers.get(job.id, 0)
    if not number:
        return replace(job, whole=None)
    other = without(job.whole.choices[number], consumed)
    return replace(job, steps=other.steps, licenses=other.licenses, usual=job.whole.own_walltime, whole=None)


def without(job: Job, consumed: Sequence[str]) -> Job:
    """Return a job without what it consumes."""
    if job.licenses.keys().isdisjoint(consumed):
        return job
    return replace(job, licenses=Amounts({name: n for name, n in job.licenses.items() if name not in consumed}))


def _takes(job: Job, number: int, consumed: Sequence[str]) -> dict[str, int]:
    """Return the licences that a job consumes by one of its choices, and their amounts."""
    return {name: amount for name, amount in job.licenses_of(number).items() if name in consumed}


def _feed(units: Sequence[_Unit], left: Mapping[str, int]) -> None:
    """Change choices until no more is consumed than is left, or leave jobs out.

    Licences that are short get dearer in each round, and each job takes what costs it least. Of the choices that fit,
    or of the last ones, those that had changed change back where that fits too, or to shorter ones.
    """
    consuming, first = [unit for unit in units if any(unit.takes)], {id(unit): unit.place for unit in units}
    longest = max((max(unit.walltimes) for unit in consuming), default=1)
    prices = dict.fromkeys(left, 0.0)
    for _ in range(_ROUNDS):
        short = {name: used - left[name] for name, used in _used(consuming).items() if used > left[name]}
        if not short:
            break
        for name, amount in short.items():
            prices[name] += (1 + len(consuming) / 4) * amount / max(1, left[name])
        for unit in consuming:
            unit.place = min(
                range(len(unit.numbers)),
                key=lambda place, unit=unit: (  # type: ignore[misc]  # bound at once
                    unit.walltimes[place] / longest
                    + sum(prices[name] * amount / max(1, left[name]) for name, amount in unit.takes[place].items())
                ),
            )
    for _, unit in sorted(enumerate(consuming), key=lambda one: (one[1].priority, -one[0])):
        used = _used(consuming)
        if any(used[name] > left[name] for name in unit.takes[unit.place or 0]):
            unit.place = None
    for unit in sorted(consuming, key=lambda unit: -unit.priority):
        if unit.place != first[id(unit)]:
            _change_back(unit, first[id(unit)], _used([one for one in consuming if one is not unit]), left)


def _change_back(unit: _Unit, first: int | None, used: Mapping[str, int], left: Mapping[str, int]) -> None:
    """Give a job its first choice or the shortest one that fits beside the others, unless it has a shorter one."""
    for place in sorted(range(len(unit.numbers)), key=lambda place: (place != first, unit.walltimes[place])):
        if place == unit.place:
            return
        if all(used.get(name, 0) + amount <= left[name] for name, amount in unit.takes[place].items()):
            unit.place = place
            return


def _used(units: Iterable[_Unit]) -> Counter[str]:
    """Return the sums of the licences that jobs consume by the choices that they have."""
    found = Counter[str]()
    for unit in units:
        if unit.place is not None:
            found.update(unit.takes[unit.place])
    return found


def expanded(instance: Instance) -> Instance:
    """Return an instance whose arrays are single jobs: what is scarce may be enough for some of their elements."""
    if all(job.array is None for job in instance.jobs):
        return instance
    # an element is counted as one (``arrayjobs``) also where it is planned by itself
    elements = {name for job in instance.jobs if job.array is not None for name in job.element_ids}
    # all elements of an array are of one class
    classes = priority_classes(instance) if instance.has_strict_priorities else {}
    return replace(
        instance,
        jobs=tuple(
            replace(job, array=(), priority=classes.get(job.id, job.priority)) if job.id in elements else job
            for job in instance.elements()
        ),
    )
