"""``cpsched convert``: a window of a log in Standard Workload Format becomes an instance."""

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
    SUBMITTED,
    ends_in,
)
from cpsched.cli.text import printable

__all__ = ["command"]


@click.command(
    "convert", epilog="Example: cpsched convert log.swf.gz machine.json --first 1000 --jobs 500 -o window.json.gz"
)
@click.argument("log", type=EXISTING_FILE)
@click.argument("cluster", type=EXISTING_FILE)
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FILE,
    callback=ends_in(".json", ".json.gz"),
    help="Where the instance goes.",
)
@FIRST
@JOBS
@SUBMITTED
@click.option("--now", type=int, help="The instant to plan from, on the log's clock.  [default: the last submission]")
@CORES_PER_CHUNK
@MEMORY_FIELD
def command(
    log: Path,
    cluster: Path,
    output: Path,
    first: int,
    jobs: int | None,
    submitted: tuple[int, int] | None,
    now: int | None,
    cores_per_chunk: int | None,
    memory_field: str,
) -> None:
    """Make an instance of a log in Standard Workload Format.

    LOG may be gzipped. CLUSTER is an instance document without jobs, in which all but the cluster may be left out. All
    jobs of the window wait.
    """
    from cpsched.cli.screen import warn
    from cpsched.formats import write_instance
    from cpsched.formats.swf import MemoryField, Selection, read_machine, read_swf, swf_to_instance

    machine = read_machine(cluster)
    read = read_swf(log)
    window = swf_to_instance(
        read,
        machine,
        selection=Selection(first=first, jobs=jobs, submitted=submitted),
        now=now,
        cores_per_chunk=cores_per_chunk,
        memory_field=MemoryField(memory_field),
    )
    warn(read.faults, "faulty line")
    warn(window.left_out, "left out")
    warn(window.adjusted, "adjusted")
    warn(window.oversized, "too large")
    if not window.instance.jobs:
        raise click.UsageError("No job of the log is in this window.")
    write_instance(window.instance, output)
    click.echo(f"{len(window.instance.jobs)} jobs in {printable(str(output))}")
