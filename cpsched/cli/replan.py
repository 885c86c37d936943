"""``cpsched replan``: the next plan, after time has passed or something has happened."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.answer import answer_plan, check_stdout
from cpsched.cli.options import AS_JSON, GANTT_FILE, INPUT_FILE, INSTANCE_FILE, PLAN_FILE
from cpsched.cli.screen import warn

if TYPE_CHECKING:
    from cpsched.domain import Instance, WindowEvent


@click.command(
    "replan",
    epilog="Example: cpsched replan window.json plan.json --at 600 "
    """--event '{"event": "node_down", "nodes": "n[1-3]"}' -o new-plan.json --instance-output new-window.json""",
)
@click.argument("instance", type=INPUT_FILE)
@click.argument("plan", type=INPUT_FILE)
@click.option(
    "--at",
    type=int,
    metavar="SECOND",
    help="The new `now`, in seconds of the instance's clock.  [default: now of the instance]",
)
@click.option(
    "--event",
    metavar="FILE_OR_JSON",
    help="What has happened at that second: an event as JSON, or a list of them, or a file with these.  "
    "[default: none, only time passes]",
)
@PLAN_FILE
@INSTANCE_FILE
@GANTT_FILE
@AS_JSON
@click.option("--quiet", is_flag=True, help="Print no summary.")
def command(
    instance: Path,
    plan: Path,
    at: int | None,
    event: str | None,
    output: Path | None,
    instance_output: Path | None,
    gantt: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Advance an instance and its plan in time, and plan again.

    Up to the new now, all jobs are taken to have started and ended as PLAN states. All other jobs keep their places in
    it where possible; the cause of each later start is printed, and is in the new plan. An event that asks for what
    cannot be granted is refused, and nothing is written.
    """
    from cpsched.errors import Fault
    from cpsched.formats import read_instance, read_plan
    from cpsched.portfolio import replan

    check_stdout(output, instance_output, as_json=as_json)
    warnings: list[Fault] = []
    window = read_instance(instance, on_warning=warnings.append)
    warn(warnings, "warning")
    events = () if event is None else _events(window, event)
    moved, new = replan(window, read_plan(plan), at=at, events=events)
    files = {"output": output, "instance_output": instance_output, "gantt": gantt}
    answer_plan("replan", moved, new, warnings, **files, as_json=as_json, quiet=quiet)


def _events(instance: Instance, event: str) -> tuple[WindowEvent, ...]:
    from cpsched.formats import load_json, parse_events, read_json

    if event.lstrip().startswith(("{", "[")):
        return parse_events(read_json(BytesIO(event.encode()), "--event"), instance, source="--event")
    return parse_events(load_json(event), instance, source=event)
