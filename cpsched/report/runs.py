"""A report on simulations of one workload: waits and slowdowns, the machine over time, and the scheduler's own time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from cpsched.charts import Axis, Chart, Heat, Line, Table, Unit, duration, unit_text
from cpsched.errors import ReportError
from cpsched.metrics import BOUND, RunsSummary, SimulatedRun, load_over_time, unserved_rank
from cpsched.report.distributions import (
    binned,
    binning,
    box_chart,
    clock_times,
    ecdf_chart,
    line_table,
    step_points,
    use_chart,
)
from cpsched.report.report import Report, Section
from cpsched.report.run_groups import by_queue, by_size, by_user, cells_of
from cpsched.report.tables import run_figures

_WAIT = Axis(label="wait (logarithmic)", unit=Unit.SECONDS, is_log=True, floor=1.0)
_SLOWDOWN = Axis(label="bounded slowdown (logarithmic)", is_log=True, floor=1.0)
_DECISION = Axis(label="time of a decision (logarithmic)", unit=Unit.SECONDS, is_log=True, floor=1e-6)


def run_report(runs: Sequence[SimulatedRun]) -> Report:
    """Return a report on one simulation, or on several of the same workload, which are compared.

    Raises `ReportError` if they are of different workloads, or have no job.
    """
    workloads = {run.workload for run in runs}
    if len(workloads) != 1:
        names = ", ".join(sorted(map(repr, workloads))) or "none"
        raise ReportError(f"Expected simulations of one workload, got {names}")
    if not all(len(run.runs) for run in runs):
        raise ReportError("Expected simulations with jobs, got one without any")
    summaries = {label: run.summary() for label, run in _labelled(runs).items()}
    sections: list[Section] = []
    if len(runs) > 1:
        sections += _compared(_labelled(runs), summaries)
    for label, run in _labelled(runs).items():
        sections += _sections(run, "" if len(runs) == 1 else f"{label}: ")
    sentences = [_sentence(label, run, summaries[label]) for label, run in _labelled(runs).items()]
    if len(runs) > 1:
        sentences.insert(0, _verdict(summaries))
    first = next(iter(summaries.values()))
    return Report(
        kind="Simulation" if len(runs) == 1 else "Simulations",
        name=f"{runs[0].workload}, {runs[0].policy}" if len(runs) == 1 else runs[0].workload,
        sentences=tuple(sentences),
        figures=tuple(run_figures(first, seconds=duration)) if len(runs) == 1 else (),
        sections=tuple(sections),
    )


def _labelled(runs: Sequence[SimulatedRun]) -> dict[str, SimulatedRun]:
    """Return the simulations by their policies; a second one of the same name has a number."""
    found: dict[str, SimulatedRun] = {}
    for run in runs:
        label, number = run.policy, 2
        while label in found:
            label, number = f"{run.policy} ({number})", number + 1
        found[label] = run
    return found


def _sentence(label: str, run: SimulatedRun, summary: RunsSummary) -> str:
    total, words = summary.total, []
    over = total.completed + total.killed
    words.append(f"{over:,} of {total.jobs:,} jobs ran under {label}.")
    if not run.is_whole:
        words.append("The simulation was interrupted: all figures are those up to then.")
    if total.wait is not None and total.bounded_slowdown is not None:
        wait = total.wait
        half = f"waited for at most {unit_text(Unit.SECONDS, wait.median)}" if wait.median >= 1 else "started at once"
        words.append(
            f"Half of them {half}, one in twenty waited for longer than {unit_text(Unit.SECONDS, wait.p95)}, the "
            f"longest for {duration(wait.max)}."
        )
    if run.capacity.get("cores"):
        words.append(
            f"On average {summary.allocated:.0%} of the cores were in use, and {summary.mean_queue_length:,.1f} jobs "
            "waited."
        )
    return " ".join((*words, *(f"{remark}." for remark in run.remarks)))


def _verdict(summaries: Mapping[str, RunsSummary]) -> str:
    """Return which policy has the least waits and slowdowns, of those that serve the most jobs."""
    ranks = {label: unserved_rank([asdict(one.total)]) for label, one in summaries.items()}
    behind = [label for label, rank in ranks.items() if rank > min(ranks.values())]
    parts = []
    for name, of in (
        ("mean wait", {label: one.total.wait for label, one in summaries.items()}),
        ("mean bounded slowdown", {label: one.total.bounded_slowdown for label, one in summaries.items()}),
    ):
        means = {label: value.mean for label, value in of.items() if value is not None}
        if means:
            best = min(means, key=lambda label: (ranks[label], means[label]))
            parts.append(f"the least {name} is that of {best}")
    if not parts:
        return "No job has run."
    words = f"{len(summaries)} policies on the same jobs: {', '.join(parts)}."
    if behind:
        more = "leaves" if len(behind) == 1 else "leave"
        words += f" {', '.join(behind)} {more} more jobs unfinished, killed or starved: not compared by these figures."
    return words


def _compared(runs: Mapping[str, SimulatedRun], summaries: Mapping[str, RunsSummary]) -> Iterator[Section]:
    yield figures_section(summaries)
    yield side_by_side("Policies side by side", runs, {label: _over(run) for label, run in runs.items()}, by="policy")
    first = next(iter(runs))
    others = [label for label in runs if label != first]
    yield Section(
        title=f"Beside {first}, by run time and nodes",
        charts=tuple(_ratio_chart(runs[first], runs[label], first, label) for label in others),
    )


def figures_section(summaries: Mapping[str, RunsSummary]) -> Section:
    """Return the figures of several simulations, a column each."""
    columns = [dict(run_figures(summary, seconds=duration)) for summary in summaries.values()]
    rows = tuple((name, *(column[name] for column in columns)) for name in columns[0])
    return Section(title="Figures", tables=(Table(headings=("figure", *summaries), rows=rows),))


def side_by_side(
    title: str, runs: Mapping[str, SimulatedRun], jobs: Mapping[str, NDArray[np.int64]], *, by: str
) -> Section:
    """Return the waits and slowdowns of the jobs that count in each simulation, and the machine over time.

    `jobs`: their numbers; each is over. `by`: in which the simulations differ, ``policy``.
    """
    waits = {label: _waits(run, jobs[label]) for label, run in runs.items()}
    slowdowns = {label: _slowdowns(run, jobs[label]) for label, run in runs.items()}
    return Section(
        title=title,
        charts=(
            ecdf_chart("Waits of all jobs", _WAIT, waits, by=by, what="jobs"),
            ecdf_chart("Bounded slowdowns of all jobs", _SLOWDOWN, slowdowns, by=by, what="jobs"),
            box_chart(f"Waits by {by}", "wait", _WAIT, waits, by=by),
            box_chart(f"Bounded slowdowns by {by}", "slowdown", _SLOWDOWN, slowdowns, by=by),
            _queue_chart(runs),
            *_use_charts(runs, is_compared=True),
        ),
    )


def _ratio_chart(base: SimulatedRun, run: SimulatedRun, base_label: str, label: str) -> Chart:
    """Return the ratio of mean bounded slowdowns for each class of jobs (SD-13, SD-14)."""
    rows, columns, cells = cells_of(run.runs, _over(run))
    base_rows, base_columns, base_cells = cells_of(base.runs, _over(base))
    theirs_at = {
        (row, column): cell
        for row, line in zip(base_rows, base_cells, strict=True)
        for column, cell in zip(base_columns, line, strict=True)
    }
    values: list[tuple[float | None, ...]] = []
    texts: list[tuple[str, ...]] = []
    for row, line in zip(rows, cells, strict=True):
        found: list[float | None] = []
        for column, cell in zip(columns, line, strict=True):
            theirs = theirs_at.get((row, column))
            if theirs is None or not theirs.size or not cell.size:
                found.append(None)
                continue
            found.append(float(_slowdowns(run, cell).mean() / _slowdowns(base, theirs).mean()))
        values.append(tuple(found))
        texts.append(tuple("" if value is None else f"{value:.2f}" for value in found))
    return _heat(
        f"Mean bounded slowdown of {label} / that of {base_label}",
        rows,
        columns,
        Heat(values=tuple(values), texts=tuple(texts), label="ratio", is_log=True),
        f"Below 1 {label} is better for jobs of that class. Bright cells are large ratios.",
        floor=1e-3,
    )


def _sections(run: SimulatedRun, prefix: str) -> Iterator[Section]:
    jobs = _over(run)
    if jobs.size:
        yield _distribution_section(run, jobs, prefix, title="Waits", what="wait")
        yield _distribution_section(run, jobs, prefix, title="Bounded slowdowns", what="slowdown")
    yield Section(
        title=f"{prefix}The machine over time",
        charts=(*_use_charts({run.policy: run}, is_compared=False), _queue_chart({run.policy: run})),
    )
    if jobs.size:
        yield Section(
            title=f"{prefix}Run time and nodes",
            text="Which jobs wait, and which suffer: a cell for each class of run time (on the full request) and "
            "nodes.",
            charts=tuple(_class_charts(run, jobs)),
        )
    if (seconds := run.decision_seconds).size:
        chart = ecdf_chart("Times of decisions", _DECISION, {run.policy: seconds}, by="policy", what="decisions")
        yield Section(
            title=f"{prefix}Decision times",
            text=f"{seconds.size:,} times were measured; of a compiled rule each is the mean of some thousand passes. "
            f"The simulation took {unit_text(Unit.SECONDS, run.elapsed)}.",
            charts=(chart,),
        )


def _distribution_section(run: SimulatedRun, jobs: NDArray[np.int64], prefix: str, *, title: str, what: str) -> Section:
    values_of = _waits if what == "wait" else _slowdowns
    axis = _WAIT if what == "wait" else _SLOWDOWN
    groupings = {
        "queue": by_queue(run.runs.queues, jobs),
        "size": by_size(run.runs, jobs),
        "user": by_user(run.runs, jobs),
    }
    values = {by: {name: values_of(run, part) for name, part in groups.items()} for by, groups in groupings.items()}
    boxes = (box_chart(f"{title} by {by}", what, axis, groups, by=by) for by, groups in values.items())
    definition = (
        "A wait is from submission to start; waits below a second are drawn at one second."
        if what == "wait"
        else f"A bounded slowdown is (wait + run time) / max(run time, {BOUND} s), at least 1: how many times as long "
        "as on an empty machine."
    )
    return Section(
        title=f"{prefix}{title}",
        text=definition,
        charts=(ecdf_chart(f"{title} of all jobs, by queue", axis, values["queue"], by="queue", what="jobs"), *boxes),
    )


def _class_charts(run: SimulatedRun, jobs: NDArray[np.int64]) -> Iterator[Chart]:
    rows, columns, cells = cells_of(run.runs, jobs)
    for title, values_of, unit, of in (
        ("Median wait", _waits, Unit.SECONDS, np.median),
        ("Mean bounded slowdown", _slowdowns, Unit.NUMBER, np.mean),
    ):
        values = tuple(tuple(float(of(values_of(run, cell))) if cell.size else None for cell in line) for line in cells)
        texts = tuple(tuple("" if value is None else unit_text(unit, value) for value in line) for line in values)
        counts = tuple((row, *(f"{cell.size:,}" for cell in line)) for row, line in zip(rows, cells, strict=True))
        chart = _heat(
            f"{title} by run time and nodes",
            rows,
            columns,
            Heat(values=values, texts=texts, label=title, is_log=True),
            "Bright cells are long waits, or large slowdowns; an empty cell has no job.",
            floor=1.0,
        )
        jobs_table = Table(title="Jobs", headings=("run time", *columns), rows=counts)
        yield replace(chart, tables=(*chart.tables, jobs_table))


def _heat(
    title: str, rows: tuple[str, ...], columns: tuple[str, ...], heat: Heat, about: str, *, floor: float
) -> Chart:
    """Return a field of cells as a chart, and its texts as a table."""
    table = Table(
        title=heat.label,
        headings=("run time", *columns),
        rows=tuple((row, *(text or "-" for text in texts)) for row, texts in zip(rows, heat.texts, strict=True)),
    )
    return Chart(
        title=title,
        x=Axis(label="nodes", names=columns, floor=floor),
        y=Axis(label="run time", names=rows),
        layers=(heat,),
        about=about,
        tables=(table,),
    )


def _span(run: SimulatedRun) -> tuple[int, int]:
    """Return the first submission and the second after the last event."""
    begin = int(run.runs.submit.min())
    return begin, max(begin + 1, run.runs.horizon)


def _time_axis(run: SimulatedRun) -> Axis:
    if run.epoch is None:
        return Axis(label="time since the first submission", unit=Unit.SECONDS)
    return Axis(label="date", unit=Unit.DATE)


def _at(run: SimulatedRun, times: Sequence[float]) -> tuple[float, ...]:
    """Return times of the simulation as coordinates of `_time_axis`."""
    return clock_times(times, _span(run)[0], run.local_time)


def _use_charts(runs: Mapping[str, SimulatedRun], *, is_compared: bool) -> Iterator[Chart]:
    """Yield the use over time: of the cores for each policy, or of each resource of one simulation."""
    lines: list[Line] = []
    width = 0
    for label, run in runs.items():
        begin, end = _span(run)
        for name in ("cores",) if is_compared else run.capacity:
            if name in run.runs.asked and name in run.capacity:
                times, amounts = _held(run, name)
                x, y, width = step_points(times, amounts, begin, end)
                shares = tuple(value / run.capacity[name] for value in y)
                title = label if is_compared else name
                lines.append(Line(name=title, x=_at(run, x), y=shares, series=len(lines), is_step=True))
    if not lines:
        return
    first = next(iter(runs.values()))
    what = "Cores in use" if is_compared or [line.name for line in lines] == ["cores"] else "Use"
    axis = _time_axis(first)
    about = f"{binning(width)} By what the jobs ask for, for as long as they run; the dashed line is the machine."
    yield use_chart(f"{what} over time", axis, lines, about, line_table(axis, lines, Unit.SHARE))


def _held(run: SimulatedRun, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how much of a resource the jobs hold, as a step function."""
    runs = run.runs
    held = runs.end > runs.start
    times = np.concatenate([runs.start[held], runs.end[held]])
    changes = np.concatenate([runs.asked[name][held], -runs.asked[name][held]])
    different, places = np.unique(times, return_inverse=True)
    totals = np.zeros(different.size, dtype=np.int64)
    np.add.at(totals, places, changes)
    return different, np.cumsum(totals)


