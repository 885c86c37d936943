"""The command line: options in, one public call, print, exit code.

May import: every room's door, inside the functions that need it, so that ``cpsched --help`` starts at once. Begin with
`group.py`, which holds the list of commands and turns errors into exit codes; each command is the file of its name.
"""

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpsched.cli.group import main as main


def __getattr__(name: str) -> object:
    """Import the group of commands when it is asked for: `run` says which of its files is damaged."""
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cpsched.cli.group import main

    return main


def run() -> None:
    """Run the command that the process was started with, and end the process.

    SIGTERM, with which batch systems and service managers end a process, interrupts the command as Ctrl-C does.
    """
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from cpsched.cli import group
    except (Exception, KeyboardInterrupt) as error:
        from cpsched.cli.damage import EXIT_CODE, damage_of
        from cpsched.cli.interrupts import is_interruption

        if is_interruption(error):
            os._exit(130)
        if (damage := damage_of(error)) is None:
            raise
        sys.stderr.write(f"cpsched: {damage}\n")
        os._exit(EXIT_CODE)
    group.run()
