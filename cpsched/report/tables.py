"""Plans, simulations and campaigns as tables for a terminal."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cpsched.charts import Unit, duration, unit_text
from cpsched.domain import Instance, Plan, PlannedJob
from cpsched.formats import fold_hostlist
from cpsched.metrics import RunsSummary, jobs_by_id, summarise
from cpsched.report.run_groups import NO_QUEUE
from cpsched.report.words import figures, moment, value_text
from cpsched.text import printable

#: With more incumbents than this, the first and the last of them are listed.
MOST_INCUMBENTS = 20
#: A figure of more characters is below the others: it would make their column as wide.
_SHORT = 40


def grid(
    title: str, headings: Iterable[str], rows: Iterable[Sequence[str]], *, right: Container[int] = (), **look: Any
) -> Table:
    """Return a table for a terminal, whose texts are shown as they are. `right`: the columns with numbers."""
    table = Table(title=Text(printable(title)) if title else None, **look)
    for place, heading in enumerate(headings):
        justify: Literal["right", "left"] = "right" if place in right else "left"
        table.add_column(Text(printable(heading)), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def plan_table(instance: Instance, plan: Plan) -> Table:
    """Return one row per job: planned and running ones by start, then the waiting room with its reasons (OCCS-47)."""
    entries = jobs_by_id(instance)

    def row(id: str, *cells: str) -> tuple[str, ...]:
        return id, entries[id].user or "", entries[id].queue or "", *cells

    def planned_row(planned: PlannedJob) -> tuple[str, ...]:
        job = entries[planned.id]
        when = (moment(instance, planned.start), moment(instance, planned.end), duration(planned.start - job.submit))
        is_running = job.running is not None and job.running.start == planned.start
        return row(planned.id, *when, _nodes(planned), "running" if is_running else "planned")

    rows = [planned_row(one) for one in sorted(plan.jobs, key=lambda one: (one.start, one.end, one.id))]
    rows += [row(one.id, "", "", "", "", f"{one.reason}: {one.detail}") for one in plan.waiting_room]
    headings = ("id", "user", "queue", "start", "end", "wait", "nodes", "state")
    return grid(plan.instance, headings, rows, right={5})


def next_starts(instance: Instance, plan: Plan, *, most: int) -> Table:
    """Return one row for each of the jobs that start next, at most `most`."""
    entries = jobs_by_id(instance)
    waiting = [job for job in plan.jobs if entries[job.id].running is None]
    rows = [
        (job.id, entries[job.id].user or "", entries[job.id].queue or "", moment(instance, job.start), _nodes(job))
        for job in sorted(waiting, key=lambda job: (job.start, job.end, job.id))[:most]
    ]
    table = grid("", ("next", "user", "queue", "start", "nodes"), rows, box=None, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
    return table


def summary_table(instance: Instance, plan: Plan) -> RenderableType:
    """Return the plan's figures, those in many words below the others, and the waits per queue."""
    summary = summarise(instance, plan)
    in_use = ((f"{name} in use", f"{share:.1%}") for name, share in summary.utilisation.items())
    rows = (*figures(plan, summary), *in_use)
    short, long = ([row for row in rows if (len(row[1]) > _SHORT) is is_long] for is_long in (False, True))
    parts = [grid(plan.instance, ("figure", "value"), short, right={1}, show_header=False)]
    if long:
        parts.append(grid("", ("figure", "value"), long, show_header=False))
    if not summary.waits:
        return Group(*parts)
    waits = [
        (row.queue or NO_QUEUE, f"{row.count:,}", duration(row.mean), duration(row.median), duration(row.max))
        for row in summary.waits
    ]
    headings = ("queue", "jobs", "mean", "median", "longest")
    return Group(*parts, grid("waits per queue", headings, waits, right=range(1, 5)))


def reservation_table(instance: Instance, plan: Plan) -> Table:
    """Return one row per reservation and time: its nodes, or why it could not be had."""
    rows = []
    for slice_ in plan.reservations:
        names = tuple(dict.fromkeys(held.node for held in slice_.allocation))
        got = fold_hostlist(names) if slice_.reason is None else f"not had: {slice_.reason}"
        rows.append((slice_.id, moment(instance, slice_.start), moment(instance, slice_.end), got))
    return grid("reservations", ("id", "start", "end", "nodes"), rows)


def history_table(plan: Plan) -> RenderableType:
    """Return how the plan was found: the best plan at each time with the solver that found it, and other events."""
    parts: list[RenderableType] = []
    if plan.incumbents:
        has_more = len({one.planned for one in plan.incumbents}) > 1
        last = max(1, len(plan.incumbents) - MOST_INCUMBENTS + 1)
        rows: list[tuple[str, ...]] = []
        for one in (plan.incumbents[0], *plan.incumbents[last:]):
            planned = "" if one.planned is None else f"{one.planned:,}"
            rows.append((f"{one.at:.2f} s", value_text(one.value), one.by, *[planned][:has_more]))
            if last > 1 and one is plan.incumbents[0]:
                rows.append(("…", "…", f"{last - 1:,} more", *[""][:has_more]))
        headings = ("after", "value", "by", *["jobs"][:has_more])
        parts.append(grid("how the plan was found", headings, rows, right={0, 1, 3}))
    if plan.events:
        events = [(f"{event.at:.2f} s", event.by, event.what) for event in plan.events]
        parts.append(grid("what else happened", ("after", "by", "what"), events, right={0}))
    return Group(*parts)


def _nodes(planned: PlannedJob) -> str:
    """Return all nodes that a job has at any time, folded."""
    names = {placement.node: None for segment in planned.segments for placement in segment.allocation}
    return fold_hostlist(tuple(names))


def runs_table(title: str, summaries: Mapping[str, RunsSummary]) -> Table:
    """Return one column per simulation and one row per figure.

    `title`: the name of the simulated workload. `summaries`: the figures by the name of the policy.
    """
    columns = [dict(run_figures(summary)) for summary in summaries.values()]
    rows = [(label, *(column[label] for column in columns)) for label in (columns[0] if columns else ())]
    return grid(title, ("", *summaries), rows, right=range(1, len(columns) + 1))


def run_figures(
    summary: RunsSummary, *, seconds: Callable[[float], str] = "{:,.0f} s".format
) -> Iterator[tuple[str, str]]:
    """Yield the figures of a simulation as (label, value), waits written by `seconds`; a dash where one is missing."""
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
    for label, name in (("mean", "mean"), ("median", "median"), ("95 %", "p95"), ("longest", "max")):
        yield f"wait, {label}", "-" if total.wait is None else seconds(getattr(total.wait, name))
    yield "bounded slowdown, mean", "-" if total.bounded_slowdown is None else f"{total.bounded_slowdown.mean:,.2f}"
    yield "sum of wait / expected wait", f"{total.wqt:,.1f}"
    yield "jobs that wait longer than expected", f"{total.late:,}"
    yield "waited beyond the expected, sum", seconds(total.tardiness)
    yield "jobs that wait longer than max_wait", f"{total.overdue:,}"
    yield "jobs that starve", f"{total.starved:,}"
    yield "lost work", f"{total.lost_core_seconds / 3600:,.1f} core-h"
    yield "utilisation", f"{summary.allocated:.1%}"
    yield "fairness of users (Jain)", "-" if summary.jain is None else f"{summary.jain:.3f}"
    yield "queue, mean", f"{summary.mean_queue_length:,.1f}"
    yield "queue, longest", f"{summary.max_queue_length:,}"
    yield "makespan", duration(summary.makespan)
    yield "time of a decision, mean", "-" if overhead is None else unit_text(Unit.SECONDS, overhead.mean)
