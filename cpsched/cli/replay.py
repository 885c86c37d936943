"""``cpsched replay``: the days of a site's past, played again under other rules, limits and machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from cpsched.cli.options import AS_JSON, ends_in, stdin_or_name
from cpsched.cli.outputs import echo_output
from cpsched.cli.schedulers import Asked, contenders, read_policies
from cpsched.cli.screen import print_whole, progress_bar, say_first_start
from cpsched.cli.whatif import text_or_file
from cpsched.cli.workload import echo_notes, log_options
from cpsched.errors import StoreError
from cpsched.text import printable

if TYPE_CHECKING:
    from cpsched.answers import HistoryChange
    from cpsched.domain import Instance
    from cpsched.formats.logs import LogOptions, WorkloadNotes
    from cpsched.lab.bench import Days, Rules
    from cpsched.report import Replay


@click.command("replay", epilog="Example: cpsched replay log.swf.gz --change 'engine=smith' --change 'add 2 nodes'")
@click.argument("source", metavar="STORE|LOG", callback=stdin_or_name)
@click.option(
    "--from",
    "from_day",
    metavar="DAY",
    help="The first day: a date, 2026-11-03, or the days since the first submission.  [default: the first]",
)
@click.option("--to", "to_day", metavar="DAY", help="The day before which the replay ends.  [default: after the last]")
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="CHANGE",
    help="What is different in one replay: engine=NAME, policy=NAME, limit=JSON, drain=NODES, 'add 20 nodes with "
    "gpus=4', 'remove 20 nodes with gpus=4', 'remove node[1-4]', or several of these with ; between them. Each "
    "--change is a replay of its own.",
)
@click.option(
    "--policy",
    default="easy",
    metavar="POLICY",
    help="Scheduler of the replay without a change: the nearest to the site's, with parameters as in simulate.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 10_000),
    default=3,
    metavar="N",
    help="Plays of each replay: the first as the jobs came, the others with each submission moved at random by up to "
    "ten minutes.",
)
@click.option(
    "--choose",
    is_flag=True,
    help="Tell which of planning.engine and planning.choose of the site's file is best on its past, as the daemon "
    "asks once a day.",
)
@log_options(cluster=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=ends_in(".html"),
    metavar="FILE",
    help="File for the report: one HTML page, which opens offline.",
)
@AS_JSON
@click.option("--quiet", is_flag=True, help="Print no progress and no notes.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    source: str | Path,
    from_day: str | None,
    to_day: str | None,
    changes: tuple[str, ...],
    policy: str,
    replicas: int,
    choose: bool,
    options: LogOptions,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Play a site's own past again, as it was and with changes.

    LOG is a workload as simulate reads it. STORE is what a daemon has seen: the site's file, the file of its SQLite
    database, or a URL. The report begins with how near the replay without a change comes to what really happened.
    """
    from cpsched.answers import parse_history_change
    from cpsched.lab.bench import days_of, replay
    from cpsched.lab.sim import warm_up_simulation
    from cpsched.planner import compiling_announced
    from cpsched.report import replay_report, replay_tables, report_page
    from cpsched.writing import write_bytes

    if choose:
        given = [
            name
            for name, value in ctx.params.items()
            if name not in ("source", "choose", "as_json", "quiet")
            and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ]
        if given:
            raise click.UsageError("Expected --choose with --json and --quiet only.")
        _choose(source, as_json=as_json, quiet=quiet)
        return
    asked = [parse_history_change(change) for change in changes]
    usual = read_policies(ctx, _param(ctx, "policy"), [policy])
    past, starts, notes = _past(source, options)
    if notes is not None and not quiet:
        echo_notes(notes, is_whole=False)
    days = days_of(past, starts, from_day, to_day)
    rules = _rules(ctx, days, usual, asked)
    with compiling_announced(lambda: say_first_start(quiet=quiet)):
        warm_up_simulation()
    with progress_bar("simulations", wanted=not quiet) as progress:
        found = replay(days, rules, replicas=replicas, progress=progress)
    report = replay_report(found)
    if output is not None:
        write_bytes(output, report_page(report).encode())
    if as_json:
        _echo(found, days, notes, output)
        return
    for sentence in report.sentences:
        click.echo(printable(sentence))
    for table in replay_tables(found):
        print_whole(table)
    if output is not None:
        click.echo(f"report: {printable(str(output))}")


def _param(ctx: click.Context, name: str) -> click.Parameter:
    return next(param for param in ctx.command.params if param.name == name)


