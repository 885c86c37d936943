"""What ``cpsched simulate`` plays: an instance, or a log on a machine; and what had to be assumed or left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.options import CORES_PER_CHUNK, EXISTING_FILE, FIRST, JOBS, MEMORY_FIELD, SUBMITTED
from cpsched.cli.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.errors import Fault
    from cpsched.formats.swf import SwfLog, SwfWindow

__all__ = ["LogOptions", "Notes", "echo_notes", "is_log", "log_options", "read_workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """How a log becomes a workload, as the options say it."""

    cluster: Path | None = None
    status: tuple[int, ...] = ()
    queue: tuple[int, ...] = ()
    partition: tuple[int, ...] = ()
    submitted: tuple[int, int] | None = None
    first: int = 0
    jobs: int | None = None
    cores_per_chunk: int | None = None
    memory_field: str = "kb-per-processor"


def _filter(name: str, field: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        f"--{name}", type=int, multiple=True, help=f"Only jobs of this {name} (field {field}); may be given again."
    )


_LOG_OPTIONS = (
    click.option("--cluster", type=EXISTING_FILE, help="The machine of a log.  [default: what its header says]"),
    _filter("status", 11),
    _filter("queue", 15),
    _filter("partition", 16),
    SUBMITTED,
    FIRST,
    JOBS,
    CORES_PER_CHUNK,
    MEMORY_FIELD,
)


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how a log becomes a workload; it gets them together, as ``log``."""

    @wraps(command)
    def collecting(**given: Any) -> None:
        log = LogOptions(**{name: given.pop(name) for name in LogOptions.__slots__})
        command(log=log, **given)

    for option in reversed(_LOG_OPTIONS):
        collecting = option(collecting)
    return collecting


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What is to be said about a workload."""

    #: In words, each with how often.
    counts: tuple[tuple[str, int], ...] = ()
    #: Every single one of them that has a place in the file.
    faults: tuple[Fault, ...] = ()
    assumed: tuple[str, ...] = ()


def is_log(path: Path) -> bool:
    """Tell by its name whether a file is a log in Standard Workload Format."""
    return path.name.endswith((".swf", ".swf.gz"))


def read_workload(path: Path, log: LogOptions) -> tuple[Instance, Notes]:
    """Read an instance, or make one of a log.

    Raises
    ------
    DocumentError
        If a file is refused, or the header of a log does not say enough to do without a cluster file.
    UsageError
        If there is no job, or there are options for logs and this is none.
    """
    workload, notes = _of_log(path, log) if is_log(path) else _of_instance(path, log)
    if not workload.jobs:
        echo_notes(notes, is_whole=False)
        raise click.UsageError(f"Expected jobs to simulate, got none of {printable(str(path))}.")
    return workload, notes


def _of_instance(path: Path, log: LogOptions) -> tuple[Instance, Notes]:
    from cpsched.formats import read_instance

    if log != LogOptions():
        raise click.UsageError(f"Options for logs need a log (.swf or .swf.gz), got {printable(str(path))}.")
    warnings: list[Fault] = []
    instance = read_instance(path, on_warning=warnings.append)
    return instance, Notes(counts=(("warnings", len(warnings)),) if warnings else (), faults=tuple(warnings))


def _of_log(path: Path, options: LogOptions) -> tuple[Instance, Notes]:
    from cpsched.formats.swf import MemoryField, Selection, machine_of_log, read_machine, read_swf, swf_to_instance

    log = read_swf(path)
    assumed: tuple[str, ...] = ()
    if options.cluster is not None:
        machine = read_machine(options.cluster)
    else:
        found = machine_of_log(log)
        machine, assumed = found.machine, found.assumed
    selection = Selection(
        statuses=frozenset(options.status) or None,
        queues=frozenset(options.queue) or None,
        partitions=frozenset(options.partition) or None,
        submitted=options.submitted,
        first=options.first,
        jobs=options.jobs,
    )
    window = swf_to_instance(
        log,
        machine,
        selection=selection,
        arriving=True,
        cores_per_chunk=options.cores_per_chunk,
        memory_field=MemoryField(options.memory_field),
    )
    name = path.name.removesuffix(".gz").removesuffix(".swf")
    return replace(window.instance, name=name), _notes_of(log, window, assumed)


def _notes_of(log: SwfLog, window: SwfWindow, assumed: tuple[str, ...]) -> Notes:
    counts = [("left out: lines that are no job", len(log.faults))]
    counts += [(f"left out by the filter {name}", count) for name, count in window.kept_out.items()]
    counts += [(str(oddity), count) for oddity, count in window.counts.items()]
    return Notes(
        counts=tuple((words, count) for words, count in counts if count),
        faults=(*log.faults, *window.left_out, *window.adjusted, *window.oversized),
        assumed=assumed,
    )


def echo_notes(notes: Notes, *, is_whole: bool) -> None:
    """Print to stderr what was assumed, and how often what was left out or changed; where it `is_whole`, each place."""
    for words in notes.assumed:
        click.echo(f"assumed: {printable(words)}", err=True)
    for words, count in notes.counts:
        click.echo(f"{count:,} x {printable(words)}", err=True)
    if is_whole:
        for fault in notes.faults:
            click.echo(f"  {printable(str(fault))}", err=True)
