"""``cpsched replan``: the next plan, after time has passed or a running job has changed its steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.answer import print_plan_as_json, print_plan_summary
from cpsched.cli.options import AS_JSON, EXISTING_FILE, GANTT_FILE, INSTANCE_FILE, PLAN_FILE
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.planner import ProfileChange

__all__ = ["command"]


@click.command(
    "replan",
    epilog="Example: cpsched replan window.json plan.json --at 600 --event profile --job 7 "
    """--steps '[{"walltime": 300, "request": "2:ncpus=16"}, {"walltime": 900, "request": "4:ncpus=16"}]' """
    "-o new-plan.json --instance-output new-window.json",
)
@click.argument("instance", type=EXISTING_FILE)
@click.argument("plan", type=EXISTING_FILE)
@click.option(
    "--at",
    type=int,
    metavar="SECOND",
    help="The new `now`, in seconds of the instance's clock.  [default: now of the instance]",
)
@click.option(
    "--event", type=click.Choice(["profile"]), help="Event before the new plan.  [default: none, only time passes]"
)
@click.option("--job", metavar="ID", help="The running evolving job whose profile changes.")
@click.option(
    "--steps",
    metavar="FILE_OR_JSON",
    help="The job's steps from now on: a JSON list, or a file with one; first the present step, with the seconds left.",
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
    job: str | None,
    steps: str | None,
    output: Path | None,
    instance_output: Path | None,
    gantt: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Advance an instance and its plan in time, and plan again.

    Up to the new now, all jobs are taken to have started and ended as PLAN states. All other jobs keep their places in
    it where possible. With --event profile a running job asks for new steps from now on. It gets all of them, or the
    event is refused and nothing is written.
    """
    from cpsched.cli.screen import warn
    from cpsched.errors import Fault
    from cpsched.formats import read_instance, read_plan, write_instance, write_plan
    from cpsched.portfolio import replan
    from cpsched.report import gantt_html
    from cpsched.writing import write_text

    warnings: list[Fault] = []
    window = read_instance(instance, on_warning=warnings.append)
    warn(warnings, "warning")
    change = _change(window, event, job, steps)
    moved, new = replan(window, read_plan(plan), at=at, change=change)
    chart = "" if gantt is None else gantt_html(moved, new)
    if output is not None:
        write_plan(new, output)
    if instance_output is not None:
        write_instance(moved, instance_output)
    if gantt is not None:
        write_text(gantt, chart)
    written = {"plan": output, "instance_output": instance_output, "gantt": gantt}
    if as_json:
        print_plan_as_json(moved, new, written, warnings)
    elif not quiet:
        print_plan_summary(moved, new, written)


def _change(instance: Instance, event: str | None, job_id: str | None, steps: str | None) -> ProfileChange | None:
    """Return the change of an event, or None without an event."""
    from cpsched.formats import parse_steps
    from cpsched.planner import ProfileChange

    if event is None:
        if job_id is not None or steps is not None:
            raise click.UsageError("--job and --steps belong to --event profile.")
        return None
    if job_id is None or steps is None:
        raise click.UsageError("--event profile needs --job and --steps.")
    job = next((job for job in instance.elements() if job.id == job_id), None)
    if job is None:
        raise click.BadParameter(f"The instance has no job {printable(job_id)!r}.", param_hint="--job")
    text, source = (steps, "--steps") if steps.lstrip().startswith("[") else (_read(steps), steps)
    return ProfileChange(job=job_id, steps=parse_steps(text, instance, job, source=source))


def _read(path: str) -> str:
    """Return the text of a file, which must exist."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        message = f"Expected a JSON list or a file that has one, got {printable(path)!r}: {error}"
        raise click.BadParameter(message, param_hint="--steps") from error
