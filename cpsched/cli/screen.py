"""The terminal: consoles that take text as it is, and a progress bar for long work.

Rich is imported where something is drawn: a command that prints nothing need not wait for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from cpsched.errors import Fault
from cpsched.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, ProgressColumn

    from cpsched.lab.bench import Tally
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


def echo_first(lines: Iterable[str], most: int, kind: str, tail: str = "", *, err: bool = False) -> None:
    """Print the first few lines, and how many more there are of their kind."""
    listed = list(lines)
    for line in listed[:most]:
        click.echo(line, err=err)
    if len(listed) > most:
        click.echo(f"{kind}: ... and {len(listed) - most} more{tail}", err=err)


def warn(faults: Sequence[Fault], kind: str) -> None:
    """Print the first few faults to stderr, and the number of the others; nothing without faults."""
    echo_first((f"{kind}: {printable(str(fault))}" for fault in faults), _MOST_WARNINGS, kind, err=True)


@contextmanager
def _bar(*columns: str, wanted: bool, period: float = 30.0, **task: Any) -> Iterator[Progress | None]:
    """Yield a bar of one task on stderr; None if no terminal would show it.

    `columns`: texts, and the parts of a bar, from left to right. `period`: seconds over which the rate is a mean.
    """
    if not (wanted and is_terminal_at(sys.stderr)):
        yield None
        return
    from rich import progress as rich

    parts: dict[str, Callable[[], ProgressColumn]] = {
        "<bar>": rich.BarColumn,
        "<short bar>": lambda: rich.BarColumn(bar_width=20),
        "<count>": rich.MofNCompleteColumn,
        "<elapsed>": rich.TimeElapsedColumn,
        "<left>": rich.TimeRemainingColumn,
    }
    made = [parts[one]() if one in parts else rich.TextColumn(one) for one in columns]
    with rich.Progress(*made, console=output(stderr=True), transient=True, speed_estimate_period=period) as progress:
        progress.add_task(**task)
        yield progress


@contextmanager
def progress_bar(description: str, *, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback ``(done, total)`` that moves a bar on stderr; None if no terminal would show it."""
    columns = description, "<bar>", "<count>", "<elapsed>"
    with _bar(*columns, wanted=wanted, description=description, total=None) as bar:
        if bar is None:
            yield None
        else:
            yield lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total)


@contextmanager
def improvement_bar(seconds: float, *, wanted: bool) -> Iterator[Callable[[float, float | None, float], None] | None]:
    """Yield a callback ``(value, bound, elapsed)`` that shows on stderr how a plan improves; None if nobody sees it."""
    columns = "improving", "<bar>", "{task.description}", "<elapsed>"
    with _bar(*columns, wanted=wanted, description="", total=seconds, visible=False) as bar:

        def show(value: float, bound: float | None, elapsed: float) -> None:
            words = f"best {value:,.2f}" if bound is None else f"best {value:,.2f}, bound {bound:,.2f}"
            if bar is not None:
                bar.update(bar.task_ids[0], visible=True, completed=elapsed, description=words)

        yield None if bar is None else show


@contextmanager
def simulation_bar(
    description: str, *, date: Callable[[int], str], wanted: bool
) -> Iterator[Callable[[Moment], None] | None]:
    """Yield a callback that shows the progress of a simulation on stderr; None if no terminal would show it.

    `description`: the simulation's name. `date`: returns a second of the workload's clock in words.
    """
    columns = printable(description), "<short bar>", "<count>", "{task.description}", "<elapsed>"
    with _bar(*columns, wanted=wanted, description="", total=None) as bar:

        def show(moment: Moment) -> None:
            if bar is not None:
                words = f"{date(moment.now)}, {moment.queued:,} wait, {bar.tasks[0].speed or 0:,.0f} jobs/s"
                bar.update(bar.task_ids[0], completed=moment.done, total=moment.jobs, description=words)

        yield None if bar is None else show


@contextmanager
def campaign_bar(*, wanted: bool) -> Iterator[Callable[[Tally], None] | None]:
    """Yield a callback that shows the progress of a campaign on stderr; None if no terminal would show it."""
    columns = "cells", "<bar>", "<count>", "{task.description}", "<elapsed>", "ETA", "<left>"
    # cells may take hours: the rate is that of the last one
    with _bar(*columns, wanted=wanted, period=24 * 3600, description="starting", total=None) as bar:

        def show(tally: Tally) -> None:
            if bar is not None:
                words = f"{tally.failed} failed, {tally.running} running"
                done = tally.done + tally.failed
                bar.update(bar.task_ids[0], total=tally.total, completed=done, description=words)

        yield None if bar is None else show


def say_first_start(*, quiet: bool) -> None:
    """Tell the user that the first start compiles kernels."""
    if not quiet:
        click.echo("First start: compiling kernels, which takes up to half a minute ...", err=True)
