"""``cpsched whatif``: what a change would do to a plan, and when a job would start that is submitted now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.answer import check_stdout
from cpsched.cli.options import AS_JSON, INPUT_FILE, PLAN_FILE, SECONDS_RANGE, STDOUT
from cpsched.cli.outputs import echo_output, put_document
from cpsched.cli.watching import look
from cpsched.errors import SyntaxFault
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan


@click.command("whatif", epilog="Example: cpsched whatif window.json plan.json --drain 'node[1-4]'")
@click.argument("instance", type=INPUT_FILE)
@click.argument("plan", type=INPUT_FILE, required=False)
@click.option(
    "--add",
    multiple=True,
    metavar="REQUEST",
    help="A new job, submitted now: 8:ncpus=2,walltime=2h or JSON as in an instance, or a file with one.",
)
@click.option("--drop", multiple=True, metavar="JOB", help="Without this job, array, or element of an array.")
@click.option("--drain", metavar="NODES", help="Nothing new starts on these nodes, a host list.")
@click.option("--walltime", multiple=True, metavar="JOB=TIME", help="Another walltime of a job, as in 71=1h30m.")
@click.option("--limit", multiple=True, metavar="JSON", help="A further limit, as in an instance; or a file with one.")
@click.option(
    "--nodes", multiple=True, metavar="CHANGE", help="Other nodes: 'add 20 nodes with gpus=4', 'remove node[1-4]'."
)
@click.option(
    "--submit", metavar="REQUEST", help="When would this job start, beside PLAN as it is? Written as for --add."
)
@click.option(
    "--budget",
    default=0.0,
    type=SECONDS_RANGE,
    metavar="SECONDS",
    help="Time for improving the new plan; 0: jobs keep their places where they can.",
)
@PLAN_FILE
@AS_JSON
def command(
    instance: Path,
    plan: Path | None,
    add: tuple[str, ...],
    drop: tuple[str, ...],
    drain: str | None,
    walltime: tuple[str, ...],
    limit: tuple[str, ...],
    nodes: tuple[str, ...],
    submit: str | None,
    budget: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare a plan with that of a changed instance.

    The output says which jobs gain and which pay. Without PLAN, the planner's plan is compared; of a daemon (its site's
    file, or its SQLite file) its own. --submit only looks, and moves no job.
    """
    from cpsched.answers import WhatIf, comparison_lines, what_if
    from cpsched.formats import plan_to_document
    from cpsched.portfolio import solve

    check_stdout(output, as_json=as_json)
    request = WhatIf(
        add=tuple(map(text_or_file, add)),
        drop=drop,
        drain=() if drain is None else _nodes(drain),
        walltime=dict(map(_walltime, walltime)),
        limit=tuple(map(text_or_file, limit)),
        nodes=nodes,
    )
    if request.is_empty is (submit is None):
        raise click.UsageError(
            "Expected a change (--add, --drop, --drain, --walltime, --limit, --nodes), or --submit alone."
        )
    window, found, *_ = look(instance, plan)
    before = solve(window, engine="planner", budget=0) if found is None else found
    if submit is not None:
        _submit(window, before, text_or_file(submit), as_json=as_json)
        return
    comparison = what_if(window, before, request, budget=budget)
    if output is not None:
        put_document(plan_to_document(comparison.plan), output)
    if as_json:
        written = {"plan": None if output is None else str(output)}
        echo_output("whatif", comparison.as_document(comparison.jobs) | written)
        return
    for line in comparison_lines(window, comparison, before.objective.name):
        click.echo(line, err=output == STDOUT)
    if output not in (None, STDOUT):
        click.echo(f"plan: {printable(str(output))}")


def text_or_file(value: str) -> str:
    """Return the text of a file of this name, or the value itself where it is no file."""
    try:
        path = Path(value)
        return path.read_text(encoding="utf-8").strip() if path.is_file() else value
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"Expected a text, or a file with one, got {printable(value[:100])!r}") from error


def _nodes(value: str) -> tuple[str, ...]:
    from cpsched.formats import expand_hostlist

    try:
        return expand_hostlist(value)
    except SyntaxFault as error:
        raise click.BadParameter(str(error), param_hint="--drain") from error


def _walltime(value: str) -> tuple[str, int]:
    from cpsched.answers import parse_walltime

    job, sign, time = value.rpartition("=")
    seconds = parse_walltime(time)
    if not sign or not job or seconds is None:
        message = f"Expected a job and a time such as 71=1h30m, got {printable(value)!r}."
        raise click.BadParameter(message, param_hint="--walltime")
    return job, seconds


def _submit(window: Instance, plan: Plan, text: str, *, as_json: bool) -> None:
    from cpsched.answers import Answers, parse_submission, submission_lines, under_free_id

    submission = Answers(window, plan).submit(under_free_id(parse_submission(text, window), window.members()))
    planned = submission.planned
    if as_json:
        segments = () if planned is None else planned.segments
        echo_output(
            "whatif-submit",
            {
                "job": submission.job.id,
                "start": None if planned is None else planned.start,
                "end": None if planned is None else planned.end,
                "wait": None if planned is None else planned.start - window.now,
                "nodes": list(dict.fromkeys(held.node for one in segments for held in one.allocation)),
                "detail": submission.detail,
            },
        )
        return
    for line in submission_lines(window, submission):
        click.echo(line)
