"""A machine in memory: nodes that fail, jobs that arrive, wait, run and end, and a clock that only moves when told.

It knows how long each job really runs (its `runtime`), which it tells nobody. A job ends after the lesser of its
runtime and its walltime. Jobs that are not steered are started by the world's own scheduler (`own_scheduler.py`).
"""

import heapq
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count, groupby

from cpsched.domain import Cluster, Dependency, DependencyType, Instance, Job, NodeState, Placement, Running, Segment
from cpsched.errors import BridgeError
from cpsched.site.bridge.leaving import without_awaited
from cpsched.site.bridge.own_scheduler import Shop, queue_nodes
from cpsched.site.bridge.protocol import JobFacts, JobState


class _Kind(IntEnum):
    """The kinds of events of a second, in the order in which they happen."""

    END = 0
    UP = 1
    DOWN = 2
    SUBMIT = 3
    #: A second is reached before which a job may not start.
    READY = 4


@dataclass(slots=True, kw_only=True)
class WorldJob:
    """One job of the world. Mutable."""

    #: With its runtime; of its dependencies only those that are not met yet.
    job: Job
    state: JobState = JobState.WAITING
    changes: int = 0
    restarts: int = 0
    is_steered: bool = False
    #: The own scheduler looks at jobs with a greater one first.
    priority: int = 1000
    #: Of an order to start.
    due: int | None = None
    #: Of an order to start, or what the job holds or held.
    allocation: tuple[Placement, ...] = ()
    start: int | None = None
    end: int | None = None
    #: (start, nodes, why) as users see it.
    shown: tuple[int, tuple[str, ...], str] | None = None
    #: The forecast that users see.
    noted: tuple[int, int | None] | None = None
    #: The dependency that can never be met, in words.
    never: str = ""
    #: The job as a snapshot has it, made when it is asked for.
    seen: Job | None = None
    #: The last facts, and what they were made of.
    told: tuple[tuple[object, ...], JobFacts] | None = None

    @property
    def revision(self) -> str:
        """Changes with whatever a plan rests on."""
        return f"{self.restarts}.{self.changes}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, ascending."""
        return tuple(sorted({placement.node for placement in self.allocation}))

    @property
    def facts(self) -> JobFacts:
        """The manager's record of the job; the same object as long as nothing changes."""
        steering = (self.is_steered, self.priority, self.due, self.allocation, self.noted)
        of = (self.state, self.changes, self.restarts, steering, self.start, self.end)
        if self.told is not None and self.told[0] == of:
            return self.told[1]
        facts = JobFacts(
            state=self.state,
            revision=self.revision,
            restarts=self.restarts,
            is_steered=self.is_steered and self.state is JobState.WAITING,
            priority=self.priority,
            noted=self.noted,
            may_note=self.state is JobState.WAITING,
            due=self.due if self.state is JobState.WAITING else None,
            nodes=self.nodes,
            start=self.start,
            end=self.end,
        )
        self.told = of, facts
        return facts


