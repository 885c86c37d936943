"""From the jobs of a log to an instance: a window in which all of them wait, or a workload that is still to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from cpsched.domain import Amounts, Chunk, FrozenMap, Instance, Job, Queue, Request, Step
from cpsched.errors import Fault
from cpsched.formats.notations import MAX_AMOUNT
from cpsched.formats.request_text import MAX_COUNT
from cpsched.formats.swf.calendar import BadCalendar, date_of
from cpsched.formats.swf.log import SwfJob, SwfLog
from cpsched.formats.swf.selection import Selection
from cpsched.formats.trusted import trusted

__all__ = ["MAX_DURATION", "MAX_TIME", "WALLTIME_CLASSES", "MemoryField", "SwfAnomaly", "SwfWindow", "swf_to_instance"]

#: The bounds of the instance document: times and durations.
MAX_TIME, MAX_DURATION = 10**12, 10**10

#: Statuses of lines about one part of a job that was swapped or checkpointed; the whole job has a line of its own.
_PARTIAL = frozenset({2, 3, 4})

#: Classes of walltime for jobs without a declared queue: name, longest walltime (s), expected wait (s).
WALLTIME_CLASSES = (("short", 3600, 1800), ("medium", 21600, 21600), ("long", MAX_DURATION, 86400))

#: The fields that a message may speak of, by their number in the format.
_FIELDS = {1: "number", 2: "submit time", 4: "run time", 5: "processors", 8: "requested processors"}
_FIELDS |= {9: "requested time", 10: "requested memory", 11: "status"}


class MemoryField(StrEnum):
    """The meanings of field 10 of a log, the requested memory."""

    #: As the format says.
    KB_PER_PROCESSOR = "kb-per-processor"
    #: As in the logs of MetaCentrum.
    BYTES_PER_JOB = "bytes-per-job"


class SwfAnomaly(StrEnum):
    """The anomalies of jobs of a log, in words."""

    PART = "left out: a part of a job"
    TWICE = "left out: its number occurs twice"
    NO_SIZE = "left out: no size"
    NO_WALLTIME = "left out: no walltime"
    NO_RUNTIME = "left out: no run time"
    BEYOND = "left out: beyond the bounds of a document"
    WALLTIME_IS_RUNTIME = "requested time unknown: the run time is its walltime"
    SIZE_IS_WHAT_IT_GOT = "requested processors unknown: what it got is its size"
    RUNTIME_UNKNOWN = "run time unknown: runtime is left out"
    RUNTIME_IS_ZERO = "run time 0: its runtime is 1 s"
    OUT_OF_ORDER = "submitted before the job above: sorted in"
    NO_CALENDAR = "when the log began is not understood: the instance has no epoch"
    TOO_LARGE = "larger than the machine: it can never run"


@dataclass(frozen=True, slots=True)
class SwfWindow:
    """A part of a log as an instance.

    Attributes
    ----------
    instance : Instance
        The jobs that were taken, in the order of their submit times.
    left_out : tuple of Fault
        Jobs that could not be taken, and why; the path is ``line N``.
    adjusted : tuple of Fault
        Jobs that were taken, but with something else in place of what the log says or does not say; or the header.
    oversized : tuple of Fault
        Jobs that were taken, though the machine can never run them.
    counts : FrozenMap
        How often each anomaly was found in what the selection lets through.
    kept_out : FrozenMap
        How many jobs each filter of the selection kept out, by its name.
    """

    instance: Instance
    left_out: tuple[Fault, ...]
    adjusted: tuple[Fault, ...]
    oversized: tuple[Fault, ...]
    counts: FrozenMap[SwfAnomaly, int]
    kept_out: FrozenMap[str, int]


class _NotTaken(Exception):  # noqa: N818 - control flow, never seen outside
    """A job cannot be taken: what is odd, and why in words."""

    def __init__(self, anomaly: SwfAnomaly, message: str) -> None:
        self.anomaly = anomaly
        super().__init__(message)


def swf_to_instance(
    log: SwfLog,
    machine: Instance,
    *,
    selection: Selection = Selection(),  # noqa: B008 - frozen
    arriving: bool = False,
    now: int | None = None,
    cores_per_chunk: int | None = None,
    memory_field: MemoryField = MemoryField.KB_PER_PROCESSOR,
) -> SwfWindow:
    """Make an instance of the jobs of a log, on the nodes and in the queues of `machine`.

    Second 0 of the instance is the first submit time of the selection; when that was, its `epoch`, says the machine, or
    else the log's header (`date_of`). A job of P processors becomes P chunks
    of one core, placed freely. Its walltime is the requested time, or the run time where nothing was requested. Its
    queue is ``q`` and the log's queue number where `machine` declares that, else a class of walltime: ``short`` (up
    to 1 h), ``medium`` (up to 6 h) or ``long``, with an expected wait of 1800, 21600 or 86400 s. Memory counts where
    the nodes have ``mem``. Jobs that are alike share their requests, so that a whole log needs little memory.

    Parameters
    ----------
    log
        From `read_swf`.
    machine
        From `read_machine` or `machine_of_log`: an instance without jobs; all but `now` is kept.
    selection
        The jobs to take; by default all.
    arriving
        Whether this is a workload to simulate: `now` is the first submit time, and a job without run time is left out,
        since its duration is unknown. Else it is a window to plan: all its jobs wait.
    now
        On the log's clock; default: the last submit time of the window, or the first one of a workload.
    cores_per_chunk
        Ask for chunks of this many cores (whole nodes), as many as hold the job's processors, instead of single cores.
    memory_field
        The meaning of field 10 in this log.

    Raises
    ------
    ValueError
        If `cores_per_chunk` makes no sense, or `machine` has jobs.
    """
    if cores_per_chunk is not None and cores_per_chunk < 1:
        raise ValueError(f"need cores_per_chunk >= 1, got {cores_per_chunk}")
    if machine.jobs:
        raise ValueError(f"the machine {machine.name!r} already has jobs")
    chosen, kept_out = selection.of(log.jobs)
    converter = _Converter(machine, cores_per_chunk or 1, memory_field, arriving)
    converter.convert(chosen)
    converter.date(log)
    origin = converter.origin
    first, last = (converter.jobs[0].submit, converter.jobs[-1].submit) if converter.jobs else (0, 0)
    moment = (first if arriving else last) if now is None else now - origin
    instance = replace(
        machine,
        epoch=converter.epoch,
        now=moment,
        queues=FrozenMap(converter.queues),
        jobs=tuple(converter.jobs),
    )
    return SwfWindow(
        instance=trusted(instance),
        left_out=tuple(converter.left_out),
        adjusted=tuple(converter.adjusted),
        oversized=tuple(converter.oversized),
        counts=FrozenMap(converter.counts),
        kept_out=FrozenMap(kept_out),
    )


class _Work(NamedTuple):
    """The request of a job, and its fault if the machine can never serve it."""

    steps: tuple[Step, ...]
    size_fault: str | None


class _Converter:
    """Mutable: turns jobs of a log into jobs of an instance, and notes what it had to leave out or to change."""

    def __init__(self, machine: Instance, cores: int, memory_field: MemoryField, arriving: bool) -> None:
        self._cores = cores
        self._memory_field = memory_field
        self._arriving = arriving
        self._has_memory = "mem" in machine.cluster.totals
        self._most_cores = machine.cluster.totals.get("cores", 0)
        self._most_memory = max(node_class.resources.get("mem", 0) for node_class in machine.cluster.classes)
        #: Equal steps and names, each once.
        self._works: dict[tuple[int, int, int], _Work] = {}
        self._requests: dict[tuple[int, int], Request] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._declared = frozenset(machine.queues)
        self.queues = dict(machine.queues)
        self.epoch = machine.epoch
        self.origin = 0
        self.jobs: list[Job] = []
        self.left_out: list[Fault] = []
        self.adjusted: list[Fault] = []
        self.oversized: list[Fault] = []
        self.counts: Counter[SwfAnomaly] = Counter()

    def convert(self, chosen: Sequence[SwfJob]) -> None:
        """Convert the jobs, and sort them by their submit times."""
        self.origin = min((job.submit for job in chosen), default=0)
        numbers: set[int] = set()
        latest = self.origin
        for swf_job in chosen:
            try:
                if swf_job.number in numbers:
                    raise _NotTaken(SwfAnomaly.TWICE, _field(1, swf_job.number, "occurs twice; the first one is taken"))
                job = self._convert(swf_job)
            except _NotTaken as reason:
                self._note(self.left_out, swf_job, reason.anomaly, str(reason))
                continue
            numbers.add(swf_job.number)
            self.jobs.append(job)
            if swf_job.submit < latest:
                message = _field(2, swf_job.submit, f"is before {latest}, that of a job above: sorted in")
                self._note(self.adjusted, swf_job, SwfAnomaly.OUT_OF_ORDER, message)
            latest = max(latest, swf_job.submit)
        self.jobs.sort(key=lambda job: job.submit)

    def date(self, log: SwfLog) -> None:
        """Find out when second 0 is, if the machine does not say so."""
        if self.epoch is not None:
            return
        try:
            self.epoch = date_of(log, self.origin)
        except BadCalendar as reason:
            self.counts[SwfAnomaly.NO_CALENDAR] += 1
            self.adjusted.append(reason.fault)

    def _note(self, faults: list[Fault], swf_job: SwfJob, anomaly: SwfAnomaly, message: str) -> None:
        self.counts[anomaly] += 1
        faults.append(Fault(f"line {swf_job.line}", f"job {swf_job.number}: {message}"))

    def _convert(self, swf_job: SwfJob) -> Job:
        if swf_job.status in _PARTIAL:
            why = "is that of a part of a job that was swapped or checkpointed, not of a job"
            raise _NotTaken(SwfAnomaly.PART, _field(11, swf_job.status, why))
        submit = swf_job.submit - self.origin
        if submit > MAX_TIME:
            raise _NotTaken(SwfAnomaly.BEYOND, _field(2, swf_job.submit, "is more than 10^12 s after the first one"))
        # the notes of a job count only if the job is taken
        notes: list[tuple[SwfAnomaly, str]] = []
        walltime = self._walltime(swf_job, notes)
        runtime = self._runtime(swf_job, notes)
        work = self._work(swf_job, walltime, notes)
        for anomaly, message in notes:
            self._note(self.adjusted, swf_job, anomaly, message)
        if work.size_fault is not None:
            self._note(self.oversized, swf_job, SwfAnomaly.TOO_LARGE, work.size_fault)
        return Job(
            id=str(swf_job.number),
            user=self._name("u", swf_job.user),
            group=self._name("g", swf_job.group),
            queue=self._queue(swf_job.queue, walltime),
            submit=submit,
            steps=work.steps,
            runtime=runtime,
        )

    def _walltime(self, swf_job: SwfJob, notes: list[tuple[SwfAnomaly, str]]) -> int:
        requested, ran = swf_job.requested_time, swf_job.run_time
        if requested is not None and 0 < requested <= MAX_DURATION:
            return requested
        if ran is not None and 0 < ran <= MAX_DURATION:
            message = _field(9, requested, f"is no walltime: the run time {ran} is")
            notes.append((SwfAnomaly.WALLTIME_IS_RUNTIME, message))
            return ran
        raise _NotTaken(SwfAnomaly.NO_WALLTIME, f"{_field(9, requested)} and {_field(4, ran)} are no walltime")

    def _runtime(self, swf_job: SwfJob, notes: list[tuple[SwfAnomaly, str]]) -> int | None:
        ran = swf_job.run_time
        if ran is not None and 0 < ran <= MAX_DURATION:
            return ran
        if ran == 0:
            notes.append((SwfAnomaly.RUNTIME_IS_ZERO, _field(4, ran, "is less than a second: its runtime is 1")))
            return 1
        if self._arriving:
            raise _NotTaken(SwfAnomaly.NO_RUNTIME, _field(4, ran, "does not say how long to simulate it"))
        notes.append((SwfAnomaly.RUNTIME_UNKNOWN, _field(4, ran, "is no runtime: it is left out")))
        return None

    def _work(self, swf_job: SwfJob, walltime: int, notes: list[tuple[SwfAnomaly, str]]) -> _Work:
        """Return the request of the job, the same object for equal requests."""
        processors = swf_job.requested_processors
        if processors is None or processors < 1:
            got = swf_job.processors
            if got is None or got < 1:
                raise _NotTaken(SwfAnomaly.NO_SIZE, f"{_field(8, processors)} and {_field(5, got)} are no size")
            notes.append(
                (SwfAnomaly.SIZE_IS_WHAT_IT_GOT, _field(8, processors, f"is no size: the {got} that it got are"))
            )
            processors = got
        requested = swf_job.requested_memory
        memory = requested if self._has_memory and requested is not None and requested > 0 else 0
        work = self._works.get((walltime, processors, memory))
        if work is None:
            request = self._requests.get((processors, memory))
            if request is None:
                request = self._requests[processors, memory] = self._request(processors, memory)
            work = _Work((Step(walltime=walltime, request=request),), self._size_fault(request))
            self._works[walltime, processors, memory] = work
        return work

    def _request(self, processors: int, memory: int) -> Request:
        count = -(-processors // self._cores)
        if count > MAX_COUNT:
            raise _NotTaken(
                SwfAnomaly.BEYOND, _field(8, processors, f"is {count} chunks, of which there are at most 10^6")
            )
        resources = {"cores": self._cores}
        if memory:
            per_job = self._memory_field is MemoryField.BYTES_PER_JOB
            parts = processors * 2**20 if per_job else 2**10
            resources["mem"] = -(-memory * self._cores // parts)
            if resources["mem"] > MAX_AMOUNT:
                why = f"is {resources['mem']} MiB for a chunk, of which there are at most {MAX_AMOUNT}"
                raise _NotTaken(SwfAnomaly.BEYOND, _field(10, memory, why))
        return Request(chunks=(Chunk(count=count, resources=Amounts(resources)),))

    def _size_fault(self, request: Request) -> str | None:
        """Report a request larger than the machine; the planner or simulator will refuse the job, too."""
        (chunk,) = request.chunks
        cores, memory = chunk.count * chunk.resources["cores"], chunk.resources.get("mem", 0)
        if cores > self._most_cores:
            return f"asks for {cores} cores, the machine has {self._most_cores}"
        if memory > self._most_memory:
            return f"asks for {memory} MiB for a chunk, no node has more than {self._most_memory}"
        return None

    def _name(self, letter: str, number: int | None) -> str | None:
        """Return a user or group as text, the same object each time."""
        if number is None:
            return None
        name = self._names.get((letter, number))
        if name is None:
            name = self._names[letter, number] = f"{letter}{number}"
        return name

    def _queue(self, number: int | None, walltime: int) -> str:
        declared = self._name("q", number)
        if declared in self._declared:
            return str(declared)
        name, _, expected_wait = next(entry for entry in WALLTIME_CLASSES if walltime <= entry[1])
        self.queues.setdefault(name, Queue(expected_wait=expected_wait))
        return name


def _field(number: int, value: int | None, what: str = "") -> str:
    """Speak of a field: its number, its name and its value."""
    said = f"field {number} ({_FIELDS[number]}), {'unknown' if value is None else value}"
    return f"{said}, {what}" if what else said
