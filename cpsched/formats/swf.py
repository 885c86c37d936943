"""The Standard Workload Format: logs of real machines, and windows made of them.

A log is read as it stands: every line becomes a job or a fault, none is dropped in silence. What a planner needs and a
log does not say (the nodes, the queues) comes from a cluster file. Begin with `read_swf`, `read_machine`,
and `swf_to_instance`, which joins the two.

Source of the format: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999, and the Parallel Workloads Archive.
"""

from __future__ import annotations

import dataclasses
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

from cpsched.domain import Amounts, Chunk, FrozenMap, Instance, Job, Queue, Request, Step
from cpsched.errors import DocumentError, Fault
from cpsched.formats.files import load_document
from cpsched.formats.instance_reader import parse_instance

__all__ = ["MemoryField", "SwfJob", "SwfLog", "SwfWindow", "read_machine", "read_swf", "swf_to_instance"]

#: A log of more bytes than this (unpacked) is refused; the largest public ones have about 100 MiB.
_MAX_LOG_BYTES = 2**31
#: So are such lines; the 21 columns of MetaCentrum list every node of a job and take some kilobytes.
_MAX_LINE_BYTES = 2**20
#: The bounds of the instance document: times, durations, amounts, chunk counts.
_MAX_TIME, _MAX_DURATION, _MAX_AMOUNT, _MAX_COUNT = 10**12, 10**10, 2**31 - 1, 10**6
#: What the logs hold numbers in: beyond this a field is a fault, whatever it means.
_MAX_NUMBER = 10**15

_NUM_FIELDS = 18
_HEADER = re.compile(r"([A-Za-z][A-Za-z ]*):\s*(.*)")
#: Statuses of lines that tell one part of a job that was swapped or checkpointed; the whole job has a line of its own.
_PARTIAL = frozenset({2, 3, 4})

#: Classes of walltime for jobs without a declared queue: name, longest walltime (s), expected wait (s).
_CLASSES = (("short", 3600, 1800), ("medium", 21600, 21600), ("long", _MAX_DURATION, 86400))


@dataclass(frozen=True, slots=True)
class SwfJob:
    """One line of a log; None where the log has -1, unknown. Times in seconds on the log's own clock."""

    number: int
    submit: int
    wait: int | None
    run_time: int | None
    #: Processors that the job got.
    processors: int | None
    #: Mean over the processors.
    cpu_time: float | None
    #: KB per processor, mean.
    used_memory: float | None
    requested_processors: int | None
    requested_time: int | None
    #: KB per processor, or what else the site wrote there.
    requested_memory: int | None
    #: 0 failed, 1 completed, 2 to 4 a part of a job, 5 cancelled.
    status: int | None
    user: int | None
    group: int | None
    executable: int | None
    queue: int | None
    partition: int | None
    preceding_job: int | None
    think_time: int | None
    #: What stands beyond the 18th column, as text.
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SwfLog:
    """A log as it was read.

    Attributes
    ----------
    source : str
        The file it came from.
    header : FrozenMap
        The header comments ``; Key: value``; a key may stand several times, so each has all its values in order.
    comments : tuple of str
        The other comment lines.
    jobs : tuple of SwfJob
        In the order of the lines.
    faults : tuple of Fault
        The lines that are no job and no comment; the path is ``line N``.
    """

    source: str
    header: FrozenMap[str, tuple[str, ...]]
    comments: tuple[str, ...]
    jobs: tuple[SwfJob, ...]
    faults: tuple[Fault, ...]


class MemoryField(StrEnum):
    """What field 10 of a log, the requested memory, means."""

    #: As the format says.
    KB_PER_PROCESSOR = "kb-per-processor"
    #: As in the logs of MetaCentrum.
    BYTES_PER_JOB = "bytes-per-job"


@dataclass(frozen=True, slots=True)
class SwfWindow:
    """A part of a log as an instance.

    Attributes
    ----------
    instance : Instance
        All taken jobs wait.
    left_out : tuple of Fault
        Jobs that could not be taken, and why; the path is ``job N``.
    adjusted : tuple of Fault
        Jobs that were taken, but with something else in place of what the log does not say.
    """

    instance: Instance
    left_out: tuple[Fault, ...]
    adjusted: tuple[Fault, ...]


