"""The event loop: which jobs start, lend cores, get them back (D'Amico et al., listings 1 and 3; SD-2, SD-10).

The events are ends, arrivals, and starts of reservations. At each of them a pass goes through the queue in the order
of the planner: a job with a reservation from now on starts; any other job that would end earlier as a guest is tried
as a guest. A guest changes the reservations of others, so all are made anew, and the pass begins again, until no job
starts any more: a job that has just started can lend cores to the jobs before it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Self

from cpsched.booking import Ledger
from cpsched.domain import Dependency, Instance, Job, PlannedJob, Running, Segment, repeated
from cpsched.engine import Outcome, Progress
from cpsched.planner import AdmissionResult, hurried, unsupported, warmup, within_groups
from cpsched.problem import bound_jobs, planning_order
from cpsched.rules.sd.partners import FULL_PACE, Guest, Lender, Run, guest_of, lender_of, runs_already
from cpsched.rules.sd.rule import Mate, SdRule, select_mates


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The scheduler's map of the future, valid until a predicted end changes."""

    ledger: Ledger
    #: The reserved starts of the waiting jobs; jobs that fit nowhere are left out.
    starts: dict[str, int]
    #: From when on each of these may start, by its own times and by the places of those that it waits for.
    arrivals: dict[str, int]
    #: The starts of jobs that no rule moves, by the nodes that they will have.
    promised: dict[str, list[int]]

    @classmethod
    def of(cls, instance: Instance, queue: Sequence[Job], bound: Sequence[str], kept: Mapping[str, PlannedJob]) -> Self:
        """Reserve a place for each waiting job, as conservative backfilling does.

        `instance`: the running jobs, and `now`. `queue`: the waiting jobs, in the order in which they are served.
        `bound`: the first of them, which no rule moves. `kept`: the places of these in an earlier view, if they have
        one there.
        """
        ledger = Ledger(instance, queue)
        ledger.plan([job_id for job_id in bound if job_id not in kept or not ledger.restore(kept[job_id])])
        fixed = [planned for job_id in bound if (planned := ledger.planned(job_id)) is not None]
        free = [job.id for job in queue[len(bound) :]]
        starts = ledger.place(free, earliest=instance.now)
        promised: dict[str, list[int]] = {}
        for planned in fixed:
            for node in {placement.node for segment in planned.segments for placement in segment.allocation}:
                promised.setdefault(node, []).append(planned.start)
        starts |= {planned.id: planned.start for planned in fixed}
        arrivals = {job_id: arrival for job_id in starts if (arrival := ledger.earliest_start(job_id)) is not None}
        return cls(ledger=ledger, starts=starts, arrivals=arrivals, promised=promised)


def seen_at(
    time: int, instance: Instance, waiting: Sequence[Job], runs: Mapping[str, Running], placed: Mapping[str, PlannedJob]
) -> tuple[Instance, list[Job]]:
    """Return the instance at a later time, and its waiting jobs.

    `waiting`: the jobs that wait then; arrays by their elements. `runs`: the jobs that run then. `placed`: the places
    of the jobs that have started by then and for which others wait.
    """
    members, elements = instance.members(), {job.id: job for job in instance.elements()}
    names = {job.id for job in waiting}
    apart = {name for job in instance.jobs if job.array is not None for name in job.element_ids}

    @cache
    def passed(link: Dependency) -> tuple[int, bool]:
        """Return when the started jobs of a dependency allow a start, and whether others of it wait."""
        gone = [placed[name] for name in members[link.job] if name not in names]
        moments = [planned.start + link.lag(planned.end - planned.start) for planned in gone]
        return max(moments, default=time), len(gone) < len(members[link.job])

    def alone(job: Job) -> Job:
        """Return a job whose dependencies on started jobs are replaced by a time."""
        job = replace(job, array=()) if job.id in apart else job  # others can wait for its array
        if not job.after:
            return job
        earliest = max((*(passed(link)[0] for link in job.after), time if job.not_before is None else job.not_before))
        return replace(job, after=tuple(link for link in job.after if passed(link)[1]), not_before=earliest)

    queue = [alone(job) for job in waiting]
    running = [replace(elements[job_id], after=(), running=held) for job_id, held in runs.items()]
    return replace(instance, now=time, jobs=(*running, *queue)), queue


