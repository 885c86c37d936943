"""Logs and workloads on the command line: the options for reading a log, and the notes on a workload."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.options import (
    CORES_PER_CHUNK,
    DEPENDENCIES,
    FIRST,
    INPUT_FILE,
    JOBS,
    MEMORY_FIELD,
    PARTITION,
    QUEUE,
    STATUS,
    SUBMITTED,
)
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.formats.logs import LogOptions, WorkloadNotes


_CLUSTER = click.option(
    "--cluster",
    type=INPUT_FILE,
    help="Instance document with the machine of a log.  [default: the machine in the log's header]",
)
_OPTIONS = (STATUS, QUEUE, PARTITION, SUBMITTED, FIRST, JOBS, CORES_PER_CHUNK, MEMORY_FIELD, DEPENDENCIES)
_NAMES = (
    "status",
    "queue",
    "partition",
    "submitted",
    "first",
    "jobs",
    "cores_per_chunk",
    "memory_field",
    "dependencies",
)


def log_options(*, cluster: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options for reading a log to a command, which gets them together as ``options``.

    `cluster`: whether ``--cluster`` is one of them; else the command has an argument ``cluster``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def collecting(**given: Any) -> None:
            given_options = {name: given.pop(name) for name in (*_NAMES, "cluster")}
            command(options=_log_options(**given_options), **given)

        for option in reversed((_CLUSTER, *_OPTIONS) if cluster else _OPTIONS):
            collecting = option(collecting)
        return collecting

    return decorate


def _log_options(
    *,
    status: tuple[int, ...],
    queue: tuple[str, ...],
    partition: tuple[str, ...],
    submitted: tuple[int, int] | None,
    first: int,
    jobs: int | None,
    memory_field: str,
    **others: Any,
) -> LogOptions:
    from cpsched.formats.logs import LogOptions, MemoryField, Selection

    selection = Selection(
        statuses=frozenset(status) or None,
        queues=frozenset(queue) or None,
        partitions=frozenset(partition) or None,
        submitted=submitted,
        first=first,
        jobs=jobs,
    )
    return LogOptions(selection=selection, memory_field=MemoryField(memory_field), **others)


def echo_notes(notes: WorkloadNotes, *, is_whole: bool) -> None:
    """Print assumptions to stderr, and the numbers of omissions and changes; each of them if `is_whole`."""
    for words in notes.assumed:
        click.echo(f"assumed: {printable(words)}", err=True)
    echo_counts(notes.counts)
    if is_whole:
        for fault in notes.faults:
            click.echo(f"  {printable(str(fault))}", err=True)


def echo_counts(counts: tuple[tuple[str, int], ...]) -> None:
    """Print words and their numbers to stderr."""
    for words, count in counts:
        click.echo(f"{count:,} x {printable(words)}", err=True)
