"""Which chart a campaign's plot becomes: bars for each workload, or lines over what was changed in it."""

from collections.abc import Iterator
from dataclasses import replace

from cpsched.charts import Axis, Bars, Chart, Line
from cpsched.lab.bench.campaign import Workload
from cpsched.lab.bench.campaign_model import Plot
from cpsched.lab.bench.figures import words_of
from cpsched.lab.bench.results import Results, mean_of
from cpsched.metrics import MeanInterval


def charts_of(results: Results, plot: Plot) -> Iterator[tuple[str, Chart]]:
    """Yield the file names and charts of a plot; what has no figure at all has no chart."""
    if plot.over is None:
        yield from _bars(results, plot)
    else:
        yield from _lines(results, plot, plot.over)


def _bars(results: Results, plot: Plot) -> Iterator[tuple[str, Chart]]:
    """Yield one chart for each workload, with a bar for each policy, from 0."""
    workloads = results.campaign.samples
    for number, workload in enumerate(workloads, start=1):
        means = {
            contender.label: mean
            for contender in results.campaign.contenders
            if (mean := _mean(results, workload, contender.label, plot)) is not None
        }
        if means:
            bars = tuple(
                Bars(name=name, at=(place,), values=(one.mean,), half_widths=(one.half_width,), series=place)
                for place, (name, one) in enumerate(means.items())
            )
            axis = Axis(label=words_of(plot.figure), has_zero=True)
            title = _title(plot, workload.label)
            chart = Chart(title=title, x=axis, y=Axis(label="", names=tuple(means)), layers=bars)
            yield _file_name(plot, number, len(workloads)), chart


def _lines(results: Results, plot: Plot, over: str) -> Iterator[tuple[str, Chart]]:
    """Yield one chart for each group of workloads that differ in nothing else, with a line for each policy."""
    groups: dict[str, list[Workload]] = {}
    for workload in results.campaign.samples:
        if getattr(workload, over) is not None:
            # without what is on the axis
            rest = replace(workload, load=None) if over == "load" else replace(workload, malleable=None)
            groups.setdefault(rest.label, []).append(workload)
    for number, (label, workloads) in enumerate(groups.items(), start=1):
        series: dict[str, list[tuple[float, MeanInterval]]] = {}
        for contender in results.campaign.contenders:
            for workload in sorted(workloads, key=lambda one: float(getattr(one, over))):
                mean = _mean(results, workload, contender.label, plot)
                if mean is not None:
                    series.setdefault(contender.label, []).append((getattr(workload, over), mean))
        if series:
            lines = tuple(
                Line(
                    name=name,
                    x=tuple(x for x, _ in points),
                    y=tuple(one.mean for _, one in points),
                    half_widths=tuple(one.half_width for _, one in points),
                    series=place,
                    has_marks=True,
                )
                for place, (name, points) in enumerate(series.items())
            )
            axis = Axis(label=words_of(plot.figure), has_zero=True)
            chart = Chart(title=_title(plot, label), x=Axis(label=over), y=axis, layers=lines)
            yield _file_name(plot, number, len(groups)), chart


def _mean(results: Results, workload: Workload, contender: str, plot: Plot) -> MeanInterval | None:
    return mean_of(results.cells(workload.label, contender), plot.figure)


def _title(plot: Plot, label: str) -> str:
    return f"{plot.heading}: {label}"


def _file_name(plot: Plot, number: int, count: int) -> str:
    """Return a name with a number where a plot has several charts, since labels may hold any letters."""
    return f"{plot.name}-{number}.svg" if count > 1 else f"{plot.name}.svg"
