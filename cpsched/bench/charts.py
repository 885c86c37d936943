"""Charts as SVG, drawn by matplotlib: bars or lines with their confidence intervals, and what all charts share.

matplotlib is not installed with cpsched by default, and is imported by the functions.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cpsched.metrics import MeanInterval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "bar_chart", "line_chart", "new_chart", "svg_of"]

#: Colours that the colour-blind tell apart (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: Patterns of lines, for more series than there are colours.
_DASHES = ("solid", "dashed", "dotted", "dashdot")
_LEGEND_COLUMNS = 3


def new_chart(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """Return an empty chart; no text in it is taken for a formula.

    Parameters
    ----------
    title, x_label, y_label
        Any text.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
    axes.set_xlabel(x_label, parse_math=False)
    axes.set_ylabel(y_label, parse_math=False)
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    return figure, axes


def svg_of(figure: Figure, drawn: Mapping[str, Artist]) -> str:
    """Return a chart as an SVG document with a legend below it; the same chart gives the same text.

    Parameters
    ----------
    figure
        From `new_chart`.
    drawn
        What was drawn in it, by the name for the legend.
    """
    from matplotlib import rc_context

    # Names are set afterwards: matplotlib leaves out of a legend what begins with an underscore.
    handles, places = list(drawn.values()), list(map(str, range(len(drawn))))
    legend = figure.legend(handles, places, loc="outside lower left", ncols=_LEGEND_COLUMNS, frameon=False)
    for text, name in zip(legend.get_texts(), drawn, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    document = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "cpsched"}):
        figure.savefig(document, format="svg", metadata={"Date": None})
    return document.getvalue()


def bar_chart(title: str, label: str, bars: Mapping[str, MeanInterval]) -> str:
    """Return an SVG document with one bar for each name, from 0, at least one."""
    figure, axes = new_chart(title, "", label)
    axes.set_xticks([])
    drawn = {}
    for place, (name, interval) in enumerate(bars.items()):
        (drawn[name],) = axes.bar(place, interval.mean, 0.7, color=COLOURS[place % len(COLOURS)])
        drawn[name].set_gid(f"bar-{place}")
        if interval.half_width:
            axes.errorbar(place, interval.mean, interval.half_width, color="#222222", capsize=3)
    return svg_of(figure, drawn)


def line_chart(title: str, x_label: str, label: str, series: Mapping[str, Sequence[tuple[float, MeanInterval]]]) -> str:
    """Return an SVG document with one line for each series of (x, mean) points, at least one point in all."""
    figure, axes = new_chart(title, x_label, label)
    drawn = {}
    for place, (name, points) in enumerate(series.items()):
        colour, dashes = COLOURS[place % len(COLOURS)], _DASHES[place // len(COLOURS) % len(_DASHES)]
        at, means = [x for x, _ in points], [interval.mean for _, interval in points]
        (drawn[name],) = axes.plot(at, means, marker="o", markersize=4, color=colour, linestyle=dashes)
        drawn[name].set_gid(f"line-{place}")
        half_widths = [interval.half_width or 0.0 for _, interval in points]
        if any(half_widths):
            axes.errorbar(at, means, half_widths, fmt="none", color=colour, capsize=3)
    # The axis has 0 on it.
    axes.update_datalim([(axes.dataLim.x0, 0.0)])
    axes.autoscale_view()
    return svg_of(figure, drawn)
