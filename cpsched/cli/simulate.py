"""``cpsched simulate``: simulate a workload under one or several policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.exits import ExitCode
from cpsched.cli.interrupts import finished
from cpsched.cli.options import AS_JSON, INPUT_FILE, OUTPUT_FILE, SECONDS_RANGE, check_folder
from cpsched.cli.outputs import echo_output
from cpsched.cli.results import SUMMARY, check_free, folder_names, found_in, identity_of, write_results
from cpsched.cli.schedulers import Asked, Contender, contenders, echo_schedulers, read_policies
from cpsched.cli.screen import print_whole, say_first_start, warn
from cpsched.cli.verify import echo_violations
from cpsched.cli.workload import echo_notes, log_options
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.formats.logs import LogOptions
    from cpsched.lab.sim import Checkpoint, History
    from cpsched.verify import Violation


def _list_policies(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        echo_schedulers()
        ctx.exit()


@click.command("simulate", epilog="Example: cpsched simulate log.swf.gz --policy easy --policy fcfs -o out")
@click.argument("workload", type=INPUT_FILE)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("easy",),
    metavar="POLICY",
    callback=read_policies,
    help="Policy with its parameters: easy, 'sjf backfill=easy'. Give it several times to compare policies. "
    "--list-policies prints them all.",
)
@click.option(
    "--list-policies",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_policies,
    help="Print all policies with their parameters, and exit.",
)
@click.option(
    "--predict",
    type=click.Choice(("order", "all")),
    is_flag=False,
    flag_value="order",
    help="Predict run times from the last two jobs of the same user: for the order of the queue (order), or for "
    "reservations too (all).  [without a value: order]",
)
@click.option("--charge-overhead", is_flag=True, help="Add the real seconds of each decision to the simulated time.")
@log_options(cluster=True, feedback=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for the results; several policies have a folder each in it. Results of another simulation "
    "are not overwritten.",
)
@click.option(
    "--record", is_flag=True, help="Also write the simulated schedule as a plan, which cpsched verify can check."
)
@click.option(
    "--verify",
    "is_verified",
    is_flag=True,
    help="Check the simulated schedule against every rule, as cpsched verify does.",
)
@click.option(
    "--checkpoint",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="File for the state of the simulation, written each --interval and on Ctrl-C, and removed at the end.",
)
@click.option("--resume", is_flag=True, help="Continue from the checkpoint.")
@click.option("--interval", type=SECONDS_RANGE, default=60.0, metavar="SECONDS", help="Time between two checkpoints.")
@AS_JSON
@click.option("--notes", is_flag=True, help="List each line of a log that was left out or changed.")
@click.option("--quiet", is_flag=True, help="Print no progress and no table.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    workload: Path,
    policies: Sequence[Asked],
    predict: str | None,
    charge_overhead: bool,
    options: LogOptions,
    output: Path | None,
    record: bool,
    is_verified: bool,
    checkpoint: Path | None,
    resume: bool,
    interval: float,
    as_json: bool,
    notes: bool,
    quiet: bool,
) -> None:
    """Simulate a workload: a policy schedules the jobs as they arrive.

    WORKLOAD is an instance whose jobs have runtimes, or a log: in Standard Workload Format (.swf), an accounting log
    of Torque or PBS (.acct), what sacct -P or sacct --json prints, sbatch lines of the Slurm simulator (.events), a
    workload of Batsim, jobs of ElastiSim, or a table of Alibaba's GPU clusters. All may be gzipped.

    Ctrl-C and SIGTERM end the simulation; the results are those up to then. A policy with a compiled event loop (queue
    rules such as fcfs, sjf, easy) continues from a checkpoint exactly as without the interruption. All other policies
    begin anew with the jobs that run and wait at the checkpoint.
    """
    from cpsched.errors import Fault
    from cpsched.formats import write_instance
    from cpsched.formats.logs import is_log, read_workload
    from cpsched.lab.policies import parameter_text
    from cpsched.lab.sim import Prediction, interprets_simulations, unkept, warm_up_simulation
    from cpsched.planner import compiling_announced, own_interpretation
    from cpsched.report import runs_table

    if record and output is None:
        raise click.UsageError("--record needs -o FOLDER.")
    _check_checkpoint(checkpoint, resume=resume, count=len(policies))
    chosen = contenders(policies)
    instance, remarks = read_workload(workload, options)
    warn(remarks.warnings, "warning")
    if notes or not quiet or not instance.jobs:
        echo_notes(remarks, is_whole=notes)
    if not instance.jobs:
        raise click.UsageError(f"Expected jobs to simulate, got none of {printable(str(workload))}.")
    not_kept = {one.label: unkept(instance, one.scheduler) for one in chosen}
    for label, parts in () if quiet else not_kept.items():
        warn([Fault(f"{label} does not keep", part) for part in parts], "warning")
    conditions: dict[str, Any] = {
        "predict": None if predict is None else Prediction(predict),
        "charge_overhead": charge_overhead,
        "feedback": options.feedback,
    }
    targets = [] if output is None else _targets(output, instance, chosen, conditions)
    ctx.with_resource(compiling_announced(lambda: say_first_start(quiet=quiet)))
    ctx.with_resource(own_interpretation())
    if checkpoint is not None or not interprets_simulations(instance, [one.scheduler for one in chosen]):
        warm_up_simulation()
    code, summaries, played, said = ExitCode.FINE, {}, list[dict[str, Any]](), list[str]()
    for number, contender in enumerate(chosen):
        kept = _kept(checkpoint, contender, conditions, resume=resume, interval=interval)
        history, is_whole = _play(instance, contender, conditions, kept, quiet=quiet)
        with finished("the results are written") as is_interrupted:
            heading = contender.label if is_whole else f"{contender.label} (interrupted)"
            summaries[heading] = summary = history.summary()
            if summary.total.overdue and not quiet:
                late = f"{summary.total.overdue:,} x waited longer than the max_wait of the queue"
                click.echo(f"{contender.label}: {late}", err=True)
            about = {
                "interrupted": not is_whole,
                "seconds": round(history.elapsed, 3),
                "unkept": not_kept[contender.label],
                "rules": [asdict(use) for use in history.rules],
                "as_easy": history.as_easy and asdict(history.as_easy),
            }
            said += [f"{contender.label}: {line}" for line in history.remarks()]
            policy = {"label": contender.label, "policy": contender.name}
            parameters = json.loads(json.dumps(dict(contender.parameters), default=str))
            played.append({**policy, "parameters": parameters, **about, "folder": None, "violations": None})
            if output is not None:
                folder, identity = targets[number]
                about, made = {**identity, "place": number, **about}, history.record() if record and is_whole else None
                write_results(folder, instance, history, summary, label=contender.label, about=about, record=made)
                played[-1]["folder"] = str(folder)
                if options.feedback or (number == 0 and is_log(workload)):
                    write_instance(history.workload, (folder if options.feedback else output) / "workload.json.gz")
                if remarks.assumed:
                    write_instance(replace(instance, jobs=()), output / "machine.json")
        if not is_whole or is_interrupted():
            code = ExitCode.INTERRUPTED
            break
        if is_verified:
            played[-1]["violations"] = _violations(contender, history, quiet=quiet)
            if played[-1]["violations"]:
                code = ExitCode.VIOLATIONS
    if checkpoint is not None and code is not ExitCode.INTERRUPTED:
        checkpoint.unlink(missing_ok=True)
    if as_json:
        for entry, summary in zip(played, summaries.values(), strict=True):
            entry["summary"] = summary.as_document()
            entry["violations"] = entry["violations"] and list(map(asdict, entry["violations"]))
        content = {"workload": instance.name, **conditions, "notes": dict(remarks.counts), "policies": played}
        echo_output("simulate", content)
    elif not quiet:
        how = "".join(f", {key}={parameter_text(value)}" for key, value in conditions.items() if value)
        print_whole(runs_table(f"{instance.name}{how}", summaries))
        for label, parts in not_kept.items():
            for part in parts:
                click.echo(printable(f"{label} does not keep {part}"))
        for line in said:
            click.echo(printable(line))
        if output is not None:
            click.echo(f"results: {printable(str(output))}")
    ctx.exit(code)


def _play(
    instance: Instance, contender: Contender, conditions: Mapping[str, Any], kept: Checkpoint | None, *, quiet: bool
) -> tuple[History, bool]:
    """Simulate; return the history, and whether the simulation is complete: the user may interrupt it."""
    from cpsched.cli.screen import simulation_bar
    from cpsched.lab.sim import Interrupted, simulate
    from cpsched.report import moment

    try:
        with simulation_bar(contender.label, date=lambda now: moment(instance, now), wanted=not quiet) as progress:
            history = simulate(instance, contender.scheduler, progress=progress, checkpoint=kept, **conditions)
    except Interrupted as interrupt:
        history = interrupt.history
        runs, jobs = history.runs, len(instance.jobs)
        over, came = int(runs.over.sum()), f"{len(runs):,} had arrived and {int(runs.running.sum()):,} were running"
        click.echo(f"{contender.label}: interrupted when {over:,} of {jobs:,} jobs were over; {came}", err=True)
        if kept is not None:
            click.echo(f"checkpoint: {printable(str(kept.path))}", err=True)
        return history, False
    if not quiet:
        jobs, seconds = len(history.runs), history.elapsed
        rate = jobs / max(seconds, 1e-9)
        click.echo(f"{contender.label}: {jobs:,} jobs in {seconds:.1f} s, {rate:,.0f} jobs/s", err=True)
        if history.counters:
            counted = ", ".join(f"{count:,} {what}" for what, count in sorted(history.counters.items()))
            click.echo(f"{contender.label}: {counted}", err=True)
    return history, True


def _violations(contender: Contender, history: History, *, quiet: bool) -> tuple[Violation, ...]:
    from cpsched.formats import instance_to_document, plan_to_document
    from cpsched.verify import verify

    violations = verify(instance_to_document(history.workload), plan_to_document(history.record()))
    if violations:
        click.echo(f"{contender.label}: ", err=True, nl=False)
        echo_violations(violations, err=True)
    elif not quiet:
        click.echo(f"{contender.label}: verified, no violations", err=True)
    return violations


def _targets(
    output: Path, instance: Instance, chosen: Sequence[Contender], conditions: Mapping[str, Any]
) -> list[tuple[Path, dict[str, Any]]]:
    """Return the folder of each policy's results, and what these are of; refuse what would overwrite others."""
    names = folder_names([contender.label for contender in chosen])
    folders = [output] if len(chosen) == 1 else [output / name for name in names]
    identities = [identity_of(instance, contender, conditions) for contender in chosen]
    for folder, identity in zip(folders, identities, strict=True):
        check_free(folder, identity)
    for folder in dict.fromkeys((output, *(path.parent for path in found_in(output, SUMMARY)))):
        # They share the workload's document.
        check_free(folder, {"workload_digest": identities[0]["workload_digest"]})
    check_folder(output, is_made=True)
    return list(zip(folders, identities, strict=True))


def _kept(
    path: Path | None, contender: Contender, conditions: Mapping[str, Any], *, resume: bool, interval: float
) -> Checkpoint | None:
    """Return the checkpoint's file, and the identity of the simulation in it."""
    from cpsched.lab.sim import Checkpoint

    if path is None:
        return None
    words = " ".join([contender.label, *(f"{key}={value}" for key, value in conditions.items() if value)])
    return Checkpoint(path=path, scheduler=words, interval=interval, resume=resume)


def _check_checkpoint(checkpoint: Path | None, *, resume: bool, count: int) -> None:
    if checkpoint is None:
        if resume:
            raise click.UsageError("--resume needs --checkpoint FILE.")
        return
    if count > 1:
        raise click.UsageError(f"A checkpoint is of one policy, got {count}.")
    check_folder(checkpoint.parent)
    if resume != checkpoint.exists():
        what = "does not exist" if resume else "exists: continue it with --resume, or remove it"
        raise click.UsageError(f"The checkpoint {printable(str(checkpoint))} {what}.")
