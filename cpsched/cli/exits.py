"""The exit codes of the process, and their meanings."""

from enum import IntEnum

from cpsched.cli.damage import EXIT_CODE


class ExitCode(IntEnum):
    """The exit codes of every command, each with its meaning in words."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "ExitCode":
        """Make a code that knows its meaning."""
        found = int.__new__(cls, code)
        found._value_, found.meaning = code, meaning
        return found

    FINE = 0, "fine"
    VIOLATIONS = 1, "the plan breaks rules: all violations are listed"
    BAD_INPUT = 2, "bad input or usage: all faults are listed"
    UNVERIFIED = 3, "the planner's own plan did not verify: a bug of cpsched, nothing was written"
    REFUSED = 4, "the engine cannot honour what the instance asks for, or is not installed"
    FAILED_CELLS = 5, "cells of a campaign failed: they are listed with their errors; all others are finished"
    DISK_FULL = 6, "no room to write a file (disk full, quota or size limit): it is named, an older one is kept"
    OUT_OF_MEMORY = 7, "the system, or the limit of the process, had no more memory: nothing was written"
    NO_ANSWER = 8, "the resource manager did not answer, or not in a way that can be understood"
    CRASHED = 9, "an error of cpsched's own, or in a policy or an engine of yours: its traceback is printed"
    DAMAGED = EXIT_CODE, "a file of the installation is damaged or missing: it is named, with the command that mends it"
    INTERRUPTED = 130, "interrupted: no plan was written; a simulation wrote its results up to then"
    BROKEN_PIPE = 141, "the reader of the output went away"
