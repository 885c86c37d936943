"""Types of arguments and options that several commands share; bad values are refused before any work is done."""

import contextlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import click

from cpsched.arguments import SECONDS, SEED, STEPS, WORKERS, Limits, plain_argument
from cpsched.text import printable

#: Read at a time, and at most: a log of more bytes is refused by its reader.
_PORTION, _MOST_BYTES = 2**20, 2**31


#: In place of the name of a file for a document: standard output, which then has nothing else.
STDOUT = Path("-")


class _Stdin(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A file with what came from standard input, which messages call ``<stdin>``."""

    def __str__(self) -> str:
        return "<stdin>"

    def __fspath__(self) -> str:
        return str(super().__str__())


class InputFile(click.Path):
    """A file that exists, or ``-`` for standard input, which one argument of a command may be.

    Standard input is kept in a file until the command ends, since some readers read twice.
    """

    def __init__(self, *, or_folder: bool = False) -> None:
        super().__init__(exists=True, dir_okay=or_folder, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value != "-" or ctx is None:
            path: Any = super().convert(value, param, ctx)
            refuse_loss(self, path, param, ctx)
            return path
        if __name__ in ctx.meta:
            self.fail("Standard input can be read once: name a file for the other document.", param, ctx)
        ctx.meta[__name__] = folder = TemporaryDirectory(prefix="cpsched-")
        ctx.find_root().call_on_close(folder.cleanup)  # this one is not closed where an option is refused
        kept, left = _Stdin(folder.name, "<stdin>"), _MOST_BYTES
        with kept.open("wb") as file:
            while left >= 0 and (portion := sys.stdin.buffer.read(_PORTION)):
                file.write(portion)
                left -= len(portion)
        return kept


class OutputFile(click.Path):
    """A file that is written. `instead_of`: names of arguments whose files it may replace: a next plan, or window."""

    def __init__(self, *instead_of: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.instead_of = instead_of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path: Any = super().convert(value, param, ctx)
        refuse_loss(self, path, param, ctx)
        return path


def refuse_loss(kind: click.Path, path: Path, param: click.Parameter | None, ctx: click.Context | None) -> None:
    """Refuse a file that is written if another one of the command's files would be lost by that."""
    if ctx is None or param is None or path == STDOUT:
        return
    place = os.path.realpath(path)
    others: dict[str, list[tuple[click.Path, click.Parameter]]] = ctx.meta.setdefault(f"{__name__}.files", {})
    for other, of_other in others.get(place, ()):
        if not (_may_be_that_of(kind, of_other) and _may_be_that_of(other, param)):
            kind.fail(f"Expected a file of its own, got that of {of_other.human_readable_name}.", param, ctx)
    others.setdefault(place, []).append((kind, param))


def _may_be_that_of(kind: click.Path, other: click.Parameter) -> bool:
    """Whether a file may be the one of another argument: it is only read, or replaces that."""
    return not isinstance(kind, OutputFile) or other.name in kind.instead_of


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
INPUT_FILE = InputFile()
OUTPUT_FILE = OutputFile()


def stdin_or_name(ctx: click.Context, param: click.Parameter, name: str) -> Any:
    """Return the file of standard input for ``-``; else the name, which need not be a file's."""
    return INPUT_FILE.convert(name, param, ctx) if name == "-" else name


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; refuse ``nan`` and infinity, which click's ranges accept."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"Expected a finite number, got {number}.", param, ctx)
        return number


class Within(click.IntRange):
    """A number in the limits of an argument of public functions, refused in the same words."""

    def __init__(self, limits: Limits, read: type[int] | type[float]) -> None:
        super().__init__(limits.least, limits.most)
        self._limits, self._read = limits, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        with contextlib.suppress(ValueError):
            value = self._read(value)
        try:
            return plain_argument(value, Annotated[self._read, self._limits])
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


SECONDS_RANGE = Within(SECONDS, float)
SEED_RANGE = Within(SEED, int)
STEPS_RANGE = Within(STEPS, int)
WORKERS_RANGE = Within(WORKERS, int)


def check_folder(folder: Path, *, is_made: bool = False) -> None:
    """Refuse a folder for results that is not there, or in which no file can be made: before the work, not after it.

    `is_made`: whether it is made where it is not there, with those that it is in.
    """
    found = folder if not is_made else next((one for one in (folder, *folder.parents) if one.exists()), folder)
    if not is_made and not found.is_dir():
        raise click.BadParameter(f"The folder {printable(str(folder))!r} does not exist.")
    if not os.access(found, os.W_OK):
        raise click.BadParameter(f"The folder {printable(str(found))!r} cannot be written to.")


def ends_in(
    *suffixes: str, or_stdout: bool = False
) -> Callable[[click.Context, click.Parameter, Path | None], Path | None]:
    """Return a callback that accepts an output file if its name has one of these endings and its folder exists.

    `or_stdout`: whether `STDOUT` is accepted as well.
    """

    def check(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
        if path is None or (or_stdout and path == STDOUT):
            return path
        if not path.name.endswith(suffixes):
            raise click.BadParameter(f"Expected a name that ends in {' or '.join(suffixes)}, got {path.name!r}.")
        check_folder(path.parent)
        return path

    return check


#: The option for an instance that a command makes.
NEW_INSTANCE = click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FILE,
    callback=ends_in(".json", ".json.gz", or_stdout=True),
    help="File for the instance; - for standard output.",
)
#: Options for the output of a plan.
PLAN_FILE = click.option(
    "-o",
    "--output",
    type=OutputFile("plan"),
    callback=ends_in(".json", ".json.gz", or_stdout=True),
    metavar="PLAN",
    help="File for the plan; - for standard output, which then has nothing else.",
)
INSTANCE_FILE = click.option(
    "--instance-output",
    type=OutputFile("instance"),
    callback=ends_in(".json", ".json.gz"),
    metavar="INSTANCE",
    help="File for the instance that the plan is of.",
)
GANTT_FILE = click.option(
    "--gantt",
    type=OUTPUT_FILE,
    callback=ends_in(".html"),
    help="File for a Gantt chart: one HTML file, which opens offline.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/formats.md) and no more.")
