"""The exit codes of the process, and their meanings."""

from __future__ import annotations

from enum import IntEnum

from cpsched.cli.damage import EXIT_CODE


class ExitCode(IntEnum):
    """The exit codes of every command; `MEANINGS` has them in words."""

    FINE = 0
    VIOLATIONS = 1
    BAD_INPUT = 2
    UNVERIFIED = 3
    REFUSED = 4
    FAILED_CELLS = 5
    DISK_FULL = 6
    OUT_OF_MEMORY = 7
    NO_ANSWER = 8
    CRASHED = 9
    DAMAGED = EXIT_CODE
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    ExitCode.FINE: "fine",
    ExitCode.VIOLATIONS: "the plan breaks rules: all violations are listed",
    ExitCode.BAD_INPUT: "bad input or usage: all faults are listed",
    ExitCode.UNVERIFIED: "the planner's own plan did not verify: a bug of cpsched, nothing was written",
    ExitCode.REFUSED: "the engine cannot honour what the instance asks for, or is not installed",
    ExitCode.FAILED_CELLS: "cells of a campaign failed: they are listed with their errors; all others are finished",
    ExitCode.DISK_FULL: "no room to write a file (disk full, quota or size limit): it is named, an older one is kept",
    ExitCode.OUT_OF_MEMORY: "the system, or the limit of the process, had no more memory: nothing was written",
    ExitCode.NO_ANSWER: "the resource manager did not answer, or not in a way that can be understood",
    ExitCode.CRASHED: "an error of cpsched's own, or in a policy or an engine of yours: its traceback is printed",
    ExitCode.DAMAGED: "a file of the installation is damaged or missing: it is named, with the command that mends it",
    ExitCode.INTERRUPTED: "interrupted: no plan was written; a simulation wrote its results up to then",
    ExitCode.BROKEN_PIPE: "the reader of the output went away",
}
