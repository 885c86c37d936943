"""``cpsched generate``: workloads of jobs that arrive over time, by published models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.cli.answer import check_stdout
from cpsched.cli.options import AS_JSON, INPUT_FILE, NEW_INSTANCE, SEED_RANGE, Number
from cpsched.cli.outputs import echo_output, echo_written, put_document
from cpsched.cli.workload import echo_notes, log_options

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.formats.logs import LogOptions


Decorator = Callable[[Callable[..., Any]], Any]

_LOAD = "Offered load: core seconds of the jobs, divided by the machine's between first and last arrival."

SEED = click.option(
    "--seed", type=SEED_RANGE, default=0, help="Seed of the random numbers: the same seed gives the same workload."
)
MALLEABLE = click.option(
    "--malleable",
    type=Number(0, 1),
    metavar="SHARE",
    help="Share of the jobs made malleable; only jobs with chunks of two cores or more can be.  [default: none]",
)

MOLDABLE = click.option(
    "--moldable",
    type=Number(0, 1),
    metavar="SHARE",
    help="Share of the jobs that may run on other numbers of chunks, by Downey's speed-up.  [default: none]",
)

RESIZABLE = click.option(
    "--resizable",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="With --moldable: they may change their number of chunks as they run, which costs so long.  [default: never]",
)


WALLTIMES = click.option(
    "--walltimes",
    metavar="MODEL",
    help="What jobs ask for: accurate, their runtimes; f=NUMBER, up to 1 + f times that; modal, popular round times.",
)
FAILURES = click.option(
    "--failures",
    metavar="NUMBERS",
    help="Nodes fail: 'mtbf=SECONDS mttr=SECONDS', exponential; with shape=NUMBER Weibull, with group=NODES together.",
)


def _load(default: float | None = None) -> Decorator:
    return click.option(
        "--load",
        type=Number(min=0, min_open=True),
        default=default,
        help=_LOAD if default is not None else f"{_LOAD}  [default: the model's own]",
    )


def _jobs(default: int, least: int = 1) -> Decorator:
    return click.option("--jobs", type=click.IntRange(min=least), default=default, help="Number of jobs.")


def _nodes(default: int, least: int) -> Decorator:
    return click.option(
        "--nodes", type=click.IntRange(min=least), default=default, help="Number of nodes of the machine."
    )


def _cores(default: int) -> Decorator:
    return click.option("--cores", type=click.IntRange(min=1), default=default, help="Number of cores of each node.")


@click.group("generate", epilog="Example: cpsched generate lublin --jobs 10000 --load 0.9 -o workload.json.gz")
def command() -> None:
    """Generate a workload, an instance whose jobs arrive over time.

    The jobs have runtimes, which only simulators read. Each model has options of its own: cpsched generate MODEL --help
    """


def _model(name: str, example: str, *options: Decorator, scales: bool = True) -> Decorator:
    """Make a command of a function that draws a workload from its options and its seed.

    `scales`: whether the workload has an offered load, to which it is scaled where one is asked for.
    """

    def make(draw: Callable[..., Instance]) -> click.Command:
        def run(output: Path, seed: int, as_json: bool, **given: Any) -> None:
            changes = {
                key: given.pop(key, None) for key in ("malleable", "moldable", "resizable", "walltimes", "failures")
            }
            changes["load"] = given.pop("load") if scales else None
            _write(draw(seed=seed, **given), output, seed, as_json=as_json, **changes)

        shared = (_load(), MALLEABLE, MOLDABLE, RESIZABLE, WALLTIMES, FAILURES) if scales else ()
        made: Any = run
        for option in reversed((NEW_INSTANCE, *options, *shared, SEED, AS_JSON)):
            made = option(made)
        return command.command(name, help=draw.__doc__, epilog=f"Example: cpsched generate {name} {example}")(made)

    return make


STREAMS = click.option(
    "--stream",
    "streams",
    multiple=True,
    type=click.Choice(["whole", "batch", "interactive"]),
    default=("whole",),
    help="Jobs of the model: all as one stream, or only batch or interactive jobs; give it twice for both.",
)


@_model(
    "lublin", "--nodes 256 --stream batch -o batch.json.gz", _jobs(1000), _nodes(128, least=32), _cores(16), STREAMS
)
def lublin(jobs: int, seed: int, *, streams: tuple[str, ...], **machine: Any) -> Instance:
    """Draw jobs from the model of Lublin and Feitelson (2003), on whole nodes."""
    from cpsched.lab import workloads

    if len(set(streams)) < len(streams):
        raise click.BadParameter("Expected each stream once.", param_hint="--stream")
    return workloads.lublin(jobs, seed, streams=streams, **machine)


WIDEST = click.option("--widest", type=click.IntRange(min=1), default=128, help="Number of nodes of the largest job.")
IDEAL = click.option("--ideal", is_flag=True, help="Walltimes equal run times, as if users knew them.")


@_model("cirne-like", "--jobs 5000 --malleable 1 -o sd.json.gz", _jobs(1000, least=2), _nodes(1024, least=1),
        _cores(48), WIDEST, IDEAL, _load(1.5), MALLEABLE, MOLDABLE, scales=False)  # fmt: skip
def cirne_like(jobs: int, seed: int, *, nodes: int, widest: int, **others: Any) -> Instance:
    """Draw jobs from a model like that of Cirne and Berman (2001), on whole nodes."""
    from cpsched.lab import workloads

    if widest > nodes:
        raise click.BadParameter(f"Expected at most all {nodes} nodes, got {widest}.", param_hint="--widest")
    return workloads.cirne_like(jobs, seed, nodes=nodes, widest=widest, **others)


@_model("job-mix", "--seed 7 -o mix.json")
def job_mix(seed: int) -> Instance:
    """Draw the job mix of a comparison of PBS and Maui: about 76 jobs, 64 nodes."""
    from cpsched.lab import workloads

    return workloads.job_mix(seed)


AGENTS = click.option("--agents", type=click.IntRange(min=1), default=3, help="Number of agents of each kind.")


@_model("agents", "--agents 5 -o agents.json.gz", AGENTS, _nodes(64, least=8))
def agents(seed: int, **size: Any) -> Instance:
    """Simulate developers, heavy users and greedy users who submit jobs."""
    from cpsched.lab import workloads

    return workloads.agent_workload(seed, **size)


@_model("openccs", "--jobs 20000 -o oculus.json.gz", _jobs(1000))
def openccs(jobs: int, seed: int) -> Instance:
    """Draw jobs like those on OCuLUS, 616 nodes under OpenCCS."""
    from cpsched.lab import workloads

    return workloads.openccs_workload(jobs, seed)


@_model("eurora", "--jobs 3000 --load 1.2 -o eurora.json.gz", _jobs(1000))
def eurora(jobs: int, seed: int) -> Instance:
    """Draw jobs like those on Eurora, 64 nodes with GPUs or MICs."""
    from cpsched.lab import workloads

    return workloads.eurora_stream(jobs, seed)


@_model("log", "log.swf.gz --cluster machine.json --moldable 0.5 -o choices.json.gz",
        click.argument("source", metavar="LOG", type=INPUT_FILE), log_options(cluster=True, feedback=True))  # fmt: skip
def log(seed: int, *, source: Path, options: LogOptions) -> Instance:
    """Take the jobs of a log, or of an instance, as they arrived."""
    from cpsched.formats.logs import read_workload

    instance, notes = read_workload(source, options)
    echo_notes(notes, is_whole=False)
    return instance


@_model("evolving", "--nodes 150 -o evolving.json", _nodes(100, least=75), scales=False)
def evolving(seed: int, *, nodes: int) -> Instance:
    """Draw the evolving jobs of Klein and Pérez, all submitted at once."""
    from cpsched.lab import workloads

    return workloads.evolving_window(seed, nodes=nodes)


def _write(
    workload: Instance,
    output: Path,
    seed: int,
    *,
    load: float | None,
    malleable: float | None,
    moldable: float | None,
    resizable: int | None,
    walltimes: str | None,
    failures: str | None,
    as_json: bool,
) -> None:
    """Scale a workload, make jobs malleable or moldable, let things go wrong, write it, and print its figures."""
    from cpsched.formats import instance_to_document
    from cpsched.lab import workloads

    check_stdout(output, as_json=as_json)
    if resizable is not None and moldable is None:
        raise click.UsageError("--resizable is of the jobs that --moldable makes: say which share of them.")
    if load is not None:
        if _is_at_once(workload):
            raise click.UsageError("All jobs arrive in the same second: there is no load to scale; take more jobs.")
        workload = workloads.scaled(workload, load)
    if malleable is not None:
        workload = workloads.with_malleable(workload, seed, share=malleable)
    if moldable is not None:
        workload = workloads.with_moldable(workload, seed, share=moldable, resizable=resizable)
    try:
        if walltimes is not None:
            workload = workloads.with_walltimes(workload, seed, walltimes)
        if failures is not None:
            workload = workloads.with_failures(workload, seed, workloads.Failures.of(failures))
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    put_document(instance_to_document(workload), output)
    counts = {
        "malleable": None if malleable is None else sum(job.malleability is not None for job in workload.jobs),
        "moldable": None if moldable is None else sum(bool(job.alternatives) for job in workload.jobs),
        "failures": None if failures is None else len(workload.outages),
    }
    offered = None if _is_at_once(workload) else workloads.offered_load(workload)
    if as_json:
        content = {"output": str(output), "jobs": len(workload.jobs), **counts, "load": offered}
        echo_output("generate", content)
        return
    said = [f"{len(workload.jobs)} jobs"]
    said += [f"{count} {kind}" for kind, count in counts.items() if count is not None]
    if offered is not None:
        said.append(f"load {offered:.2f}")
    echo_written(", ".join(said), output)


def _is_at_once(workload: Instance) -> bool:
    return len({job.submit for job in workload.jobs}) == 1
