"""Charts of the benchmarks as SVG: lines with logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpsched.charts import Axis, Chart, Line, picture

__all__ = ["line_chart"]

Points = Sequence[tuple[float, float]]


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points], *, is_step: bool = False) -> str:
    """Return an SVG document with one line for each series of positive (x, y) points; both axes are logarithmic.

    With `is_step` each y holds up to the next x.
    """
    lines = tuple(
        Line(
            name=name,
            x=tuple(x for x, _ in points),
            y=tuple(y for _, y in points),
            series=place,
            is_step=is_step,
            has_marks=True,
        )
        for place, (name, points) in enumerate(series.items())
    )
    x, y = Axis(label=x_label, is_log=True), Axis(label=y_label, is_log=True)
    return picture(Chart(title=title, x=x, y=y, layers=lines), "svg").decode()
