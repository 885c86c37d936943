"""What nodes do over time, as a figure of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cpsched.charts.chart import COLOURS
from cpsched.charts.pictures import empty_figure, picture_settings
from cpsched.charts.units import duration, duration_ticks
from cpsched.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Inches: the width, the height of a row and of all else, and the most height.
_WIDTH, _ROW, _AROUND, _HIGHEST = 8.0, 0.2, 1.0, 40.0
_MOST_TICKS = 8
#: So many nodes have names.
_MOST_NAMES = 100


def gantt_figure(title: str, rows: Sequence[str], bars: Sequence[tuple[int, str, int, int]], *, now: int) -> Figure:
    """Return a figure with a row for each name, and bars of a number (which has one colour), row, start and end.

    Raises `ReportError` if matplotlib is not installed.

    `now`: where the dashed line is, from which time is counted. All times are seconds.
    """
    with picture_settings():
        from matplotlib.collections import PolyCollection

        figure = empty_figure(_WIDTH, min(_AROUND + _ROW * max(1, len(rows)), _HIGHEST))
        axes = figure.add_subplot()
        places = {name: place for place, name in enumerate(rows)}
        boxes = [
            [(start - now, y - 0.4), (end - now, y - 0.4), (end - now, y + 0.4), (start - now, y + 0.4)]
            for _, row, start, end in bars
            for y in (places[row],)
        ]
        colours = [COLOURS[number % len(COLOURS)] for number, *_ in bars]
        axes.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="#444444", linewidths=0.3))
        axes.axvline(0, color="#444444", linestyle="--", linewidth=0.8)
        low = min((start - now for _, _, start, _ in bars), default=0)
        high = max((end - now for _, _, _, end in bars), default=1)
        axes.set_xlim(min(low, 0), max(high, 1))
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
        ticks = duration_ticks(min(low, 0), max(high, 1), most=_MOST_TICKS, is_log=False)
        axes.set_xticks(ticks, [duration(tick) for tick in ticks])
        is_named = len(rows) <= _MOST_NAMES
        axes.set_yticks(range(len(rows)) if is_named else [], [printable(row) for row in rows] if is_named else [])
        axes.set_xlabel("time from now", loc="left")
        axes.set_title(printable(title), loc="left", fontsize=10, parse_math=False)
        return figure
