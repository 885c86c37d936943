"""The scheduler's view of machine and queue during a simulation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import booked_remainder
from cpsched.domain import Amounts, FairShare, Instance, Job, Placement, Running, Segment, SetAside
from cpsched.lab.sim import hold_kernels, kernels, run_kernels
from cpsched.lab.sim.arrays import C, J, R
from cpsched.lab.sim.scheduler import Change, Decision, Start
from cpsched.lab.sim.world import SimWorld
from cpsched.rusv import FOREVER, Booking, Timeline, instant_kernels


class Draft:
    """A decision in the making, for schedulers that start jobs one by one; mutable. It is of one second.

    `world`: the state of the simulation, which is not changed.
    """

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        machine = world.machine
        self._machine = machine._replace(free=machine.free.copy(), sfree=machine.sfree.copy())
        self._starts: dict[int, Start] = {}

    def start(self, job: int, choice: int | None = None) -> bool:
        """Start a job of the queue if it fits, cheap nodes first; return whether it does.

        `choice`: by which of its choices; None: by the first that is open and fits.

        It fits where what it asks for is free now, beside the starts that the draft has already, and is not set aside
        before its walltime is over. A malleable job starts at full share, one with alternatives by the first that fits.
        A job that the draft has already, that does not wait, or that starts by itself, is not started again.
        """
        world = self._world
        if job in self._starts or job in world.load.evolving or not world.may_begin(job):
            return False
        first, last = world.load.choices_of[job : job + 2].tolist()
        waited = world.now - int(world.state.jobs[job, J.SUBMIT])
        opens = world.load.choice_rows[first:last, 5].tolist() or [0]
        rows: Sequence[int | None] = [row for row, since in enumerate(opens) if since <= waited]
        if choice is not None:
            rows = [world.load.row_of(job, choice)]
        has_started = any(row is not None and self._start_by(job, row) for row in rows)
        run_kernels.take_choice(job, 0, world.state)
        return has_started

    def _start_by(self, job: int, row: int) -> bool:
        """Start a job if it fits by a row of its choices."""
        world, m, x = self._world, self._machine, self._world.scratch
        run_kernels.take_choice(job, row, world.state)
        demand = int(world.state.demand[job])
        count = instant_kernels.map_now(demand, m.free, m.sfree, world.tables, x)
        entries = x.entries[:count].copy()
        if not count or not kernels.fits_there(job, entries, world.state, m, world.tables, x):
            return False
        filled = instant_kernels.spell_out(demand, entries, count, world.tables, x)
        instant_kernels.change(m.free, m.sfree, filled, -1, x)
        self._starts[int(job)] = Start(int(job), entries, choice=int(world.state.choice[job]))
        return True

    def resize(self, job: int, choice: int) -> bool:
        """Continue a running resizable job by another of its choices, if it may change now and fits; return whether
        it does. It keeps its nodes, as many as it needs, and gets others, cheap ones first.
        """
        world = self._world
        row = None if job in self._starts or not world.can_resize(job) else world.load.row_of(job, choice)
        if row is None or choice == world.state.choice[job]:
            return False
        demand = int(world.load.choice_rows[world.load.choices_of[job] + row, 0])
        _, _, _, _, first, count = world.state.runs[job].tolist()
        entries = self._resized(demand, world.state.pool[first : first + count])
        if entries is None or not world.swap(Start(job, entries, choice=choice), self._machine):
            return False
        self._starts[int(job)] = Start(int(job), entries, choice=choice)
        return True

    def _resized(self, demand: int, entries: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """Return entries with another number of the demand's one kind of chunks; None if too little is free."""
        t, free = self._world.tables, self._machine.free
        kind = int(t.demands[demand, 0])
        need, first, behind, most = t.kinds[kind].tolist()
        have = np.zeros(len(t.run_of), dtype=np.int64)
        have[entries[:, 0]] = np.minimum(entries[:, 2], np.maximum(0, need - (entries[:, 2].cumsum() - entries[:, 2])))
        need -= int(have.sum())
        for segment in range(first, behind):
            if need == 0:
                break
            node, length, term = t.segments[segment].tolist()
            terms = t.terms[term : int(t.segments[segment + 1, 2])].tolist()
            room = np.min([free[column : column + length] // amount for column, amount in terms], axis=0)
            room = np.clip(np.minimum(room, most - have[node : node + length]), 0, None)
            room = np.minimum(room, np.maximum(0, need - (room.cumsum() - room)))
            have[node : node + length] += room
            need -= int(room.sum())
        nodes = np.flatnonzero(have)
        if need:
            return None
        return np.stack([nodes, np.full(len(nodes), kind), have[nodes]], axis=1).astype(np.int32)

    @property
    def free(self) -> dict[str, int]:
        """What is free of each resource on nodes that are up, and of each licence, after the starts of the draft."""
        return self._world.load.columns.totals_of(self._machine.sfree)

    def decision(self, *, wake: int | None = None) -> Decision:
        """Return the decision to start these jobs.

        `wake`: the latest second at which the scheduler is asked again; None: at the next event.
        """
        return Decision(starts=tuple(self._starts.values()), wake=wake)


class Site:
    """Machine and queue as they are now, without what no scheduler may know.

    Jobs are known by their index in the order of submission; times are seconds on the workload's clock.
    """

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        load = world.load
        #: The jobs; runtimes are left out.
        self.jobs: tuple[Job, ...] = tuple(
            replace(load.evolving.get(index) or load.choosing.get(index, job), runtime=None)
            for index, job in enumerate(load.jobs)
        )
        #: The machine and its rules, without jobs.
        self.instance = replace(load.instance, jobs=(), outages=(), preemption=None)
        self.walltime, self.cores, self.demand = load.walltime, load.cores, load.demand
        #: When each job was submitted; of one that follows others it is known when it has arrived.
        self.submit: NDArray[np.int64] = world.state.jobs[:, J.SUBMIT]
        self.columns = load.columns
        self.priority: NDArray[np.int64] = np.array(list(map(load.instance.priority, load.jobs)), dtype=np.int64)
        #: The waiting jobs as windows have them, as far as they have been in one.
        self._waiting: dict[int, Job] = {}
        #: Rigid running jobs as windows have them, by index: start, expected end, and the job.
        self._running_jobs: dict[int, tuple[int, int, Job]] = {}

    @property
    def now(self) -> int:
        """The present second."""
        return self._world.now

    @property
    def queue(self) -> NDArray[np.int64]:
        """The waiting jobs, in the order of submission."""
        s = self._world.state
        waiting: NDArray[np.int64] = s.queue[: s.clock[C.QUEUED]].copy()
        return waiting

    @property
    def by_priority(self) -> NDArray[np.int64]:
        """The waiting jobs by their priorities (their queues', if they have none), then in the order of submission."""
        queue = self.queue
        return queue[np.argsort(-self.priority[queue], kind="stable")] if self.priority.any() else queue

    @property
    def running(self) -> NDArray[np.int64]:
        """The running jobs, by when they are believed to end."""
        s = self._world.state
        jobs: NDArray[np.int64] = s.ends[: s.clock[C.RUNNING], 1].copy()
        return jobs

    @property
    def ends(self) -> NDArray[np.int64]:
        """When the running jobs are believed to end, ascending; each is later than now."""
        s = self._world.state
        ends: NDArray[np.int64] = s.ends[: s.clock[C.RUNNING], 0].copy()
        return ends

    @property
    def free(self) -> NDArray[np.int32]:
        """The free amount of each node column now."""
        free: NDArray[np.int32] = self._world.machine.free.copy()
        return free

    @property
    def free_sums(self) -> NDArray[np.int64]:
        """The free amount of each system column now."""
        sums: NDArray[np.int64] = self._world.machine.sfree.copy()
        return sums

    @property
    def fair_share(self) -> FairShare | None:
        """The shares of users with their usage until now; None where the workload has none."""
        return self._world.fair_share()

    def start_of(self, job: int) -> int:
        """Return when a running job has started."""
        return int(self._world.state.runs[job, R.START])

    def is_running(self, job: int) -> bool:
        """Return whether a job runs."""
        return self._world.is_running(job)

    def entries_of(self, job: int) -> NDArray[np.int32]:
        """Return the entries of a running job, as its start stated them; read only. For a job that runs since before
        the beginning they are known if it is malleable and its chunks are known.
        """
        s = self._world.state
        _, _, _, _, first, count = s.runs[job].tolist()
        return s.pool[first : first + count]

    def since(self, job: int) -> int:
        """Return since when a running job runs as it does."""
        return max([int(self._world.state.runs[job, R.START]), *(time for time, _ in self._world.changes_of(job)[-1:])])

    def modes_of(self, job: int) -> NDArray[np.int8]:
        """Return in which of its modes a running job runs on each of its entries; read only."""
        return self._world.modes_of(job)

    @property
    def num_changes(self) -> int:
        """How many changes of shares there have been."""
        return int(self._world.state.clock[C.CHANGES])

    def changed_since(self, count: int) -> set[int]:
        """Return the jobs that have changed their shares, or begun on a share, without the first changes."""
        return set(self._world.state.changes[count : self.num_changes, 0].tolist())

    def work_left(self, job: int) -> Fraction:
        """Return for how many seconds at full share a running job has still to run, as its walltime has it."""
        return self._world.work_left(job)

    def end_of(self, job: int) -> int:
        """Return when a running job is believed to end, which is later than now."""
        return int(self._world.state.runs[job, R.END])

    def can_resize(self, job: int) -> bool:
        """Return whether a job runs that may change its size now."""
        return self._world.can_resize(job)

    @property
    def next_resize(self) -> int | None:
        """When a running job may change its size that may not for some seconds yet; None: there is none."""
        return self._world.next_resize

    def choices_of(self, job: int) -> Sequence[tuple[int, Job]]:
        """Return by which choices a job could start on the empty machine, each as a rigid job with its number."""
        return self._world.load.choices.get(job) or [(0, self.jobs[job])]

    def choice_of(self, job: int) -> int:
        """Return by which of its choices a running job runs."""
        return int(self._world.state.choice[job])

    def estimate(self, job: int) -> int:
        """Return for how many seconds a job is believed to run: its walltime, unless promises follow predictions."""
        return int(self._world.state.estimate[job])

    def estimates(self, jobs: NDArray[np.int64]) -> list[int]:
        """Return for how many seconds each of some jobs is believed to run."""
        seconds: list[int] = self._world.state.estimate[jobs].tolist()
        return seconds

    @property
    def num_outages(self) -> int:
        """How often nodes have broken or returned."""
        return int(self._world.state.clock[C.OUTAGE])

    def capacity_of(self, nodes: Iterable[int]) -> dict[int, int]:
        """Return all that some nodes have, by node column; nodes are numbered in the order of filling."""
        of_nodes = (
            self.columns.columns_on(self.columns.node_names[node], Amounts(), whole=True) for node in sorted(nodes)
        )
        return {column: capacity for of_node in of_nodes for column, _, capacity in of_node}

    @property
    def nodes_out(self) -> NDArray[np.int64]:
        """Which nodes are out, by their numbers in the order of filling."""
        return np.flatnonzero(self._world.state.down)

    @property
    def has_asides(self) -> bool:
        """Whether anything is set aside, now or later."""
        return self._world.load.suspends or bool(hold_kernels.has_asides(self._world.state))

    @property
    def num_asides(self) -> int:
        """How often other amounts have been set aside, by rules, or for jobs with one start or suspended ones."""
        return int(self._world.state.clock[[C.LEVEL, C.BOOKINGS, C.DOZES]].sum())

    def asides(self) -> Iterator[tuple[int, int, dict[int, int], dict[int, int]]]:
        """Yield what is set aside from now on: (from, to, amounts of node columns, amounts of system columns)."""
        s = self._world.state
        if self._world.load.suspends:
            yield self.now, FOREVER, *self._world.dormant()
        if not hold_kernels.has_asides(s):
            return
        first = int(s.clock[C.LEVEL])
        levels = s.aside_levels[first:]
        is_new = np.append(True, (levels[1:] != levels[:-1]).any(axis=1))
        starts = np.maximum(s.aside_times[first:][is_new], self.now)
        for start, end, row in zip(starts[:-1].tolist(), starts[1:].tolist(), levels[is_new], strict=False):
            taken = {
                int(s.aside_columns[place]): int(row[place]) for place in np.flatnonzero(row).tolist() if end > start
            }
            if taken:
                of_nodes = {column: amount for column, amount in taken.items() if column >= 0}
                yield start, end, of_nodes, {-1 - column: many for column, many in taken.items() if column < 0}

    def latest(self, job: int) -> int:
        """Return the last second at which a job may start, `FOREVER` where it has no deadline."""
        return int(self._world.state.latest[job])

    def draft(self) -> Draft:
        """Return an empty decision of this second, to which one start after the other is added."""
        return Draft(self._world)

    def fit_now(self, job: int) -> Start | None:
        """Return where a waiting job fits at this moment, cheap nodes first, or None; whether anything is set aside
        before it ends does not count.

        What is decided in this second, and not told yet, does not count.
        """
        world = self._world
        machine, scratch = world.machine, world.scratch
        count = instant_kernels.map_now(int(self.demand[job]), machine.free, machine.sfree, world.tables, scratch)
        return Start(job, scratch.entries[:count].copy()) if count else None

    def start_on(self, job: int, allocation: Sequence[Placement], choice: int | None = None) -> Start | None:
        """Return the start of a waiting job on nodes by name, if malleable on shares of its cores, if it has
        alternatives by one of its choices (see `Start`); None if it may not stand so.
        """
        load = self._world.load
        job_modes = load.job_modes.get(job)
        if job_modes is None:
            row = load.row_of(job, choice)
            if row is None:
                return None
            rows = load.choice_rows[load.choices_of[job] : load.choices_of[job + 1], 0]
            demand = int(rows[row] if len(rows) else self.demand[job])
            of_job = load.jobs[job] if choice is None else load.job_by(job, choice)
            entries = self.columns.entries_of(demand, of_job.request, allocation)
            return None if entries is None else Start(job, entries, choice=choice)
        found = job_modes.placed_on(int(self.demand[job]), allocation)
        if found is None:
            return None
        entries, chosen = found
        return Start(job, entries, chosen if chosen.any() else None)

    def start_in_steps(self, job: int, segments: Sequence[Segment]) -> Start:
        """Return the start of an evolving job; see `Start`."""
        kind = self.columns.demands.kinds_of(int(self.demand[job]))[0][0]
        names = dict.fromkeys(held.node for segment in segments for held in segment.allocation)
        rows = [(self.columns.node_number[name], kind, 1) for name in names]
        return Start(job, np.array(rows, dtype=np.int32).reshape(-1, 3), segments=tuple(segments))

    def course_of(self, job: int) -> tuple[Segment, ...]:
        """Return the segments of an evolving job: one for each of its steps, as far as they are decided."""
        return tuple(self._world.course_of(job))

    def change_to(self, job: int, allocation: Sequence[Placement]) -> Change | None:
        """Return the change of a running job to what an allocation states from now on; None if it is no change.

        Raises `ValueError` if the job cannot have that.
        """
        job_modes, entries = self._world.load.job_modes.get(job), self.entries_of(job)
        if job_modes is None or not len(entries):
            return None
        chosen = job_modes.modes_on(entries, allocation)
        if chosen is None:
            raise ValueError(f"job {self.jobs[job].id} has no such shares of its cores on its nodes")
        return None if (chosen == self.modes_of(job)).all() else Change(job, chosen)

    def window(self, waiting: Sequence[int] | None = None) -> Instance:
        """Return the scheduling window of this second: the running jobs, and the waiting jobs (all, or these). Jobs
        that are as they were in an earlier window are the same objects.
        """
        listed = self.queue.tolist() if waiting is None else waiting
        jobs = [self._running(job, self.jobs[job]) for job in sorted(self.running.tolist())]
        for job in listed:
            walltime = int(self._world.state.jobs[job, J.WALLTIME]) if self.jobs[job].preemptible else None
            if job not in self._waiting or walltime not in (None, self._waiting[job].walltime):
                steps = self.jobs[job].steps
                if walltime is not None:
                    steps = (replace(steps[0], walltime=walltime),)
                self._waiting[job] = replace(
                    self.jobs[job], submit=int(self.submit[job]), steps=steps, after=(), not_before=None, running=None
                )
            jobs.append(self._waiting[job])
        aside, shares = self._set_aside(), self.fair_share
        return replace(self.instance, now=self.now, jobs=tuple(jobs), set_aside=aside, fair_share=shares)

    def _set_aside(self) -> tuple[SetAside, ...]:
        """Return what rules and booked jobs set aside from now on, as a window states it."""
        if not self.has_asides:
            return ()
        s, load = self._world.state, self._world.load
        if load.suspends:
            return self._dormant()
        waits = (s.start_at >= self.now) & (s.runs[:, R.START] < 0) & (s.runs[:, R.COUNT] > 0)
        booked = []
        for job in np.flatnonzero(waits).tolist():
            first, count = s.runs[job, [R.FIRST, R.COUNT]].tolist()
            start, of_job = int(s.start_at[job]), load.jobs[job]
            held = load.columns.allocation_of(of_job.request, s.pool[first : first + count])
            if of_job.request.place.exclusive:
                classes = load.instance.cluster.class_of
                held = tuple(
                    Placement(node=node, resources=classes[node].resources)
                    for node in dict.fromkeys(one.node for one in held)
                )
            booked.append(SetAside(start=start, end=start + of_job.walltime, allocation=held, licenses=of_job.licenses))
        return (*(aside for aside in load.instance.set_aside if aside.end > self.now), *booked)

    def _dormant(self) -> tuple[SetAside, ...]:
        """Return the amounts that suspended jobs have, as set aside until the last job is believed to end."""
        s, load = self._world.state, self._world.load
        of_nodes, of_system = self._world.dormant()
        allocation = load.columns.allocation_on(of_nodes)
        licenses = {name: of_system[place] for name, place in load.columns.license_number.items() if place in of_system}
        if not allocation and not licenses:
            return ()
        end = int(s.ends[: s.clock[C.RUNNING], 0].max(initial=self.now)) + 1
        return (SetAside(start=self.now, end=end, allocation=allocation, licenses=Amounts(licenses)),)

    def _running(self, index: int, job: Job) -> Job:
        """Return a running job as a scheduling window has it: the same object as long as it is the same."""
        start, end = self._world.since(index), self.end_of(index)
        if index not in self._world.load.job_modes and index not in self._world.courses:
            known = self._running_jobs.get(index)
            if known is None or known[:2] != (start, end):
                known = self._running_jobs[index] = start, end, self._as_running(index, job)
            return known[2]
        return self._as_running(index, job)

    def _as_running(self, index: int, job: Job) -> Job:
        """Return a running job without what is only of a job that waits: its start is a fact, no longer a promise."""
        if job.alternatives:
            job = job.choices[int(self._world.state.choice[index])]
        start = int(self._world.state.runs[index, 0])
        if self._world.load.resizable[index]:
            # it has begun when it was resized, and is not resized again
            start = self._world.since(index)
            job = replace(job, steps=(replace(job.steps[0], walltime=self.end_of(index) - start),))
        if index in self._world.courses:
            segments = self.course_of(index)
        else:
            entries, choice = self.entries_of(index), self.choice_of(index)
            segments = self._world.segments(index, start, self.end_of(index), entries, choice, is_stated=True)
        return replace(job, after=(), not_before=None, told=None, running=Running(start=start, segments=segments))

    def held(self, job: int, timeline: Timeline) -> Booking:
        """Return the amounts that a running job holds from its start to its expected end."""
        s = self._world.state
        start, end, _, _, first, count = s.runs[job].tolist()
        if s.fixed[job, 1] == 0:
            return timeline.booking_of(int(s.demand[job]), s.pool[first : first + count], start, end)
        at, number = s.fixed[job].tolist()
        columns, amounts = s.fixed_columns[at : at + number], s.fixed_amounts[at : at + number]
        licenses = {column: many for index, column, many in self._world.load.fixed.licenses if index == job}
        taken = dict(zip(columns.tolist(), amounts.tolist(), strict=True))
        return timeline.booking(self.now, end, taken, licenses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes on the timeline of an outlook."""

    #: Before which second something was given back (0: nothing was).
    freed_until: int
    #: The most nodes on which something was released that would have been held beyond now.
    freed_nodes: int
    #: Whether there are unexpected bookings: a job has started or is expected to run longer, or a node is down.
    has_taken: bool


class Outlook:
    """The resources that are free from now on if all jobs end as expected: a timeline for reservations; mutable."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.timeline = Timeline(site.columns.demands)
        self._held: dict[int, Booking] = {}
        #: The expected end of each booked job; -1 for all others.
        self._ends = np.full(len(site.jobs), -1, dtype=np.int64)
        #: The jobs whose bookings the scheduler sets itself.
        self._is_kept = np.zeros(len(site.jobs), dtype=np.bool_)
        self._out: dict[int, Booking] = {}
        #: The number of changes of shares that are on the timeline.
        self._num_changes = 0
        #: So often had nodes broken or returned when that was last looked at; -1: never.
        self._num_outages = -1
        #: The bookings of what is set aside, of what count, and whether running jobs have some of it.
        self._aside: list[Booking] = []
        self._num_asides = -1
        self._is_short = False

    def follow(self, gone: Sequence[int]) -> Changes:
        """Update the timeline: jobs that ended, started or have another expected end, and nodes that are down."""
        site, has_taken = self._site, False
        freed = [self._drop(job) for job in gone]
        if site.num_changes > self._num_changes:
            changed = site.changed_since(self._num_changes)
            freed.extend(self._drop(job) for job in changed if not self._is_kept[job])
            self._num_changes = site.num_changes
        running = site.running
        for job in running[(self._ends[running] != site.ends) & ~self._is_kept[running]].tolist():
            freed.append(self._drop(job))
            self.adopt(job, site.held(job, self.timeline))
            self.timeline.book(self._held[job])
            has_taken = True
        if len(self._held) > len(running):
            freed.extend(map(self._drop, sorted(self._held.keys() - set(running.tolist()))))
        if site.num_outages != self._num_outages:
            returned, has_broken = self._follow_outages()
            freed.extend(returned)
            has_taken |= has_broken
        given = [booking for booking in freed if booking is not None]
        if site.num_asides != self._num_asides or (self._is_short and given):
            has_taken |= self._set_aside()
        return Changes(
            freed_until=max((booking.end for booking in given), default=0),
            freed_nodes=sum(max(1, len(booking.columns)) for booking in given if booking.end > site.now),
            has_taken=has_taken,
        )

    def _follow_outages(self) -> tuple[list[Booking], bool]:
        """Keep up with outages: return the bookings of nodes that have returned, and whether others have broken."""
        self._num_outages = self._site.num_outages
        out = set(self._site.nodes_out.tolist())
        returned = [self._out.pop(node) for node in self._out.keys() - out]
        for booking in returned:
            self.timeline.release(booking)
        broken = sorted(out - self._out.keys())
        for node in broken:
            self._out[node] = self.timeline.booking(self._site.now, FOREVER, self._site.capacity_of([node]), {})
            self.timeline.book(self._out[node])
        return returned, bool(broken)

    @property
    def may_set_aside(self) -> bool:
        """Whether `follow` may book more that is set aside: reservations of waiting jobs must not be in its way."""
        return self._is_short or self._site.num_asides != self._num_asides

    def _set_aside(self) -> bool:
        """Book anew what is set aside, as far as running jobs do not have it; return whether that may be more."""
        before, self._num_asides, self._is_short = bool(self._aside), self._site.num_asides, False
        for booking in self._aside:
            self.timeline.release(booking)
        self._aside = []
        for start, end, amounts, sums in self._site.asides():
            bookings, is_short = booked_remainder(self.timeline, start, end, amounts, sums)
            self._aside += bookings
            self._is_short |= is_short
        return before or bool(self._aside)

    def withhold(self, amounts: dict[int, int], start: int, end: int) -> list[Booking]:
        """Book amounts of node columns in ``[start, end)``; where less is free, what is."""
        return booked_remainder(self.timeline, start, end, amounts, {})[0]

    def adopt(self, job: int, booking: Booking) -> None:
        """Take a booking for what a starting job holds; where it turns out otherwise, that is put right later."""
        self._held[job], self._ends[job] = booking, booking.end

    def keep(self, job: int, booking: Booking) -> None:
        """Set the booking of a job, in place of the site's, until the job ends or another booking is set."""
        self._drop(job)
        self.timeline.book(booking)
        self.adopt(job, booking)
        self._is_kept[job] = True

    def _drop(self, job: int) -> Booking | None:
        """Give back what a job holds, and return it; None if it held nothing."""
        held = self._held.pop(job, None)
        self._ends[job], self._is_kept[job] = -1, False
        if held is not None:
            self.timeline.release(held)
        return held
