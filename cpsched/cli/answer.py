"""The output of commands that make a plan."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.options import STDOUT
from cpsched.cli.outputs import echo_output, put_document
from cpsched.cli.screen import echo_first, print_whole
from cpsched.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpsched.domain import Instance, Judgement, Plan
    from cpsched.errors import Fault


#: The most jobs of the waiting room that are listed; the rest is counted.
_MOST_WAITING = 10
#: The most events that are listed.
_MOST_EVENTS = 40


def check_stdout(*files: Path | None, as_json: bool) -> None:
    """Refuse two outputs on standard output."""
    if sum(file == STDOUT for file in files) + as_json > 1:
        raise click.UsageError("Standard output takes one document: -o -, --instance-output - or --json.")


def answer_plan(
    command: str,
    instance: Instance,
    plan: Plan,
    warnings: Sequence[Fault],
    *,
    output: Path | None,
    instance_output: Path | None,
    gantt: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the files of a plan that are asked for, none before all can be made, and print the plan."""
    from cpsched.formats import instance_to_document, plan_to_document
    from cpsched.report import gantt_html
    from cpsched.writing import write_text

    chart = "" if gantt is None else gantt_html(instance, plan)
    if output is not None:
        put_document(plan_to_document(plan), output)
    if instance_output is not None:
        put_document(instance_to_document(instance), instance_output)
    if gantt is not None:
        write_text(gantt, chart)
    written = {"plan": output, "instance_output": instance_output, "gantt": gantt}
    if as_json:
        _print_as_json(command, instance, plan, written, warnings)
    elif not quiet and STDOUT not in written.values():
        _print_summary(instance, plan, written)


def _print_as_json(
    command: str, instance: Instance, plan: Plan, written: dict[str, Path | None], warnings: Sequence[Fault]
) -> None:
    """Print the figures, the waiting room, the warnings and the files written as one JSON object."""
    from cpsched.formats import plan_to_document
    from cpsched.metrics import honest_gap

    document = plan_to_document(plan)
    echo_output(
        command,
        {
            "instance": plan.instance,
            "engine": document["engine"],
            "objective": {**document["objective"], "honest_gap": honest_gap(plan.objective)},
            "summary": figures_of(instance, plan),
            "incumbents": document.get("incumbents", []),
            "events": document.get("events", []),
            "waiting_room": document.get("waiting_room", []),
            "reservations": document.get("reservations", []),
            "judgement": None if plan.judgement is None else asdict(plan.judgement),
            "warnings": [asdict(warning) for warning in warnings],
            **{name: None if path is None else str(path) for name, path in written.items()},
        },
    )


def figures_of(instance: Instance, plan: Plan) -> dict[str, Any]:
    """Return the figures of a plan as values of JSON."""
    from cpsched.metrics import summarise

    summary = summarise(instance, plan)
    return {**asdict(summary), "utilisation": dict(summary.utilisation)}


def _print_summary(instance: Instance, plan: Plan, written: dict[str, Path | None]) -> None:
    """Print the figures as tables, then the waiting room, the verdict and the files written."""
    from cpsched.report import moment, summary_table

    print_whole(summary_table(instance, plan))
    for event in plan.events[:_MOST_EVENTS]:
        click.echo(f"{printable(event.by)} after {event.at:.1f} s: {printable(event.what)}")
    if len(plan.events) > _MOST_EVENTS:
        click.echo(f"... and {len(plan.events) - _MOST_EVENTS} more, in the plan's events")
    rows = (f"waiting room: {printable(one.id)}: {one.reason}: {printable(one.detail)}" for one in plan.waiting_room)
    echo_first(rows, _MOST_WAITING, "waiting room")
    refused = (
        f"reservation {printable(one.id)} from {moment(instance, one.start)} to {moment(instance, one.end)} is not "
        f"had: {printable(one.reason)}"
        for one in plan.reservations
        if one.reason is not None
    )
    echo_first(refused, _MOST_WAITING, "reservations", " that are not had")
    click.echo(verdict(plan.judgement))
    for name, path in written.items():
        if path is not None:
            click.echo(f"{name}: {printable(str(path))}")


def verdict(judgement: Judgement | None) -> str:
    """Return the judgement of the very plan that is printed."""
    if judgement is None:
        return "not verified"
    return f"verified: {judgement.violations or 'no'} violations of {len(judgement.rules)} rules"
