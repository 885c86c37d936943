"""``cpsched snapshot``: an instance from a resource manager that runs."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.answer import check_stdout
from cpsched.cli.options import AS_JSON, EXISTING_FILE, NEW_INSTANCE
from cpsched.cli.outputs import echo_output, echo_written, put_document
from cpsched.cli.screen import warn

if TYPE_CHECKING:
    from cpsched.site.bridge import Snapshot


@click.command("snapshot", epilog="Example: cpsched snapshot --rm slurm --config site.toml -o now.json")
@click.option(
    "--rm", "manager", required=True, type=click.Choice(["slurm"]), help="Resource manager that runs the machine."
)
@click.option(
    "--config",
    type=EXISTING_FILE,
    help="Site file (TOML), of which the table [manager] is read: expected waits, paths.",
)
@NEW_INSTANCE
@AS_JSON
def command(manager: str, config: Path | None, output: Path, as_json: bool) -> None:
    """Write the jobs of a machine that runs as an instance.

    Nothing is changed there. Jobs that an instance cannot say are left out, each with the reason.
    """
    from cpsched.site.bridge.slurm import SlurmModel, client_of, make_snapshot, read_site

    check_stdout(output, as_json=as_json)
    site = SlurmModel(kind="slurm") if config is None else read_site(config)
    client = client_of(site)
    records = client.records(client.jobs())
    taken = make_snapshot(records, int(time.time()), site)
    content = tell_snapshot(taken, output, as_json=as_json)
    if as_json:
        echo_output("snapshot", content)


def tell_snapshot(snapshot: Snapshot, output: Path, *, as_json: bool) -> dict[str, Any]:
    """Write the instance of a snapshot, print what is in it and what was left out, and return that as values of JSON.

    `as_json`: whether what is in it is printed by the caller.
    """
    from cpsched.errors import Fault
    from cpsched.formats import instance_to_document

    instance = snapshot.instance
    left_out = [*snapshot.notes, *(Fault(f"job {left.id}", left.reason) for left in snapshot.left)]
    warn(left_out, "left out")
    put_document(instance_to_document(instance), output)
    running = sum(job.running is not None for job in instance.jobs)
    waiting = len(instance.jobs) - running
    if not as_json:
        echo_written(f"{running} running and {waiting} waiting jobs", output)
    return {
        "output": str(output),
        "running": running,
        "waiting": waiting,
        "left_out": [asdict(fault) for fault in left_out],
    }
