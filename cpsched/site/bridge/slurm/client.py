"""Slurm's commands: which are run, with which environment, and what their answers are read by.

Of JSON that is read again and again, an entry whose text is the same as in the answer before is not read anew.
"""

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from cpsched.errors import BridgeError, DocumentError, Fault
from cpsched.site.bridge.commands import Answer, run
from cpsched.site.bridge.slurm.directory import CONFIG_HEAD, merge_records
from cpsched.site.bridge.slurm.json_reader import parse_answer, read_answer
from cpsched.site.bridge.slurm.limits import LIMITS_HEAD, SlurmLimits, are_enforced, read_limits
from cpsched.site.bridge.slurm.lines import FORMAT
from cpsched.site.bridge.slurm.records import JobRecord, SlurmRecords
from cpsched.site.bridge.slurm.rest import RestServer
from cpsched.site.bridge.slurm.text_reader import read_config, read_text
from cpsched.site.bridge.slurm.topology import FLAT, Topology, read_topology
from cpsched.text import printable

#: An answer as it was printed.
Data = bytes | bytearray
#: The indentation of an answer's keys.
_INDENT = re.compile(rb'\{\n( +)"')
#: The beginning of its list of jobs or nodes: the indentation of the keys, the key, and that of the entries.
_LIST = rb'\n%b"(jobs|nodes)": \[(\n( +)\{\n)'


@dataclass(frozen=True, slots=True)
class _Parts:
    """An answer in parts: that it is JSON is not known yet."""

    kind: str
    #: The answer with an empty list in place of the entries.
    rest: str
    #: Without their braces; those that the answer before had too are the same objects.
    entries: list[bytes]
    #: The place of each in the answer before; None: it is new.
    places: list[int | None]


class AnswerReader:
    """Reads one answer after the other of the same command; mutable.

    Slurm indents its JSON: a line that has the indentation of an entry and a closing brace ends the entry, since no
    text in JSON has a line break. So the entries are told apart without being parsed. The parts are put together only
    if each is JSON by itself: then the whole is, and says the same. What is not indented so, or has a fault, is read as
    a whole.
    """

    def __init__(self) -> None:
        #: The last answer that was read, and its records.
        self._last: tuple[Data, SlurmRecords] | None = None
        #: Its entries, and their records.
        self._entries: list[bytes] = []
        self._known: Sequence[Any] = ()

    def read(self, data: Data, source: str, kind: str) -> SlurmRecords:
        """Read all records of an answer; those of entries that are as before are the same objects.

        Raises `DocumentError` as `parse_answer` and `read_answer`, and if the answer has no such list.
        """
        if self._last is None or self._last[0] != data:
            parts = self._parts(data)
            records = None if parts is None or parts.kind != kind else self._records(parts, source)
            if records is None:
                answer = parse_answer(_text(data), source)
                if not isinstance(answer.get(kind), list | dict):
                    raise DocumentError(source, [Fault(kind, f"Expected a list of {kind}, got none")])
                records = read_answer(answer, source)
            self._last = data, records
        return self._last[1]

    def _records(self, parts: _Parts, source: str) -> SlurmRecords | None:
        """Return the records of an answer in parts; None where it has to be read as a whole."""
        found = [None if place is None else self._known[place] for place in parts.places]
        new = [at for at, place in enumerate(parts.places) if place is None]
        try:
            rest = parse_answer(parts.rest, source)
            others = read_answer(rest, source)
            # what this parser accepts means the same to the other one, which is slower and accepts more
            entries = [msgspec.json.decode(f"{{{_text(parts.entries[at])}}}") for at in new]
            read = read_answer({parts.kind: entries}, source)
        except (DocumentError, ValueError, RecursionError):
            return None
        records = getattr(read, parts.kind)
        if rest.get(parts.kind) != [] or len(records) < len(new):
            return None
        for at, record in zip(new, records, strict=True):
            found[at] = record
        self._entries, self._known = parts.entries, found
        whole: Any = tuple(found)
        return replace(others, jobs=whole) if parts.kind == "jobs" else replace(others, nodes=whole)

    def _parts(self, data: Data) -> _Parts | None:
        """Take an answer apart; None where it is not indented as Slurm does it, or has no entries.

        The answer is long, and most entries are as before, in the same order: these are compared where they are. Others
        are copied, and looked for among all.
        """
        keys = _INDENT.match(data)
        begin = keys and re.search(_LIST % keys[1], data)
        if not keys or not begin:
            return None
        indent, kind, inner = keys[1], begin[1], begin[3]
        between, last = b"\n%b},\n%b{\n" % (inner, inner), b"\n%b}\n%b]" % (inner, indent)
        before, entries, places, known = self._entries, list[bytes](), list[int | None](), dict[bytes, int]()
        at, start, has_more = 0, begin.end(), True
        while has_more:
            place: int | None = at if at < len(before) and data.startswith(before[at], start) else None
            end = start + len(before[at]) if place is not None else -1
            if place is None or not data.startswith((between, last), end):
                end = data.find(between, start)
                end = data.rfind(last, start) if end < 0 else end
                if end < 0:
                    return None
                known = known or {text: number for number, text in enumerate(before)}
                entry = bytes(data[start:end])
                place = known.get(entry)
            entries.append(entry if place is None else before[place])
            places.append(place)
            at = at if place is None else place + 1
            has_more = data.startswith(between, end)
            start = end + len(between)
        rest = data[: begin.start(2)] + data[end + len(inner) + 2 :]
        if rest.count(b'\n%b"%b":' % (indent, kind)) != 1:
            return None
        return _Parts(_text(kind), _text(rest), entries, places)


def _text(data: Data) -> str:
    return data.decode("utf-8", "replace")


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
            (f"{self.directory}/{name}", *rest), seconds=self.seconds, given=given, environment=environment, codes=codes
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
        config = self.config()
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

        Raises `BridgeError` if the command fails, or its answer cannot be understood, or is too old a Slurm's.
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
        return read_config(self._whole_text((CONFIG_HEAD,), "scontrol", "show", "config"))

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
        return read_topology(self.command(*arguments).out, " ".join(arguments))

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
