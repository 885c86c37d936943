"""Charts of the benchmarks as SVG: lines with logarithmic axes, and dots of ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpsched.charts import Axis, Chart, Line, ReferenceLine, picture

__all__ = ["line_chart", "ratio_chart"]

Points = Sequence[tuple[float, float]]


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points], *, is_step: bool = False) -> str:
    """Return an SVG document with one line for each series of positive (x, y) points; both axes are logarithmic.

    With `is_step` each y holds up to the next x.
    """
    axes = (Axis(label=x_label, is_log=True), Axis(label=y_label, is_log=True))
    return _svg(title, axes, _lines(series, is_joined=True, is_step=is_step), ())


def ratio_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one dot for each (x, y) of the series of ratios, and lines at 1."""
    ones = (ReferenceLine(at=1), ReferenceLine(at=1, is_vertical=True))
    return _svg(title, (Axis(label=x_label), Axis(label=y_label)), _lines(series, is_joined=False), ones)


def _lines(series: Mapping[str, Points], *, is_joined: bool, is_step: bool = False) -> tuple[Line, ...]:
    """Return a line, or points, for each series."""
    return tuple(
        Line(
            name=name,
            x=tuple(x for x, _ in points),
            y=tuple(y for _, y in points),
            series=place,
            is_joined=is_joined,
            is_step=is_step,
            has_marks=True,
        )
        for place, (name, points) in enumerate(series.items())
    )


def _svg(title: str, axes: tuple[Axis, Axis], lines: tuple[Line, ...], rules: tuple[ReferenceLine, ...]) -> str:
    """Return a chart as an SVG document."""
    return picture(Chart(title=title, x=axes[0], y=axes[1], layers=(*rules, *lines)), "svg").decode()
