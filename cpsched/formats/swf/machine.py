"""The machine of a log: from a cluster file, or from what the log's header says, with what had to be assumed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cpsched.domain import MAX_AMOUNT, Amounts, Cluster, Instance, NodeClass
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_document
from cpsched.formats.hostlist import MAX_NODES
from cpsched.formats.instance_reader import parse_instance
from cpsched.formats.swf.log import SwfLog

#: A figure of the header, that of each part of the machine in brackets, and words that a site may put behind it.
_FIGURE = re.compile(r"([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15}|-1)\s*(?:\(([0-9,\s]{1,1000})\))?(?:\s.*)?")


@dataclass(frozen=True, slots=True)
class AssumedMachine:
    """A machine for a log without a cluster file.

    `machine`: without jobs. `assumed`: what was taken for granted, a sentence each.
    """

    machine: Instance
    assumed: tuple[str, ...]


def read_machine(source: str | Path) -> Instance:
    """Read a cluster file: an instance document without jobs, in which all but ``cluster`` may be missing.

    By default its name is the file's, without suffixes. An ``epoch`` will be the time of a window's first submission.

    Raises `DocumentError` with all faults of the file.
    """
    document = load_document(source)
    name = Path(source).name.removesuffix(".gz").removesuffix(".json")
    defaults = {"format": "cpsched-instance/1", "name": name, "now": 0, "jobs": []}
    machine = parse_instance(defaults | document, source=str(source))
    if machine.jobs:
        raise DocumentError(
            str(source), [Fault("jobs", f"Expected no jobs in a cluster file, got {len(machine.jobs)}")]
        )
    return machine


def machine_of_log(log: SwfLog) -> AssumedMachine:
    """Return the machine that a log's header speaks of: ``MaxNodes`` nodes of ``MaxProcs`` cores in all.

    Both may say in brackets what each part of the machine has: ``184 (6, 171, 7)``. Else nodes are equal, as far as
    the cores can be shared out so. ``-1`` is unknown. Where both are, each processor that jobs of the log held at once,
    or that one of them asked for, is a node.

    Raises `DocumentError` if the header says impossible figures, or no job has a size: then a cluster file is needed.
    """
    nodes, processors = _figure(log, "MaxNodes"), _figure(log, "MaxProcs")
    assumed, source = list[str](), "as the header's figures say"
    if nodes is None and processors is None:
        nodes = processors = _Figure(_most_processors(log))
        source = "as many as jobs held at once, or one asked for: the header has no MaxNodes and no MaxProcs"
        if not nodes.whole:
            _refuse(log, "MaxProcs", "Expected MaxNodes or MaxProcs in the header, or a job of a size, got none")
    elif nodes is None or processors is None:
        missing = "MaxNodes" if nodes is None else "MaxProcs"
        assumed.append(f"each node has one core, for the header has no {missing}")
    nodes = nodes or processors or _Figure(0)
    processors = processors or nodes
    if nodes.whole > MAX_NODES:
        _refuse(log, "MaxNodes", f"Expected at most {MAX_NODES} nodes, got {nodes.whole}")
    cores, rest = divmod(processors.whole, nodes.whole)
    if not 0 < cores < MAX_AMOUNT:
        message = f"Expected a number of cores that {nodes.whole} equal nodes can share, got {processors.whole}"
        _refuse(log, "MaxProcs", message)
    kinds = [(nodes.whole - rest, cores), *([(rest, cores + 1)] if rest else ())]
    if nodes.are_parts and processors.are_parts and len(nodes.parts) == len(processors.parts):
        shares = [divmod(cores, count) for cores, count in zip(processors.parts, nodes.parts, strict=True)]
        if all(cores and not rest for cores, rest in shares):
            kinds = [(count, cores) for count, (cores, _) in zip(nodes.parts, shares, strict=True)]
    words = ", ".join(f"{count} equal nodes of {cores} cores each" for count, cores in kinds)
    assumed.insert(0, f"{words}, without memory, {source}")
    ends, width = list(accumulate((count for count, _ in kinds), initial=1)), len(str(nodes.whole))
    classes = tuple(
        NodeClass(
            names=tuple(f"n{number:0{width}d}" for number in range(begin, end)), resources=Amounts({"cores": cores})
        )
        for (_, cores), (begin, end) in zip(kinds, pairwise(ends), strict=True)
    )
    name = Path(log.source).name.removesuffix(".gz").removesuffix(".swf")
    return AssumedMachine(Instance(name=name, cluster=Cluster(classes=classes)), tuple(assumed))


def _most_processors(log: SwfLog) -> int:
    """Return how many processors the jobs of a log held at once, or one of them asked for."""
    held, most = list[tuple[int, int]](), 0
    for job in log.jobs:
        size = max(job.processors or 0, job.requested_processors or 0)
        most = max(most, size)
        if job.wait is not None and job.run_time is not None and size > 0:
            start = job.submit + job.wait
            held += [(start, size), (start + max(job.run_time, 1), -size)]
    return max(most, most_at_once(held))


def most_at_once(changes: Iterable[tuple[int, int]]) -> int:
    """Return the most that is held at once, by seconds and amounts that are taken (above 0) or released then.

    Within a second, ends come before starts.
    """
    return max(accumulate(amount for _, amount in sorted(changes)), default=0)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of the header: of the whole machine, and of each of its parts where they are told."""

    whole: int
    parts: tuple[int, ...] = ()

    @property
    def are_parts(self) -> bool:
        """Whether the parts make up the whole."""
        return all(self.parts) and sum(self.parts) == self.whole


