"""``cpsched convert``: an instance from a window of a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import EXISTING_FILE, OUTPUT_FILE, ends_in
from cpsched.cli.workload import echo_counts, log_options
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.formats.logs import LogOptions

__all__ = ["command"]


@click.command(
    "convert", epilog="Example: cpsched convert log.swf.gz machine.json --status 1 --jobs 500 -o window.json.gz"
)
@click.argument("log", type=EXISTING_FILE)
@click.argument("cluster", type=EXISTING_FILE)
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FILE,
    callback=ends_in(".json", ".json.gz"),
    help="File for the instance.",
)
@log_options(cluster=False)
@click.option("--now", type=int, help="Second of the log's clock at which the plan begins.  [default: last submission]")
def command(log: Path, output: Path, now: int | None, options: LogOptions) -> None:
    """Make an instance from the jobs of a log.

    LOG is in Standard Workload Format, an accounting log of Torque or PBS (.acct), or sbatch lines of the Slurm
    simulator (.events); it may be gzipped. CLUSTER is an instance document without jobs; everything in it but the
    cluster is optional. All jobs of the new instance are waiting jobs. --first and --jobs count the jobs that pass the
    other filters.
    """
    from cpsched.cli.screen import warn
    from cpsched.formats import write_instance
    from cpsched.formats.logs import take_jobs

    taken = take_jobs(log, options, arriving=False, now=now)
    window = taken.window
    warn(taken.faults, "faulty line")
    echo_counts(taken.kept_out)
    warn(window.left_out, "left out")
    warn(window.adjusted, "adjusted")
    warn(window.oversized, "too large")
    if not window.instance.jobs:
        raise click.UsageError("No job of the log is in this window.")
    write_instance(window.instance, output)
    click.echo(f"{len(window.instance.jobs)} jobs in {printable(str(output))}")
