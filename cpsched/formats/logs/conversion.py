"""From the jobs of a log to an instance: a window in which all of them wait, or a workload that is still to come."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from cpsched.domain import (
    MAX_DURATION,
    Amounts,
    Arrangement,
    Chunk,
    Dependency,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Queue,
    Request,
    Resizable,
    Step,
)
from cpsched.errors import Fault
from cpsched.formats.faults import shown
from cpsched.formats.instance_reader import trusted
from cpsched.formats.logs.feedback import with_feedback
from cpsched.formats.logs.jobs import JobLog, LogAnomaly, LogJob, LogKind, Note, NotTaken
from cpsched.formats.logs.selection import Logged, Selection
from cpsched.formats.logs.swf_jobs import MemoryField, SwfTranslator
from cpsched.formats.notations import is_name
from cpsched.formats.swf import LAST_DATE, BadCalendar, SwfLog, date_of

_Line = TypeVar("_Line", bound=Logged)

#: The bounds of the instance document: times and durations.
_MAX_TIME, _MAX_DURATION = 10**12, MAX_DURATION
#: Classes of walltime for jobs without a declared queue: name, longest walltime (s), expected wait (s).
_WALLTIME_CLASSES = (("short", 3600, 1800), ("medium", 21600, 21600), ("long", _MAX_DURATION, 86400))
#: The property of a node that says in which partition it is.
_PARTITION = "partition"
_FIRST_DATE = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options for reading a log as a workload."""

    #: A cluster file; None: the machine that the log describes.
    cluster: Path | None = None
    #: The jobs to take; queues and partitions have numbers in the Standard Workload Format, names in other logs.
    selection: Selection = field(default_factory=Selection)
    #: Cores of a chunk (whole nodes), of which a job has as many as hold its processors; None: 1. Like all below, for
    #: logs in Standard Workload Format only.
    cores_per_chunk: int | None = None
    #: The meaning of field 10.
    memory_field: MemoryField = MemoryField.KB_PER_PROCESSOR
    #: Whether jobs wait for their preceding jobs, and then for their think times (fields 17 and 18). The submit times
    #: of a log have these in them already, as they were then.
    dependencies: bool = False
    #: Whether jobs follow the ends of others (`with_feedback`), in all logs that say when jobs started.
    feedback: bool = False

    def __post_init__(self) -> None:
        if self.cores_per_chunk is not None and self.cores_per_chunk < 1:
            raise ValueError(f"need cores_per_chunk >= 1, got {self.cores_per_chunk}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LogWindow:
    """A part of a log as an instance."""

    #: The jobs that were taken, in the order of their submit times.
    instance: Instance
    #: Jobs that could not be taken, and why; the path is ``line N``.
    left_out: tuple[Fault, ...]
    #: Jobs that were taken, but with something else in place of what the log says or does not say; or the header.
    adjusted: tuple[Fault, ...]
    #: Jobs that were taken, though the machine can never run them.
    oversized: tuple[Fault, ...]
    #: How often each anomaly was found in what the selection lets through, and in what the log does not say enough of.
    counts: FrozenMap[LogAnomaly, int]
    #: How many jobs each filter of the selection kept out, by its name.
    kept_out: FrozenMap[str, int]
    #: The second of the instance's clock at which each job really started, by its id, where the log says so.
    starts: FrozenMap[str, int]
    #: The lines that are not jobs.
    faults: tuple[Fault, ...]
    #: Assumptions about the machine.
    assumed: tuple[str, ...] = ()

    @property
    def filtered(self) -> tuple[tuple[str, int], ...]:
        """The number of jobs that each filter left out, in words: ``left out by --first and --jobs``."""
        counts = self.kept_out.items()
        return tuple((f"left out by --{name.replace(' and ', ' and --')}", count) for name, count in counts if count)

    def __repr__(self) -> str:
        return f"<LogWindow: {self.instance!r}, {len(self.left_out)} jobs left out, {len(self.adjusted)} adjusted>"


def log_to_instance(
    log: SwfLog | JobLog,
    machine: Instance,
    options: LogOptions = LogOptions(),
    *,
    arriving: bool = False,
    now: int | None = None,
) -> LogWindow:
    """Make an instance of the jobs of a log, on the nodes and in the queues of `machine`.

    Second 0 of the instance is the first submit time of the selection; its `epoch` is what the machine says, or else
    what the log says. A job's walltime is what it requested, or its run time where it requested nothing. Its queue is
    its own where `machine` declares that, or its partition, else a class of walltime: ``short`` (up to 1 h), ``medium``
    (up to 6 h) or ``long``, with an expected wait of 1800, 21600 or 86400 s. It waits for those above it in the log
    that it depends on, and until it was eligible. Memory counts where the nodes have ``mem``, and a partition where
    they have a property of that name. Jobs that are alike share their requests, so that a whole log needs little
    memory.

    Raises `ValueError` if `machine` has jobs.

    `log`: from `read_swf` or `read_log`.
    `machine`: from `read_machine`, `machine_of_log` or `machine_of_jobs`: an instance without jobs; all but `now` is
      kept.
    `options`: the jobs to take, by default all, and the meaning of fields.
    `arriving`: whether this is a workload to simulate: `now` is the first submit time, and a job without run time is
      left out, since its duration is unknown. Else it is a window to plan: all its jobs wait.
    `now`: on the log's clock; default: the last submit time of the window, or the first one of a workload.
    """
    if machine.jobs:
        raise ValueError(f"the machine {machine.name!r} already has jobs")
    converter = _Converter(machine, arriving)
    if isinstance(log, SwfLog):
        translator = SwfTranslator(
            cores_per_chunk=options.cores_per_chunk or 1,
            memory_field=options.memory_field,
            has_memory="mem" in machine.cluster.totals,
            dependencies=options.dependencies,
        )
        lines, kept_out = options.selection.of(log.jobs)
        converter.convert(lines, translator.job_of, is_by_submit=True)
    else:
        jobs, kept_out = options.selection.of(log.jobs)
        # Accounting is in the order of the ends of jobs.
        converter.convert(jobs, lambda job: job, is_by_submit=log.kind is not LogKind.TORQUE)
        converter.leave_out(log.left_out)
    epoch = machine.epoch or converter.epoch_of(log)
    first, last = (converter.jobs[0].submit, converter.jobs[-1].submit) if converter.jobs else (0, 0)
    instance = replace(
        machine,
        epoch=epoch,
        now=(first if arriving else last) if now is None else now - converter.origin,
        queues=FrozenMap(converter.queues),
        jobs=tuple(with_feedback(converter.jobs, converter.ends()) if options.feedback else converter.jobs),
    )
    return LogWindow(
        instance=trusted(instance),
        left_out=tuple(converter.left_out),
        adjusted=tuple(converter.adjusted),
        oversized=tuple(converter.oversized),
        counts=FrozenMap(converter.counts),
        kept_out=FrozenMap(kept_out),
        starts=FrozenMap(converter.starts),
        faults=log.faults,
    )


class _Converter:
    """Mutable: turns jobs of a log into jobs of an instance, and notes what it had to leave out or to change."""

    def __init__(self, machine: Instance, arriving: bool) -> None:
        self._arriving = arriving
        self._demands = _Demands(machine)
        self._declared = frozenset(machine.queues)
        self.queues = dict(machine.queues)
        self.origin = 0
        self.jobs: list[Job] = []
        self.starts: dict[str, int] = {}
        #: The jobs that the machine can never run.
        self._never: set[str] = set()
        self.left_out: list[Fault] = []
        self.adjusted: list[Fault] = []
        self.oversized: list[Fault] = []
        self.counts: Counter[LogAnomaly] = Counter()

    def convert(self, chosen: Sequence[_Line], job_of: Callable[[_Line], LogJob], *, is_by_submit: bool) -> None:
        """Convert the jobs, and sort them by their submit times.

        `chosen`: the jobs in the order of the log. `job_of`: makes a `LogJob` of one, or raises `NotTaken`.
        `is_by_submit`: whether the log should be in the order of submit times.
        """
        self.origin = min((line.submit for line in chosen), default=0)
        ids: set[str] = set()
        latest = self.origin
        for line in chosen:
            try:
                log_job = job_of(line)
                if log_job.id in ids:
                    raise NotTaken(LogAnomaly.TWICE, "occurs twice; the first one is taken")
                job = self._convert(log_job, ids)
            except NotTaken as reason:
                self._note(self.left_out, line, reason.anomaly, str(reason))
                continue
            ids.add(job.id)
            self.jobs.append(job)
            if log_job.start is not None and log_job.start >= log_job.submit:
                self.starts[job.id] = log_job.start - self.origin
            if is_by_submit and line.submit < latest:
                message = f"is submitted at {line.submit}, before {latest}, as a job above is: sorted in"
                self._note(self.adjusted, line, LogAnomaly.OUT_OF_ORDER, message)
            latest = max(latest, line.submit)
        self.jobs.sort(key=lambda job: job.submit)

    def ends(self) -> dict[str, int]:
        """Return when jobs ended in the log, as far as it says so, without those that the machine can never run."""
        known = (job for job in self.jobs if job.id in self.starts and job.id not in self._never)
        return {job.id: self.starts[job.id] + job.runtime for job in known if job.runtime is not None}

    def leave_out(self, named: Iterable[tuple[LogAnomaly, Fault]]) -> None:
        """Note the jobs about which the log has too little information, before the others that were left out."""
        for place, (anomaly, fault) in enumerate(named):
            self.counts[anomaly] += 1
            self.left_out.insert(place, fault)

    def epoch_of(self, log: SwfLog | JobLog) -> datetime | None:
        """Return the date of second 0 if the log has one; note a date that cannot be understood."""
        if isinstance(log, JobLog):
            is_dated = log.has_unix_times and 0 < self.origin < LAST_DATE
            return _FIRST_DATE + timedelta(seconds=self.origin) if is_dated else None
        try:
            return date_of(log, self.origin)
        except BadCalendar as reason:
            self.counts[LogAnomaly.NO_CALENDAR] += 1
            self.adjusted.append(reason.fault)
            return None

    def _note(self, faults: list[Fault], job: Logged, anomaly: LogAnomaly, message: str) -> None:
        self.counts[anomaly] += 1
        faults.append(Fault(f"line {job.line}", f"job {shown(job.id)[1:-1]}: {message}"))

    def _convert(self, log_job: LogJob, known: set[str]) -> Job:
        submit = log_job.submit - self.origin
        eligible = None if log_job.eligible is None else log_job.eligible - self.origin
        if max(submit, eligible or 0) > _MAX_TIME:
            raise NotTaken(LogAnomaly.BEYOND, "arrives more than 10^12 s after the first one")
        for what in ("id", "user", "group", "project", "queue"):
            name = getattr(log_job, what)
            if name is not None and not is_name(name):
                raise NotTaken(LogAnomaly.BEYOND, f"has the {what} {shown(name)}, which no document may have")
        # the notes of a job count only if the job is taken
        notes: list[Note] = list(log_job.notes)
        walltime = self._walltime(log_job, notes)
        runtime = self._runtime(log_job, notes)
        after = _known_dependencies(log_job.after, known, notes) if log_job.after else ()
        if not after:
            notes = [note for note in notes if note[0] is not LogAnomaly.WAITS]
        demand, smaller = self._sizes(log_job, walltime)
        for anomaly, message in notes:
            self._note(self.adjusted, log_job, anomaly, message)
        if demand.size_fault is not None and not smaller:
            self._never.add(log_job.id)
            self._note(self.oversized, log_job, LogAnomaly.TOO_LARGE, demand.size_fault)
        return Job(
            id=log_job.id,
            user=log_job.user,
            group=log_job.group,
            project=log_job.project,
            queue=self._queue(log_job, walltime),
            submit=submit,
            steps=demand.steps_of(walltime),
            alternatives=smaller,
            resizable=Resizable() if smaller and log_job.is_resizable else None,
            not_before=eligible,
            after=after,
            runtime=runtime,
        )

    def _sizes(self, log_job: LogJob, walltime: int) -> tuple["_Demand", tuple[Step, ...]]:
        """Return the demand of a job, and its alternatives: those that could fit the machine."""
        smaller = list[Step]()
        for request, times in log_job.smaller:
            demand = self._demands.of(log_job._replace(request=request))
            if demand.size_fault is None:
                smaller += demand.steps_of(max(1, math.ceil(walltime * times)))
        return self._demands.of(log_job), tuple(smaller)

    def _walltime(self, log_job: LogJob, notes: list[Note]) -> int:
        requested, ran = log_job.walltime, log_job.runtime
        if requested is not None and 0 < requested <= _MAX_DURATION:
            return requested
        if ran is not None and 0 < ran <= _MAX_DURATION:
            notes.append((LogAnomaly.WALLTIME_IS_RUNTIME, f"requests no walltime: the run time {ran} is"))
            return ran
        raise NotTaken(LogAnomaly.NO_WALLTIME, "requests no walltime, and has no run time")

    def _runtime(self, log_job: LogJob, notes: list[Note]) -> int | None:
        ran = log_job.runtime
        if ran is not None and 0 < ran <= _MAX_DURATION:
            return ran
        if ran == 0:
            notes.append((LogAnomaly.RUNTIME_IS_ZERO, "runs for less than a second: its runtime is 1"))
            return 1
        if self._arriving:
            raise NotTaken(LogAnomaly.NO_RUNTIME, "nothing says how long to simulate it")
        notes.append((LogAnomaly.RUNTIME_UNKNOWN, "nothing says how long it runs: runtime is left out"))
        return None

    def _queue(self, log_job: LogJob, walltime: int) -> str:
        for name in (log_job.queue, log_job.partition):
            if name in self._declared:
                return str(name)
        name, _, expected_wait = next(entry for entry in _WALLTIME_CLASSES if walltime <= entry[1])
        self.queues.setdefault(name, Queue(expected_wait=expected_wait))
        return name


def _known_dependencies(after: Sequence[Dependency], known: set[str], notes: list[Note]) -> tuple[Dependency, ...]:
    """Return the dependencies on jobs above, so that they go in no circle."""
    for dependency in after:
        if dependency.job not in known:
            message = f"waits for {shown(dependency.job)}, which is no job above that was taken: done without"
            notes.append((LogAnomaly.NOT_SIMULATED, message))
    return tuple(dict.fromkeys(dependency for dependency in after if dependency.job in known))


@dataclass(slots=True, kw_only=True)
class _Demand:
    """Mutable: the demand of jobs with the same request on one machine."""

    #: The request in the log.
    asked: Request
    request: Request
    #: The reason if the machine can never serve it.
    size_fault: str | None
    #: Steps by their walltime.
    steps: dict[int, tuple[Step, ...]] = field(default_factory=dict)

    def steps_of(self, walltime: int) -> tuple[Step, ...]:
        """Return the steps of a job with this walltime, the same object each time."""
        if walltime not in self.steps:
            self.steps[walltime] = (Step(walltime=walltime, request=self.request),)
        return self.steps[walltime]


class _Demands:
    """Mutable: the demands on one machine, each once; readers of logs give equal requests as one object."""

    def __init__(self, machine: Instance) -> None:
        self._classes = machine.cluster.classes
        self._has_memory = "mem" in machine.cluster.totals
        self._has_partitions = any(_PARTITION in node_class.properties for node_class in self._classes)
        self._known: dict[tuple[int, str | None], _Demand] = {}

    def of(self, log_job: LogJob) -> _Demand:
        """Return the demand of a job on this machine."""
        asked = log_job.request
        partition = log_job.partition if self._has_partitions else None
        # The demand keeps the request, so that nothing else can get its id.
        demand = self._known.get((id(asked), partition))
        if demand is None:
            request = replace(asked, chunks=tuple(self._chunk(chunk, partition) for chunk in asked.chunks))
            demand = _Demand(asked=asked, request=request, size_fault=self._size_fault(request))
            self._known[id(asked), partition] = demand
        return demand

    def _chunk(self, chunk: Chunk, partition: str | None) -> Chunk:
        resources = {name: n for name, n in chunk.resources.items() if self._has_memory or name != "mem"}
        where = dict(chunk.where) | ({} if partition is None else {_PARTITION: partition})
        return replace(chunk, resources=Amounts(resources), where=FrozenMap(where))

    def _size_fault(self, request: Request) -> str | None:
        """Report a request larger than the machine; the planner or simulator will refuse the job, too."""
        scattered = request.place.arrangement is Arrangement.SCATTER
        for chunk in request.chunks:
            room = sum(
                len(nodes.names) * min(_fitting(nodes, chunk), 1 if scattered else chunk.count)
                for nodes in self._classes
            )
            if room < chunk.count:
                asked = ":".join(f"{name}={value}" for name, value in (*chunk.resources.items(), *chunk.where.items()))
                return f"asks for {chunk.count} chunks of {shown(asked)[1:-1]}, of which {room} have room"
        return None


def _fitting(nodes: NodeClass, chunk: Chunk) -> int:
    if any(nodes.properties.get(name) != value for name, value in chunk.where.items()):
        return 0
    return min(nodes.resources.get(name, 0) // amount for name, amount in chunk.resources.items())