def _queue_chart(runs: Mapping[str, SimulatedRun]) -> Chart:
    """Return the number of waiting jobs over time; of one simulation with the largest in each bin."""
    lines: list[Line] = []
    width = 0
    for label, run in runs.items():
        begin, end = _span(run)
        steps = load_over_time(run.runs)
        x, y, width = step_points(steps.time, steps.queue_length, begin, end)
        lines.append(Line(name=label if len(runs) > 1 else "mean", x=_at(run, x), y=y, series=len(lines), is_step=True))
        if len(runs) == 1 and width:
            edges, _, largest = binned(steps.time, steps.queue_length.astype(np.float64), begin, end)
            most = (*largest.tolist(), float(largest[-1]))
            lines.append(Line(name="most", x=_at(run, edges.tolist()), y=most, series=1, is_step=True))
    first = next(iter(runs.values()))
    return Chart(
        title="Jobs that wait, over time",
        x=_time_axis(first),
        y=Axis(label="jobs in the queue", has_zero=True),
        layers=tuple(lines),
        about=binning(width),
        tables=(line_table(_time_axis(first), lines, Unit.NUMBER),),
        is_wide=True,
    )


def _over(run: SimulatedRun) -> NDArray[np.int64]:
    """Return the jobs that have run to their ends: only these have a wait and a slowdown."""
    return np.flatnonzero(run.runs.over)


def _waits(run: SimulatedRun, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    return run.runs.wait[jobs].astype(np.float64)


def _slowdowns(run: SimulatedRun, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    slowdowns: NDArray[np.float64] = run.runs.bounded_slowdown[jobs]
    return slowdowns
