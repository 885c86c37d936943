"""Logs and workloads on the command line: the options for reading a log, and the notes on a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.options import INPUT_FILE
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.formats.logs import LogOptions, WorkloadNotes


#: An option, or several.
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
#: As names in documents.
_LONGEST_NAME = 256


def _short(ctx: click.Context, param: click.Parameter, names: tuple[int | str, ...]) -> tuple[int | str, ...] | None:
    """Return names, if there are some; refuse what is longer than any name or number in a log that is read."""
    for name in names:
        if isinstance(name, str) and len(name) > _LONGEST_NAME:
            raise click.BadParameter(f"Expected a name of at most {_LONGEST_NAME} characters, got {len(name)}.")
    return names or None


def _only(name: str, names: str, field: int, type_: type) -> Decorator:
    """Return an option for values of a field of SWF, or of the same field of other logs; -1 is unknown."""
    return click.option(
        f"--{name}",
        names,
        type=type_,
        multiple=True,
        callback=_short,
        help=f"Only jobs of this {name} (field {field} of SWF); may be given several times.",
    )


def _is_range(ctx: click.Context, param: click.Parameter, submitted: tuple[int, int] | None) -> tuple[int, int] | None:
    if submitted is not None and submitted[0] >= submitted[1]:
        raise click.BadParameter(f"Expected FROM < UNTIL, got {submitted[0]} {submitted[1]}.")
    return submitted


_CLUSTER: Decorator = click.option(
    "--cluster",
    type=INPUT_FILE,
    help="Instance document with the machine of a log.  [default: the machine in the log's header]",
)
#: Options for the part of a log that is taken, and for the meaning of its fields, by their names.
_OPTIONS: Mapping[str, Decorator] = {
    "statuses": _only("status", "statuses", 11, int),
    "queues": _only("queue", "queues", 15, str),
    "partitions": _only("partition", "partitions", 16, str),
    "submitted": click.option(
        "--submitted",
        type=(int, int),
        callback=_is_range,
        metavar="FROM UNTIL",
        help="Only jobs submitted in [FROM, UNTIL), in seconds of the log's clock.",
    ),
    "first": click.option("--first", type=click.IntRange(min=0), default=0, help="Index of the first job."),
    "jobs": click.option("--jobs", type=click.IntRange(min=1), help="Largest number of jobs.  [default: all]"),
    "cores_per_chunk": click.option(
        "--cores-per-chunk",
        type=click.IntRange(min=1),
        help="Number of cores of a chunk (whole nodes), instead of single cores.",
    ),
    "memory_field": click.option(
        "--memory-field",
        type=click.Choice(["kb-per-processor", "bytes-per-job"]),
        default="kb-per-processor",
        help="Meaning and unit of field 10 (requested memory) of SWF.",
    ),
    "dependencies": click.option(
        "--dependencies",
        is_flag=True,
        help="Jobs wait for their preceding jobs and think times (fields 17 and 18 of SWF).",
    ),
}
_FEEDBACK: Decorator = click.option(
    "--feedback",
    is_flag=True,
    help="A user submits a job that followed the end of an earlier one in the log as long after its end.",
)


def log_options(*, cluster: bool, feedback: bool = False) -> Decorator:
    """Add the options for reading a log to a command, which gets them together as ``options``.

    `cluster`: whether ``--cluster`` is one of them; else the command has an argument ``cluster``.
    `feedback`: whether ``--feedback`` is.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def collecting(**given: Any) -> None:
            given_options = {name: given.pop(name) for name in (*_OPTIONS, "cluster", *["feedback"] * feedback)}
            command(options=_log_options(**given_options), **given)

        made: Callable[..., Any] = collecting
        for option in reversed((*[_CLUSTER] * cluster, *_OPTIONS.values(), *[_FEEDBACK] * feedback)):
            made = option(made)
        return made

    return decorate


def _log_options(*, memory_field: str, **given: Any) -> LogOptions:
    from cpsched.formats.logs import LogOptions, MemoryField, Selection

    selection = Selection(**{field.name: given.pop(field.name) for field in fields(Selection)})
    return LogOptions(selection=selection, memory_field=MemoryField(memory_field), **given)


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
