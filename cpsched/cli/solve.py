"""``cpsched solve``: from an instance document to a verified plan."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cpsched.cli.answer import answer_plan, check_stdout
from cpsched.cli.options import (
    AS_JSON,
    GANTT_FILE,
    INPUT_FILE,
    INSTANCE_FILE,
    PLAN_FILE,
    SECONDS_RANGE,
    SEED_RANGE,
    STEPS_RANGE,
    WORKERS_RANGE,
)
from cpsched.cli.screen import improvement_bar, progress_bar, say_first_start, warn
from cpsched.text import did_you_mean, printable

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan
    from cpsched.errors import Fault
    from cpsched.portfolio import Team

#: A literal list, so that the help is fast: a test compares it with `cpsched.portfolio.ENGINES`.
ENGINE_NAMES = (
    "portfolio", "planner", "search", "cp", "minizinc", "fcfs", "sjf_list", "wspt_list", "conservative",
    "conservative_on_nodes", "easy", "pbs_fifo_bf10", "pbs_walltime_bf400", "ep_rigid", "ep_nox", "ep_2x", "ep_2xc",
    "ep_infx", "ep_infxc",
)  # fmt: skip
#: As in documents.
_HIGHEST_PRICE = 1e100


class _EngineName(click.Choice[str]):
    """The name of an engine: ours, one that another distribution announces, or ``module:name``."""

    def __init__(self) -> None:
        super().__init__(ENGINE_NAMES)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; one from outside is loaded later, and refused then."""
        if ":" in value:
            return value
        if value not in ENGINE_NAMES:
            from cpsched.portfolio import engine_names

            known = engine_names()
            if value in known:
                return value
            if hint := did_you_mean(value, known):
                self.fail(f"there is no engine {printable(value)!r}{hint}", param, ctx)
        return super().convert(value, param, ctx)


