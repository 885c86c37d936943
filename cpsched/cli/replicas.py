"""Replicas on the command line: ``cpsched simulate --replicas`` is a campaign of one workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.bench import echo_campaign
from cpsched.cli.results import RUN, found_in
from cpsched.cli.screen import campaign_bar, print_whole
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.cli.exits import ExitCode
    from cpsched.cli.schedulers import Contender
    from cpsched.formats.logs import LogOptions


#: Worker processes, as many as ``cpsched bench`` has by default.
_WORKERS = 2


def simulate_replicas(
    name: str,
    workload: Path,
    options: LogOptions,
    chosen: Sequence[Contender],
    folder: Path,
    conditions: Mapping[str, Any],
    *,
    replicas: int,
    as_json: bool,
    quiet: bool,
) -> ExitCode:
    """Simulate replicas of a workload, print means with their intervals and paired differences, and draw plots.

    Raises `UsageError` if the folder has simulations.
    """
    from cpsched.lab.bench import RESULTS, local, read_cells, replicas_campaign, run_campaign
    from cpsched.report import campaign_report, campaign_tables

    if found_in(folder, RUN):
        raise click.UsageError(f"{printable(str(folder))} has simulations: choose another folder with -o.")
    policies = [(contender.name, contender.parameters) for contender in chosen]
    campaign = replicas_campaign(name, workload, options, policies, replicas=replicas, **conditions)
    with campaign_bar(wanted=not quiet) as watch:
        outcome = run_campaign(campaign, folder, partial(local, _WORKERS), watch=watch)
    if not (quiet or as_json) and outcome.results.findings:
        report = campaign_report(name, read_cells(folder / RESULTS))
        for sentence in report.sentences:
            click.echo(printable(sentence))
        for table in campaign_tables(report):
            print_whole(table)
    return echo_campaign(campaign.name, folder, outcome, as_json=as_json)
