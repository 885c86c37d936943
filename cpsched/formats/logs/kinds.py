"""Which kind of log a file is, by its name or by its first lines; and Batsim's workloads in JSON.

Source of that format: batsim.readthedocs.io, "Workload". Only profiles of type ``delay`` state a run time.
"""

import math
import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cpsched.domain import Amounts, Chunk, Request
from cpsched.errors import DocumentError, Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import load_json, read_lines
from cpsched.formats.logs.jobs import JobLog, LogAnomaly, LogJob, LogKind, Note, UnusableLine, log_of, read_each
from cpsched.formats.logs.quantities import count
from cpsched.formats.logs.sacct import HEADER, is_json, read_sacct, table_of
from cpsched.formats.logs.sbatch import EVENT, read_sbatch
from cpsched.formats.logs.torque import RECORD, read_torque
from cpsched.formats.paths import open_file
from cpsched.formats.swf import SwfLog, read_swf


def is_batsim(document: object) -> bool:
    """Tell whether a document is a workload of Batsim."""
    return isinstance(document, dict) and isinstance(document.get("profiles"), dict) and "jobs" in document


def read_batsim(path: str | Path) -> JobLog:
    """Read a workload of hosts of one core. Raises `DocumentError` if it cannot be read or has no job."""
    document = load_json(path)
    content: Mapping[str, Any] = document if isinstance(document, dict) else {}
    jobs, profiles = list[LogJob](), content.get("profiles") or {}
    entries = enumerate(content.get("jobs") or (), start=1)
    faults = read_each(entries, lambda entry, number: jobs.append(_job(entry, profiles, number)))
    hosts = content.get("nb_res")
    hosts = hosts if isinstance(hosts, int) and hosts > 0 else None
    return log_of(path, LogKind.BATSIM, jobs, faults, expected="jobs of Batsim", hosts=hosts)


def _job(entry: object, profiles: Mapping[str, Any], line: int) -> LogJob:
    if not isinstance(entry, dict) or "id" not in entry:
        raise UnusableLine(f"Expected a job with an id, got {shown(entry)}")
    profile = profiles.get(str(entry.get("profile")))
    kind = profile.get("type") if isinstance(profile, dict) else None
    delay = profile.get("delay") if isinstance(profile, dict) and kind == "delay" else None
    notes: list[Note] = []
    if delay is None:
        notes.append((LogAnomaly.NOT_SIMULATED, f"has a profile of type {shown(kind)}: no run time without a platform"))
    walltime = entry.get("walltime")
    asked = count(str(entry.get("res", 1)), "a number of hosts", least=1)
    return LogJob(
        id=str(entry["id"]),
        line=line,
        submit=math.floor(_number(entry.get("subtime"), "subtime")),
        request=Request(chunks=(Chunk(count=asked, resources=Amounts({"cores": 1})),)),
        walltime=None if walltime is None or walltime == -1 else math.ceil(_number(walltime, "walltime")),
        runtime=None if delay is None else math.ceil(_number(delay, "delay")),
        user=str(entry["user"]) if entry.get("user") else None,
        notes=tuple(notes),
    )


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise UnusableLine(f"Expected {what} in seconds, got {shown(value)}")
    return value


_SUFFIXES = {".swf": LogKind.SWF, ".acct": LogKind.TORQUE, ".events": LogKind.SBATCH}
_READERS: Mapping[LogKind, Callable[[str | Path], SwfLog | JobLog]] = {
    LogKind.SWF: read_swf,
    LogKind.TORQUE: read_torque,
    LogKind.SBATCH: read_sbatch,
    LogKind.SACCT: read_sacct,
    LogKind.BATSIM: read_batsim,
}
#: The number of lines that are checked.
_FIRST_LINES = 20
#: The number of bytes in which our own documents say what they are.
_HEAD = 4096
#: What our own documents begin with.
_OURS = re.compile(r'"format"\s*:\s*"cpsched-')
#: A line of Standard Workload Format: of its header, or a job, of 18 numbers.
_SWF = re.compile(r";.*|(?:-?\d+(?:\.\d+)?\s+){17}-?\d+(?:\.\d+)?(?:\s.*)?")
_ELASTISIM = re.compile(r'"application_model"\s*:')


def kind_of(path: Path) -> LogKind | None:
    """Return the kind of a log by the end of its name, or by its first lines; None if it is none of these.

    Raises `DocumentError` if these are jobs of ElastiSim, which have no run times.
    """
    for suffix, kind in _SUFFIXES.items():
        if path.name.removesuffix(".gz").endswith(suffix):
            return kind
    try:
        lines = list(islice(read_lines(path), _FIRST_LINES))
    except DocumentError:
        # the reader reports what is wrong with it; a document on one line is too long for a log
        return _kind_of_json(path) if _is_foreign_json(path) else None
    if any(map(_ELASTISIM.search, lines)):
        missing = "run time and walltime: they come of an application model and a platform that are not in the file"
        raise DocumentError(
            str(path), [Fault("", f"Expected an instance or a log, got jobs of ElastiSim without {missing}")]
        )
    if any(map(RECORD.fullmatch, lines)):
        return LogKind.TORQUE
    if lines and ((HEADER.fullmatch(lines[0]) and "|" in lines[0]) or table_of(lines[0])):
        return LogKind.SACCT
    if lines and lines[0].startswith("{") and _is_foreign_json(path):
        return _kind_of_json(path)
    if any(lines) and all(_SWF.fullmatch(line) for line in lines if line):
        return LogKind.SWF
    return LogKind.SBATCH if any(map(EVENT.fullmatch, lines)) else None


def _is_foreign_json(path: Path) -> bool:
    """Tell whether a file begins as JSON does, and not as our own documents do; a packed one is not looked into."""
    try:
        with open_file(path) as stream:
            head = stream.read(_HEAD)
    except (OSError, ValueError):
        return False
    return head.lstrip().startswith(b"{") and _OURS.search(head.decode("utf-8", "replace")) is None


def _kind_of_json(path: Path) -> LogKind | None:
    try:
        document = load_json(path)
    except DocumentError:
        # the reader of documents reports what is wrong with it
        return None
    if is_batsim(document):
        return LogKind.BATSIM
    return LogKind.SACCT if is_json(document) else None


def read_log(path: str | Path, kind: LogKind) -> SwfLog | JobLog:
    """Read a log of a known kind. Raises `DocumentError` if the file cannot be read or holds not one job."""
    return _READERS[kind](path)
