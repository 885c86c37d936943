"""``cpsched explain``: why a job starts when a plan says, and not earlier."""

from dataclasses import asdict
from pathlib import Path

import click

from cpsched.cli.forecast import forecasts, row_of
from cpsched.cli.options import AS_JSON, INPUT_FILE
from cpsched.cli.outputs import echo_output
from cpsched.text import printable


@click.command("explain", epilog="Example: cpsched explain window.json plan.json 1201 --at 600")
@click.argument("instance", type=INPUT_FILE)
@click.argument("plan", type=INPUT_FILE)
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
def command(instance: Path, plan: Path, job: str, at: int | None, log: Path | None, as_json: bool) -> None:
    """Explain why JOB does not start earlier than in PLAN.

    For each interval of time before its start, the first cause is named, and the fewest other jobs that were found
    without which the job could start. Each change that is listed was tried: with it, the job would start earlier
    beside all other jobs as they are planned. The chain names the job that ended last before it could start, the one
    that kept that job waiting, and so on.
    """
    from cpsched.answers import Answers, chain_lines, explanation_lines
    from cpsched.formats import read_instance, read_plan
    from cpsched.report import moment

    window = read_instance(instance)
    answers = Answers(window, read_plan(plan))
    if not answers.has(job):
        message = f"The instance has no job {printable(job)!r}."
        if elements := window.members().get(job):
            message = (
                f"{printable(job)!r} is an array of {len(elements)} jobs: name one, such as {printable(elements[0])!r}."
            )
        raise click.BadParameter(message, param_hint="JOB")
    explanation = answers.explain(job, at)
    chain = answers.chain(job) if at is None else ()
    found = () if log is None else forecasts(window, log, quiet=as_json)[0]
    one = next((one for one in found if one.job == job), None)
    if as_json:
        echo_output(
            "explain",
            {
                **asdict(explanation),
                "chain": [asdict(one) for one in chain],
                "forecast": None if one is None else row_of(one),
            },
        )
        return
    if one is not None:
        click.echo(one.words(lambda second: moment(window, second)))
    for line in (*explanation_lines(window, explanation), *chain_lines(window, chain)):
        click.echo(line)
