"""``cpsched forecast``: when waiting jobs will start, most likely and with 80 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import AS_JSON, INPUT_FILE, SEED_RANGE
from cpsched.cli.outputs import echo_output
from cpsched.cli.screen import say_first_start
from cpsched.cli.watching import look
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Job
    from cpsched.forecast import Forecast
    from cpsched.site.serve import ForecastModel

#: Ten futures tell no share of 90 %.
_LEAST, _MOST = 10, 10_000


@click.command("forecast", epilog="Example: cpsched forecast window.json log.swf.gz")
@click.argument("instance", type=INPUT_FILE)
@click.argument("log", type=INPUT_FILE, required=False)
@click.option(
    "--futures", type=click.IntRange(_LEAST, _MOST), default=100, metavar="N", help="How many futures are played."
)
@click.option("--seed", type=SEED_RANGE, default=0, help="Where samples begin.")
@AS_JSON
def command(instance: Path, log: Path | None, futures: int, seed: int, as_json: bool) -> None:
    """Forecast when the waiting jobs of INSTANCE will start.

    Futures are played by priority, with EASY backfilling. How long jobs run is learnt from the jobs of LOG that have
    ended by the instance's now, on the same clock; and the jobs of one to fourteen days before come again. Without
    LOG, jobs take their walltimes, and none arrive; of a daemon (its site's file, or its SQLite file) its last
    forecasts are printed, and none are made.
    """
    from cpsched.report import duration, moment

    window, _, known, _ = look(instance)
    past: list[Job] = []
    if known is None or log is not None:
        found, past = forecasts(window, log, futures=futures, seed=seed, quiet=as_json)
        told: Mapping[str, Forecast | ForecastModel] = {one.job: one for one in found}
    else:
        told, futures = known, 0
    learnt = sum(job.runtime is not None for job in past)
    if as_json:
        rows = [{"job": job, **one.as_document()} for job, one in told.items()]
        about = {"instance": window.name, "now": window.now, "futures": futures}
        echo_output("forecast", {**about, "learnt": learnt, "arrivals": len(past), "jobs": rows})
        return
    if log is not None:
        click.echo(f"learnt from {learnt:,} jobs that ended; {len(past):,} came before now", err=True)
    for job, one in told.items():
        span = ""
        if one.earliest is not None and one.latest is not None and one.earliest < one.latest:
            span = f" (80 %: {moment(window, one.earliest)} to {moment(window, one.latest)})"
        enough = "" if one.enough is None else f"; 95 % of jobs like it end within {duration(one.enough)}"
        click.echo(f"{printable(job)}: {in_words(window, one)}{span}{enough}")


def forecasts(
    window: Instance, log: Path | None, *, futures: int = 100, seed: int = 0, quiet: bool
) -> tuple[tuple[Forecast, ...], list[Job]]:
    """Return forecasts of the waiting jobs of a window, and the jobs of the log that came before."""
    from cpsched.forecast import forecast, learnt_from
    from cpsched.planner import compiling_announced

    learner, past = learnt_from(() if log is None else _jobs_of(log, window), window.now)
    with compiling_announced(lambda: say_first_start(quiet=quiet)):
        return forecast(window, learner, past, futures=futures, seed=seed), past


def _jobs_of(log: Path, window: Instance) -> Sequence[Job]:
    """Return the jobs of a log on the machine and in the queues of a window, of which the log may say nothing."""
    from cpsched.formats import write_instance
    from cpsched.formats.logs import LogOptions, read_workload

    with TemporaryDirectory() as folder:
        machine = Path(folder) / "machine.json"
        write_instance(replace(window, jobs=()), machine)
        return read_workload(log, LogOptions(cluster=machine))[0].jobs


def in_words(window: Instance, one: Forecast | ForecastModel) -> str:
    """Return the forecast of a job of a window in words."""
    from cpsched.report import moment

    if one.likely is None:
        return "no start in most futures"
    by = "" if one.by is None or one.by == one.likely else f", by {moment(window, one.by)} with 80 %"
    return f"most likely {moment(window, one.likely)}{by}"
