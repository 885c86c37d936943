"""The group of all commands: imports a command when it is called, and turns errors into exit codes.

Streams of the process that are closed lead to nothing, and no message is lost in another error.
"""

import errno
import gc
import importlib
import io
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn, TextIO

import click

from cpsched.cli.damage import damage_of
from cpsched.cli.exits import ExitCode
from cpsched.cli.interrupts import is_interruption
from cpsched.errors import BridgeError, CpschedError, DiskFullError, EngineError, SolverWarning, UnverifiedError
from cpsched.text import did_you_mean, how_to_install, printable
from cpsched.writing import NO_ROOM


class _Output(io.TextIOWrapper):
    """stdout: errors of writing name it.

    They are caught here: an interruption in the file behind would have what was written written once more.
    """

    def write(self, text: str) -> int:
        """Write a text."""
        with _naming_stdout():
            return super().write(text)

    def flush(self) -> None:
        """Write what has not been written yet."""
        with _naming_stdout():
            super().flush()


@contextmanager
def _naming_stdout() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, "<stdout>") from None


class _Messages(io.FileIO):
    """The file behind stderr: messages that cannot be written are lost; the exit code remains correct."""

    def write(self, data: object) -> int:
        """Write to the file, or to nothing."""
        try:
            return super().write(data)  # type: ignore[arg-type]  # a buffer: typing has no name for it yet
        except OSError:
            return len(data)  # type: ignore[arg-type]  # a buffer: typing has no name for it yet


def mend_streams() -> None:
    """Open closed streams on nothing, and let stdout and stderr fail as commands expect it.

    Without this the next file that is opened would take the number of a closed stream, and get its output.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = _text(_Output, io.FileIO(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(io.TextIOWrapper, _Messages(2, "w", closefd=False), sys.stderr)


def _text(kind: type[io.TextIOWrapper], raw: io.FileIO, before: TextIO | None) -> TextIO:
    """Return a text stream in place of the one before, which is None where it was closed."""
    if before is not None:
        before.flush()
    return kind(
        io.BufferedWriter(raw),
        encoding="utf-8" if before is None else before.encoding,
        errors="backslashreplace",  # an escape for each character that the terminal cannot show
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


#: Python looks for cyclic garbage after so many new objects: after 700, its own number, a start took a tenth longer.
_COLLECTED_AFTER = 50_000

#: The commands in the order of the help, each the attribute `command` of the module of its name; and the MiB without
#: which it would be aborted by a library, without a word of ours: those that compile need most.
COMMANDS = {
    "solve": 1024,
    "replan": 1024,
    "verify": 0,
    "show": 384,
    "report": 384,
    "explain": 1024,
    "whatif": 1024,
    "forecast": 1024,
    "snapshot": 384,
    "convert": 384,
    "generate": 384,
    "simulate": 1024,
    "replay": 1024,
    "bench": 1024,
    "daemon": 1024,
    "serve": 1024,
    "example": 0,
    "schema": 0,
    "completion": 0,
    "warmup": 1024,
}
#: The extras of the package, by the libraries that are only there with them.
_EXTRAS = {
    **dict.fromkeys(("distributed", "matplotlib", "pyarrow"), "bench"),
    "plotly": "report",
    **dict.fromkeys(("alembic", "prometheus_client", "psycopg", "pydantic", "sqlalchemy", "structlog"), "daemon"),
    **dict.fromkeys(("fastapi", "starlette", "uvicorn"), "web"),
}
#: The exit codes of our errors; all others are bad input.
_CODES = (
    (DiskFullError, ExitCode.DISK_FULL),
    (UnverifiedError, ExitCode.UNVERIFIED),
    (BridgeError, ExitCode.NO_ANSWER),
    (EngineError, ExitCode.REFUSED),
)
#: The messages of loaders of shared libraries without memory for one.
_WORDS_OF_THE_LOADER = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory", "libllvmlite.so")


class CommandGroup(click.Group):
    """Commands that are imported one by one; their errors end the process with a documented exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return the command, or None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cpsched.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a call, and refuse to begin it with too little memory."""
        needed = COMMANDS.get(args[0], 0)
        if (limit := _memory_limit()) is not None and limit // 2**20 < needed:
            _fail(ctx, f"{_out_of_memory()}, {args[0]} needs {needed} MiB", ExitCode.OUT_OF_MEMORY)
        if not ctx.resilient_parsing and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"there is no command {printable(args[0])!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print errors without a traceback, unless they are bugs, and solvers that died in a line."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_show_warning, warnings.showwarning)
                super().invoke(ctx)
            sys.stdout.flush()
        except CpschedError as error:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.BAD_INPUT)
            _fail(ctx, error, code)
        except KeyboardInterrupt:
            click.echo("cpsched: interrupted", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # Python flushes stdout once more at its end, and would report an error: it gets a stream that takes all.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(ExitCode.BROKEN_PIPE)
        except Exception as error:
            _end(ctx, error)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes below the commands."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), code.meaning) for code in ExitCode])


def _end(ctx: click.Context, error: Exception) -> NoReturn:
    """End with a line where the process or the installation lacks something, or was interrupted; raise what else went
    wrong.
    """
    if is_interruption(error):
        _fail(ctx, "interrupted", ExitCode.INTERRUPTED)
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        _fail(ctx, f"Expected {error.name}, which is not installed; {how_to_install(extra)}", ExitCode.BAD_INPUT)
    if (damage := damage_of(error)) is not None:
        _fail(ctx, damage, ExitCode.DAMAGED)
    if isinstance(error, MemoryError | OSError | ImportError | RuntimeError) and _is_out_of_memory(error):
        _fail(ctx, _out_of_memory(), ExitCode.OUT_OF_MEMORY)
    if isinstance(error, OSError):
        _fail(ctx, error, _code_of(error))
    if isinstance(error, EOFError):  # click takes it for the end of an input by keyboard
        traceback.print_exc()
        ctx.exit(ExitCode.CRASHED)
    raise error


def _fail(ctx: click.Context, error: CpschedError | OSError | str, code: ExitCode) -> NoReturn:
    click.echo(f"cpsched: {printable(str(error), keep_lines=True)}", err=True)
    ctx.exit(code)


def _code_of(error: OSError) -> ExitCode:
    return ExitCode.DISK_FULL if error.errno in NO_ROOM else ExitCode.BAD_INPUT


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    words = str(error)
    return any(said in words for said in _WORDS_OF_THE_LOADER) or (
        isinstance(error, RuntimeError) and "can't start new thread" in words
    )


def _show_warning(otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Print in one line that a solver died, or what has no line of source, and others as Python does."""
    if issubclass(category, SolverWarning) or where[0] == "cpsched":
        click.echo(f"warning: {printable(str(message))}", err=True)
    else:
        otherwise(message, category, *where)


