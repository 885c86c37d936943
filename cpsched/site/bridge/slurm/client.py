"""Slurm's commands: which are run, with which environment, and what their answers are read by."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cpsched.errors import BridgeError, DocumentError
from cpsched.site.bridge.commands import Answer, run
from cpsched.site.bridge.slurm.answer_reader import AnswerReader
from cpsched.site.bridge.slurm.directory import CONFIG_HEAD, merge_records
from cpsched.site.bridge.slurm.limits import LIMITS_HEAD, SlurmLimits, are_enforced, read_limits
from cpsched.site.bridge.slurm.lines import FORMAT
from cpsched.site.bridge.slurm.records import JobRecord, SlurmRecords
from cpsched.site.bridge.slurm.rest import RestServer
from cpsched.site.bridge.slurm.text_reader import read_config, read_text
from cpsched.site.bridge.slurm.topology import FLAT, Topology, read_topology
from cpsched.text import printable

_VERSION = re.compile(r"(\d+)\.(\d+)")
#: From this version on ``scontrol`` speaks JSON, and ``sinfo --json`` no longer tells of single nodes.
_SCONTROL_JSON = (23, 2)
_OLDEST = (21, 8)
#: What is shown besides jobs and nodes, and what each record of it begins with in a text.
_HEADS = {"partitions": "PartitionName=", "reservations": "ReservationName=", "licenses": "LicenseName="}
_LONGEST_SAID = 80
#: What sprio is asked for: number, site factor, priority, and what else Slurm adds up.
_FACTORS = ("%i", "%S", "%Y", "%A", "%B", "%F", "%J", "%P", "%Q", "%N")
_JOBS = ("squeue", "--all", "--states=all", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmClient:
    """Where Slurm's commands are, and how long each may take."""

    #: The directory of ``squeue``, ``sinfo`` and ``scontrol``.
    directory: str = "/usr/bin"
    #: The path of ``slurm.conf``; None: where Slurm looks for it, first of all in ``SLURM_CONF`` of the environment.
    conf: str | None = None
    #: Seconds for one command; a client of Slurm tries for 18 s to reach a controller that is down.
    seconds: float = 20
    #: What is asked for all but the configuration, in place of the commands; None: there is no slurmrestd.
    rest: RestServer | None = None
    #: What reads the answers, by command: most of an answer is as it was in the one before. Mutable: a cache.
    readers: defaultdict[tuple[str, ...], AnswerReader] = field(
        default_factory=lambda: defaultdict(AnswerReader), compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if not self.directory.startswith("/"):
            raise ValueError(f"expected an absolute path of Slurm's commands, got {self.directory!r}")

    def command(self, *arguments: str, given: str = "", codes: Sequence[int] = (0,)) -> Answer:
        """Run one of Slurm's commands; times are in Unix seconds, in its answers and its arguments.

        Raises `BridgeError` as `run`.
        """
        environment = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        conf = self.conf or os.environ.get("SLURM_CONF")
        if conf:
            environment["SLURM_CONF"] = conf
        name, *rest = arguments
        return run(
            (f"{self.directory}/{name}", *rest),
            seconds=self.seconds,
            given=given,
            environment=environment,
            codes=codes,
        )

    def version(self) -> tuple[int, int]:
        """Return the version of the commands, ``(22, 5)``. Raises `BridgeError` if there is none, or it is too old."""
        said = self.command("squeue", "--version").out
        match = _VERSION.search(said)
        version = (int(match[1]), int(match[2])) if match else (0, 0)
        if version < _OLDEST:
            raise BridgeError((f"{self.directory}/squeue", "--version"), f"Expected Slurm 21.08 or later, got {said!r}")
        return version

    def records(self, jobs: tuple[JobRecord, ...]) -> SlurmRecords:
        """Ask Slurm for everything but its jobs, and add these.

        Raises `BridgeError` if a command fails, or its answer cannot be understood.
        """
        parts = [SlurmRecords(jobs=jobs)]
        config = read_config(self._whole_text((CONFIG_HEAD,), "scontrol", "show", "config"))
        # JSON has not whose jobs are preempted
        in_text = {"partitions"} if config.get("PreemptType", "preempt/none") != "preempt/none" else set()
        if self.rest is not None:
            parts += [self._rest(self.rest, kind) for kind in ("nodes", *_HEADS) if kind not in in_text]
        elif self.version() >= _SCONTROL_JSON:
            kinds = (kind for kind in ("nodes", *_HEADS) if kind not in in_text)
            parts += [self._json(kind, "scontrol", "show", kind, "--json") for kind in kinds]
        else:
            parts.append(self._json("nodes", "sinfo", "--json"))
            in_text = {*_HEADS}
        parts += [self._text(kind, "scontrol", "-o", "show", kind) for kind in _HEADS if kind in in_text]
        merged, _ = merge_records([("", part) for part in parts])
        limits = self._limits() if are_enforced(config) else None
        return replace(merged, config=config, limits=limits, topology=self._topology(config))

    def jobs(self) -> tuple[JobRecord, ...]:
        """Ask Slurm for its jobs.

        Raises `BridgeError` if the command fails, or its answer cannot be understood; if it is too old a Slurm's, that
        is what is said.
        """
        if self.rest is not None:
            return self._rest(self.rest, "jobs").jobs
        try:
            return self._json("jobs", *_JOBS).jobs
        except BridgeError:
            self.version()
            raise

    def lines(self) -> str:
        """Ask Slurm for a line of each job, as `lines_by_job` reads them. Raises `BridgeError` if the command fails."""
        arguments = ("squeue", "--all", "--states=all", "--noheader", f"--Format={FORMAT}")
        return self.command(*arguments).out

    def config(self) -> dict[str, str]:
        """Ask Slurm for its configuration. Raises `BridgeError` as `records`."""
        return dict(read_config(self._whole_text((CONFIG_HEAD,), "scontrol", "show", "config")))

    def factors(self) -> dict[int, tuple[int, int]]:
        """Ask Slurm what was added to the priority of each job that may start, and for that priority, by number.

        A priority that somebody has set is none: nothing is added to it.
        """
        found = {}
        text = self.command("sprio", "--noheader", f"--format={'|'.join(_FACTORS)}").out
        for line in text.splitlines():
            number, site, priority, *others = (part.strip() for part in line.split("|"))
            if not number.isdecimal() or not priority.isdecimal():
                raise BridgeError(("sprio",), f"Expected numbers, got {printable(line[:_LONGEST_SAID])}")
            if set(others) != {"0"} or site != "0" or priority == "0":
                found[int(number)] = int(site), int(priority)
        return found

    def _topology(self, config: Mapping[str, str]) -> Topology:
        if not any(kind in config.get("TopologyPlugin", "") for kind in ("tree", "block")):
            return FLAT
        arguments = ("scontrol", "show", "topology")
        try:
            return read_topology(self.command(*arguments).out, " ".join(arguments))
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error

    def _limits(self) -> SlurmLimits:
        arguments = ("scontrol", "show", "assoc_mgr", "flags=assoc,qos")
        try:
            return read_limits(self._whole_text((LIMITS_HEAD,), *arguments), " ".join(arguments))
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error

    def _json(self, kind: str, *arguments: str) -> SlurmRecords:
        return self._read(kind, self.command(*arguments).data, *arguments)

    def _rest(self, server: RestServer, kind: str) -> SlurmRecords:
        return self._read(kind, server.get(kind), "GET", server.address, kind)

    def _read(self, kind: str, data: bytes | bytearray, *arguments: str) -> SlurmRecords:
        """Return the records of an answer, which must have some of a kind, or say that there are none."""
        try:
            return self.readers[arguments].read(data, " ".join(arguments), kind)
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error

    def _text(self, kind: str, *arguments: str) -> SlurmRecords:
        text = self._whole_text((_HEADS[kind], f"No {kind}"), *arguments)
        try:
            return read_text(text, " ".join(arguments))
        except DocumentError as error:
            raise BridgeError(arguments, f"Expected an answer of Slurm, got: {error}") from error

    def _whole_text(self, heads: tuple[str, ...], *arguments: str) -> str:
        """Return a text that begins as it has to, and ends with a line's end."""
        text = self.command(*arguments).out
        if not (text.lstrip().startswith(heads) and text.endswith("\n")):
            said = printable(text[:_LONGEST_SAID]) or "nothing"
            raise BridgeError(arguments, f"Expected a text that begins with {' or '.join(heads)}, got: {said}")
        return text
