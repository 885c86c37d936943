"""The state of a simulation: machine, queue, and what has become of the jobs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import FairShare, Job, Placement, Resizable, Running, Segment, counted, end_of_work
from cpsched.lab.sim import arrays, hold_kernels, kernels, run_kernels, stop_kernels
from cpsched.lab.sim.arrays import C, J, R
from cpsched.lab.sim.load import Load, amount_of, empty_state
from cpsched.lab.sim.scheduler import Change, Course, NextStep, Start
from cpsched.lab.sim.shares import JobModes, WorkDone
from cpsched.lab.sim.usage import DecayingUsage
from cpsched.metrics import Runs
from cpsched.rusv import FOREVER, Booking, instant_kernels

#: By how many seconds the estimate of a job is raised that runs longer than believed, one after the other (Tsafrir,
#: Etsion and Feitelson, TPDS 2007, section 4).
RAISES = tuple(60 * minutes for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000))


class SimWorld:
    """A workload while it is played; mutable. `load`: the workload."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.tables, self.scratch = load.timeline.instant_views()
        self.state = empty_state(load, RAISES)
        free, sums = load.timeline.free_at(0)
        self.machine = arrays.Machine(
            *(array for _ in range(5) for array in (free.astype(np.int32), sums.astype(np.int64)))
        )
        self._lengths = load.lengths
        #: The progress of running jobs that are not always at full share.
        self._work: dict[int, WorkDone] = {}
        #: What resized jobs have had, by index: (since, first entry, number of entries, choice), first its start.
        self._sizes: dict[int, list[tuple[int, int, int, int]]] = {}
        #: A cache of the changes by job, valid for this number of changes; see `changes_of`.
        self._changes: dict[int, list[tuple[int, int]]] = {}
        self._indexed = 0
        #: What evolving jobs hold, by index: the segments of their runs, with what was decided since.
        self.courses: dict[int, list[Segment]] = {}
        shares = load.instance.fair_share
        self._usage = None if shares is None else DecayingUsage(load, shares)
        self._begin()

    def fair_share(self) -> FairShare | None:
        """Return the shares of the workload with the usage until now; None where it has none."""
        return None if self._usage is None else self._usage.at(self.now, self.state)

    def weigh(self) -> None:
        """Bring the keys of Smith's rule up to date with the usage until now."""
        if self._usage is not None:
            self.state.smith[:] = self._usage.smith(self._usage.at(self.now, self.state))

    def order_by(self, key: Callable[[Job], float]) -> None:
        """Set the keys of a rule that has a key of its own; see `QueueRule`.

        Raises `ValueError` if it returns something else than a finite number.
        """
        for index, job in enumerate(self.load.stated_jobs):
            found = key(replace(job, runtime=None))
            try:
                is_number = isfinite(found)
            except TypeError:
                is_number = False
            if not is_number:
                raise ValueError(f"Expected a finite number as the key of job {job.id}, got {found!r}")
            self.state.smith[index] = found

    def _begin(self) -> None:
        """Book the jobs that run at the beginning, and schedule the releases of those that become eligible later."""
        s = self.state
        waits = s.awaited > 0
        for index, job in enumerate(self.load.jobs):
            if job.running is not None:
                s.runs[index, R.START], s.runs[index, R.STARTS] = job.running.start, 1
                if job.malleability is not None:
                    self._go_on(index, job, job.running)
                run_kernels.book_run(index, self.load.now, s, self.machine, self.tables, self.scratch)
                run_kernels.let_go_at_start(index, self.load.now, s)
            elif s.jobs[index, J.ARRIVAL] < 0 and not waits[index] and self.load.demand[index] >= 0:
                arrays.push(max(int(s.release[index]), self.load.now), arrays.RELEASED, index, s.heap, s.clock)
        hold_kernels.hold_all(s, self.machine, self.tables)

    def _go_on(self, index: int, job: Job, running: Running) -> None:
        """Record the progress and the nodes of a malleable job that runs since before the beginning.

        Where that is not known, its segments are a fact: it ends with them, or in them where its work is done.
        """
        s, job_modes = self.state, self.load.job_modes.get(index)
        found = None if job_modes is None else job_modes.standing(int(self.load.demand[index]), self.load.now)
        if job_modes is None or found is None:
            believed = running.segments[-1].end
            end = end_of_work(job, self.load.now, int(self._lengths[index]))
            s.jobs[index, J.WALLTIME] = s.estimate[index] = believed - running.start
            s.jobs[index, J.LENGTH] = (believed if end is None else end) - running.start
            return
        entries, chosen, done = found
        self._put(index, entries)
        self._work[index] = WorkDone(since=self.now, done=done, rate=job_modes.rate(entries, chosen))
        self._note(index, chosen)
        self._expect(index, running.start, 0, self._work[index])

    def _has_run_since(self, job: int) -> bool:
        """Return whether a job runs that did so before the beginning."""
        running = self.load.jobs[job].running
        return running is not None and self.state.runs[job, R.START] == running.start and self.is_running(job)

    def make_room(self) -> None:
        """Enlarge the arrays that may be full."""
        clock = self.state.clock
        if clock[C.LACKS] and len(self.state.step_times) < max(clock[C.STEPS], clock[C.RUNNING]) + 3:
            self._double("step_times", "step_sums")
        elif clock[C.LACKS] or len(self.state.pool) < clock[C.POOL] + clock[C.SPARE]:
            self._double("pool")
        else:
            self._double("attempts", "heap")

    def _double(self, *names: str) -> None:
        """Double the rows of these arrays of the state."""
        for name in names:
            array: NDArray[Any] = getattr(self.state, name)
            # memory is taken only when it is used
            grown = np.zeros((2 * len(array), *array.shape[1:]), dtype=array.dtype)
            grown[: len(array)] = array
            self.state = self.state._replace(**{name: grown})

    def mend(self) -> None:
        """Remove started jobs from the queue: an interrupt may have prevented that."""
        kernels.close_gaps(self.state)
        s = self.state
        is_resizable = self.load.resizable
        self._work = {job: one for job, one in self._work.items() if is_resizable[job] or self._has_run_since(job)}
        for job, time, first in s.changes[: s.clock[C.CHANGES]].tolist():
            start, end, ending, _, entry, count = s.runs[job].tolist()
            if start <= time < end and ending == arrays.WAITING:
                rate = self.load.job_modes[job].rate(s.pool[entry : entry + count], s.modes[first : first + count])
                self._work[job] = WorkDone(since=time, done=self._work_of(job).at(time), rate=rate)

    @property
    def now(self) -> int:
        """The second up to which everything has happened."""
        return int(self.state.clock[C.NOW])

    @property
    def num_done(self) -> int:
        """How many jobs have ended."""
        return int(self.state.clock[C.DONE])

    @property
    def num_opens(self) -> int:
        """How many choices that cost something have opened."""
        return int(self.state.clock[C.OPENS])

    @property
    def num_waiting(self) -> int:
        """How many jobs are in the queue."""
        return int(self.state.clock[C.QUEUED])

    # --- for schedulers that are not compiled ---------------------------------------------------------------------

    def next_event(self) -> int | None:
        """Return when the next thing happens, None if nothing will."""
        time = int(kernels.next_event(self.state))
        return None if time == FOREVER else time

    def step(self, now: int, rule: arrays.RuleNumbers) -> tuple[list[int], list[int], list[int]]:
        """Process all events at `now`, up to the arrivals; return the jobs that have arrived, those that have ended,
        and those that have left the queue because they are too late.
        """
        s = self.state
        if s.clock[C.OUTAGE] < len(s.outages) or len(s.stops):
            self._make_room_for_attempts()
            s = self.state
        while len(self.state.pool) < s.clock[C.POOL] + s.clock[C.SPARE]:
            self._double("pool")
        s = self.state
        s.clock[C.GONE] = s.clock[C.EXPIRED] = 0
        count = kernels.step(now, rule, s, self.machine, self.tables, self.scratch)
        count = kernels.serve_waiting(count, now, rule, s, self.machine, self.tables, self.scratch)
        while s.clock[C.LACKS]:
            s.clock[C.LACKS] = 0
            self._double("pool")
            s = self.state
            count = kernels.serve_waiting(count, now, rule, s, self.machine, self.tables, self.scratch)
        gone = s.gone[: s.clock[C.GONE]].tolist()
        for job in gone:
            if self._work.pop(job, None) is not None and s.runs[job, R.END] < 0 and not self.load.resizable[job]:
                self._expect(job, 0, int(s.estimate[job]), WorkDone(since=0, done=Fraction(0), rate=Fraction(1)))
        return s.arrived[:count].tolist(), gone, s.expired[: s.clock[C.EXPIRED]].tolist()

    def _make_room_for_attempts(self) -> None:
        """Enlarge the arrays until all running jobs may be cut short."""
        while len(self.state.attempts) < self.state.clock[C.ATTEMPTS] + 2 * self.state.clock[C.RUNNING]:
            self.make_room()

    @property
    def notice(self) -> int | None:
        """Until when jobs have notice, so that no other job is started; None where none has."""
        until = int(self.state.clock[C.NOTICE])
        return None if until < 0 else until

    def may_begin(self, job: int) -> bool:
        """Return whether a job is in the queue, and may be started now."""
        s = self.state
        is_queued = job in s.queue[: s.clock[C.QUEUED]]
        return bool(is_queued and s.start_at[job] < 0 and self.now <= s.latest[job])

    def why_not(self, start: Start) -> str:
        """Say in words why `can_begin` refuses a start."""
        s, job = self.state, start.job
        if s.runs[job, R.ENDING] != arrays.WAITING:
            return "it has ended, or can start no more"
        if s.runs[job, R.START] >= 0:
            return f"it runs since {s.runs[job, R.START]}"
        if s.start_at[job] >= 0:
            return f"it starts by itself, at {s.start_at[job]}"
        if self.now > s.latest[job]:
            return f"it had to start by {s.latest[job]}"
        if not self.may_begin(job):
            return "it is not in the queue: it has not arrived, or waits for another job"
        return "what it takes is not free on these nodes from now until its walltime is over"

    def can_begin(self, start: Start) -> bool:
        """Return whether a job may start now on what is free, and not set aside before its walltime is over."""
        s, job = self.state, start.job
        if s.runs[job, R.START] >= 0:
            return self.can_resize(job) and self.swap(
                start, self.machine._replace(free=self.machine.free.copy(), sfree=self.machine.sfree.copy())
            )
        if not self.may_begin(job):
            return False
        if start.segments is not None or job in self.load.evolving:
            return self._can_evolve(start)
        if start.choice is not None and self.load.row_of(job, start.choice) is None:
            return False
        if start.modes is not None:
            job_modes = self._modes_of(job, start.entries, start.modes)
            if job_modes is None:
                return False
            work = WorkDone(since=self.now, done=Fraction(0), rate=job_modes.rate(start.entries, start.modes))
            end = work.end_of(int(self.load.walltime[job]))
            return self._is_free(self._held_by(job, job_modes.allocation(start.entries, start.modes), end))
        run_kernels.take_choice(job, self.load.row_of(job, start.choice) or 0, s)
        fits = bool(kernels.fits_there(job, start.entries, s, self.machine, self.tables, self.scratch))
        run_kernels.take_choice(job, 0, s)
        return fits

    def begin(self, starts: Sequence[Start]) -> None:
        """Start waiting jobs now; the caller guarantees that their resources are free."""
        for start in starts:
            if self.state.runs[start.job, R.START] >= 0:
                self._resize(start)
                continue
            while len(self.state.pool) - self.state.clock[C.POOL] < len(start.entries):
                self._double("pool")
            if start.segments is not None:
                self._set_course(start.job, start.segments)
            if start.modes is not None:
                self._shape(
                    start.job, start.entries, start.modes, self.now, Fraction(0), int(self.state.estimate[start.job])
                )
            run_kernels.take_choice(start.job, self.load.row_of(start.job, start.choice) or 0, self.state)
            kernels.begin_there(start.job, start.entries, self.now, self.state, self.machine, self.tables, self.scratch)
        kernels.close_gaps(self.state)

    # --- resizable jobs -------------------------------------------------------------------------------------------

    @property
    def has_resizable(self) -> bool:
        """Whether a resizable job runs."""
        s = self.state
        return bool(self.load.resizable[s.ends[: s.clock[C.RUNNING], 1]].any())

    def can_resize(self, job: int) -> bool:
        """Return whether a job runs that may change its size now."""
        way = self._way(job)
        return way is not None and self.is_running(job) and self.now >= self.since(job) + way.interval

    @property
    def next_resize(self) -> int | None:
        """When a running job may change its size that may not for some seconds yet; None: there is none."""
        running = self.state.ends[: self.state.clock[C.RUNNING], 1].tolist()
        ways = ((job, self._way(job)) for job in running if self.load.resizable[job])
        times = [self.since(job) + way.interval for job, way in ways if way is not None and way.interval > 1]
        return min((time for time in times if time > self.now), default=None)

    def _way(self, job: int) -> Resizable | None:
        return self.load.choosing[job].resizable if self.load.resizable[job] else None

    def since(self, job: int) -> int:
        """Return since when a job runs on the nodes that it has, whatever its share of their cores."""
        return max([int(self.state.runs[job, R.START]), *(time for time, *_ in self._sizes.get(job, ())[-1:])])

    def rate(self, job: int, choice: int) -> Fraction:
        """Return the work that a resizable job does in a second by one of its choices: seconds by its own request."""
        return Fraction(self.load.choosing[job].walltime, self.load.job_by(job, choice).walltime)

    def swap(self, start: Start, machine: arrays.Machine) -> bool:
        """Give a running job other nodes by another choice, on a machine of which only what is free now matters; return
        whether it may have them, and leave the machine as it is if not.
        """
        s, job, x, tables, choice = self.state, start.job, self.scratch, self.tables, start.choice or 0
        (chunk,), (nodes, _, chunks) = self.load.job_by(job, choice).request.chunks, start.entries.T
        row, is_sized = self.load.row_of(job, choice), chunks.sum() == chunk.count
        if row is None or choice == s.choice[job] or not is_sized or len(np.unique(nodes)) < len(nodes):
            return False
        kept = s.demand[job], s.jobs[job].copy(), s.estimate[job], s.cores[job], s.choice[job]
        first, count = s.runs[job, R.FIRST :].tolist()
        own = int(s.demand[job]), s.pool[first : first + count], count
        had = instant_kernels.spell_out(*own, tables, x)
        instant_kernels.change(machine.free, machine.sfree, had, 1, x)
        run_kernels.take_choice(job, row, s)
        s.jobs[job, J.WALLTIME] = self._resized(job, choice).end_of(self.load.choosing[job].walltime) - self.now
        fits = bool(kernels.fits_there(job, start.entries, s, machine, tables, x))
        taken = instant_kernels.spell_out(int(s.demand[job]), start.entries, len(nodes), tables, x) if fits else 0
        s.demand[job], s.jobs[job], s.estimate[job], s.cores[job], s.choice[job] = kept
        if not fits:
            taken = instant_kernels.spell_out(*own, tables, x)
        instant_kernels.change(machine.free, machine.sfree, taken, -1, x)
        return fits

    def _resized(self, job: int, choice: int) -> WorkDone:
        """Return the progress of a running job that is resized now."""
        way = self._way(job)
        since = self.now + (0 if way is None else way.cost)
        return WorkDone(since=since, done=self._work_of(job).at(self.now), rate=self.rate(job, choice))

    def _resize(self, start: Start) -> None:
        """Continue a running job by another choice on other nodes, which are free."""
        s, job, now, choice = self.state, start.job, self.now, start.choice or 0
        work, (begun, _, _, _, first, count) = self._resized(job, choice), s.runs[job].tolist()
        if not any(time >= begun for time, *_ in self._sizes.get(job, ())[-1:]):
            self._sizes.setdefault(job, []).append((begun, first, count, int(s.choice[job])))
        run_kernels.give_back(job, s, self.machine, self.tables, self.scratch)
        run_kernels.take_choice(job, self.load.row_of(job, choice) or 0, s)
        self._put(job, start.entries)
        s, stated = self.state, self.load.choosing[job]
        self._sizes[job].append((now, *s.runs[job, R.FIRST :].tolist(), choice))
        self._work[job] = work
        length = stated.walltime if stated.runtime is None else min(stated.runtime, stated.walltime)
        s.jobs[job, J.LENGTH] = work.end_of(length) - begun
        s.jobs[job, J.WALLTIME] = s.estimate[job] = work.end_of(stated.walltime) - begun
        self._book(job)

    def _sizes_of(self, job: int, start: int, end: int) -> list[tuple[int, int, Job, NDArray[np.int32]]]:
        """Return the sizes of a run of a job that was resized: since, until, the job as it is then, its entries."""
        sizes = [one for one in self._sizes.get(job, ()) if start <= one[0] < end]
        return [
            (time, until, self.load.job_by(job, choice), self.state.pool[first : first + count])
            for (time, first, count, choice), until in zip(sizes, [*(one[0] for one in sizes[1:]), end], strict=False)
        ]

    def choice_of(self, job: int, start: int, choice: int) -> int:
        """Return by which choice a run of a job has started that ended by some choice."""
        return next((number for time, _, _, number in self._sizes.get(job, ()) if time == start), choice)

    def _held_by_all(self) -> dict[str, NDArray[np.int64]]:
        """Return the amount of each resource and licence that each job holds, and its cores; of one that was resized,
        evolved or shared its cores, the mean over its last run.
        """
        s, load = self.state, self.load
        found = {name: self._chosen(amounts, partial(amount_of, name)) for name, amounts in load.asked().items()}
        found["cores"] = s.cores.astype(np.int64)
        for job in {*self._sizes, *self.courses, *s.changes[: s.clock[C.CHANGES], 0].tolist()}:
            start, end, _, _, first, count = s.runs[job].tolist()
            end = min(end, self.now)
            if start < end:
                segments = self.segments(job, start, end, s.pool[first : first + count], int(s.choice[job]))
                for name in found.keys() - load.stated.cluster.licenses.keys():
                    area = sum(
                        held.resources.get(name, 0) * (segment.end - segment.start)
                        for segment in segments
                        for held in segment.allocation
                    )
                    found[name][job] = round(area / (end - start))
        return found

    # --- evolving jobs --------------------------------------------------------------------------------------------

    @property
    def evolves(self) -> bool:
        """Whether an evolving job runs."""
        return any(map(self.is_running, self.courses))

    def _can_evolve(self, start: Start) -> bool:
        """Return whether an evolving job can start: its steps follow each other from now on, and the first is free."""
        job, segments = self.load.evolving.get(start.job), start.segments
        if job is None or segments is None or segments[0].start != self.now or not _is_course(job, segments):
            return False
        return self._is_free(self._held_by(start.job, segments[0].allocation, segments[0].end))

    def _held_by(self, job: int, allocation: Sequence[Placement], end: int) -> Booking:
        """Return the amounts that a job which changes while it runs takes on some nodes from now on."""
        columns, of_job = self.load.columns, self.load.jobs[job]
        taken = columns.amounts_of(allocation, whole=of_job.request.place.exclusive)
        return self.load.timeline.booking(self.now, end, taken, columns.licenses_of(of_job.licenses))

    def course_of(self, job: int) -> list[Segment]:
        """Return the segments of the present run of an evolving job, one for each step."""
        start = self.state.runs[job, R.START]
        return [segment for segment in self.courses.get(job, ()) if segment.start >= start]

    def _set_course(self, job: int, segments: Sequence[Segment]) -> None:
        """Note when the steps of a job that starts now begin, and what the first one holds."""
        self._fix(job, self._held_by(job, segments[0].allocation, segments[0].end))
        self._follow(job, segments, segments)

    def _follow(self, job: int, changed: Sequence[Segment], segments: Sequence[Segment]) -> None:
        """Put segments in place of those that began no earlier; find the end of the run, which has these `segments`.

        A step does as much work as its walltime has seconds; the job ends in the step in which its runtime is done.
        """
        s, start = self.state, segments[0].start
        self.courses[job] = [one for one in self.courses.get(job, ()) if one.start < changed[0].start] + [*changed]
        left, end = int(self._lengths[job]), segments[-1].end
        for segment, step in zip(segments, self.load.evolving[job].steps, strict=True):
            if left <= step.walltime:
                end = segment.start + left
                break
            left -= step.walltime
        s.jobs[job, J.LENGTH] = end - start
        s.jobs[job, J.WALLTIME] = s.estimate[job] = (
            segments[-1].start - start + self.load.evolving[job].steps[-1].walltime
        )

    def next_steps(self, steps: Sequence[NextStep]) -> bool:
        """Begin steps of running jobs now, all at once; return whether they begin now, and what they take is free."""
        s = self.state
        for one in steps:
            course, begun = self.courses.get(one.job, []), s.runs[one.job, R.START]
            place = next((index for index, segment in enumerate(course) if segment.start == self.now), None)
            if place is None or not 0 <= begun < self.now or s.runs[one.job, R.ENDING] != arrays.WAITING:
                return False
            course[place] = replace(course[place], allocation=one.allocation)
        held = [self._held_by(one.job, one.allocation, self.now) for one in steps]
        for one, of_one in zip(steps, held, strict=True):
            run_kernels.give_back(one.job, s, self.machine, self.tables, self.scratch)
            self._fix(one.job, of_one)
        s = self.state
        for one, of_one in zip(steps, held, strict=True):
            if not self._is_free(of_one):
                return False
            self._book(one.job)
        return True

    def redirect(self, course: Course) -> bool:
        """Move the next steps of a running job to other seconds; return whether they may begin then."""
        job, before, segments = course.job, self.course_of(course.job), course.segments
        place = next((index for index, one in enumerate(before) if one.start == segments[0].start), None)
        if place is None or not segments[0].start < self.now <= segments[0].end or not self.is_running(job):
            return False
        segments = (replace(segments[0], allocation=before[place].allocation), *segments[1:])
        if not _is_course(self.load.evolving[job], (*before[:place], *segments)):
            return False
        run_kernels.give_back(job, self.state, self.machine, self.tables, self.scratch)
        self._follow(job, segments, (*before[:place], *segments))
        self._book(job)
        return True

    def stop(self, job: int, rule: arrays.RuleNumbers) -> bool:
        """Cut a running job short whose next step would begin now; return whether that is so. It waits again."""
        is_between = any(one.start == self.now for one in self.course_of(job))
        if not is_between or not self.is_running(job) or self.state.runs[job, R.START] == self.now:
            return False
        self._make_room_for_attempts()
        stop_kernels.cut_short(job, False, self.now, rule, self.state, self.machine, self.tables, self.scratch)
        return True

    def is_running(self, job: int) -> bool:
        """Return whether a job runs."""
        runs = self.state.runs[job]
        return bool(runs[R.END] >= 0 and runs[R.ENDING] == arrays.WAITING)

    @property
    def is_shrunk(self) -> bool:
        """Whether a job runs that is not at full share."""
        return any(work.rate < 1 for work in self._work.values())

    def work_left(self, job: int) -> Fraction:
        """Return the work that a running job may still do until its walltime is over: seconds at full share, of a
        resizable one by its own request.
        """
        walltime = self.load.choosing[job].walltime if self.load.resizable[job] else int(self.load.walltime[job])
        return walltime - self._work_of(job).at(self.now)

    def modes_of(self, job: int) -> NDArray[np.int8]:
        """Return in which of its modes a running job runs on each of its entries."""
        start, _, _, _, _, count = self.state.runs[job].tolist()
        since = [first for time, first in self.changes_of(job) if time >= start]
        return self.state.modes[since[-1] : since[-1] + count] if since else np.zeros(count, dtype=np.int8)

    def _work_of(self, job: int) -> WorkDone:
        """Return how far a running job is."""
        rate = self.rate(job, int(self.state.choice[job])) if self.load.resizable[job] else Fraction(1)
        begun = WorkDone(since=int(self.state.runs[job, R.START]), done=Fraction(0), rate=rate)
        return self._work.get(job, begun)

    def change(self, change: Change) -> bool:
        """Change the modes of a running job, if it can change and the resources are free; return whether that is so.

        Rules are not held against what the job has already: of what is set aside it may keep that.
        """
        s, job, now = self.state, change.job, self.now
        start, end, ending, _, first, count = s.runs[job].tolist()
        entries = s.pool[first : first + count]
        job_modes = self._modes_of(job, entries, change.modes)
        if job_modes is None or end < 0 or ending != arrays.WAITING:
            return False
        had = self._held_by(job, job_modes.allocation(entries, self.modes_of(job)), now)
        work = self._work_of(job).at(now)
        next_work = WorkDone(since=now, done=work, rate=job_modes.rate(entries, change.modes))
        until = next_work.end_of(int(self.load.walltime[job]))
        held = self._held_by(job, job_modes.allocation(entries, change.modes), until)
        run_kernels.give_back(job, s, self.machine, self.tables, self.scratch)
        is_free = self._is_free(held, had)
        if is_free:
            self._shape(job, entries, change.modes, start, work, ceil((end - now) * self._work_of(job).rate))
        self._book(job)
        return is_free

    def _modes_of(self, job: int, entries: NDArray[np.int32], chosen: NDArray[np.int8]) -> JobModes | None:
        """Return how a job can run, None if it cannot run so."""
        job_modes = self.load.job_modes.get(job)
        if job_modes is None or not len(chosen) or len(chosen) != len(entries):
            return None
        return job_modes if chosen.min() >= 0 and chosen.max() < len(job_modes.modes) else None

    def _is_free(self, held: Booking, had: Booking | None = None) -> bool:
        """Return whether something is free now and not set aside before it ends, beside what the job had."""
        s, machine, free, sums = self.state, self.machine, self.machine.free, self.machine.sfree
        if held.end > hold_kernels.next_change(s):
            hold_kernels.room_until(held.end, machine.free, machine.sfree, s, machine, self.tables)
            free, sums = machine.room, machine.sroom
        free, sums = free.copy(), sums.copy()
        if had is not None:
            free[had.columns] = np.maximum(free[had.columns], had.amounts)
            sums[had.system_columns] = np.maximum(sums[had.system_columns], had.system_amounts)
        has_nodes = (free[held.columns] >= held.amounts).all()
        return bool(has_nodes and (sums[held.system_columns] >= held.system_amounts).all())

    def _shape(
        self, job: int, entries: NDArray[np.int32], chosen: NDArray[np.int8], start: int, done: Fraction, believed: int
    ) -> None:
        """Set the allocation of a started job to the chosen modes, without booking it.

        `start`: when it has started. `done`, `believed`: what it has done, and is believed to do yet, at full share.
        """
        job_modes = self.load.job_modes[job]
        self._fix(job, self._held_by(job, job_modes.allocation(entries, chosen), self.now))
        self._note(job, chosen)
        self._work[job] = WorkDone(since=self.now, done=done, rate=job_modes.rate(entries, chosen))
        self._expect(job, start, believed, self._work[job])

    def _fix(self, job: int, held: Booking) -> None:
        """Note what a job has, in its old place if that is large enough."""
        s = self.state
        first, room = s.fixed[job].tolist()
        if room != len(held.columns):
            first = int(s.clock[C.FIXED])
            s.clock[C.FIXED] += len(held.columns)
            while len(self.state.fixed_columns) < s.clock[C.FIXED]:
                self._double("fixed_columns", "fixed_amounts")
            s = self.state
        s.fixed[job] = first, len(held.columns)
        s.fixed_columns[first : first + len(held.columns)] = held.columns
        s.fixed_amounts[first : first + len(held.columns)] = held.amounts
        s.sums[job] = 0
        s.sums[job, held.system_columns] = held.system_amounts

    def _put(self, job: int, entries: NDArray[np.int32]) -> None:
        first, count = int(self.state.clock[C.POOL]), len(entries)
        while len(self.state.pool) < first + count:
            self._double("pool")
        s = self.state
        s.pool[first : first + count] = entries
        s.clock[C.POOL] += count
        s.runs[job, R.FIRST], s.runs[job, R.COUNT] = first, count

    def _book(self, job: int) -> None:
        """Take what a job has from what is free now, and enter its expected end."""
        while len(self.state.heap) < self.state.clock[C.HEAP] + 4 * len(self.state.runs):
            self._double("heap")
        run_kernels.book_run(job, self.now, self.state, self.machine, self.tables, self.scratch)

    def _note(self, job: int, chosen: NDArray[np.int8]) -> None:
        """Note in which modes a job runs from now on."""
        if self.state.clock[C.CHANGES] == len(self.state.changes):
            self._double("changes")
        while len(self.state.modes) < self.state.clock[C.MODES] + len(chosen):
            self._double("modes")
        s = self.state
        first = int(s.clock[C.MODES])
        s.changes[s.clock[C.CHANGES]] = job, self.now, first
        s.modes[first : first + len(chosen)] = chosen
        s.clock[C.CHANGES] += 1
        s.clock[C.MODES] += len(chosen)

    def _expect(self, job: int, start: int, believed: int, work: WorkDone) -> None:
        """Note how long a job takes from its start on, and how long it is believed to, and allowed to take."""
        s = self.state
        is_predicted = s.estimate[job] < s.jobs[job, J.WALLTIME]
        limit = work.end_of(int(self.load.walltime[job])) - start
        s.jobs[job, J.LENGTH] = work.end_of(int(self._lengths[job])) - start
        s.jobs[job, J.WALLTIME] = limit
        left = work.since - start + ceil(believed / work.rate)
        s.estimate[job] = min(limit, left) if is_predicted else limit

    # --- suspended jobs -------------------------------------------------------------------------------------------

    def dormant(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the amounts that suspended jobs keep, and the free cores that are withheld for them: amounts of node
        columns, and of licences by system column.
        """
        s, x = self.state, self.scratch
        columns = {column: int(s.withheld[column]) for column in np.flatnonzero(s.withheld).tolist()}
        licenses: dict[int, int] = {}
        for job in s.asleep[: s.clock[C.ASLEEP]].tolist():
            for k in range(stop_kernels.spell_part(job, False, s, self.tables, x)):
                column = int(x.columns[k])
                columns[column] = columns.get(column, 0) + int(x.amounts[k])
            for column, amount in self.load.columns.licenses_of(self.load.jobs[job].licenses).items():
                licenses[column] = licenses.get(column, 0) + amount
        return {column: amount for column, amount in columns.items() if amount}, licenses

    # --- what has happened ----------------------------------------------------------------------------------------

    def runs(self) -> Runs:
        """Return the outcomes of the jobs so far, in document order."""
        load, s = self.load, self.state
        order = np.argsort(load.places, kind="stable")
        found, ended = s.runs[order], s.runs[order, R.ENDING] >= arrays.COMPLETED
        jobs = [load.jobs[index] for index in order.tolist()]
        # a job that is said to have started before it was submitted did not wait
        ran_before = np.array([job.running is not None for job in jobs], dtype=np.bool_)
        # when each job has started first (-1: never), and the seconds of work that it has lost
        first_start, lost = s.runs[:, R.START].copy(), np.zeros(len(load.jobs), dtype=np.int64)
        for index, start, end, *_, kept in reversed(s.attempts[: s.clock[C.ATTEMPTS]].tolist()):
            first_start[index] = start
            lost[index] += end - start - kept
        # a job that nothing has released is not submitted yet
        to_come = load.follows & ((s.awaited > 0) | (s.release > self.now)) & (load.demand >= 0)
        submit = np.where(to_come, np.maximum(load.submit, self.now + 1), s.jobs[:, J.SUBMIT])[order]
        held = self._held_by_all()
        return Runs(
            ids=tuple(job.id for job in jobs),
            users=tuple(job.user for job in jobs),
            groups=tuple(job.group for job in jobs),
            queues=tuple(job.queue for job in jobs),
            submit=np.where(ran_before, np.minimum(submit, found[:, R.START]), submit),
            walltime=self._chosen(load.walltime, lambda job: job.walltime)[order],
            runtime=self._chosen(load.runtime, lambda job: -1 if job.runtime is None else job.runtime)[order],
            start=found[:, R.START],
            end=np.where(ended, found[:, R.END], -1),
            cores=held["cores"][order],
            asked={name: held[name][order] for name in load.asked()},
            nodes=self._num_nodes()[order],
            expected_wait=load.expected_wait[order],
            max_wait=np.array(
                [-1 if (due := load.instance.due(job)) is None else due - job.submit for job in jobs], dtype=np.int64
            ),
            attempts=found[:, R.STARTS],
            first_start=first_start[order],
            lost=lost[order],
            ending=found[:, R.ENDING].astype(np.int8),
        )

    def _chosen(self, numbers: NDArray[np.int64], of: Callable[[Job], int]) -> NDArray[np.int64]:
        """Return numbers of jobs, for those with a choice what it is `of` the choice that was taken."""
        found = numbers.copy()
        for index in self.load.choices:
            found[index] = of(self.load.job_by(index, int(self.state.choice[index])))
        return found

    def placements(self) -> Iterator[tuple[int, int, int, NDArray[np.int32], int]]:
        """Yield (job, start, end, entries, choice) of all that has run to its end."""
        s = self.state
        for job in np.flatnonzero(s.runs[:, R.ENDING] >= arrays.COMPLETED).tolist():
            start, end, _, _, first, count = s.runs[job].tolist()
            yield job, start, end, s.pool[first : first + count], int(s.choice[job])

    def attempts(self) -> Iterator[tuple[int, int, int, NDArray[np.int32], int]]:
        """Yield (job, start, end, entries, choice) of what was cut short, in order of time."""
        s = self.state
        for job, start, end, first, count, choice, _ in s.attempts[: s.clock[C.ATTEMPTS]].tolist():
            yield job, start, end, s.pool[first : first + count], choice

    def segments(
        self, job: int, start: int, end: int, entries: NDArray[np.int32], choice: int = 0, *, is_stated: bool = False
    ) -> tuple[Segment, ...]:
        """Return a run of a job by one of its choices in segments: one for each change of shares.

        `is_stated`: whether a job that ran before the beginning states its chunks though the instance does not.
        """
        running = self.load.jobs[job].running
        if running is not None and not len(entries):
            if start > running.start:  # it was suspended
                return (Segment(start=start, end=end, allocation=running.segments[-1].allocation),)
            *past, last = (segment for segment in running.segments if segment.start < end)
            return (*past, replace(last, end=end))
        if job in self.courses:
            of_run = (segment for segment in self.courses[job] if start <= segment.start < end)
            return tuple(replace(segment, end=min(segment.end, end)) for segment in of_run)
        sizes = self._sizes_of(job, start, end)
        if sizes:
            allocation_of = self.load.columns.allocation_of
            return tuple(
                Segment(start=time, end=until, allocation=allocation_of(one.request, held))
                for time, until, one, held in sizes
            )
        of_job, job_modes = self.load.job_by(job, choice), self.load.job_modes.get(job)
        changes = [change for change in self.changes_of(job) if start <= change[0] < end]
        if job_modes is None or not changes:
            allocation = self.load.columns.allocation_of(of_job.request, entries)
            return (Segment(start=start, end=end, allocation=allocation),)
        times = {time: self.state.modes[first : first + len(entries)] for time, first in changes}
        before: tuple[Segment, ...] = ()
        if running is not None and start == running.start:
            before = running.segments
        else:
            times = {start: np.zeros(len(entries), dtype=np.int8), **times}
        is_unstated = any(held.chunk is None for segment in before for held in segment.allocation)
        if is_unstated and is_stated:
            before = tuple(replace(one, allocation=counted(of_job.request, one.allocation) or ()) for one in before)
        now, ends = self.load.now, [*list(times)[1:], end]
        found = [replace(segment, end=min(segment.end, now)) for segment in before if segment.start < now]
        for (begin, chosen), until in zip(times.items(), ends, strict=True):
            allocation = job_modes.allocation(entries, chosen)
            if is_unstated and not is_stated:
                allocation = tuple(replace(held, chunk=None, count=None) for held in allocation)
            if found and set(found[-1].allocation) == set(allocation):
                found[-1] = replace(found[-1], end=until)
            else:
                found.append(Segment(start=begin, end=until, allocation=allocation))
        return tuple(found)

    def changes_of(self, job: int) -> list[tuple[int, int]]:
        """Return when a job has changed, and where its modes from then on begin."""
        count = int(self.state.clock[C.CHANGES])
        for row in range(self._indexed, count):
            changed, time, first = self.state.changes[row].tolist()
            self._changes.setdefault(changed, []).append((time, first))
        self._indexed = count
        return self._changes.get(job, [])

    def _num_nodes(self) -> NDArray[np.int64]:
        """Return the number of nodes of each job; chunks of several kinds may share one."""
        s, load = self.state, self.load
        count = s.runs[:, R.COUNT].copy()
        for index, job in enumerate(load.jobs):
            if job.running is not None and count[index] == 0 and s.fixed[index, 1]:
                count[index] = len({held.node for held in job.running.segments[0].allocation})
        several = load.chunks
        for index in load.choices:
            several[index] = len(load.job_by(index, int(s.choice[index])).request.chunks)
        for index in np.flatnonzero((s.runs[:, R.COUNT] > 0) & (several > 1)).tolist():
            first, entries = s.runs[index, R.FIRST], s.runs[index, R.COUNT]
            count[index] = len(np.unique(s.pool[first : first + entries, 0]))
        return count


def _is_course(job: Job, segments: Sequence[Segment]) -> bool:
    """Return whether segments are the steps of an evolving job: all of them, without gaps, each at least as long as its
    walltime and at most as long as the step may be held.
    """
    if len(segments) != len(job.steps) or any(one.end != after.start for one, after in pairwise(segments)):
        return False
    return all(
        step.walltime <= segment.end - segment.start
        and (most is None or segment.end - segment.start <= max(most, step.walltime))
        for segment, step, most in zip(segments, job.steps, job.longest_steps, strict=True)
    )
