"""``cpsched show``: a plan as a table, as a Gantt chart in the terminal or as HTML, or one of its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import EXISTING_FILE, OUTPUT_FILE, ends_in
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan, Segment

__all__ = ["command"]


@click.command("show", epilog="Example: cpsched show window.json plan.json --gantt")
@click.argument("instance", type=EXISTING_FILE)
@click.argument("plan", type=EXISTING_FILE)
@click.option("--gantt", is_flag=True, help="Draw a Gantt chart in the terminal instead of the table.")
@click.option("--job", metavar="ID", help="Show the times and nodes of one job, or the reason why it waits.")
@click.option("--html", type=OUTPUT_FILE, callback=ends_in(".html"), help="Write the Gantt chart as one HTML file.")
def command(instance: Path, plan: Path, gantt: bool, job: str | None, html: Path | None) -> None:
    """Show a plan as tables, as a chart, or one of its jobs."""
    from cpsched.cli.screen import output, print_whole
    from cpsched.formats import read_instance, read_plan
    from cpsched.report import (
        NARROWEST,
        gantt_html,
        history_table,
        plan_table,
        reservation_table,
        summary_table,
        terminal_gantt,
    )
    from cpsched.writing import write_text

    if sum((gantt, job is not None, html is not None)) > 1:
        raise click.UsageError("--gantt, --job and --html exclude each other.")
    made_for, shown = read_instance(instance), read_plan(plan)
    _check_belongs(shown, made_for, str(plan))
    if html is not None:
        write_text(html, gantt_html(made_for, shown))
        click.echo(f"gantt: {printable(str(html))}")
    elif job is not None:
        _show_job(made_for, shown, job)
    elif gantt:
        print_whole(terminal_gantt(made_for, shown, width=max(NARROWEST, output().width)))
    else:
        print_whole(plan_table(made_for, shown))
        if shown.reservations:
            print_whole(reservation_table(made_for, shown))
        print_whole(summary_table(made_for, shown))
        print_whole(history_table(shown))


def _check_belongs(plan: Plan, instance: Instance, source: str) -> None:
    """Refuse a plan with jobs or nodes that the instance does not have."""
    from cpsched.errors import DocumentError, Fault

    jobs = {element for job in instance.jobs for element in job.element_ids}
    nodes = set(instance.cluster.node_names)
    faults = []
    if plan.instance != instance.name:
        faults.append(Fault("instance", f"Expected the name of the instance, {instance.name!r}, got {plan.instance!r}"))
    for index, job in enumerate(plan.jobs):
        if job.id not in jobs:
            faults.append(Fault(f"jobs[{index}].id", f"Expected a job of the instance, got {job.id!r}"))
        held = {placement.node for segment in job.segments for placement in segment.allocation}
        faults += [
            Fault(f"jobs[{index}].segments", f"Expected nodes of the cluster, got {node!r}")
            for node in sorted(held - nodes)
        ]
    faults += [
        Fault(f"waiting_room[{index}].id", f"Expected a job of the instance, got {job.id!r}")
        for index, job in enumerate(plan.waiting_room)
        if job.id not in jobs
    ]
    for index, slice_ in enumerate(plan.reservations):
        faults += [
            Fault(f"reservations[{index}].allocation", f"Expected nodes of the cluster, got {node!r}")
            for node in sorted({placement.node for placement in slice_.allocation} - nodes)
        ]
    if faults:
        raise DocumentError(source, faults)


def _show_job(instance: Instance, plan: Plan, job_id: str) -> None:
    """Print one job: its times and nodes, or the reason why it waits."""
    from cpsched.metrics import jobs_by_id
    from cpsched.report import change_description

    entry = jobs_by_id(instance).get(job_id)
    if entry is None:
        raise click.BadParameter(f"The instance has no job {printable(job_id)!r}.", param_hint="--job")
    click.echo(f"job {printable(job_id)}, user {_or_none(entry.user)}, queue {_or_none(entry.queue)}")
    for waiting in plan.waiting_room:
        if waiting.id == job_id:
            click.echo(f"in the waiting room, {waiting.reason}: {printable(waiting.detail)}")
    for planned in plan.jobs:
        if planned.id == job_id:
            state = "runs" if entry.running else "planned"
            click.echo(f"{state} [{planned.start}, {planned.end}), {planned.end - planned.start} s")
            click.echo(f"starts {planned.start - entry.submit} s after its submission at {entry.submit}")
            if not plan.record and entry.running is None:
                click.echo(_why(instance, plan, job_id))
            if words := change_description(instance, entry, planned):
                click.echo(words)
            for segment in planned.segments:
                _show_segment(segment)


def _why(instance: Instance, plan: Plan, job_id: str) -> str:
    """Return the first line of what `explain` says; of a plan that cannot be booked, that it cannot be said."""
    from cpsched.answers import Answers, first_line
    from cpsched.errors import DocumentError

    try:
        return first_line(instance, Answers(instance, plan).explain(job_id))
    except DocumentError:
        return "why not earlier is not known: the plan breaks rules (see cpsched verify)"


def _show_segment(segment: Segment) -> None:
    """Print a segment: its interval and allocation, nodes with equal amounts in one line."""
    from cpsched.formats import fold_hostlist

    click.echo(f"[{segment.start}, {segment.end}) on")
    nodes_by_holding: dict[str, list[str]] = {}
    for placement in segment.allocation:
        chunks = "" if placement.count is None else f"{placement.count} of chunk {placement.chunk}: "
        amounts = " ".join(f"{name}={amount}" for name, amount in placement.resources.items())
        nodes_by_holding.setdefault(chunks + amounts, []).append(placement.node)
    for holding, nodes in nodes_by_holding.items():
        click.echo(f"  {printable(fold_hostlist(nodes))}  {printable(holding)} each")


def _or_none(name: str | None) -> str:
    return "(none)" if name is None else printable(name)
