"""``cpsched show``: a plan as a table, as a Gantt chart in the terminal or as HTML, or one of its jobs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.answer import figures_of
from cpsched.cli.options import AS_JSON, INPUT_FILE, OUTPUT_FILE, ends_in, stdin_or_name
from cpsched.cli.outputs import echo_output
from cpsched.cli.screen import output, print_whole
from cpsched.cli.watching import NO_PLAN_YET, open_watched
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan, Segment


@click.command(
    "show",
    epilog="Example: cpsched show window.json plan.json --gantt; a daemon's plan as it changes: show site.toml --live",
)
@click.argument("instance", callback=stdin_or_name)
@click.argument("plan", type=INPUT_FILE, required=False)
@click.option("--gantt", is_flag=True, help="Draw a Gantt chart in the terminal instead of the table.")
@click.option(
    "--graph",
    is_flag=True,
    help="Show the dependencies: who waits for whom, slack, and the critical path; also --html.",
)
@click.option("--job", metavar="ID", help="Show the times and nodes of one job, or the reason why it waits.")
@click.option(
    "--html",
    type=OUTPUT_FILE,
    callback=ends_in(".html"),
    help="Write the Gantt chart, or the --graph, as one HTML file.",
)
@click.option(
    "--live",
    is_flag=True,
    help="Follow the files, or the store, and show each new plan, until Ctrl-C; in a pipe a line for each.",
)
@AS_JSON
def command(
    instance: str | Path,
    plan: Path | None,
    gantt: bool,
    graph: bool,
    job: str | None,
    html: Path | None,
    live: bool,
    as_json: bool,
) -> None:
    """Show a plan as tables, as a chart, or one of its jobs.

    INSTANCE and PLAN are the two documents. Without PLAN, INSTANCE is the site's file of a daemon (.toml) or its store
    (a URL, or a SQLite file).
    """
    from cpsched.cli.live import follow
    from cpsched.report import gantt_html, workflow_html
    from cpsched.writing import write_text

    if sum((gantt, job is not None, html is not None or graph, live, as_json)) > 1:
        raise click.UsageError(
            "--gantt, --job, --html, --live and --json exclude each other; --graph goes with --html."
        )
    with closing(open_watched(instance, plan)) as watched:
        if live:
            follow(watched)
            return
        found = watched.read()
    if found is None:
        raise click.UsageError(NO_PLAN_YET)
    made_for, shown = found
    if html is not None:
        write_text(html, (workflow_html if graph else gantt_html)(made_for, shown))
        click.echo(f"{'graph' if graph else 'gantt'}: {printable(str(html))}")
    elif job is not None:
        _show_job(made_for, shown, job)
    elif as_json:
        _print_as_json(made_for, shown)
    else:
        _print(made_for, shown, gantt=gantt, graph=graph)


def _print(instance: Instance, plan: Plan, *, gantt: bool, graph: bool) -> None:
    from cpsched.report import (
        NARROWEST,
        history_table,
        plan_table,
        reservation_table,
        summary_table,
        terminal_gantt,
        workflow_table,
    )

    if graph:
        print_whole(workflow_table(instance, plan))
        return
    if gantt:
        print_whole(terminal_gantt(instance, plan, width=max(NARROWEST, output().width)))
        return
    print_whole(plan_table(instance, plan))
    if plan.reservations:
        print_whole(reservation_table(instance, plan))
    print_whole(summary_table(instance, plan))
    print_whole(history_table(plan))


def _print_as_json(instance: Instance, plan: Plan) -> None:
    from cpsched.formats import plan_to_document
    from cpsched.metrics import jobs_by_id

    entries, document = jobs_by_id(instance), plan_to_document(plan)
    jobs = [
        {
            "id": planned.id,
            "user": entries[planned.id].user,
            "queue": entries[planned.id].queue,
            "submit": entries[planned.id].submit,
            "start": planned.start,
            "end": planned.end,
            "is_running": entries[planned.id].running is not None,
            "nodes": list(planned.nodes),
        }
        for planned in plan.jobs
    ]
    content = {"instance": plan.instance, "now": instance.now, "objective": document["objective"]}
    content |= {"summary": figures_of(instance, plan), "jobs": jobs}
    echo_output("show", content | {"waiting_room": document.get("waiting_room", [])})


def _show_job(instance: Instance, plan: Plan, job_id: str) -> None:
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
            is_running = entry.running is not None and entry.running.start == planned.start
            state = "runs" if is_running else "planned"
            click.echo(f"{state} [{planned.start}, {planned.end}), {planned.end - planned.start} s")
            click.echo(f"starts {planned.start - entry.submit} s after its submission at {entry.submit}")
            if not plan.record and entry.running is None:
                click.echo(_why(instance, plan, job_id))
            cut = [run for run in plan.attempts if run.id == job_id]
            if words := change_description(instance, entry, planned, cut):
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