class EventLoop:
    """The simulation of a window under one rule; mutable.

    `instance`: the window, with all its jobs rigid. `admission`: its jobs, told apart. `jobs`: the same jobs with their
    malleability, by id.
    """

    def __init__(self, instance: Instance, admission: AdmissionResult, jobs: dict[str, Job], rule: SdRule) -> None:
        self.now = instance.now
        #: The places of the started jobs: in the end, of all jobs with a start.
        self.placed: dict[str, PlannedJob] = {}
        self._instance, self._jobs, self._rule = instance, jobs, rule
        bound = bound_jobs(instance, admission.admitted)
        self._bound = frozenset(job.id for job in bound)
        # the ends of jobs that others wait for, or that have fixed times, never move
        members = instance.members()
        self._static = {name for job in instance.jobs for link in job.after for name in members[link.job]}
        self._static.update(self._bound)
        free = [job for job in admission.admitted if job.id not in self._bound]
        self._waiting = {job.id: job for job in (*bound, *planning_order(instance, free))}
        self._guests = {
            job_id: guest
            for job_id in self._waiting
            if job_id not in self._static and (guest := guest_of(jobs[job_id], rule)) is not None
        }
        #: Running jobs: those whose cores never change, and those that lend or borrow.
        self._fixed: dict[str, PlannedJob] = {}
        self._runs: dict[str, Run] = {}
        self._lenders: dict[str, Lender] = {}
        #: The mates of each guest that runs, while they run.
        self._mates: dict[str, tuple[str, ...]] = {}
        #: The number of running jobs on each node.
        self._tenants: Counter[str] = Counter()
        #: Caches: the jobs that could lend now, and the mates on which each guest fits.
        self._idle: dict[str, tuple[Fraction, Fraction]] | None = None
        self._room: dict[tuple[str, str], bool] = {}
        for job in admission.jobs:
            if job.running is not None:
                self._go_on(job)
        self._ends = {job_id: planned.end for job_id, planned in self._running()}
        #: The initial reservations, which tell which jobs fit nowhere, and the current ones.
        self.first = self.view = View.of(instance, list(self._waiting.values()), [job.id for job in bound], {})

    def run(self, progress: Progress | None) -> None:
        """Run the event loop until all jobs have started."""
        total = len(self._waiting)
        time: int | None = self.now
        while time is not None:
            self.now, self._idle = time, None
            self._end_runs()
            while self._pass():
                pass  # a started job can lend cores, and counts for the cut-off
            if progress is not None:
                progress(total - len(self._waiting), total)
            time = self._next_event()
        self._settle()
        if progress is not None:
            progress(total, total)

    def _settle(self) -> None:
        """Continue all running jobs, and start all others as reserved."""
        self.placed.update(self._running())
        for job_id in self.view.starts:
            planned = self.view.ledger.planned(job_id)
            if job_id in self._waiting and planned is not None:
                self.placed[job_id] = planned
                del self._waiting[job_id]

    @property
    def waiting(self) -> Collection[str]:
        """The jobs that find no start."""
        return self._waiting.keys()

    # --- what runs ----------------------------------------------------------------------------------------------

    def _running(self) -> Iterator[tuple[str, PlannedJob]]:
        yield from self._fixed.items()
        yield from ((job_id, run.planned) for job_id, run in self._runs.items())

    def _go_on(self, rigid: Job) -> None:
        """Take a job over that runs already."""
        job = self._jobs[rigid.id]
        found = None if rigid.id in self._static else runs_already(job, self._instance.cluster, self._rule)
        planned = repeated(rigid)
        if found is None:
            self._fixed[rigid.id] = planned
        else:
            self._runs[rigid.id], self._lenders[rigid.id] = found
        self._enter(_nodes(segment for segment in planned.segments if segment.end > self.now))

    def _enter(self, nodes: Iterable[str]) -> None:
        """Start a job on nodes."""
        self._tenants.update(nodes)
        self._idle = None

    def _start(self, job_id: str) -> None:
        """Start a job on the nodes of its reservation (the static attempt)."""
        planned = self.view.ledger.planned(job_id)
        assert planned is not None  # noqa: S101 - it has a reservation
        job = self._jobs[job_id]
        lender = None
        if job_id not in self._static and job.malleability is not None:
            lender = lender_of(job, planned.segments[0].allocation, self._instance.cluster, self._rule)
        if lender is None:
            self._fixed[job_id] = planned
        else:
            self._lenders[job_id] = lender
            self._runs[job_id] = Run(
                job=job, begin=self.now, allocation=lender.full, since=self.now, work=Fraction(job.walltime)
            )
        self._ends[job_id] = planned.end
        self._enter(_nodes(planned.segments))
        del self._waiting[job_id]

    def _end_runs(self) -> None:
        """End jobs; a job that shared their nodes has these for itself again (SD-10)."""
        over = {job_id: planned for job_id, planned in self._running() if planned.end <= self.now}
        for job_id, planned in over.items():
            self.placed[job_id] = planned
            self._tenants.subtract(_nodes(segment for segment in planned.segments if segment.end > self._instance.now))
            for of_kind in (self._fixed, self._runs, self._lenders):
                of_kind.pop(job_id, None)
        early = [job_id for job_id, planned in over.items() if self._ends.pop(job_id) != planned.end]
        sharing = [guest for guest, mates in self._mates.items() if not over.keys().isdisjoint((guest, *mates))]
        for guest in sharing:
            self._part(guest)
        if early or (sharing and self._ends != self._predicted()):
            self._look_ahead()

    def _part(self, guest: str) -> None:
        """Give a guest and its mates the cores of those of them that have ended."""
        mates = [mate for mate in self._mates.pop(guest) if mate in self._runs]
        if guest in self._runs:
            self._mates[guest] = tuple(mates)
            self._expand(guest)
            return
        for mate in mates:
            self._runs[mate] = self._runs[mate].on(self._lenders[mate].full, FULL_PACE, self.now)

    def _expand(self, guest_id: str) -> None:
        """Give a guest all cores of those of its nodes whose owners have ended."""
        run, guest = self._runs[guest_id], self._guests[guest_id]
        lent = {node for mate in self._mates.get(guest_id, ()) for node in self._lenders[mate].nodes}
        own = [placement.node for placement in run.allocation if placement.node not in lent]
        allocation = guest.allocation(sorted(lent), own)
        self._runs[guest_id] = run.on(allocation, guest.pace_on(allocation), self.now)

    # --- what comes ---------------------------------------------------------------------------------------------

    def _predicted(self) -> dict[str, int]:
        """Return when all running jobs end as far as can be told now (SD-11)."""
        ends = {job_id: planned.end for job_id, planned in self._fixed.items()}
        until = {}
        for guest, mates in self._mates.items():
            until.update(dict.fromkeys(mates, self._runs[guest].predicted_end(self.now)))
        for job_id, run in self._runs.items():
            time = max(self.now, run.since)
            ends[job_id] = run.predicted_end(time, until.get(job_id))
        return ends

    def _look_ahead(self) -> None:
        """Make all reservations anew, beside what runs until its predicted end."""
        self._ends = self._predicted()
        hopeful = [job for job_id, job in self._waiting.items() if job_id in self.first.starts]
        held = {job_id: Running(start=one.start, segments=one.segments) for job_id, one in self._fixed.items()}
        held |= {job_id: self._owned(job_id) for job_id in self._runs}
        placed = self.placed | dict(self._running())
        instance, queue = seen_at(self.now, self._instance, hopeful, held, placed)
        bound = [job.id for job in hopeful if job.id in self._bound]
        kept = {job_id: planned for job_id in bound if (planned := self.view.ledger.planned(job_id)) is not None}
        self.view = View.of(instance, queue, bound, kept)

    def _owned(self, job_id: str) -> Running:
        """Return the nodes and amounts that a job keeps from others until its predicted end.

        Nodes stay owned as a whole, by a mate whose cores are lent; the ledger books nothing twice.
        """
        run = self._runs[job_id]
        allocation = self._lenders[job_id].full if job_id in self._lenders else run.allocation
        present = Segment(start=run.begin, end=self._ends[job_id], allocation=allocation)
        return Running(start=(*run.past, present)[0].start, segments=(*run.past, present))

    def _next_event(self) -> int | None:
        """Return the time of the next event; None if nothing can change any more: no job shares nodes, or ever will."""
        if not self._mates and not any(
            job_id in self._waiting and job_id in self.view.starts for job_id in self._guests
        ):
            return None
        times = [planned.end for planned in self._fixed.values()]
        times += [time for run in self._runs.values() for time in (run.since, run.end)]
        for coming in (self.view.starts, self.view.arrivals):
            times += [time for job_id, time in coming.items() if job_id in self._waiting]
        return min((time for time in times if time > self.now), default=None)

    # --- the pass -----------------------------------------------------------------------------------------------

    def _pass(self) -> bool:
        """Go through the queue in order until a guest changes the reservations; return whether a job was started."""
        cut_off = self._rule.cut_off(
            Fraction(end - self._jobs[job_id].submit, self._jobs[job_id].walltime) for job_id, end in self._ends.items()
        )
        before = len(self._waiting)
        for job_id in list(self._waiting):
            if self.view.starts.get(job_id) == self.now:
                self._start(job_id)
            elif job_id in self._guests and self._borrow(self._guests[job_id], cut_off):
                break
        return len(self._waiting) < before

    def _borrow(self, guest: Guest, cut_off: float | Fraction) -> bool:
        """Start a job on the nodes of others if it ends earlier so, and they are to be had (the malleable attempt)."""
        job = guest.job
        reserved = self.view.starts.get(job.id)
        if reserved is None or not reserved + job.walltime > self.now + guest.seconds:
            return False
        if self.view.arrivals[job.id] > self.now:
            return False
        mates = [mate for mate in self._candidates(guest) if mate.penalty < cut_off]
        chosen = select_mates(mates, guest.chunk.count, self._rule)
        if chosen is None:
            return False
        self._share(guest, [mate.job_id for mate in chosen])
        return True

    def _candidates(self, guest: Guest) -> Iterator[Mate]:
        """Yield the running jobs that can have a guest, and end after it (SD-4, SD-7)."""
        until = self.now + guest.seconds
        for job_id, (work, longest) in self._idle_lenders().items():
            lender, job = self._lenders[job_id], self._jobs[job_id]
            if len(lender.nodes) > guest.chunk.count or longest < guest.time:
                continue
            end = until + max(0, ceil(work - lender.pace.cautious * guest.seconds))
            promised = [start for node in lender.nodes for start in self.view.promised.get(node, ())]
            if any(self.now <= start < end for start in promised):
                continue
            pair = job_id, guest.job.id
            if pair not in self._room:
                self._room[pair] = lender.has_room_for(guest)
            if not self._room[pair]:
                continue
            yield Mate(job_id=job_id, nodes=len(lender.nodes), penalty=Fraction(end - job.submit, job.walltime))

    def _idle_lenders(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Return the jobs alone on their nodes that could lend cores, with their work and the time for it then."""
        if self._idle is None:
            self._idle = {}
            for job_id, lender in self._lenders.items():
                run = self._runs[job_id]
                if run.since <= self.now and all(self._tenants[node] == 1 for node in lender.nodes):
                    work = run.work_at(self.now)
                    self._idle[job_id] = work, work / lender.pace.cautious
        return self._idle

    def _share(self, guest: Guest, mates: Sequence[str]) -> None:
        """Start a guest, and let its mates lend to it."""
        nodes = sorted(node for mate in mates for node in self._lenders[mate].nodes)
        allocation = guest.allocation(nodes, ())
        for mate in mates:
            lender = self._lenders[mate]
            self._runs[mate] = self._runs[mate].on(lender.kept, lender.pace, self.now)
        self._runs[guest.job.id] = Run(
            job=guest.job,
            begin=self.now,
            allocation=allocation,
            since=self.now,
            work=Fraction(guest.job.walltime),
            pace=guest.pace,
        )
        self._mates[guest.job.id] = tuple(mates)
        self._enter(nodes)
        del self._waiting[guest.job.id]
        self._look_ahead()


def _nodes(segments: Iterable[Segment]) -> set[str]:
    return {placement.node for segment in segments for placement in segment.allocation}


class SdEngine:
    """Plans as SD-Policy would start the jobs, if each had exactly its walltime of work. Deterministic (SD-8).

    Jobs that are not malleable, or do not have their nodes as a whole, are planned as `Conservative` does it; where
    no job can share, the plan is the same.
    """

    def __init__(self, rule: SdRule) -> None:
        self.rule = rule
        self.name = rule.name

    def prepare(self) -> None:
        """Compile or load the planner's kernels."""
        warmup()

    def unsupported(self, instance: Instance) -> tuple[str, ...]:
        """Return the features of the instance that the rules cannot honour yet."""
        return *unsupported(_rigid(instance)), *within_groups(instance), *hurried(instance)

    def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
        """Plan all jobs by the rule. Raises `UnsupportedError` if it cannot honour something."""
        rigid = _rigid(instance)
        admission = AdmissionResult.of(rigid, engine=self.name)
        loop = EventLoop(
            rigid, admission, {job.id: replace(job, alternatives=()) for job in instance.elements()}, self.rule
        )
        loop.run(progress)
        # jobs are in the waiting room because of the machine, or because of reservations of others
        first = admission.outcome(loop.first.ledger)
        ledger = loop.view.ledger
        last = replace(admission, jobs=tuple(job for job in ledger.jobs if job.id in loop.waiting)).outcome(ledger)
        left = {job.id: job for job in (*last.waiting_room, *first.waiting_room)}
        return Outcome(
            jobs=tuple(loop.placed[job.id] for job in admission.jobs if job.id in loop.placed),
            waiting_room=tuple(left[job.id] for job in admission.jobs if job.id in left),
        )


def _rigid(instance: Instance) -> Instance:
    """Return the instance with all jobs at full share, and by their own requests."""
    return replace(instance, jobs=tuple(replace(job, malleability=None, alternatives=()) for job in instance.jobs))
