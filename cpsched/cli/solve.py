"""``cpsched solve``: from an instance document to a verified plan."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.exits import ExitCode
from cpsched.cli.options import OUTPUT_FILE, ends_in
from cpsched.cli.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan

__all__ = ["command"]

#: Written out, so that the help is there at once: a test compares them with `cpsched.portfolio.ENGINES`.
ENGINE_NAMES = (
    "planner",
    "search",
    "policy:fcfs",
    "policy:sjf",
    "policy:wspt",
    "policy:conservative",
    "policy:easy",
    "policy:pbs_fifo_bf10",
    "policy:pbs_walltime_bf400",
)

#: So many jobs of the waiting room are shown; the rest is counted.
_MOST_WAITING = 10


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Refuse ``nan`` and ``inf``, which are floats too."""
    if not math.isfinite(value) or value < 0:
        raise click.BadParameter(f"Expected a number of seconds >= 0, got {value}.", ctx, param)
    return value


@click.command("solve", epilog="Example: cpsched solve window.json -o plan.json --gantt plan.html")
@click.argument("instance", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--engine", default="planner", show_default=True, type=click.Choice(ENGINE_NAMES), help="Who plans.")
@click.option(
    "--budget",
    default=10.0,
    show_default=True,
    type=float,
    callback=_finite,
    metavar="SECONDS",
    help="Time to improve the planner's plan in; the planner itself takes what it needs.",
)
@click.option(
    "--bound",
    default=0.0,
    show_default=True,
    type=float,
    callback=_finite,
    metavar="SECONDS",
    help="Time to prove in, after the plan, how far it can be from the optimum.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Same seed, same plan.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    callback=ends_in(".json", ".json.gz"),
    metavar="PLAN",
    help="Where the plan goes.",
)
@click.option(
    "--gantt",
    type=OUTPUT_FILE,
    callback=ends_in(".html"),
    help="Where a Gantt chart goes: one HTML file, opens offline.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of the summary.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
@click.pass_context
def command(
    ctx: click.Context,
    instance: str,
    engine: str,
    budget: float,
    bound: float,
    seed: int,
    output: Path | None,
    gantt: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Plan all jobs of an instance and verify the plan.

    INSTANCE is a file, plain or gzipped, or - for standard input. Nothing is written before the plan has been
    verified, and no file is ever half-written.
    """
    from cpsched.cli.files import load_document_or_stdin, write_text
    from cpsched.cli.screen import progress_bar, warn
    from cpsched.cli.verify import echo_violations
    from cpsched.errors import Fault
    from cpsched.formats import parse_instance, plan_to_document, write_plan
    from cpsched.planner import compiling_announced
    from cpsched.portfolio import prepare, solve
    from cpsched.report import gantt_html
    from cpsched.verify import verify

    document, source = load_document_or_stdin(instance)
    warnings: list[Fault] = []
    parsed = parse_instance(document, source=source, on_warning=warnings.append)
    warn(warnings, "warning")
    with compiling_announced(lambda: _say_first_start(quiet)):
        prepare(engine)
    with progress_bar("planning", wanted=not quiet) as progress:
        plan = solve(parsed, engine=engine, budget=budget, bound=bound, seed=seed, progress=progress)
    violations = verify(document, plan_to_document(plan))
    if violations:
        click.echo("cpsched: the planner's own plan breaks rules. This is a bug; nothing was written.", err=True)
        echo_violations(violations, err=True)
        ctx.exit(ExitCode.UNVERIFIED)
    chart = "" if gantt is None else gantt_html(parsed, plan)
    if output is not None:
        write_plan(plan, output)
    if gantt is not None:
        write_text(chart, gantt)
    written = {"plan": output, "gantt": gantt}
    if as_json:
        _print_json(parsed, plan, written)
    elif not quiet:
        _print_summary(parsed, plan, written)


def _say_first_start(quiet: bool) -> None:
    """Say why nothing happens for a while."""
    if not quiet:
        click.echo("First start: compiling kernels, which may take half a minute ...", err=True)


def _print_json(instance: Instance, plan: Plan, written: dict[str, Path | None]) -> None:
    """Print the figures, the waiting room and the files written as one JSON object."""
    from cpsched.cli.screen import echo_json
    from cpsched.formats import plan_to_document
    from cpsched.metrics import honest_gap, summarise

    document = plan_to_document(plan)
    summary = summarise(instance, plan)
    figures: dict[str, Any] = {**asdict(summary), "utilisation": dict(summary.utilisation)}
    echo_json(
        {
            "instance": plan.instance,
            "engine": document["engine"],
            "objective": {**document["objective"], "honest_gap": honest_gap(plan.objective)},
            "summary": figures,
            "waiting_room": document.get("waiting_room", []),
            "violations": [],
            **{name: None if path is None else str(path) for name, path in written.items()},
        }
    )


def _print_summary(instance: Instance, plan: Plan, written: dict[str, Path | None]) -> None:
    """Print the figures as tables, then the waiting room, the verdict and the files written."""
    from cpsched.cli.screen import print_whole
    from cpsched.report import summary_table

    print_whole(summary_table(instance, plan))
    for waiting in plan.waiting_room[:_MOST_WAITING]:
        click.echo(f"waiting room: {printable(waiting.id)}: {waiting.reason}: {printable(waiting.detail)}")
    if len(plan.waiting_room) > _MOST_WAITING:
        click.echo(f"waiting room: ... and {len(plan.waiting_room) - _MOST_WAITING} more")
    click.echo("verified: no violations")
    for name, path in written.items():
        if path is not None:
            click.echo(f"{name}: {printable(str(path))}")
