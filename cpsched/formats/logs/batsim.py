"""Batsim's workloads in JSON: jobs that ask for a number of hosts, and profiles that say what they do.

Source of the format: batsim.readthedocs.io, "Workload". Of a profile of another type than ``delay`` the run time comes
of a platform, which is not in the file.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpsched.formats.faults import UnusableLine, read_each, shown
from cpsched.formats.files import load_json
from cpsched.formats.logs.jobs import JobLog, LogAnomaly, LogJob, LogKind, Note, log_of, on_hosts
from cpsched.formats.logs.quantities import count, number


def is_batsim(document: object) -> bool:
    """Tell whether a document is a workload of Batsim."""
    return isinstance(document, dict) and isinstance(document.get("profiles"), dict) and "jobs" in document


def read_batsim(path: str | Path) -> JobLog:
    """Read a workload of hosts of one core. Raises `DocumentError` if it cannot be read or has no job."""
    document = load_json(path)
    content: Mapping[str, Any] = document if isinstance(document, dict) else {}
    jobs, profiles = list[LogJob](), content.get("profiles") or {}
    entries = enumerate(content.get("jobs") or (), start=1)
    faults = read_each(entries, lambda entry, line: jobs.append(_job(entry, profiles, line)))
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
        submit=math.floor(number(entry.get("subtime"), "subtime in seconds", below=1e12)),
        request=on_hosts(asked),
        walltime=None
        if walltime is None or walltime == -1
        else math.ceil(number(walltime, "walltime in seconds", below=1e12)),
        runtime=None if delay is None else math.ceil(number(delay, "delay in seconds", below=1e12)),
        user=str(entry["user"]) if entry.get("user") else None,
        notes=tuple(notes),
    )
