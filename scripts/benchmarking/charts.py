"""Small line charts with logarithmic axes, as SVG: no library needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["line_chart"]

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


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one line for each of up to four series of positive (x, y) points."""
    points = [point for line in series.values() for point in line]
    x = _Axis([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _Axis([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = [
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
    for place, ((name, line), colour) in enumerate(zip(series.items(), COLOURS, strict=False)):
        path = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.extend(f'<circle cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="3" fill="{colour}"/>' for a, b in line)
        left, top = LEFT + (place % 2) * 240, HEIGHT - 34 + (place // 2) * 18
        parts.append(f'<rect x="{left}" y="{top - 6}" width="16" height="3" fill="{colour}"/>')
        parts.append(_text(left + 22, top, name))
    return "\n".join([*parts, "</svg>", ""])


def _text(left: float, top: float, text: str, attributes: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" {attributes}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'
