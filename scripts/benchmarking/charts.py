"""Small charts as SVG, lines with logarithmic axes and dots of ratios: no library needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

__all__ = ["line_chart", "ratio_chart"]

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 40, 92
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")

Points = Sequence[tuple[float, float]]


class _Axis:
    """Places values of one logarithmic axis between two ends, in pixels."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.ticks = _ticks(min(values), max(values))
        self._low, self._high = (math.log10(tick) for tick in (self.ticks[0], self.ticks[-1]))
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Return where a value lies."""
        return self._begin + (self._end - self._begin) * (math.log10(value) - self._low) / (self._high - self._low)


def _ticks(low: float, high: float) -> list[float]:
    """Return the values 1, 2, 5, 10, 20, ... from the last one below the data to the first one above."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    steps = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    begin = max(place for place, step in enumerate(steps) if step <= low)
    end = min(place for place, step in enumerate(steps) if step >= high and place > begin)
    return steps[begin : end + 1]


class _EvenAxis:
    """Places values of one axis between two ends, in pixels; ticks at tenths."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        first = math.floor(10 * min(values))
        last = max(first + 1, math.ceil(10 * max(values)))
        self.ticks = [tenth / 10 for tenth in range(first, last + 1)]
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Return where a value lies."""
        low, high = self.ticks[0], self.ticks[-1]
        return self._begin + (self._end - self._begin) * (value - low) / (high - low)


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one line for each of up to four series of positive (x, y) points."""
    points = [point for line in series.values() for point in line]
    x = _Axis([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _Axis([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = _frame(title, x_label, y_label, x, y)
    for line, colour in zip(series.values(), COLOURS, strict=False):
        path = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.extend(f'<circle cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="3" fill="{colour}"/>' for a, b in line)
    return "\n".join([*parts, *_legend(series), "</svg>", ""])


def ratio_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one dot for each (x, y) of up to four series of ratios, and lines at 1."""
    points = [(1.0, 1.0), *(point for dots in series.values() for point in dots)]
    x = _EvenAxis([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _EvenAxis([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = _frame(title, x_label, y_label, x, y)
    parts.append(_line(x.place(1), TOP, x.place(1), HEIGHT - BOTTOM, "#222"))
    parts.append(_line(LEFT, y.place(1), WIDTH - RIGHT, y.place(1), "#222"))
    for dots, colour in zip(series.values(), COLOURS, strict=False):
        path = "".join(f"M{x.place(a):.1f},{y.place(b):.1f}h0" for a, b in dots)
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="3" stroke-linecap="round" opacity="0.5"/>')
    return "\n".join([*parts, *_legend(series), "</svg>", ""])


def _frame(title: str, x_label: str, y_label: str, x: _Axis | _EvenAxis, y: _Axis | _EvenAxis) -> list[str]:
    """Return the beginning of a document: title, ticks and labels of both axes."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 22, title, 'font-size="14" font-weight="bold"'),
        *(_line(x.place(tick), TOP, x.place(tick), HEIGHT - BOTTOM) for tick in x.ticks),
        *(_line(LEFT, y.place(tick), WIDTH - RIGHT, y.place(tick)) for tick in y.ticks),
        *(_text(x.place(tick), HEIGHT - BOTTOM + 15, f"{tick:,g}", 'text-anchor="middle"') for tick in x.ticks),
        *(_text(LEFT - 6, y.place(tick) + 4, f"{tick:,g}", 'text-anchor="end"') for tick in y.ticks),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 32, x_label, 'text-anchor="middle"'),
        _text(
            0, 0, y_label, f'text-anchor="middle" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'
        ),
    ]


def _legend(series: Iterable[str]) -> Iterator[str]:
    """Yield the names of the series, each beside its colour."""
    for place, (name, colour) in enumerate(zip(series, COLOURS, strict=False)):
        left, top = LEFT + (place % 2) * 240, HEIGHT - 34 + (place // 2) * 18
        yield f'<rect x="{left}" y="{top - 6}" width="16" height="3" fill="{colour}"/>'
        yield _text(left + 22, top, name)


def _text(left: float, top: float, text: str, attributes: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" {attributes}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#ddd") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
