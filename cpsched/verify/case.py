"""The case before the judge: instance and plan side by side, and the views of them that several rules need."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cpsched.verify.model import Booking, Instance, Job, Plan, Request, Segment, Slice, Step
from cpsched.verify.shares import changeable, faults_of_change, held_by
from cpsched.verify.sweep import Use

#: The most nodes or holders that a message names.
NAMED = 5


def named(things: Iterable[object]) -> str:
    """Name the first of some things, each once, and say how many more there are."""
    names = list(dict.fromkeys(map(str, things)))
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of ``docs/formats.md`` that a plan does not keep.

    `rule`: the rule's short name: ``capacity``, ``deadline``, ``objective``, …. `subject`: what breaks it: a job's id,
    a node's name, or a path in the plan. `message`: what was expected and what was got, in words.
    """

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Holder:
    """A holder of resources on a node: a job or a reservation."""

    who: Booking | Slice
    exclusive: bool

    @property
    def is_fact(self) -> bool:
        """Whether this is running work, and no choice of the plan."""
        return self.who.is_fact

    def __str__(self) -> str:
        return f"job {self.who.id}" if isinstance(self.who, Booking) else f"reservation {self.who.reservation.id}"


HolderUse = Use[Holder]


@dataclass(frozen=True)
class Case:
    """The case that the rules judge: an instance and a plan.

    Running jobs count as the instance states them, not as the plan does: they are facts. Only a malleable job whose
    share the plan changes as allowed counts as changed.
    """

    instance: Instance
    plan: Plan

    @cached_property
    def facts(self) -> Mapping[str, Booking]:
        """The running jobs by their ids, as the instance states them; those that an outage cut short are left out."""
        cut = {attempt.id for attempt in self.plan.attempts if attempt.is_running}
        stated = {
            name: (job, self.stated(job)) for name, job in self.instance.jobs.items() if job.running and name not in cut
        }
        return {
            name: Booking(name, job, segments[0].start, segments[-1].end, segments)
            for name, (job, segments) in stated.items()
        }

    def stated(self, job: Job) -> tuple[Segment, ...]:
        """Return the segments of a running job; in a record those of a rigid one end when it really does."""
        if not self.plan.is_record or job.runtime is None or job.is_evolving or job.malleable is not None:
            return job.running
        end = max(self.instance.now + 1, min(job.running[-1].end, job.running[0].start + job.seconds))
        return tuple(one._replace(end=min(one.end, end)) for one in job.running if one.start < end)

    @cached_property
    def _runs_of(self) -> Mapping[str, Sequence[Booking]]:
        """The runs of each job that may be stopped, in order."""
        runs: dict[str, list[Booking]] = {}
        for booking in (*self.plan.attempts, *self.planned):
            if booking.job.preemptible is not None:
                runs.setdefault(booking.id, []).append(booking)
        return {name: sorted(listed, key=lambda one: (one.start, not one.is_cut)) for name, listed in runs.items()}

    @cached_property
    def _lives(self) -> Mapping[tuple[str, int], tuple[int, str]]:
        """The runs of jobs that may be stopped, by id and start: the seconds that each is to take, and what cut it
        short. What earlier runs have kept of the work is done.
        """
        notice, resume = (-1, False) if (given := self.instance.preemption) is None else (given.notice, given.resume)
        outages = self.instance.outages if self.plan.is_record else ()
        fails = {(node, outage.start) for outage in outages for node in outage.nodes}
        lives = {}
        for name, listed in self._runs_of.items():
            job = listed[0].job
            wall, left = job.walltime, job.walltime
            if self.plan.is_record and job.runtime is not None:
                left = job.runtime
            whole = left
            for run in listed:
                seconds, cause = run.end - run.start, "stop"
                if resume and not run.is_running and seconds == wall < left:
                    cause = "walltime"
                elif any((held.node, run.end) in fails for held in run.segments[-1].allocation):
                    cause = "outage"
                lives[name, run.start] = min(wall, left), cause
                kept = 0
                if run.is_cut and job.preemptible is not None:
                    kept = job.preemptible.kept(seconds, -1 if cause == "outage" else notice)
                    if job.preemptible.is_suspended and (cause == "outage" or self.failure_after(run) is not None):
                        kept, left, wall = 0, whole, job.walltime  # what it had in memory is lost
                left = max(1, left - kept)
                wall = job.walltime if cause == "walltime" else wall - kept
        return lives

    def seconds_left(self, booking: Booking) -> int:
        """Return how long a run of a rigid job is to take, after what its earlier runs have kept; in a record longer on
        nodes of several groups, but at most its walltime.
        """
        job = booking.job
        seconds = self._lives.get((booking.id, booking.start), (self.seconds_of(job), ""))[0]
        if not self.plan.is_record or booking.is_running or job.preemptible is not None:
            return seconds
        nodes = {placement.node for placement in booking.segments[0].allocation}
        return min(job.walltime, self.instance.slowed(seconds, nodes))

    def cause_of(self, attempt: Booking) -> str:
        """Return what cut a run short: an ``outage``, its ``walltime``, after which it continues, or a ``stop``."""
        if attempt.job.preemptible is None and self.plan.is_record:
            return "outage"
        return self._lives.get((attempt.id, attempt.start), (0, "stop"))[1]

    def seconds_of(self, job: Job) -> int:
        """Return how long a job is to run at full share: for its walltime, in a record as long as it really does."""
        return job.seconds if self.plan.is_record else job.walltime

    def is_resizable(self, job: Job) -> bool:
        """Return whether a job may change its size while it runs; no plan does that."""
        return self.plan.is_record and job.resizable is not None

    def steps_of(self, booking: Booking) -> tuple[Step, ...]:
        """Return the steps of a job, in a record those that it reaches, the last one with the seconds left for it."""
        left = self.seconds_of(booking.job)
        steps: list[Step] = []
        for step in booking.job.steps:
            if left > 0 and not (booking.is_cut and len(steps) == len(booking.segments)):
                steps.append(Step(min(left, step.walltime), step.request))
            left -= step.walltime
        return tuple(steps)

    @cached_property
    def changes(self) -> Mapping[str, tuple[Booking, tuple[str, ...]]]:
        """The running jobs that the plan changes, by their ids: what it says, and what is wrong with that."""
        return {
            entry.id: (entry, tuple(faults_of_change(self.seconds_of(entry.job), entry, self.instance.now)))
            for entry in self.plan.entries
            if entry.is_running and (self._ends_early(entry.job) or not _says_the_same(entry, self.facts[entry.id]))
        }

    def _ends_early(self, job: Job) -> bool:
        """Return whether the end of a running malleable job follows from its work, and not from its walltime."""
        return self.seconds_of(job) < job.walltime and changeable(job) is not None

    @cached_property
    def changed(self) -> tuple[Booking, ...]:
        """The running jobs that the plan changes as it may."""
        return tuple(entry for entry, faults in self.changes.values() if not faults)

    @cached_property
    def running(self) -> tuple[Booking, ...]:
        """The running jobs, as the instance states them or as the plan rightly changes them."""
        changed = {entry.id: entry for entry in self.changed}
        return tuple(changed.get(name, fact) for name, fact in self.facts.items())

    @cached_property
    def planned(self) -> tuple[Booking, ...]:
        """The jobs to which the plan gives a start, each once."""
        first = {entry.id: entry for entry in reversed(self.plan.entries) if not entry.is_running}
        return tuple(entry for entry in self.plan.entries if first.get(entry.id) is entry)

    @cached_property
    def runs(self) -> tuple[Booking, ...]:
        """Everything that was given a start: the planned jobs, and what was cut short before them."""
        return (*(attempt for attempt in self.plan.attempts if not attempt.is_running), *self.planned)

    @cached_property
    def bookings(self) -> tuple[Booking, ...]:
        """All that takes resources: running and planned jobs, changed ones in pieces, and what was cut short."""
        pieces: list[Booking] = []
        for booking in self.running:
            fact = self.facts[booking.id]
            pieces += [fact] if booking is fact else _pieces(booking, fact)
        return (*pieces, *self.plan.attempts, *self.suspended, *self.planned)

    @cached_property
    def suspended(self) -> tuple[Booking, ...]:
        """What suspended jobs keep on their nodes from their stop until they continue: all but their cores."""
        found: list[Booking] = []
        for attempt in filter(self.is_suspended, self.plan.attempts):
            following, end = self.next_run(attempt), self.failure_after(attempt)
            if end is None and following is not None:
                end = following.start
            if end is not None:
                kept = tuple(
                    replace(held, resources={name: n for name, n in held.resources.items() if name != "cores"})
                    for held in attempt.segments[-1].allocation
                )
                pause = Segment(attempt.end, end, kept)
                found.append(replace(attempt, start=pause.start, end=pause.end, segments=(pause,)))
        return tuple(found)

    @cached_property
    def continuing(self) -> frozenset[tuple[str, int]]:
        """The runs of suspended jobs that continue, by id and start."""
        waits = [one for one in self.plan.attempts if self.is_suspended(one) and self.failure_after(one) is None]
        following = map(self.next_run, waits)
        return frozenset((run.id, run.start) for run in following if run is not None)

    def failure_after(self, attempt: Booking) -> int | None:
        """Return when a node of a run that was cut short fails in a record, before the job runs again."""
        following, nodes = self.next_run(attempt), {held.node for held in attempt.segments[-1].allocation}
        starts = [
            outage.start
            for outage in (self.instance.outages if self.plan.is_record else ())
            if attempt.end < outage.start and not nodes.isdisjoint(outage.nodes)
        ]
        return min((at for at in starts if following is None or at <= following.start), default=None)

    def is_suspended(self, attempt: Booking) -> bool:
        """Tell whether a run was cut short by a stop of a job that is suspended then."""
        preemptible = attempt.job.preemptible
        return preemptible is not None and preemptible.is_suspended and self.cause_of(attempt) == "stop"

    def next_run(self, attempt: Booking) -> Booking | None:
        """Return the run of the same job that follows one that was cut short; None if there is none."""
        return next((run for run in self._runs_of[attempt.id] if run.start >= attempt.end), None)

    @cached_property
    def by_id(self) -> Mapping[str, Booking]:
        """All bookings by the id of their job."""
        return {booking.id: booking for booking in (*self.running, *self.planned)}

    @cached_property
    def started(self) -> Mapping[str, int]:
        """When each job that has a start was started first."""
        first: dict[str, int] = {}
        for booking in (*self.plan.attempts, *self.running, *self.planned):
            first[booking.id] = min(booking.start, first.get(booking.id, booking.start))
        return first

    def requests_of(self, booking: Booking) -> Iterator[tuple[Segment, Request]]:
        """Yield each segment of a planned job with the request that it answers.

        An evolving job whose segments are not one per step yields nothing: the rule ``evolving`` reports that.
        """
        steps = self.steps_of(booking)
        if self.is_resizable(booking.job) and booking.job.resizable is not None:
            for segment in booking.segments:
                step = booking.job.resizable.sizes.get(count_of(segment), steps[0])
                yield segment, step.request
        elif not booking.job.is_evolving:
            for segment in booking.segments:
                yield segment, steps[0].request
        elif len(steps) == len(booking.segments):
            for segment, step in zip(booking.segments, steps, strict=True):
                yield segment, step.request

    @cached_property
    def slices_of(self) -> Mapping[str, tuple[Slice, ...]]:
        """The nodes of each reservation, in order of time, by its id."""
        return {
            name: tuple(slice_ for slice_ in self.plan.slices if slice_.reservation.id == name)
            for name in dict.fromkeys(slice_.reservation.id for slice_ in self.plan.slices)
        }

    def slices_for(self, job: Job) -> tuple[Slice, ...]:
        """Return the slices that the job's reservation got; none if it names none or that got none."""
        return () if job.reservation is None else self.slices_of.get(job.reservation, ())

    @cached_property
    def job_uses(self) -> Mapping[str, list[HolderUse]]:
        """The amounts that jobs take on each node."""
        uses: dict[str, list[HolderUse]] = {}
        for booking in self.bookings:
            holder = Holder(booking, booking.job.is_exclusive)
            for segment in booking.segments:
                for placement in segment.allocation:
                    uses.setdefault(placement.node, []).append(
                        Use(segment.start, segment.end, placement.resources, holder)
                    )
        return uses

    @cached_property
    def slice_uses(self) -> Mapping[str, list[HolderUse]]:
        """The amounts that reservations take on each node; nodes that are closed are not among them."""
        return self._uses_of(slice_ for slice_ in self.plan.slices if not slice_.is_closure)

    @cached_property
    def closures(self) -> Mapping[str, list[HolderUse]]:
        """The times at which each node is closed."""
        return self._uses_of(slice_ for slice_ in self.plan.slices if slice_.is_closure)

    @staticmethod
    def _uses_of(slices: Iterable[Slice]) -> Mapping[str, list[HolderUse]]:
        uses: dict[str, list[HolderUse]] = {}
        for slice_ in slices:
            holder = Holder(slice_, slice_.reservation.is_exclusive)
            for placement in slice_.allocation:
                uses.setdefault(placement.node, []).append(Use(slice_.start, slice_.end, placement.resources, holder))
        return uses


def count_of(segment: Segment) -> int:
    """Return how many chunks a segment has."""
    return sum(placement.count or 0 for placement in segment.allocation)


def _says_the_same(entry: Booking, fact: Booking) -> bool:
    """Return whether a plan states a running job as the instance does."""
    times = (entry.start, entry.end) == (fact.start, fact.end)
    return times and [(segment.start, segment.end, held_by(segment)) for segment in entry.segments] == [
        (segment.start, segment.end, held_by(segment)) for segment in fact.segments
    ]


def _pieces(changed: Booking, fact: Booking) -> Iterator[Booking]:
    """Cut a changed job at the changes of the instance, and mark the parts in which it takes more than there."""
    for segment in changed.segments:
        time = segment.start
        for stated in (*fact.segments, Segment(fact.end, max(fact.end, changed.end) + 1, ())):
            end = min(segment.end, stated.end)
            if end > time:
                before = held_by(stated)
                is_more = any(amount > before.get(place, 0) for place, amount in held_by(segment).items())
                piece = segment._replace(start=time, end=end)
                yield Booking(changed.id, changed.job, time, end, (piece,), is_more)
                time = end
