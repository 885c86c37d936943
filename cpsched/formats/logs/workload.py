"""What is simulated, from a file: an instance document or a log of any kind, and what is to be said about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from cpsched.domain import Instance
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_document
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.logs.conversion import LogWindow, log_to_instance
from cpsched.formats.logs.jobs import JobLog, LogKind
from cpsched.formats.logs.kinds import kind_of, read_log
from cpsched.formats.logs.machine import machine_of_jobs
from cpsched.formats.logs.selection import Selection
from cpsched.formats.logs.swf_jobs import MemoryField
from cpsched.formats.swf import SwfLog, machine_of_log, read_machine

__all__ = ["LogOptions", "TakenJobs", "WorkloadNotes", "is_log", "read_workload", "take_jobs"]

_SUFFIXES = (".gz", ".swf", ".acct", ".events")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How a log becomes a workload.

    Attributes
    ----------
    cluster : Path or None
        A cluster file; None: the machine that the log speaks of.
    selection : Selection
        Which jobs; in a log in Standard Workload Format queues and partitions have numbers, in others names.
    cores_per_chunk : int or None
        Cores of a chunk; None: 1. For logs in Standard Workload Format only.
    memory_field : MemoryField
        What field 10 means. For logs in Standard Workload Format only.
    """

    cluster: Path | None = None
    selection: Selection = field(default_factory=Selection)
    cores_per_chunk: int | None = None
    memory_field: MemoryField = MemoryField.KB_PER_PROCESSOR


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNotes:
    """What is to be said about a workload."""

    #: What was left out or changed, in words, each with how often.
    counts: tuple[tuple[str, int], ...] = ()
    #: Every single one of them that has a place in the file.
    faults: tuple[Fault, ...] = ()
    #: What was taken for granted of the machine.
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenJobs:
    """Jobs of a log on a machine."""

    window: LogWindow
    #: The lines that are no job.
    faults: tuple[Fault, ...]
    #: Of the machine.
    assumed: tuple[str, ...]

    @property
    def kept_out(self) -> tuple[tuple[str, int], ...]:
        """How many jobs each filter kept out, in words."""
        found = self.window.kept_out.items()
        return tuple((f"left out by the filter {name}", count) for name, count in found if count)

    @property
    def notes(self) -> WorkloadNotes:
        """What is to be said about these jobs."""
        window = self.window
        counts = [("left out: lines that are no job", len(self.faults)), *self.kept_out]
        counts += [(str(anomaly), count) for anomaly, count in window.counts.items()]
        return WorkloadNotes(
            counts=tuple((words, count) for words, count in counts if count),
            faults=(*self.faults, *window.left_out, *window.adjusted, *window.oversized),
            assumed=self.assumed,
        )


def is_log(path: Path) -> bool:
    """Tell by its name, or by its first lines, whether a file is a log."""
    return kind_of(path) is not None


def read_workload(path: Path, options: LogOptions = LogOptions()) -> tuple[Instance, WorkloadNotes]:
    """Read an instance document, or make an instance of a log whose jobs arrive over time.

    Raises
    ------
    DocumentError
        If a file is refused, the log does not say enough to do without a cluster file, or the options do not suit it.
    """
    if is_log(path):
        taken = take_jobs(path, options, arriving=True)
        name = path.name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return replace(taken.window.instance, name=name), taken.notes
    if options != LogOptions():
        message = "Expected a log (.swf, .acct, .events), since there are options for logs; got none"
        raise DocumentError(str(path), [Fault("", message)])
    warnings: list[Fault] = []
    instance = parse_instance(load_document(path), source=str(path), on_warning=warnings.append)
    counts = (("warnings", len(warnings)),) if warnings else ()
    return instance, WorkloadNotes(counts=counts, faults=tuple(warnings))


def take_jobs(path: Path, options: LogOptions, *, arriving: bool, now: int | None = None) -> TakenJobs:
    """Make an instance of the jobs of a log; a log of no other kind is read in Standard Workload Format.

    Parameters
    ----------
    path, options
        The log, and how it becomes a workload.
    arriving, now
        As in `log_to_instance`.

    Raises
    ------
    DocumentError
        If a file is refused, the log does not say enough to do without a cluster file, or the options do not suit it.
    """
    kind = kind_of(path) or LogKind.SWF
    _check_options(path, kind, options)
    log = read_log(path, kind)
    assumed: tuple[str, ...] = ()
    if options.cluster is not None:
        machine = read_machine(options.cluster)
    else:
        found = machine_of_jobs(log) if isinstance(log, JobLog) else machine_of_log(log)
        machine, assumed = found.machine, found.assumed
    window = log_to_instance(
        log,
        machine,
        selection=options.selection.numbered() if isinstance(log, SwfLog) else options.selection.named(),
        arriving=arriving,
        now=now,
        cores_per_chunk=options.cores_per_chunk,
        memory_field=options.memory_field,
    )
    return TakenJobs(window=window, faults=log.faults, assumed=assumed)


def _check_options(path: Path, kind: LogKind, options: LogOptions) -> None:
    """Refuse options that are for logs of another kind."""
    faults = []
    if kind is LogKind.SWF:
        for key, chosen in (("queue", options.selection.queues), ("partition", options.selection.partitions)):
            faults += [
                Fault(key, f"Expected numbers in a {kind}, got {shown(name)}")
                for name in sorted(map(str, chosen or ()))
                if not name.removeprefix("-").isdecimal()
            ]
    elif options.cores_per_chunk is not None or options.memory_field is not MemoryField.KB_PER_PROCESSOR:
        faults.append(Fault("", f"Expected a {LogKind.SWF} for cores_per_chunk and memory_field, got {kind}"))
    if faults:
        raise DocumentError(str(path), faults)