_COLUMNS = tuple(field.name for field in dataclasses.fields(SwfJob))[:_NUM_FIELDS]
#: Means; all other columns count something and are rounded up to integers where a log has fractions.
_REAL_COLUMNS = frozenset({"cpu_time", "used_memory"})


class _NotTaken(Exception):  # noqa: N818 - control flow, never seen outside
    """A job or line cannot be taken; the text says why."""


def read_swf(path: str | Path) -> SwfLog:
    """Read a log, plain or gzip (told by its first bytes, not by its name).

    Raises
    ------
    DocumentError
        If the file cannot be read, is a damaged gzip file, is too large, or holds lines but not one job.
    """
    header: dict[str, list[str]] = {}
    comments: list[str] = []
    jobs: list[SwfJob] = []
    faults: list[Fault] = []
    for number, line in enumerate(_lines(Path(path)), start=1):
        text = line.strip()
        if text.startswith(";"):
            comment = text.lstrip("; \t")
            if match := _HEADER.fullmatch(comment):
                header.setdefault(match[1], []).append(match[2])
            elif comment:
                comments.append(comment)
        elif text:
            try:
                jobs.append(_parse_job(text))
            except _NotTaken as reason:
                faults.append(Fault(f"line {number}", str(reason)))
    if faults and not jobs:
        raise DocumentError(
            str(path), [Fault("", "Expected a log in Standard Workload Format, got no job line"), *faults[:5]]
        )
    headers = FrozenMap((key, tuple(values)) for key, values in header.items())
    return SwfLog(str(path), headers, tuple(comments), tuple(jobs), tuple(faults))


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, plain or gzip; refuse one that is larger than any log or has longer lines."""
    size = 0
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            while line := stream.readline(_MAX_LINE_BYTES):
                size += len(line)
                if size > _MAX_LOG_BYTES or len(line) == _MAX_LINE_BYTES:
                    limits = f"{_MAX_LOG_BYTES} bytes, and fewer than {_MAX_LINE_BYTES} in each line"
                    raise DocumentError(str(path), [Fault("", f"Expected at most {limits}, got more")])
                yield line.decode("utf-8", errors="replace")
    except (OSError, ValueError, EOFError, zlib.error) as error:
        # ValueError: a NUL in the path.
        raise DocumentError(str(path), [Fault("", f"Expected a readable log, got: {error}")]) from error


def _parse_job(text: str) -> SwfJob:
    """Turn a line of at least 18 fields into a job."""
    fields = text.split()
    if len(fields) < _NUM_FIELDS:
        raise _NotTaken(f"Expected {_NUM_FIELDS} fields, got {len(fields)}")
    values = [_number(field, column) for column, field in enumerate(fields[:_NUM_FIELDS], start=1)]
    columns: dict[str, Any] = {
        name: value if value is None or name in _REAL_COLUMNS else math.ceil(value)
        for name, value in zip(_COLUMNS, values, strict=True)
    }
    if columns["number"] is None or columns["number"] < 0:
        raise _NotTaken(f"Expected a job number >= 0 in field 1, got {fields[0]}")
    if columns["submit"] is None:
        raise _NotTaken("Expected a submit time in field 2, got -1 (unknown)")
    return SwfJob(**columns, extra=tuple(fields[_NUM_FIELDS:]))


def _number(field: str, column: int) -> float | None:
    """Return a field's number, None for -1; logs hold floats where one expects integers."""
    try:
        value = int(field) if field.lstrip("+-").isdecimal() and len(field) < 20 else float(field)
    except ValueError:
        raise _NotTaken(f"Expected a number in field {column}, got {field[:40]!r}") from None
    if not abs(value) <= _MAX_NUMBER:
        raise _NotTaken(f"Expected a number within ±10^15 in field {column}, got {field[:40]}")
    return None if value == -1 else value


