"""Charts as pictures, drawn by matplotlib: one of its own, or all of a report.

matplotlib is not installed with cpsched by default, and is imported by the functions. The same charts give the same
SVG, letter by letter. No text is taken for a formula.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cpsched.charts.chart import COLOURS, DASHES, SYMBOLS, Axis, Bars, Box, Chart, Heat, Layer, Line, ReferenceLine
from cpsched.charts.units import Unit, date_ticks, duration, duration_ticks, shortened, unit_text
from cpsched.errors import ReportError
from cpsched.text import how_to_install, printable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


PICTURE_FORMATS = ("png", "svg", "pdf")

#: Inches: the width of a chart, its height without names along y, and that of such a name.
_WIDTH, _HEIGHT, _NAME_HEIGHT = 7.0, 4.0, 0.28
_LEGEND_COLUMNS = 3
_LONGEST = 28
_DOTS_PER_INCH = 144
#: The most ticks of durations.
_MOST_TICKS = 6
_GREY, _DARK = "#dddddd", "#222222"
#: The size of a symbol; points alone that are more than this are smaller.
_MARK = 5
_MANY_POINTS = 200
#: What matplotlib would write into an SVG beside the picture.
_SVG_NOTES = ("Creator", "Date", "Format", "Type")


def picture(chart: Chart, kind: str) -> bytes:
    """Return one chart as a picture with its legend below it.

    Raises `ReportError` if matplotlib is not installed.

    `chart`: what is drawn. `kind`: one of `PICTURE_FORMATS`.
    """
    with picture_settings():
        figure = empty_figure(_WIDTH, _height(chart))
        _draw_on(figure, chart)
        return figure_bytes(figure, kind)


def pictures(charts: Sequence[Chart], kind: str, title: str) -> bytes:
    """Return all charts, at least one: as one picture in two columns, or as a PDF with a page for each chart.

    Raises `ReportError` if matplotlib is not installed.

    `charts`: what is drawn. `kind`: one of `PICTURE_FORMATS`. `title`: any text, which stands above all.
    """
    with picture_settings():
        if kind == "pdf":
            return _pages(charts, title)
        rows = [charts[first : first + 2] for first in range(0, len(charts), 2)]
        heights = [max(map(_height, row)) for row in rows]
        columns = min(2, len(charts))
        figure = empty_figure(columns * _WIDTH, sum(heights) + 0.5)
        figure.suptitle(printable(title), x=0.01, ha="left", fontweight="bold", fontsize=14, parse_math=False)
        parts = figure.subfigures(len(rows), columns, squeeze=False, height_ratios=heights)
        for row, line in zip(rows, parts, strict=True):
            for chart, part in zip(row, line, strict=False):
                _draw_on(part, chart)
        return figure_bytes(figure, kind)


@contextmanager
def picture_settings() -> Iterator[None]:
    """Set what makes pictures repeatable, and their text text, while a figure is drawn and saved.

    Raises `ReportError` if matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ReportError(f"Pictures of charts need matplotlib; {how_to_install('report')}") from error
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "cpsched", "pdf.fonttype": 42}
    with rc_context(settings):
        yield


def empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=_DOTS_PER_INCH)


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return the bytes of a figure's file, of one of `PICTURE_FORMATS`: the same ones at any time."""
    stream = io.BytesIO()
    metadata = {"svg": dict.fromkeys(_SVG_NOTES), "pdf": {"CreationDate": None}, "png": {}}[kind]
    figure.savefig(stream, format=kind, metadata=metadata)
    return stream.getvalue()


def _pages(charts: Sequence[Chart], title: str) -> bytes:
    from matplotlib.backends.backend_pdf import PdfPages

    stream = io.BytesIO()
    with PdfPages(stream, metadata={"Title": printable(title), "CreationDate": None}) as pages:
        for chart in charts:
            figure = empty_figure(_WIDTH, _height(chart))
            _draw_on(figure, chart)
            pages.savefig(figure)
    return stream.getvalue()


def _height(chart: Chart) -> float:
    """Return the inches that a chart needs: by the number of names along y, if it has any."""
    return 1.5 + _NAME_HEIGHT * max(3, len(chart.y.names)) if chart.y.names else _HEIGHT


def _draw_on(figure: Figure | SubFigure, chart: Chart) -> None:
    axes = figure.add_subplot()
    axes.set_title(printable(chart.title), loc="left", fontweight="bold", parse_math=False)
    axes.set_xlabel(printable(chart.x.label), parse_math=False)
    axes.set_ylabel(printable(chart.y.label), parse_math=False)
    axes.grid(color=_GREY)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    if chart.x.is_log:
        axes.set_xscale("log")
    if chart.y.is_log:
        axes.set_yscale("log")
    named: dict[str, Artist] = {}
    counts: dict[str, int] = {}
    for layer in chart.layers:
        kind = type(layer).__name__.lower()
        drawn = _draw(axes, layer, chart, f"{kind}-{counts.get(kind, 0)}")
        counts[kind] = counts.get(kind, 0) + 1
        if drawn is not None:
            named.setdefault(drawn[0], drawn[1])
    for name, axis in (("x", chart.x), ("y", chart.y)):
        _scale(axes, name, axis, is_down=name == "y" and bool(chart.y.names))
    if len(named) > 1:
        _legend(figure, named)