def _price(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Refuse prices that no document may have."""
    if value is not None and not 0 <= value <= _HIGHEST_PRICE:
        raise click.BadParameter(f"Expected a price from 0 to {_HIGHEST_PRICE:g}, got {value}.", ctx, param)
    return value


def _aims(ctx: click.Context, param: click.Parameter, value: str | None) -> list[dict[str, float]] | None:
    """Return aims in order as a document has them: ``wait 5% > makespan + 2*tardiness``."""
    if value is None:
        return None
    aims = []
    for part in value.split(">"):
        terms, percent, _ = part.partition("%")
        *summands, last = terms.split("+")
        name, _, tolerance = last.strip().rpartition(" ") if percent else (last, "", "")
        try:
            aim = {
                word.strip(): float(weight or 1)
                for weight, _, word in (one.rpartition("*") for one in (*summands, name))
            }
            if "" in aim or len(aim) < len(summands) + 1:
                raise ValueError(part)  # no term, or one twice
            aims.append(aim | ({"tolerance": float(tolerance) / 100} if tolerance else {}))
        except ValueError:
            raise click.BadParameter(f"Expected 'TERM [N%] > TERM ...', got {printable(part.strip())!r}.") from None
    return aims


@click.command(
    "solve",
    epilog="Example: cpsched solve window.json -o plan.json --gantt plan.html; with a Dask cluster: --dask tcp://head:8786",
)
@click.argument("instance", type=INPUT_FILE)
@click.option(
    "--engine",
    default="portfolio",
    type=_EngineName(),
    help="Engine to use: one of these, one that another package announces, or MODULE:NAME.",
)
@click.option(
    "--budget",
    default=10.0,
    type=SECONDS_RANGE,
    metavar="SECONDS",
    help="Time for planning; 0: the planner's plan without improvement, in the time that it needs.",
)
@click.option("--workers", default=2, type=WORKERS_RANGE, help="Number of CPU cores to use.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Dask scheduler whose workers search as well, each as one more lane: tcp://HOST:8786. They need the same "
    "version of cpsched.",
)
@click.option(
    "--warm",
    type=click.Path(dir_okay=False),
    metavar="PLAN",
    help="Earlier plan to begin from; jobs may have arrived or ended since.",
)
@click.option(
    "--promise",
    is_flag=False,
    flag_value="1",
    type=float,
    callback=_price,
    metavar="[=PRICE]",
    help="Take the starts of the --warm plan as promised: each expected wait by which a job starts later costs PRICE "
    "(1 if left out). A missing --warm file is then the first run.",
)
@click.option(
    "--objective",
    callback=_aims,
    metavar="AIMS",
    help="What is to be small, in place of the instance's objective; several aims in order: 'tardiness 5% > "
    "weighted_wait + 0.001*makespan', where the second may raise the first by 5 %.",
)
@click.option("--solver", default="gecode", help="MiniZinc solver (engine minizinc only).")
@click.option(
    "--bound",
    default=0.0,
    type=SECONDS_RANGE,
    metavar="SECONDS",
    help="Further time, after planning, to prove how far the plan is from the optimum at most.",
)
@click.option(
    "--seed",
    default=0,
    type=SEED_RANGE,
    help="Seed of the random numbers. Solvers stop by the clock, so that plans differ from run to run with the same "
    "seed too, but not with --steps, and not those of the planner and the rules.",
)
@click.option(
    "--steps",
    type=STEPS_RANGE,
    metavar="N",
    help="Steps after which the search ends, on one core (engine search only): if the budget does not end before, the "
    "plan is the same in each run and on each machine.",
)
@PLAN_FILE
@INSTANCE_FILE
@GANTT_FILE
@AS_JSON
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
def command(
    instance: Path,
    engine: str,
    budget: float,
    workers: int,
    dask: str | None,
    warm: str | None,
    promise: float | None,
    objective: list[dict[str, float]] | None,
    solver: str,
    bound: float,
    seed: int,
    steps: int | None,
    output: Path | None,
    instance_output: Path | None,
    gantt: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Plan all jobs of an instance and verify the plan.

    INSTANCE is a file, plain or gzipped, or - for standard input. Nothing is written before the plan has been
    verified, and no file is left half-written. Ctrl-C and SIGTERM end the improvement: the best plan so far is the
    answer.
    """
    from cpsched.formats import checked, instance_to_document, load_document, parse_instance
    from cpsched.planner import compiling_announced, with_promised_starts
    from cpsched.portfolio import prepare, solve, team_of, with_dask_lanes

    if promise is not None and warm is None:
        raise click.UsageError("--promise needs --warm PLAN, the plan whose starts are promised.")
    for option, value in {"--promise": promise, "--objective": objective}.items():
        if value is not None and output is not None and instance_output is None:
            message = "the plan's value is that of the changed window, which no other document has"
            raise click.UsageError(f"{option} with -o needs --instance-output: {message}.")
    check_stdout(output, instance_output, as_json=as_json)
    document = load_document(instance)
    if objective is not None:
        document = document | {"objective": objective[0] if len(objective) == 1 else objective}
    warnings: list[Fault] = []
    parsed = parse_instance(document, source=str(instance), on_warning=warnings.append)
    earlier = None if warm is None else _earlier(parsed, warm, warnings, is_needed=promise is None)
    warn(warnings, "warning")
    if promise is not None and earlier is not None:
        parsed = checked(with_promised_starts(parsed, earlier, promise))
        document = instance_to_document(parsed)
    lanes: AbstractContextManager[Team | None] = nullcontext()
    if dask is not None:
        with compiling_announced(lambda: say_first_start(quiet=quiet)):
            prepare(engine, workers=workers, solver=solver, changing=any(job.changes for job in parsed.jobs))
        lanes = with_dask_lanes(team_of(engine, workers=workers, solver=solver), engine, dask)
    with (
        compiling_announced(lambda: say_first_start(quiet=quiet)),
        lanes as team,
        progress_bar("planning", wanted=not quiet) as progress,
        improvement_bar(budget + bound, wanted=not quiet) as on_plan,
    ):
        plan = solve(
            parsed,
            engine=engine,
            budget=budget,
            seed=seed,
            workers=workers,
            bound=bound,
            warm=earlier,
            solver=solver,
            steps=steps,
            team=team,
            document=document,
            progress=progress,
            on_plan=on_plan,
        )
    files = {"output": output, "instance_output": instance_output, "gantt": gantt}
    answer_plan("solve", parsed, plan, warnings, **files, as_json=as_json, quiet=quiet)


def _earlier(instance: Instance, path: str, warnings: list[Fault], *, is_needed: bool) -> Plan | None:
    """Return the plan to begin from, or None on a first run; warn of that, and of a plan of another window."""
    from cpsched.errors import Fault
    from cpsched.formats import read_plan

    if not Path(path).exists():
        if is_needed:
            raise click.BadParameter(f"File {printable(path)!r} does not exist.", param_hint="--warm")
        warnings.append(Fault("", f"{path} does not exist: this is the first run, and no start is promised"))
        return None
    plan = read_plan(path)
    if plan.instance != instance.name:
        message = (
            f"Expected a plan of {instance.name!r}, got one of {plan.instance!r}; jobs of the same id are compared"
        )
        warnings.append(Fault(f"{path}: instance", message))
    return plan