def read_machine(source: str | Path) -> Instance:
    """Read a cluster file: an instance document without jobs, in which all but ``cluster`` may be missing.

    By default its name is the file's, without suffixes. An ``epoch`` will be the time of a window's first submission.

    Raises
    ------
    DocumentError
        With all faults of the file.
    """
    document = load_document(source)
    name = Path(source).name.removesuffix(".gz").removesuffix(".json")
    defaults = {"format": "cpsched-instance/1", "name": name, "now": 0, "jobs": []}
    machine = parse_instance(defaults | document, source=str(source))
    if machine.jobs:
        raise DocumentError(
            str(source), [Fault("jobs", f"Expected no jobs in a cluster file, got {len(machine.jobs)}")]
        )
    return machine


def swf_to_instance(
    log: SwfLog,
    machine: Instance,
    *,
    first: int = 0,
    jobs: int | None = None,
    submitted: tuple[int, int] | None = None,
    now: int | None = None,
    cores_per_chunk: int | None = None,
    memory_field: MemoryField = MemoryField.KB_PER_PROCESSOR,
) -> SwfWindow:
    """Make a window of consecutive jobs of a log: all of them wait, on the nodes and in the queues of `machine`.

    Second 0 of the instance is the submit time of the first job of the window. A job of P processors becomes P chunks
    of one core, placed freely. Its walltime is the requested time, or the run time where nothing was requested. Its
    queue is ``q`` and the log's queue number where `machine` declares that, else a class of walltime: ``short`` (up
    to 1 h), ``medium`` (up to 6 h) or ``long``, with an expected wait of 1800, 21600 or 86400 s. Memory counts where
    the nodes have ``mem``.

    Parameters
    ----------
    log
        From `read_swf`.
    machine
        From `read_machine`: an instance without jobs; all but `now` is kept.
    first, jobs
        Index (from 0) of the first job and how many at most, among those that `submitted` lets through. Faulty lines do
        not count.
    submitted
        Half-open range ``[from, until)`` of submit times on the log's clock.
    now
        On the log's clock; default: the last submit time of the window.
    cores_per_chunk
        Ask for chunks of this many cores (whole nodes), as many as hold the job's processors, in place of single cores.
    memory_field
        What field 10 means in this log.

    Raises
    ------
    ValueError
        If `first`, `jobs`, `submitted` or `cores_per_chunk` make no sense, or `machine` has jobs.
    """
    if first < 0 or (jobs is not None and jobs < 1) or (cores_per_chunk is not None and cores_per_chunk < 1):
        raise ValueError(f"need first >= 0, jobs >= 1, cores_per_chunk >= 1, got {first}, {jobs}, {cores_per_chunk}")
    if submitted is not None and submitted[0] >= submitted[1]:
        raise ValueError(f"need submitted[0] < submitted[1], got {submitted}")
    if machine.jobs:
        raise ValueError(f"the machine {machine.name!r} already has jobs")
    chosen = [job for job in log.jobs if submitted is None or submitted[0] <= job.submit < submitted[1]]
    chosen = chosen[first : None if jobs is None else first + jobs]
    return _Converter(machine, cores_per_chunk, memory_field).window(chosen, now)


