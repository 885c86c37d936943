"""A chart as the figure of plotly.js: traces and a layout, without the colours, which depend on the page's theme.

plotly takes texts for markup: all texts of a figure are escaped. The traces have their series number in `meta`; the
page's script paints them, and writes numbers by the units of the axes.
"""

import html
import math
from typing import Any

from cpsched.charts.chart import DASHES, SYMBOLS, Axis, Bars, Box, Chart, Heat, Line, ReferenceLine
from cpsched.charts.units import Unit, date_of, shortened
from cpsched.errors import ReportError
from cpsched.text import how_to_install, printable

#: The most characters of a name on an axis.
_LONGEST = 26
#: Digits of numbers that a page keeps: more cannot be seen.
_DIGITS = 7
#: Symbols on a line whose points have none each.
_FEW_MARKS = 6


def plotly_script() -> str:
    """Return plotly.js, the script that draws figures. Raises `ReportError` if the package is not installed."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ReportError(f"A page with charts needs plotly; {how_to_install('report')}") from error
    return str(get_plotlyjs())


def plotly_figure(chart: Chart) -> dict[str, Any]:
    """Return a chart as values of JSON: ``data`` and ``layout``, as plotly.js draws them."""
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for layer in chart.layers:
        if isinstance(layer, ReferenceLine):
            (at,) = _values(chart.y, (layer.at,))
            ends = {"y0": at, "y1": at, "xref": "paper", "x0": 0, "x1": 1}
            shapes.append({"type": "line", **ends, "line": {"dash": "dash", "width": 1.5}})
        else:
            traces.append(_trace(layer, chart))
    has_names = any(isinstance(layer, Box) for layer in chart.layers) or bool(chart.y.names)
    layout: dict[str, Any] = {
        "xaxis": _axis(chart.x) | _log_range(chart),
        "yaxis": _axis(chart.y, is_down=has_names),
        "showlegend": False,
    }
    if shapes:
        layout["shapes"] = shapes
    if any(isinstance(layer, Bars) for layer in chart.layers):
        layout["barmode"] = "group"
    return {"data": traces, "layout": layout}


def _text(text: str) -> str:
    """Return a text that plotly shows as it is: on one line, without markup."""
    return html.escape(printable(text), quote=False)


def _number(value: float | None) -> float | None:
    """Return a number with as many digits as can be seen."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _values(axis: Axis, values: tuple[float, ...]) -> list[Any]:
    if axis.unit is Unit.DATE:
        return [f"{date_of(value):%Y-%m-%d %H:%M:%S}" for value in values]
    if axis.floor is not None:
        return [_number(max(value, axis.floor)) for value in values]
    return [_number(value) for value in values]


def _axis(axis: Axis, *, is_down: bool = False) -> dict[str, Any]:
    """Return an axis; the script sets the ticks of durations."""
    found: dict[str, Any] = {"title": {"text": _text(axis.label)}, "automargin": is_down}
    if axis.names:
        found |= {
            "tickmode": "array",
            "tickvals": list(range(len(axis.names))),
            "ticktext": [_text(shortened(name, _LONGEST)) for name in axis.names],
            "range": [len(axis.names) - 0.5, -0.5] if is_down else [-0.5, len(axis.names) - 0.5],
            "showgrid": False,
            "zeroline": False,
        }
    elif axis.unit is Unit.DATE:
        found["type"] = "date"
    elif axis.is_log:
        found["type"] = "log"
    else:
        found["type"] = "linear"
        if axis.has_zero:
            found["rangemode"] = "tozero"
    if axis.span is not None:
        found["range"] = list(axis.span)
    if axis.unit is Unit.SHARE:
        found["tickformat"] = ".0%"
    elif axis.unit is Unit.NUMBER and not axis.names:
        found |= {"tickformat": ",.6~g"}
    return found


