"""``cpsched convert``: an instance from a window of a log, or from the saved answers of a resource manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from cpsched.cli.answer import check_stdout
from cpsched.cli.options import AS_JSON, EXISTING_FILE, INPUT_FILE, NEW_INSTANCE
from cpsched.cli.outputs import echo_output, echo_written, put_document
from cpsched.cli.screen import warn
from cpsched.cli.snapshot import tell_snapshot
from cpsched.cli.workload import echo_counts, log_options
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.formats.logs import LogOptions
    from cpsched.site.bridge import Snapshot


def _answers(option: str, commands: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    directory = click.Path(exists=True, file_okay=False, path_type=Path)
    return click.option(option, type=directory, help=f"Instead of a log: a directory with answers of {commands}.")


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
@click.argument("log", type=INPUT_FILE, required=False)
@click.argument("cluster", type=INPUT_FILE, required=False)
@NEW_INSTANCE
@log_options(cluster=False)
@click.option("--now", type=int, help="Second of the log's clock at which the plan begins.  [default: last submission]")
@_answers("--slurm", "squeue, sinfo, scontrol (.json, .txt), topology.conf or .yaml")
@_answers("--pbs", "qstat -f -F json and pbsnodes -a -F json (.json)")
@_answers("--oar", "oarstat -J -f and oarnodes -J (.json)")
@click.option(
    "--time-zone",
    callback=_zone,
    help="Zone of dates without one, of --slurm and --pbs.  [default: that of this machine]",
)
@click.option(
    "--config", type=EXISTING_FILE, help="Site file (TOML) for --slurm, of which the table [manager] is read."
)
@AS_JSON
def command(
    log: Path | None,
    output: Path,
    now: int | None,
    slurm: Path | None,
    pbs: Path | None,
    oar: Path | None,
    time_zone: tzinfo | None,
    config: Path | None,
    as_json: bool,
    options: LogOptions,
) -> None:
    """Make an instance from a log, or a resource manager's answers.

    LOG is in Standard Workload Format, an accounting log of Torque or PBS (.acct), the output of sacct -P or sacct
    --json, sbatch lines of the Slurm simulator (.events), a workload of Batsim, jobs of ElastiSim, or a table of
    Alibaba's GPU clusters; it may be gzipped. CLUSTER is an instance document without jobs; everything in it but the
    cluster is optional. All jobs of the new instance are waiting jobs. --first and --jobs count the jobs that pass the
    other filters.

    With --slurm, --pbs or --oar neither is given: running jobs stay where they run, and the filters are not used.
    """
    check_stdout(output, as_json=as_json)
    if [log, slurm, pbs, oar].count(None) != 3 or (log is not None and options.cluster is None):
        raise click.UsageError("Expected one of these: LOG and CLUSTER, --slurm, --pbs, --oar.")
    taken = None
    if slurm is not None:
        taken = _of_slurm(slurm, now, time_zone, config)
    elif pbs is not None:
        taken = _of_pbs(pbs, now, time_zone)
    elif oar is not None:
        taken = _of_oar(oar, now)
    if taken is not None:
        content = tell_snapshot(taken, output, as_json=as_json)
        if as_json:
            echo_output("convert", content | {"adjusted": [], "too_large": [], "kept_out": {}})
    if log is None:
        return
    from cpsched.formats import instance_to_document
    from cpsched.formats.logs import take_jobs

    window = take_jobs(log, options, arriving=False, now=now)
    warn(window.faults, "faulty line")
    echo_counts(window.filtered)
    warn(window.left_out, "left out")
    warn(window.adjusted, "adjusted")
    warn(window.oversized, "too large")
    if not window.instance.jobs:
        raise click.UsageError("No job of the log is in this window.")
    put_document(instance_to_document(window.instance), output)
    if as_json:
        content = {
            "output": str(output),
            "running": 0,
            "waiting": len(window.instance.jobs),
            "left_out": [asdict(fault) for fault in (*window.faults, *window.left_out)],
            "adjusted": [asdict(fault) for fault in window.adjusted],
            "too_large": [asdict(fault) for fault in window.oversized],
            "kept_out": dict(window.filtered),
        }
        echo_output("convert", content)
        return
    echo_written(f"{len(window.instance.jobs)} jobs", output)


def _of_slurm(directory: Path, now: int | None, zone: tzinfo | None, config: Path | None) -> Snapshot:
    from cpsched.site.bridge.slurm import SlurmModel, make_snapshot, read_directory, read_site

    site = SlurmModel(kind="slurm") if config is None else read_site(config)
    reading = read_directory(directory, zone)
    click.echo(f"read: {printable(', '.join(reading.used))}", err=True)
    moment = reading.latest if now is None else now
    return make_snapshot(reading.records, moment, site, name=directory.resolve().name)


def _of_pbs(directory: Path, now: int | None, zone: tzinfo | None) -> Snapshot:
    from cpsched.site.bridge.pbs import make_snapshot, read_directory

    return make_snapshot(*read_directory(directory), now=now, zone=zone, name=directory.resolve().name)


def _of_oar(directory: Path, now: int | None) -> Snapshot:
    from cpsched.site.bridge.oar import make_snapshot, read_directory

    return make_snapshot(*read_directory(directory), now=now, name=directory.resolve().name)