def _out_of_memory() -> str:
    limit = _memory_limit()
    return "out of memory" + ("" if limit is None else f": the process may have {limit // 2**20} MiB (ulimit -v)")


def _memory_limit() -> int | None:
    """Return the bytes of memory that the process may have, or None where there is no limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="cpsched", message="cpsched %(version)s")
def main() -> None:
    """Plan the jobs of a heterogeneous supercomputer: all at once, from an instance document to a verified plan.

    Begin with: cpsched solve INSTANCE -o plan.json --gantt plan.html
    """


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Interrupt the command once more, soon: code that Python itself calls swallowed the interruption."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def run() -> None:
    """Run the command that the process was started with, and end the process.

    It ends at once, without unloading the compiled kernels, which would take a quarter of a second.
    """
    gc.set_threshold(_COLLECTED_AFTER)
    mend_streams()
    sys.unraisablehook = _interrupt_again
    code: object = 0
    try:
        code = _code_of_command()
        sys.stdout.flush()
    except OSError as error:
        if not code:  # click does not catch what its own help meets; what failed before was told
            click.echo(f"cpsched: {error}", err=True)
            code = _code_of(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("cpsched: interrupted", err=True)
        code = ExitCode.INTERRUPTED
    if "cpsched.rusv" in sys.modules:
        from cpsched.planner import remove_temporary_kernels

        remove_temporary_kernels()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def _code_of_command() -> object:
    """Run the command; return its exit code, None where all is fine."""
    try:
        return main(prog_name="cpsched", standalone_mode=False)
    except SystemExit as end:
        return end.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (OSError, click.Abort):
        raise
    except Exception:  # a bug, perhaps of the user's own module; Python's code for it is that of violations
        traceback.print_exc()
        return ExitCode.CRASHED
