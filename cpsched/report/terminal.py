"""A Gantt chart in a terminal: rows of nodes, a column for each slice of time, a letter and a colour for each queue."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from cpsched.domain import Instance, Plan
from cpsched.metrics import jobs_by_id
from cpsched.report.words import duration, plain

__all__ = ["TerminalGantt", "terminal_gantt"]

#: More nodes than this are drawn in groups of neighbours of one class.
MAX_ROWS = 48

#: Letters of the queues, in document order; all queues beyond share the last one.
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: Colours of the queues, in turn: told apart with all common colour visions (Paul Tol, "bright").
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988")

#: Shares of a cell in use, as blocks: one eighth more each.
BLOCKS = " ▁▂▃▄▅▆▇█"

_LABEL_WIDTH = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalGantt:
    """The chart as shares, drawn when a console asks for it and as well as that console can."""

    width: int
    labels: tuple[str, ...]
    queues: tuple[str, ...]
    #: Seconds that one column stands for.
    seconds: float
    #: Share in use in [0, 1]; queue x row x column.
    shares: npt.NDArray[np.float64]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.width, self.width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system is not None
        blocks = coloured and not options.ascii_only
        columns = self.shares.shape[2]
        span = f"{duration(self.seconds * columns)}"
        gap = max(1, columns - len("now") - len(span) - 1)
        yield Text(f"{'':{self.width - columns}}now{' ' * gap}+{span}", no_wrap=True, overflow="crop")
        for row, label in enumerate(self.labels):
            line = Text(no_wrap=True, overflow="crop")
            line.append(f"{label:>{self.width - columns - 1}} ")
            for column in range(columns):
                line.append_text(self._cell(row, column, coloured, blocks))
            yield line
        yield self._legend(coloured)

    def _cell(self, row: int, column: int, coloured: bool, blocks: bool) -> Text:
        """Draw the queue that has most of a cell; the height of a block, or a capital letter, tells how full the cell is."""
        shares = self.shares[:, row, column]
        total = float(shares.sum())
        if total <= 0:
            return Text(" " if blocks else ".")
        queue = int(shares.argmax())
        style = COLOURS[queue % len(COLOURS)] if coloured else ""
        if blocks:
            return Text(BLOCKS[min(8, max(1, round(total * 8)))], style=style)
        letter = LETTERS[min(queue, len(LETTERS) - 1)]
        return Text(letter.upper() if total >= 0.5 else letter, style=style)

    def _legend(self, coloured: bool) -> Text:
        """Name the queues; capitals mean that at least half is in use."""
        line = Text()
        for index, name in enumerate(self.queues):
            letter = LETTERS[min(index, len(LETTERS) - 1)].upper()
            style = COLOURS[index % len(COLOURS)] if coloured else ""
            line.append(f"{letter} ", style=f"bold {style}".strip()).append(f"{name}  ")
        return line


def terminal_gantt(instance: Instance, plan: Plan, *, width: int) -> TerminalGantt:
    """Return a chart of a plan from now to the end of its last job, to be printed by a rich console.

    Parameters
    ----------
    width
        Characters that a line may have, at least 40.

    Raises
    ------
    ValueError
        If `width` is less than 40, or the plan has a job or node that the instance does not know.
    """
    if width < 40:
        raise ValueError(f"a chart needs at least 40 columns, got {width}")
    labels, row_of = _rows(instance)
    columns = width - min(_LABEL_WIDTH, max(map(len, labels))) - 1
    labels = tuple(label if len(label) <= _LABEL_WIDTH else f"{label[: _LABEL_WIDTH - 1]}~" for label in labels)
    end = max((job.end for job in plan.jobs), default=instance.now + 1)
    edges = np.linspace(instance.now, max(end, instance.now + 1), columns + 1)
    entries = jobs_by_id(instance)
    queues: list[str | None] = [*instance.queues]
    if any(job.queue is None for job in instance.jobs):
        queues.append(None)
    shares = np.zeros((max(1, len(queues)), len(labels), columns))
    queue_index = {name: index for index, name in enumerate(queues)}
    for job in plan.jobs:
        if job.id not in entries:
            raise ValueError(f"job {job.id!r} is not in the instance {instance.name!r}")
        layer = shares[queue_index[entries[job.id].queue]]
        for segment in job.segments:
            used = np.zeros(len(labels))
            for placement in segment.allocation:
                row, capacity, basis = row_of[placement.node]
                used[row] += placement.resources.get(basis, 0) / capacity
            overlap = np.minimum(edges[1:], segment.end) - np.maximum(edges[:-1], segment.start)
            layer += np.outer(used, np.maximum(overlap, 0) / (edges[1] - edges[0]))
    names = tuple("(no queue)" if name is None else plain(name) for name in queues)
    return TerminalGantt(
        width=width, labels=labels, queues=names, seconds=float(edges[1] - edges[0]), shares=shares
    )