def _legend(figure: Figure | SubFigure, named: dict[str, Artist]) -> None:
    """Put the names of what was drawn below it."""
    from matplotlib.lines import Line2D

    # names are set afterwards: matplotlib leaves out of a legend what begins with an underscore
    handles, places = list(named.values()), list(map(str, range(len(named))))
    legend = figure.legend(handles, places, loc="outside lower left", ncols=_LEGEND_COLUMNS, frameon=False)
    for handle in legend.legend_handles:
        if isinstance(handle, Line2D):
            handle.set_markersize(_MARK)
    for text, name in zip(legend.get_texts(), named, strict=True):
        text.set_parse_math(False)
        text.set_text(printable(name))


def _draw(axes: Axes, layer: Layer, chart: Chart, mark: str) -> tuple[str, Artist] | None:
    """Draw a layer; return its name for the legend, if it has one. `mark`: the layer's name in an SVG."""
    match layer:
        case Line():
            return layer.name, _draw_line(axes, layer, chart, mark)
        case Bars():
            return layer.name, _draw_bars(axes, layer, mark)
        case Box():
            _draw_box(axes, layer, chart)
        case Heat():
            _draw_heat(axes, layer, chart)
        case ReferenceLine():
            axes.axhline(_values(chart.y, (layer.at,))[0], color=_DARK, lw=1, ls="--")
    return None


def _colour(series: int) -> str:
    return COLOURS[series % len(COLOURS)]


def _values(axis: Axis, values: Sequence[float]) -> list[float]:
    return [value if axis.floor is None else max(value, axis.floor) for value in values]


def _draw_line(axes: Axes, line: Line, chart: Chart, mark: str) -> Artist:
    colour, symbol = _colour(line.series), SYMBOLS[line.series % len(SYMBOLS)][0]
    x, y = _values(chart.x, line.x), _values(chart.y, line.y)
    size = 2 if not line.is_joined and len(x) > _MANY_POINTS else _MARK if line.has_marks else 4
    (drawn,) = axes.plot(
        x,
        y,
        color=colour,
        marker=symbol,
        markersize=size,
        markevery=1 if line.has_marks else max(1, len(x) // 6),
        linestyle=DASHES[line.series % len(DASHES)][0] if line.is_joined else "none",
        drawstyle="steps-post" if line.is_step else "default",
    )
    drawn.set_gid(mark)
    if any(line.half_widths):
        widths = [width or 0.0 for width in line.half_widths]
        _draw_intervals(axes, (x, y), widths, is_flat=line.is_flat, colour=colour)
    artist: Artist = drawn
    return artist


def _draw_intervals(
    axes: Axes, places: tuple[list[float], list[float]], widths: list[float], *, is_flat: bool, colour: str
) -> None:
    x, y = places
    xerr, yerr = (widths, None) if is_flat else (None, widths)
    axes.errorbar(x, y, xerr=xerr, yerr=yerr, fmt="none", color=colour, capsize=3, zorder=1)


def _draw_bars(axes: Axes, bars: Bars, mark: str) -> Artist:
    drawn = axes.barh(bars.at, bars.values, 0.7, color=_colour(bars.series))
    for number, patch in enumerate(drawn):
        patch.set_gid(mark if len(bars.at) == 1 else f"{mark}-{number}")
    if any(bars.half_widths):
        widths = [width or 0.0 for width in bars.half_widths]
        _draw_intervals(axes, (list(bars.values), list(bars.at)), widths, is_flat=True, colour=_DARK)
    artist: Artist = drawn[0]
    return artist


def _draw_box(axes: Axes, box: Box, chart: Chart) -> None:
    """Draw a box from its quantiles, the mean as a white dot."""
    low, first, median, third, high = _values(chart.x, box.quantiles)
    colour = _colour(0)
    stats = {
        "whislo": low,
        "q1": first,
        "med": median,
        "q3": third,
        "whishi": high,
        "mean": _values(chart.x, (box.mean,))[0],
        "fliers": [],
    }
    axes.bxp(
        [stats],
        positions=[box.at],
        widths=0.55,
        orientation="horizontal",
        showmeans=True,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour + "44", "edgecolor": colour},
        whiskerprops={"color": colour},
        capprops={"color": colour},
        medianprops={"color": _DARK, "linewidth": 1.8},
        meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": _DARK, "markersize": 5},
    )


