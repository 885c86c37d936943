"""A plan in the terminal that follows what it is read from, until the user ends it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from cpsched.cli.screen import output
from cpsched.errors import DocumentError, StoreError
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.cli.watching import Watched
    from cpsched.domain import Instance, Plan


#: Seconds between two looks.
_PAUSE = 0.5
#: The most jobs that are listed above the chart, and the fewest lines that the chart has.
_MOST_STARTS, _FEWEST_ROWS = 8, 4
#: The lines around both: the heading, the columns' names, the axis, the legend, and two that are empty.
_AROUND = 6


class _Screen:
    """The content of the screen; mutable. It is drawn for the size that the terminal has by then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: tuple[Instance, Plan] | None = None
        #: Why the last reading failed; empty where it did not.
        self.trouble = "nothing has been read yet"

    def show(self, instance: Instance, plan: Plan) -> None:
        """Show another plan from now on."""
        self._found, self.trouble = (instance, plan), ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from cpsched.report import NARROWEST, next_starts, terminal_gantt

        name = Text(printable(self._name), style="bold", no_wrap=True, overflow="ellipsis")
        trouble = (
            [Text(printable(self.trouble), style="red", no_wrap=True, overflow="ellipsis")] if self.trouble else []
        )
        if self._found is None:
            yield Group(name, *trouble)
            return
        instance, plan = self._found
        height = options.height or console.height
        starts = min(_MOST_STARTS, max(1, (height - _AROUND) // 3))
        rows = max(_FEWEST_ROWS, height - _AROUND - starts - len(trouble))
        chart = terminal_gantt(instance, plan, width=max(NARROWEST, options.max_width), most_rows=rows)
        head = Text(_line(instance, plan), no_wrap=True, overflow="ellipsis")
        yield Group(name, head, *trouble, next_starts(instance, plan, most=starts), Text(""), chart)


def follow(watched: Watched) -> None:
    """Show a plan, and each that takes its place, until Ctrl-C; where stdout is no terminal, a line for each.

    What cannot be read is said, and read again: the two files of a plan are not written in one moment.
    """
    console, screen = output(), _Screen(watched.name)
    try:
        if not console.is_terminal:
            while True:
                _look(watched, screen, is_plain=True)
                time.sleep(_PAUSE)
        with Live(screen, console=console, screen=True, refresh_per_second=4):
            while True:
                _look(watched, screen, is_plain=False)
                time.sleep(_PAUSE)
    except KeyboardInterrupt:
        return


def _look(watched: Watched, screen: _Screen, *, is_plain: bool) -> None:
    """Read once, and note what was found; in a pipe, print it too."""
    try:
        found = watched.read()
    except (DocumentError, OSError, StoreError) as error:
        first = error.faults[0] if isinstance(error, DocumentError) else error
        trouble = " ".join(str(first).split())  # in one line
        if is_plain and trouble != screen.trouble:
            click.echo(f"cpsched: {printable(trouble)}", err=True)
        screen.trouble = trouble
        return
    if found is not None:
        screen.show(*found)
        if is_plain:
            click.echo(_line(*found))


def _line(instance: Instance, plan: Plan) -> str:
    """Return a plan in one line: the time, how many jobs run and wait, and the value."""
    from cpsched.report import moment, value_text

    running = sum(job.running is not None for job in instance.jobs)
    score, when = plan.objective, moment(instance, instance.now)
    return (
        f"{when}: {running:,} running, {len(plan.jobs) - running:,} planned, {len(plan.waiting_room):,} in the waiting "
        f"room, {score.name} {value_text(score.value)}"
    )
