"""From the jobs of a log to an instance: a window in which all of them wait, or a workload that is still to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cpsched.domain import (
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
    Step,
)
from cpsched.errors import Fault
from cpsched.formats.faults import shown
from cpsched.formats.logs.jobs import JobLog, LogAnomaly, LogJob, Note
from cpsched.formats.notations import is_name
from cpsched.formats.swf.conversion import MAX_DURATION, MAX_TIME, WALLTIME_CLASSES
from cpsched.formats.swf.selection import Selection
from cpsched.formats.trusted import trusted

__all__ = ["LogWindow", "log_to_instance"]

#: The property of a node that says in which partition it is.
_PARTITION = "partition"
_FIRST_DATE = datetime(1970, 1, 1, tzinfo=UTC)
#: Dates of a log lie before the year 2500 (s since 1970).
_LAST_DATE = 16_725_225_600


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWindow:
    """A part of a log as an instance.

    Attributes
    ----------
    instance : Instance
        The jobs that were taken, in the order of their submit times.
    left_out : tuple of Fault
        Jobs that could not be taken, and why; the path is ``line N``.
    adjusted : tuple of Fault
        Jobs that were taken, but with something else in place of what the log says or does not say.
    oversized : tuple of Fault
        Jobs that were taken, though the machine can never run them.
    counts : FrozenMap
        How often each anomaly was found in what the selection lets through, and in what the log does not say enough of.
    kept_out : FrozenMap
        How many jobs each filter of the selection kept out, by its name.
    """

    instance: Instance
    left_out: tuple[Fault, ...]
    adjusted: tuple[Fault, ...]
    oversized: tuple[Fault, ...]
    counts: FrozenMap[LogAnomaly, int]
    kept_out: FrozenMap[str, int]


class _NotTaken(Exception):  # noqa: N818 - control flow, never seen outside
    """A job cannot be taken: what is odd, and why in words."""

    def __init__(self, anomaly: LogAnomaly, message: str) -> None:
        self.anomaly = anomaly
        super().__init__(message)


def log_to_instance(
    log: JobLog,
    machine: Instance,
    *,
    selection: Selection = Selection(),  # noqa: B008 - frozen
    arriving: bool = False,
    now: int | None = None,
) -> LogWindow:
    """Make an instance of the jobs of a log, on the nodes and in the queues of `machine`.

    Second 0 of the instance is the first submit time of the selection. A job's queue is its own where `machine`
    declares that, or its partition, else a class of walltime as for logs in the Standard Workload Format. It waits for
    those above it in the log that it depends on, and until it was eligible. Memory counts where the nodes have ``mem``,
    and a partition where they have a property of that name.

    Parameters
    ----------
    log
        From `read_log`.
    machine
        From `read_machine` or `machine_of_jobs`: an instance without jobs; all but `now` is kept.
    selection
        The jobs to take; by default all. Queues and partitions have names.
    arriving
        Whether this is a workload to simulate: `now` is the first submit time, and a job without run time is left out,
        since its duration is unknown. Else it is a window to plan: all its jobs wait.
    now
        On the log's clock; default: the last submit time of the window, or the first one of a workload.

    Raises
    ------
    ValueError
        If `machine` has jobs.
    """
    if machine.jobs:
        raise ValueError(f"the machine {machine.name!r} already has jobs")
    chosen, kept_out = selection.of(log.jobs)
    converter = _Converter(machine, arriving)
    converter.convert(chosen)
    origin = converter.origin
    for anomaly, _ in log.left_out:
        converter.counts[anomaly] += 1
    first, last = (converter.jobs[0].submit, converter.jobs[-1].submit) if converter.jobs else (0, 0)
    instance = replace(
        machine,
        epoch=machine.epoch or _epoch(log, origin),
        now=(first if arriving else last) if now is None else now - origin,
        queues=FrozenMap(converter.queues),
        jobs=tuple(converter.jobs),
    )
    return LogWindow(
        instance=trusted(instance),
        left_out=(*(fault for _, fault in log.left_out), *converter.left_out),
        adjusted=tuple(converter.adjusted),
        oversized=tuple(converter.oversized),
        counts=FrozenMap(converter.counts),
        kept_out=FrozenMap(kept_out),
    )


def _epoch(log: JobLog, origin: int) -> datetime | None:
    """Return the date of second 0, in UTC."""
    return _FIRST_DATE + timedelta(seconds=origin) if log.has_unix_times and 0 < origin < _LAST_DATE else None


class _Converter:
    """Mutable: turns jobs of a log into jobs of an instance, and notes what it had to leave out or to change."""

    def __init__(self, machine: Instance, arriving: bool) -> None:
        self._arriving = arriving
        self._demands = _Demands(machine)
        #: Equal steps, each once.
        self._steps: dict[tuple[int, Request], tuple[Step, ...]] = {}
        self._declared = frozenset(machine.queues)
        self.queues = dict(machine.queues)
        self.origin = 0
        self.jobs: list[Job] = []
        self.left_out: list[Fault] = []
        self.adjusted: list[Fault] = []
        self.oversized: list[Fault] = []
        self.counts: Counter[LogAnomaly] = Counter()

    def convert(self, chosen: Sequence[LogJob]) -> None:
        """Convert the jobs, and sort them by their submit times."""
        self.origin = min((job.submit for job in chosen), default=0)
        ids: set[str] = set()
        latest = self.origin
        # a log of ends is in the order of those
        is_by_submit = all(job.start is None for job in chosen)
        for log_job in chosen:
            try:
                if log_job.id in ids:
                    raise _NotTaken(LogAnomaly.TWICE, "occurs twice; the first one is taken")
                job = self._convert(log_job, ids)
            except _NotTaken as reason:
                self._note(self.left_out, log_job, reason.anomaly, str(reason))
                continue
            ids.add(log_job.id)
            self.jobs.append(job)
            if is_by_submit and log_job.submit < latest:
                message = f"is submitted at {log_job.submit}, before {latest}, as a job above is: sorted in"
                self._note(self.adjusted, log_job, LogAnomaly.OUT_OF_ORDER, message)
            latest = max(latest, log_job.submit)
        self.jobs.sort(key=lambda job: job.submit)

    def _note(self, faults: list[Fault], log_job: LogJob, anomaly: LogAnomaly, message: str) -> None:
        self.counts[anomaly] += 1
        faults.append(Fault(f"line {log_job.line}", f"job {shown(log_job.id)[1:-1]}: {message}"))

    def _convert(self, log_job: LogJob, known: set[str]) -> Job:
        submit = log_job.submit - self.origin
        eligible = None if log_job.eligible is None else log_job.eligible - self.origin
        if max(submit, eligible or 0) > MAX_TIME:
            raise _NotTaken(LogAnomaly.BEYOND, "arrives more than 10^12 s after the first one")
        for what in ("id", "user", "group", "project", "queue"):
            name = getattr(log_job, what)
            if name is not None and not is_name(name):
                raise _NotTaken(LogAnomaly.BEYOND, f"has the {what} {shown(name)}, which no document may have")
        # the notes of a job count only if the job is taken
        notes: list[Note] = list(log_job.notes)
        walltime = self._walltime(log_job, notes)
        runtime = self._runtime(log_job, notes)
        after = _known_dependencies(log_job.after, known, notes)
        request, size_fault = self._demands.of(log_job)
        for anomaly, message in notes:
            self._note(self.adjusted, log_job, anomaly, message)
        if size_fault is not None:
            self._note(self.oversized, log_job, LogAnomaly.TOO_LARGE, size_fault)
        steps = self._steps.setdefault((walltime, request), (Step(walltime=walltime, request=request),))
        return Job(
            id=log_job.id,
            user=log_job.user,
            group=log_job.group,
            project=log_job.project,
            queue=self._queue(log_job, walltime),
            submit=submit,
            steps=steps,
            not_before=eligible,
            after=after,
            runtime=runtime,
        )

    def _walltime(self, log_job: LogJob, notes: list[Note]) -> int:
        requested, ran = log_job.walltime, log_job.runtime
        if requested is not None and 0 < requested <= MAX_DURATION:
            return requested
        if ran is not None and 0 < ran <= MAX_DURATION:
            notes.append((LogAnomaly.WALLTIME_IS_RUNTIME, f"requests no walltime: the run time {ran} is"))
            return ran
        raise _NotTaken(LogAnomaly.NO_WALLTIME, "requests no walltime, and has no run time")

    def _runtime(self, log_job: LogJob, notes: list[Note]) -> int | None:
        ran = log_job.runtime
        if ran is not None and 0 < ran <= MAX_DURATION:
            return ran
        if ran == 0:
            notes.append((LogAnomaly.RUNTIME_IS_ZERO, "runs for less than a second: its runtime is 1"))
            return 1
        if self._arriving:
            raise _NotTaken(LogAnomaly.NO_RUNTIME, "nothing says how long to simulate it")
        notes.append((LogAnomaly.RUNTIME_UNKNOWN, "nothing says how long it runs: runtime is left out"))
        return None

    def _queue(self, log_job: LogJob, walltime: int) -> str:
        for name in (log_job.queue, log_job.partition):
            if name in self._declared:
                return str(name)
        name, _, expected_wait = next(entry for entry in WALLTIME_CLASSES if walltime <= entry[1])
        self.queues.setdefault(name, Queue(expected_wait=expected_wait))
        return name


def _known_dependencies(after: Sequence[Dependency], known: set[str], notes: list[Note]) -> tuple[Dependency, ...]:
    """Return the dependencies on jobs above, so that they go in no circle."""
    for dependency in after:
        if dependency.job not in known:
            message = f"waits for {shown(dependency.job)}, which is no job above that was taken: done without"
            notes.append((LogAnomaly.NOT_SIMULATED, message))
    return tuple(dict.fromkeys(dependency for dependency in after if dependency.job in known))


class _Demands:
    """Mutable: the requests on one machine, each once, and what is wrong with one that the machine can never serve."""

    def __init__(self, machine: Instance) -> None:
        self._classes = machine.cluster.classes
        self._has_memory = "mem" in machine.cluster.totals
        self._has_partitions = any(_PARTITION in node_class.properties for node_class in self._classes)
        self._known: dict[tuple[Request, str | None], tuple[Request, str | None]] = {}

    def of(self, log_job: LogJob) -> tuple[Request, str | None]:
        """Return the request of a job on this machine, and the reason if it can never be served."""
        key = log_job.request, log_job.partition if self._has_partitions else None
        if key not in self._known:
            request = replace(log_job.request, chunks=tuple(self._chunk(chunk, key[1]) for chunk in key[0].chunks))
            self._known[key] = request, self._size_fault(request)
        return self._known[key]

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
    """Return how many of a chunk one node of a class holds."""
    if any(nodes.properties.get(name) != value for name, value in chunk.where.items()):
        return 0
    return min(nodes.resources.get(name, 0) // amount for name, amount in chunk.resources.items())
