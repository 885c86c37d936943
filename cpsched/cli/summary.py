"""The figures of a plan that has just been made: for people, and as one JSON object."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cpsched.cli.text import duration, percent, printable
from cpsched.domain import Plan
from cpsched.metrics import Summary, honest_gap

__all__ = ["summary_document", "summary_text"]

#: So many jobs of the waiting room are shown; the rest is counted.
_MOST_WAITING = 10


def summary_document(
    plan: Plan, plan_document: dict[str, Any], summary: Summary, *, output: Path | None, gantt: Path | None
) -> dict[str, Any]:
    """Return the figures as one JSON object; `output` and `gantt` are the files written, if any."""
    return {
        "instance": plan.instance,
        "engine": plan_document["engine"],
        "objective": {**plan_document["objective"], "honest_gap": honest_gap(plan.objective)},
        "summary": {**asdict(summary), "utilisation": dict(summary.utilisation)},
        "waiting_room": plan_document.get("waiting_room", []),
        "violations": [],
        "plan": None if output is None else str(output),
        "gantt": None if gantt is None else str(gantt),
    }


def summary_text(plan: Plan, summary: Summary) -> RenderableType:
    """Return the figures for people."""
    score, engine = plan.objective, plan.engine
    figures = Table.grid(padding=(0, 2))
    for label, value in (
        ("instance", printable(plan.instance)),
        ("jobs", f"{summary.planned} planned, {summary.running} running, {summary.waiting_room} in the waiting room"),
        ("objective", f"{score.name} {score.value:.2f}, of which {score.suffered:.2f} was already waited"),
        ("bound", _bound_text(plan)),
        ("makespan", duration(summary.makespan)),
        ("late", f"{summary.late} jobs wait longer than their queue's expected wait"),
        ("engine", f"{engine.name}, {engine.elapsed:.2f} s of {engine.budget:g} s, stopped: {engine.stopped}"),
    ):
        figures.add_row(Text(label, style="bold"), Text(value))
    parts: list[RenderableType] = [figures, "", _waits_table(summary), "", _utilisation_table(summary)]
    if plan.waiting_room:
        parts += ["", _waiting_room_table(plan)]
    return Group(*parts)


def _bound_text(plan: Plan) -> str:
    score = plan.objective
    if score.bound is None or score.gap is None:
        return "none proven"
    honest = honest_gap(score)
    return f"{score.bound:.2f}, gap {percent(score.gap)}" + (
        "" if honest is None else f", honest gap {percent(honest)}"
    )


def _table(*columns: str) -> Table:
    """Return a table without lines whose first column is text and whose others are figures."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    return table


def _waits_table(summary: Summary) -> Table:
    table = _table("queue", "jobs", "mean wait", "median wait", "longest wait")
    for waits in summary.waits:
        queue = "(no queue)" if waits.queue is None else printable(waits.queue)
        times = (duration(seconds) for seconds in (waits.mean, waits.median, waits.max))
        table.add_row(Text(queue), str(waits.count), *times)
    return table


def _utilisation_table(summary: Summary) -> Table:
    table = _table("resource", "mean use")
    for resource, share in summary.utilisation.items():
        table.add_row(Text(printable(resource)), percent(share))
    return table


def _waiting_room_table(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("waiting room", "reason", "detail"):
        table.add_column(column)
    for job in plan.waiting_room[:_MOST_WAITING]:
        table.add_row(Text(printable(job.id)), job.reason, Text(printable(job.detail)))
    if len(plan.waiting_room) > _MOST_WAITING:
        table.add_row(Text(f"... and {len(plan.waiting_room) - _MOST_WAITING} more"), "", "")
    return table