class World:
    """A machine with its jobs. Mutable.

    Raises `BridgeError` if a job is evolving, has a choice, or is stopped but by a requeue: this world has none.

    `instance`: the machine at its `now`: jobs that run, that wait, and those whose `submit` is still to come; their
    runtimes (without one a job takes its walltime); outages. Limits, free pools and reservations are only passed on.
    `gate_is_closed`: whether waiting jobs, and those to come, are steered. `remember`: seconds for which a job that is
    over is still known.
    """

    def __init__(self, instance: Instance, *, gate_is_closed: bool = False, remember: int = 3600) -> None:
        self.site = replace(instance, jobs=(), outages=())
        self.now = instance.now
        self.gate_is_closed = gate_is_closed
        self.remember = remember
        self.shop = Shop(instance.cluster)
        #: By id, in order of submission.
        self.jobs: dict[str, WorldJob] = {}
        #: Everything that happened and that a watcher may want to know, counted.
        self.changes = 0
        self._waiting: dict[str, None] = {}
        #: The events to come, in order.
        self._events: list[tuple[int, _Kind, int, str, int]] = []
        self._numbers = count()
        self._arrivals: dict[str, Job] = {}
        #: The jobs that wait for each job.
        self._waiters: dict[str, list[str]] = {}
        self._over: list[tuple[int, str]] = []
        self._cluster = instance.cluster
        for job in sorted(instance.elements(), key=lambda job: (job.running is None, job.submit)):
            self._admit(job)
        for entry in list(self.jobs.values()):
            self._bind(entry)
        for outage in instance.outages:
            for node in outage.nodes:
                self._await(outage.start, _Kind.DOWN, node)
                self._await(outage.end, _Kind.UP, node)
        self._settle()

    def advance(self, to: int) -> None:
        """Advance the clock to a second; an earlier one than now changes nothing."""
        events = self._events
        while events and events[0][0] <= to:
            self.now = max(self.now, events[0][0])
            while events and events[0][0] <= self.now:
                _, kind, _, name, run = heapq.heappop(events)
                self._happen(kind, name, run)
            self._settle()
        self.now = max(self.now, to)
        while self._over and self._over[0][0] < self.now - self.remember:
            _, job_id = heapq.heappop(self._over)
            self._waiters.pop(job_id, None)
            self.jobs.pop(job_id, None)

    @property
    def next_event(self) -> int | None:
        """The second at which something happens by itself next; None if nothing ever does."""
        return self._events[0][0] if self._events else None

    def steer(self, entry: WorldJob, *, is_steered: bool) -> None:
        """Take a waiting job from the own scheduler, or give it back; an order to start is withdrawn."""
        entry.is_steered, entry.due, entry.allocation = is_steered, None, ()
        if not is_steered:
            entry.shown = entry.noted = None
        self._settle()

    def order(self, entry: WorldJob, at: int, allocation: tuple[Placement, ...]) -> None:
        """Start a job at a second, or as soon after it as its nodes are free."""
        entry.is_steered, entry.due, entry.allocation = True, at, allocation
        self._await(max(at, self.now), _Kind.READY, entry.job.id)
        self._settle()

    def stop(self, entry: WorldJob) -> None:
        """Stop a running job, and let it wait again."""
        self._requeue(entry)
        self._settle()

    def view(self) -> Instance:
        """Return the running and waiting jobs as an instance, without held ones and those that wait for them."""
        entries = (one for one in self.jobs.values() if not (one.state.is_over or one.never))
        jobs = {one.job.id: self._seen(one) for one in entries if one.state is not JobState.HELD}
        without_awaited(jobs, jobs)
        return replace(self.site, now=self.now, cluster=self._cluster, jobs=tuple(jobs.values()))

    def _await(self, time: int, kind: _Kind, name: str, run: int = 0) -> None:
        """Add an event of a job (of its run number `run`) or of a node."""
        heapq.heappush(self._events, (time, kind, next(self._numbers), name, run))

    def _admit(self, job: Job) -> None:
        """Take a job now, or note when it arrives."""
        if job.is_evolving:
            raise BridgeError(("memory",), f"Expected jobs of one step each, got the evolving job {job.id}")
        if job.preemptible is not None and (by := job.preemptible.by) != "requeue":
            raise BridgeError(("memory",), f"Expected jobs that are stopped by requeue, got {by} of the job {job.id}")
        if job.alternatives:
            raise BridgeError(("memory",), f"Expected jobs without a choice, got alternatives of the job {job.id}")
        if job.running is None and job.submit > self.now:
            self._arrivals[job.id] = job
            self._await(job.submit, _Kind.SUBMIT, job.id)
            return
        self.changes += 1
        entry = WorldJob(job=replace(job, array=None, malleability=None, running=None), is_steered=self.gate_is_closed)
        self.jobs[job.id] = entry
        if job.running is not None:
            segment = job.running.segments[-1]
            self._hold_nodes(entry, segment.allocation, job.running.start)
            return
        self._waiting[job.id] = None
        if entry.job.not_before is not None:
            self._await(entry.job.not_before, _Kind.READY, job.id)

    def _bind(self, entry: WorldJob) -> None:
        """Note which jobs a job waits for, and which of them have started or ended already."""
        for dependency in entry.job.after:
            awaited = self.jobs.get(dependency.job)
            if awaited is None and dependency.job not in self._arrivals:
                entry.never = f"job {dependency.job}, which it waits for, is not known"
                return
            self._waiters.setdefault(dependency.job, []).append(entry.job.id)
            if awaited is not None and awaited.start is not None:
                self._met(entry, awaited, dependency)

    def _met(self, entry: WorldJob, awaited: WorldJob, dependency: Dependency) -> None:
        """Take a dependency off a job if it is met, or note that it never will be."""
        if dependency.type is DependencyType.AFTER:
            time = awaited.start
        elif not awaited.state.is_over:
            return
        else:
            time = awaited.end
            is_ok = awaited.state is JobState.COMPLETED
            if dependency.type is (DependencyType.AFTERNOTOK if is_ok else DependencyType.AFTEROK):
                entry.never = f"job {dependency.job} is {awaited.state}, and it waits for {dependency.type}"
                entry.seen = None
                return
        if time is None:
            return
        earliest = max(time + dependency.delay, entry.job.not_before or 0)
        rest = tuple(other for other in entry.job.after if other != dependency)
        entry.job, entry.seen = replace(entry.job, after=rest, not_before=earliest), None
        self._await(max(earliest, self.now), _Kind.READY, entry.job.id)

    def _set_node(self, node: str, state: NodeState) -> None:
        """Change a node's state, and take its jobs from it if it goes down."""
        if self.shop.state[node] is state:
            return
        self.shop.state[node] = state
        self.changes += 1
        self._cluster = _with_states(self.site.cluster, self.shop.state)
        if state is NodeState.DOWN:
            for entry in [one for one in self.jobs.values() if one.state is JobState.RUNNING and node in one.nodes]:
                self._requeue(entry)

    def _tell_waiters(self, awaited: WorldJob) -> None:
        """Take off the dependencies that the start or the end of a job meets."""
        for waiter in self._waiters.get(awaited.job.id, ()):
            entry = self.jobs.get(waiter)
            if entry is not None and entry.state in (JobState.WAITING, JobState.HELD):
                for dependency in [one for one in entry.job.after if one.job == awaited.job.id]:
                    self._met(entry, awaited, dependency)

    def _happen(self, kind: _Kind, name: str, run: int) -> None:
        if kind is _Kind.SUBMIT:
            job = self._arrivals.pop(name, None)
            if job is not None:
                self._admit(job)
                self._bind(self.jobs[name])
        elif kind is _Kind.END:
            entry = self.jobs.get(name)
            if entry is not None and entry.state is JobState.RUNNING and entry.restarts == run:
                runtime = entry.job.runtime
                is_late = runtime is not None and runtime > entry.job.walltime
                self._leave(entry, JobState.TIMED_OUT if is_late else JobState.COMPLETED)
        elif kind is not _Kind.READY:
            self._set_node(name, NodeState.UP if kind is _Kind.UP else NodeState.DOWN)

    def _settle(self) -> None:
        """Start what is due and fits, then what the own scheduler may start."""
        if not self._waiting:
            return
        due = [self.jobs[one] for one in self._waiting if (self.jobs[one].due or 0) <= self.now]
        ordered = [one for one in due if one.due is not None and self.may_start(one)]
        for entry in sorted(ordered, key=lambda one: one.due or 0):
            if self.shop.fits(entry.job, entry.allocation):
                self._start(entry, entry.allocation)
        own = [one for one in due if not one.is_steered and self.may_start(one)]
        for entry in sorted(own, key=lambda one: -one.priority):
            allocation = self.shop.first_fit(entry.job, queue_nodes(self.site, entry.job))
            if allocation is None:  # the first one that does not fit lets all behind it wait
                break
            self._start(entry, allocation)

    def may_start(self, entry: WorldJob) -> bool:
        """Tell whether nothing but a lack of nodes keeps a job from starting."""
        if entry.state is not JobState.WAITING or entry.never or entry.job.after:
            return False
        return entry.job.not_before is None or entry.job.not_before <= self.now

    def _start(self, entry: WorldJob, allocation: tuple[Placement, ...]) -> None:
        del self._waiting[entry.job.id]
        self._hold_nodes(entry, allocation, self.now)
        self._tell_waiters(entry)

    def _hold_nodes(self, entry: WorldJob, allocation: tuple[Placement, ...], start: int) -> None:
        """Give a job its nodes from a second on, and note when it gives them back."""
        self.changes += 1
        entry.state, entry.start, entry.allocation = JobState.RUNNING, start, allocation
        entry.due = entry.seen = None
        self.shop.take(entry.job, allocation)
        runtime = entry.job.walltime if entry.job.runtime is None else min(entry.job.runtime, entry.job.walltime)
        self._await(max(start + runtime, self.now + 1), _Kind.END, entry.job.id, entry.restarts)

    def _leave(self, entry: WorldJob, state: JobState) -> None:
        self.changes += 1
        if entry.state is JobState.RUNNING:
            self.shop.give_back(entry.job, entry.allocation)
        else:
            self._waiting.pop(entry.job.id, None)
            entry.due = None
        entry.state, entry.end = state, self.now
        heapq.heappush(self._over, (self.now, entry.job.id))
        self._tell_waiters(entry)

    def _requeue(self, entry: WorldJob) -> None:
        """Queue a running job again, steered as before, without an order."""
        self.shop.give_back(entry.job, entry.allocation)
        entry.state, entry.start, entry.allocation, entry.restarts = JobState.WAITING, None, (), entry.restarts + 1
        self._waiting[entry.job.id] = None
        self._changed(entry)

    def _changed(self, entry: WorldJob) -> None:
        self.changes += 1
        entry.changes, entry.seen = entry.changes + 1, None

    def _seen(self, entry: WorldJob) -> Job:
        """Return a job as a snapshot has it."""
        if entry.seen is None:
            job = replace(entry.job, runtime=None)
            if entry.state is JobState.RUNNING and entry.start is not None:
                segment = Segment(start=entry.start, end=entry.start + job.walltime, allocation=entry.allocation)
                job = replace(job, after=(), told=None, running=Running(start=entry.start, segments=(segment,)))
            entry.seen = job
        return entry.seen


def _with_states(cluster: Cluster, states: dict[str, NodeState]) -> Cluster:
    """Return a cluster with the states of its nodes now; the order of nodes stays."""
    classes = []
    for node_class in cluster.classes:
        for state, names in groupby(node_class.names, key=states.__getitem__):
            classes.append(replace(node_class, names=tuple(names), state=state))
    return replace(cluster, classes=tuple(classes))
