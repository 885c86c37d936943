"""``cpsched convert``: an instance from a window of a log, or from the saved answers of a resource manager."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from cpsched.cli.options import EXISTING_FILE, OUTPUT_FILE, ends_in
from cpsched.cli.workload import echo_counts, log_options
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.formats.logs import LogOptions

__all__ = ["command"]

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


def _zone(ctx: click.Context, param: click.Parameter, name: str | None) -> tzinfo | None:
    """Return the zone of a name, which the system must know."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.BadParameter(f"Expected a time zone such as Europe/Berlin, got {name!r}.") from error


@click.command(
    "convert", epilog="Example: cpsched convert log.swf.gz machine.json --status 1 --jobs 500 -o window.json.gz"
)
@click.argument("log", type=EXISTING_FILE, required=False)
@click.argument("cluster", type=EXISTING_FILE, required=False)
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
@click.option(
    "--slurm",
    type=_DIRECTORY,
    help="Instead of a log: a directory with answers of squeue, sinfo and scontrol, JSON (.json) or text (.txt).",
)
@click.option(
    "--pbs",
    type=_DIRECTORY,
    help="Instead of a log: a directory with answers of qstat -f -F json and pbsnodes -a -F json (.json).",
)
@click.option(
    "--time-zone",
    callback=_zone,
    help="Zone of dates without one, of --slurm and --pbs.  [default: that of this machine]",
)
@click.option(
    "--config", type=EXISTING_FILE, help="Site file (TOML) for --slurm, of which the table [manager] is read."
)
def command(
    log: Path | None,
    output: Path,
    now: int | None,
    slurm: Path | None,
    pbs: Path | None,
    time_zone: tzinfo | None,
    config: Path | None,
    options: LogOptions,
) -> None:
    """Make an instance from a log, or a resource manager's answers.

    LOG is in Standard Workload Format, an accounting log of Torque or PBS (.acct), or sbatch lines of the Slurm
    simulator (.events); it may be gzipped. CLUSTER is an instance document without jobs; everything in it but the
    cluster is optional. All jobs of the new instance are waiting jobs. --first and --jobs count the jobs that pass the
    other filters.

    With --slurm or --pbs neither is given: running jobs stay where they run, and the filters are not used.
    """
    if [log, slurm, pbs].count(None) != 2 or (log is not None and options.cluster is None):
        raise click.UsageError("Expected one of these: LOG and CLUSTER, --slurm, --pbs.")
    if slurm is not None:
        _convert_slurm(slurm, output, now, time_zone, config)
        return
    if pbs is not None:
        _convert_pbs(pbs, output, now, time_zone)
        return
    if log is None:
        return
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


def _convert_slurm(directory: Path, output: Path, now: int | None, zone: tzinfo | None, config: Path | None) -> None:
    """Write the instance of saved answers of Slurm."""
    from cpsched.bridge.slurm import SiteChoices, SlurmModel, make_snapshot, read_directory, read_site
    from cpsched.cli.snapshot import tell_snapshot

    site = SlurmModel(kind="slurm") if config is None else read_site(config)
    reading = read_directory(directory, zone)
    click.echo(f"read: {printable(', '.join(reading.used))}", err=True)
    moment = reading.latest if now is None else now
    tell_snapshot(make_snapshot(reading.records, moment, SiteChoices.of(site), name=directory.resolve().name), output)


def _convert_pbs(directory: Path, output: Path, now: int | None, zone: tzinfo | None) -> None:
    """Write the instance of saved answers of PBS."""
    from cpsched.bridge.pbs import make_snapshot, read_directory
    from cpsched.cli.snapshot import tell_snapshot

    qstat, pbsnodes = read_directory(directory)
    tell_snapshot(make_snapshot(qstat, pbsnodes, now=now, zone=zone, name=directory.resolve().name), output)
