"""The state of a simulation: machine, queue, and what has become of the jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Amounts, Job, Placement, Running, Segment
from cpsched.metrics import Runs
from cpsched.rusv import FOREVER, Booking, Timeline
from cpsched.sim import kernels
from cpsched.sim.load import Load, empty_state
from cpsched.sim.scheduler import Start

__all__ = ["RAISES", "World"]

#: By how many seconds the estimate of a job is raised that runs longer than believed, one after the other (Tsafrir,
#: Etsion and Feitelson, TPDS 2007, section 4).
RAISES = tuple(60 * minutes for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000))


class World:
    """A workload while it is played; mutable.

    Parameters
    ----------
    load
        The workload.
    """

    def __init__(self, load: Load) -> None:
        self.load = load
        self.tables, self.scratch = load.kernel_views()
        self.state = empty_state(load, RAISES)
        free, sums = load.timeline.free_at(0)
        self.machine = kernels.Machine(
            *(array for _ in range(4) for array in (free.astype(np.int32), sums.astype(np.int64)))
        )
        self._begin()

    def _begin(self) -> None:
        """Book who runs at the beginning, and expect those who come later than they were submitted."""
        s = self.state
        waits = s.awaited > 0
        for index, job in enumerate(self.load.jobs):
            if job.running is not None:
                s.runs[index, kernels.R_START], s.runs[index, kernels.R_STARTS] = job.running.start, 1
                kernels.book_run(index, self.load.now, s, self.machine, self.tables, self.scratch)
                kernels.let_go_at_start(index, self.load.now, s)
            elif s.jobs[index, kernels.J_ARRIVAL] < 0 and not waits[index] and self.load.demand[index] >= 0:
                kernels.push(int(s.release[index]), kernels.RELEASED, index, s.heap, s.clock)

    def make_room(self) -> None:
        """Let the arrays grow that may be full."""

        def doubled(array: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([array, np.zeros_like(array)])

        s = self.state
        grown: dict[str, NDArray[Any]] = {}
        if s.clock[kernels.C_LACKS]:
            grown["pool"] = doubled(s.pool)
        else:
            grown["attempts"], grown["heap"] = doubled(s.attempts), doubled(s.heap)
        self.state = s._replace(**grown)

    @property
    def now(self) -> int:
        """The second up to which everything has happened."""
        return int(self.state.clock[kernels.C_NOW])

    @property
    def num_done(self) -> int:
        """How many jobs have ended."""
        return int(self.state.clock[kernels.C_DONE])

    @property
    def num_waiting(self) -> int:
        """How many jobs are in the queue."""
        return int(self.state.clock[kernels.C_QUEUED])

    # --- for schedulers that are not compiled ---------------------------------------------------------------------

    def next_event(self) -> int | None:
        """Return when the next thing happens, None if nothing will."""
        time = int(kernels.next_event(self.state))
        return None if time == FOREVER else time

    def step(self, now: int, rule: kernels.Rule) -> tuple[list[int], list[int]]:
        """Let everything happen that does so at `now`, up to the arrivals; return who has come, and who has gone."""
        s = self.state
        if s.clock[kernels.C_OUTAGE] < len(s.outages):
            while len(self.state.attempts) < s.clock[kernels.C_ATTEMPTS] + s.clock[kernels.C_RUNNING]:
                self.make_room()
            s = self.state
        s.clock[kernels.C_GONE] = 0
        count = kernels.step(now, rule, s, self.machine, self.tables, self.scratch)
        return s.arrived[:count].tolist(), s.gone[: s.clock[kernels.C_GONE]].tolist()

    def can_begin(self, start: Start) -> bool:
        """Tell whether a job waits, and all that it takes there is free now."""
        s = self.state
        if s.runs[start.job, kernels.R_START] >= 0 or s.runs[start.job, kernels.R_ENDING] != kernels.WAITING:
            return False
        return bool(kernels.fits_there(start.job, start.entries, s, self.machine, self.tables, self.scratch))

    def begin(self, starts: Sequence[Start]) -> None:
        """Let waiting jobs begin now; the caller vouches that there is room."""
        for start in starts:
            while len(self.state.pool) - self.state.clock[kernels.C_POOL] < len(start.entries):
                self.state.clock[kernels.C_LACKS] = 1
                self.make_room()
                self.state.clock[kernels.C_LACKS] = 0
            kernels.begin_there(start.job, start.entries, self.now, self.state, self.machine, self.tables, self.scratch)
        kernels.close_gaps(self.state)

    def booking(self, job: int, timeline: Timeline) -> Booking:
        """Return what a running job holds from its start to when it is believed to end."""
        s = self.state
        start, end, _, _, first, count = s.runs[job].tolist()
        if s.fixed[job, 1] == 0:
            return timeline.booking_of(int(s.demand[job]), s.pool[first : first + count], start, end)
        at, number = s.fixed[job].tolist()
        columns, amounts = s.fixed_columns[at : at + number], s.fixed_amounts[at : at + number]
        licenses = {column: amount for index, column, amount in self.load.fixed.licenses if index == job}
        taken = dict(zip(columns.tolist(), amounts.tolist(), strict=True))
        return timeline.booking(self.load.now, end, taken, licenses)

    def running_job(self, index: int, job: Job) -> Job:
        """Return a running job as a scheduling window has it."""
        start, end, _, _, first, count = self.state.runs[index].tolist()
        if job.running is not None and count == 0:
            *past, last = job.running.segments
            return replace(job, after=(), running=Running(start=start, segments=(*past, replace(last, end=end))))
        held: dict[str, dict[str, int]] = {}
        for placement in self.load.columns.allocation_of(job.request, self.state.pool[first : first + count]):
            here = held.setdefault(placement.node, {})
            for name, amount in placement.resources.items():
                here[name] = here.get(name, 0) + amount
        allocation = tuple(Placement(node=node, resources=Amounts(amounts)) for node, amounts in held.items())
        segment = Segment(start=start, end=end, allocation=allocation)
        return replace(job, after=(), not_before=None, running=Running(start=start, segments=(segment,)))

    # --- what has happened ----------------------------------------------------------------------------------------

    def runs(self) -> Runs:
        """Return what has become of the jobs so far, in document order."""
        load, s = self.load, self.state
        order = np.argsort(load.places, kind="stable")
        found, ended = s.runs[order], s.runs[order, kernels.R_ENDING] >= kernels.COMPLETED
        jobs = [load.jobs[index] for index in order.tolist()]
        return Runs(
            ids=tuple(job.id for job in jobs),
            users=tuple(job.user for job in jobs),
            groups=tuple(job.group for job in jobs),
            queues=tuple(job.queue for job in jobs),
            submit=load.submit[order],
            walltime=load.walltime[order],
            runtime=load.runtime[order],
            start=found[:, kernels.R_START],
            end=np.where(ended, found[:, kernels.R_END], -1),
            cores=load.cores[order].astype(np.int64),
            nodes=self._num_nodes()[order],
            expected_wait=np.array([load.instance.expected_wait(job) for job in jobs], dtype=np.int64),
            attempts=found[:, kernels.R_STARTS],
            ending=found[:, kernels.R_ENDING].astype(np.int8),
        )

    def placements(self) -> Iterator[tuple[int, int, int, NDArray[np.int32]]]:
        """Yield (job, start, end, entries) of all that has run to its end."""
        s = self.state
        for job in np.flatnonzero(s.runs[:, kernels.R_ENDING] >= kernels.COMPLETED).tolist():
            start, end, _, _, first, count = s.runs[job].tolist()
            yield job, start, end, s.pool[first : first + count]

    def attempts(self) -> Iterator[tuple[int, int, int, NDArray[np.int32]]]:
        """Yield (job, start, end, entries) of what outages cut short, in order of time."""
        s = self.state
        for job, start, end, first, count in s.attempts[: s.clock[kernels.C_ATTEMPTS]].tolist():
            yield job, start, end, s.pool[first : first + count]

    def _num_nodes(self) -> NDArray[np.int64]:
        """Return on how many nodes each job stands; chunks of several kinds may share one."""
        s = self.state
        count = s.runs[:, kernels.R_COUNT].copy()
        for index in range(len(count)):
            job = self.load.jobs[index]
            if job.running is not None and count[index] == 0 and s.fixed[index, 1]:
                count[index] = len({held.node for held in job.running.segments[0].allocation})
            elif count[index] and len(job.request.chunks) > 1:
                first = s.runs[index, kernels.R_FIRST]
                count[index] = len(np.unique(s.pool[first : first + count[index], 0]))
        return count