def _draw_heat(axes: Axes, heat: Heat, chart: Chart) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize

    values = np.array([[math.nan if value is None else value for value in row] for row in heat.values], dtype=float)
    found = values[np.isfinite(values)]
    floor = chart.x.floor or 1e-9
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 1.0)
    norm = LogNorm(max(low, floor), max(high, 2 * floor, low * 1.001)) if heat.is_log else Normalize(low, high or 1.0)
    shown = np.maximum(values, floor) if heat.is_log else values
    image = axes.imshow(shown, cmap="cividis", norm=norm, aspect="auto")
    axes.grid(visible=False)
    for row, texts in enumerate(heat.texts):
        for column, text in enumerate(texts):
            if np.isfinite(values[row, column]):
                shade = float(norm(shown[row, column]))
                ink = "white" if shade < 0.55 else "black"
                axes.text(
                    column, row, printable(text), ha="center", va="center", fontsize=8, color=ink, parse_math=False
                )
    image.set_gid("heat")


def _scale(axes: Axes, name: str, axis: Axis, *, is_down: bool) -> None:
    """Set the ticks of an axis by its unit, and what is on it."""
    from matplotlib.ticker import LogLocator, NullLocator

    drawn = getattr(axes, f"{name}axis")
    if axis.names:
        labels = [shortened(printable(one), _LONGEST) for one in axis.names]
        drawn.set_ticks(range(len(labels)), labels, parse_math=False)
        ends = (-0.5, len(labels) - 0.5)
        getattr(axes, f"set_{name}lim")(ends[::-1] if is_down else ends)
        if name == "y":
            axes.grid(visible=False, axis="y")
        return
    if axis.has_zero and not axis.is_log:
        low, high = (axes.dataLim.intervalx, axes.dataLim.intervaly)[name == "y"]
        if not low <= 0 <= high:
            point = (0.0, axes.dataLim.y0) if name == "x" else (axes.dataLim.x0, 0.0)
            axes.update_datalim([point])
        axes.autoscale_view()
    if axis.span is not None:
        getattr(axes, f"set_{name}lim")(axis.span)
    if axis.unit in (Unit.DATE, Unit.SECONDS):
        low, high = getattr(axes, f"get_{name}lim")()
        if axis.unit is Unit.DATE:
            ticks = date_ticks(low, high, most=_MOST_TICKS)
        else:
            places = duration_ticks(low, high, most=_MOST_TICKS, is_log=axis.is_log)
            # the least one of an axis with a floor stands for all below it, too
            least = -math.inf if axis.floor is None else axis.floor * 1.001
            ticks = [(place, "≤ " * (place <= least) + unit_text(axis.unit, place)) for place in places]
        drawn.set_ticks([place for place, _ in ticks], [label for _, label in ticks])
        drawn.set_ticks([], minor=True)
        getattr(axes, f"set_{name}lim")(low, high)
    else:
        is_share = axis.unit is Unit.SHARE
        if axis.is_log:
            low, high = getattr(axes, f"get_{name}lim")()
            subs = (1.0,) if high > 1e4 * low else (1.0, 2.0, 5.0)
            drawn.set_major_locator(LogLocator(subs=subs, numticks=12))
            drawn.set_minor_locator(NullLocator())
        drawn.set_major_formatter(lambda value, _: f"{100 * value:g}%" if is_share else f"{value:,.6g}")


#: Inches: the width, the height of a row and of all else, and the most height.
_GANTT_WIDTH, _ROW, _AROUND, _HIGHEST = 8.0, 0.2, 1.0, 40.0
_GANTT_TICKS = 8
#: So many nodes have names.
_MOST_NAMES = 100


def gantt_figure(title: str, rows: Sequence[str], bars: Sequence[tuple[int, str, int, int]], *, now: int) -> Figure:
    """Return a figure with a row for each name, and bars of a number (which has one colour), row, start and end.

    Raises `ReportError` if matplotlib is not installed.

    `now`: where the dashed line is, from which time is counted. All times are seconds.
    """
    with picture_settings():
        from matplotlib.collections import PolyCollection

        figure = empty_figure(_GANTT_WIDTH, min(_AROUND + _ROW * max(1, len(rows)), _HIGHEST))
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
        ticks = duration_ticks(min(low, 0), max(high, 1), most=_GANTT_TICKS, is_log=False)
        axes.set_xticks(ticks, [duration(tick) for tick in ticks])
        is_named = len(rows) <= _MOST_NAMES
        axes.set_yticks(range(len(rows)) if is_named else [], [printable(row) for row in rows] if is_named else [])
        axes.set_xlabel("time from now", loc="left")
        axes.set_title(printable(title), loc="left", fontsize=10, parse_math=False)
        return figure
