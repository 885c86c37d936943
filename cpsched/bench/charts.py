"""The charts of a campaign as SVG, bars or lines with their confidence intervals: no library needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from cpsched.metrics import MeanInterval

__all__ = ["bar_chart", "line_chart"]

WIDTH, PLOT_HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 78, 20, 40, 46
LEGEND_LINE, LEGEND_COLUMNS = 18, 3
#: Colours that the colour-blind tell apart (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
#: Patterns of lines, for more series than there are colours.
DASHES = ("", "6 3", "2 3", "8 3 2 3")


class _Axis:
    """Places values of one axis between two ends, in pixels; the ticks are round numbers."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        step = _round_step((high - low) or abs(high) or 1)
        first, last = math.floor(low / step), math.ceil(high / step)
        last = max(last, first + 1)
        self.ticks = [tick * step for tick in range(first, last + 1)]
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Return where a value lies."""
        low, high = self.ticks[0], self.ticks[-1]
        return self._begin + (self._end - self._begin) * (value - low) / (high - low)


def _round_step(span: float) -> float:
    """Return the 1, 2 or 5 times a power of ten that cuts a span into three to eight parts."""
    power = 10.0 ** math.floor(math.log10(span / 3))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= span / 3)


def bar_chart(title: str, label: str, bars: Mapping[str, MeanInterval]) -> str:
    """Return an SVG document with one bar for each name, from 0, at least one."""
    y = _value_axis(bars.values())
    slot = (WIDTH - RIGHT - LEFT) / len(bars)
    parts = _frame(title, label, y, legend_lines=_legend_lines(len(bars)))
    for place, (interval, (colour, _)) in enumerate(zip(bars.values(), _styles(len(bars)), strict=True)):
        left, width = LEFT + slot * (place + 0.15), slot * 0.7
        top, bottom = sorted((y.place(interval.mean), y.place(0)))
        size = f'width="{width:.1f}" height="{bottom - top:.1f}"'
        parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{colour}"/>')
        parts.extend(_whisker(left + width / 2, interval, y))
    return "\n".join([*parts, *_legend(bars), "</svg>", ""])


def line_chart(title: str, x_label: str, label: str, series: Mapping[str, Sequence[tuple[float, MeanInterval]]]) -> str:
    """Return an SVG document with one line for each series of (x, mean) points, at least one point in all."""
    points = [point for line in series.values() for point in line]
    x = _Axis(min(at for at, _ in points), max(at for at, _ in points), LEFT, WIDTH - RIGHT)
    y = _value_axis(interval for _, interval in points)
    parts = _frame(title, label, y, legend_lines=_legend_lines(len(series)))
    bottom = TOP + PLOT_HEIGHT
    for tick in x.ticks:
        parts.append(_line(x.place(tick), TOP, x.place(tick), bottom))
        parts.append(_text(x.place(tick), bottom + 15, f"{tick:,.6g}", 'text-anchor="middle"'))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 32, x_label, 'text-anchor="middle"'))
    for line, (colour, dash) in zip(series.values(), _styles(len(series)), strict=True):
        path = " ".join(f"{x.place(at):.1f},{y.place(interval.mean):.1f}" for at, interval in line)
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{path}" fill="none" {style}/>')
        for at, interval in line:
            parts.append(f'<circle cx="{x.place(at):.1f}" cy="{y.place(interval.mean):.1f}" r="3" fill="{colour}"/>')
            parts.extend(_whisker(x.place(at), interval, y, colour))
    return "\n".join([*parts, *_legend(series), "</svg>", ""])


def _value_axis(intervals: Iterable[MeanInterval]) -> _Axis:
    """Return the vertical axis: it has 0 on it, and all ends of intervals."""
    ends = [0.0]
    for interval in intervals:
        half = interval.half_width or 0.0
        ends += [interval.mean - half, interval.mean + half]
    return _Axis(min(ends), max(ends), TOP + PLOT_HEIGHT, TOP)


def _styles(count: int) -> list[tuple[str, str]]:
    """Return as many pairs of colour and dashes, which differ as long as they can."""
    return [(COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]) for place in range(count)]


def _frame(title: str, label: str, y: _Axis, *, legend_lines: int) -> list[str]:
    """Return the beginning of a document: title, and the vertical axis with its lines."""
    height = TOP + PLOT_HEIGHT + BOTTOM + legend_lines * LEGEND_LINE
    middle = TOP + PLOT_HEIGHT / 2
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        _text(LEFT, 22, title, 'font-size="14" font-weight="bold"'),
        *(_line(LEFT, y.place(tick), WIDTH - RIGHT, y.place(tick)) for tick in y.ticks),
        *(_text(LEFT - 6, y.place(tick) + 4, f"{tick:,.6g}", 'text-anchor="end"') for tick in y.ticks),
        _text(0, 0, label, f'text-anchor="middle" transform="translate(14 {middle:.1f}) rotate(-90)"'),
    ]


def _whisker(left: float, interval: MeanInterval, y: _Axis, colour: str = "#222") -> Iterator[str]:
    """Yield the confidence interval of a mean as a bracket."""
    if not interval.half_width:
        return
    low, high = (y.place(interval.mean + sign * interval.half_width) for sign in (-1, 1))
    yield f'<path d="M{left - 4:.1f},{low:.1f}h8m-4,0V{high:.1f}m-4,0h8" stroke="{colour}" fill="none"/>'


def _legend_lines(count: int) -> int:
    return math.ceil(count / LEGEND_COLUMNS)


def _legend(names: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the series, each beside its colour."""
    column = (WIDTH - RIGHT - LEFT) / LEGEND_COLUMNS
    for place, (name, (colour, dash)) in enumerate(zip(names, _styles(len(names)), strict=True)):
        left = LEFT + (place % LEGEND_COLUMNS) * column
        top = TOP + PLOT_HEIGHT + BOTTOM + 4 + (place // LEGEND_COLUMNS) * LEGEND_LINE
        style = f'stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"'
        yield f'<path d="M{left:.1f},{top - 4:.1f}h20" {style}/>'
        yield _text(left + 26, top, name)


def _text(left: float, top: float, text: str, attributes: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" {attributes}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'
