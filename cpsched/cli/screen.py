"""The terminal: consoles that take text as it is, and a progress bar for long work.

Rich is imported where something is drawn: a command that prints nothing need not wait for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from cpsched.errors import Fault
from cpsched.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from cpsched.lab.sim import Moment


#: The most warnings of one kind that are shown; the rest is counted.
_MOST_WARNINGS = 5

#: The most characters of a line that is written to a pipe.
_WIDEST = 10_000


def output(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji codes, no automatic colours.

    ``FORCE_COLOR`` colours what goes into a pipe, and makes no terminal of it: it gets no bars and no lines of tables.
    """
    from rich.console import Console

    is_terminal = is_terminal_at(sys.stderr if stderr else sys.stdout)
    system: Literal["auto", "standard"] = "standard" if _is_colour_forced() and not is_terminal else "auto"
    return Console(
        stderr=stderr, markup=False, emoji=False, highlight=False, force_terminal=is_terminal, color_system=system
    )


def is_terminal_at(stream: TextIO) -> bool:
    """Tell whether a stream leads to a terminal."""
    return stream.isatty()


def _is_colour_forced() -> bool:
    """Tell whether the user wants colours everywhere; ``NO_COLOR`` has precedence. Empty values say nothing."""
    return bool(os.environ.get("FORCE_COLOR")) and not os.environ.get("NO_COLOR")


def print_whole(renderable: RenderableType) -> None:
    """Print to stdout; if that is no terminal, in columns without lines, as wide as the content."""
    console = output()
    if console.is_terminal:
        console.print(renderable)
        return
    _take_boxes_off(renderable)
    unbounded = console.options.update(max_width=_WIDEST)
    console.width = max(console.width, console.measure(renderable, options=unbounded).maximum)
    with console.capture() as captured:
        console.print(renderable)
    text = "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
    click.echo(text, color=_is_colour_forced())


def _take_boxes_off(renderable: RenderableType) -> None:
    """Remove the lines around tables, and keep their columns."""
    from rich.console import Group
    from rich.table import Table

    if isinstance(renderable, Table):
        renderable.box = None
        renderable.pad_edge = False
    elif isinstance(renderable, Group):
        for part in renderable.renderables:
            _take_boxes_off(part)


def echo_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def warn(faults: Sequence[Fault], kind: str) -> None:
    """Print the first few faults to stderr, and the number of the others; nothing without faults."""
    for fault in faults[:_MOST_WARNINGS]:
        click.echo(f"{kind}: {printable(str(fault))}", err=True)
    if len(faults) > _MOST_WARNINGS:
        click.echo(f"{kind}: ... and {len(faults) - _MOST_WARNINGS} more", err=True)


@contextmanager
def progress_bar(description: str, *, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback ``(done, total)`` that moves a bar on stderr; None if no terminal would show it."""
    if not (wanted and is_terminal_at(sys.stderr)):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=output(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def improvement_bar(seconds: float, *, wanted: bool) -> Iterator[Callable[[float, float | None, float], None] | None]:
    """Yield a callback ``(value, bound, elapsed)`` that shows the improvement of a plan, which takes at most so many
    seconds, on stderr; None if no terminal would show it.
    """
    if not (wanted and is_terminal_at(sys.stderr)):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("improving"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=output(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=seconds, visible=False)

        def show(value: float, bound: float | None, elapsed: float) -> None:
            words = f"best {value:,.2f}" if bound is None else f"best {value:,.2f}, bound {bound:,.2f}"
            progress.update(task, visible=True, completed=elapsed, description=words)

        yield show


@contextmanager
def simulation_bar(
    description: str, *, date: Callable[[int], str], wanted: bool
) -> Iterator[Callable[[Moment], None] | None]:
    """Yield a callback that shows the progress of a simulation on stderr; None if no terminal would show it.

    `description`: the name of the simulation. `date`: returns a second of the workload's clock in words. `wanted`:
    whether the bar is wanted.
    """
    if not (wanted and is_terminal_at(sys.stderr)):
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(printable(description)),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=output(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(moment: Moment) -> None:
            rate = progress.tasks[task].speed or 0
            words = f"{date(moment.now)}, {moment.queued:,} wait, {rate:,.0f} jobs/s"
            progress.update(task, completed=moment.done, total=moment.jobs, description=words)

        yield show


def say_first_start(*, quiet: bool) -> None:
    """Tell the user that the first start compiles kernels."""
    if not quiet:
        click.echo("First start: compiling kernels, which takes up to half a minute ...", err=True)
