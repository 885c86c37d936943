"""The workload of a file: an instance document, or a log of any kind on a machine; with notes on it."""

from dataclasses import dataclass, replace
from pathlib import Path

from cpsched.domain import FrozenMap, Instance
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_document
from cpsched.formats.instance_reader import parse_instance, trusted
from cpsched.formats.logs.conversion import LogOptions, LogWindow, log_to_instance
from cpsched.formats.logs.jobs import JobLog, LogKind
from cpsched.formats.logs.kinds import kind_of, read_log
from cpsched.formats.logs.machine import machine_of_jobs
from cpsched.formats.logs.swf_jobs import MemoryField
from cpsched.formats.swf import machine_of_log, read_machine
from cpsched.text import printable

_SUFFIXES = (".gz", ".swf", ".acct", ".events")
#: What is said of the fields of Standard Workload Format where nothing is.
_PLAIN = (None, MemoryField.KB_PER_PROCESSOR, False)
#: The longest name in a document.
_MAX_NAME = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNotes:
    """Notes on a workload: what was assumed, changed or left out."""

    #: Omissions and changes in words, with their numbers.
    counts: tuple[tuple[str, int], ...] = ()
    #: Each note that belongs to a line or a part of the file.
    faults: tuple[Fault, ...] = ()
    #: Assumptions about the machine.
    assumed: tuple[str, ...] = ()
    #: What was accepted in an instance document though it is odd.
    warnings: tuple[Fault, ...] = ()
    #: When jobs really started, by their ids, on the instance's clock: of a log that says so.
    starts: FrozenMap[str, int] = FrozenMap()


def is_log(path: Path) -> bool:
    """Return whether a file is a log, judged by its name, or by its first lines."""
    return kind_of(path) is not None


def read_workload(
    path: Path,
    options: LogOptions = LogOptions(),  # noqa: B008 - frozen
) -> tuple[Instance, WorkloadNotes]:
    """Read an instance document, or make an instance from a log, whose jobs arrive over time.

    Raises `DocumentError` if a file is refused, the log does not describe the machine and there is no cluster file, or
    the options are for another kind of file.
    """
    if is_log(path):
        taken = take_jobs(path, options, arriving=True)
        name = printable(path.name)[:_MAX_NAME]
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        counts = [("left out: lines that are not jobs", len(taken.faults)), *taken.filtered]
        counts += [(str(anomaly), count) for anomaly, count in taken.counts.items()]
        notes = WorkloadNotes(
            counts=tuple((words, count) for words, count in counts if count),
            faults=(*taken.faults, *taken.left_out, *taken.adjusted, *taken.oversized),
            assumed=taken.assumed,
            starts=taken.starts,
        )
        return trusted(replace(taken.instance, name=name)), notes
    if replace(options, feedback=False) != LogOptions():
        message = "Expected a log (.swf, .acct, .events), since there are options for logs; got none"
        raise DocumentError(str(path), [Fault("", message)])
    warnings: list[Fault] = []
    instance = parse_instance(load_document(path), source=str(path), on_warning=warnings.append)
    return instance, WorkloadNotes(faults=tuple(warnings), warnings=tuple(warnings))


def take_jobs(path: Path, options: LogOptions, *, arriving: bool, now: int | None = None) -> LogWindow:
    """Make an instance from the jobs of a log; a log of no other kind is read as Standard Workload Format.

    Raises `DocumentError` if a file is refused, the log does not describe the machine and there is no cluster file, or
    the options are for another kind of file.

    `path`, `options`: the log, and the options for reading it. `arriving`, `now`: as in `log_to_instance`.
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
    window = log_to_instance(log, machine, options, arriving=arriving, now=now)
    if options.feedback and not window.starts:
        raise DocumentError(str(path), [Fault("", f"Expected a log that says when jobs started, got {kind}")])
    return replace(window, assumed=assumed)


def _check_options(path: Path, kind: LogKind, options: LogOptions) -> None:
    faults = []
    if kind is LogKind.SWF:
        for key, chosen in (("queue", options.selection.queues), ("partition", options.selection.partitions)):
            faults += [
                Fault(key, f"Expected numbers in a {kind}, got {shown(name)}")
                for name in sorted(map(str, chosen or ()))
                if not name.removeprefix("-").isdecimal()
            ]
    elif (options.cores_per_chunk, options.memory_field, options.dependencies) != _PLAIN:
        named = "cores_per_chunk, memory_field and dependencies"
        faults.append(Fault("", f"Expected a {LogKind.SWF} for {named}, got {kind}"))
    if faults:
        raise DocumentError(str(path), faults)
