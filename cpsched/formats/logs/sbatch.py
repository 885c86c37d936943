"""Events of the Slurm simulator: the time of a call of sbatch, the job's run time, and all arguments.

Source of the format: Simakov et al., "A Slurm simulator: implementation and parametric analysis", PMBS 2017, and the
tools of its authors at the University at Buffalo (``slurm_sim_tools``, files ``*.events``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from cpsched.domain import MAX_NAME, Request
from cpsched.formats.faults import shown
from cpsched.formats.files import read_lines
from cpsched.formats.logs.jobs import (
    JobLog,
    LogAnomaly,
    LogJob,
    LogKind,
    Note,
    UnusableLine,
    log_of,
    read_dependencies,
    read_each,
)
from cpsched.formats.logs.quantities import slurm_seconds
from cpsched.formats.logs.sbatch_options import read_options, read_request

#: ``-dt SECONDS -e TYPE | arguments``, the two in either order.
EVENT = re.compile(r"(?=[^|]*-dt\s+(?P<time>\S+))(?=[^|]*-e\s+(?P<kind>\w+))[^|]*\|(?P<arguments>.*)")
_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{0,9})?")
#: The simulator knows a job by the number in its name.
_NUMBERED = re.compile(r"job(?:id)?_0*([0-9]{1,18})")
_WITHOUT_LIMIT = frozenset({"0", "-1", "infinite", "unlimited"})
#: The options that determine the request.
_ASKING = frozenset({"nodes", "ntasks", "cpus-per-task", "ntasks-per-node", "mem", "mem-per-cpu", "gres"})
_ASKING |= {"gpus-per-node", "constraint", "exclusive"}
#: Equal requests, each once.
_Requests = dict[frozenset[tuple[str, str]], tuple[Request, tuple[Note, ...]]]


def read_sbatch(path: str | Path) -> JobLog:
    """Read the events of a simulation, plain or gzip.

    Submissions are rounded down to whole seconds, run times up. A run time below 0 is without end: it is the walltime.
    The queue is the QOS, and the partition where there is none.

    Raises `DocumentError` if the file cannot be read or holds not one job.
    """
    jobs = list[LogJob]()
    requests: _Requests = {}
    lines = enumerate(read_lines(Path(path)), start=1)
    events = ((number, text) for number, text in lines if text and not text.startswith("#"))
    faults = read_each(events, lambda text, line: jobs.append(_job(text, line, requests)))
    return log_of(path, LogKind.SBATCH, jobs, faults, expected="sbatch events")


def _job(text: str, line: int, requests: _Requests) -> LogJob:
    match = EVENT.fullmatch(text)
    if match is None or not text.replace("\t", " ").isprintable():
        raise UnusableLine(f"Expected -dt SECONDS -e submit_batch_job | arguments of sbatch, got {shown(text)}")
    if match["kind"] != "submit_batch_job":
        raise UnusableLine(f"Expected the event submit_batch_job, got {shown(match['kind'])}, which is not simulated")
    submit = math.floor(_number(match["time"], "-dt"))
    options = read_options(match["arguments"])
    notes: list[Note] = []
    key = frozenset((name, value) for name, value in options.items() if name in _ASKING)
    if key not in requests:
        requests[key] = read_request(options)
    request, said = requests[key]
    limit = options.get("time")
    walltime = None if limit is None or limit.lower() in _WITHOUT_LIMIT else slurm_seconds(limit)
    runtime = _read_runtime(options, walltime, notes)

    def number_of(job: str) -> str:
        return job.lstrip("0") or "0"

    after = read_dependencies(options.get("dependency"), notes, number_of, is_whole=True)
    partition, _, others = options.get("partition", "").partition(",")
    if others:
        notes.append((LogAnomaly.NOT_SIMULATED, "asks for one of several partitions: the first one"))
    if "cancel-in" in options:
        notes.append((LogAnomaly.NOT_SIMULATED, "is cancelled by its user some time: left to itself"))
    return LogJob(
        id=_read_id(options, line),
        line=line,
        submit=submit,
        request=request,
        walltime=walltime,
        runtime=runtime,
        user=_name(options, "uid"),
        group=_name(options, "gid"),
        project=_name(options, "account"),
        queue=_name(options, "qos") or partition or None,
        partition=partition or None,
        after=after,
        notes=(*said, *notes),
    )


def _number(text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UnusableLine(f"Expected {what} in seconds, got {shown(text)}")
    return float(text)


def _name(options: Mapping[str, str], key: str) -> str | None:
    name = options.get(key)
    if name is not None and not 0 < len(name) <= MAX_NAME:
        raise UnusableLine(f"Expected a {key} of 1 to {MAX_NAME} characters, got {len(name)}")
    return name


def _read_id(options: Mapping[str, str], line: int) -> str:
    """Return the job's number from its option or its name; else its name; else its line."""
    written = _name(options, "job-id") or _name(options, "job-name") or f"line{line}"
    match = _NUMBERED.fullmatch(written)
    return match[1] if match else written


def _read_runtime(options: Mapping[str, str], walltime: int | None, notes: list[Note]) -> int | None:
    if "sim-walltime" not in options:
        return None
    seconds = math.ceil(_number(options["sim-walltime"], "-sim-walltime"))
    if seconds < 0:
        notes.append((LogAnomaly.RUNS_TO_THE_LIMIT, f"has a run time of {seconds}: its walltime is"))
        return walltime
    return seconds
