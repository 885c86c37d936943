"""``cpsched bench``: a campaign of simulations, and the tables and charts of its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.exits import ExitCode
from cpsched.cli.options import AS_JSON, EXISTING_FILE, check_folder
from cpsched.cli.outputs import echo_output
from cpsched.cli.screen import campaign_bar
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.lab.bench import Outcome


@click.command("bench", epilog="Example: cpsched bench campaigns/quick.toml --workers 2 -o out/quick")
@click.argument("campaign", type=EXISTING_FILE)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for results; cells finished by an earlier run are read from it.  [default: out/NAME of the campaign]",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder with logs and instances that are not where the campaign says, as scripts/fetch-traces fetches them.",
)
@click.option("--workers", default=2, type=click.IntRange(1, 10_000), help="Worker processes, or jobs of Slurm.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of a Dask scheduler, as tcp://host:8786.")
@click.option("--slurm", is_flag=True, help="Run in jobs of Slurm, configured by jobqueue.slurm of Dask.")
@AS_JSON
@click.option("--quiet", is_flag=True, help="Print no progress and no tables.")
@click.pass_context
def command(
    ctx: click.Context,
    campaign: Path,
    output: Path | None,
    data: Path | None,
    workers: int,
    scheduler: str | None,
    slurm: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Simulate a campaign: each policy on each workload and seed.

    CAMPAIGN is a TOML file; docs/campaigns.md describes its keys. A cell is one simulation. Finished cells are not run
    again, even after Ctrl-C. Cells that fail are listed at the end, and the exit code is then 5.
    """
    from functools import partial

    from cpsched.lab.bench import at_address, local, on_slurm, read_campaign, run_campaign

    if scheduler is not None and slurm:
        raise click.UsageError("Expected one of --scheduler and --slurm, got both.")
    asked = read_campaign(campaign, data)
    for name in asked.left_out:
        click.echo(f"left out, since its file was not found: {printable(name)}", err=True)
    if scheduler is not None:
        connect = partial(at_address, scheduler)
    else:
        connect = partial(on_slurm if slurm else local, workers)
    folder = output or Path("out") / asked.name
    check_folder(folder, is_made=True)
    with campaign_bar(wanted=not quiet) as watch:
        outcome = run_campaign(asked, folder, connect, watch=watch)
    for path in outcome.written:
        if not (quiet or as_json) and path.suffix == ".md" and path.parent == folder:
            click.echo(printable(path.read_text(encoding="utf-8"), keep_lines=True))
    ctx.exit(echo_campaign(asked.name, folder, outcome, as_json=as_json))


#: The most cells that are named with an error of several.
_MOST_NAMED = 3


def echo_campaign(name: str, folder: Path, outcome: Outcome, *, as_json: bool) -> ExitCode:
    """Print how many cells a campaign has, and which failed, each error once; return the exit code."""
    from cpsched.lab.bench import by_error

    if as_json:
        _print_as_json(name, folder, outcome)
    else:
        cells = f"{outcome.total} cell{'s' * (outcome.total != 1)}"
        click.echo(f"{cells}, {outcome.earlier} of them finished before, {len(outcome.failures)} failed")
        click.echo(f"results: {printable(str(folder))}")
    for error, alike in by_error(outcome.failures).items():
        names = "; ".join(printable(failure.label) for failure in alike[:_MOST_NAMED])
        if len(alike) > 1:
            more = f"; and {len(alike) - _MOST_NAMED} more" if len(alike) > _MOST_NAMED else ""
            names = f"{len(alike)} cells ({names}{more})"
        click.echo(f"failed: {names}: {printable(error)}", err=True)
    return ExitCode.FAILED_CELLS if outcome.failures else ExitCode.FINE


def _print_as_json(campaign: str, folder: Path, outcome: Outcome) -> None:
    content = {
        "campaign": campaign,
        "folder": str(folder),
        "cells": outcome.total,
        "earlier": outcome.earlier,
        "failed": [{"cell": failure.label, "error": failure.error} for failure in outcome.failures],
        "written": [str(path) for path in outcome.written],
    }
    echo_output("bench", content)
