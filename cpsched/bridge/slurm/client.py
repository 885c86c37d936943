"""Slurm's commands: which are run, with which environment, and what their answers are read by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cpsched.bridge.commands import Answer, run
from cpsched.bridge.slurm.directory import merge_records
from cpsched.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.bridge.slurm.records import JobRecord, SlurmRecords
from cpsched.bridge.slurm.text_reader import read_config, read_text
from cpsched.errors import BridgeError, DocumentError

__all__ = ["SlurmClient"]

_VERSION = re.compile(r"(\d+)\.(\d+)")
#: From this version on ``scontrol`` speaks JSON, and ``sinfo --json`` no longer tells of single nodes.
_SCONTROL_JSON = (23, 2)
_OLDEST = (21, 8)
_JOBS = ("squeue", "--all", "--states=all", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmClient:
    """Where Slurm's commands are, and how long each may take."""

    #: The directory of ``squeue``, ``sinfo`` and ``scontrol``.
    directory: str = "/usr/bin"
    #: The path of ``slurm.conf``; None: where Slurm looks for it.
    conf: str | None = None
    #: Seconds for one command; a client of Slurm tries for 18 s to reach a controller that is down.
    seconds: float = 20

    def __post_init__(self) -> None:
        if not self.directory.startswith("/"):
            raise ValueError(f"expected an absolute path of Slurm's commands, got {self.directory!r}")

    def command(self, *arguments: str, given: str = "", codes: Sequence[int] = (0,)) -> Answer:
        """Run one of Slurm's commands; times are in Unix seconds, in its answers and its arguments.

        Raises
        ------
        BridgeError
            As `run`.
        """
        environment = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        if self.conf is not None:
            environment["SLURM_CONF"] = self.conf
        name, *rest = arguments
        return run(
            (f"{self.directory}/{name}", *rest),
            seconds=self.seconds,
            given=given,
            environment=environment,
            codes=codes,
        )

    def version(self) -> tuple[int, int]:
        """Return the version of the commands, ``(22, 5)``.

        Raises
        ------
        BridgeError
            If there is none, or it is too old.
        """
        said = self.command("squeue", "--version").out
        match = _VERSION.search(said)
        version = (int(match[1]), int(match[2])) if match else (0, 0)
        if version < _OLDEST:
            raise BridgeError((f"{self.directory}/squeue", "--version"), f"Expected Slurm 21.08 or later, got {said!r}")
        return version

    def records(self) -> SlurmRecords:
        """Ask Slurm for everything.

        Raises
        ------
        BridgeError
            If a command fails, or its answer cannot be understood.
        """
        has_json = self.version() >= _SCONTROL_JSON
        shown = ("nodes", "partitions", "reservations", "licenses")
        parts = [self._json(*_JOBS)]
        if has_json:
            parts += [self._json("scontrol", "show", kind, "--json") for kind in shown]
        else:
            parts.append(self._json("sinfo", "--json"))
            parts += [self._text("scontrol", "-o", "show", kind) for kind in shown[1:]]
        config = read_config(self.command("scontrol", "show", "config").out)
        merged, _ = merge_records([("", part) for part in parts])
        return replace(merged, config=config)

    def jobs(self) -> tuple[JobRecord, ...]:
        """Ask Slurm for its jobs.

        Raises
        ------
        BridgeError
            If the command fails, or its answer cannot be understood.
        """
        return self._json(*_JOBS).jobs

    def _json(self, *arguments: str) -> SlurmRecords:
        source = " ".join(arguments)
        try:
            return read_answer(parse_answer(self.command(*arguments).out, source), source)
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error

    def _text(self, *arguments: str) -> SlurmRecords:
        try:
            return read_text(self.command(*arguments).out, " ".join(arguments))
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error
