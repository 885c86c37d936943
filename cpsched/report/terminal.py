"""A Gantt chart in a terminal: rows of nodes, a column for each slice of time, a letter and a colour for each queue."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from cpsched.charts import duration
from cpsched.domain import Amounts, Instance, Plan
from cpsched.metrics import jobs_by_id
from cpsched.report.run_groups import NO_QUEUE
from cpsched.report.words import basis_of
from cpsched.text import printable

#: Columns of the narrowest chart.
NARROWEST = 40

#: More nodes than this are drawn in groups of neighbours.
MAX_ROWS = 48

#: Letters of the queues, in document order; all queues beyond share the last one.
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: Colours of the queues, in turn: distinguishable with all common forms of colour blindness (Paul Tol, "bright").
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#009988")

#: Blocks for the used share of a cell, in steps of one eighth.
BLOCKS = " ▁▂▃▄▅▆▇█"

#: Characters that the name of a row may have.
LABEL_WIDTH = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalGantt:
    """The chart as shares, drawn when a console asks for it and as well as that console can."""

    width: int
    labels: tuple[str, ...]
    queues: tuple[str, ...]
    #: Seconds that all columns stand for.
    seconds: int
    #: Share in use in [0, 1]; queue x row x column.
    shares: npt.NDArray[np.float64]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.width, self.width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system is not None and not console.no_color
        blocks = coloured and not options.ascii_only
        columns = self.shares.shape[2]
        span = f"+{duration(self.seconds)}"
        yield Text(f"{'':{self.width - columns}}now{span:>{columns - 3}}", no_wrap=True, overflow="crop")
        for row, label in enumerate(self.labels):
            line = Text(no_wrap=True, overflow="crop")
            line.append(f"{label:>{self.width - columns - 1}} ")
            for column in range(columns):
                line.append_text(self._cell(row, column, coloured, blocks))
            yield line
        yield self._legend(coloured)

    def _cell(self, row: int, column: int, coloured: bool, blocks: bool) -> Text:
        """Draw the queue that has most of a cell; a block's height, or a capital, shows how full the cell is."""
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


def terminal_gantt(instance: Instance, plan: Plan, *, width: int, most_rows: int = MAX_ROWS) -> TerminalGantt:
    """Return a chart of a plan from now to the end of its last job, to be printed by a rich console.

    Raises `ValueError` if `width` is less.

    `width`: the most characters of a line, at least `NARROWEST`. `most_rows`: more nodes are drawn in groups.
    """
    if width < NARROWEST:
        raise ValueError(f"a chart needs at least {NARROWEST} columns, got {width}")
    entries = jobs_by_id(instance)
    labels, cells = _rows(instance, most_rows)
    columns = width - max(map(len, labels)) - 1
    end = max((job.end for job in plan.jobs), default=instance.now)
    edges = np.linspace(instance.now, max(end, instance.now + 1), columns + 1)
    without: list[str | None] = [None] if any(job.queue is None for job in instance.jobs) else []
    queues = [*instance.queues, *without]
    shares = np.zeros((len(queues), len(labels), columns))
    for planned in plan.jobs:
        layer = shares[queues.index(entries[planned.id].queue)]
        for segment in planned.segments:
            used = np.zeros(len(labels))
            for placement in segment.allocation:
                cell = cells[placement.node]
                used[cell.row] += cell.share(placement.resources)
            overlap = np.minimum(edges[1:], segment.end) - np.maximum(edges[:-1], segment.start)
            layer += np.outer(used, np.maximum(overlap, 0) / (edges[1] - edges[0]))
    return TerminalGantt(
        width=width,
        labels=labels,
        queues=tuple(NO_QUEUE if name is None else printable(name) for name in queues),
        seconds=end - instance.now,
        shares=shares,
    )


@dataclass(frozen=True, slots=True)
class _NodeShare:
    """The row that a node belongs to, and its part of the row."""

    row: int
    basis: str | None
    #: The node's amount of the basis, times the nodes in its row.
    capacity: int

    def share(self, held: Amounts) -> float:
        """Return the share of the row that `held` on this node fills; never 0, so that it is visible."""
        return max(0.001, held.get(self.basis, 0) / self.capacity) if self.basis is not None else 0.001


def _rows(instance: Instance, most: int) -> tuple[tuple[str, ...], dict[str, _NodeShare]]:
    """Return the label of each row, and the row of each node: neighbours share a row if there are many nodes."""
    names, class_of = instance.cluster.node_names, instance.cluster.class_of
    size = -(-len(names) // most)
    labels, nodes = [], {}
    for row, first in enumerate(range(0, len(names), size)):
        group = names[first : first + size]
        labels.append(_label(group))
        for name in group:
            resources = class_of[name].resources
            basis = basis_of(resources)
            nodes[name] = _NodeShare(row, basis, len(group) * resources[basis] if basis is not None else 1)
    return tuple(labels), nodes


def _label(group: tuple[str, ...]) -> str:
    """Name one node, or the first of several and how many more there are, in `LABEL_WIDTH` characters."""
    more = f" +{len(group) - 1}" if len(group) > 1 else ""
    name, room = printable(group[0]), LABEL_WIDTH - len(more)
    return (name if len(name) <= room else f"{name[: room - 1]}~") + more