def _past(source: str | Path, options: LogOptions) -> tuple[Instance, Mapping[str, int], WorkloadNotes | None]:
    """Read what a daemon's store has seen, or a workload, with what is known of the real starts of its jobs."""
    from cpsched.formats.logs import LogOptions, read_workload
    from cpsched.site.daemon import store_url

    url = None if isinstance(source, Path) else store_url(source)
    if url is None:
        if not Path(source).is_file():
            raise click.BadParameter(f"The file {printable(str(source))!r} does not exist.", param_hint="'STORE|LOG'")
        instance, notes = read_workload(Path(source), options)
        return instance, notes.starts, notes
    if options != LogOptions():
        raise click.UsageError("Expected a log for options of logs, got the store of a daemon.")
    seen = _seen(url)
    if seen is None or not seen[1]:
        raise StoreError(f"{source}: Expected a store with a history of jobs that started, got one without")
    return (*seen, None)


def _seen(url: str) -> tuple[Instance, dict[str, int]] | None:
    from cpsched.site.daemon import Store, watched

    store = Store(url, is_reader=True)
    try:
        return watched(store)
    finally:
        store.close()


def _choose(source: str | Path, *, as_json: bool, quiet: bool) -> None:
    """Print which engine of a site is best on what its daemon has seen."""
    from cpsched.lab.bench import choose_engine
    from cpsched.lab.sim import LEAST_JOBS, warm_up_simulation
    from cpsched.planner import compiling_announced
    from cpsched.report import grid
    from cpsched.site.daemon import read_site

    if Path(source).suffix != ".toml":
        raise click.UsageError(f"Expected the site's file (.toml) for --choose, got {printable(str(source))!r}.")
    site = read_site(Path(source))
    engines = (site.planning.engine, *site.planning.choose)
    if len(engines) == 1:
        raise click.UsageError("Expected engines in planning.choose of the site's file, got none.")
    seen = _seen(site.store.url)
    with compiling_announced(lambda: say_first_start(quiet=quiet)):
        warm_up_simulation()
    with progress_bar("simulations", wanted=not quiet) as progress:
        past = None if seen is None else seen[0]
        found = choose_engine(past, engines, window=site.planning.most_jobs, progress=progress)
    if as_json:
        trials = [{"engine": name, **asdict(trial)} for name, trial in found.trials.items()]
        content = {"usual": engines[0], **asdict(found), "trials": trials}
        echo_output("replay-choose", content)
        return
    if not found.trials:
        click.echo(f"{found.engine} stays: expected {LEAST_JOBS} ended jobs of a week, got {found.jobs:,} jobs")
        return
    click.echo(f"{found.jobs:,} past jobs, relative to {engines[0]} (it stays unless another one wins):")
    rows = []
    for name, one in found.trials.items():
        ratios = (f"{ratio:.2f}" for ratio in (one.ratio, one.slowdown, one.longest))
        rows.append((name, *ratios, f"{one.replicas}, {'won' if one.wins else 'lost'}"))
    headings = ("engine", "weighted queue time", "slowdown", "longest wait", "replicas")
    print_whole(grid("", headings, rows, right={1, 2, 3}))
    click.echo(f"choice: {found.engine}")


def _rules(ctx: click.Context, days: Days, usual: list[Asked], changes: Sequence[HistoryChange]) -> tuple[Rules, ...]:
    """Return the site's rules, and those with each change."""
    from cpsched.answers import changed_instance, check_limits
    from cpsched.lab.bench import UNCHANGED, Rules

    jobs, machine = days.instance, replace(days.instance, jobs=())
    (own,) = contenders(usual)
    rules = [Rules(label=UNCHANGED, scheduler=own.name, parameters=own.parameters, machine=machine)]
    for one in changes:
        request = replace(one.request, limit=tuple(map(text_or_file, one.request.limit)))
        changed = machine if request.is_empty else changed_instance(machine, request)
        check_limits(changed.limits[len(machine.limits) :], jobs)
        asked = usual if one.scheduler is None else read_policies(ctx, _param(ctx, "changes"), [one.scheduler])
        (other,) = contenders(asked)
        rules.append(Rules(label=one.text, scheduler=other.name, parameters=other.parameters, machine=changed))
    labels = [one.label for one in rules]
    if len(set(labels)) < len(labels):
        raise click.UsageError("Expected each change once, and none that is called 'unchanged'.")
    return tuple(rules)


def _echo(found: Replay, days: Days, notes: WorkloadNotes | None, output: Path | None) -> None:
    keys = ("label", "figure", "unchanged", "changed", "difference")
    content = {
        "history": found.name,
        "begin": days.begin,
        "end": days.end,
        "jobs": int(found.only.sum()),
        "replicas": found.replicas,
        "fidelity": None if found.fidelity is None else asdict(found.fidelity),
        "replays": [{"label": label, "summary": summary.as_document()} for label, summary in found.summaries.items()],
        "differences": [{key: asdict(one)[key] for key in keys} for one in found.differences()],
        "notes": {} if notes is None else dict(notes.counts),
        "output": None if output is None else str(output),
    }
    echo_output("replay", content)
