"""``cpsched explain``: why a job starts when a plan says, and not earlier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.forecast import forecasts, in_words
from cpsched.cli.options import AS_JSON, INPUT_FILE
from cpsched.cli.outputs import echo_output
from cpsched.cli.watching import look
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.forecast import Forecast
    from cpsched.site.serve import ForecastModel


@click.command("explain", epilog="Example: cpsched explain window.json plan.json 1201 --at 600")
@click.argument("files", type=INPUT_FILE, nargs=-1, required=True, metavar="INSTANCE [PLAN]")
@click.argument("job")
@click.option(
    "--at",
    type=click.IntRange(-(10**12), 10**12),
    metavar="SECOND",
    help="Why it does not start then, in seconds of the instance's clock.  [default: at every second from now on]",
)
@click.option(
    "--log",
    type=INPUT_FILE,
    help="Also say when it will most likely start, by what is learnt from this log, as cpsched forecast does.",
)
@AS_JSON
def command(files: tuple[Path, ...], job: str, at: int | None, log: Path | None, as_json: bool) -> None:
    """Explain why JOB does not start earlier than in PLAN.

    The site's file of a daemon, or its SQLite file, stands in place of INSTANCE and PLAN.

    For each interval of time before its start, the first cause is named, and the fewest other jobs that were found
    without which the job could start. Each change that is listed was tried: with it, the job would start earlier
    beside all other jobs as they are planned. The chain names the job that ended last before it could start, the one
    that kept that job waiting, and so on.
    """
    from cpsched.answers import Answers, chain_lines, explanation_lines, submission_lines
    from cpsched.report import duration, moment

    if len(files) > len(("INSTANCE", "PLAN")):
        raise click.UsageError(f"Expected INSTANCE, PLAN and JOB, got {len(files) + 1} arguments.")
    window, plan, known, moves = look(*files, job=job)
    if plan is None:
        raise click.UsageError("Expected INSTANCE, PLAN and JOB: solve makes a plan.")
    answers = Answers(window, plan)
    if not answers.has(job):
        message = f"The instance has no job {printable(job)!r}."
        if elements := window.members().get(job):
            message = (
                f"{printable(job)!r} is an array of {len(elements)} jobs: name one, such as {printable(elements[0])!r}."
            )
        raise click.BadParameter(message, param_hint="JOB")
    explanation = answers.explain(job, at)
    chain = answers.chain(job) if at is None else ()
    told: Mapping[str, Forecast | ForecastModel] = known or {}
    if log is not None:
        found, past = forecasts(window, log, quiet=as_json)
        told = {each.job: each for each in found}
        if all(before.runtime is None for before in past):
            name, now = printable(log.name), window.now
            click.echo(f"{name}: expected jobs that ended by the instance's now, {now}, got none", err=True)
    one = told.get(job)
    if as_json:
        echo_output(
            "explain",
            {
                **asdict(explanation),
                "chain": [asdict(one) for one in chain],
                "forecast": None if one is None else {"job": job, **one.as_document()},
                "moved": [each.model_dump() for each in moves],
            },
        )
        return
    for each in moves:
        if each.start is None:
            click.echo(f"at {moment(window, each.at)}: {printable(each.reason)}")
    if one is not None:
        click.echo(in_words(window, one))
        (own,) = (each for each in window.elements() if each.id == job)
        if one.enough is not None and own.running is None:
            shorter = replace(own, steps=(replace(own.steps[0], walltime=one.enough),))
            start = next(submission_lines(window, answers.instead(shorter)))
            click.echo(f"95 % of jobs like it end within {duration(one.enough)}; with that walltime it {start}")
    for line in (*explanation_lines(window, explanation), *chain_lines(window, chain)):
        click.echo(line)
