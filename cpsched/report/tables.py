"""A plan and its figures as tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cpsched.charts import duration
from cpsched.domain import Instance, Job, Plan, PlannedJob
from cpsched.formats import fold_hostlist
from cpsched.metrics import jobs_by_id, summarise
from cpsched.report.words import figures, moment, value_text
from cpsched.text import printable

__all__ = ["history_table", "next_starts", "plan_table", "reservation_table", "summary_table"]

#: With more incumbents than this, the first and the last of them are listed.
MOST_INCUMBENTS = 20


def plan_table(instance: Instance, plan: Plan) -> Table:
    """Return one row per job: planned and running ones by start, then the waiting room with its reasons."""
    table = Table(title=Text(printable(plan.instance)))
    for heading in ("id", "user", "queue", "start", "end"):
        table.add_column(heading, overflow="fold")
    table.add_column("wait", justify="right")
    table.add_column("nodes", overflow="fold")
    table.add_column("state", overflow="fold")
    entries = jobs_by_id(instance)

    def add(id: str, job: Job, *cells: str) -> None:
        table.add_row(*(Text(printable(cell)) for cell in (id, job.user or "", job.queue or "", *cells)))

    for planned in sorted(plan.jobs, key=lambda planned: (planned.start, planned.end, planned.id)):
        job = entries[planned.id]
        when = (moment(instance, planned.start), moment(instance, planned.end), duration(planned.start - job.submit))
        add(planned.id, job, *when, _nodes(planned), "running" if job.running else "planned")
    for waiting in plan.waiting_room:
        add(waiting.id, entries[waiting.id], "", "", "", "", f"{waiting.reason}: {waiting.detail}")
    return table


def next_starts(instance: Instance, plan: Plan, *, most: int) -> Table:
    """Return one row for each of the jobs that start next, at most `most`."""
    entries = jobs_by_id(instance)
    waiting = [job for job in plan.jobs if entries[job.id].running is None]
    first = sorted(waiting, key=lambda job: (job.start, job.end, job.id))[:most]
    table = Table(box=None, pad_edge=False)
    for heading in ("next", "user", "queue", "start", "nodes"):
        table.add_column(heading, no_wrap=True)
    for job in first:
        entry, start = entries[job.id], moment(instance, job.start)
        cells = (job.id, entry.user or "", entry.queue or "", start, _nodes(job))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def summary_table(instance: Instance, plan: Plan) -> RenderableType:
    """Return the plan's figures, and the waits per queue below them."""
    summary = summarise(instance, plan)
    head = Table(title=Text(printable(plan.instance)), show_header=False)
    head.add_column("figure")
    head.add_column("value", justify="right")
    in_use = ((f"{name} in use", f"{share:.1%}") for name, share in summary.utilisation.items())
    for label, value in (*figures(plan, summary), *in_use):
        head.add_row(Text(printable(label)), Text(printable(value)))
    if not summary.waits:
        return head
    waits = Table(title="waits per queue")
    waits.add_column("queue")
    for heading in ("jobs", "mean", "median", "longest"):
        waits.add_column(heading, justify="right")
    for row in summary.waits:
        seconds = (duration(row.mean), duration(row.median), duration(row.max))
        waits.add_row(Text(printable(row.queue or "(no queue)")), f"{row.count:,}", *seconds)
    return Group(head, waits)


def reservation_table(instance: Instance, plan: Plan) -> Table:
    """Return one row per reservation and time: its nodes, or why it could not be had."""
    table = Table(title="reservations")
    for heading in ("id", "start", "end", "nodes"):
        table.add_column(heading, overflow="fold")
    for slice_ in plan.reservations:
        names = tuple(dict.fromkeys(held.node for held in slice_.allocation))
        got = fold_hostlist(names) if slice_.reason is None else f"not had: {slice_.reason}"
        cells = (slice_.id, moment(instance, slice_.start), moment(instance, slice_.end), got)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def history_table(plan: Plan) -> RenderableType:
    """Return how the plan was found: the best plan at each time with the solver that found it, and other events."""
    parts: list[RenderableType] = []
    if plan.incumbents:
        found = Table(title="how the plan was found")
        for heading in ("after", "value"):
            found.add_column(heading, justify="right")
        found.add_column("by", overflow="fold")
        has_more = len({one.planned for one in plan.incumbents}) > 1
        if has_more:
            found.add_column("jobs", justify="right")
        last = max(1, len(plan.incumbents) - MOST_INCUMBENTS + 1)
        for one in (plan.incumbents[0], *plan.incumbents[last:]):
            planned = [] if one.planned is None else [f"{one.planned:,}"]
            found.add_row(f"{one.at:.2f} s", value_text(one.value), Text(printable(one.by)), *planned[:has_more])
            if last > 1 and one is plan.incumbents[0]:
                found.add_row("…", "…", Text(f"{last - 1:,} more"))
        parts.append(found)
    if plan.events:
        events = Table(title="what else happened")
        events.add_column("after", justify="right")
        for heading in ("by", "what"):
            events.add_column(heading, overflow="fold")
        for event in plan.events:
            events.add_row(f"{event.at:.2f} s", Text(printable(event.by)), Text(printable(event.what)))
        parts.append(events)
    return Group(*parts)


def _nodes(planned: PlannedJob) -> str:
    """Return all nodes that a job has at any time, folded."""
    names = {placement.node: None for segment in planned.segments for placement in segment.allocation}
    return fold_hostlist(tuple(names))
