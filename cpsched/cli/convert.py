"""``cpsched convert``: an instance from a window of a log."""

from __future__ import annotations

from pathlib import Path

import click

from cpsched.cli.options import (
    CORES_PER_CHUNK,
    EXISTING_FILE,
    FIRST,
    JOBS,
    MEMORY_FIELD,
    OUTPUT_FILE,
    PARTITION,
    QUEUE,
    STATUS,
    SUBMITTED,
    ends_in,
)
from cpsched.cli.workload import LogOptions, Notes, echo_notes, filtered, take_jobs
from cpsched.text import printable

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
@STATUS
@QUEUE
@PARTITION
@SUBMITTED
@FIRST
@JOBS
@click.option("--now", type=int, help="Second of the log's clock at which the plan begins.  [default: last submission]")
@CORES_PER_CHUNK
@MEMORY_FIELD
def command(
    log: Path,
    cluster: Path,
    output: Path,
    status: tuple[int, ...],
    queue: tuple[str, ...],
    partition: tuple[str, ...],
    submitted: tuple[int, int] | None,
    first: int,
    jobs: int | None,
    now: int | None,
    cores_per_chunk: int | None,
    memory_field: str,
) -> None:
    """Make an instance from the jobs of a log.

    LOG is in Standard Workload Format, an accounting log of Torque or PBS (.acct), or sbatch lines of the Slurm
    simulator (.events); it may be gzipped. CLUSTER is an instance document without jobs; everything in it but the
    cluster is optional. All jobs of the new instance are waiting jobs. --first and --jobs count the jobs that pass the
    other filters.
    """
    from cpsched.cli.screen import warn
    from cpsched.formats import write_instance

    options = LogOptions(
        cluster=cluster,
        status=status,
        queue=queue,
        partition=partition,
        submitted=submitted,
        first=first,
        jobs=jobs,
        cores_per_chunk=cores_per_chunk,
        memory_field=memory_field,
    )
    taken = take_jobs(log, options, arriving=False, now=now)
    window = taken.window
    warn(taken.faults, "faulty line")
    echo_notes(Notes(counts=tuple((words, count) for words, count in filtered(window) if count)), is_whole=False)
    warn(window.left_out, "left out")
    warn(window.adjusted, "adjusted")
    warn(window.oversized, "too large")
    if not window.instance.jobs:
        raise click.UsageError("No job of the log is in this window.")
    write_instance(window.instance, output)
    click.echo(f"{len(window.instance.jobs)} jobs in {printable(str(output))}")