class _Converter:
    """Mutable: turns jobs of a log into jobs of an instance, and notes what it had to leave out or to change."""

    def __init__(self, machine: Instance, cores_per_chunk: int | None, memory_field: MemoryField) -> None:
        self._machine = machine
        self._cores = cores_per_chunk or 1
        self._memory_field = memory_field
        self._has_memory = "mem" in machine.cluster.totals
        self._queues = dict(machine.queues)
        self._left_out: list[Fault] = []
        self._adjusted: list[Fault] = []

    def window(self, chosen: Sequence[SwfJob], now: int | None) -> SwfWindow:
        """Convert the jobs; `now` is on the log's clock, None for the last submit time."""
        origin = min((job.submit for job in chosen), default=0)
        taken: dict[str, Job] = {}
        for swf_job in chosen:
            path = f"job {swf_job.number}"
            try:
                if str(swf_job.number) in taken:
                    raise _NotTaken("its number stands twice in the window; the first one is taken")
                job, notes = self._convert(swf_job, origin)
            except _NotTaken as reason:
                self._left_out.append(Fault(path, str(reason)))
            else:
                taken[job.id] = job
                self._adjusted.extend(Fault(path, note) for note in notes)
        instance = replace(
            self._machine,
            now=max((job.submit for job in taken.values()), default=0) if now is None else now - origin,
            queues=FrozenMap(self._queues),
            jobs=tuple(taken.values()),
        )
        return SwfWindow(instance, tuple(self._left_out), tuple(self._adjusted))

    def _convert(self, swf_job: SwfJob, origin: int) -> tuple[Job, list[str]]:
        notes: list[str] = []
        if swf_job.status in _PARTIAL:
            raise _NotTaken(f"status {swf_job.status}: a part of a job that was swapped or checkpointed, not a job")
        submit = swf_job.submit - origin
        if submit > _MAX_TIME:
            raise _NotTaken(f"Expected a submit time within 10^12 s of the window's first, got {submit}")
        walltime = self._walltime(swf_job, notes)
        request = self._request(swf_job, notes)
        runtime = swf_job.run_time
        if runtime is None or not 0 < runtime <= _MAX_DURATION:
            notes.append(f"run time is {_said(runtime)}: runtime is left out")
            runtime = None
        job = Job(
            id=str(swf_job.number),
            user=None if swf_job.user is None else f"u{swf_job.user}",
            group=None if swf_job.group is None else f"g{swf_job.group}",
            queue=self._queue(swf_job, walltime),
            submit=submit,
            steps=(Step(walltime=walltime, request=request),),
            runtime=runtime,
        )
        return job, notes

    def _walltime(self, swf_job: SwfJob, notes: list[str]) -> int:
        for walltime, source in ((swf_job.requested_time, "requested time"), (swf_job.run_time, "run time")):
            if walltime is not None and 0 < walltime <= _MAX_DURATION:
                if source == "run time":
                    notes.append(
                        f"requested time is {_said(swf_job.requested_time)}: the run time {walltime} is its walltime"
                    )
                return walltime
        raise _NotTaken(
            f"requested time is {_said(swf_job.requested_time)} and run time is {_said(swf_job.run_time)}: no walltime"
        )

    def _request(self, swf_job: SwfJob, notes: list[str]) -> Request:
        processors = swf_job.requested_processors
        if processors is None or processors < 1:
            if swf_job.processors is None or swf_job.processors < 1:
                got = _said(swf_job.processors)
                raise _NotTaken(f"requested processors are {_said(processors)} and processors are {got}: no size")
            notes.append(
                f"requested processors are {_said(processors)}: the {swf_job.processors} that it got are its size"
            )
            processors = swf_job.processors
        count = -(-processors // self._cores)
        if count > _MAX_COUNT:
            raise _NotTaken(f"Expected at most {_MAX_COUNT} chunks, got {count}")
        resources = {"cores": self._cores}
        if self._has_memory and swf_job.requested_memory is not None and swf_job.requested_memory > 0:
            resources["mem"] = self._memory(swf_job.requested_memory, processors)
        return Request(chunks=(Chunk(count=count, resources=Amounts(resources)),))

    def _memory(self, requested: int, processors: int) -> int:
        """Return the MiB of one chunk, rounded up."""
        if self._memory_field is MemoryField.KB_PER_PROCESSOR:
            mebibytes = -(-requested * self._cores // 2**10)
        else:
            mebibytes = -(-requested * self._cores // (processors * 2**20))
        if mebibytes > _MAX_AMOUNT:
            raise _NotTaken(f"Expected at most {_MAX_AMOUNT} MiB of memory per chunk, got {mebibytes}")
        return mebibytes

    def _queue(self, swf_job: SwfJob, walltime: int) -> str:
        if swf_job.queue is not None and (declared := f"q{swf_job.queue}") in self._machine.queues:
            return declared
        name, _, expected_wait = next(entry for entry in _CLASSES if walltime <= entry[1])
        self._queues.setdefault(name, Queue(expected_wait=expected_wait))
        return name


def _said(value: int | None) -> str:
    return "unknown" if value is None else str(value)
