"""``cpsched forecast``: when waiting jobs will start, most likely and with 80 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from cpsched.cli.options import AS_JSON, INPUT_FILE, SEED_RANGE
from cpsched.cli.outputs import echo_output
from cpsched.cli.screen import say_first_start
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Job
    from cpsched.forecast import Forecast

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
    LOG, jobs take their walltimes, and none arrive.
    """
    from cpsched.formats import read_instance
    from cpsched.report import moment

    window = read_instance(instance)
    told, past = forecasts(window, log, futures=futures, seed=seed, quiet=as_json)
    learnt = sum(job.runtime is not None for job in past)
    if as_json:
        rows = [row_of(one) for one in told]
        about = {"instance": window.name, "now": window.now, "futures": futures}
        echo_output("forecast", {**about, "learnt": learnt, "arrivals": len(past), "jobs": rows})
        return
    if log is not None:
        click.echo(f"learnt from {learnt:,} jobs that ended; {len(past):,} came before now", err=True)
    for one in told:
        span = ""
        if one.earliest is not None and one.latest is not None and one.earliest < one.latest:
            span = f" (80 %: {moment(window, one.earliest)} to {moment(window, one.latest)})"
        click.echo(f"{printable(one.job)}: {one.words(lambda second: moment(window, second))}{span}")


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


def row_of(one: Forecast) -> dict[str, object]:
    """Return a forecast as a value of JSON."""
    return {name: getattr(one, name) for name in ("job", "likely", "by", "earliest", "latest")}
