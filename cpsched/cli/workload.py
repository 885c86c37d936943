"""The workload of ``cpsched simulate``: an instance, or a log on a machine; with the assumptions and omissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.options import (
    CORES_PER_CHUNK,
    EXISTING_FILE,
    FIRST,
    JOBS,
    MEMORY_FIELD,
    PARTITION,
    QUEUE,
    STATUS,
    SUBMITTED,
)
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.errors import Fault
    from cpsched.formats.logs import LogKind, LogWindow
    from cpsched.formats.swf import Selection, SwfWindow

__all__ = ["LogOptions", "Notes", "TakenJobs", "echo_notes", "filtered", "is_log", "log_options", "read_workload"]
__all__ += ["take_jobs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options for reading a log as a workload."""

    cluster: Path | None = None
    status: tuple[int, ...] = ()
    queue: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    submitted: tuple[int, int] | None = None
    first: int = 0
    jobs: int | None = None
    cores_per_chunk: int | None = None
    memory_field: str = "kb-per-processor"

    def selection(self, *, by_number: bool) -> Selection:
        """Return the selection of the log's jobs; logs in SWF number their queues and partitions, other logs name
        them.
        """
        from cpsched.formats.swf import Selection

        return Selection(
            statuses=frozenset(self.status) or None,
            queues=frozenset(_named("queue", self.queue, by_number=by_number)) or None,
            partitions=frozenset(_named("partition", self.partition, by_number=by_number)) or None,
            submitted=self.submitted,
            first=self.first,
            jobs=self.jobs,
        )


def _named(option: str, given: tuple[str, ...], *, by_number: bool) -> Iterator[int | str]:
    """Yield numbers or names; -1 is unknown in any log."""
    for text in given:
        if by_number and not text.removeprefix("-").isdecimal():
            raise click.UsageError(f"--{option}: expected a number in a log in SWF, got {printable(text)}.")
        yield int(text) if by_number or text == "-1" else text