def _figure(log: SwfLog, key: str) -> _Figure | None:
    """Return a figure of the header without the site's remarks (``338 (batch partition)``); None: it is unknown."""
    value = log.header.get(key, ("",))[0]
    if not value:
        return None
    match = _FIGURE.fullmatch(value)
    number = 0 if match is None else int(match[1].replace(",", ""))
    if match is None or number == 0:
        _refuse(log, key, f"Expected a number above 0, got {shown(value)}")
    parts = tuple(int(part) for part in (match[2] or "").replace(",", " ").split())
    return None if number < 0 else _Figure(number, parts)


def _refuse(log: SwfLog, key: str, message: str) -> NoReturn:
    raise DocumentError(log.source, [Fault(f"header {key}", f"{message}; a cluster file can describe the machine")])


#: Dates of a log lie before the year 2500 (s since 1970).
LAST_DATE = 16_725_225_600
_DAY = 86_400


class BadCalendar(Exception):  # noqa: N818 - control flow, the fault is what is seen
    """The header's time of the log's begin cannot be understood."""

    def __init__(self, got: str) -> None:
        expected = "seconds since 1970, and all dates before 2500"
        self.fault = Fault("header UnixStartTime", f"Expected {expected}, got {shown(got)}: there is no epoch")
        super().__init__(str(self.fault))


def date_of(log: SwfLog, time: int) -> datetime | None:
    """Return the date of a second on the clock of a log, with the offset of its time zone then; None if it is unknown.

    ``UnixStartTime`` says when the clock shows 0 (a start of 0 is unknown); ``TimeZoneString``, a name of the IANA's
    list, and else ``TimeZone``, in seconds to the east, says where. Without them, or with an unknown name, it is UTC.

    Raises `BadCalendar` if the start is no number of seconds, or such a date far from our days.
    """
    text = log.header.get("UnixStartTime", ("0",))[0]
    start = _number(text)
    if start == 0:
        return None
    if start is None or start < 0 or not 0 <= start + time < LAST_DATE:
        raise BadCalendar(text)
    date = datetime.fromtimestamp(start + time, _zone(log))
    return date.replace(tzinfo=timezone(date.utcoffset() or timedelta()))


def _zone(log: SwfLog) -> tzinfo:
    for name in log.header.get("TimeZoneString", ()):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    offset = _number(log.header.get("TimeZone", ("0",))[0])
    return UTC if offset is None or abs(offset) >= _DAY else timezone(timedelta(seconds=offset))


def _number(text: str) -> int | None:
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) < 20 else None
