"""The figures of several simulations, side by side in a table for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.table import Table

from cpsched.charts import duration
from cpsched.metrics import Distribution, RunsSummary
from cpsched.report.tables import grid


def runs_table(title: str, summaries: Mapping[str, RunsSummary]) -> Table:
    """Return one column per simulation and one row per figure.

    Parameters
    ----------
    title
        The name of the simulated workload.
    summaries
        The figures by the name of the policy.
    """
    columns = [dict(run_figures(summary)) for summary in summaries.values()]
    rows = [(label, *(column[label] for column in columns)) for label in (columns[0] if columns else ())]
    return grid(title, ("", *summaries), rows, right=range(1, len(columns) + 1))


def _in_seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s"


def run_figures(summary: RunsSummary, *, seconds: Callable[[float], str] = _in_seconds) -> Iterator[tuple[str, str]]:
    """Yield the figures of a simulation as (label, value); a dash where a value is missing.

    `summary`: the figures. `seconds`: writes waits.
    """
    total, overhead = summary.total, summary.decisions
    for label, count in (
        ("jobs", total.jobs),
        ("completed", total.completed),
        ("killed at their walltime", total.killed),
        ("refused", total.refused),
        ("still waiting", total.waiting),
        ("restarts", total.restarts),
    ):
        yield label, f"{count:,}"
    yield from _waits(total.wait, seconds)
    yield "bounded slowdown, mean", "-" if total.bounded_slowdown is None else f"{total.bounded_slowdown.mean:,.2f}"
    yield "sum of wait / expected wait", f"{total.wqt:,.1f}"
    yield "jobs that wait longer than expected", f"{total.late:,}"
    yield "waited beyond the expected, sum", seconds(total.tardiness)
    yield "jobs that wait longer than max_wait", f"{total.overdue:,}"
    yield "jobs that starve", f"{total.starved:,}"
    yield "lost to failures", f"{total.lost_core_seconds / 3600:,.1f} core-h"
    yield "utilisation", f"{summary.allocated:.1%}"
    yield "queue, mean", f"{summary.mean_queue_length:,.1f}"
    yield "queue, longest", f"{summary.max_queue_length:,}"
    yield "makespan", duration(summary.makespan)
    yield "time of a decision, mean", "-" if overhead is None else f"{1000 * overhead.mean:.3g} ms"


def _waits(wait: Distribution | None, seconds: Callable[[float], str]) -> Iterator[tuple[str, str]]:
    values = {} if wait is None else {"mean": wait.mean, "median": wait.median, "95 %": wait.p95, "longest": wait.max}
    for name in ("mean", "median", "95 %", "longest"):
        yield f"wait, {name}", seconds(values[name]) if name in values else "-"
