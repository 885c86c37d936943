"""Distributions as charts: boxes and shares of jobs (ECDF); and what changes over time: step functions, in bins."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from cpsched.charts import Axis, Box, Chart, Line, ReferenceLine, Table, Unit, duration, unit_text

#: A bit more than all: what an axis of shares shows.
SHARES = (0.0, 1.05)


#: Points of a curve that a page keeps: more cannot be seen.
MOST_POINTS = 200
#: Lengths of bins, in seconds; longer ones are whole days.
_WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_BOX = (5, 25, 50, 75, 95)
_TABLE = (10, 25, 50, 75, 90, 95, 99)


def box_chart(title: str, label: str, axis: Axis, groups: Mapping[str, NDArray[np.float64]], *, by: str) -> Chart:
    """Return a box for each group that has values.

    `label`: what a value is: ``wait``. `groups`: the values by the name of the group. `by`: what a group is: ``queue``.
    """
    present = {name: values for name, values in groups.items() if values.size}
    boxes, rows = [], []
    for place, (name, values) in enumerate(present.items()):
        low, first, median, third, high = np.percentile(values, _BOX).tolist()
        mean = float(values.mean())
        boxes.append(Box(at=place, quantiles=(low, first, median, third, high), mean=mean, count=values.size))
        numbers = (low, first, median, third, high, mean, float(values.max()))
        rows.append((name, f"{values.size:,}", *(unit_text(axis.unit, number) for number in numbers)))
    headings = (by, "jobs", "5%", "25%", "median", "75%", "95%", "mean", "longest" if label == "wait" else "most")
    return Chart(
        title=title,
        x=axis,
        y=Axis(label="", names=tuple(present)),
        layers=tuple(boxes),
        about="Box: the middle half of the jobs; line: the median; whiskers: 5% and 95%; dashes or dot: the mean.",
        tables=(Table(headings=headings, rows=tuple(rows)),),
    )


def ecdf_chart(title: str, axis: Axis, groups: Mapping[str, NDArray[np.float64]], *, by: str, what: str) -> Chart:
    """Return a curve for each group that has values: the share of its jobs (`what`) with at most that value."""
    present = {name: values for name, values in groups.items() if values.size}
    lines, rows = [], []
    for place, (name, values) in enumerate(present.items()):
        x, y = ecdf_points(values)
        lines.append(Line(name=name, x=x, y=y, series=place, is_step=True))
        found = np.percentile(values, _TABLE, method="inverted_cdf").tolist()
        rows.append((name, f"{values.size:,}", *(unit_text(axis.unit, number) for number in found)))
    return Chart(
        title=title,
        x=axis,
        y=Axis(label=f"share of the {what}", unit=Unit.SHARE, span=SHARES),
        layers=tuple(lines),
        about=f"The share of the {what} that have at most this value: the further left and up, the better.",
        tables=(Table(headings=(by, what, *(f"{share}%" for share in _TABLE)), rows=tuple(rows)),),
    )


def ecdf_points(values: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return points of the empirical distribution: values, and for each the share of all that are not above it.

    Each point is exact; of more than `MOST_POINTS` different values so many are there, evenly by rank, the least and
    the largest among them.
    """
    different, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / values.size
    if different.size > MOST_POINTS:
        wanted = np.linspace(shares[0], 1.0, MOST_POINTS)
        keep = np.unique(np.append(np.searchsorted(shares, wanted - 1e-12), [0, different.size - 1]))
        different, shares = different[keep], shares[keep]
    return tuple(different.tolist()), tuple(shares.tolist())


def clock_times(
    times: Sequence[float], origin: int, local_time: Callable[[float], datetime | None]
) -> tuple[float, ...]:
    """Return seconds as coordinates of an axis: of dates where there is a calendar, else from `origin` on."""
    moments = map(local_time, times)
    return tuple(
        time - origin if moment is None else moment.replace(tzinfo=UTC).timestamp()
        for time, moment in zip(times, moments, strict=True)
    )


def use_chart(title: str, axis: Axis, lines: Sequence[Line], about: str, *tables: Table) -> Chart:
    """Return the shares of a machine in use over time."""
    return Chart(
        title=title,
        x=axis,
        y=Axis(label="share in use", unit=Unit.SHARE, span=SHARES),
        layers=(*lines, ReferenceLine(at=1.0)),
        about=about,
        tables=tables,
        is_wide=True,
    )


def line_table(axis: Axis, lines: Sequence[Line], unit: Unit, title: str = "") -> Table:
    """Return lines as a table, a row for each time at which one of them has a point."""
    times = sorted({time for line in lines for time in line.x})
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    rows = tuple(
        (unit_text(axis.unit, time), *(unit_text(unit, one[time]) if time in one else "" for one in values))
        for time in times
    )
    return Table(title=title, headings=("time", *(line.name for line in lines)), rows=rows)


def binning(width: int) -> str:
    """Return in words how a step function is drawn; `width`: as `step_points` has it."""
    return f"Means over {duration(width)} each." if width else "Every change is shown."


def step_points(
    times: Sequence[int] | NDArray[np.int64], amounts: Sequence[int] | NDArray[np.int64], begin: int, end: int
) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """Return a step function over ``[begin, end)``: as it is, or as means over bins where it has many steps.

    Returns (x, y, width): ``y[i]`` holds from ``x[i]`` on; the last x is `end`, with the value before it. `width`: the
    seconds of a bin; 0: the function is as it is.
    """
    time, level = np.asarray(times, dtype=np.int64), np.asarray(amounts, dtype=np.float64)
    inside = (time > begin) & (time < end)
    if np.count_nonzero(inside) < MOST_POINTS:
        before = level[np.searchsorted(time, begin, side="right") - 1] if time.size and time[0] <= begin else 0.0
        x = [begin, *time[inside].tolist(), end]
        y = [float(before), *level[inside].tolist()]
        return tuple(map(float, x)), (*y, y[-1]), 0
    edges, means, _ = binned(time, level, begin, end)
    width = int(edges[1] - edges[0])
    return tuple(edges.tolist()), (*means.tolist(), float(means[-1])), width


def binned(
    times: NDArray[np.int64], amounts: NDArray[np.float64], begin: int, end: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return a step function over ``[begin, end)`` in at most `MOST_POINTS` bins of a round length.

    `times`, `amounts`: ``amounts[i]`` holds in ``[times[i], times[i + 1])``, the last one without end; 0 before the
    first time. `begin`, `end`: seconds, begin < end.

    Returns the edges of the bins, the last one is `end`, and the mean and the largest of the function in each bin.
    """
    least = (end - begin) / MOST_POINTS
    width = next((width for width in _WIDTHS if width >= least), 86400 * -int(-least // 86400))
    edges = np.append(np.arange(begin, end, width), end)
    time = np.concatenate([[min(begin, *times[:1].tolist())], times]).astype(np.float64)
    level = np.concatenate([[0.0], amounts])
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(time))])
    at = np.searchsorted(time, edges, side="right") - 1
    until = area[at] + level[at] * (edges - time[at])
    means = np.diff(until) / np.diff(edges)
    # the largest value: that at the left edge, or of a change inside
    largest = level[at[:-1]].copy()
    inside = (time > begin) & (time < end)
    places = np.searchsorted(edges, time[inside], side="right") - 1
    np.maximum.at(largest, places, level[inside])
    return edges, means, largest
