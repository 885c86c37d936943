"""The group of all commands: imports a command when it is called, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import click

from cpsched.cli.exits import MEANINGS, ExitCode
from cpsched.cli.text import printable
from cpsched.errors import (
    CampaignError,
    CpschedError,
    DiskFullError,
    DocumentError,
    EngineError,
    SyntaxFault,
    UnverifiedError,
)
from cpsched.writing import NO_ROOM

__all__ = ["COMMANDS", "main", "run"]

#: The commands in the order of the help; each is the attribute `command` of the module of its name.
COMMANDS = ("solve", "replan", "verify", "show", "convert", "generate", "simulate", "bench", "schema", "warmup")


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

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print errors without a traceback, unless they are bugs."""
        _never_fail_on_encoding()
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except (CampaignError, DocumentError, SyntaxFault) as error:
            _fail(ctx, error, ExitCode.BAD_INPUT)
        except DiskFullError as error:
            _fail(ctx, error, ExitCode.DISK_FULL)
        except UnverifiedError as error:
            _fail(ctx, error, ExitCode.UNVERIFIED)
        except EngineError as error:
            _fail(ctx, error, ExitCode.REFUSED)
        except KeyboardInterrupt:
            click.echo("cpsched: interrupted", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # Python flushes stdout once more at its end, and would report an error: give it a stream that takes
            # everything.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(ExitCode.BROKEN_PIPE)
        except OSError as error:
            _fail(ctx, error, ExitCode.DISK_FULL if error.errno in NO_ROOM else ExitCode.BAD_INPUT)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes below the commands."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])


def _fail(ctx: click.Context, error: CpschedError | OSError, code: ExitCode) -> None:
    click.echo(f"cpsched: {printable(str(error), keep_lines=True)}", err=True)
    ctx.exit(code)


def _never_fail_on_encoding() -> None:
    """Print an escape for each character that the terminal cannot show, instead of ending in an UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cpsched", message="cpsched %(version)s")
def main() -> None:
    """Plan the jobs of a heterogeneous supercomputer: all at once, from an instance document to a verified plan.

    Begin with: cpsched solve INSTANCE -o plan.json --gantt plan.html
    """


def run() -> None:
    """Run the command that the process was started with, and end the process.

    SIGTERM, with which batch systems and service managers end a process, interrupts the command as Ctrl-C does. The
    process ends at once, without unloading the compiled kernels, which would take a quarter of a second.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code: object = 0
    try:
        main(prog_name="cpsched")
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)
