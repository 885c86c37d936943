"""Types of arguments and options that several commands share; bad values are refused before any work is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

__all__ = ["AS_JSON", "EXISTING_FILE", "GANTT_FILE", "OUTPUT_FILE", "PLAN_FILE", "ends_in"]

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
