"""Types of arguments and options that several commands share; bad values are refused before any work is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

__all__ = [
    "AS_JSON",
    "CORES_PER_CHUNK",
    "EXISTING_FILE",
    "FIRST",
    "GANTT_FILE",
    "JOBS",
    "MEMORY_FIELD",
    "OUTPUT_FILE",
    "PARTITION",
    "PLAN_FILE",
    "QUEUE",
    "STATUS",
    "SUBMITTED",
    "ends_in",
]

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)


def ends_in(*suffixes: str) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Return a callback that lets an output file through if its name ends as it should and its folder exists."""

    def check(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is None:
            return None
        if not path.name.endswith(suffixes):
            raise click.BadParameter(f"Expected a name that ends in {' or '.join(suffixes)}, got {path.name!r}.")
        if not path.parent.is_dir():
            raise click.BadParameter(f"The folder {str(path.parent)!r} does not exist.")
        return path

    return check


#: What commands do with a plan that they have made.
PLAN_FILE = click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    callback=ends_in(".json", ".json.gz"),
    metavar="PLAN",
    help="Where the plan goes.",
)
GANTT_FILE = click.option(
    "--gantt",
    type=OUTPUT_FILE,
    callback=ends_in(".html"),
    help="Where a Gantt chart goes: one HTML file, opens offline.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of the summary.")

#: Which part of a log is taken, and how its fields are meant.
FIRST = click.option(
    "--first", type=click.IntRange(min=0), default=0, show_default=True, help="Index of the first job."
)
JOBS = click.option("--jobs", type=click.IntRange(min=1), help="How many jobs at most.  [default: all]")


def _only(name: str, field: int, type_: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option that names values of a field of SWF, or what is the same in other logs, -1 being unknown."""
    return click.option(
        f"--{name}", type=type_, multiple=True, help=f"Only jobs of this {name} (field {field}); may be given again."
    )


STATUS, QUEUE, PARTITION = _only("status", 11, int), _only("queue", 15, str), _only("partition", 16, str)


def _is_range(ctx: click.Context, param: click.Parameter, submitted: tuple[int, int] | None) -> tuple[int, int] | None:
    """Refuse a range that is empty."""
    if submitted is not None and submitted[0] >= submitted[1]:
        raise click.BadParameter(f"Expected FROM < UNTIL, got {submitted[0]} {submitted[1]}.")
    return submitted


SUBMITTED = click.option(
    "--submitted",
    type=(int, int),
    callback=_is_range,
    metavar="FROM UNTIL",
    help="Only jobs submitted in [FROM, UNTIL), in seconds of the log's clock.",
)
CORES_PER_CHUNK = click.option(
    "--cores-per-chunk",
    type=click.IntRange(min=1),
    help="Ask for chunks of this many cores (whole nodes) in place of single cores.",
)
MEMORY_FIELD = click.option(
    "--memory-field",
    type=click.Choice(["kb-per-processor", "bytes-per-job"]),
    default="kb-per-processor",
    show_default=True,
    help="What field 10 of the log means.",
)
