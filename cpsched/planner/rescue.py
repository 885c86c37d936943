"""Places for jobs that must start by some time and found none: further orders of planning.

An order of planning decides which jobs are too late. Where one is, the whole queue is planned in orders by latest
start, in which jobs that were too late move to the front each time (squeaky wheel: Joslin and Clements 1999). If that
does not help and few jobs must start by some time, all orders of these are tried. Jobs that no plan has are left out
of this: not even beside the running jobs alone do they start in time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from math import factorial

import numpy as np

from cpsched.booking import Ledger, Links, Mark
from cpsched.domain import FrozenMap, Instance, Job
from cpsched.problem import Precedences, awaited_first, by_job, placeable, refusals
from cpsched.rusv import FOREVER, ahead, lasts

#: The most jobs that are planned in further orders, over all orders; a job that changes while it runs counts as many.
_MOST_PLANNED, _CHANGING = 6_000, 20
#: The most orders; and the most jobs that are planned if all orders are tried.
_MOST_ORDERS, _MOST_IN_ALL = 30, 1_000


def rescue(ledger: Ledger, order: Sequence[str], value: Callable[[], float], bare: Mark | None = None) -> list[str]:
    """Plan all jobs anew, if more get places, or as many that are worth more; return the best order.

    Nothing changes if all jobs have places that must start by some time, or if no other plan is better. Work is
    bounded by the number of jobs, so that the same window has the same plan.

    `ledger`: has a plan, in which some jobs may have no place. `order`: the ids of all jobs in the order in which they
    were planned. `value`: returns the value of what the ledger has. `bare`: all that was booked before any job was
    planned, if that is known.
    """
    late = _Late(ledger, order, bare)
    if not late.jobs():
        return list(order)
    best = _Best(ledger, order, value)
    work = len(order) + _CHANGING * sum(job.is_evolving for job in ledger.jobs)
    count = max(2, min(_MOST_ORDERS, _MOST_PLANNED // work))
    best.plan(late.ordered(late.by_start))
    if late.jobs():
        best.plan(late.ordered(late.by_end))
    front: dict[str, int] = {}
    for number in range(2, count):
        jobs = late.jobs()
        if not jobs:
            break
        front |= dict.fromkeys(jobs, -number)
        best.plan(late.ordered(late.by_start, front))
    if late.jobs() and factorial(len(late.by_start)) * work <= _MOST_IN_ALL:
        for turns in permutations(late.by_start):
            best.plan(late.ordered({name: turn for turn, name in enumerate(turns)}))
            if not late.jobs():
                break
    best.restore()
    return best.order


def latest_starts(instance: Instance, jobs: Sequence[Job]) -> dict[str, int]:
    """Return the latest starts (s on the instance's clock) of jobs that have one, by own times or those of others."""
    own = [FOREVER if (last := instance.latest_start(job)) is None else last for job in jobs]
    if any(job.after for job in jobs):
        own = lasts(Links.of(instance, jobs).between, np.array(own, dtype=np.int64)).tolist()
    return {job.id: last for job, last in zip(jobs, own, strict=True) if last < FOREVER}


class _Best:
    """The best of several plans on a ledger; mutable."""

    def __init__(self, ledger: Ledger, order: Sequence[str], value: Callable[[], float]) -> None:
        self._ledger, self._value = ledger, value
        self.order = list(order)
        self._rank, self._mark = self._ranked(), ledger.marked()

    def _ranked(self) -> tuple[int, float]:
        """Return the number of jobs with a place, and what the plan is worth: the smaller, the better."""
        return -sum(map(self._ledger.is_booked, self.order)), self._value()

    def plan(self, order: Sequence[str]) -> None:
        """Plan all jobs anew in another order."""
        for name in self.order:
            if self._ledger.is_booked(name):
                self._ledger.release(name)
        self._ledger.plan(order)
        rank = self._ranked()
        if rank < self._rank:
            self._rank, self._mark, self.order = rank, self._ledger.marked(), list(order)

    def restore(self) -> None:
        """Bring the best plan back."""
        self._ledger.back_to(self._mark)


class _Late:
    """The jobs of a ledger that must start by some time, and orders in which they are served first."""

    def __init__(self, ledger: Ledger, order: Sequence[str], bare: Mark | None) -> None:
        self._ledger, self._instance, self._bare = ledger, ledger.instance, bare
        self._jobs = {job.id: job for job in ledger.jobs}
        self._order = list(order)
        #: The latest start, and the latest end, of the jobs that have one.
        self.by_start: Mapping[str, int] = latest_starts(self._instance, [self._jobs[name] for name in order])
        self._hopeless: frozenset[str] | None = None
        self.by_end = {name: last + self._jobs[name].walltime for name, last in self.by_start.items()}

    def jobs(self) -> list[str]:
        """Return those without a place that some plan may have, the first to be late first."""
        left = [name for name in self.by_start if not self._ledger.is_booked(name)]
        if left and self._hopeless is None:
            self._hopeless = self._hopeless_of(left)
        left = [name for name in left if name not in (self._hopeless or ())]
        return sorted(left, key=lambda name: (self.by_start[name], name))

    def _hopeless_of(self, names: Sequence[str]) -> frozenset[str]:
        """Return those of some jobs that no plan has."""
        if self._bare is None:
            return hopeless(self._instance, names)
        mark = self._ledger.marked()
        self._ledger.back_to(self._bare)
        found = hopeless(self._instance, names, self._ledger)
        self._ledger.back_to(mark)
        return found

    def ordered(self, times: Mapping[str, int], front: Mapping[str, int] = FrozenMap()) -> list[str]:
        """Return all jobs in order of their times, the others behind them as before; each after all it waits for.

        The lower a job is in `front`, where all others have 0, the earlier it comes.
        """
        bound = (name for name in self._order if name in times)
        names = sorted(bound, key=lambda name: (front.get(name, 0), times[name]))
        names += (name for name in self._order if name not in times)
        return [job.id for job in awaited_first(self._instance, [self._jobs[name] for name in names])]


def placeable_beside(instance: Instance, planned: Collection[str]) -> frozenset[str]:
    """Return the ids of all jobs that a plan could have, running ones included, given those of one plan."""
    found = placeable(instance)
    left_out = found.difference(planned)
    return found - hopeless(instance, left_out) if left_out else found


def hopeless(instance: Instance, names: Collection[str], bare: Ledger | None = None) -> frozenset[str]:
    """Return those of some waiting jobs that are proven to be in no plan.

    *Proof.* What runs and does not change is in every plan, and other jobs only take more. A rigid job of one kind of
    chunks that finds no start on a ledger with the running jobs alone has none in any plan; the start that it finds
    is its earliest in any plan. So no job starts before the earliest ends of those for which it waits.

    `instance`, `names`: the window, and the jobs that are asked about. `bare`: a ledger of all jobs on which none is
    booked; None: one is made. Where jobs wait for others it does not serve.
    """
    waiting = [job for job in instance.elements() if job.running is None]
    rows = [row for row, job in enumerate(waiting) if job.id in names]
    if any(waiting[row].after for row in rows):
        rows = ahead(Links.of(instance, waiting).between, rows)
    jobs = awaited_first(instance, [waiting[row] for row in rows])
    lost = set(refusals(instance, jobs))
    if bare is None or any(job.after for job in jobs):
        ledger = Ledger(instance, [replace(job, after=()) for job in jobs if job.id not in lost])
    else:
        ledger = bare
    if ledger.running.changeable:
        return frozenset()
    precedences, earliest = Precedences(instance, jobs), dict[str, int]()
    milestones = precedences.milestones()
    waits = {jobs[index].id: waited for index, waited in by_job(one.after for one in milestones).items()}

    @cache
    def moment(number: int) -> int | None:
        """Return the earliest second of a milestone in any plan; None: in no plan it is reached."""
        before = [(jobs[index].id, seconds) for index, seconds in milestones[number].before]
        is_reached = all(name in earliest for name, _ in before)
        return max(earliest[name] + seconds for name, seconds in before) if is_reached else None

    alike: dict[object, int | None] = {}  # the starts of jobs that ask alike
    for job in jobs:
        if job.id in lost:
            continue
        begin = max(instance.earliest_start(job), instance.now + (precedences.released(job) or 0))
        last = instance.latest_start(job)
        passed = [(moment(number), delay) for number, delay in waits.get(job.id, ())]
        times = [time + delay for time, delay in passed if time is not None]
        if len(times) < len(passed):
            lost.add(job.id)
            continue
        begin = max([begin, *times])
        start: int | None = begin
        if not (job.changes or job.alternatives) and len(job.request.chunks) == 1:
            key = job.steps, job.licenses, job.start_at, begin, last
            if key not in alike:
                alike[key] = ledger.place([job.id], earliest=begin).get(job.id)
            start = alike[key]
        if start is None or (last is not None and start > last):
            lost.add(job.id)
        else:
            earliest[job.id] = start
        if ledger.is_booked(job.id):
            ledger.release(job.id)
    return frozenset(lost.intersection(names))