_LOG_OPTIONS = (
    click.option(
        "--cluster",
        type=EXISTING_FILE,
        help="Instance document with the machine of a log.  [default: the machine in the log's header]",
    ),
    STATUS,
    QUEUE,
    PARTITION,
    SUBMITTED,
    FIRST,
    JOBS,
    CORES_PER_CHUNK,
    MEMORY_FIELD,
)


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading a log to a command, which gets them together as ``log``."""

    @wraps(command)
    def collecting(**given: Any) -> None:
        log = LogOptions(**{name: given.pop(name) for name in LogOptions.__slots__})
        command(log=log, **given)

    for option in reversed(_LOG_OPTIONS):
        collecting = option(collecting)
    return collecting


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Notes on a workload: what was assumed, changed or left out."""

    #: Notes with their numbers.
    counts: tuple[tuple[str, int], ...] = ()
    #: Each note that belongs to a line of the file.
    faults: tuple[Fault, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenJobs:
    """Jobs of a log on a machine."""

    window: SwfWindow | LogWindow
    #: The lines that are not jobs.
    faults: tuple[Fault, ...]
    #: Faults and assumptions of the machine.
    assumed: tuple[str, ...]


def _is_swf(path: Path) -> bool:
    return path.name.endswith((".swf", ".swf.gz"))


def is_log(path: Path) -> bool:
    """Return whether a file is a log, judged by its name, or by its first lines."""
    from cpsched.formats.logs import kind_of

    return _is_swf(path) or kind_of(path) is not None


def read_workload(path: Path, log: LogOptions) -> tuple[Instance, Notes]:
    """Read an instance, or make one from a log.

    Raises
    ------
    DocumentError
        If a file is refused, or the header of a log does not describe the machine and there is no cluster file.
    UsageError
        If there is no job, or there are options for logs but the file is an instance.
    """
    workload, notes = _of_log(path, log) if is_log(path) else _of_instance(path, log)
    if not workload.jobs:
        echo_notes(notes, is_whole=False)
        raise click.UsageError(f"Expected jobs to simulate, got none of {printable(str(path))}.")
    return workload, notes


def _of_instance(path: Path, log: LogOptions) -> tuple[Instance, Notes]:
    from cpsched.formats import read_instance

    if log != LogOptions():
        raise click.UsageError(f"Options for logs need a log (.swf, .acct, .events), got {printable(str(path))}.")
    warnings: list[Fault] = []
    instance = read_instance(path, on_warning=warnings.append)
    if warnings:
        from cpsched.cli.screen import warn

        warn(warnings, "warning")
    return instance, Notes(faults=tuple(warnings))


def _of_log(path: Path, options: LogOptions) -> tuple[Instance, Notes]:
    from cpsched.formats import trusted

    taken = take_jobs(path, options, arriving=True)
    name = printable(path.name)[:256].removesuffix(".gz")
    for suffix in (".swf", ".acct", ".events"):
        name = name.removesuffix(suffix)
    return trusted(replace(taken.window.instance, name=name)), _notes_of(taken)


def take_jobs(path: Path, options: LogOptions, *, arriving: bool, now: int | None = None) -> TakenJobs:
    """Make an instance from the jobs of a log; a log of no other kind is read as Standard Workload Format.

    Raises
    ------
    DocumentError
        If a file is refused, or the log does not say enough to do without a cluster file.
    UsageError
        If there are options for logs of another kind.
    """
    from cpsched.formats.logs import kind_of
    from cpsched.formats.swf import MemoryField, machine_of_log, read_machine, read_swf, swf_to_instance

    kind = None if _is_swf(path) else kind_of(path)
    if kind is not None:
        return _take_logged(path, kind, options, arriving=arriving, now=now)
    log = read_swf(path)
    assumed: tuple[str, ...] = ()
    if options.cluster is not None:
        machine = read_machine(options.cluster)
    else:
        found = machine_of_log(log)
        machine, assumed = found.machine, found.assumed
    window = swf_to_instance(
        log,
        machine,
        selection=options.selection(by_number=True),
        arriving=arriving,
        now=now,
        cores_per_chunk=options.cores_per_chunk,
        memory_field=MemoryField(options.memory_field),
    )
    return TakenJobs(window=window, faults=log.faults, assumed=assumed)


def _take_logged(path: Path, kind: LogKind, options: LogOptions, *, arriving: bool, now: int | None) -> TakenJobs:
    """Make an instance from the jobs of a resource manager's log."""
    from cpsched.formats.logs import log_to_instance, machine_of_jobs, read_log
    from cpsched.formats.swf import read_machine

    if options.cores_per_chunk is not None or options.memory_field != LogOptions().memory_field:
        raise click.UsageError(f"--cores-per-chunk and --memory-field are for logs in SWF, got {kind}.")
    log = read_log(path, kind)
    assumed: tuple[str, ...] = ()
    if options.cluster is not None:
        machine = read_machine(options.cluster)
    else:
        found = machine_of_jobs(log)
        machine, assumed = found.machine, found.assumed
    selection = options.selection(by_number=False)
    window = log_to_instance(log, machine, selection=selection, arriving=arriving, now=now)
    return TakenJobs(window=window, faults=log.faults, assumed=assumed)


def filtered(window: SwfWindow | LogWindow) -> list[tuple[str, int]]:
    """Return the number of jobs that each filter left out, in words."""
    return [(f"left out by the filter {name}", count) for name, count in window.kept_out.items()]


def _notes_of(taken: TakenJobs) -> Notes:
    window = taken.window
    counts = [("left out: lines that are not jobs", len(taken.faults))]
    counts += filtered(window)
    counts += [(str(anomaly), count) for anomaly, count in window.counts.items()]
    return Notes(
        counts=tuple((words, count) for words, count in counts if count),
        faults=(*taken.faults, *window.left_out, *window.adjusted, *window.oversized),
        assumed=taken.assumed,
    )


def echo_notes(notes: Notes, *, is_whole: bool) -> None:
    """Print assumptions to stderr, and the numbers of omissions and changes; each of them if `is_whole`."""
    for words in notes.assumed:
        click.echo(f"assumed: {printable(words)}", err=True)
    for words, count in notes.counts:
        click.echo(f"{count:,} x {printable(words)}", err=True)
    if is_whole:
        for fault in notes.faults:
            click.echo(f"  {printable(str(fault))}", err=True)