def _log_range(chart: Chart) -> dict[str, Any]:
    """Return the range of a logarithmic x axis with a floor: what is below it is drawn on it."""
    axis = chart.x
    if axis.floor is None or not axis.is_log:
        return {}
    values = [axis.floor]
    for layer in chart.layers:
        if isinstance(layer, Line):
            values += layer.x
        elif isinstance(layer, Box):
            values += (*layer.quantiles, layer.mean)
    shown = [max(value, axis.floor) for value in values[1:]] or values
    low, high = math.log10(min(shown)), math.log10(max(shown))
    aside = max(0.03 * (high - low), 0.05)
    return {"range": [low - aside, high + aside]}


def _trace(layer: Line | Bars | Box | Heat, chart: Chart) -> dict[str, Any]:
    match layer:
        case Line():
            return _line(layer, chart)
        case Bars():
            return _bars(layer)
        case Box():
            return _box(layer, chart)
        case Heat():
            return _heat(layer, chart)


def _line(line: Line, chart: Chart) -> dict[str, Any]:
    symbol, dash = SYMBOLS[line.series % len(SYMBOLS)][1], DASHES[line.series % len(DASHES)][1]
    found: dict[str, Any] = {
        "type": "scatter",
        "name": _text(line.name),
        "meta": {"series": line.series},
        "x": _values(chart.x, line.x),
        "y": _values(chart.y, line.y),
        "mode": "lines+markers" if line.is_joined else "markers",
        "marker": {"symbol": symbol, "size": 7 if line.has_marks else 5},
    }
    if line.is_joined:
        found["line"] = {"dash": dash, "width": 2, **({"shape": "hv"} if line.is_step else {})}
        if not line.has_marks:
            found["marker"]["maxdisplayed"] = _FEW_MARKS
    if any(line.half_widths):
        along = "error_x" if line.is_flat else "error_y"
        found[along] = {
            "type": "data",
            "array": [_number(width or 0.0) for width in line.half_widths],
            "thickness": 1.5,
            "width": 4,
        }
    if line.texts:
        found["customdata"] = [_text(text) for text in line.texts]
    return found


def _bars(bars: Bars) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "bar",
        "name": _text(bars.name),
        "meta": {"series": bars.series},
        "x": [_number(value) for value in bars.values],
        "y": list(bars.at),
        "orientation": "h",
    }
    if any(bars.half_widths):
        found["error_x"] = {"type": "data", "array": [_number(width or 0.0) for width in bars.half_widths]}
    return found


def _box(box: Box, chart: Chart) -> dict[str, Any]:
    low, first, median, third, high = _values(chart.x, box.quantiles)
    return {
        "type": "box",
        "orientation": "h",
        "name": _text(chart.y.names[round(box.at)]),
        "meta": {"series": 0, "count": box.count},
        "y": [box.at],
        "q1": [first],
        "median": [median],
        "q3": [third],
        "lowerfence": [low],
        "upperfence": [high],
        "mean": _values(chart.x, (box.mean,)),
        "boxmean": True,
        "width": 0.56,
        "line": {"width": 1.5},
    }


def _heat(heat: Heat, chart: Chart) -> dict[str, Any]:
    """Return a field of cells; by orders of magnitude the colours are those of the logarithms."""
    import numpy as np

    values = [[None if value is None else float(value) for value in row] for row in heat.values]
    shown = values
    if heat.is_log:
        floor = chart.x.floor or 1e-9
        shown = [
            [None if value is None else float(np.log10(max(value, floor, 1e-9))) for value in row] for row in values
        ]
    return {
        "type": "heatmap",
        "x": list(range(len(chart.x.names))),
        "y": list(range(len(chart.y.names))),
        "z": [[_number(value) for value in row] for row in shown],
        "text": [[_text(text) for text in row] for row in heat.texts],
        "texttemplate": "%{text}",
        "name": _text(heat.label),
        "meta": {"series": 0},
        "colorscale": "Cividis",
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
