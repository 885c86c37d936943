"""Charts of the benchmarks as SVG: lines with logarithmic axes, and dots of ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpsched.bench.charts import COLOURS, new_chart, svg_of

__all__ = ["line_chart", "ratio_chart"]

Points = Sequence[tuple[float, float]]


def line_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one line for each series of positive (x, y) points; both axes are logarithmic."""
    figure, axes = new_chart(title, x_label, y_label)
    drawn = {}
    for place, (name, points) in enumerate(series.items()):
        at, values = zip(*points, strict=True)
        (drawn[name],) = axes.plot(at, values, marker="o", markersize=4, color=COLOURS[place % len(COLOURS)])
        drawn[name].set_gid(f"line-{place}")
    formatter = axes.xaxis.get_major_formatter()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(formatter)
        axis.set_minor_formatter("")
    return svg_of(figure, drawn)


def ratio_chart(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return an SVG document with one dot for each (x, y) of the series of ratios, and lines at 1."""
    figure, axes = new_chart(title, x_label, y_label)
    axes.axhline(1, color="#222222", linewidth=1)
    axes.axvline(1, color="#222222", linewidth=1)
    drawn = {}
    for place, (name, points) in enumerate(series.items()):
        at, values = zip(*points, strict=True)
        (drawn[name],) = axes.plot(at, values, "o", markersize=3, alpha=0.5, color=COLOURS[place % len(COLOURS)])
        drawn[name].set_gid(f"line-{place}")
    return svg_of(figure, drawn)
